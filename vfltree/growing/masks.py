"""Bit masks on the wire: one mask a node, packed, each starting on a byte of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vflparty import RemoteProtocolError


def pack_masks(masks: Sequence[np.ndarray]) -> np.ndarray:
    """masks : bool arrays. Returns uint8."""
    return np.concatenate([np.packbits(mask) for mask in masks] or [np.zeros(0, np.uint8)])


def unpack_masks(packed: np.ndarray, lengths: Sequence[int], party: str | None = None) -> list[np.ndarray]:
    """The inverse; RemoteProtocolError of `party` where the bytes do not fit the lengths."""
    sizes = [(length + 7) // 8 for length in lengths]
    if packed.dtype != np.uint8 or packed.ndim != 1 or len(packed) != sum(sizes):
        raise RemoteProtocolError(f"masks of {sum(sizes)} bytes were expected, got {packed.size}", party)
    pieces = np.split(packed, np.cumsum(sizes)[:-1]) if sizes else []
    masks = [np.unpackbits(piece).astype(bool) for piece in pieces]
    if any(mask[length:].any() for mask, length in zip(masks, lengths, strict=True)):
        raise RemoteProtocolError("a mask has bits beyond its last row", party)
    return [mask[:length] for mask, length in zip(masks, lengths, strict=True)]
