"""Losses of numbers that the mean answers: squared error, counts, and the rounded-off absolute error."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .base import (
    Array,
    Scores,
    as_singles,
    column,
    exp,
    row_weights,
    single_precision_suits,
    value_start,
    weighted_mean,
)

# XGBoost's default for count:poisson, in the hessian and as the bound of a leaf: exp grows too fast without it.
POISSON_DELTA_STEP = 0.7
NEWTON_FLOOR = 1e-6  # XGBoost divides by this at least when it fits the start value by one step


def _mean(y: Array, weights: Array | None) -> Array:
    """The weighted mean of y, summed around the first value so that no digits are lost to its size."""
    w = row_weights(y, weights, np.float64)
    centre = float(y[0])
    return np.array([centre + math.fsum(w * (y - centre)) / math.fsum(w)])


@dataclass(frozen=True)
class SquaredError:
    """g = raw - y, h = 1."""

    n_outputs: int = 1

    def base_score(self, y: Array, weights: Array | None = None) -> Array:
        """The weighted mean of y."""
        return _mean(y, weights)

    def raw_from_base(self, base_score: float | Array) -> Array:
        return np.broadcast_to(np.asarray(base_score, dtype=np.float64), (1,)).copy()

    def start(self, y: Array, weights: Array | None = None, base_score: float | None = None) -> Scores:
        if base_score is None:
            single = single_precision_suits(y)
            base_score = _mean(as_singles(y), as_singles(weights)) if single else _mean(y, weights)  # type: ignore[assignment]
        assert base_score is not None
        return value_start(y, self.raw_from_base(base_score))

    def gradients(self, y: Array, raw: Scores, weights: Array | None = None) -> tuple[Array, Array]:
        w = row_weights(y, weights, raw.dtype)
        return column((raw[:, 0] - y.astype(raw.dtype)) * w), column(w)

    def link(self, raw: Scores) -> Array:
        return raw[:, 0].astype(np.float64)

    def value(self, y: Array, raw: Scores, weights: Array | None = None) -> float:
        return weighted_mean((raw[:, 0] - y) ** 2, weights)


@dataclass(frozen=True)
class Poisson:
    """Counts, y >= 0; the raw score is the logarithm of the mean: g = exp(raw) - y, h = exp(raw + max_delta_step)."""

    max_delta_step: float = POISSON_DELTA_STEP
    n_outputs: int = 1

    def base_score(self, y: Array, weights: Array | None = None) -> Array:
        """The weighted mean of y."""
        return _mean(y, weights)

    def raw_from_base(self, base_score: float | Array) -> Array:
        base = np.broadcast_to(np.asarray(base_score, dtype=np.float64), (1,))
        if not (base > 0).all():
            raise ValueError(
                f"count:poisson starts from the logarithm of base_score (by default the mean of y): it must be "
                f"positive, got {base[0]:g}"
            )
        return np.log(base)

    def start(self, y: Array, weights: Array | None = None, base_score: float | None = None) -> Scores:
        base = _mean(as_singles(y), as_singles(weights)) if base_score is None else base_score
        return self.raw_from_base(as_singles(base)).astype(np.float32)

    def gradients(self, y: Array, raw: Scores, weights: Array | None = None) -> tuple[Array, Array]:
        w = row_weights(y, weights, raw.dtype)
        x = raw[:, 0]
        with np.errstate(over="ignore"):  # what overflows is refused where raw scores are checked
            g = (exp(x) - y.astype(raw.dtype)) * w
            return column(g), column(exp(x + raw.dtype.type(self.max_delta_step)) * w)

    def link(self, raw: Scores) -> Array:
        with np.errstate(over="ignore"):
            return exp(raw[:, 0]).astype(np.float64)

    def value(self, y: Array, raw: Scores, weights: Array | None = None) -> float:
        """Up to the terms that only y decides."""
        x = raw[:, 0].astype(np.float64)
        return weighted_mean(np.exp(x) - y * x, weights)


@dataclass(frozen=True)
class PseudoHuber:
    """Squared near 0, absolute beyond `slope`: with s = sqrt(1 + (z / slope)^2) and z = raw - y,
    g = z / s, h = 1 / s^3 (written slope^2 / ((slope^2 + z^2) s), as XGBoost rounds it)."""

    slope: float = 1.0
    n_outputs: int = 1

    def base_score(self, y: Array, weights: Array | None = None) -> Array:
        """One Newton step from 0, as XGBoost does it: far targets make it go beyond all of them."""
        g, h = self.gradients(y, np.zeros((len(y), 1), dtype=np.float32), weights)
        return np.array([-math.fsum(g[:, 0]) / max(math.fsum(h[:, 0]), NEWTON_FLOOR)])

    def raw_from_base(self, base_score: float | Array) -> Array:
        return np.broadcast_to(np.asarray(base_score, dtype=np.float64), (1,)).copy()

    def start(self, y: Array, weights: Array | None = None, base_score: float | None = None) -> Scores:
        base = self.base_score(y, weights) if base_score is None else base_score
        return value_start(y, self.raw_from_base(base))

    def gradients(self, y: Array, raw: Scores, weights: Array | None = None) -> tuple[Array, Array]:
        dtype = raw.dtype.type
        w = row_weights(y, weights, raw.dtype)
        z = raw[:, 0] - y.astype(raw.dtype)
        root = np.sqrt(dtype(1) + (z / dtype(self.slope)) ** 2)
        square = dtype(self.slope) ** 2
        h = square / ((square + z * z) * root)
        return column(z / root * w), column(h * w)

    def link(self, raw: Scores) -> Array:
        return raw[:, 0].astype(np.float64)

    def value(self, y: Array, raw: Scores, weights: Array | None = None) -> float:
        z = raw[:, 0] - y
        return weighted_mean(self.slope**2 * (np.sqrt(1 + (z / self.slope) ** 2) - 1), weights)
