"""What one party of a linear training really saw, read from the messages it sent and received.

An attack gets one of these views and nothing else. Trainings are recorded with ``encryption="none"``: the integers that
a party is given are those that the coordinator would have opened for it, and its view leaves out what it would have
received as ciphertexts.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vflparty import InProcessNetwork, Message, codec
from vfltree.linear import LinearActiveParty, LinearPassiveParty, LinearSettings
from vfltree.linear.arithmetic import PlainArithmetic
from vfltree.linear.columns import SCORE_BITS, FixedColumns
from vfltree.linear.exact.messages import ClearScores, NextExactStep
from vfltree.linear.messages import FinishTraining, JoinedLinear, JoinLinear
from vfltree.linear.scores.messages import NextStep, SealedResiduals
from vfltree.linear.shared import SharedSettings

KINDS = (JoinLinear, JoinedLinear, NextStep, NextExactStep, ClearScores, SealedResiduals, FinishTraining)
SHOP = "shop"


@dataclass(frozen=True)
class Step:
    """rows : of the batch, ascending.  sums : X^T d of the party's own integers, Python integers (n_columns,)."""

    rows: np.ndarray
    sums: np.ndarray


@dataclass(frozen=True)
class PassiveLinearView:
    """columns : its own, in fixed point.  shared : what was announced.  steps : in order."""

    columns: FixedColumns
    shared: SharedSettings
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class ActiveLinearView:
    """The active party of a training with one passive party.

    Attributes
    ----------
    shared : SharedSettings
    n_hidden : int
        Columns of the passive party.
    scores : ndarray of float64, shape (n_steps, n_rows)
        The passive party's, where it showed them; else (0, n_rows).
    residuals : ndarray of float64, shape (n_steps, n_rows)
        Its own, as it encrypted them, in the units of scores; empty where it formed them under encryption.
    """

    shared: SharedSettings
    n_hidden: int
    scores: np.ndarray
    residuals: np.ndarray


@dataclass(frozen=True)
class LinearTraining:
    passive: PassiveLinearView
    active: ActiveLinearView


def train(
    blocks: Sequence[np.ndarray], labels: np.ndarray, *, seed: int = 0, **settings: Any
) -> LinearTraining:
    """Train logistic regression of two parties in the clear, with every message recorded. blocks : active, passive."""
    chosen = LinearSettings(encryption="none", tol=0.0, **settings)
    small = bool(settings.get("allow_small_batches", False))
    passive = LinearPassiveParty(blocks[1], name=SHOP, allow_small_batches=small)
    active = LinearActiveParty(
        blocks[0], labels.reshape(-1, 1).astype(float), passive_parties=[SHOP], coordinator="", settings=chosen,
        random_seed=seed,
    )  # fmt: skip
    with InProcessNetwork({SHOP: passive}, record=True) as network:
        network.run(active)
        messages = [codec.decode(sent.frame, KINDS) for sent in network.transcript if _is_read(sent.frame)]
    (shared,) = (SharedSettings.from_json(m.settings_json) for m in messages if isinstance(m, JoinLinear))
    columns = FixedColumns(blocks[1])
    return LinearTraining(
        PassiveLinearView(columns, shared, tuple(_steps(messages, columns))),
        _active_view(messages, shared, len(labels)),
    )


def _steps(messages: Sequence[Message], columns: FixedColumns) -> list[Step]:
    """Batches as announced, each with the sums that the next message brings."""
    asked = [m for m in messages if isinstance(m, NextStep | NextExactStep | FinishTraining)]
    steps = []
    for message, following in itertools.pairwise(asked):
        assert not isinstance(message, FinishTraining)
        rows = message.rows if message.rows.size else np.arange(columns.n_rows)
        if following.opened:
            sums = PlainArithmetic().read(following.opened, (columns.n_coefficients,))
            steps.append(Step(rows, sums))
    return steps


def _active_view(messages: Sequence[Message], shared: SharedSettings, n_rows: int) -> ActiveLinearView:
    (joined,) = (m for m in messages if isinstance(m, JoinedLinear))
    shown = [m.scores[:, 0] for m in messages if isinstance(m, ClearScores)]
    # Under encryption it does not know what it has formed, unless it saw the scores.
    formed = [PlainArithmetic().read(m.residuals, (n_rows,)) for m in messages
              if shown and isinstance(m, SealedResiduals)]  # fmt: skip
    scores, residuals = (
        np.ldexp(np.array(part).reshape(-1, n_rows).astype(float), -SCORE_BITS) for part in (shown, formed)
    )
    return ActiveLinearView(shared, joined.n_columns, scores, residuals)


def _is_read(frame: bytes) -> bool:
    length = frame[5]
    return frame[32 : 32 + length].decode() in {kind.__name__ for kind in KINDS}
