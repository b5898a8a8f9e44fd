"""How good predictions are, by XGBoost's names and formulas.

Every metric takes y, float64 (n,): class numbers or values; predictions, float64: what `Loss.link` gives, so
probabilities (n, n_classes), or values (n,) or (n, n_outputs); and weights, float64 (n,), positive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .losses import Array
from .objectives.custom import function_name, takes_weights

EPSILON = 1e-16  # XGBoost's: probabilities below it count as it
HIGHER_IS_BETTER = ("auc",)

Measure = Callable[[Array, Array, Array], float]


def logloss(y: Array, predictions: Array, weights: Array) -> float:
    """Two classes: mean of -log(probability of the class that is)."""
    return mlogloss(y, predictions, weights)


def mlogloss(y: Array, predictions: Array, weights: Array) -> float:
    """Mean of -log(probability of the class that is)."""
    chosen = predictions[np.arange(len(y)), y.astype(np.int64)]
    return _mean(-np.log(np.maximum(chosen, EPSILON)), weights)


def error(y: Array, predictions: Array, weights: Array) -> float:
    """Two classes: share of rows whose probability of class 1 is on the wrong side of 0.5."""
    return _mean((predictions[:, 1] > 0.5) != (y == 1), weights)


def merror(y: Array, predictions: Array, weights: Array) -> float:
    """Share of rows whose most probable class is another; of equal ones the first counts."""
    return _mean(predictions.argmax(axis=1) != y, weights)


def auc(y: Array, predictions: Array, weights: Array) -> float:
    """Area under the ROC curve, ties counted half; several classes one against the rest, weighted by their rows.

    NaN where a class has no row or nothing but its rows.
    """
    if predictions.shape[1] == 2:
        return _binary_auc(y == 1, predictions[:, 1], weights)
    areas = [_binary_auc(y == k, p, weights) for k, p in enumerate(predictions.T)]
    shares = [math.fsum(weights[y == k]) for k in range(len(areas))]
    return math.fsum(a * s for a, s in zip(areas, shares, strict=True)) / math.fsum(shares)


def rmse(y: Array, predictions: Array, weights: Array) -> float:
    """Root of the mean squared error."""
    return math.sqrt(_mean((predictions - y) ** 2, weights))


def mae(y: Array, predictions: Array, weights: Array) -> float:
    """Mean absolute error."""
    return _mean(np.abs(predictions - y), weights)


def poisson_nloglik(y: Array, predictions: Array, weights: Array) -> float:
    """Mean of -log of the Poisson probability of the count y; predictions are means."""
    means = np.maximum(predictions, EPSILON)
    constants = np.array([math.lgamma(v + 1) for v in y])
    return _mean(constants + means - np.log(means) * y, weights)


def quantile_loss(y: Array, predictions: Array, weights: Array, *, alphas: tuple[float, ...]) -> float:
    """Mean pinball loss, over all quantiles."""
    levels = np.array(alphas)
    left = y[:, None] - predictions.reshape(len(y), len(levels))
    return _mean(np.where(left >= 0, levels * left, (levels - 1) * left).mean(axis=1), weights)


def mphe(y: Array, predictions: Array, weights: Array, *, slope: float) -> float:
    """Mean pseudo-Huber error."""
    z = (predictions - y) / slope
    return _mean(slope**2 * (np.sqrt(1 + z * z) - 1), weights)


_OF_TWO_CLASSES = {"auc": auc, "logloss": logloss, "error": error}
_OF_CLASSES = {"auc": auc, "mlogloss": mlogloss, "merror": merror}
_OF_VALUES = {"rmse": rmse, "mae": mae, "poisson-nloglik": poisson_nloglik}
METRICS = (
    "auc",
    "logloss",
    "mlogloss",
    "error",
    "merror",
    "rmse",
    "mae",
    "poisson-nloglik",
    "quantile",
    "mphe",
)


@dataclass(frozen=True)
class Metric:
    """A name and what it measures."""

    name: str
    measure: Measure

    @property
    def maximize(self) -> bool:
        return self.name in HIGHER_IS_BETTER


def metric_by_name(name: str, n_classes: int, alphas: tuple[float, ...], slope: float) -> Metric:
    """The metric of a name; ValueError where it does not suit. n_classes : 1 for values.

    alphas and slope are parameters of "quantile" and "mphe".
    """
    known: dict[str, Measure] = dict(
        _OF_VALUES if n_classes == 1 else _OF_TWO_CLASSES if n_classes == 2 else _OF_CLASSES
    )
    if n_classes == 2:
        known |= _OF_CLASSES
    if n_classes == 1:
        known |= {"quantile": partial(quantile_loss, alphas=alphas), "mphe": partial(mphe, slope=slope)}
        if len(alphas) > 1:  # the others compare y with one prediction a row
            known = {"quantile": known["quantile"]}
    if name not in known:
        kind = "values" if n_classes == 1 else f"{n_classes} classes"
        raise ValueError(f"eval_metric of {kind} must be one of {', '.join(map(repr, known))}, got {name!r}")
    return Metric(name, known[name])


def metric_of_function(function: Callable[..., Any]) -> Metric:
    """A function f(y, predictions), or f(y, predictions, sample_weight), as a metric; lower is better.

    Of two classes it is handed the probability of class 1, (n,), so that scikit-learn's metrics can be used.
    """
    name, weighs = function_name(function), takes_weights(function)

    def measure(y: Array, predictions: Array, weights: Array) -> float:
        given = predictions[:, 1] if predictions.ndim == 2 and predictions.shape[1] == 2 else predictions
        # Copies: what the function writes into what it is given must not reach other metrics and rounds.
        value = function(y.copy(), given.copy(), **({"sample_weight": weights.copy()} if weighs else {}))
        try:
            return float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"eval_metric {name} must return one number, got {type(value).__name__}"
            ) from None

    return Metric(name, measure)


def _binary_auc(positive: Any, scores: Array, weights: Array) -> float:
    order = np.argsort(scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)  # of groups of equal scores
    up = np.diff(np.cumsum(np.where(positive, weights, 0.0)[order])[ends], prepend=0.0)
    down = np.diff(np.cumsum(np.where(positive, 0.0, weights)[order])[ends], prepend=0.0)
    if not (up.sum() > 0 and down.sum() > 0):
        return math.nan
    below = np.cumsum(down) - down / 2
    return float((up * below).sum() / (up.sum() * down.sum()))


def _mean(values: Any, weights: Array) -> float:
    """Weighted mean over rows; of several targets, over those too."""
    of_rows = values.mean(axis=1) if np.ndim(values) == 2 else values
    return math.fsum(of_rows * weights) / math.fsum(weights)
