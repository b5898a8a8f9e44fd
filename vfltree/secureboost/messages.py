"""The SecureBoost protocol on one page: every message, in the order sent.

Training:    JoinTraining -> Joined;  then per round  GradientsForRound -> Histograms (of the root),  and per level
             RecordSplits -> SplitsRecorded (owners of winning splits only)  and  SumChildren -> Histograms;  where rows
             are evaluated, per step of their paths down the new trees  RouteRows -> RowsRouted;  where checkpoints are
             kept  KeepRounds -> Done;  at the end  TrainingEnded -> Done. In leaf-wise growth a
             "level" is a step: whatever splits are certain, of any depth.
Prediction:  JoinPrediction -> Joined;  then per step  RouteRows -> RowsRouted.

Nodes are named by record ids (`vfltree.tree.record_id`), which carry the tree and the node's number as in a heap: the
root is 1, the children of i are 2 i (left) and 2 i + 1 (right). Bit masks are `numpy.packbits` of
booleans, one mask a node, each starting on a byte of its own.
Source: Cheng et al., SecureBoost, Algorithms 1 and 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vflparty import Message

from ..growing.messages import (
    ActiveResult,
    Histograms,
    Joined,
    JoinPrediction,
    PassiveSetup,
    Predicted,
    PredictionSetup,
    Records,
    RecordSplits,
    RouteRows,
    RowsRouted,
    SplitsRecorded,
    SumChildren,
    TrainingEnded,
)

__all__ = [
    "ActiveResult",
    "ActiveSetup",
    "EvaluationRows",
    "EvaluationSetup",
    "GradientsForRound",
    "Histograms",
    "JoinPrediction",
    "JoinTraining",
    "Joined",
    "KeepRounds",
    "PassiveSetup",
    "Predicted",
    "PredictionSetup",
    "RecordSplits",
    "Records",
    "RoundsGrown",
    "RouteRows",
    "RowsRouted",
    "SplitsRecorded",
    "SumChildren",
    "TrainingEnded",
    "TrainingState",
]


@dataclass(frozen=True)
class ActiveSetup(Message):
    """To the active party's own seat; never crosses to another party."""

    party: str
    features: NDArray[np.float64]  # float64 (n_rows, n_features), may have no columns
    targets: NDArray[np.float64]  # float64 (n_rows,): class numbers, or values; (n_rows, n_targets)
    weights: NDArray[np.float64]  # float64 (n_rows,), or empty: all one
    ids_digest: bytes
    passive_parties: tuple[str, ...]  # in the order of `partition`
    settings_json: str
    cuts: tuple[NDArray[np.float64], ...] | None  # float64 (n_cuts,) a feature; None: quantiles
    random_seed: int
    categories: bytes = b""  # as in PassiveSetup
    signs: NDArray[np.int8] | None = (
        None  # int8 (n_features,), monotone constraints of its features; None: none
    )
    past: bytes = b""  # an encoded TrainingState to train on from; empty: from the start
    evaluation: bytes = b""  # an encoded EvaluationSetup; empty: no rows to evaluate
    checkpoint: str = ""  # path of the party's own file of finished rounds; empty: none
    checkpoint_every: int = 1  # rounds
    seed_given: bool = False  # the user chose random_seed: a checkpoint of another one is another training


@dataclass(frozen=True)
class EvaluationSetup(Message):
    """Part of ActiveSetup: rows to evaluate, of all evaluation sets one after another, and how."""

    features: NDArray[np.float64]  # float64 (n_rows, n_features)
    ids_digest: bytes
    sizes: NDArray[np.int64]  # (n_sets,) rows of each set
    targets: NDArray[np.float64]  # float64 (n_rows,)
    weights: NDArray[np.float64]  # float64 (n_rows,)
    metrics: tuple[str, ...]  # names, or those of functions, see `vflparty.callables`
    early_stopping_rounds: int  # 0: never
    categories: bytes = b""  # as in PassiveSetup, of these features


@dataclass(frozen=True)
class EvaluationRows(Message):
    """Part of PassiveSetup: the same rows."""

    features: NDArray[np.float64]
    ids_digest: bytes
    categories: bytes = b""


@dataclass(frozen=True)
class TrainingState(Message):
    """What the active party trains on from: for itself to keep, between runs and in its checkpoint."""

    training: str  # id of the training
    n_rounds: int  # that are finished
    model: bytes  # an encoded ActiveResult
    raw_scores: np.ndarray  # (n_rows, n_outputs), dtype of all raw scores
    evaluation_scores: np.ndarray  # the same of rows to evaluate
    history: str  # JSON, see `evaluation.History`
    private_targets: NDArray[
        np.float64
    ]  # labels after randomised response, which no other draw may follow; or empty


@dataclass(frozen=True)
class JoinTraining(Message, answer="Joined"):
    """active -> every passive, once: what both must agree on; no label, no weight, no parameter of trees."""

    ids_digest: bytes
    n_rows: int
    n_rounds: int
    n_outputs: int  # gradients per row: 1, or the number of classes
    max_depth: int
    fraction_bits: int
    encryption: str  # "paillier" or "none"
    public_key: bytes  # empty without encryption
    max_leaves: int = 0  # leaf-wise growth: how many leaves a tree has at most; 0: level by level
    first_round: int = 0  # rounds before it are the active party's own: nothing is sent for them
    n_finished: int = 0  # rounds that a checkpoint or a model that is continued holds
    training: str = ""  # id of the training, for checkpoints
    evaluation_digest: bytes = b""
    n_evaluation_rows: int = 0
    vector_leaves: bool = False  # one tree a round for all outputs, rather than one an output


@dataclass(frozen=True)
class GradientsForRound(Message, answer="Histograms"):
    """active -> every passive, once per round: one packed ciphertext a row for all outputs."""

    round: int
    rows: NDArray[np.int32]  # int32 (n_sampled,), ascending; empty: all rows
    gradients: bytes  # sealed: ciphertexts (n_sampled, per_row); in the clear int64 (n_sampled, 2, n_outputs)
    slots: NDArray[np.int32] | None = (
        None  # int32, ascending: to be summed; None: all. Empty: not in this round,
    )
    # there are no rows and no gradients either, and nothing more is asked before the next round


@dataclass(frozen=True)
class KeepRounds(Message):
    """active -> every passive, now and then: write what you have to your checkpoint, if you keep one."""

    n_rounds: int  # finished ones


@dataclass(frozen=True)
class RoundsGrown(Message):
    """From the active party's own seat to whoever seated it, after every round."""

    training: str
    n_rounds: int  # finished ones
    ended: bool
    model: bytes  # an encoded ActiveResult: trees not handed over before, and all own splits; empty: no such trees
    loss: float  # of the training rows; NaN where no round was left to grow
    history: str  # JSON, see `evaluation.History`
