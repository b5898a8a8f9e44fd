"""The scores exchange on one page: one step, in the order sent. Source: Yang et al. 2019, section 2.4.

NextStep -> SealedScores  and  SealedResiduals -> MaskedSums  with every passive party; then
OpenMasked -> Opened  with the coordinator (vflparty.coordinator). What was opened travels with the next step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vflparty import Message


@dataclass(frozen=True)
class NextStep(Message, answer="SealedScores"):
    """active -> every passive: take the step that is opened here, then show your scores."""

    step: int
    opened: bytes  # this party's masked sums of the step before, decrypted; empty in the first step
    curvature: float  # bound of the loss's second derivative, for the step to take; see SharedSettings
    rows: NDArray[np.int32]  # of the batch, ascending; empty: all


@dataclass(frozen=True)
class SealedScores(Message):
    """passive -> active."""

    step: int
    settled: bool  # its own gradient is within tol
    scores: bytes  # [[X_k w_k]], (n_batch, n_outputs) under the coordinator's key, HALF


@dataclass(frozen=True)
class SealedResiduals(Message, answer="MaskedSums"):
    """active -> every passive."""

    step: int
    residuals: bytes  # [[d]], (n_batch, n_outputs) under the coordinator's key, blinded anew, HALF


@dataclass(frozen=True)
class MaskedSums(Message):
    """passive -> active -> coordinator."""

    step: int
    sums: bytes  # [[X_k^T d + R]], (n_coefficients, n_outputs), R uniform modulo n, WIDE
    products: (
        bytes  # [[sum of d times own scores]], one value, HALF, for the loss where it is watched; else empty
    )
