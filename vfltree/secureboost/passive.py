"""A passive party: features, no labels, no key. It adds up sealed gradients and keeps its thresholds to itself."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from vflparty import Message, RemoteProtocolError

from ..growing.follower import OpenRound, TreeFollower
from ..growing.numbering import MAX_DEPTH, MAX_TREES, round_trees
from ..sealing import PairLayout, make_summer
from ..tree import heap_depth, record_id, record_parts
from .messages import (
    GradientsForRound,
    Histograms,
    Joined,
    JoinPrediction,
    JoinTraining,
    RecordSplits,
    RouteRows,
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
    )

    _agreed: JoinTraining | None = None
    _next_round = 0

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
        if msg.max_depth > MAX_DEPTH or msg.n_rounds * msg.n_outputs > MAX_TREES:
            raise RemoteProtocolError(
                f"{msg.n_rounds} rounds of {msg.n_outputs} trees of depth {msg.max_depth} were proposed, record ids "
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
        self._bin_own()
        self._trees = self._find_trees(msg.encryption)
        self._agreed, self._next_round = msg, msg.first_round
        return Joined(self._features.shape[1], self._mapper.n_bins)

    def on_gradients_for_round(self, msg: GradientsForRound) -> Histograms:
        """SecureBoost, Algorithm 1 at the root. A new secret feature order for the trees of this round."""
        agreed = self._agreement()
        if msg.round != self._next_round or msg.round >= agreed.n_rounds:
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
        roots = {int(record_id(tree, 1)): all_rows for tree in round_trees(msg.round, agreed.n_outputs)}
        self._round = current = self._open_round(msg.round, self._trees, positions, roots, msg.slots)
        current.max_leaves = agreed.max_leaves
        self._next_round += 1
        root = next(iter(roots))  # one for all outputs: their trees share the root
        return self._sum_nodes(current, {root: all_rows})

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
        self._round, self._next_round = None, agreed.n_rounds  # nothing follows

    def _agreement(self) -> JoinTraining:
        if self._agreed is None:
            raise RemoteProtocolError("training has not been joined")
        return self._agreed


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
