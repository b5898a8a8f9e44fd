"""Losses of labels: two classes by the logistic function, several by softmax."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .base import (
    Array,
    Scores,
    as_singles,
    column,
    logit,
    probability,
    row_weights,
    sigmoid,
    softmax,
    weighted_mean,
)

HESSIAN_FLOOR = 1e-16  # XGBoost's floor, so that saturated rows still count
PRIOR_FLOOR = 1e-6  # XGBoost adds it to class shares before the logarithm


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
        return sigmoid(np.array([-gradient / max(hessian, 1e-6)]))

    def raw_from_base(self, base_score: float | Array) -> Array:
        return logit(probability(base_score, np.float64))

    def start(self, y: Array, weights: Array | None = None, base_score: float | None = None) -> Scores:
        base = self.base_score(y, as_singles(weights)) if base_score is None else base_score
        return logit(probability(base, np.float32))

    def gradients(self, y: Array, raw: Scores, weights: Array | None = None) -> tuple[Array, Array]:
        p = sigmoid(raw[:, 0])
        w = self._weights(y, weights, raw.dtype)
        g = p - y.astype(raw.dtype)
        h = np.maximum(p * (1 - p), raw.dtype.type(HESSIAN_FLOOR))
        return column(g * w), column(h * w)

    def link(self, raw: Scores) -> Array:
        x = raw[:, 0]
        return np.column_stack([sigmoid(-x), sigmoid(x)]).astype(np.float64)

    def value(self, y: Array, raw: Scores, weights: Array | None = None) -> float:
        x = raw[:, 0].astype(np.float64)
        losses = np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))
        return weighted_mean(losses, self._weights(y, weights, np.float64))

    def _weights(self, y: Array, weights: Array | None, dtype: Any) -> Any:
        w = row_weights(y, weights, dtype)
        return (
            w if self.scale_pos_weight == 1 else np.where(y == 1, w * w.dtype.type(self.scale_pos_weight), w)
        )


@dataclass(frozen=True)
class Softmax:
    """`n_outputs` classes, y in {0, ..., n_outputs - 1}: per class g = p - [y is it], h = 2 p (1 - p)."""

    n_outputs: int

    def base_score(self, y: Array, weights: Array | None = None) -> Array:
        """Centred logarithms of the weighted class shares."""
        w = row_weights(y, weights, np.float64)
        labels = y.astype(np.int64)
        shares = np.array([math.fsum(w[labels == k]) for k in range(self.n_outputs)]) / math.fsum(w)
        logs = np.log(shares + PRIOR_FLOOR)
        return logs - math.fsum(logs) / self.n_outputs

    def raw_from_base(self, base_score: float | Array) -> Array:
        return np.broadcast_to(np.asarray(base_score, dtype=np.float64), (self.n_outputs,)).copy()

    def start(self, y: Array, weights: Array | None = None, base_score: float | None = None) -> Scores:
        base = self.base_score(y, as_singles(weights)) if base_score is None else base_score
        return self.raw_from_base(base).astype(np.float32)

    def gradients(self, y: Array, raw: Scores, weights: Array | None = None) -> tuple[Array, Array]:
        p = softmax(raw)
        w = row_weights(y, weights, raw.dtype)[:, None]
        g = p.copy()
        g[np.arange(len(y)), y.astype(np.int64)] -= 1
        h = np.maximum(2 * p * (1 - p) * w, raw.dtype.type(HESSIAN_FLOOR))
        return (g * w).astype(np.float64), h.astype(np.float64)

    def link(self, raw: Scores) -> Array:
        return softmax(raw).astype(np.float64)

    def value(self, y: Array, raw: Scores, weights: Array | None = None) -> float:
        shifted = raw.astype(np.float64) - raw.max(axis=1, keepdims=True)
        chosen = shifted[np.arange(len(y)), y.astype(np.int64)]
        return weighted_mean(np.log(np.exp(shifted).sum(axis=1)) - chosen, weights)
