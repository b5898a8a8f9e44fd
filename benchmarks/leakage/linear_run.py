"""What logistic regression gives away, in tables: labels by gradients, and rows that are alike by scores."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from vfldata import VerticalDataset

from . import gradient_labels, gram_matrix, linear_views

TRIES = 20
SMALL_BATCHES = {"optimizer": "sgd", "learning_rate": 0.01, "max_iter": 1, "allow_small_batches": True}
GRAMS = {
    "descent, rate 0.2, 60 steps": {"optimizer": "sgd", "learning_rate": 0.2, "max_iter": 60},
    "descent, rate 0.2, 200 steps": {"optimizer": "sgd", "learning_rate": 0.2, "max_iter": 200},
    "newton (default), 30 steps": {"max_iter": 30},
    "newton (default), 60 steps": {"max_iter": 60},
}
MOST_ROWS = 2000  # of a matrix of rows by rows


def lines(data: VerticalDataset) -> Iterator[str]:
    """Both tables of one data set of two classes, columns standardised by their parties."""
    blocks = [
        StandardScaler().fit_transform(data.X_train[columns].to_numpy(dtype=np.float64))
        for columns in data.partition.values()
    ]
    y = data.y_train.to_numpy()
    yield f"## {data.name}: logistic regression, {len(y)} rows, {blocks[1].shape[1]} passive columns"
    yield ""
    yield from _labels(blocks, y)
    if len(y) <= MOST_ROWS:
        yield ""
        yield from _grams(blocks, y)
    print(f"{data.name}: logistic regression, {time.process_time():.0f} CPU seconds so far", file=sys.stderr)


def _labels(blocks: Sequence[np.ndarray], y: np.ndarray) -> Iterator[str]:
    yield "What a passive party solves for, from its gradients: single labels, or a guess at all of them."
    yield ""
    yield "| setting | labels that follow | of these right | guess: AUC |"
    yield "| --- | --- | --- | --- |"
    yield f"| first batch of 32, two columns, {TRIES} tries | {_first_batches(blocks, y)} | |"
    small = linear_views.train(blocks, y, batch_size=10, **SMALL_BATCHES)
    yield f"| batches of 10, all columns, one epoch | {_recovered(small.passive, y)} | |"
    full = linear_views.train(blocks, y, max_iter=3)
    guessed, best = gradient_labels.guess(full.passive), _own_regression(blocks[1], y)
    yield f"| full batches (default) | {_recovered(full.passive, y)} | {roc_auc_score(y, guessed):.3f} |"
    yield f"| *regression of the true labels on own columns* | | | {roc_auc_score(y, best):.3f} |"


def _first_batches(blocks: Sequence[np.ndarray], y: np.ndarray) -> str:
    """Two cells, over all tries."""
    asked, claimed, right = 0, 0, 0
    for seed in range(TRIES):
        pair = np.random.default_rng(seed).choice(blocks[1].shape[1], 2, replace=False)
        training = linear_views.train(
            [blocks[0], blocks[1][:, pair]], y, seed=seed, batch_size=32, **SMALL_BATCHES
        )
        found, rows = gradient_labels.recover(training.passive), training.passive.steps[0].rows
        follows = found[rows] != gradient_labels.UNKNOWN
        asked, claimed = asked + len(rows), claimed + int(follows.sum())
        right += int((found[rows] == y[rows])[follows].sum())
    return f"{100 * claimed / asked:.1f} % | {_share(right, claimed)}"


def _recovered(view: linear_views.PassiveLinearView, y: np.ndarray) -> str:
    found = gradient_labels.recover(view)
    follows = found != gradient_labels.UNKNOWN
    right = int((found == y)[follows].sum())
    return f"{100 * follows.mean():.1f} % | {_share(right, int(follows.sum()))}"


def _share(right: int, claimed: int) -> str:
    return f"{100 * right / claimed:.1f} %" if claimed else ""


def _own_regression(own: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What the guess can be at best: least squares of the labels themselves."""
    design = np.column_stack([own, np.ones(len(y))])
    return np.asarray(design @ np.linalg.lstsq(design, y.astype(float), rcond=None)[0])


def _grams(blocks: Sequence[np.ndarray], y: np.ndarray) -> Iterator[str]:
    yield (
        "What the active party computes of the passive party's rows, from scores: the Gram matrix X X^T and the "
        "projection X (X^T X)^+ X^T, with the relative error and the share of rows whose nearest other row is found:"
    )
    yield ""
    yield "| setting | X X^T: error | nearest row | projection: error | nearest row |"
    yield "| --- | --- | --- | --- | --- |"
    X = blocks[1]
    basis = np.linalg.qr(X)[0]
    truths = X @ X.T, basis @ basis.T
    for name, settings in GRAMS.items():
        view = linear_views.train(blocks, y, residual="exact", **settings).active
        # With newton a step is no product of X X^T.
        found = (gram_matrix.gram(view) if "optimizer" in settings else None), gram_matrix.projection(view)
        cells = [cell for pair in zip(found, truths, strict=True) for cell in _judged(*pair)]
        yield f'| residual="exact", {name} | ' + " | ".join(cells) + " |"
    view = linear_views.train(blocks, y, max_iter=60).active
    shown = "nothing shown" if gram_matrix.projection(view) is None else "**scores shown**"
    yield f'| residual="taylor" (default) | {shown} | | {shown} | |'


def _judged(found: np.ndarray | None, truth: np.ndarray) -> list[str]:
    if found is None:
        return ["", ""]
    right = gram_matrix.neighbours_right(found, truth)
    return [f"{100 * gram_matrix.error(found, truth):.2g} %", f"{100 * right:.1f} %"]
