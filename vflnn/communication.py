"""What a training has sent until it was good enough: rounds, MiB and seconds, as VFLAIR's tables count and as sent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vflparty import Ledger

from .messages import (
    CutGradient,
    CutOutputs,
    QuantizedOutputs,
    SparseOutputs,
    TrainedNetwork,
    TrainingSettings,
)
from .protocols.registry import make_compressor
from .recipes import from_json

MIB = 2**20
EXCHANGED = tuple(kind.__name__ for kind in (CutOutputs, QuantizedOutputs, SparseOutputs, CutGradient))
RULES = {"batch": "training accuracy of a batch", "epoch": "test accuracy after an epoch"}


@dataclass(frozen=True)
class Communication:
    """Attributes
    ----------
    rule : what has to exceed the target, a name of RULES
    target : accuracy
    rounds : exchanges until it did, that one included; None: it never did
    seconds : of training steps until then, evaluation left out
    trained_rounds : exchanges in all
    amount : MiB a round, as VFLAIR counts: float32 outputs and gradients of a full batch, the outputs as compressed
    sent : MiB a round, frames of outputs and gradients, the mean over all batches
    """

    rule: str
    target: float
    rounds: int | None
    seconds: float | None
    trained_rounds: int
    amount: float
    sent: float

    @property
    def total(self) -> float | None:
        """MiB until the target, by `amount`."""
        return None if self.rounds is None else self.rounds * self.amount

    @property
    def total_sent(self) -> float | None:
        """MiB until the target, by `sent`."""
        return None if self.rounds is None else self.rounds * self.sent

    def __str__(self) -> str:
        each = f"{self.amount:.3f} MiB a round by VFLAIR's formula, {self.sent:.3f} sent"
        what = f"{RULES[self.rule]} above {self.target:g}"
        if self.rounds is None:
            return f"{what}: not in {self.trained_rounds} rounds; {each}"
        return (
            f"{what}: round {self.rounds}, {self.total:.3f} MiB ({self.total_sent:.3f} sent), "
            f"{self.seconds:.2f} s; {each}"
        )


def communication(
    result: TrainedNetwork,
    ledger: Ledger,
    settings: TrainingSettings,
    widths: Mapping[str, int],
    *,
    target: float,
    rule: str = "batch",
) -> Communication:
    """What this training took to exceed a target.

    result, ledger : what it has left; the ledger of this training alone
    widths : passive party -> width of its outputs
    rule : "batch": the first batch whose training accuracy exceeds the target, before its update (VFLAIR's);
        "epoch": the first epoch after which the accuracy on the rows to evaluate does
    """
    if rule not in RULES:
        raise ValueError(f"rule must be 'batch' or 'epoch', got {rule!r}")
    if not math.isfinite(target):
        raise ValueError(f"target must be an accuracy, got {target}")
    n_rounds = len(result.step_accuracy)
    if n_rounds == 0:
        raise ValueError("nothing was trained: there are 0 rounds")
    scores = result.step_accuracy if rule == "batch" else result.epoch_score
    rounds = _rounds_to(target, scores, n_rounds // len(scores), RULES[rule])
    table = ledger.summary()
    return Communication(
        rule,
        float(target),
        rounds,
        None if rounds is None else float(result.step_seconds[:rounds].sum()),
        n_rounds,
        amount(settings, widths),
        int(table.bytes[table.kind.isin(EXCHANGED)].sum()) / n_rounds / MIB,
    )


def amount(settings: TrainingSettings, widths: Mapping[str, int]) -> float:
    """MiB a round by VFLAIR's formula: (share + 1) * n * d_k * 4 bytes, summed over passive parties.

    n is a full batch; the share of a quantiser is bits / 32, of Top-k its ratio: no ranges, and no positions.
    """
    options = from_json(settings.compressor_options)
    share = make_compressor(settings.compressor, options, seed=settings.seed, party="").upload_share
    n_rows = min(settings.batch_size or settings.n_samples, settings.n_samples)
    return (share + 1.0) * n_rows * sum(widths.values()) * 4 / MIB


def _rounds_to(target: float, scores: NDArray[np.float64], rounds_each: int, what: str) -> int | None:
    """Rounds until the first score above the target."""
    if np.isnan(scores).all():
        raise ValueError(f"there is no {what}: it takes classes, and for an epoch labelled rows to evaluate")
    above = np.flatnonzero(scores > target)
    return None if not above.size else int(above[0] + 1) * rounds_each
