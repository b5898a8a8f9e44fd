"""Objectives by XGBoost's names: which there are, which suits whom, and their losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vflparty.callables import find_function

from ..label_privacy import UnbiasedLoss
from ..losses import (
    AbsoluteError,
    Array,
    CustomLoss,
    Logistic,
    Loss,
    PerTarget,
    Poisson,
    PseudoHuber,
    QuantileError,
    Scores,
    Softmax,
    SquaredError,
)

if TYPE_CHECKING:
    from .settings import BoostSettings

OF_CLASSES = ("binary:logistic", "multi:softprob")
OF_VALUES = (
    "reg:squarederror",
    "reg:absoluteerror",
    "reg:quantileerror",
    "reg:pseudohubererror",
    "count:poisson",
)
OBJECTIVES = OF_CLASSES + OF_VALUES
OF_SEVERAL_TARGETS = ("reg:squarederror", "reg:pseudohubererror")  # each column of y by itself
REFITTED = (
    "reg:absoluteerror",
    "reg:quantileerror",
)  # leaves are quantiles of what is left, not Newton steps


def check_objective(objective: object, n_classes: int) -> None:
    """ValueError unless it suits. n_classes : 1 for values."""
    suits = OF_VALUES if n_classes == 1 else OF_CLASSES
    if objective not in suits:
        kind = "values" if n_classes == 1 else "classes"
        raise ValueError(
            f"objective for {kind} must be one of {', '.join(map(repr, suits))} or a function, got {objective!r}"
        )
    if objective == "binary:logistic" and n_classes > 2:
        raise ValueError(f"objective 'binary:logistic' is for 2 classes, y holds {n_classes}")


def make_loss(settings: BoostSettings) -> Loss:
    """The loss of an objective, or of the user's function."""
    loss = _loss(settings.objective, settings)
    if settings.n_targets > 1:
        loss = PerTarget(loss, settings.n_targets)
    if settings.custom_objective:
        loss = CustomLoss(find_function(settings.custom_objective), loss)
    if settings.label_privacy_epsilon is not None:
        return UnbiasedLoss(loss, settings.n_classes, settings.label_privacy_epsilon)
    return loss


def _loss(objective: str, settings: BoostSettings) -> Loss:
    if objective == "binary:logistic":
        return Logistic(settings.scale_pos_weight)
    if objective == "multi:softprob":
        return Softmax(settings.n_classes)
    if objective == "reg:quantileerror":
        return QuantileError(settings.quantile_alpha)
    if objective == "reg:pseudohubererror":
        return PseudoHuber(settings.huber_slope)
    if objective == "count:poisson":
        return Poisson(settings.max_delta_step)
    return AbsoluteError() if objective == "reg:absoluteerror" else SquaredError()


def predictions(objective: str, raw: Scores) -> Array:
    """What raw scores (n, n_outputs) of a model mean: its loss needs no parameter for that."""
    if objective == "binary:logistic":
        return Logistic().link(raw)
    if objective == "multi:softprob":
        return Softmax(raw.shape[1]).link(raw)
    if objective == "count:poisson":
        return Poisson().link(raw)
    return raw[:, 0].astype(float) if raw.shape[1] == 1 else raw.astype(float)
