"""Fixed-base tables agree with Python's pow, for every window and every prefix of their rows."""

import pickle
import random

import numpy as np
import pytest
from kernel_patterns import SIZES, modulus, words

from vflcrypto import kernels
from vflcrypto.kernels import FixedBaseTable, Ring

BACKENDS = kernels.backends()


def exponents_of(size, bits, seed=1):
    """The edges first, then random ones."""
    generator = random.Random(seed)
    edges = [0, 1, 2**bits - 1, 2 ** (bits - 1), (2**bits - 1) // 3]
    return [edges[i] if i < len(edges) else generator.getrandbits(bits) for i in range(size)]


@pytest.mark.parametrize("window", [4, 5, 6, 7, 8])
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_window_agrees_with_python_pow(backend, window):
    ring = Ring(modulus(100), backend=backend)
    table = FixedBaseTable(ring, ring.from_ints([12345]), 70, window=window)
    exponents = exponents_of(17, 70)
    powers = table.power(words(exponents, 2))
    assert ring.to_ints(powers) == [pow(12345, e, ring.modulus**2) for e in exponents]


@pytest.mark.parametrize("size", [*SIZES, 64, 65, 130])
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_batch_size_agrees_with_python_pow(backend, size):
    ring = Ring(modulus(128), backend=backend)
    table = FixedBaseTable(ring, ring.from_ints([7]), 40)
    exponents = exponents_of(size, 40)
    assert ring.to_ints(table.power(words(exponents, 1))) == [pow(7, e, ring.modulus**2) for e in exponents]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_prefix_of_the_rows_serves_shorter_exponents(backend):
    ring = Ring(modulus(256), backend=backend)
    table = FixedBaseTable(ring, ring.from_ints([3]), 300)
    for bits in (1, 63, 64, 65, 150, 300):
        exponents = exponents_of(9, bits)
        powers = table.power(words(exponents, 5), exponent_bits=bits)
        assert ring.to_ints(powers) == [pow(3, e, ring.modulus**2) for e in exponents]


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_extra_bit_multiplies_in_the_extra_element(backend, n_jobs):
    ring = Ring(modulus(65), backend=backend)
    square = ring.modulus**2
    table = FixedBaseTable(ring, ring.from_ints([5]), 66, extra=ring.from_ints([11]))
    exponents = exponents_of(41, 66)
    bits = np.arange(41, dtype=np.uint8) * 7 // 3 % 2
    powers = table.power(words(exponents, 2), extra_bits=bits, n_jobs=n_jobs)
    expected = [pow(5, e, square) * 11 ** int(b) % square for e, b in zip(exponents, bits, strict=True)]
    assert ring.to_ints(powers) == expected


@pytest.mark.parametrize("bits", [1, 11, 512, 1000])
@pytest.mark.parametrize("backend", BACKENDS)
def test_real_sizes_agree_with_python_pow(backend, bits):
    ring = Ring(modulus(max(bits, 2)), backend=backend)
    base = (ring.modulus - 1) ** 2 - 3
    table = FixedBaseTable(ring, ring.from_ints([base % ring.modulus**2]), bits)
    exponents = exponents_of(5, bits)
    powers = table.power(words(exponents, -(-bits // 64)))
    assert ring.to_ints(powers) == [pow(base, e, ring.modulus**2) for e in exponents]


def test_exponents_and_bits_that_do_not_fit_are_refused():
    ring = Ring(modulus(100))
    plain = FixedBaseTable(ring, ring.from_ints([3]), 70)
    with pytest.raises(ValueError, match="an exponent has more than 70 bits"):
        plain.power(words([1, 2**70], 2))
    with pytest.raises(ValueError, match="up to 70 bits, got 71"):
        plain.power(words([1], 2), exponent_bits=71)
    with pytest.raises(ValueError, match="extra_bits"):
        plain.power(words([1], 2), extra_bits=np.zeros(1, np.uint8))
    extra = FixedBaseTable(ring, ring.from_ints([3]), 70, extra=ring.one())
    with pytest.raises(ValueError, match="extra_bits"):
        extra.power(words([1], 2))
    with pytest.raises(ValueError, match=r"shape \(1,\), got \(2,\)"):
        extra.power(words([1], 2), extra_bits=np.zeros(2, np.uint8))
    with pytest.raises(ValueError, match="window must be between 4 and 8, got 3"):
        FixedBaseTable(ring, ring.one(), 10, window=3)


def test_rings_and_tables_are_never_pickled():
    ring = Ring(modulus(100))
    for held in (ring, FixedBaseTable(ring, ring.one(), 10), kernels.CrtRings(23, 59)):
        with pytest.raises(TypeError, match=r"pickl|process"):
            pickle.dumps(held)
