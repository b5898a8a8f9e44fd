"""Trees as flat frozen arrays: what the active party keeps, what the owner of a split keeps, and how rows
travel.

    active party    node -> party and record id, children, leaf value       knows no feature and no threshold
    owning party    record id -> feature, threshold, missing direction      knows no tree and no leaf value

A row moves one node at a time: the active party names (record, row), the owner says left or right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LEAF = -1  # as party, record or child: there is none
INDEX_BITS, DEPTH_BITS, TREE_BITS = 32, 8, 23  # a record id is a positive int64:  tree | depth | index


def record_id(tree: int, depth: int, index: int) -> int:
    """A number that names a split and carries where it belongs: tree, depth, and place in its level."""
    for name, number, bits in (
        ("tree", tree, TREE_BITS),
        ("depth", depth, DEPTH_BITS),
        ("index", index, INDEX_BITS),
    ):
        if not 0 <= number < 1 << bits:
            raise ValueError(f"{name} must lie between 0 and {(1 << bits) - 1} in a record id, got {number}")
    return (int(tree) << DEPTH_BITS | int(depth)) << INDEX_BITS | int(index)


def record_parts(records: Ints) -> tuple[Ints, Ints, Ints]:
    """tree, depth and index of record ids, arrays or numbers."""
    return (
        records >> (DEPTH_BITS + INDEX_BITS),
        records >> INDEX_BITS & ((1 << DEPTH_BITS) - 1),
        records & ((1 << INDEX_BITS) - 1),
    )


@dataclass(frozen=True)
class Tree:
    """One tree as the active party knows it; node 0 is the root, children come after their parent, level by
    level.

    Attributes
    ----------
    party : ndarray of int32, shape (n_nodes,)
        Position of the party that owns the split; -1 marks a leaf.
    record : ndarray of int64, shape (n_nodes,)
    left, right : ndarray of int32, shape (n_nodes,)
    value : ndarray of float64, shape (n_nodes, n_values)
        What a leaf adds to the raw score; 0 in inner nodes.
    gain, cover : ndarray of float64, shape (n_nodes,)
        Gain of the split (0 in leaves) and sum of hessians.
    """

    party: NDArray[np.int32]
    record: Ints
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: Array
    gain: Array
    cover: Array

    def __post_init__(self) -> None:
        _freeze(self)

    @property
    def n_nodes(self) -> int:
        return len(self.party)

    @property
    def n_leaves(self) -> int:
        return int((self.party == LEAF).sum())

    @property
    def depth(self) -> int:
        """Number of splits on the longest path."""
        depths = np.zeros(self.n_nodes, dtype=np.int64)
        for node in np.flatnonzero(self.party != LEAF):  # ascending, so a parent is done before its children
            depths[[self.left[node], self.right[node]]] = depths[node] + 1
        return int(depths.max())


class TreeBuilder:
    """Grows a `Tree` from its root; nodes are numbered in the order they appear."""

    def __init__(self, n_values: int = 1) -> None:
        self._n_values = n_values
        self._splits: dict[int, tuple[int, int, int, int, float]] = {}
        self._values: dict[int, Array] = {}
        self._covers: dict[int, float] = {}
        self.n_nodes = 1

    def split(self, node: int, party: int, record: int, gain: float = 0.0) -> tuple[int, int]:
        """Make `node` an inner node; returns its new children."""
        if not 0 <= node < self.n_nodes or node in self._splits or node in self._values:
            raise ValueError(f"node {node} is not an open node of this tree")
        left, right = self.n_nodes, self.n_nodes + 1
        self._splits[node] = (party, record, left, right, gain)
        self.n_nodes += 2
        return left, right

    def set_leaf(self, node: int, value: float | Array) -> None:
        """Make `node` a leaf with this value, or one value per output."""
        if not 0 <= node < self.n_nodes or node in self._splits:
            raise ValueError(f"node {node} is not an open node of this tree")
        self._values[node] = np.broadcast_to(np.asarray(value, dtype=np.float64), (self._n_values,))

    def set_cover(self, node: int, cover: float) -> None:
        """Note the sum of hessians of `node`."""
        self._covers[node] = cover

    def freeze(self) -> Tree:
        """The finished tree; every node must have been split or made a leaf."""
        if len(self._splits) + len(self._values) != self.n_nodes:
            raise ValueError(f"{self.n_nodes - len(self._splits) - len(self._values)} nodes are still open")
        party, left, right = (np.full(self.n_nodes, LEAF, dtype=np.int32) for _ in range(3))
        record = np.full(self.n_nodes, LEAF, dtype=np.int64)
        value, gain = np.zeros((self.n_nodes, self._n_values)), np.zeros(self.n_nodes)
        for node, split in self._splits.items():
            party[node], record[node], left[node], right[node], gain[node] = split
        for node, leaf in self._values.items():
            value[node] = leaf
        cover = np.array([self._covers.get(node, 0.0) for node in range(self.n_nodes)])
        return Tree(party, record, left, right, value, gain, cover)


@dataclass(frozen=True)
class RecordTable:
    """The splits a party owns, sorted by record id.

    Attributes
    ----------
    record : ndarray of int64, shape (n_records,)
    feature : ndarray of int32, shape (n_records,)
        Column among the party's own.
    bin : ndarray of int32, shape (n_records,)
        Present values in this bin or lower go left.
    threshold : ndarray of float64, shape (n_records,)
        The same as a number: x < threshold goes left. +inf: every present value goes left.
    missing_left : ndarray of bool, shape (n_records,)
    """

    record: Ints
    feature: NDArray[np.int32]
    bin: NDArray[np.int32]
    threshold: Array
    missing_left: Bools

    def __post_init__(self) -> None:
        if (np.diff(self.record) <= 0).any():
            raise ValueError("record ids must be strictly increasing")
        if np.isnan(self.threshold).any():
            raise ValueError("a threshold is not a number")
        _freeze(self)

    def __len__(self) -> int:
        return len(self.record)

    def find(self, records: Ints) -> Ints:
        """Positions of record ids in this table; KeyError for one that is not here."""
        places = np.searchsorted(self.record, records)
        known = places < len(self.record)
        known[known] = self.record[places[known]] == records[known]
        if not known.all():
            raise KeyError(int(records[~known][0]))
        return places

    def goes_left(self, X: Array, rows: Ints, records: Ints) -> Bools:
        """Answers to "record, row: left?" from values, one per pair.

        Parameters
        ----------
        X : ndarray of float64, shape (n_rows, n_features)
        rows, records : ndarray of int64, shape (n_pairs,)
        """
        at = self.find(records)
        x = X[rows, self.feature[at]]
        threshold = self.threshold[at]
        return np.where(np.isnan(x), self.missing_left[at], (x < threshold) | np.isposinf(threshold))

    def goes_left_binned(
        self, binned: NDArray[np.uint8] | NDArray[np.uint16], missing_bin: int, rows: Ints, records: Ints
    ) -> Bools:
        """`goes_left` from bins made by the party's `BinMapper`."""
        at = self.find(records)
        b = binned[rows, self.feature[at]]
        return np.where(b == missing_bin, self.missing_left[at], b <= self.bin[at])


class RecordTableBuilder:
    """Collects a party's splits while trees grow."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[int, int, float, bool]] = {}

    def add(self, record: int, feature: int, bin: int, threshold: float, missing_left: bool) -> None:
        if record in self._rows:
            raise ValueError(f"record {record} exists already")
        self._rows[int(record)] = (int(feature), int(bin), float(threshold), bool(missing_left))

    def __len__(self) -> int:
        return len(self._rows)

    def freeze(self) -> RecordTable:
        records = sorted(self._rows)
        feature, bins, threshold, missing_left = (
            zip(*(self._rows[r] for r in records), strict=True) if records else ((), (), (), ())
        )
        return RecordTable(
            np.array(records, dtype=np.int64),
            np.array(feature, dtype=np.int32),
            np.array(bins, dtype=np.int32),
            np.array(threshold, dtype=np.float64),
            np.array(missing_left, dtype=np.bool_),
        )


@dataclass(frozen=True)
class Waiting:
    """Rows that wait at nodes of one party, at one step of a prediction.

    Attributes
    ----------
    rows, records : ndarray of int64, shape (n_pairs,)
        What to ask: record, row: left or right?
    places : ndarray of int64, shape (n_pairs,)
        Where the answers belong; for `Router.advance`.
    """

    rows: Ints
    records: Ints
    places: Ints


class Router:
    """Sends all rows down all trees at once, one level a step.

    while (parties := router.parties_waiting()):
        for party in parties:
            ask = router.waiting(party)
            router.advance(ask, answers_of(party, ask.records, ask.rows))
    router.leaves()
    """

    def __init__(self, trees: Sequence[Tree], n_rows: int) -> None:
        self.trees = tuple(trees)
        self.n_rows = n_rows
        sizes = np.array([tree.n_nodes for tree in self.trees], dtype=np.int64)
        self._first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        join = np.concatenate
        self._party = join([tree.party for tree in self.trees]) if self.trees else np.empty(0, np.int32)
        self._record = join([tree.record for tree in self.trees]) if self.trees else np.empty(0, np.int64)
        # Children as positions in the joint arrays.
        pairs = [
            np.stack([tree.left, tree.right]) + at for tree, at in zip(self.trees, self._first, strict=False)
        ]
        self._children = join(pairs, axis=1) if pairs else np.empty((2, 0), np.int64)
        self._node = np.repeat(self._first[:-1], n_rows)  # tree by tree, row by row
        self._open = np.flatnonzero(self._party[self._node] != LEAF)

    def parties_waiting(self) -> list[int]:
        """Parties that own a node where some row waits, ascending; empty when all rows reached a leaf."""
        return [int(p) for p in np.unique(self._party[self._node[self._open]])]

    def waiting(self, party: int) -> Waiting:
        """The questions for `party` at this step."""
        places = self._open[self._party[self._node[self._open]] == party]
        return Waiting(places % max(self.n_rows, 1), self._record[self._node[places]], places)

    def advance(self, asked: Waiting, goes_left: Bools) -> None:
        """Move the rows that were asked about to the child that was answered."""
        if goes_left.shape != asked.places.shape:
            raise ValueError(f"{len(asked.places)} answers were due, {goes_left.size} came")
        nodes = self._node[asked.places]
        self._node[asked.places] = np.where(goes_left, self._children[0, nodes], self._children[1, nodes])
        self._open = self._open[self._party[self._node[self._open]] != LEAF]

    def leaves(self) -> NDArray[np.int32]:
        """The node each row stands on, shape (n_rows, n_trees), int32."""
        nodes = self._node.reshape(len(self.trees), self.n_rows) - self._first[:-1, None]
        return nodes.T.astype(np.int32)


def apply_trees(
    trees: Sequence[Tree], tables: Mapping[int, RecordTable], blocks: Mapping[int, Array], n_rows: int
) -> NDArray[np.int32]:
    """Leaves of all rows where all tables and all values are at hand; shape (n_rows, n_trees).

    Parameters
    ----------
    tables, blocks : dict from party position to its record table and to its values (n_rows, n_features)
    """
    router = Router(trees, n_rows)
    while parties := router.parties_waiting():
        for ask in [(party, router.waiting(party)) for party in parties]:
            party, pairs = ask
            router.advance(pairs, tables[party].goes_left(blocks[party], pairs.rows, pairs.records))
    return router.leaves()


def sum_leaves(trees: Sequence[Tree], leaves: NDArray[np.int32], outputs: Sequence[int], raw: Array) -> Array:
    """Raw scores: `raw` plus the leaf values of all trees, tree by tree.

    Parameters
    ----------
    leaves : ndarray of int32, shape (n_rows, n_trees)
    outputs : sequence of int
        Column of the raw score each tree adds to (for trees with one value per leaf).
    raw : ndarray of float64, shape (n_rows, n_outputs)
        Start values; not changed.
    """
    raw = raw.copy()
    for t, (tree, output) in enumerate(zip(trees, outputs, strict=True)):
        raw[:, output] += tree.value[leaves[:, t], 0]
    return raw


def _freeze(holder: object) -> None:
    """Make the arrays of a frozen dataclass read-only."""
    for field in fields(holder):  # type: ignore[arg-type]
        getattr(holder, field.name).setflags(write=False)
