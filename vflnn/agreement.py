"""What follows from the settings that all parties have agreed on; the same object at either side."""

from __future__ import annotations

import math
from typing import Any

from .messages import TrainingSettings
from .order import BatchOrder
from .recipes import from_json
from .samples import Samples

MOST_EPOCHS = 1_000_000  # a schedule is caught up with epoch by epoch, at the active party's word


class Agreement:
    """Batches, steps and options of one training. ValueError where no training can be by these settings."""

    def __init__(self, settings: TrainingSettings) -> None:
        least = min(settings.epochs, 1)  # who only evaluates has no rows to train on
        if settings.n_samples < least or settings.epochs < 0 or settings.first_epoch < 0:
            raise ValueError(
                f"training needs rows and epochs, got {settings.n_samples} rows, epochs from {settings.first_epoch} "
                f"for {settings.epochs}"
            )
        if settings.first_epoch + settings.epochs > MOST_EPOCHS:
            raise ValueError(f"a training has {MOST_EPOCHS} epochs at most, these would be more")
        if not (math.isfinite(settings.learning_rate) and settings.learning_rate >= 0):
            raise ValueError(f"the learning rate must be a finite number, got {settings.learning_rate}")
        if settings.seed < 0:
            raise ValueError(f"the seed must be at least 0, got {settings.seed}")
        if settings.batch_size is not None and settings.batch_size < 1:
            raise ValueError(
                f"batch_size must be at least 1, or None for all rows, got {settings.batch_size}"
            )
        self.settings = settings
        self.order = BatchOrder(settings.n_samples, settings.batch_size, settings.seed, settings.shuffle)
        self.protocol_options: dict[str, Any] = from_json(settings.protocol_options)
        self.compressor_options: dict[str, Any] = from_json(settings.compressor_options)

    @property
    def epochs(self) -> range:
        first = self.settings.first_epoch
        return range(first, first + self.settings.epochs)

    @property
    def steps(self) -> range:
        """All steps of this training, numbered over all epochs."""
        return range(self.epochs.start * self.order.n_batches, self.epochs.stop * self.order.n_batches)

    def check_samples(self, samples: Samples, evaluation: Samples | None) -> None:
        """ValueError unless these are as many as was agreed, and whole graphs are not cut into batches."""
        settings = self.settings
        n_evaluation = 0 if evaluation is None else len(evaluation)
        if (len(samples), n_evaluation) != (settings.n_samples, settings.n_evaluation):
            raise ValueError(
                f"{settings.n_samples} rows and {settings.n_evaluation} to evaluate were agreed on, here are "
                f"{len(samples)} and {n_evaluation}"
            )
        if samples.graph is not None and settings.batch_size is not None:
            raise ValueError(
                f"the nodes of a graph are trained on all at once: batch_size must be None, got {settings.batch_size}"
            )
