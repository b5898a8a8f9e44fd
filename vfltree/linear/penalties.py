"""scikit-learn's ways to say how strong a penalty is, as the settings have them."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np


def inverse_penalty(C: Any, l1_ratio: Any) -> dict[str, float]:
    """LogisticRegression: C times the sum of losses + the penalty; C = inf means none."""
    _check("C", C, positive=True)
    _check_ratio(l1_ratio)
    return _split(1.0 / float(C), float(l1_ratio))


def sum_penalty(alpha: Any, l1_ratio: Any) -> dict[str, float]:
    """Ridge: half the sum of squares + alpha times the penalty."""
    _check("alpha", alpha)
    _check_ratio(l1_ratio)
    return _split(float(alpha), float(l1_ratio))


def mean_penalty(alpha: Any) -> dict[str, float]:
    """PoissonRegressor: the mean of losses + alpha / 2 |w|^2."""
    _check("alpha", alpha)
    return {"l2_mean": float(alpha)}


def _split(strength: float, l1_ratio: float) -> dict[str, float]:
    return {"l2_sum": strength * (1.0 - l1_ratio), "l1_sum": strength * l1_ratio}


def _check(name: str, value: Any, *, positive: bool = False) -> None:
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    number = float(value)
    if not (number > 0 if positive else 0 <= number < np.inf):
        raise ValueError(
            f"{name} must be {'positive' if positive else 'a finite number from 0'}, got {value!r}"
        )


def _check_ratio(l1_ratio: Any) -> None:
    _check("l1_ratio", l1_ratio)
    if l1_ratio > 1:
        raise ValueError(f"l1_ratio must be in [0, 1], got {l1_ratio!r}")
