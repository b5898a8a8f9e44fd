"""Linear combinations of ciphertexts, prod c_j^(x_ij), without one power per term.

Equal multipliers are summed first. Then the bits of the multipliers are cut into windows of t bits: per window every
digit has a bucket, the product of the ciphertexts that have this digit; per bit the product of the buckets whose
digit has it; and one Horner chain over all bits. A multiplication per term and window is what remains.
"""

import numpy as np
from numpy.typing import NDArray

from . import words as wide
from .kernels import Elements, Ring
from .words import Words

_BLOCK_TERMS = 1 << 22  # terms indexed at once: bounds the memory of wide matrices
_MAX_WINDOW = 10


def linear_combinations(ring: Ring, x: Elements, factors: Words, n_jobs: int = 1) -> Elements:
    """out[i] = prod over j of x[j] ** factors[i, j].

    Parameters
    ----------
    x : elements, count n
    factors : ndarray of uint64, shape (m, n, n_words), two's complement; the time follows their values

    Returns
    -------
    elements, count m
    """
    n_outputs, n_terms, n_words = factors.shape
    rows_at_once = max(1, _BLOCK_TERMS // max(1, n_terms))
    out = np.empty((n_outputs, x.shape[1]), dtype=np.uint64)
    for start in range(0, n_outputs, rows_at_once):
        block = factors[start : start + rows_at_once]
        magnitude, negative = wide.absolute(block.reshape(-1, n_words))
        row = np.repeat(np.arange(len(block)), n_terms)
        base = np.tile(np.arange(n_terms), len(block))
        if negative.any():  # positive and negative factors apart, and one inverse per output
            halves = _combine(ring, x, 2 * row + negative, base, magnitude, 2 * len(block), n_jobs)
            inverses = ring.inverse(np.ascontiguousarray(halves[1::2]), n_jobs=n_jobs)
            out[start : start + len(block)] = ring.mul(
                np.ascontiguousarray(halves[::2]), inverses, n_jobs=n_jobs
            )
        else:
            out[start : start + len(block)] = _combine(ring, x, row, base, magnitude, len(block), n_jobs)
    return out


def _combine(
    ring: Ring,
    x: Elements,
    row: NDArray[np.int64],
    base: NDArray[np.int64],
    magnitude: Words,
    n_outputs: int,
    n_jobs: int,
) -> Elements:
    """out[i] = prod of x[base] ** magnitude over the terms with row i."""
    present = magnitude.any(axis=1)
    row, base, magnitude = row[present], base[present], magnitude[present]
    if len(row) == 0:
        return np.repeat(ring.one(), n_outputs, axis=0)
    magnitude = magnitude[:, : wide.words_for(wide.bit_length(magnitude))]
    order, starts = _group_equal(row, magnitude)
    if 2 * len(starts) <= len(order):
        x = ring.product_segments(x, np.append(starts, len(order)), base[order], n_jobs=n_jobs)
        row, magnitude, base = row[order[starts]], magnitude[order[starts]], np.arange(len(starts))
    return _windowed(ring, x, row, base, magnitude, n_outputs, n_jobs)


def _group_equal(row: NDArray[np.int64], magnitude: Words) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """An order that brings equal factors of a row together, and where each group starts in it."""
    keys = [magnitude[:, i] for i in range(magnitude.shape[1])]
    if magnitude.shape[1] == 1 and int(keys[0].max()) < 1 << 16:
        keys = [keys[0].astype(np.uint16)]  # NumPy sorts those by radix
    order = np.lexsort((*keys, row))
    changes = np.diff(row[order]) != 0
    for key in keys:
        changes |= np.diff(key[order]) != 0
    return order, np.concatenate([[0], np.flatnonzero(changes) + 1])


def _best_window(bits: int, terms_per_output: float) -> int:
    """The window with the fewest multiplications: per window the terms, and t 2^(t-1) to join its buckets."""
    costs = {
        t: -(-bits // t) * (terms_per_output + t * (1 << (t - 1)))
        for t in range(1, min(bits, _MAX_WINDOW) + 1)
    }
    return min(costs, key=lambda t: costs[t])


def _windowed(
    ring: Ring,
    x: Elements,
    row: NDArray[np.int64],
    base: NDArray[np.int64],
    magnitude: Words,
    n_outputs: int,
    n_jobs: int,
) -> Elements:
    bits = wide.bit_length(magnitude)
    t = _best_window(bits, len(row) / n_outputs)
    n_windows, n_digits = -(-bits // t), 1 << t
    # Bucket number = (row, window, digit), windows from the most significant down.
    keys = np.concatenate(
        [
            (row * n_windows + (n_windows - 1 - w)) * n_digits
            + wide.get_field(magnitude, w * t, t).astype(np.int64)
            for w in range(n_windows)
        ]
    )
    bases = np.tile(base, n_windows)
    used = keys % n_digits != 0
    keys, bases = keys[used], bases[used]
    small = int(keys.max(initial=0)) < 1 << 16  # NumPy sorts 16 bits by radix
    order = np.argsort(keys.astype(np.uint16) if small else keys, kind="stable")
    sizes = np.bincount(keys, minlength=n_outputs * n_windows * n_digits)
    buckets = ring.product_segments(x, _indptr(sizes), bases[order], n_jobs=n_jobs)
    # Per window its bits from the highest down: the buckets whose digit has that bit.
    digits = np.arange(n_digits)
    members = np.concatenate([digits[digits >> bit & 1 == 1] for bit in reversed(range(t))])
    offsets = np.arange(n_outputs * n_windows) * n_digits
    indices = (offsets[:, None] + members).ravel()
    bit_sums = ring.product_segments(
        buckets, np.arange(0, len(indices) + 1, n_digits // 2, dtype=np.int64), indices, n_jobs=n_jobs
    )
    per_output = n_windows * t
    return ring.horner(bit_sums, np.arange(n_outputs + 1, dtype=np.int64) * per_output, 1, n_jobs=n_jobs)


def _indptr(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
