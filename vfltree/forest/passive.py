"""A passive party: features, no labels, no key. It adds up sealed targets of drawn slots and keeps its thresholds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vflparty import Message, RemoteProtocolError

from ..bin_groups import BinGroups
from ..bin_sums import count_bins
from ..growing.follower import OpenNodes, TreeFollower
from ..growing.grouping import NodeGroups
from ..growing.numbering import MAX_DEPTH, MAX_TREES, child_ids, smaller_child
from ..growing.rules import SplitRule
from ..sealing import SlotLayout, make_summer
from ..tree import RecordTable, record_id, record_parts
from .groups import TREES_AT_ONCE
from .messages import (
    DivideNodes,
    GrowTrees,
    Histograms,
    Joined,
    JoinForest,
    JoinPrediction,
    OpenSlots,
    RecordSplits,
    RouteRows,
    SumSlots,
    TargetsOfForest,
    TrainingEnded,
)
from .pair_sums import fullest_of_pairs, plan_pairs, varied_features

MAX_SLOTS = 4095  # numbers in a row: a peer that claims more would take the memory of this process


@dataclass
class OpenTrees(OpenNodes):
    """Trees that grow together, each from rows of its own and under a feature order of its own."""

    first_tree: int
    orders: NDArray[np.int64]  # int64 (n_trees, n_features): slot -> column, secret
    times: (
        NDArray[np.uint16] | None
    )  # uint16 (n_trees, n_rows): how often each tree drew each row; None: once
    groups: list[
        NodeGroups
    ]  # of each tree's bins that are summed as one, over columns; empty: there are none
    summed: bool = False  # the sums of this level have been given

    def sampled(self, node: int, rows: np.ndarray) -> np.ndarray:
        return rows if self.times is None else np.repeat(rows, self.times[self._place(node)][rows])

    def columns(self, node: int, slots: np.ndarray) -> np.ndarray:
        columns: np.ndarray = self.orders[self._place(node)][slots]
        return columns

    def snap(self, rule: SplitRule, slot: int) -> SplitRule:
        if not self.groups:
            return rule
        groups = self.groups_of(rule.record)
        bin_, missing_left = groups.snap(rule.column, rule.bin, rule.missing_left)
        return replace(rule, bin=bin_, missing_left=missing_left)

    def groups_of(self, node: int) -> BinGroups:
        """The groups of an open node."""
        return self.groups[self._place(node)].of(node)

    def distinct(self, node: int) -> np.ndarray:
        """The open node's rows that enter sums, each once."""
        rows = self.rows(node)
        return rows if self.times is None else rows[self.times[self._place(node)][rows] > 0]

    def open_groups(self, parents: Sequence[int], count: Callable[[list[np.ndarray]], np.ndarray]) -> None:
        """Groups of the children of these nodes; count : rows of nodes to int64 (n_nodes, n_features, n_bins)."""
        smaller = []
        for parent in parents:
            left, right = child_ids(parent)
            sizes = [len(self.sampled(child, self.open_nodes[child])) for child in (left, right)]
            smaller.append((left, right)[smaller_child(*sizes)])
        for place, groups in enumerate(self.groups):
            nodes = [node for node in smaller if self._place(node) == place]
            if nodes:
                groups.open_children(nodes, count([self.distinct(node) for node in nodes]), self.open_nodes)

    def _place(self, node: int) -> int:
        return int(record_parts(node)[0]) - self.first_tree


class ForestPassive(TreeFollower):
    """A party with features only; parameters as `TreeFollower`. Here it joins a forest, and sums what is drawn."""

    messages: ClassVar[tuple[type[Message], ...]] = (
        JoinForest,
        TargetsOfForest,
        GrowTrees,
        SumSlots,
        RecordSplits,
        DivideNodes,
        TrainingEnded,
        JoinPrediction,
        RouteRows,
    )

    _agreed: JoinForest | None = None
    _has_targets = False
    _next_round = 0
    _next_tree = 0

    # ---- joining

    def on_join_forest(self, msg: JoinForest) -> Joined:
        """Once: bin the features, check that both hold the same rows, take the key."""
        if self._agreed is not None:
            raise RemoteProtocolError("training has been joined already")
        self._check_rows(msg.ids_digest, msg.n_rows)
        _check_agreement(msg)
        self._summer = make_summer(
            msg.encryption,
            msg.public_key,
            SlotLayout(msg.n_rows, msg.n_signed, msg.n_weights, msg.n_counts, msg.fraction_bits),
            allow_weak_key=self._allow_weak_key,
            n_jobs=self._n_jobs,
            ledger=self.ledger,
        )
        self._bin_own()
        self._columns = np.asfortranarray(self._binned)
        self._trees = self._find_trees(msg.encryption)
        self._agreed, self.records = msg, RecordTable.empty()
        return Joined(self._features.shape[1], self._mapper.n_bins)

    def on_targets_of_forest(self, msg: TargetsOfForest) -> None:
        """Once, for all trees."""
        agreed = self._agreement()
        if self._has_targets:
            raise RemoteProtocolError("the targets have been sent already")
        assert self._summer is not None
        self._summer.load(msg.targets, agreed.n_rows)
        self._has_targets = True

    # ---- growing

    def on_grow_trees(self, msg: GrowTrees) -> OpenSlots:
        """Open the roots of some trees, each under a secret feature order drawn anew."""
        agreed = self._agreement()
        if not self._has_targets:
            raise RemoteProtocolError("trees before the targets")
        if msg.round != self._next_round:
            raise RemoteProtocolError(f"trees of round {msg.round}, expected round {self._next_round}")
        if not 1 <= msg.n_trees <= min(TREES_AT_ONCE, agreed.n_trees - self._next_tree):
            raise RemoteProtocolError(
                f"{msg.n_trees} trees after {self._next_tree}, {agreed.n_trees} were agreed, {TREES_AT_ONCE} at once"
            )
        times = _times_drawn(msg, agreed.n_rows)
        trees = range(self._next_tree, self._next_tree + msg.n_trees)
        n_features = self._features.shape[1]
        orders = np.stack([np.random.default_rng([self._seed, t]).permutation(n_features) for t in trees])
        all_rows = np.arange(agreed.n_rows, dtype=np.int32)
        roots = {}
        for place, tree in enumerate(trees):
            drawn = None if times is None or agreed.out_of_bag else times[place] > 0
            roots[int(record_id(tree, 1))] = all_rows if drawn is None else all_rows[drawn]
        self._round = current = OpenTrees(
            msg.round, 0, np.arange(n_features), roots, trees.start, orders, times, []
        )
        if self._min_rows > 1:
            current.groups = [NodeGroups(self._min_rows) for _ in trees]
            for root, groups in zip(roots, current.groups, strict=True):
                groups.open_roots([root], self._count([current.distinct(root)])[0])
        self._next_round, self._next_tree = msg.round + 1, trees.stop
        return self._open_slots(current)

    def on_sum_slots(self, msg: SumSlots) -> Histograms:
        """SecureBoost, Algorithm 1 for some slots of some nodes; each node once a level."""
        current = self._open_trees(msg.round, msg.level)
        if current.summed:
            raise RemoteProtocolError(f"the sums of level {msg.level} have been given already")
        nodes = msg.nodes.tolist()
        slots = _slots_by_node(msg, len(current.slots))
        rows = [current.sampled(node, current.rows(node)) for node in nodes]
        columns = [current.columns(node, chosen) for node, chosen in zip(nodes, slots, strict=True)]
        assert self._summer is not None
        with self.ledger.phase("plan sums"):
            groups = [current.groups_of(node) for node in nodes] if current.groups else None
            merged = None if groups is None else [of.group for of in groups]
            plan, counts = plan_pairs(self._columns, rows, columns, self._trees, self._mapper.n_bins, merged)
        sums = self._summer.sum(plan)
        current.summed = True
        borders = [of.borders[chosen] for of, chosen in zip(groups or (), columns, strict=False)]
        return Histograms(
            msg.round,
            msg.level,
            np.packbits(counts > 0),
            fullest_of_pairs(counts),
            plan.n_values,
            sums,
            groups=np.packbits(np.concatenate([np.zeros((0, counts.shape[1]), np.bool_), *borders])),
        )

    def on_divide_nodes(self, msg: DivideNodes) -> OpenSlots:
        """Open the children of split nodes."""
        agreed, current = self._agreement(), self._open_trees(msg.round, msg.level - 1)
        if msg.level >= agreed.max_depth:
            raise RemoteProtocolError(f"level {msg.level} was asked, depth {agreed.max_depth} was agreed")
        current.divide(msg.nodes, msg.left)
        if current.groups:
            current.open_groups(msg.nodes.tolist(), self._count)
        current.summed = False
        return self._open_slots(current)

    def on_training_ended(self, msg: TrainingEnded) -> None:
        agreed = self._agreement()
        if not 0 <= msg.n_rounds <= self._next_round:
            raise RemoteProtocolError(f"{msg.n_rounds} rounds were finished, {self._next_round} were begun")
        self._round, self._next_tree = None, agreed.n_trees  # nothing follows

    # ---- helpers

    def _open_slots(self, current: OpenTrees) -> OpenSlots:
        varied = [
            self._varied(current, node)[current.columns(node, current.slots)] for node in current.open_nodes
        ]
        return OpenSlots(current.number, current.level, np.packbits(np.array(varied, dtype=np.bool_)))

    def _varied(self, current: OpenTrees, node: int) -> NDArray[np.bool_]:
        """Which columns have rows of the node in two bins, or groups, at least."""
        if current.groups:
            filled = (current.groups_of(node).group_counts > 0).sum(axis=1)
            return np.asarray(filled > 1)
        return varied_features(self._columns, current.distinct(node))

    def _count(self, rows_by_node: list[np.ndarray]) -> np.ndarray:
        return count_bins(self._columns, rows_by_node, self._mapper.n_bins)

    def _open_trees(self, number: int, level: int) -> OpenTrees:
        current = self._current_round(number, level)
        assert isinstance(current, OpenTrees)
        return current

    def _agreement(self) -> JoinForest:
        if self._agreed is None:
            raise RemoteProtocolError("training has not been joined")
        return self._agreed


def _check_agreement(msg: JoinForest) -> None:
    for name in ("n_rows", "n_trees", "max_depth"):
        if getattr(msg, name) < 1:
            raise RemoteProtocolError(f"{name} must be at least 1, got {getattr(msg, name)}")
    if msg.max_depth > MAX_DEPTH or msg.n_trees > MAX_TREES:
        raise RemoteProtocolError(
            f"{msg.n_trees} trees of depth {msg.max_depth} were proposed, record ids hold {MAX_TREES} trees of "
            f"depth {MAX_DEPTH}"
        )
    kinds = (msg.n_signed, msg.n_weights, msg.n_counts)
    if min(kinds) < 0 or not 1 <= sum(kinds) <= MAX_SLOTS:
        raise RemoteProtocolError(f"rows of {kinds} signed numbers, weights and counts cannot be")


def _times_drawn(msg: GrowTrees, n_rows: int) -> NDArray[np.uint16] | None:
    """(n_trees, n_rows); a tree draws between one and n_rows rows, so that sums fit the slots that were agreed."""
    if not msg.times.size:
        return None
    if msg.times.size != msg.n_trees * n_rows:
        raise RemoteProtocolError(
            f"draws of {msg.n_trees} trees from {n_rows} rows were expected, got {msg.times.size} numbers"
        )
    times = msg.times.reshape(msg.n_trees, n_rows)
    drawn = times.sum(axis=1, dtype=np.int64)
    if drawn.min() < 1 or drawn.max() > n_rows:
        raise RemoteProtocolError(
            f"a tree may draw between 1 and {n_rows} rows, got {drawn.min()} to {drawn.max()}"
        )
    return times


def _slots_by_node(msg: SumSlots, n_slots: int) -> list[NDArray[np.int64]]:
    nodes, bounds = msg.nodes, msg.bounds
    fits = (
        len(nodes) > 0
        and len(bounds) == len(nodes) + 1
        and bounds[0] == 0
        and (np.diff(bounds) > 0).all()
        and bounds[-1] == len(msg.slots)
    )
    if not fits or len(np.unique(nodes)) != len(nodes):
        raise RemoteProtocolError("the slots to be summed do not fit their nodes")
    if ((msg.slots < 0) | (msg.slots >= n_slots)).any():
        raise RemoteProtocolError(f"a slot outside 0..{n_slots - 1} was asked")
    slots = [msg.slots[a:b].astype(np.int64) for a, b in pairwise(bounds.tolist())]
    if any((np.diff(chosen) <= 0).any() for chosen in slots):
        raise RemoteProtocolError("the slots of a node must be ascending")
    return slots
