"""What counted operations on ciphertexts cost: as products modulo n**2, and seconds of this machine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from vflcrypto.batches import SQUARE_COST
from vflcrypto.kernels import DEFAULT_WINDOW, Ring
from vflcrypto.noise import STATISTICAL_BITS

from .binning import quantile_cuts

HALF_SIZE = 0.25  # a product modulo p**2, of one modulo n**2
_TIMED_VALUES, _TIMED_PRODUCTS = 64, 8


def priced(counts: Mapping[str, int], n_passive: int, key_bits: int) -> dict[str, Any]:
    """The counts, bytes of ciphertexts, and seconds on one thread.

    counts : of every counter of `vfltree.sealing.COUNTERS`.  n_passive : parties that receive what is encrypted.
    """
    crossing = counts["encryptions"] * n_passive + counts["decryptions"]
    return {
        **counts,
        "bytes": crossing * (2 * key_bits // 8),
        "seconds": _products(counts, key_bits) * product_seconds(key_bits),
    }


def carried_bins_at_most(features: np.ndarray, max_bin: int, most: int) -> list[int]:
    """Of the `most` columns that have most bins: how many sums travel, all but the fullest bin's; ascending."""
    cuts = quantile_cuts(features, max_bin)
    missing = np.isnan(features).any(axis=0)
    carried = sorted(len(column) + int(holes) for column, holes in zip(cuts, missing, strict=True))
    return carried[-most:]


def _products(counts: Mapping[str, int], key_bits: int) -> float:
    """All operations as products modulo n**2: window methods, the owner's two halves by Chinese remainders."""
    half = key_bits // 2
    encryption = 2 * half / DEFAULT_WINDOW * HALF_SIZE
    decryption = 2 * half * (SQUARE_COST + 1 / DEFAULT_WINDOW) * HALF_SIZE
    blinding = (key_bits + STATISTICAL_BITS) / DEFAULT_WINDOW
    return (
        counts["encryptions"] * encryption
        + counts["additions"]
        + counts["squarings"] * SQUARE_COST
        + counts["blindings"] * blinding
        + counts["decryptions"] * decryption
    )


def product_seconds(key_bits: int) -> float:
    """Seconds of one product modulo n**2 on this machine, one thread, for any modulus of this length."""
    ring = Ring((1 << key_bits) - 1)
    x = ring.from_ints([3**i for i in range(1, _TIMED_VALUES + 1)])
    x = ring.mul(x, x)
    start = time.perf_counter()
    for _ in range(_TIMED_PRODUCTS):
        x = ring.mul(x, x)
    return (time.perf_counter() - start) / (_TIMED_VALUES * _TIMED_PRODUCTS)
