"""What the active party knows of trees that grow together: draws, sums, nodes, leaves. No channel and no cipher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ..growing.nodes import Division, Node, Split, divide_node
from ..tree import Tree, TreeBuilder, record_id
from .criteria import Least, PairSplits, best_splits
from .pair_sums import pair_histograms
from .settings import ForestSettings
from .values import Array, Ints, RowValues

EPSILON = float(np.finfo(np.float64).eps)  # as scikit-learn: a decrease that rounding alone keeps from enough
Slots = NDArray[np.int64]


@dataclass(eq=False)
class ForestNode(Node):
    """A node of one of the trees. `output` is the place of its tree in the group.

    All lists hold one entry a party, the active one first: slots ascending, histograms
    int64 (n_slots, n_bins, n_kinds) of the slots that are held.
    """

    drawn: list[Slots] = field(default_factory=list)  # may split the node
    held: list[Slots] = field(default_factory=list)  # have sums here
    asked: list[Slots] = field(
        default_factory=list
    )  # are summed here; the other held ones follow from the parent


@dataclass(frozen=True)
class Targets:
    """What all trees of a forest learn from.

    values : the integers that sums are made of.  targets : float64 (n_rows,), class numbers or values.
    weights : float64 (n_rows,) or None.  class_weights : float64 (n_classes,) or None.
    """

    values: RowValues
    targets: Array
    weights: Array | None
    class_weights: Array | None


class ForestRound:
    """Trees of a forest, grown together from the same encrypted targets.

    number : of the group.  first_tree : number of its first tree.
    times : uint16 (n_trees, n_rows), how often each tree drew each row.
    n_features : of each party, the active one first.
    """

    def __init__(
        self,
        number: int,
        first_tree: int,
        times: NDArray[np.uint16],
        targets: Targets,
        settings: ForestSettings,
        n_features: Sequence[int],
    ) -> None:
        self.n_categories = [np.zeros(n, dtype=np.int64) for n in n_features]  # forests split by numbers
        self.number, self._first_tree, self._times = number, first_tree, times
        self._targets, self._settings = targets, settings
        n_draws = int(times[0].sum())
        self._least_to_split, self._least_in_leaf = (
            settings.least_to_split(n_draws),
            settings.least_in_leaf(n_draws),
        )
        self._class_weights = self._weights_of_classes()
        self._out_of_bag: list[tuple[NDArray[np.int32], Array]] = []
        self._builders = [TreeBuilder() for _ in times]
        self._root_weights, self._least_weights = np.ones(len(times)), np.zeros(len(times))

    def roots(self) -> list[ForestNode]:
        """One per tree."""
        nodes = []
        for k, builder in enumerate(self._builders):
            in_tree = self._times[k] > 0
            rows = np.arange(len(in_tree), dtype=np.int32)
            if not self._settings.out_of_bag:
                rows = rows[in_tree]
            node = self._node(int(record_id(self._first_tree + k, 1)), k, builder, 0, rows)
            self._root_weights[k] = self._weight(node)
            self._least_weights[k] = self._root_weights[k] * self._settings.min_weight_fraction_leaf
            nodes.append(node)
        return nodes

    def trees(self) -> list[Tree]:
        """The finished trees."""
        return [builder.freeze() for builder in self._builders]

    def drawn_rows(self, node: Node) -> NDArray[np.int32]:
        """The node's rows, each as often as its tree drew it."""
        return np.repeat(node.rows, self._times[node.output][node.rows])

    def may_split(self, node: Node) -> bool:
        """A node that holds one class, or one value, stays a leaf."""
        if node.n_sampled < self._least_to_split:
            return False
        if self._weight(node) < 2 * self._least_weights[node.output]:
            return False
        values = self._targets.values
        if values.layout.n_signed:
            present = self._targets.targets[node.rows[self._times[node.output][node.rows] > 0]]
            return bool(present.min() < present.max())
        return int((node.total[: values.n_parts] > 0).sum()) > 1

    def own_histograms(
        self, nodes: list[Node], binned: np.ndarray, n_bins: int, n_jobs: int
    ) -> list[np.ndarray]:
        """Per node int64 (n_asked, n_bins, n_kinds), of the active party's features that are asked for."""
        of_forest = [cast("ForestNode", node) for node in nodes]
        return pair_histograms(
            binned,
            [self.drawn_rows(node) for node in nodes],
            [node.asked[0] for node in of_forest],
            self._targets.values.rows,
            n_bins,
        )

    # ---- splits

    def choose_splits(self, nodes: list[Node]) -> list[Split]:
        """The best split of each node by its drawn slots; nodes without one become leaves."""
        if not nodes:
            return []
        of_forest = [cast("ForestNode", node) for node in nodes]
        n_parties = len(of_forest[0].drawn)
        by_party = [self._best_of(of_forest, party) for party in range(n_parties)]
        ends = [np.cumsum([len(node.drawn[party]) for node in of_forest]) for party in range(n_parties)]
        splits = []
        for i, node in enumerate(of_forest):
            chosen = [
                slice(int(end[i]) - len(node.drawn[party]), int(end[i])) for party, end in enumerate(ends)
            ]
            split = self._split_of(node, by_party, chosen)
            if split is None:
                self.make_leaf(node)
            else:
                splits.append(split)
        return splits

    def _best_of(self, nodes: Sequence[ForestNode], party: int) -> PairSplits:
        """Of every node and every slot of a party that was drawn there, node by node."""
        drawn = [
            node.histograms[party][np.searchsorted(node.held[party], node.drawn[party])] for node in nodes
        ]
        n_drawn = [len(histograms) for histograms in drawn]
        trees = np.repeat([node.output for node in nodes], n_drawn)
        return best_splits(
            self._settings.criterion,
            self._targets.values,
            np.concatenate(drawn),
            np.repeat([node.total for node in nodes], n_drawn, axis=0),
            None if self._class_weights is None else self._class_weights[trees],
            Least(self._least_in_leaf, self._least_weights[trees]),
        )

    def _split_of(
        self, node: ForestNode, by_party: Sequence[PairSplits], chosen: Sequence[slice]
    ) -> Split | None:
        """The earlier of parties of equal gain, with all its slots that reach it; None where no split is enough."""
        best = [
            float(splits.gain[own].max(initial=-np.inf)) for splits, own in zip(by_party, chosen, strict=True)
        ]
        party = int(np.argmax(best))
        gain = max(best[party], 0.0) * self._targets.values.gain_unit
        decrease = gain / self._root_weights[node.output]
        if best[party] == -np.inf or decrease + EPSILON < self._settings.min_impurity_decrease:
            return None
        splits, own = by_party[party], chosen[party]
        equal = splits.gain[own] == best[party]
        return Split(
            node,
            party,
            gain,
            node.drawn[party][equal],
            splits.bin[own][equal],
            splits.missing_left[own][equal],
        )

    # ---- children and leaves

    def divide(self, split: Split, left: np.ndarray) -> Division:
        """Give a node its children. left : bool, one per row of the node."""
        return divide_node(split, left, self._node)

    def make_leaf(self, node: Node) -> None:
        """Class shares, or the mean, of the draws that fall here; rows that were not drawn are told it too."""
        times = self._times[node.output][node.rows].astype(np.float64)
        if self._targets.weights is not None:
            times *= self._targets.weights[node.rows]
        values = self._shares(node, times) if self._is_classes else self._mean(node, times)
        node.builder.set_leaf(node.position, values)
        if self._settings.out_of_bag:
            self._out_of_bag.append((node.rows[times == 0], values))

    def add_out_of_bag(self, sums: Array, counts: Ints) -> None:
        """Add the leaves of rows that trees did not draw. sums : (n_rows, n_values); counts : (n_rows,); in place."""
        for rows, values in self._out_of_bag:
            sums[rows] += values
            counts[rows] += 1

    @property
    def _is_classes(self) -> bool:
        return not self._targets.values.layout.n_signed

    def _shares(self, node: Node, weights: Array) -> Array:
        labels = self._targets.targets[node.rows].astype(np.int64)
        shares = np.bincount(labels, weights=weights, minlength=self._targets.values.n_parts)
        if self._class_weights is not None:
            shares = shares * self._class_weights[node.output]
        return np.asarray(shares / shares.sum())

    def _mean(self, node: Node, weights: Array) -> Array:
        centre = self._targets.values.centre
        deviations = self._targets.targets[node.rows] - centre
        return np.array([centre + (weights * deviations).sum() / weights.sum()])

    def _node(
        self, record: int, output: int, builder: TreeBuilder, position: int, rows: NDArray[np.int32]
    ) -> ForestNode:
        times = self._times[output][rows].astype(np.int64)
        total = times @ self._targets.values.rows[rows]
        node = ForestNode(record, output, builder, position, rows, int(times.sum()), total)
        builder.set_cover(position, self._weight(node))
        return node

    def _weight(self, node: Node) -> float:
        """Draws of the node, times their weights."""
        values = self._targets.values
        factors = None if self._class_weights is None else self._class_weights[node.output]
        return float(values.weights(node.total, values.parts(node.total, factors)))

    def _weights_of_classes(self) -> Array | None:
        """(n_trees, n_classes), or None where all are one."""
        n_trees = len(self._times)
        if not self._settings.balanced_subsample:
            given = self._targets.class_weights
            return None if given is None else np.tile(given, (n_trees, 1))
        labels, n_classes = self._targets.targets.astype(np.int64), self._targets.values.n_parts
        drawn = np.stack([np.bincount(labels, weights=times, minlength=n_classes) for times in self._times])
        shared = drawn.sum(axis=1, keepdims=True) / (drawn > 0).sum(axis=1, keepdims=True)
        return np.divide(shared, drawn, out=np.ones_like(drawn), where=drawn > 0)
