"""Lesson 6: the two data sets and the settings of the VFLAIR benchmark, plain and encrypted: 5 trees of depth 6.

    python examples/06_credit_and_nursery.py --data nursery --key-bits 2048

Nursery is made on the spot; Credit is read from VFL_DATA_HOME, or fetched by scikit-learn where there is a network.
`--fast` takes a weak key and one tree of Nursery only.
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd

from vflcrypto import InsecureKeyWarning
from vfldata import VerticalDataset, load_credit, load_nursery
from vfltree import NotEncryptedWarning, SecureBoostClassifier

LOADERS = {"credit": load_credit, "nursery": load_nursery}


def main() -> None:
    arguments = parse()
    warnings.simplefilter("ignore", NotEncryptedWarning)  # the plain runs are here for comparison
    warnings.simplefilter("ignore", InsecureKeyWarning)  # the table says "insecure" instead
    rows = []
    for name in arguments.data:
        rows += compare(LOADERS[name](), arguments)
    columns = [
        "data",
        "encryption",
        "accuracy",
        "seconds",
        "MB sent",
        "encryptions",
        "products",
        "decryptions",
        "same",
    ]
    print("\n" + pd.DataFrame(rows, columns=columns).to_string(index=False))
    print(
        "\nproducts: modular multiplications and squarings of the passive party; same: predicts exactly as plain."
    )


def compare(data: VerticalDataset, arguments: argparse.Namespace) -> list[tuple[object, ...]]:
    """A row in the clear, then one per key size."""
    width = {party: len(columns) for party, columns in data.partition.items()}
    print(f"{data.name}: {len(data.X_train)} + {len(data.X_test)} rows, columns per party {width}")
    rows, plain = [], None
    for key_bits in (None, *arguments.key_bits):
        weak = key_bits is not None and key_bits < 2048
        cipher = (
            {"encryption": "none"} if key_bits is None else {"key_bits": key_bits, "allow_weak_key": weak}
        )
        model = SecureBoostClassifier(
            arguments.trees, max_depth=6, partition=data.partition, n_jobs=arguments.jobs, random_state=0,
            verbose=1, **cipher,
        )  # fmt: skip
        start = time.perf_counter()
        model.fit(data.X_train, data.y_train)
        seconds = time.perf_counter() - start
        proba = model.predict_proba(data.X_test)
        plain = proba if plain is None else plain
        name = "none" if key_bits is None else f"{key_bits} bits" + (" (insecure)" if weak else "")
        costs = model.costs_
        rows.append((
            data.name, name, f"{np.mean(model.classes_[proba.argmax(1)] == data.y_test):.4f}", f"{seconds:.1f}",
            f"{costs['bytes'] / 1e6:.1f}", costs["encryptions"], costs["additions"] + costs["squarings"],
            costs["decryptions"], np.array_equal(proba, plain),
        ))  # fmt: skip
    return rows


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=LOADERS, help="default: nursery")
    parser.add_argument("--key-bits", type=int, nargs="+", help="key sizes (default 2048)")
    parser.add_argument("--trees", type=int, help="trees, or rounds of one tree per class (default 5)")
    parser.add_argument("--jobs", type=int, default=-1, help="threads per party (default: all cores)")
    parser.add_argument("--fast", action="store_true", help="a weak key and one tree: seconds, no protection")
    arguments = parser.parse_args()
    arguments.data = arguments.data or ["nursery"]
    arguments.key_bits = arguments.key_bits or [512 if arguments.fast else 2048]
    arguments.trees = arguments.trees or (1 if arguments.fast else 5)
    return arguments


if __name__ == "__main__":
    main()
