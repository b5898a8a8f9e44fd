"""The forest protocol on one page: every message, in the order sent.

Training:    JoinForest -> Joined;  TargetsOfForest -> Done, once for all trees;  then per group of trees
             GrowTrees -> OpenSlots,  and per level  SumSlots -> Histograms,  RecordSplits -> SplitsRecorded (owners of
             winning splits only)  and  DivideNodes -> OpenSlots;  at the end  TrainingEnded -> Done.
Prediction:  JoinPrediction -> Joined;  then per step  RouteRows -> RowsRouted.

The trees of a group grow level by level together, so the rounds do not grow with their number; a group is a round in
the messages that forests share with boosting. Nodes are named by record ids (`vfltree.tree.record_id`), features by
slots: numbers in an order that a passive party draws anew per tree and keeps to itself. Bit masks are as in
`vfltree.secureboost.messages`.
Source: Breiman, Random Forests (2001); node by node as in Cheng et al., SecureBoost, Algorithms 1 and 2.
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
    TrainingEnded,
)

__all__ = [
    "ActiveResult",
    "DivideNodes",
    "ForestResult",
    "ForestSetup",
    "GrowTrees",
    "Histograms",
    "JoinForest",
    "JoinPrediction",
    "Joined",
    "OpenSlots",
    "PassiveSetup",
    "Predicted",
    "PredictionSetup",
    "RecordSplits",
    "Records",
    "RouteRows",
    "RowsRouted",
    "SplitsRecorded",
    "SumSlots",
    "TargetsOfForest",
    "TrainingEnded",
]


@dataclass(frozen=True)
class ForestSetup(Message):
    """To the active party's own seat; never crosses to another party."""

    party: str
    features: NDArray[np.float64]  # float64 (n_rows, n_features), may have no columns
    targets: NDArray[np.float64]  # float64 (n_rows,): class numbers, or values
    weights: NDArray[np.float64]  # float64 (n_rows,), or empty: all one
    class_weights: NDArray[np.float64]  # float64 (n_classes,), or empty: all one
    ids_digest: bytes
    passive_parties: tuple[str, ...]  # in the order of `partition`
    settings_json: str
    cuts: tuple[NDArray[np.float64], ...] | None  # float64 (n_cuts,) a feature; None: quantiles
    random_seed: int


@dataclass(frozen=True)
class JoinForest(Message, answer="Joined"):
    """active -> every passive, once: what both must agree on; no label, no weight, no parameter of trees."""

    ids_digest: bytes
    n_rows: int
    n_trees: int
    max_depth: int
    out_of_bag: bool  # rows that a tree's sample lacks travel down the tree too, and count in no sum
    n_signed: int  # what a row holds, see `vfltree.sealing.SlotLayout`
    n_weights: int
    n_counts: int
    fraction_bits: int
    encryption: str  # "paillier" or "none"
    public_key: bytes  # empty without encryption


@dataclass(frozen=True)
class TargetsOfForest(Message):
    """active -> every passive, once: one packed ciphertext a row (or several, if the slots do not fit one)."""

    targets: bytes  # sealed: ciphertexts (n_rows, per_row); in the clear int64 (n_rows, n_kinds, 1)


@dataclass(frozen=True)
class GrowTrees(Message, answer="OpenSlots"):
    """active -> every passive, once per group: the trees that grow together now, and the rows of each."""

    round: int
    n_trees: int
    times: NDArray[
        np.uint16
    ]  # uint16 (n_trees * n_rows,): how often each tree drew each row; empty: all rows once


@dataclass(frozen=True)
class OpenSlots(Message):
    """passive -> active: by which slots the nodes could be split, since their rows lie in two bins at least.

    The nodes are the roots of the group, or the children of the divided nodes, left and right in turn.
    """

    round: int
    level: int
    varied: NDArray[np.uint8]  # uint8, packed bits (n_nodes, n_features)


@dataclass(frozen=True)
class SumSlots(Message, answer="Histograms"):
    """active -> a passive party, once per level: of which of its slots the sums are wanted, node by node.

    The answer holds the sums of each (node, slot) as if it were a node with one feature.
    """

    round: int
    level: int
    nodes: NDArray[np.int64]  # int64 (n_nodes,): record ids
    bounds: NDArray[np.int32]  # int32 (n_nodes + 1,): bounds in `slots`
    slots: NDArray[np.int32]  # int32, ascending in each node


@dataclass(frozen=True)
class DivideNodes(Message, answer="OpenSlots"):
    """active -> every passive, once per level: how split nodes fall apart. Nodes that are not named are leaves."""

    round: int
    level: int  # of the children
    nodes: NDArray[np.int64]  # int64 (n_splits,): record ids of the parents
    left: NDArray[np.uint8]  # uint8, packed bits


@dataclass(frozen=True)
class ForestResult(Message):
    """The active party's half of the model, and what its trees say of the rows they did not draw."""

    model: bytes  # an encoded ActiveResult; leaf values are class shares, or means
    out_of_bag: NDArray[
        np.float64
    ]  # float64 (n_rows, n_values), NaN where every tree drew the row; or (0, 0)
