"""Every backend writes the bytes that plain Python integers would, for any odd modulus, edge value and batch size."""

from dataclasses import dataclass
from math import gcd

import numpy as np
import pytest
import reference_ring
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_patterns import words

from vflcrypto import kernels
from vflcrypto.kernels import FixedBaseTable, Ring

EXAMPLES = settings(max_examples=50, deadline=None)
LARGEST = 2100  # bits: every size of the limbs of real keys and of their halves


@st.composite
def odd_moduli(draw) -> int:
    """Any size, also between the sizes of words and limbs; random, nearly a power of two, or just above one."""
    bits = draw(st.integers(2, LARGEST))
    low = 1 << (bits - 1)
    middle = draw(st.one_of(st.just(0), st.just(low - 1), st.integers(0, low - 1)))
    return low | middle | 1


@dataclass(frozen=True)
class Batch:
    """Two columns of numbers below the square of a modulus."""

    modulus: int
    left: list[int]
    right: list[int]

    @property
    def rings(self):
        real = [Ring(self.modulus, backend=backend) for backend in kernels.backends()]
        return [reference_ring.Ring(self.modulus), *real]


@st.composite
def batches(draw, min_size: int = 0) -> Batch:
    m = draw(odd_moduli())
    edges = [0, 1, m - 1, m % (m * m), m * m - 1, m * m - m, (m * m) >> 1]
    numbers = st.one_of(st.sampled_from(edges), st.integers(0, m * m - 1))
    size = draw(st.integers(min_size, 17))
    column = st.lists(numbers, min_size=size, max_size=size)
    return Batch(m, draw(column), draw(column))


def same_bytes(batch: Batch, operation) -> bool:
    """operation(ring, left, right) written by every ring; the first ring is plain Python."""
    written = [
        ring.to_bytes(operation(ring, ring.from_ints(batch.left), ring.from_ints(batch.right)))
        for ring in batch.rings
    ]
    return len(set(written)) == 1


@EXAMPLES
@given(batches())
def test_reading_and_writing_changes_no_byte(batch):
    width = 16 * -(-batch.modulus.bit_length() // 64)
    plain = b"".join(value.to_bytes(width, "little") for value in batch.left)
    for ring in batch.rings:
        assert ring.to_bytes(ring.from_bytes(plain, len(batch.left))) == plain


@EXAMPLES
@given(batches())
def test_products_and_squares_are_the_same_everywhere(batch):
    assert same_bytes(batch, lambda ring, x, y: ring.mul(x, y))
    assert same_bytes(batch, lambda ring, x, y: ring.mul(x, x))


@EXAMPLES
@given(batches())
def test_message_factors_are_the_same_everywhere(batch):
    messages = [value % batch.modulus for value in batch.right]

    def operation(ring, x, _):
        return ring.mul_one_plus_mk(x, words(messages, ring.words))

    assert same_bytes(batch, operation)


@EXAMPLES
@given(batches(), st.integers(0, 2**70))
def test_powers_are_the_same_everywhere(batch, exponent):
    row = words([exponent], 2)
    assert same_bytes(batch, lambda ring, x, y: ring.pow_vartime(x, row))
    assert same_bytes(batch, lambda ring, x, y: ring.pow_secret(x, exponent, 71))


@EXAMPLES
@given(batches(), st.data())
def test_a_power_for_each_value_is_the_same_everywhere(batch, data):
    size = len(batch.left)
    rows = words(data.draw(st.lists(st.integers(0, 2**40), min_size=size, max_size=size)), 1)
    assert same_bytes(batch, lambda ring, x, y: ring.pow_vartime(x, rows))


@EXAMPLES
@given(batches())
def test_inverses_are_the_same_everywhere(batch):
    units = [value for value in batch.left if gcd(value, batch.modulus) == 1]
    assert same_bytes(Batch(batch.modulus, units, units), lambda ring, x, y: ring.inverse(x))


@EXAMPLES
@given(batches(min_size=1), st.lists(st.integers(0, 9), max_size=10), st.data())
def test_products_of_segments_are_the_same_everywhere(batch, lengths, data):
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    count = int(indptr[-1])
    chosen = data.draw(st.lists(st.integers(0, len(batch.left) - 1), min_size=count, max_size=count))
    indices = np.array(chosen, dtype=np.int64)
    assert same_bytes(batch, lambda ring, x, y: ring.product_segments(x, indptr, indices))


@EXAMPLES
@given(batches(), st.integers(1, 20), st.integers(1, 6))
def test_horner_is_the_same_everywhere(batch, shift, group):
    starts = np.arange(0, len(batch.left), group, dtype=np.int64)
    indptr = np.append(starts, len(batch.left)).astype(np.int64)
    assert same_bytes(batch, lambda ring, x, y: ring.horner(x, indptr, shift))


@EXAMPLES
@given(batches(min_size=1), st.integers(4, 8), st.data())
def test_table_powers_are_the_same_everywhere(batch, window, data):
    size = len(batch.left)
    exponents = words(data.draw(st.lists(st.integers(0, 2**75 - 1), min_size=size, max_size=size)), 2)
    bits = np.array(data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)), dtype=np.uint8)

    def operation(ring, x, y):
        kind = reference_ring.FixedBaseTable if isinstance(ring, reference_ring.Ring) else FixedBaseTable
        return kind(ring, x[:1], 75, window, extra=y[:1]).power(exponents, 75, bits)

    assert same_bytes(batch, operation)


@pytest.mark.parametrize("backend", kernels.backends())
def test_a_planted_wrong_bit_is_found(backend):
    batch = Batch((1 << 200) + 235, [5, 7], [11, 13])

    def operation(ring, x, y):
        product = ring.mul(x, y)
        if ring.backend == backend:
            product[1, 0] ^= np.uint64(1)
        return product

    assert not same_bytes(batch, operation)
