"""A passive party: features, no labels, no key. It adds up sealed gradients and keeps its thresholds to itself."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from vflparty import Message, Party, RemoteProtocolError, RowsDisagreeError

from ..bin_sums import count_bins, fullest_bins
from ..binning import BinMapper
from ..joint_cells import MergeTree, find_trees, plan_sums, single_features
from ..rows import rows_digest
from ..sealing import Summer, make_summer
from ..tree import RecordTable, record_id
from .masks import pack_masks, unpack_masks
from .messages import (
    GradientsForRound,
    Histograms,
    Joined,
    JoinPrediction,
    JoinTraining,
    PassiveSetup,
    Records,
    RecordSplits,
    RouteRows,
    RowsRouted,
    SplitsRecorded,
    SumChildren,
    TrainingEnded,
)
from .models import decode_records, records_message
from .numbering import MAX_DEPTH, MAX_TREES, child_ids, round_trees, smaller_child
from .routing import RouteAnswers


@dataclass
class _Round:
    """What a passive party knows of the round in progress."""

    number: int
    level: int
    feature_order: np.ndarray  # slot -> column, secret
    binned: np.ndarray  # (n_rows, n_slots): bins, columns in that order
    trees: tuple[MergeTree, ...]  # slots to be summed together
    positions: np.ndarray  # row -> its place among the sampled rows, -1 where it was not drawn
    open_nodes: dict[int, np.ndarray]  # record id -> rows of the nodes at this level
    own_splits: dict[int, np.ndarray] = field(default_factory=dict)  # masks it has answered at this level


class PassiveParty(Party):
    """A party with features only.

    features : float64 (n_rows, n_features); NaN is missing.
    ids : identifiers of the rows, in the order agreed with the others (only a digest leaves); None: rows are rows.
    allow_weak_key : accept a key that is fit for tests only.
    cuts : bin borders per feature to use in place of quantiles.
    random_seed : of the secret feature order; None draws it from the system.
    """

    setup_message = PassiveSetup
    state_message = Records
    messages: ClassVar[tuple[type[Message], ...]] = (
        JoinTraining,
        GradientsForRound,
        RecordSplits,
        SumChildren,
        TrainingEnded,
        JoinPrediction,
        RouteRows,
    )

    def __init__(
        self,
        features: np.ndarray,
        *,
        ids: Collection[Any] | None = None,
        ids_digest: bytes | None = None,
        name: str = "passive",
        max_bin: int = 32,
        allow_weak_key: bool = False,
        cuts: Sequence[np.ndarray] | None = None,
        random_seed: int | None = None,
        n_jobs: int = 1,
        records: RecordTable | None = None,
    ) -> None:
        self.name = name
        self._features = np.asarray(features, dtype=np.float64)
        self._ids_digest = rows_digest(ids, len(self._features)) if ids_digest is None else ids_digest
        self._max_bin, self._cuts, self._allow_weak_key = max_bin, cuts, allow_weak_key
        self._seed = secrets.randbits(63) if random_seed is None else random_seed
        self._n_jobs = n_jobs
        self.records = RecordTable.empty() if records is None else records
        self._agreed: JoinTraining | None = None
        self._next_round = 0
        self._round: _Round | None = None
        self._summer: Summer | None = None
        self._answers: RouteAnswers | None = None

    @classmethod
    def from_setup(cls, setup: PassiveSetup) -> PassiveParty:
        return cls(
            setup.features,
            ids_digest=setup.ids_digest,
            name=setup.party,
            max_bin=setup.max_bin,
            allow_weak_key=setup.allow_weak_key,
            cuts=setup.cuts,
            random_seed=setup.random_seed,
            n_jobs=setup.n_jobs,
            records=decode_records(setup.records),
        )

    def receive(self, message: Message) -> Message:
        """As `Party.receive`; whatever array it is sent is a vector, so handlers need not ask."""
        for name, value in vars(message).items():
            if isinstance(value, np.ndarray) and value.ndim != 1:
                kind = type(message).__name__
                raise RemoteProtocolError(f"{kind}.{name} must be a vector, it has the shape {value.shape}")
        return super().receive(message)

    def export_state(self) -> Records:
        """Its half of the model, for itself to keep."""
        return records_message(self.records)

    # ---- training

    def on_join_training(self, msg: JoinTraining) -> Joined:
        """Once: bin the features, check that both hold the same rows, take the key."""
        if self._agreed is not None:
            raise RemoteProtocolError("training has been joined already")
        self._check_rows(msg.ids_digest, msg.n_rows)
        for name in ("n_rounds", "n_outputs", "max_depth"):
            if getattr(msg, name) < 1:
                raise RemoteProtocolError(f"{name} must be at least 1, got {getattr(msg, name)}")
        if msg.max_depth > MAX_DEPTH or msg.n_rounds * msg.n_outputs > MAX_TREES:
            raise RemoteProtocolError(
                f"{msg.n_rounds} rounds of {msg.n_outputs} trees of depth {msg.max_depth} were proposed, record ids "
                f"hold {MAX_TREES} trees of depth {MAX_DEPTH}"
            )
        self._summer = make_summer(
            msg.encryption,
            msg.public_key,
            allow_weak_key=self._allow_weak_key,
            n_rows=msg.n_rows,
            n_outputs=msg.n_outputs,
            fraction_bits=msg.fraction_bits,
            n_jobs=self._n_jobs,
            ledger=self.ledger,
        )
        self._mapper = BinMapper.from_data(self._features, self._max_bin, self._cuts)
        self._binned = self._mapper.transform(self._features)
        self._trees = self._find_trees(msg.encryption)
        self._agreed, self.records = msg, RecordTable.empty()
        return Joined(self._features.shape[1], self._mapper.n_bins)

    def on_gradients_for_round(self, msg: GradientsForRound) -> Histograms:
        """SecureBoost, Algorithm 1 at the root. A new secret feature order for the trees of this round."""
        agreed = self._agreement()
        if msg.round != self._next_round or msg.round >= agreed.n_rounds:
            raise RemoteProtocolError(
                f"gradients for round {msg.round}, expected round {self._next_round} of {agreed.n_rounds}"
            )
        positions, n_sampled = self._sample_positions(msg.rows, agreed.n_rows)
        assert self._summer is not None
        self._summer.load(msg.gradients, n_sampled)
        order = np.random.default_rng([self._seed, msg.round]).permutation(self._features.shape[1])
        all_rows = np.arange(agreed.n_rows, dtype=np.int32)
        trees = tuple(tree.renamed(np.argsort(order)) for tree in self._trees)
        self._round = _Round(
            msg.round, 0, order, np.asfortranarray(self._binned[:, order]), trees, positions,
            {int(record_id(tree, 1)): all_rows for tree in round_trees(msg.round, agreed.n_outputs)},
        )  # fmt: skip
        self._next_round += 1
        return self._sum_nodes([all_rows])  # one for all outputs: their trees share the root

    def on_record_splits(self, msg: RecordSplits) -> SplitsRecorded:
        """SecureBoost, Algorithm 2, step of the owner: keep feature and threshold, tell which rows go left."""
        current = self._current_round(msg.round, msg.level)
        n_splits = len(msg.nodes)
        bounds_fit = (
            len(msg.candidates) == n_splits + 1
            and msg.candidates[0] == 0
            and (np.diff(msg.candidates) > 0).all()
            and msg.candidates[-1] == len(msg.slots) == len(msg.bins) == len(msg.missing_left)
        )
        if not bounds_fit:
            raise RemoteProtocolError("candidates of the splits do not fit their bounds")
        if ((msg.slots < 0) | (msg.slots >= len(current.feature_order))).any():
            raise RemoteProtocolError(f"a split names a slot outside 0..{len(current.feature_order) - 1}")
        masks, records = [], []
        for i, node in enumerate(msg.nodes.tolist()):
            chosen = slice(msg.candidates[i], msg.candidates[i + 1])
            columns = current.feature_order[msg.slots[chosen]]
            best = int(columns.argmin())  # equal gains: the lowest column of this party
            column, bin_ = int(columns[best]), int(msg.bins[chosen][best])
            missing_left = bool(msg.missing_left[chosen][best])
            masks.append(self._split(current, node, column, bin_, missing_left))
            records.append((node, column, self._mapper.threshold(column, bin_), missing_left))
        if records:
            self.records = self.records.append(*zip(*records, strict=True))
        return SplitsRecorded(msg.round, msg.level, pack_masks(masks))

    def on_sum_children(self, msg: SumChildren) -> Histograms:
        """SecureBoost, Algorithm 1 one level down: sums of each split's smaller child (left if equal)."""
        agreed, current = self._agreement(), self._current_round(msg.round, msg.level - 1)
        if msg.level >= agreed.max_depth:
            raise RemoteProtocolError(f"level {msg.level} was asked, depth {agreed.max_depth} was agreed")
        parents = msg.nodes.tolist()
        if len(set(parents)) != len(parents):
            raise RemoteProtocolError("a split node is named twice")
        rows = [self._open_rows(current, node) for node in parents]
        masks = unpack_masks(msg.left, [len(r) for r in rows])
        children: dict[int, np.ndarray] = {}
        asked = []
        for node, node_rows, left in zip(parents, rows, masks, strict=True):
            own = current.own_splits.get(node)
            if own is not None and not np.array_equal(own, left):
                raise RemoteProtocolError(f"node {node} falls apart otherwise than its owner has answered")
            pair = node_rows[left], node_rows[~left]
            children.update(zip(child_ids(node), pair, strict=True))
            sizes = [int((current.positions[child] >= 0).sum()) for child in pair]
            if min(sizes) == 0:
                raise RemoteProtocolError(f"node {node} has a child without rows")
            asked.append(pair[smaller_child(*sizes)])
        current.level, current.open_nodes, current.own_splits = msg.level, children, {}
        return self._sum_nodes(asked)

    def on_training_ended(self, msg: TrainingEnded) -> None:
        agreed = self._agreement()
        if not 0 <= msg.n_rounds <= self._next_round:
            raise RemoteProtocolError(f"{msg.n_rounds} rounds were finished, {self._next_round} were begun")
        self._round, self._next_round = None, agreed.n_rounds  # nothing follows

    # ---- prediction

    def on_join_prediction(self, msg: JoinPrediction) -> Joined:
        """Agree on the rows; answers are given for these rows only."""
        self._check_rows(msg.ids_digest, msg.n_rows)
        if self._answers is not None:
            raise RemoteProtocolError("these rows are being predicted already")
        self._answers = RouteAnswers(self.records, self._features)
        return Joined(self._features.shape[1], 0)

    def on_route_rows(self, msg: RouteRows) -> RowsRouted:
        """One step of the paths: left or right at a record, for each (record, row)."""
        if self._answers is None:
            raise RemoteProtocolError("rows to predict have not been agreed")
        return RowsRouted(np.packbits(self._answers.answer(msg.records, msg.rows)))

    # ---- helpers

    def _check_rows(self, digest: bytes, n_rows: int) -> None:
        if n_rows != len(self._features):
            raise RowsDisagreeError(
                f"the active party holds {n_rows} rows, party {self.name!r} holds {len(self._features)}"
            )
        if digest != self._ids_digest:
            raise RowsDisagreeError(f"the row IDs of the active party and of party {self.name!r} differ")

    def _agreement(self) -> JoinTraining:
        if self._agreed is None:
            raise RemoteProtocolError("training has not been joined")
        return self._agreed

    def _current_round(self, number: int, level: int) -> _Round:
        if self._round is None or self._round.number != number or self._round.level != level:
            at = "none" if self._round is None else f"round {self._round.number}, level {self._round.level}"
            raise RemoteProtocolError(f"round {number}, level {level} was asked, in progress is {at}")
        return self._round

    @staticmethod
    def _open_rows(current: _Round, node: int) -> np.ndarray:
        try:
            return current.open_nodes[node]
        except KeyError:
            raise RemoteProtocolError(f"node {node} is not open at level {current.level}") from None

    @staticmethod
    def _sample_positions(rows: np.ndarray, n_rows: int) -> tuple[np.ndarray, int]:
        if rows.size == 0:
            return np.arange(n_rows), n_rows
        if rows.min() < 0 or rows.max() >= n_rows or (np.diff(rows) <= 0).any():
            raise RemoteProtocolError("sampled rows must be ascending and within the agreed rows")
        positions = np.full(n_rows, -1, dtype=np.int64)
        positions[rows] = np.arange(len(rows))
        return positions, len(rows)

    def _find_trees(self, encryption: str) -> tuple[MergeTree, ...]:
        """Columns to be summed together; in the clear planning would cost more than it saves."""
        if encryption == "none":
            return single_features(self._binned.shape[1])
        with self.ledger.phase("plan sums"):
            return find_trees(self._binned, self._mapper.n_bins)

    def _sum_nodes(self, rows_by_node: list[np.ndarray]) -> Histograms:
        current = self._round
        assert current is not None and self._summer is not None
        sampled = [rows[current.positions[rows] >= 0] for rows in rows_by_node]
        with self.ledger.phase("plan sums"):
            counts = count_bins(current.binned, sampled, self._mapper.n_bins)
            plan = plan_sums(current.binned, sampled, counts, current.trees, current.positions)
        sums = self._summer.sum(plan)
        return Histograms(
            current.number,
            current.level,
            np.packbits(counts > 0),
            fullest_bins(counts),
            plan.n_values,
            sums,
        )

    def _split(self, current: _Round, node: int, column: int, bin_: int, missing_left: bool) -> np.ndarray:
        """Which rows of the node go left, bool."""
        rows = self._open_rows(current, node)
        if node in current.own_splits:
            raise RemoteProtocolError(f"node {node} is split twice")
        if not 0 <= bin_ < self._mapper.n_bins - 1:
            raise RemoteProtocolError(f"a split names bin {bin_} of {self._mapper.n_bins - 1}")
        bins = self._binned[rows, column]
        left = self._mapper.goes_left(bins, bin_, missing_left)
        current.own_splits[node] = left
        return left
