"""Which label does a row have? What a passive party of a logistic regression solves for, from its own gradients.

It is given X^T d exactly, in integers. Three ways from there, whichever applies to a batch:

* no more rows than columns: a linear system with one solution, at any step; d is negative where the label is 1;
* the first step, up to MOST_ROWS rows: training starts at 0, where d is 2 for label 0 and -2 for label 1 (Taylor's
  residuals, less the factor). That gives the sums of columns over the rows of label 1, exactly: a subset sum, which two
  columns of 23 bits decide for 32 rows, by meeting in the middle;
* otherwise no single label is certain, and a guess is left: the projection of d on the party's own columns, which is
  the regression that it could have made itself had it known all labels (but for the intercept).

Input: a `PassiveLinearView`, nothing else.
"""

from __future__ import annotations

import numpy as np

from vfltree.linear.columns import SCORE_BITS, FixedColumns

from .linear_views import PassiveLinearView, Step

MOST_ROWS = 36  # of a batch whose halves are enumerated
UNKNOWN = -1
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def recover(view: PassiveLinearView) -> np.ndarray:
    """Labels that follow, int8 (n_rows,); UNKNOWN where nothing does."""
    labels = np.full(view.columns.n_rows, UNKNOWN, dtype=np.int8)
    for number, step in enumerate(view.steps):
        if len(step.rows) <= view.columns.n_columns:
            labels[step.rows] = _solved(view.columns, step)
        elif number == 0 and len(step.rows) <= MOST_ROWS:
            found = _subset(view.columns.rows(step.rows).astype(np.int64), step.sums)
            if found is not None:
                labels[step.rows] = found
    return labels


def guess(view: PassiveLinearView) -> np.ndarray:
    """How much each row looks like label 1, from a first step of all rows, float64 (n_rows,)."""
    X, sums = _floats(view.columns, view.steps[0])
    return np.asarray(-X @ np.linalg.lstsq(X.T @ X, sums, rcond=None)[0])


def _floats(columns: FixedColumns, step: Step) -> tuple[np.ndarray, np.ndarray]:
    """The batch's columns and sums as numbers, columns of like sizes."""
    X = columns.rows(step.rows).astype(float)
    scale = np.abs(X).max(axis=0)
    scale[scale == 0] = 1.0
    return X / scale, np.ldexp(step.sums.astype(float), -SCORE_BITS) / scale


def _solved(columns: FixedColumns, step: Step) -> np.ndarray:
    X, sums = _floats(columns, step)
    return (np.linalg.lstsq(X.T, sums, rcond=None)[0] < 0).astype(np.int8)


def _subset(x: np.ndarray, sums: np.ndarray) -> np.ndarray | None:
    """Labels of the rows of x, int64 (n_rows, n_columns), that make these sums; None where there are none."""
    # s = 2 X - 4 Y in fixed point, with X the sum of the column and Y that over the rows of label 1.
    totals = [int(total) for total in x.sum(axis=0)]
    wanted = [(total << SCORE_BITS + 1) - int(s) for total, s in zip(totals, sums, strict=True)]
    return _meet(x, [value >> SCORE_BITS + 2 for value in wanted])


def _meet(x: np.ndarray, wanted: list[int]) -> np.ndarray | None:
    """0 and 1 with x^T y = wanted, by the sums of all subsets of either half of the rows."""
    keys = np.zeros(len(x), dtype=np.uint64)
    goal = np.uint64(0)
    with np.errstate(over="ignore"):
        for column, value in zip(x.T, wanted, strict=True):
            keys = keys * _FACTOR + column.astype(np.uint64)
            goal = goal * _FACTOR + np.uint64(value % (1 << 64))
        half = len(x) // 2
        left, right = _all_sums(keys[:half]), _all_sums(keys[half:])
        order = np.argsort(left)
        places = np.searchsorted(left[order], goal - right)
        places[places == len(left)] = 0
        hits = np.flatnonzero(left[order][places] == goal - right)
    for hit in hits:
        bits = int(order[places[hit]]) | int(hit) << half
        y = np.array([bits >> i & 1 for i in range(len(x))])
        if [int(v) for v in y @ x] == wanted:
            return y.astype(np.int8)
    return None


def _all_sums(keys: np.ndarray) -> np.ndarray:
    """Sums modulo 2**64 of all subsets; bit i of a place says whether key i is in it."""
    sums = np.zeros(1, dtype=np.uint64)
    for key in keys:
        sums = np.concatenate([sums, sums + key])
    return sums
