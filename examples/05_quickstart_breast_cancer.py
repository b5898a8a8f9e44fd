"""Lesson 5: a hospital and a laboratory train one encrypted model on the same patients, and lose nothing by it.

The hospital knows the diagnosis and ten measurements, the laboratory twenty others. SecureBoost is trained three
times: by the hospital alone, jointly in the clear, and jointly under Paillier encryption. `--fast` takes a weak key
and fewer trees; `--key-bits` and `--trees` choose.
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, log_loss

from vflcrypto import InsecureKeyWarning
from vfldata import load_breast_cancer_vertical
from vfltree import NotEncryptedWarning, SecureBoostClassifier

SEES = {  # what a message shows its receiver
    "JoinTraining": "the public key, a digest of the row IDs, the number of trees and their depth",
    "Joined": "how many features and bins there are",
    "GradientsForRound": "one ciphertext per patient; unreadable without the private key",
    "Histograms": "ciphertexts of sums per bin, freshly blinded; features in a secret order",
    "RecordSplits": "which of its own candidate splits won",
    "SplitsRecorded": "which patients go left; not by which feature, nor where it is cut",
    "SumChildren": "which patients fell into which node",
    "TrainingEnded": "that training has ended",
    "Done": "that the message arrived",
}


def main() -> None:
    arguments = parse()
    warnings.simplefilter("ignore", NotEncryptedWarning)  # the plain runs are here for comparison
    warnings.simplefilter("ignore", InsecureKeyWarning)  # --fast says so itself
    data = load_breast_cancer_vertical()
    active, passive = data.partition
    print(f"{data.name}: {len(data.X_train)} patients to train on, {len(data.X_test)} to test.")
    print(f"  {active:8} (active)   knows the diagnosis and {len(data.partition[active])} measurements")
    print(f"  {passive:8} (passive)  knows {len(data.partition[passive])} other measurements\n")

    settings = {"n_estimators": arguments.trees, "max_depth": 3, "random_state": 0, "n_jobs": -1}
    cipher = {"key_bits": arguments.key_bits, "allow_weak_key": arguments.fast}
    joint = {"partition": data.partition, **settings}
    alone = {active: list(data.partition[active]), passive: ["nothing"]}  # a passive party with a constant
    runs = {
        f"{active} alone, in the clear": (
            SecureBoostClassifier(partition=alone, encryption="none", **settings),
            lambda X: X[data.partition[active]].assign(nothing=0.0),
        ),
        "together, in the clear": (SecureBoostClassifier(encryption="none", **joint), lambda X: X),
        f"together, {arguments.key_bits}-bit Paillier": (
            SecureBoostClassifier(verbose=1, **cipher, **joint),
            lambda X: X,
        ),
    }
    rows = []
    for name, (model, seen) in runs.items():
        start = time.perf_counter()
        model.fit(seen(data.X_train), data.y_train)
        seconds = time.perf_counter() - start
        proba = model.predict_proba(seen(data.X_test))
        scores = accuracy_score(data.y_test, proba.argmax(axis=1)), log_loss(data.y_test, proba)
        rows.append(
            (
                name,
                *(f"{score:.4f}" for score in scores),
                f"{seconds:.1f}",
                f"{model.traffic_.bytes.sum() / 1e6:.2f}",
            )
        )
    print(
        pd.DataFrame(rows, columns=["who trains", "accuracy", "log loss", "seconds", "MB sent"]).to_string(
            index=False
        )
    )

    plain, encrypted = runs["together, in the clear"][0], model
    same = np.array_equal(plain.predict_proba(data.X_test), encrypted.predict_proba(data.X_test))
    print(f"\nThe encrypted model predicts exactly what the plain one does, to the last bit: {same}")
    show_costs(encrypted)
    show_views(encrypted)


def show_costs(model: SecureBoostClassifier) -> None:
    costs = model.costs_
    print(
        f"Spent under encryption: {costs['encryptions']:,} encryptions, {costs['additions']:,} additions, "
        f"{costs['squarings']:,} squarings,\n  {costs['blindings']:,} blindings, {costs['decryptions']:,} decryptions; "
        f"kernels: {costs['backend']}, threads: {costs['n_jobs']}"
    )
    phases = ", ".join(
        f"{name} {seconds:.1f}" for name, seconds in costs["seconds"].items() if seconds > 0.05
    )
    print(f"Seconds by phase: {phases}")


def show_views(model: SecureBoostClassifier) -> None:
    print("\nWhat each party saw, all of it:")
    for party, table in model.traffic_.groupby("party", sort=False):
        print(f"  {party}")
        for row in table.itertuples():
            print(f"    {row.messages:4} x {row.kind:18} {row.bytes:>11,} bytes   {SEES[row.kind]}")
    print(
        "\nNo label, no gradient and no threshold crossed in the clear. What the sets of patients still tell, and to\n"
        "whom, stands in the README under 'Who learns what'."
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--fast", action="store_true", help="a weak key and three trees: seconds, no protection"
    )
    parser.add_argument("--key-bits", type=int, help="bits of the key (default 3072)")
    parser.add_argument("--trees", type=int, help="number of trees (default 20)")
    arguments = parser.parse_args()
    arguments.key_bits = arguments.key_bits or (512 if arguments.fast else 3072)
    arguments.trees = arguments.trees or (3 if arguments.fast else 20)
    return arguments


if __name__ == "__main__":
    main()
