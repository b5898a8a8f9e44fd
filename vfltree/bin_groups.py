"""Bins merged into groups, so that no sum that leaves a passive party is a sum over a handful of rows.

A party that sets `min_rows` = k > 1 sends sums of *groups* of neighbouring bins. At every split, each group holds 0 or
at least k rows of the smaller child, whose sums travel, and of the larger one, whose sums follow by subtraction. Groups
only ever grow: a child's are unions of its parent's, and both children have the same, so parent minus child is a sum
over rows again. Where that leaves a single group, nothing travels.

    bins             0    1    2    3    4    missing
    rows            12    3    4   40   20      2             k = 10
    groups         [12] [     47    ] [     22     ]          a group goes by its highest bin: 0, 3, 4

Missing values keep a group of their own or join the highest present one, so that they go right with it.

It is not enough to count. Say that bin A of a parent holds 30 rows, all of which went right, and of B 12 went left and
3 right. In the union of both, 12 went left and 33 right, and yet  parent's B - left's (A and B)  is a sum over 3 rows.
So only rows of *mixed* groups of the parent, those with rows on both sides, count towards k. Then no linear combination
of a feature's sums in a parent and its children is a sum over fewer than k rows and more than none. Combinations over
more levels, several features, trees or rounds are not looked at.

Counted are distinct rows that enter sums: a row drawn twice counts once, a row that was not drawn does not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vfltree._jit import jit

Ints = NDArray[np.integer]

MIN_ROWS = 10  # by default: small enough to cost little accuracy, too many to try all subsets of a node


def check_min_rows(min_rows: int) -> int:
    """`min_rows_per_sum` as an int; TypeError or ValueError otherwise."""
    if isinstance(min_rows, (bool, np.bool_)) or not isinstance(min_rows, (int, np.integer)):
        raise TypeError(f"min_rows_per_sum must be an integer, got {min_rows!r}")
    if min_rows < 1:
        raise ValueError(f"min_rows_per_sum must be at least 1 (1: sums of any rows), got {min_rows}")
    return int(min_rows)


@dataclass(frozen=True)
class BinGroups:
    """The groups of one node.

    Attributes
    ----------
    counts : ndarray of int32, shape (n_features, n_bins)
        Distinct rows of the node in each bin; the last bin is for missing values.
    group : ndarray of int16, shape (n_features, n_bins)
        The bin that each bin's group goes by: the highest present one of the group, or the last for missing values
        on their own. A feature that is not answered has the one group n_bins - 2.
    """

    counts: NDArray[np.int32]
    group: NDArray[np.int16]

    @property
    def borders(self) -> NDArray[np.bool_]:
        """The bins that groups go by, bool (n_features, n_bins)."""
        return np.asarray(self.group == np.arange(self.group.shape[1]))

    @property
    def group_counts(self) -> NDArray[np.int64]:
        """Rows of each group, in the bin that it goes by: int64 (n_features, n_bins)."""
        sums = np.zeros(self.group.shape, dtype=np.int64)
        np.add.at(sums, (np.arange(len(sums))[:, None], self.group), self.counts)
        return sums

    def narrow(self, features: Ints) -> BinGroups:
        """Of these features only."""
        return BinGroups(self.counts[features], self.group[features])

    def snap(self, feature: int, bin_: int, missing_left: bool) -> tuple[int, bool]:
        """The split "`bin_` or lower goes left" at a border of groups: the highest border up to `bin_`, or -1.

        The sums of both splits are the same, since an active party sees a group in its highest bin. Missing values that
        have joined a group go with it, whatever `missing_left` says.
        """
        groups = self.group[feature]
        highest, missing = len(groups) - 2, len(groups) - 1
        below = groups[groups <= min(bin_, highest)]
        snapped = int(below.max()) if len(below) else -1
        return snapped, missing_left if groups[missing] == missing else snapped == highest

    def snap_set(
        self, feature: int, right: NDArray[np.bool_], missing_left: bool
    ) -> tuple[NDArray[np.bool_], bool]:
        """The split "these categories go right" with whole groups on either side, where the bin each goes by is.

        right : bool (n_categories,). The highest group goes by a bin that may be none of the feature's categories; its
        sums count as those of the last category.
        """
        groups, missing, last = self.group[feature], self.group.shape[1] - 1, len(right) - 1
        snapped = right[np.minimum(groups[: len(right)], last)]
        return snapped, missing_left if groups[missing] == missing else not right[last]


def root_groups(counts: Ints, min_rows: int) -> BinGroups:
    """Groups of a node that is summed without a parent: a root. counts : (n_features, n_bins), distinct rows."""
    rows = np.asarray(counts, dtype=np.int32)
    alone = np.broadcast_to(np.arange(rows.shape[1], dtype=np.int16), rows.shape)
    return BinGroups(rows, _merged(alone, rows, rows, min_rows))


def child_groups(parent: BinGroups, smaller_counts: Ints, min_rows: int) -> tuple[BinGroups, BinGroups]:
    """Groups of the smaller and the larger child. smaller_counts : (n_features, n_bins), distinct rows."""
    smaller = np.asarray(smaller_counts, dtype=np.int32)
    larger = parent.counts - smaller
    group = _merged(parent.group, smaller, larger, min_rows)
    return BinGroups(smaller, group), BinGroups(larger, group)


def regroup(histograms: NDArray[np.int64], borders: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Sums of bins as sums of groups, each in the bin its group goes by; 0 elsewhere.

    Parameters
    ----------
    histograms : ndarray of int64, shape (n_features, n_bins, n_values)
    borders : ndarray of bool, shape (n_features, n_bins)
        As `BinGroups.borders`; see `check_borders`.
    """
    n_features, n_bins, n_values = histograms.shape
    joined = histograms.copy()
    joined[:, -2] += np.where(borders[:, -1:], 0, joined[:, -1])
    ends = borders.copy()
    ends[:, -1] = True  # missing values that have joined a group end their feature with nothing
    joined[:, -1] *= borders[:, -1:]
    places = np.flatnonzero(ends)
    starts = np.concatenate([[0], places[:-1] + 1])
    out = np.zeros((n_features * n_bins, n_values), dtype=np.int64)
    if len(places):
        out[places] = np.add.reduceat(joined.reshape(-1, n_values), starts, axis=0)
    return out.reshape(histograms.shape)


def unpack_borders(packed: np.ndarray, histograms: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    """Borders in a reply, bool (n_nodes, n_features, n_bins); None where every bin is a group.

    packed : uint8, bits; empty for None.  histograms : (n_nodes, n_features, n_bins, n_values), what came with them.
    Raises ValueError if they cannot be.
    """
    if packed.size == 0:
        return None
    shape = histograms.shape[:-1]
    n_bins = int(np.prod(shape))
    if packed.size != (n_bins + 7) // 8:
        raise ValueError(f"groups of {n_bins} bins were expected, got {packed.size} bytes")
    borders = np.unpackbits(packed, count=n_bins).astype(bool).reshape(shape)
    if not borders[..., -2].all():
        raise ValueError("the highest present bin of a feature belongs to no group")
    if histograms[~borders].any():
        raise ValueError("a sum stands within a group")
    return borders


@jit
def _fits(smaller, larger, min_rows):  # type: ignore[no-untyped-def]
    return (smaller == 0 or smaller >= min_rows) and (larger == 0 or larger >= min_rows)


@jit
def _merged(groups, smaller, larger, min_rows):  # type: ignore[no-untyped-def]
    """Merge the groups of every feature, int16 (n_features, n_bins), until they fit both children."""
    n_features, n_bins = groups.shape
    missing, highest = n_bins - 1, n_bins - 2
    merged = np.empty((n_features, n_bins), dtype=np.int16)
    mixed_smaller, mixed_larger = np.empty(n_bins, dtype=np.int64), np.empty(n_bins, dtype=np.int64)
    ends = np.empty(n_bins, dtype=np.int64)  # the groups so far: the bin each goes by, and its mixed rows
    ends_smaller, ends_larger = np.empty(n_bins, dtype=np.int64), np.empty(n_bins, dtype=np.int64)
    for f in range(n_features):
        n_smaller, n_larger = smaller[f].sum(), larger[f].sum()
        mixed_smaller[:], mixed_larger[:] = 0, 0
        for b in range(n_bins):
            mixed_smaller[groups[f, b]] += smaller[f, b]
            mixed_larger[groups[f, b]] += larger[f, b]
        for b in range(n_bins):
            if mixed_smaller[b] == 0 or mixed_larger[b] == 0:
                mixed_smaller[b], mixed_larger[b] = 0, 0

        # Present groups from the lowest up: close one as soon as it fits.
        n_ends, few, many = 0, 0, 0
        for b in range(missing):
            if groups[f, b] != b:
                continue
            few += mixed_smaller[b]
            many += mixed_larger[b]
            if _fits(few, many, min_rows):
                ends[n_ends], ends_smaller[n_ends], ends_larger[n_ends] = b, few, many
                n_ends, few, many = n_ends + 1, 0, 0
        joins = groups[f, missing] != missing
        if not joins and not _fits(mixed_smaller[missing], mixed_larger[missing], min_rows):
            joins = True
            few += mixed_smaller[missing]
            many += mixed_larger[missing]
        # What is left over at the top joins the groups below it until they fit together.
        while n_ends > 0 and not _fits(few, many, min_rows):
            n_ends -= 1
            few += ends_smaller[n_ends]
            many += ends_larger[n_ends]
        whole = max(n_smaller, n_larger) < 2 * min_rows or not _fits(few, many, min_rows)
        if whole:
            n_ends, joins = 0, True
        if n_ends == 0 or ends[n_ends - 1] != highest:
            ends[n_ends] = highest

        at = 0
        for b in range(missing):
            if b > ends[at]:
                at += 1
            merged[f, b] = ends[at]
        merged[f, missing] = highest if joins else missing
    return merged
