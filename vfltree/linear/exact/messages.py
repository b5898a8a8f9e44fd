"""Exact residuals on one page, in the order sent; residuals and masked sums are those of scores/messages.py.

OfferMaskKey -> MaskKey and TakeMaskKeys -> Done once, with two or more passive parties; then a step is
NextExactStep -> ClearScores, SealedResiduals -> MaskedSums, OpenMasked -> Opened.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vflparty import Message


@dataclass(frozen=True)
class OfferMaskKey(Message, answer="MaskKey"):
    """active -> every passive, where there are several."""


@dataclass(frozen=True)
class MaskKey(Message):
    """passive -> active -> the other passive parties."""

    public: bytes


@dataclass(frozen=True)
class TakeMaskKeys(Message):
    """active -> every passive: those of the others; answered by Done."""

    name: str  # what the others call the receiver
    parties: tuple[str, ...]
    publics: tuple[bytes, ...]


@dataclass(frozen=True)
class NextExactStep(Message, answer="ClearScores"):
    """active -> every passive: take the step that is opened here, then show your scores."""

    step: int
    opened: bytes  # as in NextStep
    curvature: float
    rows: NDArray[np.int32]  # of the batch, ascending; empty: all


@dataclass(frozen=True)
class ClearScores(Message):
    """passive -> active."""

    step: int
    settled: bool  # its own gradient is within tol
    scores: NDArray[
        np.int64
    ]  # (n_batch, n_outputs), in fixed point, under masks that cancel over the parties
