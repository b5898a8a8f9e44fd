"""Which bin is a row in? All sums of all trees as one system of linear equations.

Every sum is an equation: the gradients of those rows of the node that lie in the group add up to it. Unknown is, for
each row and bin, whether the row is in it; the gradients are new in each round, the rows are not. So with enough sums
the system has one solution, however many rows each sum is over: `min_rows_per_sum` does not stop this, fewer trees than
rows do. The party takes the least-squares solution, and for each row the likeliest bin.

Input: an `ActiveView`, and which slots of the rounds are one feature (their root sums tell features apart).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsmr

from .views import ActiveView, Judge, NodeSums

MOST_STEPS = 400


def guess_bins(view: ActiveView, slots: Mapping[int, int], n_bins: int) -> np.ndarray:
    """The likeliest bin of each row, int64 (n_rows,). slots : round -> slot of the feature."""
    n_rows = len(view.rounds[0].gradients)
    blocks, sums = [], []
    for round_ in view.rounds:
        for node in round_.nodes:
            if slots[round_.number] not in node.slots:
                continue
            gradients = round_.gradients[node.rows, :, node.output].astype(np.float64)
            block, values = _equations(node, slots[round_.number], gradients, n_rows, n_bins)
            blocks.append(block)
            sums.append(values)
    # Each row is in one bin.
    blocks.append(_one_bin(n_rows, n_bins))
    sums.append(np.ones(n_rows))
    solution = lsmr(sp.vstack(blocks).tocsr(), np.concatenate(sums), maxiter=MOST_STEPS)[0]
    return np.asarray(solution.reshape(n_rows, n_bins).argmax(axis=1))


def guess_bins_from_roots(view: ActiveView, slots: Mapping[int, int], n_bins: int) -> np.ndarray:
    """The same from the sums at the roots alone, solved exactly: there every bin is a system of its own.

    Of rounds with the groups of the first; where groups were merged, the bin that the likeliest group goes by.
    """
    first = view.rounds[0].nodes[0]
    groups = first.borders[np.searchsorted(first.slots, slots[view.rounds[0].number])]
    left, right = [], []
    for round_ in view.rounds:
        root = round_.nodes[0]
        place = int(np.searchsorted(root.slots, slots[round_.number]))
        if np.array_equal(root.borders[place], groups):
            gradients = round_.gradients[:, :, root.output].astype(np.float64)
            scale = np.abs(gradients).max(axis=0, initial=1.0)
            left.append((gradients / scale).T)
            right.append((root.sums[place] / scale).T)
    solution = np.linalg.lstsq(np.concatenate(left), np.concatenate(right), rcond=1e-10)[0]
    return np.asarray(solution[:, :n_bins].argmax(axis=1))


def _one_bin(n_rows: int, n_bins: int) -> sp.csr_matrix:
    entries = np.arange(n_rows * n_bins)
    return sp.csr_matrix((np.ones(len(entries)), (entries // n_bins, entries)))


def _equations(
    node: NodeSums, slot: int, gradients: np.ndarray, n_rows: int, n_bins: int
) -> tuple[sp.csr_matrix, np.ndarray]:
    """Two for each group of a node, scaled by the largest gradient: left and right sides."""
    place = int(np.searchsorted(node.slots, slot))
    ends = np.flatnonzero(node.borders[place])
    # The group of each bin; missing values without one of their own are in the highest.
    group = np.minimum(np.searchsorted(ends, np.arange(n_bins)), len(ends) - 1)
    scale = np.abs(gradients).max(axis=0, initial=1.0)
    columns = (node.rows.astype(np.int64)[:, None] * n_bins + np.arange(n_bins)).ravel()
    lines = np.tile(group, len(node.rows))
    parts = [
        sp.csr_matrix(
            (np.repeat(gradients[:, kind] / scale[kind], n_bins), (lines, columns)),
            shape=(len(ends), n_rows * n_bins),
        )
        for kind in range(2)
    ]
    sums = [node.sums[place][ends, kind] / scale[kind] for kind in range(2)]
    return sp.vstack(parts), np.concatenate(sums)


def score(view: ActiveView, judge: Judge, features: Sequence[int], roots_only: bool = False) -> float:
    """Share of the rows of these features whose bin is guessed right; a merged group counts as its highest bin."""
    n_bins = view.rounds[0].nodes[0].borders.shape[1]
    guess = guess_bins_from_roots if roots_only else guess_bins
    right = []
    for feature in features:
        slots = {number: int(np.flatnonzero(order == feature)[0]) for number, order in judge.orders.items()}
        right.append((guess(view, slots, n_bins) == judge.bins[:, feature]).mean())
    return float(np.mean(right))


def best_guess(judge: Judge, features: Sequence[int]) -> float:
    """The same for someone who saw nothing and names the fullest bin."""
    return float(
        np.mean([np.bincount(judge.bins[:, feature]).max() / len(judge.bins) for feature in features])
    )
