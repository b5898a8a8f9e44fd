"""Wide integers as rows of words agree with Python's integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vflcrypto import words as wide

SIZES = (1, 2, 3, 8)
MODULUS = (1 << 127) - 39


def signed(n_words: int) -> st.SearchStrategy[list[int]]:
    edge = 1 << (64 * n_words - 1)
    edges = st.sampled_from([0, 1, -1, edge - 1, -edge, 1 - edge, (1 << 63) % edge, -((1 << 63) % edge)])
    return st.lists(st.integers(-edge, edge - 1) | edges, min_size=0, max_size=9)


@pytest.mark.parametrize("n_words", SIZES)
@given(data=st.data())
def test_integers_survive_the_round_trip_to_words(n_words, data):
    values = data.draw(signed(n_words))
    assert wide.to_ints(wide.from_ints(values, n_words)) == values


@pytest.mark.parametrize("n_words", SIZES)
@given(data=st.data())
def test_sums_differences_and_magnitudes_agree_with_python(n_words, data):
    a = data.draw(signed(n_words))
    b = data.draw(st.lists(st.sampled_from(a), min_size=len(a), max_size=len(a))) if a else []
    rows_a, rows_b = wide.from_ints(a, n_words), wide.from_ints(b, n_words)
    modulus = 1 << (64 * n_words)
    assert wide.to_ints(wide.add(rows_a, rows_b), signed=False) == [
        (x + y) % modulus for x, y in zip(a, b, strict=True)
    ]
    assert wide.to_ints(wide.subtract(rows_a, rows_b), signed=False) == [
        (x - y) % modulus for x, y in zip(a, b, strict=True)
    ]
    magnitude, negative = wide.absolute(rows_a)
    assert wide.to_ints(magnitude, signed=False) == [abs(x) for x in a]
    assert negative.tolist() == [x < 0 for x in a]
    assert wide.bit_length(magnitude) == max((abs(x).bit_length() for x in a), default=0)


@pytest.mark.parametrize("n_words", SIZES)
@given(data=st.data())
def test_resizing_keeps_the_sign(n_words, data):
    values = data.draw(signed(n_words))
    wider = wide.resize(wide.from_ints(values, n_words), n_words + 2)
    assert wide.to_ints(wider) == values
    assert wide.to_ints(wide.resize(wider, n_words)) == values


@given(values=signed(3), limit=st.integers(0, 1 << 200))
def test_exceeds_compares_like_python(values, limit):
    rows = wide.from_ints([abs(v) for v in values], 4)
    assert wide.exceeds(rows, limit).tolist() == [abs(v) > limit for v in values]
    for value in values:
        assert not wide.exceeds(wide.from_ints([abs(value)], 4), abs(value)).any()


@given(values=signed(3), offset=st.integers(0, 260), width=st.integers(1, 64))
def test_fields_are_read_as_shifts_and_masks_would(values, offset, width):
    rows = wide.from_ints(values, 3)
    expected = [((v % (1 << 192)) >> offset) & ((1 << width) - 1) for v in values]
    assert wide.get_field(rows, offset, width).tolist() == expected


@given(fields=st.lists(st.integers(0, (1 << 64) - 1), min_size=1, max_size=5), offset=st.integers(0, 127))
def test_a_written_field_is_read_back(fields, offset):
    rows = np.zeros((len(fields), 3), dtype=np.uint64)
    wide.or_field(rows, offset, np.array(fields, dtype=np.uint64))
    assert wide.to_ints(rows, signed=False) == [field << offset for field in fields]


@given(values=signed(2), shift=st.integers(0, 300))
def test_shifting_left_multiplies_by_a_power_of_two(values, shift):
    rows = wide.shift_left(wide.from_ints(values, 2), shift)
    assert wide.to_ints(rows, signed=False) == [(v << shift) % (1 << 128) for v in values]


@given(values=st.lists(st.integers(-(MODULUS // 2), MODULUS // 2), max_size=9))
def test_residues_and_centred_are_inverse(values):
    residues = wide.residues(wide.from_ints(values, 2), MODULUS)
    assert wide.to_ints(residues, signed=False) == [v % MODULUS for v in values]
    assert wide.to_ints(wide.centred(residues, MODULUS)) == values


@given(values=signed(3), fraction_bits=st.integers(0, 200))
def test_conversion_to_float_rounds_once_and_to_even(values, fraction_bits):
    got = wide.to_float(wide.from_ints(values, 3), fraction_bits)
    # Python divides integers with a single correct rounding.
    assert got.tolist() == [v / (1 << fraction_bits) for v in values]


@pytest.mark.parametrize("low", [-1, 0, 1])
@pytest.mark.parametrize("bits", [54, 64, 65, 100, 128, 150])
def test_halfway_cases_round_to_even(bits, low):
    for odd in (0, 1):
        value = (((1 << 52) + odd) << (bits - 53)) + (1 << (bits - 54)) + low
        got = wide.to_float(wide.from_ints([value, -value], 3), 0)
        assert got.tolist() == [float(value), float(-value)]
