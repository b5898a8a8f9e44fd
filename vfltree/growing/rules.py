"""One split as its owner carries it out: by a bin, or by a set of categories. Both sides of the protocol use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vflparty import RemoteProtocolError

from ..binning import BinMapper
from ..tree import RecordTable
from .masks import unpack_masks
from .messages import RecordSplits

BY_SET = -1  # in place of a bin: the split is a set of categories


@dataclass(frozen=True)
class SplitRule:
    """A column of the owner's and what goes left there."""

    record: int
    column: int
    bin: int  # present values in this bin or lower go left; BY_SET: see `right`
    missing_left: bool
    right: np.ndarray | None  # bool (n_categories,): categories that go right

    def goes_left(self, mapper: BinMapper, bins: np.ndarray) -> np.ndarray:
        """bool, as many as bins of the column."""
        if self.right is not None:
            return mapper.outside_goes_left(bins, self.right, self.missing_left)
        return mapper.goes_left(bins, self.bin, self.missing_left)


def append_rules(table: RecordTable, rules: Sequence[SplitRule], mapper: BinMapper) -> RecordTable:
    """The table with these splits."""
    if not rules:
        return table
    thresholds = [mapper.threshold(rule.column, rule.bin) if rule.right is None else np.nan for rule in rules]
    return table.append(
        [rule.record for rule in rules],
        [rule.column for rule in rules],
        thresholds,
        [rule.missing_left for rule in rules],
        [rule.right for rule in rules],
    )


def read_sets(msg: RecordSplits, sizes: np.ndarray) -> list[np.ndarray | None]:
    """Per candidate its set, None where it has a bin. sizes : int (n_candidates,), categories; 0 for numbers.

    RemoteProtocolError where a categorical feature would be split by order, or one of numbers by a set.
    """
    by_set = msg.bins == BY_SET
    for i in np.flatnonzero(by_set != (sizes > 0))[:1]:
        kind = "categories" if sizes[i] else "numbers"
        raise RemoteProtocolError(
            f"slot {msg.slots[i]} holds {kind}, it cannot be split at bin {msg.bins[i]}"
        )
    masks = iter(unpack_masks(msg.sets, sizes[by_set].tolist()))
    sets = [next(masks) if named else None for named in by_set.tolist()]
    if any(mask is not None and not mask.any() for mask in sets):
        raise RemoteProtocolError("a split names an empty set of categories")
    return sets
