"""Small inputs that several tests share."""

from __future__ import annotations

from typing import Any

import numpy as np

from vfltree import SecureLinearRegression, SecureLogisticRegression, SecurePoissonRegression

WEAK = {"key_bits": 512, "allow_weak_key": True}
PLAIN = {"encryption": "none"}
KINDS = {
    "binary": SecureLogisticRegression,
    "three": SecureLogisticRegression,
    "linear": SecureLinearRegression,
    "poisson": SecurePoissonRegression,
}


def some_data(task: str, n_rows: int = 120, n_features: int = 7, seed: int = 0) -> tuple[Any, Any]:
    """Correlated columns of different scales, one of zeros and ones, and targets of a task."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    X[:, 3] = 0.6 * X[:, 0] + 0.8 * X[:, 3]
    X[:, 4] = X[:, 4] > 0.3
    X[:, 5] = 100 + 20 * X[:, 5]
    signal = X[:, 0] - 0.7 * X[:, 1] + 0.5 * X[:, 4] + 0.03 * (X[:, 5] - 100) + 0.5 * rng.normal(size=n_rows)
    if task == "binary":
        return X, (signal > 0).astype(int)
    if task == "three":
        return X, np.digitize(signal, [-0.7, 0.7])
    if task == "poisson":
        return X, rng.poisson(np.exp(0.4 * signal)).astype(float)
    return X, 10 * signal + 5


def dealt(n_features: int, n_parties: int) -> dict[str, list[int]]:
    """Columns dealt to "active", "p1", "p2", ... one after the other."""
    names = ["active", *(f"p{i}" for i in range(1, n_parties))]
    return {name: list(range(i, n_features, n_parties)) for i, name in enumerate(names)}


def estimator(task: str, n_parties: int = 2, n_features: int = 7, **parameters: Any) -> Any:
    settings = {"partition": dealt(n_features, n_parties), "share_coef": True, "random_state": 1}
    return KINDS[task](**{**settings, **parameters})
