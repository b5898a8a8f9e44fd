"""The course of a training, as the active party sees it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .messages import TrainedNetwork


class Course:
    """Figures of every step and epoch."""

    def __init__(self) -> None:
        self._loss: list[float] = []
        self._accuracy: list[float] = []
        self._seconds: list[float] = []
        self._epoch_loss: list[float] = []
        self._epoch_score: list[float] = []
        self._epoch_start = 0  # first step of the epoch that ended last

    def note_step(self, loss: float, accuracy: float, seconds: float) -> None:
        self._loss.append(loss)
        self._accuracy.append(accuracy)
        self._seconds.append(seconds)

    def note_epoch(self, loss: float, score: float) -> None:
        """Figures of the rows to evaluate."""
        self._epoch_loss.append(loss)
        self._epoch_score.append(score)
        self._ended, self._epoch_start = slice(self._epoch_start, len(self._loss)), len(self._loss)

    def last_epoch(self, epoch: int) -> dict[str, Any]:
        """The epoch that has just ended, for a progress bar and for callbacks."""
        figures = {
            "epoch": epoch,
            "loss": _mean(self._loss[self._ended]),
            "accuracy": _mean(self._accuracy[self._ended]),
            "evaluation_loss": self._epoch_loss[-1],
            "evaluation_score": self._epoch_score[-1],
            "seconds": float(np.sum(self._seconds[self._ended])),
        }
        return {
            name: value for name, value in figures.items() if value == value
        }  # nan: there is no such figure

    def result(self, state: bytes, scores: NDArray[Any]) -> TrainedNetwork:
        return TrainedNetwork(
            state,
            np.array(self._accuracy, dtype=np.float64),
            np.array(self._loss, dtype=np.float64),
            np.array(self._seconds, dtype=np.float64),
            np.array(self._epoch_loss, dtype=np.float64),
            np.array(self._epoch_score, dtype=np.float64),
            scores,
        )


def _mean(figures: list[float]) -> float:
    """Of the batches that have one; nan without any."""
    known = [figure for figure in figures if figure == figure]
    return float(np.mean(known)) if known else float("nan")
