"""The course of a training as its user sees it: tables of steps and epochs, a record per epoch, a progress bar."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from .messages import TrainedNetwork


@dataclass(frozen=True)
class EpochRecord:
    """What callbacks are told of an epoch.

    Attributes
    ----------
    epoch : int
        From 0, over all calls of `partial_fit`.
    done, total : int
        Epochs of this call.
    loss, accuracy : float
        Mean over the epoch's batches, each before its update; no accuracy (None) in regression.
    evaluation_loss, evaluation_score : float or None
        On `eval_set` after the epoch: accuracy, or R2.
    seconds : float
        Of training in this epoch.
    """

    epoch: int
    done: int
    total: int
    loss: float
    seconds: float
    accuracy: float | None = None
    evaluation_loss: float | None = None
    evaluation_score: float | None = None

    def __str__(self) -> str:
        figures = {
            "loss": self.loss,
            "accuracy": self.accuracy,
            "evaluation loss": self.evaluation_loss,
            "evaluation score": self.evaluation_score,
        }
        return ", ".join(f"{name} {value:.4f}" for name, value in figures.items() if value is not None)


class CallbackFailedError(BaseException):
    """Carries what a callback raised past the network, which would blame a party for it."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class Watcher:
    """Hears the active party after every epoch: moves the bar on, and calls the user's callbacks."""

    def __init__(
        self, verbose: int, total: int, callbacks: Sequence[Callable[[EpochRecord], object]] = ()
    ) -> None:
        self._bar: Any = tqdm(total=total, unit="epoch", disable=verbose <= 0)
        self._callbacks = callbacks

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def __call__(self, text: str, done: int, total: int | None) -> None:
        record = EpochRecord(done=done, total=total or done, **json.loads(text))
        self._bar.set_postfix_str(str(record), refresh=False)
        self._bar.update(done - self._bar.n)
        try:
            for callback in self._callbacks:
                callback(record)
        except Exception as error:
            raise CallbackFailedError(error) from error


def steps_table(result: TrainedNetwork, first_epoch: int, n_epochs: int) -> pd.DataFrame:
    """One row per batch: epoch, step (over all epochs), loss, accuracy, seconds."""
    n_steps = len(result.step_loss)
    n_batches = n_steps // n_epochs
    table = {
        "epoch": first_epoch + np.arange(n_steps) // n_batches,
        "step": first_epoch * n_batches + np.arange(n_steps),
        "loss": result.step_loss,
        "accuracy": result.step_accuracy,
        "seconds": result.step_seconds,
    }
    return _without_empty(pd.DataFrame(table))


def epochs_table(result: TrainedNetwork, steps: pd.DataFrame) -> pd.DataFrame:
    """One row per epoch: means over its steps (of `steps_table`), seconds, and figures of the evaluation set."""
    by_epoch = steps.groupby("epoch")
    table = by_epoch[[name for name in ("loss", "accuracy") if name in steps]].mean().reset_index()
    table["evaluation_loss"] = result.epoch_loss
    table["evaluation_score"] = result.epoch_score
    table["seconds"] = by_epoch["seconds"].sum().to_numpy()
    return _without_empty(table)


def _without_empty(table: pd.DataFrame) -> pd.DataFrame:
    """Without figures that there are none of."""
    return table.dropna(axis="columns", how="all")
