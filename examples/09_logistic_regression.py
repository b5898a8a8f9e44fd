"""Lesson 9: logistic regression with a coordinator, who holds the only key and sees nothing but uniform numbers.

A hospital and a laboratory fit the same model over two exchanges: encrypted scores in every step, or rows once.
`--fast` takes a weak key and few epochs.
"""

import argparse
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from vflcrypto import InsecureKeyWarning
from vfldata import load_breast_cancer_vertical
from vfltree import NotEncryptedWarning, SecureLogisticRegression


def main() -> None:
    arguments = parse()
    warnings.simplefilter("ignore", NotEncryptedWarning)  # the plain run is here for comparison
    warnings.simplefilter("ignore", InsecureKeyWarning)  # --fast says so itself
    warnings.simplefilter("ignore", ConvergenceWarning)  # few epochs are enough to show what crosses
    data = load_breast_cancer_vertical()
    settings = {
        "partition": data.partition,
        "vertical_transformer": StandardScaler(),  # every party standardises its own columns
        "max_iter": arguments.epochs,
        "n_jobs": -1,
    }
    cipher = {"key_bits": 512 if arguments.fast else 2048, "allow_weak_key": arguments.fast}
    plain = SecureLogisticRegression(encryption="none", **settings).fit(data.X_train, data.y_train)
    for exchange in ("scores", "rows"):
        model = SecureLogisticRegression(exchange=exchange, **cipher, **settings)
        model.fit(data.X_train, data.y_train)
        show(exchange, model, data)
        if exchange == "scores":
            same = all(np.array_equal(model.coefficients(p), plain.coefficients(p)) for p in model.parties_)
            print(f"  the coefficients of the run without encryption, to the last bit: {same}")
    scaler = StandardScaler().fit(data.X_train)
    pooled = LogisticRegression(max_iter=1000).fit(scaler.transform(data.X_train), data.y_train)
    print(
        f"\nscikit-learn on pooled columns: accuracy {pooled.score(scaler.transform(data.X_test), data.y_test):.4f}"
    )


def show(exchange: str, model: SecureLogisticRegression, data) -> None:
    costs, log = model.costs_, model.coordinator_log_
    print(f"\nexchange={exchange!r}: accuracy {model.score(data.X_test, data.y_test):.4f}")
    print(
        f"  {costs['encryptions']:,} encryptions, {costs['blindings']:,} blindings, "
        f"{costs['multiplications']:,} multiplications, {costs['bytes'] / 1e6:.2f} MB"
    )
    opened = ", ".join(f"{n:,} for the {party}" for party, n in zip(log.parties, log.opened, strict=True))
    print(f"  the coordinator opened, masked: {opened}, in {log.steps} steps; it refused {log.refused}")
    for party, table in model.traffic_.groupby("party", sort=False):
        print(f"  {party} received {', '.join(f'{row.messages} {row.kind}' for row in table.itertuples())}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fast", action="store_true", help="a weak key and 4 epochs: seconds, no protection")
    parser.add_argument("--epochs", type=int, help="steps over all rows (default 40)")
    arguments = parser.parse_args()
    arguments.epochs = arguments.epochs or (4 if arguments.fast else 40)
    return arguments


if __name__ == "__main__":
    main()
