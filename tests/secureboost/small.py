"""Small inputs that several tests share."""

from __future__ import annotations

from typing import Any

import numpy as np

from vfltree import SecureBoostClassifier

XA4 = np.array([[0.0], [1.0], [2.0], [3.0]])
CONST4 = np.full((4, 1), 5.0)
Y4 = np.array([0, 0, 1, 1])
PROBA4 = np.array(
    [0.339244, 0.339244, 0.660756, 0.660756]
)  # leaves -2/3 and 2/3 through the logistic function
WEAK = {"key_bits": 512, "allow_weak_key": True}


def boost1(**parameters: Any) -> SecureBoostClassifier:
    """One tree of one split, so that leaves can be computed by hand."""
    settings: dict[str, Any] = {
        "n_estimators": 1,
        "max_depth": 1,
        "learning_rate": 1.0,
        "reg_lambda": 1.0,
        "min_child_weight": 0,
        "base_score": 0.5,
        "encryption": "none",
    }
    return SecureBoostClassifier(**{**settings, **parameters})


def blocks(first: Any, second: Any) -> dict[str, Any]:
    return {"a": first, "b": second}


def positive(model: SecureBoostClassifier, X: Any) -> np.ndarray:
    return model.predict_proba(X)[:, 1]


def some_data(
    task: str, n_rows: int = 240, n_features: int = 9, missing: bool = False, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Features with ties and (optionally) missing values; targets of a task "binary", "five" or "regression"."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    X[:, 1] = np.round(X[:, 1])
    X[:, -1] = X[:, 0]  # the same column at two parties: ties between them
    signal = X[:, 0] + X[:, 4] * X[:, 1] - X[:, 6] + 0.3 * rng.normal(size=n_rows)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    if task == "binary":
        return X, (signal > 0).astype(int)
    if task == "five":
        return X, np.digitize(signal, [-2, -0.7, 0.7, 2])
    return X, signal * 10


def thirds(n_features: int, n_parties: int) -> dict[str, list[int]]:
    """Columns dealt to "active", "p1", "p2", ... in turn blocks."""
    names = ["active", *(f"p{i}" for i in range(1, n_parties))]
    return {
        name: list(part)
        for name, part in zip(names, np.array_split(range(n_features), n_parties), strict=True)
    }


def assert_same_model(one: Any, other: Any, X: Any) -> None:
    """Same trees and bit-identical leaves, same lookup tables, same predictions."""
    assert one._active_model == other._active_model
    assert one._passive_models == other._passive_models
    assert one._predict(X) == other._predict(X)  # scores and leaves of every row, in one conversation
