"""Split training on one page, top to bottom in the order sent.

Every batch has a number, its step, counted over all epochs; every party knows which rows it holds (order.py). A
protocol decides how often a party steps on what it received (protocols/), a compressor how outputs are written.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vflparty import Message

# ---------------------------------------------------------------- what a party starts from


@dataclass(frozen=True)
class DenseSamples(Message):
    """A party's own samples, shape (n_samples, ...)."""

    values: np.ndarray


@dataclass(frozen=True)
class SparseSamples(Message):
    """The same, as the fields of a CSR matrix."""

    data: np.ndarray
    indices: NDArray[np.int64]
    indptr: NDArray[np.int64]
    shape: tuple[int, int]


@dataclass(frozen=True)
class GraphSamples(Message):
    """Features of all nodes, and the party's normalised adjacency as the fields of a CSR matrix."""

    values: np.ndarray
    data: np.ndarray
    indices: NDArray[np.int64]
    indptr: NDArray[np.int64]
    shape: tuple[int, int]


@dataclass(frozen=True)
class ModelRecipe(Message):
    """How a party builds its model: the seat of a network in a process of its own holds no object."""

    factory: str  # a name of the registry, or "module:function"
    options: str  # keyword arguments, JSON
    seed: int  # of the weights, and of everything the model draws later


@dataclass(frozen=True)
class PassiveSetup(Message):
    """What a passive party starts from: its own data, nobody else's."""

    party: str
    width: int  # of its output
    samples: bytes  # frame of one of the three kinds of samples
    evaluation: bytes | None  # the same, of rows that outputs are asked for without training on them
    model: bytes  # frame of a ModelRecipe
    rows: bytes  # frame of a RowsDigest
    device: str
    n_threads: int  # of its work
    state: bytes | None  # frame of a HalfState, where training goes on


@dataclass(frozen=True)
class ActiveSetup(Message):
    """What the active party starts from."""

    party: str
    widths: tuple[int, ...]  # of the outputs of all parties, its own first (0: it has no columns)
    passive_parties: tuple[str, ...]
    samples: bytes | None
    evaluation: bytes | None
    labels: np.ndarray  # int64 class numbers, -1 not labelled; or float targets (n_samples, n_outputs)
    evaluation_labels: np.ndarray | None
    n_outputs: int
    loss: str
    bottom: bytes | None  # frame of a ModelRecipe
    top: bytes  # the same
    settings: bytes  # frame of a TrainingSettings
    rows: bytes  # frame of a RowsDigest
    device: str
    n_threads: int  # of its work
    state: bytes | None


# ---------------------------------------------------------------- training


@dataclass(frozen=True)
class TrainingSettings(Message, answer="Joined"):
    """active -> every passive, once: what they train by."""

    protocol: str
    protocol_options: str  # JSON, like all options here
    compressor: str
    compressor_options: str
    optimizer: str  # a name of torch.optim in any case
    optimizer_options: str
    learning_rate: float
    scheduler: str
    scheduler_options: str
    n_samples: int
    n_evaluation: int
    epochs: int
    first_epoch: int  # > 0 where training goes on
    batch_size: int | None  # None: all rows at once
    shuffle: bool
    seed: int  # of batches and of what a protocol draws at all parties alike; never of weights


@dataclass(frozen=True)
class Joined(Message):
    """passive -> active."""

    width: int


@dataclass(frozen=True)
class AskOutputs(Message, answer=("CutOutputs", "QuantizedOutputs", "SparseOutputs")):
    """active -> every passive, once a batch: opens the exchange of a step."""

    step: int


@dataclass(frozen=True)
class CutOutputs(Message):
    """passive -> active: H_k, uncompressed."""

    outputs: np.ndarray  # float (n_rows, width)


@dataclass(frozen=True)
class QuantizedOutputs(Message):
    """passive -> active: H_k in whole steps of a uniform quantiser."""

    low: float
    high: float
    double: bool  # whether they were float64
    codes: bytes  # n_rows * width integers of the agreed number of bits, packed


@dataclass(frozen=True)
class SparseOutputs(Message):
    """passive -> active: the largest entries of H_k."""

    kept: bytes  # one bit per entry, row by row
    values: np.ndarray  # float (n_kept,)


@dataclass(frozen=True)
class CutGradient(Message):
    """active -> each passive, once a batch: g_k = dL/dH_k, L the mean over the batch. Closes the exchange."""

    step: int
    gradient: np.ndarray  # float (n_rows, width)


@dataclass(frozen=True)
class AskScoring(Message, answer="ScoredOutputs"):
    """active -> every passive, any time: outputs without training, of some of the rows to evaluate."""

    start: int
    stop: int


@dataclass(frozen=True)
class ScoredOutputs(Message):
    """passive -> active: the outputs asked for, uncompressed. A kind of its own, so that training is counted alone."""

    outputs: np.ndarray  # float (stop - start, width)


# ---------------------------------------------------------------- what a party keeps


@dataclass(frozen=True)
class HalfState(Message):
    """What a party has trained. It stays with that party."""

    names: tuple[str, ...]  # of the model's state
    arrays: tuple[np.ndarray, ...]
    optimizer: str  # JSON: what its state holds beside arrays
    optimizer_arrays: tuple[np.ndarray, ...]
    random: NDArray[np.uint8]  # where the party's random numbers stand


@dataclass(frozen=True)
class TrainedNetwork(Message):
    """The active party's own half, and the course of training."""

    state: bytes  # frame of a HalfState
    step_accuracy: NDArray[
        np.float64
    ]  # (n_steps,) share correct in the batch, before its update; nan for regression
    step_loss: NDArray[np.float64]  # (n_steps,)
    step_seconds: NDArray[np.float64]  # (n_steps,) of training, evaluation left out
    epoch_loss: NDArray[np.float64]  # (n_epochs,) on the rows to evaluate; nan without any
    epoch_score: NDArray[np.float64]  # (n_epochs,) accuracy or R2 there
    scores: np.ndarray  # (n_evaluation, n_outputs) at the end
