"""What every linear training begins and ends with, and prediction; the steps between are in each exchange's own page.

Training:    AskKey -> KeyMade (coordinator);  JoinLinear -> JoinedLinear;  steps of an exchange (scores/messages.py,
             rows/messages.py, exact/messages.py);  FinishTraining -> TrainingFinished.
Prediction:  with several passive parties OfferMaskKey -> MaskKey and TakeMaskKeys -> Done (exact/messages.py);  then
             SendLinearScores -> LinearScores or HiddenScores, once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vflparty import Message


@dataclass(frozen=True)
class Features(Message):
    """A party's own features on their way to its own seat; dense, or the three arrays of a CSR matrix."""

    n_columns: int
    values: NDArray[np.float64]  # (n_rows, n_columns), or (n_nonzero,)
    columns: NDArray[np.int64]  # of every value; empty where dense
    starts: NDArray[np.int64]  # (n_rows + 1,); empty where dense


@dataclass(frozen=True)
class LinearActiveSetup(Message):
    """To the active party's own seat; never crosses to another party."""

    party: str
    features: bytes  # an encoded Features
    targets: NDArray[np.float64]  # (n_rows, n_outputs): 0 and 1 per class, or values
    weights: NDArray[np.float64]  # (n_rows,), or empty: all one
    ids_digest: bytes
    passive_parties: tuple[str, ...]
    coordinator: str  # name of its seat; empty without encryption
    settings_json: str
    start: NDArray[np.float64]  # (n_coefficients, n_outputs) to start from, or empty
    random_seed: int


@dataclass(frozen=True)
class LinearPassiveSetup(Message):
    """To a passive party's own seat; never crosses to another party."""

    party: str
    features: bytes  # an encoded Features
    ids_digest: bytes
    allow_weak_key: bool
    allow_small_batches: bool
    n_jobs: int
    start: NDArray[np.float64]  # (n_columns, n_outputs) to start from; or empty
    model: bytes  # an encoded PassiveCoefficients, to predict; empty to train


@dataclass(frozen=True)
class JoinLinear(Message, answer="JoinedLinear"):
    """active -> every passive, once."""

    ids_digest: bytes
    n_rows: int
    settings_json: str  # SharedSettings
    public_key: bytes  # of the coordinator, as received; empty without encryption


@dataclass(frozen=True)
class JoinedLinear(Message):
    """passive -> active."""

    n_columns: int


@dataclass(frozen=True)
class FinishTraining(Message, answer="TrainingFinished"):
    """active -> every passive, once: the last opened values, if any."""

    opened: bytes
    curvature: float


@dataclass(frozen=True)
class TrainingFinished(Message):
    """passive -> active."""

    settled: bool  # its last gradient was within tol


@dataclass(frozen=True)
class PassiveCoefficients(Message):
    """A passive party's half of the model: its state, for itself to keep."""

    coefficients: NDArray[np.float64]  # (n_columns, n_outputs)
    unit: float = 1.0  # of scores in fixed point
    alone: bool = True  # the only passive party: it has nobody to hide its scores among


@dataclass(frozen=True)
class LinearResult(Message):
    """The active party's half of the model."""

    coefficients: NDArray[np.float64]  # (n_columns, n_outputs)
    intercept: NDArray[np.float64]  # (n_outputs,)
    n_epochs: int
    converged: bool
    losses: NDArray[np.float64]  # per epoch where it was watched; else empty
    unit: float = 1.0  # of scores in fixed point


@dataclass(frozen=True)
class LinearPredictionSetup(Message):
    """To the active party's own seat."""

    party: str
    features: bytes  # an encoded Features
    ids_digest: bytes
    passive_parties: tuple[str, ...]
    model: bytes  # an encoded LinearResult


@dataclass(frozen=True)
class SendLinearScores(Message, answer=("LinearScores", "HiddenScores")):
    """active -> every passive, once per block of rows to predict."""

    ids_digest: bytes
    n_rows: int


@dataclass(frozen=True)
class LinearScores(Message):
    """passive -> active: X_k w_k of the rows asked for, where it is the only passive party."""

    scores: NDArray[np.float64]  # (n_rows, n_outputs)


@dataclass(frozen=True)
class HiddenScores(Message):
    """passive -> active: X_k w_k in fixed point, under masks that cancel over the passive parties."""

    scores: NDArray[np.int64]  # (n_rows, n_outputs), in units of unit * 2**-SCORE_BITS modulo 2**64


@dataclass(frozen=True)
class LinearPredicted(Message):
    """Result of a prediction."""

    scores: NDArray[np.float64]  # (n_rows, n_outputs), the intercept included
