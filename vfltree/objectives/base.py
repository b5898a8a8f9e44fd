"""What boosting asks of a loss, and the arithmetic that all of them share."""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Scores = NDArray[np.float32] | NDArray[np.float64]

BASE_SCORE_MARGIN = 1e-6  # shares 0 and 1 have no finite logit
LARGEST_EXPONENT = 88.7  # exp of it is finite in single precision
SINGLE_LIMIT = 16  # targets up to this many times their range lose at most 2**-20 of it in single precision


class Loss(Protocol):
    """What boosting asks of a loss. y: float64 (n,); raw: (n, n_outputs); weights: float64 (n,) or None."""

    @property
    def n_outputs(self) -> int:
        """Gradients per row."""

    def base_score(self, y: Array, weights: Array | None = None) -> Array:
        """Start value in the user's scale, float64 (n_outputs,): XGBoost's for `base_score=None`."""

    def raw_from_base(self, base_score: float | Array) -> Array:
        """The same as a raw score, float64 (n_outputs,)."""

    def start(self, y: Array, weights: Array | None = None, base_score: float | None = None) -> Scores:
        """Raw score before the first tree, (n_outputs,); its dtype is that of all raw scores of the model."""

    def gradients(self, y: Array, raw: Scores, weights: Array | None = None) -> tuple[Array, Array]:
        """First and second derivatives by the raw score, both float64 (n, n_outputs), times the weights."""

    def link(self, raw: Scores) -> Array:
        """Predictions from raw scores, computed in their precision: probabilities float64 (n, n_classes), or values
        float64 (n,) or (n, n_outputs)."""

    def value(self, y: Array, raw: Scores, weights: Array | None = None) -> float:
        """Weighted mean loss, for progress and early stopping."""


@runtime_checkable
class LeafLoss(Loss, Protocol):
    """A loss whose leaf values are found anew once a tree stands, as its hessians say nothing about them."""

    def leaf_value(
        self, y: Array, raw: Scores, weights: Array | None, rows: NDArray[np.int32], output: int
    ) -> float:
        """Value of a leaf that holds these rows (one at least), before the learning rate; raw: before this tree."""


def single_precision_suits(y: Array) -> bool:
    """Whether float32 keeps what tells these targets apart: they are not much larger than their range."""
    low, high = float(y.min()), float(y.max())
    size = max(abs(low), abs(high))
    if low == high:
        return low == float(np.float32(low))
    return 2.0**-100 < size < 2.0**100 and size <= SINGLE_LIMIT * (high - low)


def as_singles(x: Any) -> Any:
    """x rounded to float32 and held in float64 again; None stays None."""
    return None if x is None else np.asarray(x, dtype=np.float32).astype(np.float64)


def row_weights(y: Array, weights: Array | None, dtype: Any) -> Any:
    return np.ones(len(y), dtype=dtype) if weights is None else weights.astype(dtype)


def exp(x: Any) -> Any:
    """exp, for float32 rounded from the double result: the same on every machine, and nearly always the C
    library's."""
    return np.exp(x.astype(np.float64)).astype(x.dtype)


def probability(base_score: Any, dtype: Any) -> Any:
    p = np.broadcast_to(np.asarray(base_score, dtype=dtype), (1,))
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"base_score must be a probability between 0 and 1 here, got {base_score}")
    return np.clip(p, dtype(BASE_SCORE_MARGIN), dtype(1 - BASE_SCORE_MARGIN))


def logit(p: Any) -> Any:
    return -np.log((1 / p - 1).astype(np.float64)).astype(p.dtype)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + exp(np.minimum(-x, x.dtype.type(LARGEST_EXPONENT))))


def softmax(raw: Any) -> Any:
    e = exp(raw - raw.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True, dtype=np.float64).astype(raw.dtype)


def column(x: Any) -> Array:
    return x.astype(np.float64)[:, None]


def weighted_mean(values: Array, weights: Array | None) -> float:
    w = row_weights(values, weights, np.float64)
    return math.fsum(values * w) / math.fsum(w)


def value_start(y: Array, base: Array) -> Scores:
    """Raw start score of values: single precision where it suits the targets."""
    return base.astype(np.float32) if single_precision_suits(y) else base
