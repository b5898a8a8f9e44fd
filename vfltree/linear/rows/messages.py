"""The rows exchange on one page, in the order sent.

ShareRows -> SealedRows once; then a step is HalfSums -> OtherHalf with the passive party, and OpenMasked -> Opened
with the coordinator (vflparty.coordinator). What was opened travels with the next step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vflparty import Message


@dataclass(frozen=True)
class ShareRows(Message, answer="SealedRows"):
    """active -> passive, once."""

    n_coefficients: int
    mixed: bool  # residuals of a row add up to 0 over the outputs, and sums of the last one are not sent
    rows: bytes  # [[x_i]] packed, (n_rows, per_row) under the coordinator's key, HALF


@dataclass(frozen=True)
class SealedRows(Message):
    """passive -> active."""

    rows: bytes  # as in ShareRows


@dataclass(frozen=True)
class HalfSums(Message, answer="OtherHalf"):
    """active -> passive: take the step that is opened here, then do yours."""

    step: int
    opened: bytes  # the passive party's masked sums of the step before, decrypted; empty in the first step
    curvature: float
    rows: NDArray[np.int32]  # of the batch, ascending; empty: all
    sums: bytes  # [[X_P^T d_A]], packed (n_outputs, or one less where mixed; per_row), blinded anew, HALF


@dataclass(frozen=True)
class OtherHalf(Message):
    """passive -> active."""

    step: int
    settled: bool  # its own gradient is within tol
    sums: bytes  # [[X_A^T d_P]], packed as in HalfSums, blinded anew, HALF
    masked: bytes  # [[X_P^T d_A + R]], for the coordinator, R uniform modulo n, WIDE
