"""What a forest draws: the rows of each tree, and the slots that each node may be split by.

Every draw follows from the seed and the number of the tree or node alone, so it depends neither on which trees grow
together nor on the network or threads. Slots are drawn over the features of all parties by their numbers; those of a
passive party stand in an order that it keeps to itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Slots = NDArray[np.int64]
MOST_TIMES = int(np.iinfo(np.uint16).max)
_ROWS, _SLOTS = 0, 1  # streams of one seed


def draw_rows(seed: int, tree: int, n_rows: int, n_draws: int) -> NDArray[np.uint16]:
    """How often a tree draws each row, with replacement, n_draws in all: (n_rows,)."""
    drawn = np.random.default_rng([seed, _ROWS, tree]).integers(0, n_rows, n_draws)
    times = np.bincount(drawn, minlength=n_rows)
    if times.max() > MOST_TIMES:
        raise ValueError(f"tree {tree} draws a row {times.max()} times, a message holds {MOST_TIMES} at most")
    return times.astype(np.uint16)


def draw_slots(seed: int, record: int, varied: Sequence[NDArray[np.bool_]], max_features: int) -> list[Slots]:
    """The slots that a node may be split by: per party, ascending.

    Parameters
    ----------
    record : id of the node
    varied : per party bool (n_slots,), slots whose rows in this node lie in two bins at least
    max_features : how many slots are drawn, over all parties; as in scikit-learn slots by which the node cannot be
        split count too, and if there are no others among those drawn, the next one that can follows
    """
    possible = np.concatenate(varied)
    order = np.random.default_rng([seed, _SLOTS, record]).permutation(len(possible))
    drawn = order[:max_features]
    chosen = drawn[possible[drawn]]
    if not len(chosen):
        chosen = order[possible[order]][:1]
    ends = np.cumsum([len(slots) for slots in varied])
    chosen = np.sort(chosen)
    bounds = np.searchsorted(chosen, ends)
    starts = [0, *bounds[:-1].tolist()]
    firsts = [0, *ends[:-1].tolist()]
    return [
        chosen[start:stop] - first for start, stop, first in zip(starts, bounds.tolist(), firsts, strict=True)
    ]
