"""A round of one tree for all outputs, whose leaves hold a value for each: ``multi_strategy="multi_output_tree"``."""

from __future__ import annotations

import numpy as np

from ..growing.nodes import Node
from ..growing.numbering import round_trees
from ..histogram import build_histograms
from ..limited_splits import Limits
from ..multi_output import Outputs, best_multi_output_splits
from ..splitting import BestSplits, leaf_values
from ..tree import TreeBuilder, record_id
from .nodes import BoostRound

ALL_OUTPUTS = 0  # in place of an output's number: sums of all outputs stand side by side


class VectorRound(BoostRound):
    """As `BoostRound`; sums of nodes and bins are int64 (..., 2 n_outputs): all outputs' g, then all outputs' h."""

    def roots(self) -> list[Node]:
        """The one there is."""
        (tree,) = round_trees(self.number, 1)
        rows = np.arange(len(self._raw), dtype=np.int32)
        return [self._node(int(record_id(tree, 1)), ALL_OUTPUTS, TreeBuilder(), 0, rows)]

    def may_split(self, node: Node) -> bool:
        """A split can gain only by an output that is heavy enough for a leaf."""
        if self._order.is_full(node):
            return False
        heaviest = (node.total[len(node.total) // 2 :] * self.quantized.h_unit).max()
        return node.n_sampled >= 2 and bool(heaviest >= self._rules.min_child_weight)

    def make_leaf(self, node: Node) -> None:
        values = np.array([self._value_of(node, output) for output in range(self._raw.shape[1])])
        node.builder.set_leaf(node.position, values)
        self._raw[node.rows] += values  # in double precision, as prediction adds them

    def own_histograms(
        self, nodes: list[Node], binned: np.ndarray, n_bins: int, n_jobs: int
    ) -> list[np.ndarray]:
        """Per node int64 (n_features, n_bins, 2 n_outputs), of the active party's features."""
        starts = np.concatenate([[0], np.cumsum([len(node.rows) for node in nodes])])
        rows = np.concatenate([node.rows for node in nodes])
        return list(
            build_histograms(binned, rows, starts, self.quantized.g, self.quantized.h, n_bins, n_jobs)
        )

    def _node(self, record: int, output: int, builder: TreeBuilder, position: int, rows: np.ndarray) -> Node:
        total = np.concatenate([self.quantized.g[rows].sum(axis=0), self.quantized.h[rows].sum(axis=0)])
        node = Node(record, output, builder, position, rows, int(self.sampled[rows].sum()), total)
        builder.set_cover(position, self._weight(node))
        return node

    def _best_splits(
        self, sums: np.ndarray, nodes: list[Node], n_categories: np.ndarray, limits: Limits | None
    ) -> BestSplits:
        assert limits is None  # monotone constraints were refused
        totals = np.stack([node.total for node in nodes])
        outputs = Outputs(self.quantized.g_unit, self.quantized.h_unit, self._rules)
        return best_multi_output_splits(sums, totals, outputs, n_categories, self._category_rules)

    def _value_of(self, node: Node, output: int) -> float:
        n_outputs = len(node.total) // 2
        total_g, total_h = node.total[[output]], node.total[[n_outputs + output]]
        units = self._units(output)
        return float(
            leaf_values(total_g, total_h, *units, self._rules, self._learning_rate, self._raw.dtype)[0]
        )

    def _weight(self, node: Node) -> float:
        """The node's sum of hessians, over all outputs."""
        return float((node.total[len(node.total) // 2 :] * self.quantized.h_unit).sum())
