"""Randomness from the operating system, in bulk: words, bits and uniform integers for keys and noise.

Every call asks the operating system anew. Nothing is kept here or seeded, so two processes never share noise after a
fork, and no `random_state` can reach the cipher. (`pool.py` keeps blinding factors, and forgets them at a fork.)
"""

import os
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

WORD_BITS = 64


def random_words(count: int, bits: int) -> NDArray[np.uint64]:
    """Uniform integers below 2**bits.

    Returns
    -------
    ndarray of uint64, shape (count, ceil(bits / 64)), least significant word first
    """
    n_words = -(-bits // WORD_BITS)
    # A bytearray keeps the array writeable without a second copy.
    words = np.frombuffer(bytearray(os.urandom(count * n_words * 8)), dtype="<u8").reshape(count, n_words)
    words = words.astype(np.uint64, copy=False)
    spare = n_words * WORD_BITS - bits
    if spare and n_words:
        words[:, -1] >>= np.uint64(spare)
    return words


def random_bits(count: int) -> NDArray[np.uint8]:
    """Uniform bits, ndarray of uint8 (0 or 1), shape (count,)."""
    packed = np.frombuffer(os.urandom(-(-count // 8)), dtype=np.uint8)
    return np.unpackbits(packed, count=count)


def random_below(limit: int) -> int:
    """A uniform integer in [0, limit), by rejection."""
    if limit < 1:
        raise ValueError(f"limit must be positive, got one of {limit.bit_length()} bits")
    bits = (limit - 1).bit_length()
    n_bytes = max(1, -(-bits // 8))
    while True:
        candidate = int.from_bytes(os.urandom(n_bytes), "little") >> (8 * n_bytes - bits)
        if candidate < limit:
            return candidate


@lru_cache(maxsize=4)
def primes_below(limit: int) -> NDArray[np.int64]:
    """All primes below `limit`, by the sieve of Eratosthenes. The array is shared: read only."""
    is_prime = np.ones(max(limit, 2), dtype=bool)
    is_prime[:2] = False
    for i in range(2, int(limit**0.5) + 1):
        if is_prime[i]:
            is_prime[i * i :: i] = False
    primes = np.flatnonzero(is_prime).astype(np.int64)
    primes.flags.writeable = False
    return primes
