"""Losses of boosting: start values, gradients and hessians at the raw score, as XGBoost 3 defines them.

Raw scores and targets stay float64, so targets around 1e9 keep their differences. For the encrypted sums
the pair (g, h) becomes integers on a private power-of-two scale (`quantize`): sums are then exact and do
not depend on order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FRACTION_BITS = 30  # rounding error of a gradient at most 2**-31 of the largest one in the tree
SUM_BITS = 61  # a sum over all rows must fit int64 with room for a subtraction
HESSIAN_FLOOR = 1e-16  # XGBoost's floor, so that saturated rows still count
PRIOR_FLOOR = 1e-6  # XGBoost adds it to class shares before the logarithm
BASE_SCORE_MARGIN = 1e-6  # shares 0 and 1 have no finite logit


class Loss(Protocol):
    """What boosting asks of a loss. y: float64 (n,); raw: float64 (n, n_outputs); weights: (n,) or None."""

    @property
    def n_outputs(self) -> int:
        """Gradients per row."""

    def base_score(self, y: Array, weights: Array | None = None) -> Array:
        """Start value in the user's scale, shape (n_outputs,): what XGBoost takes for `base_score=None`."""

    def raw_from_base(self, base_score: float | Array) -> Array:
        """The start value as a raw score, shape (n_outputs,)."""

    def gradients(self, y: Array, raw: Array, weights: Array | None = None) -> tuple[Array, Array]:
        """First and second derivatives by the raw score, both float64 (n, n_outputs), times the weights."""

    def link(self, raw: Array) -> Array:
        """Predictions from raw scores (n, n_outputs): probabilities of all classes, or values (n,)."""

    def value(self, y: Array, raw: Array, weights: Array | None = None) -> float:
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
        w = self._weights(y, weights)
        total = math.fsum(w)
        positive = math.fsum(w * y)
        if self.scale_pos_weight == 1:
            return np.array([positive / total])
        gradient, hessian = total / 2 - positive, total / 4
        return _sigmoid(np.array([-gradient / max(hessian, 1e-6)]))[0]

    def raw_from_base(self, base_score: float | Array) -> Array:
        p = np.broadcast_to(np.asarray(base_score, dtype=np.float64), (1,))
        if not ((p >= 0) & (p <= 1)).all():
            raise ValueError(f"base_score must be a probability between 0 and 1 here, got {base_score}")
        p = np.clip(p, BASE_SCORE_MARGIN, 1 - BASE_SCORE_MARGIN)
        return np.log(p) - np.log1p(-p)

    def gradients(self, y: Array, raw: Array, weights: Array | None = None) -> tuple[Array, Array]:
        p, q = _sigmoid(raw[:, 0])
        w = self._weights(y, weights)
        # p - y without the cancellation of 1 - p for rows that are nearly certain.
        g = p * (1 - y) - q * y
        h = np.maximum(p * q, HESSIAN_FLOOR)
        return (g * w)[:, None], (h * w)[:, None]

    def link(self, raw: Array) -> Array:
        p, q = _sigmoid(raw[:, 0])
        return np.column_stack([q, p])

    def value(self, y: Array, raw: Array, weights: Array | None = None) -> float:
        x = raw[:, 0]
        return _mean(np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x))), self._weights(y, weights))

    def _weights(self, y: Array, weights: Array | None) -> Array:
        w = np.ones(len(y)) if weights is None else weights
        return w if self.scale_pos_weight == 1 else np.where(y == 1, w * self.scale_pos_weight, w)


@dataclass(frozen=True)
class Softmax:
    """`n_outputs` classes, y in {0, ..., n_outputs - 1}: per class g = p - [y is it], h = 2 p (1 - p)."""

    n_outputs: int

    def base_score(self, y: Array, weights: Array | None = None) -> Array:
        """Centred logarithms of the weighted class shares."""
        w = np.ones(len(y)) if weights is None else weights
        labels = y.astype(np.int64)
        shares = np.array([math.fsum(w[labels == k]) for k in range(self.n_outputs)]) / math.fsum(w)
        logs = np.log(shares + PRIOR_FLOOR)
        return logs - math.fsum(logs) / self.n_outputs

    def raw_from_base(self, base_score: float | Array) -> Array:
        return np.broadcast_to(np.asarray(base_score, dtype=np.float64), (self.n_outputs,)).copy()

    def gradients(self, y: Array, raw: Array, weights: Array | None = None) -> tuple[Array, Array]:
        p = self.link(raw)
        g = p.copy()
        g[np.arange(len(y)), y.astype(np.int64)] -= 1
        h = np.maximum(2 * p * (1 - p), HESSIAN_FLOOR)
        return (g, h) if weights is None else (g * weights[:, None], h * weights[:, None])

    def link(self, raw: Array) -> Array:
        e = np.exp(raw - raw.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def value(self, y: Array, raw: Array, weights: Array | None = None) -> float:
        shifted = raw - raw.max(axis=1, keepdims=True)
        chosen = shifted[np.arange(len(y)), y.astype(np.int64)]
        return _mean(np.log(np.exp(shifted).sum(axis=1)) - chosen, weights)


@dataclass(frozen=True)
class SquaredError:
    """Regression: g = raw - y, h = 1."""

    n_outputs: int = 1

    def base_score(self, y: Array, weights: Array | None = None) -> Array:
        """The weighted mean of y, summed around the first value so that no digits are lost to its size."""
        centre = float(y[0])
        if weights is None:
            return np.array([centre + math.fsum(y - centre) / len(y)])
        return np.array([centre + math.fsum(weights * (y - centre)) / math.fsum(weights)])

    def raw_from_base(self, base_score: float | Array) -> Array:
        return np.broadcast_to(np.asarray(base_score, dtype=np.float64), (1,)).copy()

    def gradients(self, y: Array, raw: Array, weights: Array | None = None) -> tuple[Array, Array]:
        w = np.ones(len(y)) if weights is None else weights
        return ((raw[:, 0] - y) * w)[:, None], w[:, None].copy()

    def link(self, raw: Array) -> Array:
        return raw[:, 0].copy()

    def value(self, y: Array, raw: Array, weights: Array | None = None) -> float:
        return _mean((raw[:, 0] - y) ** 2, weights)


def _sigmoid(x: Array) -> tuple[Array, Array]:
    """p = 1 / (1 + exp(-x)) and 1 - p, both to full precision and without overflow."""
    e = np.exp(-np.abs(x))
    larger, smaller = 1 / (1 + e), e / (1 + e)
    return np.where(x >= 0, larger, smaller), np.where(x >= 0, smaller, larger)


def _mean(values: Array, weights: Array | None) -> float:
    if weights is None:
        return math.fsum(values) / len(values)
    return math.fsum(values * weights) / math.fsum(weights)


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
    return np.ldexp(1.0, exponents - bits)
