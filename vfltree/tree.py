"""Trees as flat frozen arrays: what the active party keeps, what the owner of a split keeps, how rows travel.

    active party    node -> owner, children, leaf value                       no feature, no threshold
    owning party    record id -> column, threshold or set, missing direction  no tree, no leaf value

Nodes are numbered as in a heap: the root is 1, the children of i are 2 i (left) and 2 i + 1 (right), so a
number carries its depth and its whole path. A record id is a tree's number and a node's number in one
int64. A row moves one node at a time: the active party names (record, row), the owner says left or right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .categories import Categories

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LEAF = -1  # in place of an owner or a child: there is none
NODE_BITS, TREE_BITS = 32, 31  # a record id is a positive int64:  tree | node


def heap_depth(nodes: ArrayLike) -> Ints:
    """Depth of heap numbers; the root, 1, has depth 0. Numbers of at most 52 bits."""
    numbers = np.asarray(nodes, dtype=np.int64)
    if (numbers < 1).any():
        raise ValueError(f"heap numbers start at 1, got {numbers.min()}")
    return np.asarray(np.frexp(numbers.astype(np.float64))[1] - 1, dtype=np.int64)


def record_id(trees: ArrayLike, nodes: ArrayLike) -> Ints:
    """Record ids of nodes: int64, as many as tree and node numbers (0-d for two numbers)."""
    trees, nodes = np.asarray(trees, dtype=np.int64), np.asarray(nodes, dtype=np.int64)
    for name, numbers, least, bits in (("tree", trees, 0, TREE_BITS), ("node", nodes, 1, NODE_BITS)):
        if numbers.size and (numbers.min() < least or numbers.max() >= 1 << bits):
            raise ValueError(
                f"{name} numbers from {least} to {(1 << bits) - 1} fit a record id, "
                f"got {numbers.min()} to {numbers.max()}"
            )
    return np.asarray(trees << NODE_BITS | nodes, dtype=np.int64)


def record_parts(ids: ArrayLike) -> tuple[Ints, Ints]:
    """Tree numbers and node numbers of record ids."""
    records = np.asarray(ids, dtype=np.int64)
    return records >> NODE_BITS, records & ((1 << NODE_BITS) - 1)


def goes_left(values: Array, thresholds: Array, missing_left: Bools) -> Bools:
    """Which way values go at their nodes, elementwise.

    `x < threshold` goes left and NaN goes where `missing_left` says. A threshold of +inf stands for "every
    value that is present goes left", +inf included; one of -inf for "none does".
    """
    below = (values < thresholds) | np.isposinf(thresholds)
    return np.where(np.isnan(values), missing_left, below)


@dataclass(frozen=True)
class RecordTable:
    """The splits one party owns, in ascending order of their ids.

    Attributes
    ----------
    ids : ndarray of int64, shape (n_records,)
    columns : ndarray of int32, shape (n_records,)
        Column among the party's own.
    thresholds : ndarray of float64, shape (n_records,)
        See `goes_left`; NaN where the split is one of categories.
    missing_left : ndarray of bool, shape (n_records,)
    right : ndarray of uint8, shape (n_records, n_set_bytes)
        Packed bits (`numpy.packbits`): the codes of the categories that go right, never none where the split is one
        of categories, none elsewhere. No bytes where no split is.
    categories : Categories
        What the codes stand for, see `categories`.
    """

    ids: Ints
    columns: NDArray[np.int32]
    thresholds: Array
    missing_left: Bools
    right: NDArray[np.uint8]
    categories: Categories = field(default_factory=Categories.none)

    def __post_init__(self) -> None:
        arrays = (self.ids, self.columns, self.thresholds, self.missing_left, self.right)
        if len({len(array) for array in arrays}) > 1 or self.right.ndim != 2:
            raise ValueError("the columns of a record table must have one length")
        if (np.diff(self.ids) <= 0).any():
            raise ValueError("record ids must be strictly increasing")
        if (np.isnan(self.thresholds) != self.right.any(axis=1)).any():
            raise ValueError("a split must have either a threshold or a set of categories")
        _freeze(self)

    @classmethod
    def empty(cls, categories: Categories | None = None) -> RecordTable:
        return cls(
            np.empty(0, np.int64),
            np.empty(0, np.int32),
            np.empty(0),
            np.empty(0, np.bool_),
            np.empty((0, 0), np.uint8),
            Categories.none() if categories is None else categories,
        )

    def append(
        self,
        ids: ArrayLike,
        columns: ArrayLike,
        thresholds: ArrayLike,
        missing_left: ArrayLike,
        right: Sequence[Bools | None] | None = None,
    ) -> RecordTable:
        """A table with one record more, or with several (n_new,) in any order.

        right : per record the bool mask of its categories that go right, None for a split by a threshold; None
        altogether where no split is one of categories.
        """
        new = [np.atleast_1d(values) for values in (ids, columns, thresholds, missing_left)]
        known = self.find(new[0])
        if (known >= 0).any():
            raise ValueError(f"record {int(new[0][known >= 0][0])} exists already")
        order = np.argsort(new[0])
        at = np.searchsorted(self.ids, new[0][order])
        sets = _packed_sets([None] * len(new[0]) if right is None else right)
        width = max(sets.shape[1], self.right.shape[1])
        old_sets, new_sets = (np.pad(x, ((0, 0), (0, width - x.shape[1]))) for x in (self.right, sets))
        mine = (self.ids, self.columns, self.thresholds, self.missing_left, old_sets)
        ids, columns, thresholds, missing_left, packed = (
            np.insert(np.asarray(old), at, more[order], axis=0)
            for old, more in zip(mine, [*new, new_sets], strict=True)
        )
        return RecordTable(ids, columns, thresholds, missing_left, packed, self.categories)

    def __len__(self) -> int:
        return len(self.ids)

    def of_trees(self, first: int, end: int) -> RecordTable:
        """The records of trees first, ..., end - 1."""
        trees, _ = record_parts(self.ids)
        chosen = (trees >= first) & (trees < end)
        return RecordTable(
            self.ids[chosen],
            self.columns[chosen],
            self.thresholds[chosen],
            self.missing_left[chosen],
            self.right[chosen],
            self.categories,
        )

    def find(self, ids: Ints) -> Ints:
        """Positions of record ids in this table, -1 for those that are not here."""
        places = np.searchsorted(self.ids, ids)
        known = places < len(self.ids)
        known[known] = self.ids[places[known]] == ids[known]
        return np.where(known, places, -1)

    def goes_left(self, records: Ints, features: Array, rows: Ints) -> Bools:
        """Answers to "record, row: left?", one per pair.

        Parameters
        ----------
        records : ndarray of int64, shape (n_pairs,)
            Positions in this table, from `find`.
        features : ndarray of float64, shape (n_rows, n_features)
            Categorical columns hold codes.
        rows : ndarray of int64 or int32, shape (n_pairs,)
        """
        values = features[rows, self.columns[records]]
        left = goes_left(values, self.thresholds[records], self.missing_left[records])
        if self.right.shape[1]:
            of_set = np.flatnonzero(np.isnan(self.thresholds[records]) & ~np.isnan(values))
            left[of_set] = ~self._in_set(records[of_set], values[of_set].astype(np.int64))
        return left

    def _in_set(self, records: Ints, codes: Ints) -> Bools:
        """Whether the records' sets hold the codes, elementwise; no set holds a code beyond its bits."""
        known = (codes >= 0) & (codes < 8 * self.right.shape[1])
        places = np.where(known, codes, 0)
        bits = self.right[records, places >> 3] >> (7 - (places & 7)).astype(np.uint8) & 1
        return known & (bits == 1)

    def nearest_ancestors(self) -> tuple[Ints, NDArray[np.int8]]:
        """Per record the nearest record of this table above it in its tree, and the turn from there to here.

        Returns
        -------
        ancestors : ndarray of int64, shape (n_records,)
            Positions in this table; -1 where this party owns nothing above.
        turns : ndarray of int8, shape (n_records,)
            1 if the way leads left at the ancestor, 0 right.
        """
        trees, nodes = record_parts(self.ids)
        ancestors, turns = np.full(len(self), -1, dtype=np.int64), np.zeros(len(self), dtype=np.int8)
        looking = np.flatnonzero(nodes > 1)
        above = nodes.copy()
        while len(looking):
            step_left = above[looking] % 2 == 0
            above[looking] //= 2
            found = self.find(record_id(trees[looking], above[looking]))
            hit = found >= 0
            ancestors[looking[hit]], turns[looking[hit]] = found[hit], step_left[hit]
            looking = looking[~hit & (above[looking] > 1)]
        return ancestors, turns


@dataclass(frozen=True)
class Tree:
    """One tree as the active party knows it; the root is at position 0, children come after their parent.

    Attributes
    ----------
    node : ndarray of int64, shape (n_nodes,)
        Heap numbers.
    owner : ndarray of int32, shape (n_nodes,)
        Position of the party that owns the split; -1 marks a leaf.
    left, right : ndarray of int32, shape (n_nodes,)
        Positions of the children, -1 in leaves.
    value : ndarray of float64, shape (n_nodes, n_values)
        What a leaf adds to the raw scores; 0 in inner nodes. One value adds to the output its tree is for, several
        add to all outputs.
    gain, cover : ndarray of float64, shape (n_nodes,)
        Gain of the split (0 in leaves) and sum of hessians.
    """

    node: Ints
    owner: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: Array
    gain: Array
    cover: Array

    def __post_init__(self) -> None:
        _freeze(self)

    @property
    def n_nodes(self) -> int:
        return len(self.node)

    @property
    def n_leaves(self) -> int:
        return int((self.owner == LEAF).sum())

    @property
    def depth(self) -> int:
        """Number of splits on the longest path."""
        return int(heap_depth(self.node).max())


class TreeBuilder:
    """Grows a `Tree` from its root. Nodes are named by their position, numbered in the order they appear."""

    def __init__(self) -> None:
        self.nodes = [1]  # heap numbers
        self._splits: dict[int, tuple[int, int, int, float]] = {}
        self._leaves: dict[int, Array] = {}
        self._covers: dict[int, float] = {}

    def split(self, at: int, owner: int, gain: float = 0.0) -> tuple[int, int]:
        """Make the node at this position a split of `owner`; returns the positions of its children."""
        self._check_open(at)
        left, right = len(self.nodes), len(self.nodes) + 1
        self.nodes += [2 * self.nodes[at], 2 * self.nodes[at] + 1]
        self._splits[at] = (owner, left, right, gain)
        return left, right

    def set_leaf(self, at: int, value: ArrayLike) -> None:
        """Make the node at this position a leaf. value : a number, or a vector as long as in every leaf."""
        self._check_open(at)
        self._leaves[at] = np.atleast_1d(np.asarray(value, dtype=np.float64))

    def set_cover(self, at: int, cover: float) -> None:
        """Note the sum of hessians of a node."""
        self._covers[at] = cover

    def cover(self, at: int) -> float:
        """What `set_cover` noted."""
        return self._covers[at]

    def freeze(self) -> Tree:
        """The finished tree; every node must have been split or made a leaf."""
        n_nodes = len(self.nodes)
        n_open = n_nodes - len(self._splits) - len(self._leaves)
        if n_open:
            raise ValueError(f"{n_open} of {n_nodes} nodes are still open")
        owner, left, right = (np.full(n_nodes, LEAF, dtype=np.int32) for _ in range(3))
        value, gain = np.zeros((n_nodes, self._n_values())), np.zeros(n_nodes)
        for at, split in self._splits.items():
            owner[at], left[at], right[at], gain[at] = split
        for at, leaf in self._leaves.items():
            value[at] = leaf
        cover = np.array([self._covers.get(at, 0.0) for at in range(n_nodes)])
        return Tree(np.array(self.nodes), owner, left, right, value, gain, cover)

    def _n_values(self) -> int:
        shapes = {leaf.shape for leaf in self._leaves.values()}
        if len(shapes) != 1 or len(shape := shapes.pop()) != 1:
            raise ValueError(f"leaves of a tree hold vectors of one length, got the shapes {sorted(shapes)}")
        return int(shape[0])

    def _check_open(self, at: int) -> None:
        if not 0 <= at < len(self.nodes) or at in self._splits or at in self._leaves:
            raise ValueError(f"there is no open node {at} in this tree")


@dataclass(frozen=True)
class Waiting:
    """Rows that wait at nodes of one owner, at one step of a prediction.

    Attributes
    ----------
    rows, ids : ndarray of int64, shape (n_pairs,)
        What to ask: record, row: left?
    places : ndarray of int64, shape (n_pairs,)
        Where the answers belong; for `Router.advance`.
    """

    rows: Ints
    ids: Ints
    places: Ints


class Router:
    """Sends all rows down all trees at once, one level a step.

        while owners := router.owners_waiting():
            for ask in [router.waiting(owner) for owner in owners]:
                router.advance(ask, the owner's answers to ask.ids, ask.rows)
        router.leaves()

    Parameters
    ----------
    trees : sequence of Tree
        In the order of their numbers.
    n_rows : int
    first : int
        Number of the first of these trees.
    """

    def __init__(self, trees: Sequence[Tree], n_rows: int, first: int = 0) -> None:
        self._n_rows, self._n_trees = n_rows, len(trees)
        starts = np.cumsum([0] + [tree.n_nodes for tree in trees])
        self._starts = starts[:-1]

        def joined(parts: Sequence[NDArray[np.generic]], dtype: type) -> NDArray[np.generic]:
            return np.concatenate([np.empty(0, dtype), *parts]).astype(dtype)

        self._owner = joined([tree.owner for tree in trees], np.int32)
        self._ids = joined([record_id(t, tree.node) for t, tree in enumerate(trees, first)], np.int64)
        self._left = joined([tree.left + s for tree, s in zip(trees, self._starts, strict=True)], np.int64)
        self._right = joined([tree.right + s for tree, s in zip(trees, self._starts, strict=True)], np.int64)
        self._at = np.repeat(self._starts, n_rows)  # where each row stands: tree by tree, row by row
        self._open = np.flatnonzero(self._owner[self._at] != LEAF)

    def owners_waiting(self) -> list[int]:
        """Owners of nodes where some row waits, ascending; none when all rows have reached a leaf."""
        return [int(owner) for owner in np.unique(self._owner[self._at[self._open]])]

    def waiting(self, owner: int) -> Waiting:
        """The questions for `owner` at this step."""
        places = self._open[self._owner[self._at[self._open]] == owner]
        return Waiting(places % max(self._n_rows, 1), self._ids[self._at[places]], places)

    def advance(self, asked: Waiting, left: Bools) -> None:
        """Move the rows that were asked about to the children that were answered."""
        if left.shape != asked.places.shape:
            raise ValueError(f"{len(asked.places)} answers were due, {left.size} came")
        at = self._at[asked.places]
        self._at[asked.places] = np.where(left, self._left[at], self._right[at])
        self._open = self._open[self._owner[self._at[self._open]] != LEAF]

    def leaves(self) -> NDArray[np.int32]:
        """Position of the node each row stands on, int32 (n_rows, n_trees)."""
        nodes = self._at.reshape(self._n_trees, self._n_rows) - self._starts[:, None]
        return nodes.T.astype(np.int32)


def apply_trees(
    trees: Sequence[Tree], tables: Mapping[int, RecordTable], blocks: Mapping[int, Array], n_rows: int
) -> NDArray[np.int32]:
    """Leaves of all rows where all tables and all values are at hand: positions, int32 (n_rows, n_trees).

    Parameters
    ----------
    trees : sequence of Tree
    tables, blocks : dict from owner to its record table and to its values, float64 (n_rows, n_features)
    n_rows : int
    """
    router = Router(trees, n_rows)
    while owners := router.owners_waiting():
        for owner, ask in [(owner, router.waiting(owner)) for owner in owners]:
            table = tables[owner]
            router.advance(ask, table.goes_left(table.find(ask.ids), blocks[owner], ask.rows))
    return router.leaves()


def sum_leaves(
    trees: Sequence[Tree], leaves: NDArray[np.int32], outputs: Sequence[int], start: Array
) -> Array:
    """Raw scores, float64 (n_rows, n_outputs): start values plus leaf values, added tree by tree.

    Parameters
    ----------
    leaves : ndarray of int32, shape (n_rows, n_trees)
    outputs : sequence of int
        Column of the raw score each tree adds to; trees with a value per output add to all of them.
    start : ndarray of float64, shape (n_outputs,)
    """
    raw = np.tile(start, (len(leaves), 1))
    add_leaves(raw, trees, leaves, outputs)
    return raw


def add_leaves(
    raw: NDArray[np.floating], trees: Sequence[Tree], leaves: NDArray[np.int32], outputs: Sequence[int]
) -> None:
    """Add leaf values to raw scores (n_rows, n_outputs) in place, tree by tree; arguments as in `sum_leaves`."""
    for t, (tree, output) in enumerate(zip(trees, outputs, strict=True)):
        values = tree.value[leaves[:, t]]
        if values.shape[1] == 1:
            raw[:, output] += values[:, 0]
        else:
            raw += values


def _packed_sets(sets: Sequence[Bools | None]) -> NDArray[np.uint8]:
    """Masks as packed bits, uint8 (n_sets, n_bytes); None is the empty set."""
    packed = [np.zeros(0, np.uint8) if mask is None else np.packbits(mask) for mask in sets]
    width = max((len(bits) for bits in packed), default=0)
    padded = [np.pad(bits, (0, width - len(bits))) for bits in packed]
    return np.array(padded, dtype=np.uint8).reshape(len(sets), width)


def _freeze(holder: object) -> None:
    """Make the arrays of a frozen dataclass read-only."""
    for value in vars(holder).values():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
