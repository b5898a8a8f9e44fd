"""Fixed point: exact integers, honest floats, scales and bounds that do not follow the values."""

import datetime
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from insecure_keys import insecure_key

from vflcrypto import BoundOverflowError, PrecisionError
from vflcrypto.encoding import FRACTION_BITS, decode, encode

CAPACITY = 1 << 1022


def round_trip(values, **options):
    plain = encode(values, capacity=CAPACITY, **options)
    return decode(plain.words, plain.shape, plain.encoding)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_64_bit_integers_are_exact(values):
    decoded = round_trip(np.array(values, dtype=np.int64))
    assert decoded.dtype == np.int64
    assert decoded.tolist() == values


@given(st.lists(st.integers(-(2**500), 2**500), min_size=1, max_size=5))
def test_integers_of_any_size_are_exact(values):
    assert round_trip(values).tolist() == values


@given(st.lists(st.floats(-1e18, 1e18).filter(lambda x: x == 0 or abs(x) > 1e-19), max_size=20))
def test_floats_lose_at_most_a_billionth(values):
    got = round_trip(np.array(values, dtype=np.float64))
    np.testing.assert_allclose(got, values, rtol=1e-9, atol=0)


@given(st.lists(st.floats(2.0**-40, 1e270) | st.floats(-1e270, -(2.0**-40)), max_size=20))
def test_doubles_above_2_to_the_minus_40_are_exact(values):
    assert round_trip(np.array(values, dtype=np.float64)).tolist() == values


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 300))
def test_encoded_integers_are_correctly_rounded_or_refused(value, fraction_bits):
    exact = Fraction(value) * 2**fraction_bits
    rounded = round(exact)  # Python rounds fractions half to even
    try:
        plain = encode(value, fraction_bits=fraction_bits, capacity=1 << 1400)
    except PrecisionError:
        assert abs(exact - rounded) > Fraction(1, 10**9) * abs(exact) * Fraction(999, 1000)
    else:
        assert [plain.largest()] == [abs(rounded)]
        assert abs(exact - rounded) <= Fraction(1, 10**9) * abs(exact) * Fraction(1001, 1000)


def test_the_error_names_a_scale_that_would_do():
    for value in (1e-200, 3e-30, 1.7e-21, 2.0**-1074):
        with pytest.raises(PrecisionError, match=r"fraction_bits=\d+ would do") as caught:
            encode(value, capacity=1 << 1500)
        scale = int(str(caught.value).rsplit("fraction_bits=", 1)[1].split()[0])
        plain = encode(value, fraction_bits=scale, capacity=1 << 1500)
        got = decode(plain.words, plain.shape, plain.encoding)
        assert abs(got - value) <= 1e-9 * value


def test_scale_and_bound_follow_the_type_and_not_the_values():
    small, large = (encode(np.array([x]), capacity=CAPACITY) for x in (1e-3, 1e15))
    assert (small.encoding, small.bound) == (large.encoding, large.bound)
    assert small.encoding.fraction_bits == FRACTION_BITS
    few, many = (encode(np.array([x], dtype=np.int32), capacity=CAPACITY) for x in (1, -(2**31)))
    assert (few.encoding, few.bound) == (many.encoding, many.bound)


def test_a_declared_bound_is_kept_and_checked():
    assert encode([0.5, -1.0], bound=1.0, fraction_bits=20, capacity=CAPACITY).bound == 1 << 20
    assert encode([3, -7], bound=7, capacity=CAPACITY).bound == 7
    for values, bound in (([1.5], 1.0), ([8], 7), ([-8], 7), ([2**70], 2**69)):
        with pytest.raises(OverflowError, match=r"needs \d+ bits"):
            encode(values, bound=bound, capacity=CAPACITY)


@pytest.mark.parametrize(
    "bad", [float("nan"), float("inf"), -float("inf"), [[1.0, float("nan")], [0.0, 1.0]]]
)
def test_nan_and_infinity_are_refused(bad):
    with pytest.raises(ValueError, match="NaN or infinity"):
        encode(bad, capacity=CAPACITY)


@pytest.mark.parametrize(
    "bad",
    [
        None,
        "12",
        b"12",
        1j,
        [1, None],
        ["1", "2"],
        [1.0, "x"],
        ...,
        Fraction(1, 3),
        datetime.date(2020, 1, 1),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.ma.masked_array([1, 2], mask=[0, 1]),
        {"a": 1},
    ],
    ids=repr,
)
def test_what_is_no_number_is_refused_by_name(bad):
    with pytest.raises(TypeError, match="encrypt"):
        encode(bad, capacity=CAPACITY)


def test_ragged_lists_are_refused():
    with pytest.raises(ValueError):
        encode([[1, 2], [3]], capacity=CAPACITY)


@pytest.mark.parametrize("bad", [-1, 5000, 1.5, "3", True])
def test_impossible_scales_are_refused(bad):
    with pytest.raises((TypeError, ValueError)):
        encode([1.0], fraction_bits=bad, capacity=CAPACITY)


def test_lists_that_numpy_would_round_stay_exact():
    assert round_trip([-1, 2**63]).tolist() == [-1, 2**63]
    assert round_trip([2**64 - 1, -5]).tolist() == [2**64 - 1, -5]


def test_integers_with_fraction_bits_come_back_as_floats():
    got = round_trip([1, -2], fraction_bits=10)
    assert got.dtype == np.float64
    assert got.tolist() == [1.0, -2.0]


# ---- the published cases ----


def test_a_chain_of_products_ends_in_an_overflow_at_the_product(key1024):
    c, value = key1024.public_key.encrypt(0.9), 0.9
    with pytest.raises(OverflowError, match=r"a product may need \d+ bits .* the key offers 1023"):
        for _ in range(100):
            c = c * 0.9
            value *= 0.9
            assert key1024.decrypt(c) == pytest.approx(value, rel=1e-9)


def test_far_apart_scales_add_up(key1024):
    public = key1024.public_key
    assert key1024.decrypt(public.encrypt(593) + public.encrypt(0.1640625)) == 593.1640625
    assert key1024.decrypt(public.encrypt(2**60) + public.encrypt(0.5)) == float(2**60)
    with pytest.raises(OverflowError, match=r"2\*\*-96.*2\*\*-665"):
        public.encrypt(1e-200) + public.encrypt(1e200)
    with pytest.raises(OverflowError, match=r"700 bits|\d+ bits"):
        public.encrypt(1e-200, fraction_bits=700) + public.encrypt(1e200)


def test_negative_numbers_and_zeros_are_exact(key):
    public = key.public_key
    assert key.decrypt(public.encrypt([-2, -0.5, 0.0, -0.0])).tolist() == [-2, -0.5, 0, 0]
    assert key.decrypt(public.encrypt([-3.0]) * -2).tolist() == [6.0]
    assert key.decrypt(public.encrypt([3.0]) - 5).tolist() == [-2.0]


def test_sums_align_hidden_scales(key1024):
    a, b = key1024.public_key.encrypt(1000.25), key1024.public_key.encrypt(0.125)
    assert key1024.decrypt(12.5 * a + b) == pytest.approx(12503.25, abs=1e-9)
    assert key1024.decrypt(b + a * 12.5) == pytest.approx(12503.25, abs=1e-9)


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int64, np.uint64, np.float16, np.float32, np.float64, np.bool_, np.uint8, np.int32]
)
def test_numpy_scalars_are_numbers(key, dtype):
    assert key.decrypt(key.public_key.encrypt(dtype(1))) == 1


def test_limits_of_64_bits_are_exact(key):
    limits = np.array([2**63 - 1, -(2**63)], dtype=np.int64)
    decrypted = key.decrypt(key.public_key.encrypt(limits))
    assert decrypted.dtype == np.int64
    assert decrypted.tolist() == limits.tolist()
    top = key.decrypt(key.public_key.encrypt(np.uint64(2**64 - 1)))
    assert top == 18446744073709551615
    assert isinstance(top.item(), int)


@pytest.mark.parametrize(
    "values",
    [
        np.ones((2, 3)),
        np.empty((0,)),
        np.empty((0, 3)),
        np.arange(6.0).reshape(2, 3).T,
        np.arange(10.0)[::2],
        np.arange(10.0)[::-1],
        [[1, 2.5], [3, -4]],
        7,
        np.float64(2.5),
        [True, False],
        np.array([1, 2], dtype=">i4"),
        np.arange(24).reshape(2, 3, 4),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
    ],
    ids=lambda v: f"{np.asarray(v).dtype}{np.shape(v)}",
)
def test_shapes_and_layouts_are_kept(key, values):
    for encrypt in (key.public_key.encrypt, key.encrypt):
        c = encrypt(values)
        assert c.shape == np.shape(values)
        decrypted = key.decrypt(c)
        assert decrypted.shape == np.shape(values)
        np.testing.assert_array_equal(decrypted, np.asarray(values))


def test_values_too_large_for_the_key_are_refused_at_encryption(key256):
    for value in (2**255, -(2**255), 1e70):
        with pytest.raises(BoundOverflowError, match=r"needs \d+ bits"):
            key256.public_key.encrypt(value)


def test_values_up_to_the_edge_of_the_plaintext_space_are_exact():
    key = insecure_key("INSECURE_TEST_KEY_256")
    edge = key.public_key.capacity
    values = [edge, -edge, edge - 1, 0]
    assert key.decrypt(key.encrypt(values)).tolist() == values
    with pytest.raises(OverflowError):
        key.encrypt([edge + 1])
    with pytest.raises(OverflowError):
        key.encrypt(values) + 1
