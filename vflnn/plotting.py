"""Learning curves. Needs matplotlib: ``pip install 'vfltree[plot]'``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pandas as pd


def plot_learning_curves(history: pd.DataFrame, score: str, axes: Any = None) -> Any:
    """Loss on the left and score on the right, of training and, where there is one, of the evaluation set.

    history : a row per epoch, as `history_`
    score : what evaluation_score is called
    axes : two axes of matplotlib; None makes a figure with them

    Returns
    -------
    the two axes
    """
    if axes is None:
        _, axes = import_module("matplotlib.pyplot").subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for ax, name, (training, evaluated) in zip(
        axes, ("loss", score), (("loss", "evaluation_loss"), ("accuracy", "evaluation_score")), strict=True
    ):
        for column, label in ((training, "batches, before each update"), (evaluated, "evaluation set")):
            if column in history:
                ax.plot(history["epoch"], history[column], label=label)
        ax.set_xlabel("epoch")
        ax.set_ylabel(name)
        if ax.lines:
            ax.legend()
    return axes
