"""Lesson 7: a random forest of two parties' columns: labels encrypted once, features drawn by number, out-of-bag score.

    python examples/07_forest.py            # --fast takes a weak key

The first party has the diagnoses and ten columns, the second has twenty columns that never leave it.
"""

import argparse
import warnings

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from vflcrypto import InsecureKeyWarning
from vfltree import SecureForestClassifier


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fast", action="store_true", help="a weak key: seconds, no protection")
    fast = parser.parse_args().fast
    warnings.simplefilter("ignore", InsecureKeyWarning)
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    partition = {"clinic": list(X.columns[20:]), "laboratory": list(X.columns[:20])}

    model = SecureForestClassifier(
        30, max_depth=5, partition=partition, oob_score=True, random_state=0,
        key_bits=512 if fast else 2048, allow_weak_key=fast,
    )  # fmt: skip
    model.fit(X_train, y_train)
    pooled = RandomForestClassifier(30, max_depth=5, random_state=0).fit(X_train, y_train)

    print(f"test accuracy            {model.score(X_test, y_test):.3f}  (pooled columns, scikit-learn: "
          f"{pooled.score(X_test, y_test):.3f})")  # fmt: skip
    print(f"out-of-bag accuracy      {model.oob_score_:.3f}")
    costs = model.costs_
    print(f"rows, encryptions        {len(X_train)}, {costs['encryptions']}: once for all 30 trees")
    print(f"rounds of messages       {costs['rounds']}: all trees grow together, level by level")
    print(f"additions under cipher   {costs['additions']}")
    print(f"bytes                    {costs['bytes']}")
    print("\nWhat crossed, by kind and sender:")
    table = model.traffic_.groupby(["kind", "sender"])[["messages", "bytes"]].sum()
    print(table.to_string())


if __name__ == "__main__":
    main()
