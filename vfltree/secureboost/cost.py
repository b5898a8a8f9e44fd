"""What an encrypted training will cost at most, before a key is made: counted operations times a measured price."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vflcrypto import plan_packing
from vflcrypto.batches import SQUARE_COST
from vflcrypto.kernels import DEFAULT_WINDOW, Ring
from vflcrypto.noise import STATISTICAL_BITS

from ..binning import quantile_cuts
from ..losses import fraction_bits_for
from ..sealing import COUNTERS
from .sampling import n_sampled_rows
from .settings import BoostSettings

HALF_SIZE = 0.25  # a product modulo p**2, of one modulo n**2
_TIMED_VALUES, _TIMED_PRODUCTS = 64, 8


@dataclass(frozen=True)
class _PassiveShape:
    n_features: int
    n_carried: int  # bins that travel, over all features: all but the fullest of each


def estimate(settings: BoostSettings, n_rows: int, blocks: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Upper bounds of what `costs_` will say, and seconds on this machine and one thread.

    blocks : passive party -> its features, float64 (n_rows, n_features).

    Trees are taken to be full and each smaller child to hold half its parent's rows; real trees cost less.
    """
    plan = plan_packing(n_rows, settings.n_outputs, fraction_bits_for(n_rows), settings.key_bits)
    n_sampled = n_sampled_rows(settings, n_rows)
    counts = dict.fromkeys(COUNTERS, 0)
    counts["encryptions"] = n_sampled * plan.ciphertexts_per_row
    for features in blocks.values():
        shape = _shape(features, settings.max_bin)
        for level in range(settings.max_depth):
            # The root is summed once for all outputs; below it every tree sums its own smaller children.
            trees = 1 if level == 0 else settings.n_outputs
            rows = n_sampled if level == 0 else n_sampled // 2
            nodes = 1 if level == 0 else min(1 << (level - 1), max(1, rows))
            values = trees * min(nodes * shape.n_carried, rows * shape.n_features) * plan.ciphertexts_per_row
            replies = -(-values // plan.values_per_reply)
            counts["additions"] += trees * rows * shape.n_features * plan.ciphertexts_per_row
            counts["squarings"] += values * plan.value_bits
            counts["blindings"] += replies
            counts["decryptions"] += replies
    counts = {name: count * settings.n_estimators for name, count in counts.items()}
    ciphertext_bytes = 2 * settings.key_bits // 8
    crossing = counts["encryptions"] * len(blocks) + counts["decryptions"]
    return {
        **counts,
        "bytes": crossing * ciphertext_bytes,
        "seconds": _products(counts, settings.key_bits) * product_seconds(settings.key_bits),
    }


def _shape(features: np.ndarray, max_bin: int) -> _PassiveShape:
    cuts = quantile_cuts(features, max_bin)
    missing = np.isnan(features).any(axis=0)
    return _PassiveShape(len(cuts), sum(len(column) for column in cuts) + int(missing.sum()))


def _products(counts: Mapping[str, int], key_bits: int) -> float:
    """All operations as products modulo n**2: window methods, the owner's two halves by Chinese remainders."""
    half = key_bits // 2
    encryption = 2 * (half + STATISTICAL_BITS) / DEFAULT_WINDOW * HALF_SIZE
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
