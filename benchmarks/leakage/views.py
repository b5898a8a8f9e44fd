"""What one party of a SecureBoost training really saw, read from the messages it sent and received.

An attack gets one of these views and nothing else. Trainings are recorded with ``encryption="none"``: the integers are
those that the active party decrypts with encryption on, and a passive party's view leaves the gradients out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from vflparty import InProcessNetwork, Message, codec
from vfltree.bin_groups import regroup, unpack_borders
from vfltree.bin_sums import expand_histograms, unpack_present
from vfltree.binning import BinMapper
from vfltree.growing.masks import unpack_masks
from vfltree.growing.models import decode_records, result_trees
from vfltree.growing.numbering import child_ids, round_trees, smaller_child
from vfltree.secureboost import ActiveParty, BoostSettings, PassiveParty
from vfltree.secureboost.messages import (
    GradientsForRound,
    Histograms,
    Joined,
    JoinTraining,
    RecordSplits,
    SplitsRecorded,
    SumChildren,
)
from vfltree.tree import apply_trees, record_id, record_parts, sum_leaves

KINDS = (GradientsForRound, Histograms, Joined, JoinTraining, RecordSplits, SplitsRecorded, SumChildren)
SHOP = "shop"


@dataclass(frozen=True)
class PassiveView:
    """features : float64 (n_rows, n_features).  rounds : per round, record id -> rows of the node, int32."""

    features: np.ndarray
    rounds: tuple[dict[int, np.ndarray], ...]


@dataclass(frozen=True)
class NodeSums:
    """What the active party knows of a node: it made the gradients, so it knows whose they are.

    Attributes
    ----------
    record : int
    output : int
        Whose gradients, of those a row has.
    rows : ndarray of int32
        Rows of the node that enter its sums.
    slots : ndarray of int64, shape (n_slots,)
        Numbers of the hidden features that are summed, in the secret order of the round.
    sums : ndarray of int64, shape (n_slots, n_bins, 2)
        Gradients and hessians per slot and bin: sent, or the rest of the total, or parent minus sibling.
    borders : ndarray of bool, shape (n_slots, n_bins)
        Bins that stand for a group; the others hold nothing.
    """

    record: int
    output: int
    rows: np.ndarray
    slots: np.ndarray
    sums: np.ndarray
    borders: np.ndarray


@dataclass(frozen=True)
class ActiveRound:
    """gradients : int64 (n_rows, 2, n_outputs), 0 where a row was not drawn.  nodes : those whose sums are known."""

    number: int
    gradients: np.ndarray
    nodes: tuple[NodeSums, ...]


@dataclass(frozen=True)
class ActiveView:
    rounds: tuple[ActiveRound, ...]


@dataclass(frozen=True)
class Judge:
    """What no attack sees and only its judge knows: the true bins, and which feature a slot was in each round."""

    bins: np.ndarray  # (n_rows, n_features)
    orders: dict[int, np.ndarray]  # round -> slot -> feature


@dataclass(frozen=True)
class Training:
    passive: PassiveView
    active: ActiveView
    judge: Judge
    test_scores: np.ndarray  # raw, float64 (n_test, n_outputs)


def train(
    blocks: Sequence[np.ndarray],
    targets: np.ndarray,
    test_blocks: Sequence[np.ndarray],
    *,
    min_rows_per_sum: int = 1,
    seed: int = 0,
    **settings: object,
) -> Training:
    """Train two parties in the clear, with every message recorded. blocks : active, passive."""
    passive = PassiveParty(blocks[1], name=SHOP, random_seed=seed, min_rows_per_sum=min_rows_per_sum)
    active = ActiveParty(
        blocks[0],
        targets,
        passive_parties=[SHOP],
        random_seed=seed,
        settings=BoostSettings(encryption="none", **settings),  # type: ignore[arg-type]
    )
    with InProcessNetwork({SHOP: passive}, record=True) as network:
        result = network.run(active)
        messages = [codec.decode(sent.frame, KINDS) for sent in network.transcript if _is_read(sent.frame)]
    trees, tables = result_trees(result), {0: decode_records(result.records), 1: passive.records}
    leaves = apply_trees(trees, tables, dict(enumerate(test_blocks)), len(test_blocks[0]))
    outputs = [tree % len(result.base_score) for tree in range(len(trees))]
    scores = sum_leaves(trees, leaves, outputs, result.base_score)
    rounds = tuple(_replay(messages))
    orders = {r.number: slot_order(seed, r.number, blocks[1].shape[1]) for r in rounds}
    return Training(
        PassiveView(blocks[1], tuple(r.rows_by_node for r in rounds)),
        ActiveView(tuple(ActiveRound(r.number, r.gradients, tuple(r.sums)) for r in rounds)),
        Judge(BinMapper.from_data(blocks[1]).transform(blocks[1]), orders),
        scores,
    )


def slot_order(seed: int, number: int, n_features: int) -> np.ndarray:
    """Slot -> feature of a round, as a passive party of this seed draws it."""
    return np.random.default_rng([seed, number]).permutation(n_features)


def _is_read(frame: bytes) -> bool:
    return any(kind.__name__.encode() in frame[:64] for kind in KINDS)


@dataclass
class _Round:
    """A round as far as its messages have been read."""

    number: int
    n_bins: int
    slots: np.ndarray
    trees: range
    gradients: np.ndarray
    sampled: np.ndarray  # bool (n_rows,)
    rows_by_node: dict[int, np.ndarray]
    histograms: dict[int, np.ndarray] = field(default_factory=dict)
    sums: list[NodeSums] = field(default_factory=list)
    asked: tuple[int, ...] = ()  # parents whose children the next histograms are of; none: the root

    def split(self, record: int, left: np.ndarray) -> None:
        rows = self.rows_by_node[record]
        self.rows_by_node.update(zip(child_ids(record), (rows[left], rows[~left]), strict=True))

    def narrow(self, slots: np.ndarray) -> None:
        """From now on these slots are summed."""
        places = np.searchsorted(self.slots, slots)
        self.histograms = {record: histogram[places] for record, histogram in self.histograms.items()}
        self.slots = slots

    def lengths(self, records: Sequence[int]) -> list[int]:
        return [len(self.rows_by_node[record]) for record in records]

    def add(self, record: int, histogram: np.ndarray, borders: np.ndarray) -> None:
        rows, output = self.rows_by_node[record], self._output(record)
        self.histograms[record] = histogram
        self.sums.append(NodeSums(record, output, rows[self.sampled[rows]], self.slots, histogram, borders))

    def read_sums(self, answer: Histograms) -> None:
        """Complete an answer as the active party does: fullest bins from totals, larger children from parents."""
        if self.asked:
            smaller, larger = zip(*map(self._pair, self.asked), strict=True)
            sources = np.arange(len(smaller))
        else:  # the roots of all trees are one node
            smaller, larger = tuple(map(root_of, self.trees)), ()
            sources = np.zeros(len(smaller), dtype=np.int64)
        present = unpack_present(
            answer.present, answer.fullest, (int(sources.max()) + 1, len(self.slots), self.n_bins)
        )
        outputs = np.array([self._output(record) for record in smaller])
        totals = [self.gradients[self.rows_by_node[record]].sum(axis=0) for record in smaller]
        known = expand_histograms(
            present,
            answer.fullest,
            np.frombuffer(answer.sums, dtype="<i8").reshape(-1, *self.gradients.shape[1:]),
            np.stack([total[:, output] for total, output in zip(totals, outputs, strict=True)]),
            sources,
            outputs,
        )
        borders = unpack_borders(answer.groups, known[: len(present)])
        borders = np.ones(present.shape, dtype=bool) if borders is None else borders
        for record, histogram, source in zip(smaller, known, sources, strict=True):
            self.add(record, histogram, borders[source])
        for parent, record, histogram, of in zip(self.asked, larger, known, borders, strict=False):
            self.add(record, regroup(self.histograms.pop(parent), of) - histogram, of)

    def _output(self, record: int) -> int:
        return int(record_parts(record)[0]) - self.trees.start

    def _pair(self, parent: int) -> tuple[int, int]:
        """The smaller and the larger child."""
        children = child_ids(parent)
        sizes = [int(self.sampled[self.rows_by_node[child]].sum()) for child in children]
        first = smaller_child(*sizes)
        return children[first], children[1 - first]


def root_of(tree: int) -> int:
    """The record id of a tree's root."""
    return int(record_id(tree, 1))


def _replay(messages: Iterable[Message]) -> Iterator[_Round]:
    """Every round that a passive party took part in."""
    current: _Round | None = None
    agreed: JoinTraining | None = None
    joined: Joined | None = None
    splits = np.zeros(0, dtype=np.int64)
    for message in messages:
        if isinstance(message, JoinTraining):
            agreed = message
        elif isinstance(message, Joined):
            joined = message
        elif isinstance(message, GradientsForRound):
            if current is not None:
                yield current
            assert agreed is not None and joined is not None
            current = _begin(message, agreed, joined)
        elif isinstance(message, RecordSplits):
            splits = message.nodes
        elif isinstance(message, (SplitsRecorded, SumChildren)):
            assert current is not None
            records = (message.nodes if isinstance(message, SumChildren) else splits).tolist()
            for record, left in zip(
                records, unpack_masks(message.left, current.lengths(records)), strict=True
            ):
                current.split(record, left)
            if isinstance(message, SumChildren):
                current.asked = tuple(records)
                if message.slots is not None:
                    current.narrow(message.slots)
        elif isinstance(message, Histograms):
            assert current is not None
            current.read_sums(message)
    if current is not None:
        yield current


def _begin(message: GradientsForRound, agreed: JoinTraining, joined: Joined) -> _Round:
    slots = np.arange(joined.n_features) if message.slots is None else message.slots
    sampled = np.full(agreed.n_rows, not message.rows.size)
    sampled[message.rows] = True
    gradients = np.zeros((agreed.n_rows, 2, agreed.n_outputs), dtype=np.int64)
    gradients[sampled] = np.frombuffer(message.gradients, dtype="<i8").reshape(-1, 2, agreed.n_outputs)
    trees = round_trees(message.round, agreed.n_outputs)
    rows = np.arange(agreed.n_rows, dtype=np.int32)
    nodes = dict.fromkeys(map(root_of, trees), rows)
    return _Round(message.round, joined.n_bins, slots, trees, gradients, sampled, nodes)
