"""A loss of the user's own: a function of targets and raw scores that returns gradients and hessians."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .base import Array, Loss, Scores, row_weights

Objective = Callable[..., tuple[Any, Any]]
CUSTOM_BASE_SCORE = 0.5  # XGBoost fits no start value to a loss it does not know


@dataclass(frozen=True)
class CustomLoss:
    """``f(y, raw) -> (g, h)``; everything but the gradients is that of the loss it stands in for.

    Attributes
    ----------
    function : callable
        y : float64 (n,), class numbers or values; raw : float64 (n,), or (n, n_outputs) where there are several. Both
        results have the shape of raw; h is 0 or more. A function with a parameter `sample_weight` is given the weights
        and applies them itself; the results of any other are multiplied by them here.
    like : Loss
        Gives the outputs and the link, and starts at `base_score` 0.5 unless the user says another.
    """

    function: Objective
    like: Loss

    @property
    def n_outputs(self) -> int:
        return self.like.n_outputs

    def base_score(self, y: Array, weights: Array | None = None) -> Array:
        """0.5, whatever y is."""
        return np.full(self.n_outputs, CUSTOM_BASE_SCORE)

    def raw_from_base(self, base_score: float | Array) -> Array:
        return self.like.raw_from_base(base_score)

    def start(self, y: Array, weights: Array | None = None, base_score: float | None = None) -> Scores:
        return self.like.start(y, weights, CUSTOM_BASE_SCORE if base_score is None else base_score)

    def gradients(self, y: Array, raw: Scores, weights: Array | None = None) -> tuple[Array, Array]:
        name = function_name(self.function)
        scores = (raw[:, 0] if self.n_outputs == 1 else raw).astype(np.float64)
        weighs = takes_weights(self.function)
        given = None if weights is None else weights.copy()  # the function may write into what it is given
        answer = self.function(y.copy(), scores, **({"sample_weight": given} if weighs else {}))
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise ValueError(
                f"objective {name} must return gradients and hessians, two arrays, got {type(answer).__name__}"
            )
        g, h = (
            _checked(name, word, x, raw.shape)
            for word, x in zip(("gradients", "hessians"), answer, strict=True)
        )
        if (h < 0).any():
            raise ValueError(
                f"objective {name}: hessians must be 0 or more, the smallest of {h.size} is {h.min():g}"
            )
        w = row_weights(y, None if weighs else weights, np.float64)[:, None]
        single = raw.dtype
        return (g.astype(single) * w).astype(np.float64), (h.astype(single) * w).astype(np.float64)

    def link(self, raw: Scores) -> Array:
        return self.like.link(raw)

    def value(self, y: Array, raw: Scores, weights: Array | None = None) -> float:
        """Of the loss it stands in for: the function itself says only slopes."""
        return self.like.value(y, raw, weights)


def takes_weights(function: Callable[..., Any]) -> bool:
    """Whether a function has a parameter called `sample_weight`."""
    try:
        return "sample_weight" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some built-in functions have no signature
        return False


def function_name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", None) or type(function).__name__)


def _checked(name: str, word: str, values: Any, shape: tuple[int, ...]) -> Array:
    """As float64 of this shape; an output alone may come without its axis."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"objective {name}: {word} must be numbers: {error}") from error
    if array.shape != shape and not (shape[1] == 1 and array.shape == shape[:1]):
        wanted = shape[:1] if shape[1] == 1 else shape
        raise ValueError(f"objective {name}: {word} must have the shape {wanted}, got {array.shape}")
    if not np.isfinite(array).all():
        n_bad = int((~np.isfinite(array)).sum())
        raise ValueError(f"objective {name}: {n_bad} of {array.size} {word} are NaN or infinite")
    return array.reshape(shape)
