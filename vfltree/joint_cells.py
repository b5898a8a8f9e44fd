"""Fewer additions for the same bin sums: rows are first summed into cells, and bins are made of cells.

Rows of a node that agree in several features make a cell; its sum is made once and serves all these features. Features
are merged two by two, alike ones first, and a merge S of L and R (n rows, D cells of S that occur in the node) takes

    rows -> L, rows -> R                2 n additions, less the bins
    rows -> S,  S -> L,  S -> R         n + D additions, less the bins

Rows in the fullest bin of a feature need not be summed for it. So "needed nowhere" is one more value of a feature, and
rows and cells that are needed in no part of a merge drop out of it. Which features to merge is searched on samples,
once per training and again in large nodes; whether a merge pays is counted for every node. All this looks at bins that
their owner sees anyway, before anything is added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .bin_sums import count_bins
from .cell_kernels import plan_layers, search_merges

Ints = NDArray[np.integer]

MAX_LEAVES = 16  # features in one tree of merges: bounds the work space to so many labels a row
MIN_CELL_BUDGET = 1 << 16  # cells of a node held at a time: 32 MB under a 2048-bit key
CHUNK = 64  # columns searched together, neighbours in the table: the search takes the square of it
TRIES, TRIED_ROWS, JUDGED_ROWS = 4, 1024, 8192  # once per training
LARGE_NODE, NODE_SAMPLE = (
    1024,
    256,
)  # a node of so many rows may save more by merges of its own than a search costs
CLEARLY = 0.9


@dataclass(frozen=True)
class MergeTree:
    """Which features to merge, and in which order."""

    columns: np.ndarray  # int64 (n_leaves,)
    merges: np.ndarray  # int64 (n_merges, 2): leaves are 0..n_leaves - 1, merge t is n_leaves + t

    def renamed(self, names: Ints) -> MergeTree:
        """The same tree where column c is called names[c]."""
        return MergeTree(np.asarray(names, dtype=np.int64)[self.columns], self.merges)


def trees_of(trees: Sequence[MergeTree], columns: Ints) -> tuple[MergeTree, ...]:
    """The trees of these columns alone, where columns[i] is called i; a merge that loses a side falls away."""
    names = {int(column): name for name, column in enumerate(columns)}
    return tuple(tree for tree in (_pruned(tree, names) for tree in trees) if len(tree.columns))


def _pruned(tree: MergeTree, names: Mapping[int, int]) -> MergeTree:
    kept = [leaf for leaf, column in enumerate(tree.columns.tolist()) if column in names]
    numbers: dict[int, int] = {leaf: number for number, leaf in enumerate(kept)}  # what is left of a member
    merges: list[tuple[int, int]] = []
    for t, (left, right) in enumerate(tree.merges.tolist()):
        sides = [numbers[side] for side in (left, right) if side in numbers]
        if len(sides) == 2:
            merges.append((sides[0], sides[1]))
            sides = [len(kept) + len(merges) - 1]
        if sides:
            numbers[len(tree.columns) + t] = sides[0]
    columns = np.array([names[int(tree.columns[leaf])] for leaf in kept], dtype=np.int64)
    return MergeTree(columns, np.array(merges, dtype=np.int64).reshape(-1, 2))


def single_features(n_features: int) -> tuple[MergeTree, ...]:
    """No merges: every feature sums its rows itself."""
    bounds = [*range(0, n_features, MAX_LEAVES), n_features]
    return tuple(MergeTree(np.arange(*pair), np.zeros((0, 2), np.int64)) for pair in pairwise(bounds))


@dataclass(frozen=True)
class SumLayer:
    """Sums of chosen elements of the layer before (in the first: of rows), a segment each, none empty."""

    starts: np.ndarray  # int64 (n_sums + 1,)
    indices: np.ndarray  # int32 or int64 (starts[-1],)
    places: np.ndarray  # int64 (n_sums,): which value a sum is; -1: a cell, only for the next layer

    @property
    def n_multiplications(self) -> int:
        return len(self.indices) - len(self.places)


@dataclass(frozen=True)
class SumPlan:
    """Layered sums that make every value once. Batches stand alone: each begins at the rows."""

    n_values: int
    batches: tuple[tuple[SumLayer, ...], ...]

    @property
    def n_multiplications(self) -> int:
        """Additions under encryption, of one ciphertext a row: k elements take k - 1."""
        return sum(layer.n_multiplications for batch in self.batches for layer in batch)


def plan_sums(
    binned: np.ndarray,
    rows_by_node: Sequence[Ints],
    counts: np.ndarray,
    trees: Sequence[MergeTree],
    positions: Ints | None = None,
    groups: Ints | None = None,
) -> SumPlan:
    """How to sum the rows of every bin but the fullest, for all features of some nodes.

    Parameters
    ----------
    binned : unsigned integers (n_rows, n_features); Fortran order is read fastest
    rows_by_node : row numbers, at least one a node
    counts : int64 (n_nodes, n_features, n_bins), rows of each bin, or of each group in the bin it goes by
    trees : hold every column once
    positions : (n_rows,), what the first layers call a row; None: its own number
    groups : (n_nodes, n_features, n_bins), the bin that each bin's group goes by; None: every bin is a group

    Returns
    -------
    SumPlan whose values stand in the order node, feature, bin
    """
    labels = _labels(counts)
    if groups is not None:
        labels = np.take_along_axis(labels, groups.astype(np.int64), axis=2)
    sizes = labels.max(axis=2, initial=0).astype(np.int64)
    ends = np.cumsum(sizes.ravel())
    bins = _Bins(labels, sizes, ends.reshape(sizes.shape) - sizes, max(MIN_CELL_BUDGET, len(binned) // 8))
    batches = []
    for start, stop in _runs([len(rows) for rows in rows_by_node]):
        rows = np.concatenate(rows_by_node[start:stop]).astype(np.int64)
        names = rows if positions is None else positions[rows].astype(np.int64)
        nodes = _Nodes(
            np.arange(start, stop), rows, names, _offsets([len(n) for n in rows_by_node[start:stop]])
        )
        # The trees were found for all rows; large parts of them are worth a search of their own.
        alone = stop - start == 1 and LARGE_NODE <= len(rows) <= len(binned) // 2
        for tree in trees:
            better = _better(tree, binned, rows, counts.shape[2]) if alone and len(tree.merges) else tree
            batches.append(_layers(binned, nodes, bins, better))
    return SumPlan(int(ends[-1]) if ends.size else 0, tuple(batches))


@dataclass(frozen=True)
class _Nodes:
    """Nodes planned together."""

    numbers: np.ndarray  # int64 (n_nodes,)
    rows: np.ndarray  # int64, node by node
    names: np.ndarray  # int64, what the first layer calls them
    indptr: np.ndarray  # int64 (n_nodes + 1,)


@dataclass(frozen=True)
class _Bins:
    """The bins of all nodes and features, and how many cells may be held."""

    labels: np.ndarray  # int32 (n_nodes, n_features, n_bins)
    sizes: np.ndarray  # int64 (n_nodes, n_features), bins to be summed
    first_places: np.ndarray  # int64 (n_nodes, n_features), the value that label 1 is
    cell_budget: int


def _layers(binned: np.ndarray, nodes: _Nodes, bins: _Bins, tree: MergeTree) -> tuple[SumLayer, ...]:
    own = np.ix_(nodes.numbers, tree.columns)
    lengths, places, members, sum_bounds, member_bounds = plan_layers(
        np.ascontiguousarray(binned.T), nodes.rows, nodes.names, nodes.indptr, tree.columns, tree.merges,
        bins.labels[own], bins.sizes[own], bins.first_places[own], bins.cell_budget,
    )  # fmt: skip
    bounds = zip(pairwise(sum_bounds.tolist()), pairwise(member_bounds.tolist()), strict=True)
    return tuple(
        SumLayer(_offsets(lengths[i:j]), members[p:q], places[i:j]) for (i, j), (p, q) in bounds if j > i
    )


def _labels(counts: np.ndarray) -> np.ndarray:
    """The bins to be summed, numbered from 1 in each node and feature; 0 for the fullest and the empty ones. int32"""
    wanted = counts > 0
    if wanted.size:
        np.put_along_axis(wanted, counts.argmax(axis=2)[..., None], False, axis=2)
    return (np.cumsum(wanted, axis=2) * wanted).astype(np.int32)


def _runs(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Nodes to be planned together: large ones alone, small ones in ranges of few rows."""
    start, total = 0, 0
    for i, size in enumerate(sizes):
        if i > start and total + size > LARGE_NODE:
            yield start, i
            start, total = i, 0
        total += size
    if sizes:
        yield start, len(sizes)


def _offsets(lengths: Sequence[int] | Ints) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


# ---- which features to merge


def find_trees(binned: np.ndarray, n_bins: int) -> tuple[MergeTree, ...]:
    """Features to merge, judged by a sample of the rows. Depends on the bins only: equal bins, equal trees.

    The same is tried on several samples, where the features are few, since the best first merge is a matter of luck.
    """
    n_rows, n_features = binned.shape
    rng = np.random.default_rng(0)
    judged = np.sort(rng.permutation(n_rows)[:JUDGED_ROWS])
    trees: list[MergeTree] = []
    for start in range(0, n_features, CHUNK):
        columns = np.arange(start, min(start + CHUNK, n_features))
        block = np.asfortranarray(binned[judged][:, columns])
        n_tries = TRIES if n_features <= CHUNK else 1
        samples = [np.sort(rng.permutation(len(block))[:TRIED_ROWS]) for _ in range(n_tries)]
        forests = [_packed(_searched(block[sample], n_bins), len(columns)) for sample in samples]
        costs = [_cost(block, n_bins, forest) for forest in forests] if n_tries > 1 else [0]
        trees += [tree.renamed(columns) for tree in forests[int(np.argmin(costs))]]
    return tuple(trees)


def _better(tree: MergeTree, binned: np.ndarray, rows: Ints, n_bins: int) -> MergeTree:
    """Other merges of the same features, if a sample of the node's rows finds them clearly better there."""
    chosen = rows[np.linspace(0, len(rows) - 1, NODE_SAMPLE).astype(np.int64)]
    sample = np.asfortranarray(binned[np.ix_(chosen, tree.columns)])
    found = _searched(sample, n_bins)
    costs = [
        _cost(sample, n_bins, [MergeTree(np.arange(len(tree.columns)), merges)])
        for merges in (found, tree.merges)
    ]
    return MergeTree(tree.columns, found) if costs[0] < CLEARLY * costs[1] else tree


def _cost(binned: np.ndarray, n_bins: int, trees: Sequence[MergeTree]) -> int:
    """Multiplications for all the rows as one node."""
    rows = [np.arange(len(binned))]
    return plan_sums(binned, rows, count_bins(binned, rows, n_bins), trees).n_multiplications


def _searched(sample: np.ndarray, n_bins: int) -> NDArray[np.int64]:
    """Merges of the features of some rows, int64 (n_merges, 2)."""
    labels = _labels(count_bins(sample, [np.arange(len(sample))], n_bins))[0]
    row_labels = np.take_along_axis(labels, sample.T.astype(np.int64), axis=1)
    return search_merges(
        np.ascontiguousarray(row_labels), labels.max(axis=1, initial=0).astype(np.int64), MAX_LEAVES
    )


def _packed(merges: NDArray[np.int64], n_leaves: int) -> list[MergeTree]:
    """A forest of merges as trees of at most MAX_LEAVES leaves; small ones share one."""
    members: dict[int, tuple[list[int], list[int]]] = {leaf: ([leaf], []) for leaf in range(n_leaves)}
    for t, (left, right) in enumerate(merges.tolist()):
        (leaves, own), (others, theirs) = members.pop(left), members.pop(right)
        members[n_leaves + t] = leaves + others, [*own, *theirs, t]
    packs: list[tuple[list[int], list[int]]] = []
    for leaves, own in sorted(members.values(), key=lambda member: -len(member[0])):
        pack = next((pack for pack in packs if len(pack[0]) + len(leaves) <= MAX_LEAVES), None)
        if pack is None:
            packs.append((leaves, own))
        else:
            pack[0].extend(leaves)
            pack[1].extend(own)
    return [_tree(merges, n_leaves, sorted(leaves), sorted(own)) for leaves, own in packs]


def _tree(merges: NDArray[np.int64], n_leaves: int, leaves: list[int], own: list[int]) -> MergeTree:
    """Some leaves and merges of a forest, numbered anew."""
    numbers = {old: new for new, old in enumerate([*leaves, *(n_leaves + t for t in own)])}
    renumbered = [[numbers[member] for member in merges[t].tolist()] for t in own]
    return MergeTree(np.array(leaves, np.int64), np.array(renumbered, np.int64).reshape(-1, 2))
