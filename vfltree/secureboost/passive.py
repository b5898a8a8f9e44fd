"""A passive party: features, no labels, no key. It adds up sealed gradients and keeps its thresholds to itself."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Self, cast

import numpy as np

from vflparty import Message, RemoteProtocolError, RowsDisagreeError, codec

from ..growing.checks import check_table
from ..growing.follower import OpenRound, TreeFollower
from ..growing.models import decode_categories, record_table
from ..growing.numbering import MAX_DEPTH, MAX_TREES, round_trees
from ..growing.routing import RouteAnswers
from ..limited_splits import check_ordered
from ..sealing import PairLayout, make_summer
from ..tree import heap_depth, record_id, record_parts
from .checkpoint import Checkpoint, passive_checkpoint
from .continuation import continued
from .messages import (
    EvaluationRows,
    GradientsForRound,
    Histograms,
    Joined,
    JoinPrediction,
    JoinTraining,
    KeepRounds,
    PassiveSetup,
    Records,
    RecordSplits,
    RouteRows,
    RowsRouted,
    SplitsRecorded,
    SumChildren,
    TrainingEnded,
)


class PassiveParty(TreeFollower):
    """A party with features only; parameters as `TreeFollower`. Here it joins, and sums gradients."""

    messages: ClassVar[tuple[type[Message], ...]] = (
        JoinTraining,
        GradientsForRound,
        RecordSplits,
        SumChildren,
        TrainingEnded,
        JoinPrediction,
        RouteRows,
        KeepRounds,
    )

    _evaluation: EvaluationRows | None = None
    _checkpoint: Checkpoint | None = None
    _kept: tuple[str, int] | None = None  # training and finished rounds of the checkpoint
    _continues = False
    _agreed: JoinTraining | None = None
    _next_round = 0
    _begun = _ended = False  # some round, and the training

    @classmethod
    def from_setup(cls, setup: PassiveSetup) -> Self:
        party = super().from_setup(setup)
        party._continues = bool(setup.records)
        if setup.evaluation:
            party._evaluation = cast("EvaluationRows", codec.decode(setup.evaluation, (EvaluationRows,)))
        party._checkpoint = passive_checkpoint(setup)
        kept = None
        if party._checkpoint is not None:
            n_features = party._features.shape[1]
            kept = party._checkpoint.read(
                Records, lambda records: check_table(record_table(records), n_features)
            )
        if kept is not None:
            training, records, n_rounds, party._seed = kept
            party._kept, party.records = (training, n_rounds), record_table(records)
        return party

    def on_join_training(self, msg: JoinTraining) -> Joined:
        """Once: bin the features, check that both hold the same rows, take the key."""
        if self._agreed is not None:
            raise RemoteProtocolError("training has been joined already")
        self._check_rows(msg.ids_digest, msg.n_rows)
        if msg.max_leaves < 0:
            raise RemoteProtocolError(f"max_leaves must be at least 0, got {msg.max_leaves}")
        for name in ("n_rounds", "n_outputs", "max_depth"):
            if getattr(msg, name) < 1:
                raise RemoteProtocolError(f"{name} must be at least 1, got {getattr(msg, name)}")
        if msg.max_depth > MAX_DEPTH or msg.n_rounds * _n_trees(msg) > MAX_TREES:
            raise RemoteProtocolError(
                f"{msg.n_rounds} rounds of {_n_trees(msg)} trees of depth {msg.max_depth} were proposed, record ids "
                f"hold {MAX_TREES} trees of depth {MAX_DEPTH}"
            )
        if not 0 <= msg.first_round <= msg.n_rounds:
            raise RemoteProtocolError(f"round {msg.first_round} of {msg.n_rounds} was proposed as the first")
        self._summer = make_summer(
            msg.encryption,
            msg.public_key,
            PairLayout(msg.n_rows, msg.n_outputs, msg.fraction_bits),
            allow_weak_key=self._allow_weak_key,
            n_jobs=self._n_jobs,
            ledger=self.ledger,
        )
        self._check_finished(msg)
        self._check_evaluation(msg)
        finished = self.records.of_trees(0, round_trees(msg.n_finished, _n_trees(msg)).start)
        self._bin_own()
        if msg.n_finished:
            self.records = continued(finished, self.records)
        check_ordered(self._signs, self._mapper.n_categories)
        self._trees = self._find_trees(msg.encryption)
        self._agreed, self._next_round = msg, max(msg.first_round, msg.n_finished)
        return Joined(self._features.shape[1], self._mapper.n_bins, bool(self._signs.any()))

    def on_gradients_for_round(self, msg: GradientsForRound) -> Histograms:
        """SecureBoost, Algorithm 1 at the root. A new secret feature order for the trees of this round."""
        agreed = self._agreement()
        self._answers, self._begun = None, True
        if self._ended or msg.round != self._next_round or msg.round >= agreed.n_rounds:
            raise RemoteProtocolError(
                f"gradients for round {msg.round}, expected round {self._next_round} of {agreed.n_rounds}"
            )
        if msg.slots is not None and not msg.slots.size:
            self._round, self._next_round = None, msg.round + 1
            return _no_sums(msg.round)
        positions, n_sampled = _sample_positions(msg.rows, agreed.n_rows)
        assert self._summer is not None
        self._summer.load(msg.gradients, n_sampled)
        all_rows = np.arange(agreed.n_rows, dtype=np.int32)
        roots = {int(record_id(tree, 1)): all_rows for tree in round_trees(msg.round, _n_trees(agreed))}
        self._round = current = self._open_round(msg.round, self._trees, positions, roots, msg.slots)
        current.max_leaves = agreed.max_leaves
        self._next_round += 1
        root = next(iter(roots))  # one for all outputs: their trees share the root
        return self._signed(current, self._sum_nodes(current, {root: all_rows}))

    def _signed(self, current: OpenRound, answer: Histograms) -> Histograms:
        """The answer at the roots, with the constraints of the features in it."""
        if not self._signs.any():
            return answer
        return replace(answer, signs=self._signs[current.feature_order[current.slots]])

    def on_record_splits(self, msg: RecordSplits) -> SplitsRecorded:
        """As `TreeFollower.on_record_splits`; of equal features only this party knows which one it has taken."""
        answer = super().on_record_splits(msg)
        if not self._signs.any():
            return answer
        return replace(answer, signs=self._signs[self.records.columns[self.records.find(msg.nodes)]])

    def on_sum_children(self, msg: SumChildren) -> Histograms:
        """SecureBoost, Algorithm 1 one level down: sums of each split's smaller child (left if equal)."""
        agreed, current = self._agreement(), self._current_round(msg.round, msg.level - 1)
        depths = heap_depth(np.maximum(record_parts(msg.nodes)[1], 1)) + 1
        deepest = int(depths.max()) if agreed.max_leaves and len(depths) else msg.level
        if deepest >= agreed.max_depth:
            raise RemoteProtocolError(f"level {deepest} was asked, depth {agreed.max_depth} was agreed")
        assert isinstance(current, OpenRound)
        if msg.slots is not None:
            current.narrow(msg.slots)
        return self._sum_nodes(current, current.smaller_children(msg.nodes, msg.left))

    def on_training_ended(self, msg: TrainingEnded) -> None:
        agreed = self._agreement()
        if not 0 <= msg.n_rounds <= self._next_round:
            raise RemoteProtocolError(f"{msg.n_rounds} rounds were finished, {self._next_round} were begun")
        self._round, self._answers = None, None
        self._ended = True  # nothing follows
        self.records = self.records.of_trees(0, round_trees(msg.n_rounds, _n_trees(agreed)).start)

    def on_keep_rounds(self, msg: KeepRounds) -> None:
        """Write the checkpoint of the rounds that are finished."""
        agreed = self._agreement()
        if msg.n_rounds != self._next_round:
            raise RemoteProtocolError(
                f"{msg.n_rounds} finished rounds are to be kept, {self._next_round} were begun"
            )
        if self._checkpoint is not None:
            self._round = None  # the file holds every split of these rounds
            self._checkpoint.write(agreed.training, self.export_state(), msg.n_rounds, self._seed)

    def on_route_rows(self, msg: RouteRows) -> RowsRouted:
        """In training: rows to evaluate, at the last round's records only; the first question closes that round."""
        if self._agreed is not None and self._answers is None:
            if self._evaluation is None or self._ended or not self._begun:
                raise RemoteProtocolError(
                    "rows to evaluate have not been agreed, or no round has trees for them"
                )
            trees = round_trees(self._next_round - 1, _n_trees(self._agreed))
            self._round = None
            given = decode_categories(self._evaluation.categories)
            features = self.records.categories.recode(self._evaluation.features, given)
            self._answers = RouteAnswers(self.records.of_trees(trees.start, trees.stop), features)
        return super().on_route_rows(msg)

    def _check_finished(self, msg: JoinTraining) -> None:
        """The rounds that the active party takes as finished are in this party's table too."""
        if not 0 <= msg.n_finished < msg.n_rounds:
            raise RemoteProtocolError(f"{msg.n_finished} of {msg.n_rounds} rounds are said to be finished")
        if not msg.n_finished:
            return
        if self._kept is None:
            if not self._continues:
                raise ValueError(
                    f"{msg.n_finished} rounds are finished, this party has no checkpoint of them"
                )
            return
        training, n_rounds = self._kept
        if training != msg.training or n_rounds < msg.n_finished:
            raise ValueError(
                f"the active party's checkpoint holds {msg.n_finished} rounds of training {msg.training}, this "
                f"party's {n_rounds} of {training}"
            )

    def _check_evaluation(self, msg: JoinTraining) -> None:
        own = self._evaluation
        n_rows, digest = (0, b"") if own is None else (len(own.features), own.ids_digest)
        if (msg.n_evaluation_rows, msg.evaluation_digest) != (n_rows, digest):
            raise RowsDisagreeError(
                f"rows to evaluate: the active party holds {msg.n_evaluation_rows}, party {self.name!r} {n_rows}, "
                "or their IDs differ"
            )

    def _agreement(self) -> JoinTraining:
        if self._agreed is None:
            raise RemoteProtocolError("training has not been joined")
        return self._agreed


def _n_trees(agreed: JoinTraining) -> int:
    """Trees of a round."""
    return 1 if agreed.vector_leaves else agreed.n_outputs


def _no_sums(round_: int) -> Histograms:
    """The answer of a party of whose features none was drawn."""
    return Histograms(round_, 0, np.zeros(0, np.uint8), np.zeros((1, 0), np.int16), 0, b"")


def _sample_positions(rows: np.ndarray, n_rows: int) -> tuple[np.ndarray, int]:
    """Row -> its place among the sampled rows (-1: not drawn), and how many were."""
    if rows.size == 0:
        return np.arange(n_rows), n_rows
    if rows.min() < 0 or rows.max() >= n_rows or (np.diff(rows) <= 0).any():
        raise RemoteProtocolError("sampled rows must be ascending and within the agreed rows")
    positions = np.full(n_rows, -1, dtype=np.int64)
    positions[rows] = np.arange(len(rows))
    return positions, len(rows)
