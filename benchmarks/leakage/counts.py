"""Which bin is a row in? What the active party of a forest rules out, from counts of labels.

A forest's sums are small numbers, so rows are not recognised by them, as they are in boosting. But the active party
knows the label of every row and how often each tree drew it: a row drawn t times is in no bin where its node counts
fewer than t draws of its label. What many nodes and trees leave over is where the row is.

Input: an `ActiveView` of `forest_views`, and which slots of the trees are one feature (their root sums tell that). It
never claims what is false; weighing the numbers against each other (`equations`) finds more.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .placements import narrow_ranges
from .views import ActiveView, Judge, NodeSums


def possible_bins(view: ActiveView, orders: Mapping[int, np.ndarray], n_bins: int) -> np.ndarray:
    """bool (n_rows, n_features, n_bins): what nothing rules out. orders : tree -> slot -> feature."""
    n_rows, n_features = len(view.rounds[0].gradients), len(next(iter(orders.values())))
    possible = np.ones((n_rows, n_features, n_bins), dtype=bool)
    for tree in view.rounds:
        for node in tree.nodes:
            ones, draws = tree.gradients[node.rows, :, 0].T
            for place, slot in enumerate(node.slots.tolist()):
                feature = orders[tree.number][slot]
                possible[node.rows, feature] &= _fits(node, place, ones, draws, n_bins)
    return possible


def _fits(node: NodeSums, place: int, ones: np.ndarray, draws: np.ndarray, n_bins: int) -> np.ndarray:
    """bool (n_rows of the node, n_bins): whether the bin counts as many draws of the row's label."""
    ends = np.flatnonzero(node.borders[place])
    group = np.minimum(np.searchsorted(ends, np.arange(n_bins)), len(ends) - 1)
    of_ones, of_all = node.sums[place][ends[group]].T
    counts = np.where((ones > 0)[:, None], of_ones, of_all - of_ones)
    return np.asarray(counts >= draws[:, None])


def score(view: ActiveView, judge: Judge) -> dict[str, float]:
    """The share of all (row, feature) pairs pinned to one bin, or to bins of a tenth of all rows at most; and whether
    every true bin is among the possible ones."""
    n_rows, n_features = judge.bins.shape
    n_bins = max(int(judge.bins.max()) + 1, view.rounds[0].nodes[0].borders.shape[1])
    possible = possible_bins(view, judge.orders, n_bins)[..., : int(judge.bins.max()) + 1]
    low = possible.argmax(axis=2)
    high = possible.shape[2] - 1 - possible[..., ::-1].argmax(axis=2)
    placed = narrow_ranges(judge.bins)[np.arange(n_features), low, high]
    true = possible[np.arange(n_rows)[:, None], np.arange(n_features), judge.bins]
    return {"solved": float(placed.mean()), "true": float(true.mean())}
