"""Moduli, numbers and arrays for the tests of the kernels: fixed, and different in every lane."""

import random

import numpy as np

from vflcrypto.kernels import Elements, Ring

# Around the word and limb sizes: odd word counts, one limb more or less, halves of real keys; 112 and 1968 leave the
# limbs of AVX2 no bit to spare.
BITS = [2, 5, 11, 64, 65, 100, 112, 128, 256, 512, 1000, 1024, 1536, 1968, 2048]
SIZES = [0, 1, 3, 5, 7, 8, 9, 16, 17]  # around four and eight lanes


def modulus(bits: int) -> int:
    """An odd number of exactly this many bits."""
    return random.Random(bits).getrandbits(bits) | 1 << (bits - 1) | 1


def pattern(m: int, size: int, seed: int) -> list[int]:
    """Numbers below m**2: the edges first, in an order that the seed turns, then random ones."""
    edges = [0, 1, m - 1, m, m * m - 1, m * m - m, 2 * m + 1, m * (m - 1) + 1]
    generator = random.Random(seed * 1000 + m.bit_length())
    turned = edges[seed % len(edges) :] + edges[: seed % len(edges)]
    return [turned[i] % (m * m) if i < len(edges) else generator.randrange(m * m) for i in range(size)]


def words(values: list[int], n: int) -> np.ndarray:
    """uint64 (count, n), little-endian words."""
    data = b"".join(v.to_bytes(8 * n, "little") for v in values)
    return np.frombuffer(data, dtype=np.uint64).reshape(len(values), n).copy()


def from_words(array: np.ndarray) -> list[int]:
    return [int.from_bytes(row.tobytes(), "little") for row in array]


def filled(ring: Ring, size: int, seed: int) -> tuple[list[int], Elements]:
    """The pattern as integers and as elements."""
    values = pattern(ring.modulus, size, seed)
    return values, ring.from_ints(values)
