"""Federated forests beside scikit-learn's on pooled columns: Credit and Nursery, 5 trees of depth 6, over seeds.

    python -m benchmarks.compare_forests --seeds 5

Same trees, depth, `max_features` and seeds; ours bins columns (32 quantiles) and merges bins of few rows at passive
parties. Trees do not depend on encryption, so this runs in the clear.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from vfldata import VerticalDataset, load_credit, load_nursery
from vfltree import NotEncryptedWarning, SecureForestClassifier

TREES, DEPTH = 5, 6


@dataclass(frozen=True)
class Comparison:
    """Test accuracies by seed, of the federated and of the pooled forest."""

    data: str
    max_features: str | None
    ours: np.ndarray  # float64 (n_seeds,)
    pooled: np.ndarray  # float64 (n_seeds,)

    @property
    def standard_error(self) -> float:
        """Of the pooled mean."""
        return float(self.pooled.std(ddof=1) / np.sqrt(len(self.pooled)))

    @property
    def as_good(self) -> bool:
        """At least the pooled mean, less one standard error of it."""
        return bool(self.ours.mean() >= self.pooled.mean() - self.standard_error)

    def row(self) -> dict[str, Any]:
        return {
            "data": self.data,
            "max_features": str(self.max_features),
            "federated": round(float(self.ours.mean()), 4),
            "pooled scikit-learn": round(float(self.pooled.mean()), 4),
            "standard error": round(self.standard_error, 4),
            "as good": self.as_good,
        }


def compare(data: VerticalDataset, max_features: str | None, n_seeds: int) -> Comparison:
    """Both forests with seeds 0, 1, ..."""
    settings = {"max_depth": DEPTH, "max_features": max_features}
    ours, pooled = [], []
    for seed in range(n_seeds):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotEncryptedWarning)
            model = SecureForestClassifier(
                TREES, **settings, partition=data.partition, encryption="none", random_state=seed
            ).fit(data.X_train, data.y_train)
        ours.append(model.score(data.X_test, data.y_test))
        judge = RandomForestClassifier(TREES, **settings, random_state=seed)
        pooled.append(judge.fit(data.X_train, data.y_train).score(data.X_test, data.y_test))
    return Comparison(data.name, max_features, np.array(ours), np.array(pooled))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    n_seeds = parser.parse_args().seeds
    rows = [
        compare(data, max_features, n_seeds).row()
        for data in (load_nursery(one_hot="full"), load_credit())
        for max_features in ("sqrt", None)
    ]
    print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    main()
