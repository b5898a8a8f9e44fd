"""Outputs as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vflparty import Message, RemoteProtocolError

from ..messages import CutOutputs


class Uncompressed:
    """No compressor."""

    def pack(self, outputs: NDArray[np.floating[Any]], step: int) -> Message:
        return CutOutputs(outputs)

    def unpack(self, message: Message, step: int, shape: tuple[int, int]) -> NDArray[np.floating[Any]]:
        if not isinstance(message, CutOutputs):
            raise RemoteProtocolError(f"answered with {type(message).__name__}, no compressor was agreed on")
        return checked_array(message.outputs, shape, "outputs")

    def note_gradient(self, gradient: NDArray[np.floating[Any]]) -> None:
        pass


def checked_array(values: NDArray[Any], shape: tuple[int, int], what: str) -> NDArray[np.floating[Any]]:
    """Floats of this shape, all finite; RemoteProtocolError otherwise."""
    if values.shape != shape or values.dtype.kind != "f":
        raise RemoteProtocolError(
            f"{what} of {values.dtype} and shape {values.shape}, expected floats {shape}"
        )
    if not np.isfinite(values).all():
        bad = int((~np.isfinite(values)).sum())
        raise RemoteProtocolError(
            f"{bad} of {values.size} {what} are not finite: training has diverged, or its columns are not scaled; "
            "lower the learning rate or scale the columns"
        )
    return values
