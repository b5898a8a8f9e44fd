"""Which of the splits found are carried out, and when: level by level, or by gain as long as there are leaves left.

Leaf-wise growth (XGBoost's ``grow_policy="lossguide"``) splits the leaf of largest gain, one after the other. Asking
the passive parties for one node at a time would take two exchanges a leaf. But many splits are certain long before
their turn: all that can come before a node are the better ones known and whatever may grow below them, and if even
that leaves a leaf for the node, it will be split. So everything certain is carried out at once, nothing else is ever
asked for, and the tree is the one that would have grown node by node. Without a limit of leaves everything is certain,
and growth goes level by level.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from ..growing.nodes import Node, Split
from ..growing.numbering import child_ids
from ..tree import LEAF, Tree, heap_depth, record_parts
from .settings import BoostSettings

NO_LIMIT = 1 << 40


class LevelOrder:
    """All splits of a level, from left to right while the tree may have more leaves.

    max_leaves : of a tree; 0: no limit.
    """

    waiting = False  # what is not split at its turn is not split at all

    def __init__(self, max_leaves: int) -> None:
        self._max_leaves = max_leaves
        self._n_leaves: dict[int, int] = {}

    def choose(self, found: list[Split]) -> tuple[list[Split], list[Node]]:
        """The splits to carry out now, and the nodes that become leaves after all."""
        now, leaves = [], []
        for split in found:
            if self.is_full(split.node):
                leaves.append(split.node)
                continue
            tree = _tree(split.node)
            self._n_leaves[tree] = self._n_leaves.get(tree, 1) + 1
            now.append(split)
        return now, leaves

    def is_full(self, node: Node) -> bool:
        """Whether the node's tree has all its leaves."""
        return bool(self._max_leaves) and self._n_leaves.get(_tree(node), 1) >= self._max_leaves

    def finished(self, tree: Tree) -> Tree:
        """The tree, its nodes numbered in the order in which XGBoost makes them."""
        return tree


class LeafOrder:
    """By gain, one leaf more at a time; carried out in batches of splits that are certain.

    max_leaves : of a tree; 0: no limit.
    most_splits : how many inner nodes the part of a tree from a node down can have at most.
    """

    def __init__(self, max_leaves: int, most_splits: Callable[[Node], int]) -> None:
        self._budget = max_leaves - 1 if max_leaves else NO_LIMIT  # each split adds a leaf
        self._most_splits = most_splits
        self._found: dict[int, dict[int, Split]] = {}  # tree -> record -> its best split
        self._done: set[int] = set()  # records of nodes that have been split
        self._n_done: Counter[int] = Counter()  # by tree
        self._waiting: dict[int, Split] = {}

    @property
    def waiting(self) -> bool:
        """Whether splits wait for their turn."""
        return bool(self._waiting)

    def choose(self, found: list[Split]) -> tuple[list[Split], list[Node]]:
        """As `LevelOrder.choose`; nodes whose turn may come wait."""
        for split in found:
            self._found.setdefault(_tree(split.node), {})[split.node.record] = split
            self._waiting[split.node.record] = split
        now = [split for tree in sorted(self._found) for split in self._certain(self._found[tree])]
        for split in now:
            del self._waiting[split.node.record]
        self._done |= {split.node.record for split in now}
        self._n_done.update(_tree(split.node) for split in now)
        growing = {_tree(split.node) for split in now}
        # Where the next split is not certain, there is none: the leaves are used up.
        over = [record for record, split in self._waiting.items() if _tree(split.node) not in growing]
        return now, [self._waiting.pop(record).node for record in over]

    def is_full(self, node: Node) -> bool:
        """Whether the node's tree has all its leaves."""
        return self._n_done[_tree(node)] >= self._budget

    def finished(self, tree: Tree) -> Tree:
        """As `LevelOrder.finished`."""
        return numbered_by_gain(tree)

    def _certain(self, found: dict[int, Split]) -> Iterator[Split]:
        """Splits of one tree that nothing can crowd out any more, in the order of their turn."""
        turns = _Turns()
        root = next(iter(found))
        turns.add(found[root].gain, root)
        used = 0
        while turns and used < self._budget:
            record = turns.next()
            if record not in self._done:
                yield found[record]
                # What grows below it may come before everything that is not as good as the node itself.
                used += self._most_splits(found[record].node)
                continue
            used += 1
            for child in child_ids(record):
                turns.add(found[child].gain if child in found else None, child)


class _Turns:
    """The queue of leaf-wise growth: larger gains first, of equal gains the node that was made earlier."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, int]] = []
        self._n_made = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, gain: float | None, name: int) -> None:
        """A new node; None: it is not to be split."""
        if gain is not None:
            heapq.heappush(self._heap, (-gain, self._n_made, name))
        self._n_made += 1

    def next(self) -> int:
        return heapq.heappop(self._heap)[2]


Order = LevelOrder | LeafOrder


def make_order(settings: BoostSettings) -> Order:
    """The order of a round."""
    if settings.grow_policy == "depthwise":
        return LevelOrder(settings.max_leaves)
    return LeafOrder(settings.max_leaves, lambda node: most_splits(node, settings))


def most_splits(node: Node, settings: BoostSettings) -> int:
    """How many inner nodes can hang together from this node down, itself included: by depth, rows and weight."""
    depth = int(heap_depth(record_parts(node.record)[1]))
    most = min((1 << (settings.max_depth - depth)) - 1, node.n_sampled - 1)
    if settings.min_child_weight > 0:
        # One more than the weight is good for, since sums of floats may be rounded.
        weight = node.builder.cover(node.position)
        most = min(most, int(min(weight / settings.min_child_weight, NO_LIMIT)))
    return max(1, most)


def numbered_by_gain(tree: Tree) -> Tree:
    """The tree with its nodes in the order in which leaf-wise growth makes them, one split after the other."""
    order, turns = [0], _Turns()
    turns.add(float(tree.gain[0]) if tree.owner[0] != LEAF else None, 0)
    while turns:
        at = turns.next()
        for child in (int(tree.left[at]), int(tree.right[at])):
            order.append(child)
            turns.add(float(tree.gain[child]) if tree.owner[child] != LEAF else None, child)
    places = np.full(tree.n_nodes + 1, LEAF, dtype=np.int32)  # the last stands for "no child"
    places[order] = np.arange(tree.n_nodes)
    arrays = {field.name: getattr(tree, field.name)[order] for field in dataclasses.fields(tree)}
    arrays |= {name: places[arrays[name]] for name in ("left", "right")}
    return Tree(**arrays)


def _tree(node: Node) -> int:
    return int(record_parts(node.record)[0])
