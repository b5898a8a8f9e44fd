"""A passive party's groups of bins at the nodes of a round, node by node as they open: see `vfltree.bin_groups`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from ..bin_groups import BinGroups, child_groups, root_groups
from .numbering import parent_and_sibling


class NodeGroups:
    """The groups at every open node. Counts are of distinct rows that enter sums, (n_slots, n_bins).

    min_rows : k of `bin_groups`.
    """

    def __init__(self, min_rows: int) -> None:
        self._min_rows = min_rows
        self._at: dict[int, BinGroups] = {}

    def of(self, record: int) -> BinGroups:
        """The groups of an open node."""
        return self._at[record]

    def open_roots(self, records: Sequence[int], counts: np.ndarray) -> BinGroups:
        """The groups that all roots of a round share."""
        groups = root_groups(counts, self._min_rows)
        self._at = dict.fromkeys(records, groups)
        return groups

    def open_children(
        self, nodes: Sequence[int], counts: np.ndarray, still_open: Collection[int]
    ) -> list[BinGroups]:
        """The groups of these smaller children; those of their siblings are kept too.

        nodes : record ids.  counts : of each.  still_open : record ids; all other nodes are forgotten.
        """
        for node, rows in zip(nodes, counts, strict=True):
            parent, sibling = parent_and_sibling(node)
            self._at[node], self._at[sibling] = child_groups(self._at[parent], rows, self._min_rows)
        self._at = {record: groups for record, groups in self._at.items() if record in still_open}
        return [self._at[node] for node in nodes]

    def narrow(self, places: np.ndarray) -> None:
        """Keep some slots only."""
        self._at = {record: groups.narrow(places) for record, groups in self._at.items()}
