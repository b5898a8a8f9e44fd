"""Weights of rows: the caller's, times those of the classes. Rows of weight 0 enter nothing, not even the bins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from .blocks import Block

# Weights are float32 in the losses of trees, as in XGBoost.
SMALLEST_WEIGHT, LARGEST_WEIGHT_SUM = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


def checked_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """float64 (n_rows,), 0 or more and some above it; None where there are none."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(
        sample_weight, np.empty((n_rows, 1)), dtype=np.float64, ensure_non_negative=True
    )
    if not (weights > 0).any():
        raise ValueError("every sample weight is 0")
    return np.asarray(weights)


def class_factors(
    class_weight: Mapping[Any, float] | str,
    classes: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """What weights of every class are multiplied by, float64 (n_classes,), 0 or more.

    class_weight : dict label -> factor (1 where it names none), or "balanced": n_rows / (n_classes * rows of the
        class), over the classes that y holds.
    y : labels of the rows that have weight.  weights : theirs, where "balanced" counts rows by them.
    """
    if isinstance(class_weight, str) and class_weight != "balanced":
        raise ValueError(f"class_weight must be a dict, 'balanced' or None, got {class_weight!r}")
    if not isinstance(class_weight, str | Mapping):
        raise TypeError(f"class_weight must be a dict, 'balanced' or None, got {class_weight!r}")
    factors = np.ones(len(classes))
    if isinstance(class_weight, str):
        there = np.isin(classes, y)
        factors[there] = compute_class_weight(
            class_weight, classes=classes[there], y=y, sample_weight=weights
        )
    else:
        factors[:] = compute_class_weight(dict(class_weight), classes=classes, y=y)
    if not ((factors >= 0) & np.isfinite(factors)).all():
        raise ValueError(f"class_weight must be 0 or more and finite, got {class_weight}")
    return factors


def entering_rows(
    blocks: dict[str, Block], y: np.ndarray, weights: np.ndarray | None, kind: str = "sample"
) -> tuple[dict[str, Block], np.ndarray, np.ndarray | None]:
    """Blocks, y and weights without rows of weight 0; weights is None where all are 1."""
    if weights is None:
        return blocks, y, None
    used = weights > 0
    if not used.any():
        raise ValueError(f"every {kind} weight is 0")
    if not used.all():
        blocks = {party: block.take(used) for party, block in blocks.items()}
        y, weights = y[used], weights[used]
    return blocks, y, None if (weights == 1).all() else weights


def weighted_rows(
    blocks: dict[str, Block],
    y: np.ndarray,
    sample_weight: Any = None,
    class_weight: Mapping[Any, float] | str | None = None,
    classes: np.ndarray | None = None,
) -> tuple[dict[str, Block], np.ndarray, np.ndarray | None]:
    """`entering_rows` for trees, whose losses hold weights in single precision.

    sample_weight : (n_rows,) of numbers 0 or more.  class_weight : see `class_factors`.  classes : with it, all labels.
    """
    blocks, y, weights = entering_rows(blocks, y, checked_weights(sample_weight, len(y)))
    if class_weight is not None:
        assert classes is not None
        factors = class_factors(class_weight, classes, y)[np.searchsorted(classes, y)]
        weights = factors if weights is None else weights * factors
        blocks, y, weights = entering_rows(blocks, y, weights, "class")
    if weights is None:
        return blocks, y, None
    low, high = float(weights.min()), float(weights.max())
    if low < SMALLEST_WEIGHT or not high * len(weights) <= LARGEST_WEIGHT_SUM:
        raise ValueError(
            f"sample weights lie between {low:g} and {high:g}, single precision holds weights from "
            f"{SMALLEST_WEIGHT:g} and sums to {LARGEST_WEIGHT_SUM:g}: scale them"
        )
    return blocks, y, weights
