"""What the active party knows of a growing node, of its split and of its children. No channel and no cipher."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ..tree import TreeBuilder
from .masks import pack_masks
from .numbering import child_ids, smaller_child
from .rules import BY_SET


@dataclass(eq=False)
class Node:
    """A node that may be split: where it stands, its rows and its sums."""

    record: int
    output: int
    builder: TreeBuilder
    position: int  # in the builder
    rows: np.ndarray  # int32, all rows that fall here, sampled or not
    n_sampled: int
    total: np.ndarray  # int64 (n_values,): what bins add up, over the node; boosting: gradient and hessian
    histograms: list[np.ndarray] = field(
        default_factory=list
    )  # per party int64 (n_features, n_bins, n_values)
    borders: list[np.ndarray | None] = field(
        default_factory=list
    )  # per party bool (n_features, n_bins), bins that stand for a group; None: all do
    bounds: tuple[float, float] | None = (
        None  # of the leaf weights from here down; None: nothing is constrained
    )
    sign: int = 0  # of the feature that splits it: its monotone constraint


@dataclass(frozen=True)
class Split:
    """A node, the party that owns its best split, and the candidates of equal gain."""

    node: Node
    party: int
    gain: float
    slots: np.ndarray  # int64 (n_candidates,), ascending
    bins: np.ndarray  # int32 (n_candidates,)
    missing_left: np.ndarray  # bool (n_candidates,)
    right: np.ndarray | None = (
        None  # bool (n_candidates, n_categories); None where the party has no categories
    )


def pack_sets(group: Sequence[Split], n_categories: np.ndarray) -> np.ndarray:
    """Sets of the candidates of a party's splits, as `RecordSplits.sets`. n_categories : per slot."""
    return pack_masks(
        [
            split.right[i, : n_categories[split.slots[i]]]
            for split in group
            if split.right is not None
            for i in np.flatnonzero(split.bins == BY_SET)
        ]
    )


@dataclass(frozen=True)
class Division:
    """A split that was carried out: the node, which of its rows go left (bool), and its children."""

    parent: Node
    left: np.ndarray
    children: tuple[Node, Node]

    @property
    def smaller(self) -> Node:
        """The child that passive parties sum."""
        return self.children[smaller_child(*(child.n_sampled for child in self.children))]

    @property
    def larger(self) -> Node:
        left, right = self.children
        return right if self.smaller is left else left


# record, output, builder, position in it, rows (int32) -> the node, with its sums.
MakeNode = Callable[[int, int, TreeBuilder, int, np.ndarray], Node]


def divide_node(split: Split, left: np.ndarray, make: MakeNode) -> Division:
    """Give a node its children. left : bool, one per row of the node."""
    node = split.node
    records = child_ids(node.record)
    positions = node.builder.split(node.position, split.party, split.gain)
    first, second = (
        make(record, node.output, node.builder, position, node.rows[side])
        for record, position, side in zip(records, positions, (left, ~left), strict=True)
    )
    return Division(node, left, (first, second))


class Growing(Protocol):
    """Trees that grow together, level by level: a round of boosting, or some trees of a forest."""

    number: int  # of the round
    n_categories: list[
        np.ndarray
    ]  # per party int64 (n_features,), 0 for numbers; set with the first histograms

    def choose_splits(self, nodes: list[Node]) -> list[Split]:
        """The best split of each node over the bins of every party; nodes without one become leaves."""

    def divide(self, split: Split, left: np.ndarray) -> Division:
        """Give a node its children. left : bool, one per row of the node."""

    def may_split(self, node: Node) -> bool:
        """Whether a split of this node could be allowed at all."""

    def make_leaf(self, node: Node) -> None:
        """End the branch here."""

    def own_histograms(
        self, nodes: list[Node], binned: np.ndarray, n_bins: int, n_jobs: int
    ) -> list[np.ndarray]:
        """Per node int64 (n_features, n_bins, n_values), of the active party's features."""
