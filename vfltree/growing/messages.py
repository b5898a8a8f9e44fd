"""Messages that every protocol of trees uses: splits and sums while trees grow, the paths of rows afterwards.

Which of them follow on one another is said on the page of each protocol (`vfltree.secureboost.messages`, ...).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vflparty import Message

from ..bin_groups import MIN_ROWS


def no_bytes() -> NDArray[np.uint8]:
    """The default of fields that are rarely used."""
    return np.zeros(0, np.uint8)


@dataclass(frozen=True)
class CategoryLists(Message):
    """What the codes of a party's categorical columns stand for, for the party itself: `vfltree.categories`."""

    columns: NDArray[np.int32]  # int32 (n_lists,), ascending
    sizes: NDArray[np.int32]  # int32 (n_lists,)
    keys: tuple[str, ...]  # list after list


@dataclass(frozen=True)
class PassiveSetup(Message):
    """To a passive party's own seat; never crosses to another party."""

    party: str
    features: NDArray[np.float64]  # float64 (n_rows, n_features)
    ids_digest: bytes
    max_bin: int
    allow_weak_key: bool  # accept a key that is fit for tests only
    cuts: tuple[NDArray[np.float64], ...] | None  # as in ActiveSetup
    random_seed: int
    n_jobs: int
    records: bytes  # an encoded Records, to predict or to train on from; empty to train
    min_rows_per_sum: int = MIN_ROWS  # see `vfltree.bin_groups`
    categories: bytes = b""  # an encoded CategoryLists of `features`; empty: all columns hold numbers
    evaluation: bytes = b""  # an encoded EvaluationRows: rows that are predicted while training goes
    checkpoint: str = ""  # path of the party's own file of finished rounds; empty: none
    signs: NDArray[np.int8] | None = None  # int8 (n_features,), monotone constraints; None: none


@dataclass(frozen=True)
class JoinPrediction(Message, answer="Joined"):
    """active -> every passive, once per block of rows."""

    ids_digest: bytes
    n_rows: int


@dataclass(frozen=True)
class Joined(Message):
    """passive -> active: the shape of what it will send."""

    n_features: int
    n_bins: int  # of its widest feature, the bin for missing values (always the last) included
    constrained: bool = False  # some feature has a monotone constraint


@dataclass(frozen=True)
class Histograms(Message):
    """passive -> active: sums per node, feature and bin; features in the passive party's secret order of this round.

    The fullest bin of each feature is left out: the active party has it from the node's total. Where bins were merged
    into groups, each group's sum stands in one bin and its other bins look empty; both children of a split have the
    groups that the sums of the smaller one come with.
    """

    round: int
    level: int
    present: NDArray[np.uint8]  # uint8, packed bits (n_nodes, n_features, n_bins): bins that hold a row
    fullest: NDArray[np.int16]  # int16 (n_nodes, n_features)
    n_values: int
    sums: bytes  # sealed: compressed, freshly blinded ciphertexts; or int64 (n_values, 2, n_outputs) in the clear
    # uint8, packed bits (n_nodes, n_features, n_bins): bins that stand for a group; empty: every bin is a group.
    groups: NDArray[np.uint8] = field(default_factory=no_bytes)
    # uint8 (n_features,): categories of each feature, 0 for numbers. At level 0 only; empty where all hold numbers.
    n_categories: NDArray[np.uint8] = field(default_factory=no_bytes)
    signs: NDArray[np.int8] | None = None  # int8 (n_features,), at level 0 of a constrained party: 1, -1 or 0


@dataclass(frozen=True)
class RecordSplits(Message, answer="SplitsRecorded"):
    """active -> the owner of winning splits: candidates of equal gain; the owner takes its lowest column."""

    round: int
    level: int
    nodes: NDArray[np.int64]  # int64 (n_splits,): record ids
    candidates: NDArray[np.int32]  # int32 (n_splits + 1,): bounds in the three arrays below
    slots: NDArray[np.int32]  # int32: numbers in the secret order of all features
    # int32: the split is "bin <= this one goes left"; -1: a set of categories; -2: only missing values go left
    bins: NDArray[np.int32]
    missing_left: NDArray[np.bool_]  # bool
    # uint8, packed bits: for each candidate of bin -1 a mask over its feature's categories, 1 for right.
    sets: NDArray[np.uint8] = field(default_factory=no_bytes)


@dataclass(frozen=True)
class SplitsRecorded(Message):
    """passive -> active: which rows go left, in the row order of each node. Feature and threshold stay at home."""

    round: int
    level: int
    left: NDArray[np.uint8]  # uint8, packed bits
    signs: NDArray[np.int8] | None = (
        None  # int8 (n_splits,), of a constrained party: of the features that were chosen
    )


@dataclass(frozen=True)
class SumChildren(Message, answer="Histograms"):
    """active -> every passive, once per level: how split nodes fall apart; each smaller child is to be summed.

    A mask splits a node's rows in two, so children partition their parent by construction; nodes that are not named
    have become leaves (in leaf-wise growth they may still be split later).
    """

    round: int
    level: int  # of the children
    nodes: NDArray[np.int64]  # int64 (n_splits,): record ids of the parents
    left: NDArray[np.uint8]  # uint8, packed bits
    slots: NDArray[np.int32] | None = None  # int32, ascending: to be summed from here on; None: as before


@dataclass(frozen=True)
class TrainingEnded(Message):
    """active -> every passive, once."""

    n_rounds: int  # rounds that were finished


@dataclass(frozen=True)
class RouteRows(Message, answer="RowsRouted"):
    """active -> the owner of the nodes at which rows wait, once per step, for all rows and trees."""

    records: NDArray[np.int64]  # int64 (n_questions,)
    rows: NDArray[np.int32]  # int32 (n_questions,)


@dataclass(frozen=True)
class RowsRouted(Message):
    """passive -> active: one bit a question, 1 for left."""

    left: NDArray[np.uint8]  # uint8, packed bits


@dataclass(frozen=True)
class Records(Message):
    """A party's lookup table, for the party itself to keep: `vfltree.tree.RecordTable`."""

    ids: NDArray[np.int64]  # (n_records,), ascending
    columns: NDArray[np.int32]
    thresholds: NDArray[np.float64]  # NaN where a set of categories takes its place
    missing_left: NDArray[np.bool_]
    # float64 (n_records,): the largest value of a training row that goes left, to round thresholds by; or empty.
    lower: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    # uint8 (n_records, n_set_bytes): packed bits, the codes that go right; empty: all splits are by thresholds.
    right: NDArray[np.uint8] = field(default_factory=no_bytes)
    categories: bytes = b""  # an encoded CategoryLists; empty: all columns hold numbers


@dataclass(frozen=True)
class ActiveResult(Message):
    """The active party's half of the model, for itself to keep: trees without foreign features and thresholds."""

    base_score: np.ndarray  # (n_outputs,) before the first tree; float32 or float64 as all raw scores
    sizes: NDArray[np.int64]  # (n_trees,) nodes of each tree; the arrays below hold them one after another
    node: NDArray[np.int64]
    owner: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float64]  # (n_nodes, n_values); learning rate included
    gain: NDArray[np.float64]
    cover: NDArray[np.float64]
    records: bytes  # an encoded Records: its own splits
    objective: str = ""  # by XGBoost's name: says what raw scores mean


@dataclass(frozen=True)
class PredictionSetup(Message):
    """To the active party's own seat, to predict; never crosses to another party."""

    party: str
    features: NDArray[np.float64]  # float64 (n_rows, n_features)
    ids_digest: bytes
    passive_parties: tuple[str, ...]  # in training order
    present_parties: tuple[str, ...]  # those of them that have a seat
    model: bytes  # an encoded ActiveResult
    categories: bytes = b""  # as in PassiveSetup


@dataclass(frozen=True)
class Predicted(Message):
    """From the active party's own seat to whoever seated it."""

    raw_scores: NDArray[np.float64]  # float64 (n_rows, n_outputs)
    leaves: NDArray[np.int32]  # int32 (n_rows, n_trees): node of each tree, as numbered in it
