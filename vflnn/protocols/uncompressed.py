"""Outputs as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vflparty import Message, RemoteProtocolError

from ..messages import CutOutputs
from ..split import Rows

Reals = NDArray[np.floating[Any]]
DIVERGED = (
    "are not finite: training has diverged, or its columns are not scaled; lower the learning rate or scale "
    "the columns"
)


class Uncompressed:
    """No compressor."""

    upload_share = 1.0

    def pack(self, outputs: Reals, step: int, rows: Rows) -> Message:
        return CutOutputs(outputs)

    def unpack(self, message: Message, step: int, shape: tuple[int, int]) -> Reals:
        if not isinstance(message, CutOutputs):
            raise RemoteProtocolError(f"answered with {type(message).__name__}, no compressor was agreed on")
        return checked_array(message.outputs, shape, "outputs")

    def note_gradient(self, gradient: Reals) -> None:
        pass


def check_finite(outputs: Reals) -> None:
    """OverflowError unless all are finite, at the party that computed them."""
    bad = int((~np.isfinite(outputs)).sum())
    if bad:
        raise OverflowError(f"{bad} of {outputs.size} outputs {DIVERGED}")


def checked_array(values: NDArray[Any], shape: tuple[int, ...], what: str) -> Reals:
    """Floats of this shape, all finite, in float32 too; RemoteProtocolError otherwise."""
    if values.shape != shape or values.dtype.kind != "f":
        raise RemoteProtocolError(
            f"{what} of {values.dtype} and shape {values.shape}, expected floats {shape}"
        )
    with np.errstate(over="ignore"):  # a double that fits no float32 would be infinite where it arrives
        finite = np.isfinite(values.astype(np.float32, copy=False))
    if not finite.all():
        bad = int((~finite).sum())
        raise RemoteProtocolError(f"{bad} of {values.size} {what} {DIVERGED}")
    return values
