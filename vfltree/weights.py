"""Weights of rows: the caller's, times those of the classes. Rows of weight 0 enter nothing, not even the bins."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight

from .blocks import Block

# Weights are float32 in the losses, as in XGBoost.
SMALLEST_WEIGHT, LARGEST_WEIGHT_SUM = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


def weighted_rows(
    blocks: dict[str, Block], y: np.ndarray, sample_weight: Any = None, class_weight: Any = None
) -> tuple[dict[str, Block], np.ndarray, np.ndarray | None]:
    """Blocks, y and weights without rows of weight 0; weights is None where there are none.

    sample_weight : (n_rows,) of numbers 0 or more.  class_weight : dict label -> factor (1 where it names none), or
    "balanced": n_rows / (n_classes * rows of the class), over rows that enter.
    """
    if sample_weight is None and class_weight is None:
        return blocks, y, None
    weights = _check_sample_weight(
        sample_weight, np.empty((len(y), 1)), dtype=np.float64, ensure_non_negative=True
    )
    blocks, y, weights = _nonzero(blocks, y, weights, "sample")
    if class_weight is not None:
        weights = weights * compute_sample_weight(class_weight, y)
        if not (weights >= 0).all():
            raise ValueError(f"class_weight must be 0 or more, got {class_weight}")
        blocks, y, weights = _nonzero(blocks, y, weights, "class")
    low, high = float(weights.min()), float(weights.max())
    if low < SMALLEST_WEIGHT or not high * len(weights) <= LARGEST_WEIGHT_SUM:
        raise ValueError(
            f"sample weights lie between {low:g} and {high:g}, single precision holds weights from "
            f"{SMALLEST_WEIGHT:g} and sums to {LARGEST_WEIGHT_SUM:g}: scale them"
        )
    return blocks, y, weights


def _nonzero(
    blocks: dict[str, Block], y: np.ndarray, weights: np.ndarray, kind: str
) -> tuple[dict[str, Block], np.ndarray, np.ndarray]:
    used = weights > 0
    if not used.any():
        raise ValueError(f"every {kind} weight is 0")
    if used.all():
        return blocks, y, weights
    return {party: block.take(used) for party, block in blocks.items()}, y[used], weights[used]
