"""What leaks from forests: labels from row sets, bins of rows from counts of labels, under several settings."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from vfldata import VerticalDataset

from . import counts, equations, forest_views, label_inference

TREES: dict[str, Any] = {"n_estimators": 20, "max_depth": 10}
VARIANTS: dict[str, dict[str, Any]] = {
    "k = 1: every sum is sent": {"min_rows_per_sum": 1},
    "k = 10 (default)": {"min_rows_per_sum": 10},
    "k = 20": {"min_rows_per_sum": 20},
    "k = 10, max_features=None": {"min_rows_per_sum": 10, "max_features": None},
    "k = 10, 100 trees": {"min_rows_per_sum": 10, "n_estimators": 100},
}
FEATURES = (0, 7)  # of the passive party, whose bins are solved for by linear equations
MOST_ROWS = 2000  # for that


def lines(data: VerticalDataset) -> Iterator[str]:
    """The table of one data set of two classes."""
    train, test = (
        [frame[columns].to_numpy(dtype=np.float64) for columns in data.partition.values()]
        for frame in (data.X_train, data.X_test)
    )
    yield f"## {data.name}: forests of {TREES['n_estimators']} trees of depth {TREES['max_depth']}"
    yield ""
    yield (
        "Placed: (row, passive feature) pairs that counts of labels pin to one bin, or to bins of a tenth of all rows "
        f"at most. By equations: rows whose bin is guessed right, of features {' and '.join(map(str, FEATURES))}. "
        "Which slots are one feature is given."
    )
    yield ""
    yield (
        "| setting | model: accuracy | labels guessed after 1 tree: accuracy | AUC | after all: accuracy | AUC | "
        "placed | by equations |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for place, (variant, settings) in enumerate(VARIANTS.items()):
        started = time.process_time()
        training = forest_views.train(
            train, data.y_train.to_numpy(dtype=np.float64), test, **{**TREES, **settings}
        )
        small = len(train[0]) <= MOST_ROWS
        if place == 0 and small:
            blind = equations.best_guess(training.judge, FEATURES)
            yield f"| the fullest bin, named for all rows | | | | | | | {100 * blind:.1f} % |"
        yield f"| {variant} | " + " | ".join(_cells(data, training, small)) + " |"
        spent = time.process_time() - started
        print(f"{data.name}: forests, {variant}: {spent:.0f} CPU seconds", file=sys.stderr)


def _cells(data: VerticalDataset, training: Any, small: bool) -> Sequence[str]:
    y, y_test = data.y_train.to_numpy(), data.y_test.to_numpy()
    cells = [f"{((training.test_scores[:, 0] > 0) == y_test).mean():.3f}"]
    for n_trees in (1, None):
        guessed = label_inference.judge(label_inference.node_table(training.passive, n_trees), y)
        cells += [f"{guessed.accuracy:.3f}", f"{guessed.auc:.3f}"]
    cells.append(f"{100 * counts.score(training.active, training.judge)['solved']:.1f} %")
    solved = equations.score(training.active, training.judge, FEATURES) if small else None
    return [*cells, "" if solved is None else f"{100 * solved:.1f} %"]
