"""What the active party knows of a round: gradients as integers, and the trees they grow. No channel and no cipher."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..category_splits import CategoryRules, best_mixed_splits
from ..growing.nodes import Division, Node, Split, divide_node
from ..growing.numbering import round_trees
from ..histogram import build_histograms
from ..limited_splits import Limits, child_bounds
from ..losses import Quantized
from ..splitting import BestSplits, SplitRules, choose, leaf_values
from ..tree import Tree, TreeBuilder, heap_depth, record_id, record_parts
from .order import LevelOrder, Order
from .sampling import ColumnSample

Bounds = tuple[float, float]  # lower and upper
FREE: Bounds = (-np.inf, np.inf)

# Sampled rows of a leaf (int32, ascending) and its output -> its value before the learning rate.
Refit = Callable[[np.ndarray, int], float]


class BoostRound:
    """One round: a tree per output, grown together from the same gradients.

    number : of the round.
    quantized : gradients of all rows; those that were not sampled hold zeros, so that they change no sum.
    sampled : bool (n_rows,).
    raw : float32 or float64 (n_rows, n_outputs), raw scores; every leaf adds its value to its rows, in place.
    columns : which slots were drawn; None: all of every party.
    refit : gives the values of leaves in place of the usual formula.
    order : which splits are carried out, and when.

    Attributes
    ----------
    signs : per party int8 (n_features,), monotone constraints by slot; None: no party has any. Set with the first sums.
    """

    signs: list[np.ndarray] | None = None

    def __init__(
        self,
        number: int,
        quantized: Quantized,
        sampled: np.ndarray,
        raw: np.ndarray,
        rules: SplitRules,
        learning_rate: float,
        category_rules: CategoryRules,
        columns: ColumnSample | None = None,
        refit: Refit | None = None,
        order: Order | None = None,
    ) -> None:
        self.number, self.quantized, self.sampled = number, quantized, sampled
        self._raw, self._rules, self._learning_rate = raw, rules, learning_rate
        self._category_rules = category_rules
        self._columns, self._refit, self._order = columns, refit, order or LevelOrder(0)
        self.n_categories: list[np.ndarray] = []

    @property
    def sampled_gradients(self) -> tuple[np.ndarray, np.ndarray]:
        """Gradients and hessians of the sampled rows, int64 (n_sampled, n_outputs) each: what is sealed."""
        return self.quantized.g[self.sampled], self.quantized.h[self.sampled]

    def roots(self) -> list[Node]:
        """One per output."""
        n_rows, n_outputs = self._raw.shape
        rows = np.arange(n_rows, dtype=np.int32)
        return [
            self._node(int(record_id(tree, 1)), output, TreeBuilder(), 0, rows)
            for output, tree in enumerate(round_trees(self.number, n_outputs))
        ]

    def choose_splits(self, nodes: list[Node]) -> list[Split]:
        """The splits to carry out now: of each node the best over the bins of every party, as far as it is its turn.

        nodes : new ones, with histograms. Those without a split become leaves, and so do those whose turn never comes.
        """
        groups: dict[tuple[int, int], list[Node]] = {}
        for node in nodes:
            groups.setdefault((node.output, self._depth(node)), []).append(node)
        found = [split for group in sorted(groups) for split in self._best_of(groups[group], group[1])]
        now, leaves = self._order.choose(found)
        for node in leaves:
            self.make_leaf(node)
        return now

    @property
    def waiting(self) -> bool:
        """Whether nodes wait for their turn to be split."""
        return self._order.waiting

    def trees(self, builders: list[TreeBuilder]) -> list[Tree]:
        """The trees that have grown."""
        return [self._order.finished(builder.freeze()) for builder in builders]

    def divide(self, split: Split, left: np.ndarray) -> Division:
        """Give a node its children. left : bool, one per row of the node."""
        division = divide_node(split, left, self._node)
        if self.signs is not None:
            first, second = division.children
            first.bounds, second.bounds = self._bounds_below(split.node, first, second)
        return division

    def _bounds_below(self, node: Node, left: Node, right: Node) -> tuple[Bounds, Bounds]:
        """Of the leaf weights below both children."""
        low, high = node.bounds or FREE
        single = self._raw.dtype == np.float32
        return child_bounds(
            low, high, node.sign, self._child_weight(node, left), self._child_weight(node, right), single
        )

    def _child_weight(self, node: Node, child: Node) -> float:
        """Of a child within the bounds of its parent, before the learning rate."""
        units, dtype = self._units(node.output), self._raw.dtype
        total_g, total_h = child.total[:1], child.total[1:]
        return float(leaf_values(total_g, total_h, *units, self._rules, 1.0, dtype, node.bounds)[0])

    def may_split(self, node: Node) -> bool:
        """Both children of a split need rows and min_child_weight, so their parent needs twice that."""
        if self._order.is_full(node):
            return False
        return node.n_sampled >= 2 and self._weight(node) >= 2 * self._rules.min_child_weight

    def make_leaf(self, node: Node) -> None:
        value = self._leaf_value(node) if self._refit is None else self._refitted(node, self._refit)
        node.builder.set_leaf(node.position, value)
        self._raw[node.rows, node.output] += np.float64(value)  # in double precision, as prediction adds it

    def _leaf_value(self, node: Node) -> float:
        total_g, total_h = node.total[:1], node.total[1:]
        units = self._units(node.output)
        return float(
            leaf_values(
                total_g, total_h, *units, self._rules, self._learning_rate, self._raw.dtype, node.bounds
            )[0]
        )

    def _refitted(self, node: Node, refit: Refit) -> float:
        """Rounded as XGBoost does: the value, and its product with the learning rate, in the precision of raw."""
        rounded = self._raw.dtype.type
        value = rounded(refit(node.rows[self.sampled[node.rows]], node.output))
        return float(value * rounded(self._learning_rate))

    def own_histograms(
        self, nodes: list[Node], binned: np.ndarray, n_bins: int, n_jobs: int
    ) -> list[np.ndarray]:
        """Per node int64 (n_features, n_bins, 2), of the active party's features."""
        sums: dict[int, np.ndarray] = {}
        for output in {node.output for node in nodes}:
            group = [node for node in nodes if node.output == output]
            starts = np.concatenate([[0], np.cumsum([len(node.rows) for node in group])])
            rows = np.concatenate([node.rows for node in group])
            g, h = self.quantized.g[:, output], self.quantized.h[:, output]
            built = build_histograms(binned, rows, starts, g, h, n_bins, n_jobs)
            sums.update(zip((node.record for node in group), built, strict=True))
        return [sums[node.record] for node in nodes]

    def _node(self, record: int, output: int, builder: TreeBuilder, position: int, rows: np.ndarray) -> Node:
        g, h = self.quantized.g[rows, output], self.quantized.h[rows, output]
        n_sampled = int(self.sampled[rows].sum())
        node = Node(record, output, builder, position, rows, n_sampled, np.array([g.sum(), h.sum()]))
        builder.set_cover(position, self._weight(node))
        return node

    def _best_of(self, nodes: list[Node], depth: int) -> list[Split]:
        """`choose_splits` for nodes of one output and depth."""
        bests: list[BestSplits] = []
        for party, of_party in enumerate(zip(*(node.histograms for node in nodes), strict=True)):
            sums = np.stack(of_party)
            n_categories = self.n_categories[party]
            if self._columns is not None:
                sums = sums[:, self._columns.places(depth, party)]
                n_categories = n_categories[self._columns.at(depth)[party]]
            bests.append(self._best_splits(sums, nodes, n_categories, self._limits(nodes, party, depth)))
        choice = choose(bests, self._rules)
        splits = []
        for i, node in enumerate(nodes):
            party, slots = int(choice.party[i]), choice.slots[i]
            if party < 0:
                self.make_leaf(node)
                continue
            best = bests[party]
            chosen = best.bin[i, slots], best.missing_left[i, slots]
            right = None if best.right is None else best.right[i, slots]
            if self._columns is not None:
                slots = self._columns.at(depth)[party][slots].astype(np.int64)
            if self.signs is not None:
                node.sign = int(self.signs[party][slots[0]])  # of several, the owner says which one it takes
            splits.append(Split(node, party, float(choice.gain[i]), slots, *chosen, right))
        return splits

    def _best_splits(
        self, sums: np.ndarray, nodes: list[Node], n_categories: np.ndarray, limits: Limits | None
    ) -> BestSplits:
        """Of one party's features. sums : int64 (n_nodes, n_features, n_bins, 2)."""
        totals = np.stack([node.total for node in nodes])
        return best_mixed_splits(
            sums[..., 0], sums[..., 1], totals[:, 0], totals[:, 1], *self._units(nodes[0].output), self._rules,
            n_categories, self._category_rules, limits,
        )  # fmt: skip

    def _limits(self, nodes: list[Node], party: int, depth: int) -> Limits | None:
        """Constraints of a party's features at these nodes; None where no party has any."""
        if self.signs is None:
            return None
        signs = self.signs[party]
        if self._columns is not None:
            signs = signs[self._columns.at(depth)[party]]
        lower, upper = np.array([node.bounds or FREE for node in nodes]).T
        return Limits(signs, lower, upper)

    @staticmethod
    def _depth(node: Node) -> int:
        return int(heap_depth(record_parts(node.record)[1]))

    def _weight(self, node: Node) -> float:
        """The node's sum of hessians."""
        return float(node.total[1]) * self._units(node.output)[1]

    def _units(self, output: int) -> tuple[float, float]:
        return float(self.quantized.g_unit[output]), float(self.quantized.h_unit[output])
