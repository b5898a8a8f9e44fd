"""Powers of scores on one page; what follows them in a step is in scores/messages.py.

NextPowers -> SealedPowers with one passive party after another; then SealedResiduals -> MaskedSums and
OpenMasked -> Opened.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vflparty import Message


@dataclass(frozen=True)
class NextPowers(Message, answer="SealedPowers"):
    """active -> one passive party: take the step that is opened here, then add your scores to these powers."""

    step: int
    opened: bytes  # as in NextStep
    curvature: float
    rows: NDArray[np.int32]  # of the batch, ascending; empty: all
    powers: bytes  # [[z]], [[z^2]], [[z^3]] so far, (n_batch, n_outputs, 3), as received; empty for the first party


@dataclass(frozen=True)
class SealedPowers(Message):
    """passive -> active."""

    step: int
    settled: bool  # its own gradient is within tol
    powers: bytes  # of the sum with its own scores, under the coordinator's key, blinded anew, HALF
