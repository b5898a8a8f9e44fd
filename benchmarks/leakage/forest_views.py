"""What one party of a random forest really saw, in the shape of `views`: a tree stands where boosting has a round.

The gradient of a row is its label, as often as the tree drew it, and its hessian how often that was. So the same
attacks read forests. Sums of the larger child are the parent's less the smaller child's, where the active party forms
them; of a passive party's view all is in the messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from vflparty import InProcessNetwork, Message, codec
from vfltree.bin_groups import unpack_borders
from vfltree.binning import BinMapper
from vfltree.forest import ForestActive, ForestPassive, ForestSettings
from vfltree.forest.messages import DivideNodes, GrowTrees, RecordSplits, SplitsRecorded
from vfltree.forest.nodes import ForestNode
from vfltree.growing.masks import unpack_masks
from vfltree.growing.messages import ActiveResult
from vfltree.growing.models import decode_records, result_trees
from vfltree.growing.numbering import child_ids
from vfltree.tree import apply_trees, record_parts, sum_leaves

from .views import SHOP, ActiveRound, ActiveView, Judge, NodeSums, PassiveView, Training, root_of, slot_order

KINDS = (DivideNodes, GrowTrees, RecordSplits, SplitsRecorded)


class RecordingActive(ForestActive):
    """Keeps of every node what it knows: its draws, and the sums of the passive party's slots."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.times: list[np.ndarray] = []  # per tree, uint16 (n_rows,)
        self.sums: dict[int, list[NodeSums]] = {}  # by tree

    def _draw_rows(self, trees: range) -> Any:
        times = super()._draw_rows(trees)
        self.times += list(times)
        return times

    def _sum_slots(self, current: Any, level: int, nodes: Any) -> Any:
        yield from super()._sum_slots(current, level, nodes)
        if level == 0:
            for node in nodes:
                self._keep(node, node.borders[1])

    def _read_histograms(self, current: Any, level: int, party: str, answers: Any, *shape: Any) -> Any:
        opened, _ = super()._read_histograms(current, level, party, answers, *shape)
        return opened, unpack_borders(
            answers[party].groups, opened
        )  # those of the roots too, which say as much

    def _open_level(self, current: Any, level: int, divisions: Any) -> Any:
        nodes = yield from super()._open_level(current, level, divisions)
        for division in divisions:
            smaller, larger = cast("tuple[ForestNode, ForestNode]", (division.smaller, division.larger))
            if smaller.histograms:
                self._keep(smaller, smaller.borders[1])
                self._keep(larger, _larger_borders(smaller, larger))
        return nodes

    def _keep(self, node: ForestNode, borders: np.ndarray | None) -> None:
        counts = node.histograms[1]
        if not len(counts):
            return
        tree = int(record_parts(node.record)[0])
        sums = np.stack([counts[..., 1], counts.sum(axis=-1)], axis=-1)
        known = np.ones(counts.shape[:2], dtype=bool) if borders is None else borders
        rows = node.rows[self.times[tree][node.rows] > 0]
        self.sums.setdefault(tree, []).append(NodeSums(node.record, 0, rows, node.held[1], sums, known))


def _larger_borders(smaller: ForestNode, larger: ForestNode) -> np.ndarray | None:
    """Of what was asked its own, of what follows from the parent the smaller child's."""
    own, other = larger.borders[1], smaller.borders[1]
    if own is None or other is None:
        return None
    held, asked = larger.held[1], larger.asked[1]
    borders = np.zeros((len(held), other.shape[1]), dtype=bool)
    borders[np.searchsorted(held, asked)] = own
    shared = np.setdiff1d(held, asked, assume_unique=True)
    borders[np.searchsorted(held, shared)] = other[np.searchsorted(smaller.held[1], shared)]
    return borders


def train(
    blocks: Sequence[np.ndarray],
    targets: np.ndarray,
    test_blocks: Sequence[np.ndarray],
    *,
    min_rows_per_sum: int = 1,
    seed: int = 0,
    **settings: Any,
) -> Training:
    """Train two parties on two classes in the clear. blocks : active, passive.  test_scores : log-odds, 0 at a tie."""
    passive = ForestPassive(blocks[1], name=SHOP, random_seed=seed, min_rows_per_sum=min_rows_per_sum)
    active = RecordingActive(
        blocks[0], targets, passive_parties=[SHOP], random_seed=seed,
        settings=ForestSettings(encryption="none", n_classes=2, **settings),
    )  # fmt: skip
    with InProcessNetwork({SHOP: passive}, record=True) as network:
        result = cast("ActiveResult", codec.decode(network.run(active).model, (ActiveResult,)))
        messages = [
            codec.decode(sent.frame, KINDS)
            for sent in network.transcript
            if any(kind.__name__.encode() in sent.frame[:64] for kind in KINDS)
        ]
    trees, tables = result_trees(result), {0: decode_records(result.records), 1: passive.records}
    leaves = apply_trees(trees, tables, dict(enumerate(test_blocks)), len(test_blocks[0]))
    shares = sum_leaves(trees, leaves, [0] * len(trees), result.base_score) / len(trees)
    rounds = [
        ActiveRound(tree, np.stack([times * targets, times], axis=1)[:, :, None].astype(np.int64), nodes)
        for tree, times in enumerate(active.times)
        if (nodes := tuple(active.sums.get(tree, ())))
    ]
    return Training(
        PassiveView(blocks[1], tuple(_replay(messages))),
        ActiveView(tuple(rounds)),
        Judge(
            BinMapper.from_data(blocks[1]).transform(blocks[1]),
            {tree: slot_order(seed, tree, blocks[1].shape[1]) for tree in range(len(trees))},
        ),
        shares[:, [1]] - shares[:, [0]],
    )


def _replay(messages: Iterable[Message]) -> Iterator[dict[int, np.ndarray]]:
    """Per tree, record id -> rows of the node, as the passive party sees them."""
    rows_by_node: dict[int, np.ndarray] = {}
    n_trees, splits = 0, np.zeros(0, dtype=np.int64)
    for message in messages:
        if isinstance(message, GrowTrees):
            for times in message.times.reshape(message.n_trees, -1):
                rows_by_node[root_of(n_trees)] = np.flatnonzero(times).astype(np.int32)
                n_trees += 1
        elif isinstance(message, RecordSplits):
            splits = message.nodes
        elif isinstance(message, (SplitsRecorded, DivideNodes)):
            records = (message.nodes if isinstance(message, DivideNodes) else splits).tolist()
            sizes = [len(rows_by_node[record]) for record in records]
            for record, left in zip(records, unpack_masks(message.left, sizes), strict=True):
                rows = rows_by_node[record]
                rows_by_node.update(zip(child_ids(record), (rows[left], rows[~left]), strict=True))
    owners = record_parts(np.array(list(rows_by_node), dtype=np.int64))[0]
    for tree in range(n_trees):
        yield {
            record: rows
            for record, rows, owner in zip(rows_by_node, rows_by_node.values(), owners, strict=True)
            if owner == tree
        }
