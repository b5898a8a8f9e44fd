"""One loss for several targets at a time: each column of y by itself, as XGBoost treats a matrix of labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from .base import Array, Loss, Scores


@dataclass(frozen=True)
class PerTarget:
    """`loss`, which has one output, for each of `n_outputs` targets. y : float64 (n, n_outputs)."""

    loss: Loss
    n_outputs: int

    def base_score(self, y: Array, weights: Array | None = None) -> Array:
        return np.concatenate([self.loss.base_score(target, weights) for target in y.T])

    def raw_from_base(self, base_score: float | Array) -> Array:
        given = np.broadcast_to(np.asarray(base_score, dtype=np.float64), (self.n_outputs,))
        return np.concatenate([self.loss.raw_from_base(float(one)) for one in given])

    def start(self, y: Array, weights: Array | None = None, base_score: float | None = None) -> Scores:
        """In double precision where one of the targets needs it."""
        return cast(
            "Scores", np.concatenate([self.loss.start(target, weights, base_score) for target in y.T])
        )

    def gradients(self, y: Array, raw: Scores, weights: Array | None = None) -> tuple[Array, Array]:
        pairs = [
            self.loss.gradients(target, raw[:, [k]], weights) for k, target in enumerate(np.asarray(y).T)
        ]
        g, h = (np.concatenate(parts, axis=1) for parts in zip(*pairs, strict=True))
        return g, h

    def link(self, raw: Scores) -> Array:
        return np.stack([self.loss.link(raw[:, [k]]) for k in range(self.n_outputs)], axis=1)

    def value(self, y: Array, raw: Scores, weights: Array | None = None) -> float:
        """The mean over all targets."""
        losses = [self.loss.value(target, raw[:, [k]], weights) for k, target in enumerate(y.T)]
        return float(np.mean(losses))
