"""A uniform quantiser with subtractive dither, for outputs on their way up (as C-VFL, Castiglia et al., 2022).

::

    least entry             greatest entry
    low                     high            2^b codes, a step of s = (high - low) / (2^b - 1) apart
    |-----------|-----------|
    0           1    ...    2^b - 1

With u from [-s/2, s/2), drawn alike at both ends, the code nearest to h + u is sent and u is taken off again. An error
is at most s/2, and 0 on average over dithers whatever h is, at the ends too: what is decoded may lie s/2 outside
low..high, and is not cut off there. Negative values keep their sign like any other.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from vflparty import Message, RemoteProtocolError

from ..messages import QuantizedOutputs
from ..split import Rows
from .options import whole_number
from .uncompressed import Reals, check_finite, checked_array


class Quantize:
    """`bits` bits for each entry of an output. Gradients come back whole, and pass straight through.

    bits : int, 1..32; not a number of levels, of which there are 2^bits
    seed, party : of the dither, which the two ends share
    """

    def __init__(self, bits: int = 16, *, seed: int, party: str) -> None:
        self._bits = whole_number(bits, "bits", 1, 32)
        self._seed, self._party = seed, party

    @property
    def upload_share(self) -> float:
        return self._bits / 32

    def pack(self, outputs: Reals, step: int, rows: Rows) -> Message:
        check_finite(outputs)
        low, high = float(outputs.min()), float(outputs.max())
        if not math.isfinite(high - low):
            raise OverflowError(f"outputs from {low} to {high} are too far apart to be quantised")
        codes = np.zeros(outputs.shape, dtype=np.uint32)
        if (size := self._step_size(low, high)) > 0:
            nearest = np.rint((outputs.astype(np.float64) - low) / size + self._dither(step, outputs.shape))
            codes = np.clip(nearest, 0, 2**self._bits - 1).astype(np.uint32)  # a tie at an end rounds outside
        return QuantizedOutputs(low, high, outputs.dtype == np.float64, pack_codes(codes, self._bits))

    def unpack(self, message: Message, step: int, shape: tuple[int, int]) -> Reals:
        if not isinstance(message, QuantizedOutputs):
            raise RemoteProtocolError(
                f"answered with {type(message).__name__}, quantised outputs were agreed on"
            )
        if not (message.low <= message.high and math.isfinite(message.high - message.low)):
            raise RemoteProtocolError(f"quantised outputs range from {message.low} to {message.high}")
        size = self._step_size(message.low, message.high)
        codes = unpack_codes(message.codes, self._bits, shape)
        with np.errstate(over="ignore"):  # what does not fit is infinite, and refused
            decoded = message.low + size * (codes - self._dither(step, shape))
            decoded = decoded.astype(np.float64 if message.double else np.float32)
        return checked_array(decoded, shape, "outputs")

    def note_gradient(self, gradient: Reals) -> None:
        pass

    def _step_size(self, low: float, high: float) -> float:
        """s; 0 where all entries are alike."""
        return (high - low) / (2**self._bits - 1)

    def _dither(self, step: int, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """u / s: from [-1/2, 1/2), the same at both ends of the link."""
        party = int.from_bytes(self._party.encode(), "little")
        return np.random.default_rng((self._seed, step, party)).random(shape) - 0.5


def pack_codes(codes: NDArray[np.uint32], bits: int) -> bytes:
    """Codes below 2^bits, one after the other, `bits` bits each, highest first; the last byte is filled with zeros."""
    octets = codes.astype(">u4").reshape(-1, 1).view(np.uint8)
    return np.packbits(np.unpackbits(octets, axis=1)[:, 32 - bits :]).tobytes()


def unpack_codes(packed: bytes, bits: int, shape: tuple[int, int]) -> NDArray[np.uint32]:
    """The inverse. RemoteProtocolError where these are not the bytes of so many codes."""
    n_codes = shape[0] * shape[1]
    n_bytes = -(-n_codes * bits // 8)
    if len(packed) != n_bytes:
        raise RemoteProtocolError(
            f"{len(packed)} bytes of codes, {n_codes} of {bits} bits take {n_bytes} bytes"
        )
    stream = np.unpackbits(np.frombuffer(packed, dtype=np.uint8))
    if stream[n_codes * bits :].any():
        raise RemoteProtocolError("bits are set after the last code")
    low_bits = stream[: n_codes * bits].reshape(n_codes, bits)
    whole = np.zeros((n_codes, 32), dtype=np.uint8)
    whole[:, 32 - bits :] = low_bits
    return np.packbits(whole, axis=1).view(">u4").astype(np.uint32).reshape(shape)
