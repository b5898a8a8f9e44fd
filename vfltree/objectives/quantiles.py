"""Absolute and quantile error: slopes that say up or down, and leaf values that are quantiles of what is left over.

Their hessians are constant, so a leaf by the usual formula would be a mean of signs. As in XGBoost each leaf becomes
the quantile of y - raw over its sampled rows, once the tree stands; the active party knows the rows of every leaf.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import (
    Array,
    Scores,
    as_singles,
    column,
    row_weights,
    single_precision_suits,
    value_start,
    weighted_mean,
)


def quantile(values: Any, alpha: float, weights: Any = None) -> float:
    """The alpha-quantile of values, (n,) with n at least 1, float32 or float64, as XGBoost takes it.

    Without weights between two values, at the place alpha (n + 1) counted from 1 (Hyndman and Fan, definition 6); with
    weights the first value at which the running sum of weights reaches alpha times the whole (definition 4, without
    interpolation). Sums are rounded to the precision of the values, and alpha to single precision.
    """
    alpha = float(np.float32(alpha))
    order = np.argsort(values, kind="stable")
    n = len(order)
    if weights is not None:
        sums = np.cumsum(weights[order], dtype=values.dtype)
        place = int(np.searchsorted(sums, values.dtype.type(float(sums[-1]) * alpha)))
        return float(values[order[min(place, n - 1)]])
    if alpha <= 1 / (n + 1):
        return float(values[order[0]])
    if alpha >= n / (n + 1):
        return float(values[order[-1]])
    place = int(alpha * (n + 1)) - 1
    share = alpha * (n + 1) - 1 - place
    low, high = values[order[place]], values[order[place + 1]]
    return float(low) + share * float(high - low)


@dataclass(frozen=True)
class QuantileError:
    """Pinball loss, one output per alpha: g = 1 - alpha where raw >= y, else -alpha; h = 1."""

    alphas: tuple[float, ...] = (0.5,)

    @property
    def n_outputs(self) -> int:
        return len(self.alphas)

    def base_score(self, y: Array, weights: Array | None = None) -> Array:
        """The quantiles of y."""
        return np.array([quantile(y, alpha, weights) for alpha in self.alphas])

    def raw_from_base(self, base_score: float | Array) -> Array:
        return np.broadcast_to(np.asarray(base_score, dtype=np.float64), (self.n_outputs,)).copy()

    def start(self, y: Array, weights: Array | None = None, base_score: float | None = None) -> Scores:
        if base_score is not None:
            return value_start(y, self.raw_from_base(base_score))
        dtype: Any = np.float32 if single_precision_suits(y) else np.float64
        w = None if weights is None else weights.astype(dtype)
        return np.array([quantile(y.astype(dtype), alpha, w) for alpha in self.alphas], dtype=dtype)

    def gradients(self, y: Array, raw: Scores, weights: Array | None = None) -> tuple[Array, Array]:
        alphas: Any = np.array(self.alphas, dtype=raw.dtype)
        w = row_weights(y, weights, raw.dtype)[:, None]
        targets: Any = y.astype(raw.dtype)[:, None]
        above = raw - targets >= 0
        g = np.where(above, 1 - alphas, -alphas) * w
        return g.astype(np.float64), np.broadcast_to(w, g.shape).astype(np.float64)

    def leaf_value(
        self, y: Array, raw: Scores, weights: Array | None, rows: NDArray[np.int32], output: int
    ) -> float:
        """The quantile of y - raw."""
        return _leaf_quantile(y, raw, weights, rows, output, self.alphas[output])

    def link(self, raw: Scores) -> Array:
        values = raw.astype(np.float64)
        return values[:, 0] if self.n_outputs == 1 else values

    def value(self, y: Array, raw: Scores, weights: Array | None = None) -> float:
        left = y[:, None] - raw
        losses = np.maximum(np.array(self.alphas) * left, (np.array(self.alphas) - 1) * left)
        return weighted_mean(losses.mean(axis=1), weights)


@dataclass(frozen=True)
class AbsoluteError:
    """g = sign(raw - y), h = 1; leaves and start value are medians."""

    n_outputs: int = 1

    def base_score(self, y: Array, weights: Array | None = None) -> Array:
        """The median of y."""
        return QuantileError().base_score(y, weights)

    def raw_from_base(self, base_score: float | Array) -> Array:
        return QuantileError().raw_from_base(base_score)

    def start(self, y: Array, weights: Array | None = None, base_score: float | None = None) -> Scores:
        median: Any = QuantileError().start(y, weights, base_score)
        if base_score is not None:
            return median
        # XGBoost averages over its workers even where there is one: times the weight, rounded, and divided by it.
        total = len(y) if weights is None else float(as_singles(weights).sum())
        return ((median * np.float64(total)).astype(median.dtype) / np.float64(total)).astype(median.dtype)

    def gradients(self, y: Array, raw: Scores, weights: Array | None = None) -> tuple[Array, Array]:
        w = row_weights(y, weights, raw.dtype)
        return column(np.sign(raw[:, 0] - y.astype(raw.dtype)) * w), column(w)

    def leaf_value(
        self, y: Array, raw: Scores, weights: Array | None, rows: NDArray[np.int32], output: int
    ) -> float:
        """The median of y - raw."""
        return _leaf_quantile(y, raw, weights, rows, output, 0.5)

    def link(self, raw: Scores) -> Array:
        return raw[:, 0].astype(np.float64)

    def value(self, y: Array, raw: Scores, weights: Array | None = None) -> float:
        return weighted_mean(np.abs(raw[:, 0] - y), weights)


def _leaf_quantile(
    y: Array, raw: Scores, weights: Array | None, rows: NDArray[np.int32], output: int, alpha: float
) -> float:
    left = y[rows].astype(raw.dtype) - raw[rows, output]
    return quantile(left, alpha, None if weights is None else weights[rows].astype(raw.dtype))
