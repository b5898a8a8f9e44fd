"""Masks that hide too little, to be planted in a party's way, and the checks that find them."""

import itertools

import numpy as np

from vflcrypto import CiphertextArray, masking
from vflcrypto.masking import OneTimeMask, hide


def masked_in_the_clear(array, n_jobs=1):
    """A uniform mask without fresh noise."""
    masked, mask = hide(array, n_jobs)
    ring, n = array.public_key.ring, array.public_key.n
    words = masking.wide.from_ints([value % n for value in mask._values], ring.words + 1)[:, : ring.words]
    elements = ring.mul_one_plus_mk(array.elements, np.ascontiguousarray(words))
    return masked._replace(elements=elements, freshness="wide"), mask


def masked_with_half(array, n_jobs=1):
    masked, mask = hide(array, n_jobs)
    return masked.rerandomize("half"), mask


class SameMask:
    """The same numbers for every step."""

    def __init__(self):
        self._by_size = {}

    def __call__(self, array, n_jobs=1):
        n = array.public_key.n
        values = self._by_size.setdefault(array.size, [n // 3 + i for i in range(array.size)])
        masked, _ = hide(array, n_jobs)
        ring = array.public_key.ring
        words = masking.wide.from_ints(values, ring.words + 1)[:, : ring.words]
        elements = ring.mul_one_plus_mk(array.elements, np.ascontiguousarray(words))
        planted = masked._replace(elements=elements, freshness="wide").rerandomize("wide")
        return planted, OneTimeMask(list(values), n, array.shape, array.bound)


def values_of(array: CiphertextArray) -> list[int]:
    """The ciphertexts as integers."""
    return array.public_key.ring.to_ints(array.elements)


def noise_is_kept(pairs: list[tuple[CiphertextArray, CiphertextArray]]) -> bool:
    """Is some ciphertext after masking or blinding the one before times (1 + m n), so that its noise shows?"""
    for before, after in pairs:
        n = before.public_key.n
        for old, new in zip(values_of(before), values_of(after), strict=True):
            if new * pow(old, -1, n * n) % n == 1:
                return True
    return False


def differences_are_small(opened: list[list[int]], n: int) -> bool:
    """Are two steps' opened values closer than masks of their own could be (2^-64 of the range)?"""
    limit = n >> 64
    return any(
        min((b - a) % n, (a - b) % n) < limit
        for one, two in itertools.pairwise(opened)
        for a, b in zip(one, two, strict=True)
    )


def uniform(values, n):
    """Chi-squared of 16 bins of value / n and of the low four bits, and differences of neighbours."""
    tables = [
        np.bincount([16 * value // n for value in values], minlength=16),
        np.bincount([value % 16 for value in values], minlength=16),
        np.bincount([16 * ((b - a) % n) // n for a, b in itertools.pairwise(values)], minlength=16),
    ]
    return all(((t - t.mean()) ** 2 / t.mean()).sum() < 45.0 for t in tables)
