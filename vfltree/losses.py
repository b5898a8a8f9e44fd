"""Losses of boosting: start values, gradients and hessians at the raw score, as XGBoost 3 defines them.

XGBoost keeps labels, weights, raw scores and gradients in single precision. Late in training, when trees
fit what is left over, that rounding decides near-ties, so equal trees need equal rounding: raw scores are
float32 here too, and `start` says so by its dtype. Targets that single precision would blur (around 1e9 and
4 apart, say) get float64. Every method computes in the precision of the raw scores it is given and returns
float64 arrays.

For the encrypted sums the pair (g, h) becomes integers on a private power-of-two scale (`quantize`): sums
are then exact and do not depend on order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Scores = NDArray[np.float32] | NDArray[np.float64]

FRACTION_BITS = 30  # rounding error of a gradient at most 2**-31 of the largest one in the tree
SUM_BITS = 61  # a sum over all rows must fit int64 with room for a subtraction
HESSIAN_FLOOR = 1e-16  # XGBoost's floor, so that saturated rows still count
PRIOR_FLOOR = 1e-6  # XGBoost adds it to class shares before the logarithm
BASE_SCORE_MARGIN = 1e-6  # shares 0 and 1 have no finite logit
LARGEST_EXPONENT = 88.7  # exp of it is finite in single precision
SMALLEST_EXPONENT = -1022  # of a normal double: what is smaller rounds to 0 rather than divide by it
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
        """Predictions from raw scores: probabilities float64 (n, n_classes), or values float64 (n,)."""

    def value(self, y: Array, raw: Scores, weights: Array | None = None) -> float:
        """Weighted mean loss, for progress and early stopping."""


@dataclass(frozen=True)
class Logistic:
    """Two classes, y in {0, 1}: g = p - y, h = p (1 - p).

    `scale_pos_weight` multiplies the weight of rows with y = 1.
    """

    scale_pos_weight: float = 1.0
    n_outputs: int = 1

    def base_score(self, y: Array, weights: Array | None = None) -> Array:
        """The weighted share of y = 1; with `scale_pos_weight` one Newton step from 0 (as XGBoost 3.2)."""
        w = self._weights(y, weights, np.float64)
        total, positive = math.fsum(w), math.fsum(w * y)
        if self.scale_pos_weight == 1:
            return np.array([positive / total])
        gradient, hessian = total / 2 - positive, total / 4
        return _sigmoid(np.array([-gradient / max(hessian, 1e-6)]))

    def raw_from_base(self, base_score: float | Array) -> Array:
        return _logit(_probability(base_score, np.float64))

    def start(self, y: Array, weights: Array | None = None, base_score: float | None = None) -> Scores:
        base = self.base_score(y, _single(weights)) if base_score is None else base_score
        return _logit(_probability(base, np.float32))

    def gradients(self, y: Array, raw: Scores, weights: Array | None = None) -> tuple[Array, Array]:
        p = _sigmoid(raw[:, 0])
        w = self._weights(y, weights, raw.dtype)
        g = p - y.astype(raw.dtype)
        h = np.maximum(p * (1 - p), raw.dtype.type(HESSIAN_FLOOR))
        return _column(g * w), _column(h * w)

    def link(self, raw: Scores) -> Array:
        x = raw[:, 0].astype(np.float64)
        return np.column_stack([_sigmoid(-x), _sigmoid(x)])

    def value(self, y: Array, raw: Scores, weights: Array | None = None) -> float:
        x = raw[:, 0].astype(np.float64)
        losses = np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))
        return _mean(losses, self._weights(y, weights, np.float64))

    def _weights(self, y: Array, weights: Array | None, dtype: Any) -> Any:
        w = _weights(y, weights, dtype)
        return (
            w if self.scale_pos_weight == 1 else np.where(y == 1, w * w.dtype.type(self.scale_pos_weight), w)
        )


@dataclass(frozen=True)
class Softmax:
    """`n_outputs` classes, y in {0, ..., n_outputs - 1}: per class g = p - [y is it], h = 2 p (1 - p)."""

    n_outputs: int

    def base_score(self, y: Array, weights: Array | None = None) -> Array:
        """Centred logarithms of the weighted class shares."""
        w = _weights(y, weights, np.float64)
        labels = y.astype(np.int64)
        shares = np.array([math.fsum(w[labels == k]) for k in range(self.n_outputs)]) / math.fsum(w)
        logs = np.log(shares + PRIOR_FLOOR)
        return logs - math.fsum(logs) / self.n_outputs

    def raw_from_base(self, base_score: float | Array) -> Array:
        return np.broadcast_to(np.asarray(base_score, dtype=np.float64), (self.n_outputs,)).copy()

    def start(self, y: Array, weights: Array | None = None, base_score: float | None = None) -> Scores:
        base = self.base_score(y, _single(weights)) if base_score is None else base_score
        return self.raw_from_base(base).astype(np.float32)

    def gradients(self, y: Array, raw: Scores, weights: Array | None = None) -> tuple[Array, Array]:
        p = _softmax(raw)
        w = _weights(y, weights, raw.dtype)[:, None]
        g = p.copy()
        g[np.arange(len(y)), y.astype(np.int64)] -= 1
        h = np.maximum(2 * p * (1 - p) * w, raw.dtype.type(HESSIAN_FLOOR))
        return (g * w).astype(np.float64), h.astype(np.float64)

    def link(self, raw: Scores) -> Array:
        return _softmax(raw.astype(np.float64))

    def value(self, y: Array, raw: Scores, weights: Array | None = None) -> float:
        shifted = raw.astype(np.float64) - raw.max(axis=1, keepdims=True)
        chosen = shifted[np.arange(len(y)), y.astype(np.int64)]
        return _mean(np.log(np.exp(shifted).sum(axis=1)) - chosen, weights)


@dataclass(frozen=True)
class SquaredError:
    """Regression: g = raw - y, h = 1."""

    n_outputs: int = 1

    def base_score(self, y: Array, weights: Array | None = None) -> Array:
        """The weighted mean of y, summed around the first value so that no digits are lost to its size."""
        w = _weights(y, weights, np.float64)
        centre = float(y[0])
        return np.array([centre + math.fsum(w * (y - centre)) / math.fsum(w)])

    def raw_from_base(self, base_score: float | Array) -> Array:
        return np.broadcast_to(np.asarray(base_score, dtype=np.float64), (1,)).copy()

    def start(self, y: Array, weights: Array | None = None, base_score: float | None = None) -> Scores:
        if not single_precision_suits(y):
            return self.base_score(y, weights) if base_score is None else self.raw_from_base(base_score)
        base = self.base_score(_single(y), _single(weights)) if base_score is None else base_score
        return self.raw_from_base(base).astype(np.float32)

    def gradients(self, y: Array, raw: Scores, weights: Array | None = None) -> tuple[Array, Array]:
        w = _weights(y, weights, raw.dtype)
        return _column((raw[:, 0] - y.astype(raw.dtype)) * w), _column(w)

    def link(self, raw: Scores) -> Array:
        return raw[:, 0].astype(np.float64)

    def value(self, y: Array, raw: Scores, weights: Array | None = None) -> float:
        return _mean((raw[:, 0] - y) ** 2, weights)


def single_precision_suits(y: Array) -> bool:
    """Whether float32 keeps what tells these targets apart: they are not much larger than their range."""
    low, high = float(y.min()), float(y.max())
    size = max(abs(low), abs(high))
    if low == high:
        return low == float(np.float32(low))
    return 2.0**-100 < size < 2.0**100 and size <= SINGLE_LIMIT * (high - low)


def _single(x: Any) -> Any:
    """x rounded to float32 and held in float64 again; None stays None."""
    return None if x is None else np.asarray(x, dtype=np.float32).astype(np.float64)


def _weights(y: Array, weights: Array | None, dtype: Any) -> Any:
    return np.ones(len(y), dtype=dtype) if weights is None else weights.astype(dtype)


def _exp(x: Any) -> Any:
    """exp, for float32 rounded from the double result: the same on every machine, and nearly always the C
    library's."""
    return np.exp(x.astype(np.float64)).astype(x.dtype)


def _probability(base_score: Any, dtype: Any) -> Any:
    p = np.broadcast_to(np.asarray(base_score, dtype=dtype), (1,))
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"base_score must be a probability between 0 and 1 here, got {base_score}")
    return np.clip(p, dtype(BASE_SCORE_MARGIN), dtype(1 - BASE_SCORE_MARGIN))


def _logit(p: Any) -> Any:
    return -np.log((1 / p - 1).astype(np.float64)).astype(p.dtype)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + _exp(np.minimum(-x, x.dtype.type(LARGEST_EXPONENT))))


def _softmax(raw: Any) -> Any:
    e = _exp(raw - raw.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True, dtype=np.float64).astype(raw.dtype)


def _column(x: Any) -> Array:
    return x.astype(np.float64)[:, None]


def _mean(values: Array, weights: Array | None) -> float:
    w = _weights(values, weights, np.float64)
    return math.fsum(values * w) / math.fsum(w)


@dataclass(frozen=True)
class Quantized:
    """Gradients and hessians of one round as integers: real value = integer * unit, per output.

    Attributes
    ----------
    g, h : ndarray of int64, shape (n_rows, n_outputs)
        |g| and h at most 2**fraction_bits; h >= 1 wherever the hessian is positive, so a sum of hessians is 0
        exactly where there is no row.
    g_unit, h_unit : ndarray of float64, shape (n_outputs,)
        Powers of two. They follow the values, so they stay with the active party.
    fraction_bits : int
    """

    g: NDArray[np.int64]
    h: NDArray[np.int64]
    g_unit: Array
    h_unit: Array
    fraction_bits: int


def fraction_bits_for(n_rows: int, fraction_bits: int = FRACTION_BITS) -> int:
    """`fraction_bits`, or fewer where sums over `n_rows` would not fit 61 bits."""
    return min(fraction_bits, SUM_BITS - max(n_rows - 1, 0).bit_length())


def quantize(g: Array, h: Array, fraction_bits: int = FRACTION_BITS) -> Quantized:
    """Round g and h to integers, on a power-of-two scale per output that brings the largest below 1.

    Parameters
    ----------
    g, h : ndarray of float64, shape (n_rows, n_outputs)
        h must not be negative.
    fraction_bits : int
        Fewer are used where sums over all rows would not fit 61 bits.
    """
    if not (np.isfinite(g).all() and np.isfinite(h).all()):
        raise ValueError(
            "gradients and hessians must be finite; targets, weights or raw scores are too large"
        )
    if (h < 0).any():
        raise ValueError(f"hessians must not be negative, the smallest is {h.min()}")
    bits = fraction_bits_for(len(g), fraction_bits)
    g_unit, h_unit = _unit(g, bits), _unit(h, bits)
    g_int = np.rint(g / g_unit).astype(np.int64)
    h_int = np.rint(h / h_unit).astype(np.int64)
    return Quantized(g_int, np.maximum(h_int, h > 0), g_unit, h_unit, bits)


def _unit(x: Array, bits: int) -> Array:
    """Per column the power of two u with |x| / u <= 2**bits, and the largest above 2**(bits - 1)."""
    largest = np.abs(x).max(axis=0, initial=0.0)
    _, exponents = np.frexp(np.where(largest > 0, largest, 0.5))
    return np.ldexp(1.0, np.maximum(exponents - bits, SMALLEST_EXPONENT))
