"""Laws of CiphertextArray: D(E(a) op E(b)) = a op b, NumPy's shapes, bounds that raise in time."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from insecure_keys import insecure_key

from vflcrypto import (
    BoundOverflowError,
    CiphertextArray,
    FixedPoint,
    KeyMismatchError,
    SlotOverflowError,
    concatenate,
    kernels,
    split_slots,
)
from vflcrypto import words as wide

KEY = insecure_key("INSECURE_TEST_KEY_512")
PUBLIC = KEY.public_key
INT64 = st.integers(-(2**63), 2**63 - 1)
SIZES = [0, 1, 7, 8, 9, 16, 17]  # around the eight lanes
quick = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def decrypted(array: CiphertextArray) -> list:
    return KEY.decrypt(array).tolist()


# ---- laws ----


@quick
@given(st.lists(st.tuples(INT64, INT64), max_size=9))
def test_sums_and_differences_of_ciphertexts_decrypt_to_those_of_integers(pairs):
    a, b = ([pair[i] for pair in pairs] for i in (0, 1))
    ca, cb = PUBLIC.encrypt(np.array(a, dtype=np.int64)), KEY.encrypt(np.array(b, dtype=np.int64))
    assert decrypted(ca + cb) == [x + y for x, y in pairs]
    assert decrypted(ca - cb) == [x - y for x, y in pairs]
    assert decrypted(-ca) == [-x for x in a]
    assert decrypted(+ca) == a


@quick
@given(st.lists(st.tuples(INT64, INT64), min_size=1, max_size=9), INT64)
def test_plain_numbers_add_subtract_and_multiply(pairs, k):
    a, b = (np.array([pair[i] for pair in pairs], dtype=np.int64) for i in (0, 1))
    c = PUBLIC.encrypt(a)
    assert decrypted(c + b) == [x + y for x, y in pairs] == decrypted(b + c)
    assert decrypted(c - b) == [x - y for x, y in pairs]
    assert decrypted(b - c) == [y - x for x, y in pairs]
    assert decrypted(c * b) == [x * y for x, y in pairs] == decrypted(b * c)
    assert decrypted(c * k) == [x * k for x, _ in pairs] == decrypted(k * c)


@quick
@given(
    st.lists(st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-9), min_size=1, max_size=5),
    st.data(),
)
def test_floats_add_and_multiply_to_nine_digits(values, data):
    other = data.draw(st.sampled_from([0.1, -2.5, 1e3, 3.0, -1e-3]))
    c = PUBLIC.encrypt(values)
    np.testing.assert_allclose(KEY.decrypt(c * other), np.array(values) * other, rtol=1e-9)
    np.testing.assert_allclose(KEY.decrypt(c + other), np.array(values) + other, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(KEY.decrypt(c / 8), np.array(values) / 8, rtol=1e-9)


@pytest.mark.parametrize("size", SIZES)
def test_every_operation_works_at_every_size_on_every_backend(key, size, rng):
    a, b = rng.integers(-(2**40), 2**40, (2, size))
    ca, cb = key.public_key.encrypt(a), key.encrypt(b)
    results = {
        "a + b": (ca + cb, a + b),
        "a - b": (ca - cb, a - b),
        "-a": (-ca, -a),
        "a * b": (ca * b, a.astype(object) * b),
        "a + plain": (ca + b, a + b),
        "plain @ a": (b @ ca, b.astype(object) @ a if size else 0),
        "sum": (ca.sum(), a.sum()),
        "rerandomized": (ca.rerandomize(), a),
    }
    for name, (got, expected) in results.items():
        np.testing.assert_array_equal(key.decrypt(got), expected, err_msg=name)


def test_threads_do_not_change_results(key, rng):
    a, x = rng.integers(-100, 100, 50), rng.integers(-100, 100, (3, 50))
    c = key.encrypt(a, n_jobs=2)
    assert key.decrypt(c.multiply(a, n_jobs=2), n_jobs=2).tolist() == (a * a).tolist()
    assert key.decrypt(c.dot(x, n_jobs=2)).tolist() == (x @ a).tolist()
    assert key.decrypt(c.sum(n_jobs=2)) == a.sum()
    assert key.decrypt(c.add(c, n_jobs=2).rerandomize(n_jobs=2)).tolist() == (2 * a).tolist()


# ---- linear combinations ----


@pytest.mark.parametrize("values", ["small", "one-hot", "wide", "floats", "zeros", "equal"])
def test_plain_matrices_multiply_encrypted_vectors(key1024, values, rng):
    x = {
        "small": rng.integers(-9, 9, (4, 37)),
        "one-hot": rng.integers(0, 2, (4, 37)).astype(bool),
        "wide": rng.integers(-(2**62), 2**62, (4, 37)),
        "floats": rng.normal(size=(4, 37)),
        "zeros": np.zeros((4, 37), dtype=int),
        "equal": np.full((4, 37), -7),
    }[values]
    v = rng.integers(-(2**40), 2**40, 37)
    c = key1024.encrypt(v)
    expected = x.astype(object) @ v
    for got in (x @ c, (c @ x.T)):
        np.testing.assert_allclose(
            key1024.decrypt(got).astype(float),
            expected.astype(float),
            rtol=1e-12 if values == "floats" else 0,
        )


def test_matrix_products_have_numpys_shapes(key, rng):
    x, m, v = rng.integers(-9, 9, (2, 5)), rng.integers(-9, 9, (5, 3)), rng.integers(-9, 9, 5)
    cm, cv = key.encrypt(m), key.encrypt(v)
    for got, expected in (
        (x @ cm, x @ m),
        (x @ cv, x @ v),
        (v @ cv, v @ v),
        (v @ cm, v @ m),
        (cm.T @ v, m.T @ v),
    ):
        assert got.shape == np.shape(expected)
        np.testing.assert_array_equal(key.decrypt(got), expected)
    assert key.decrypt(cv @ v) == v @ v
    np.testing.assert_array_equal(key.decrypt(cm.T @ x.T), m.T @ x.T)
    for bad in (lambda: x @ cm.T, lambda: cv @ x, lambda: 3 @ cv, lambda: rng.integers(0, 2, (2, 2, 5)) @ cv):
        with pytest.raises(ValueError, match="cannot multiply shapes"):
            bad()


def test_empty_combinations_are_encrypted_zeros(key):
    empty = key.encrypt(np.empty((0,)))
    assert key.decrypt(np.empty((3, 0)) @ empty).tolist() == [0, 0, 0]
    assert (np.empty((0, 4)) @ key.encrypt(np.ones(4))).shape == (0,)


# ---- arrays ----


def test_indexing_follows_numpy(key):
    a = np.arange(24).reshape(2, 3, 4)
    c = key.encrypt(a)
    mask = a[0] % 3 == 0
    for index in (
        0, -1, slice(None, None, -1), (1, 2), (..., 1), (slice(None), 1), (0, ..., slice(1, 3)), [1, 0, 1],
        np.array([[0, 1], [1, 1]]), (slice(None), mask), (1, mask), None, (slice(None), None, 1), (1, 2, 3),
        (slice(0, 0),), a > 5,
    ):  # fmt: skip
        expected = a[index]
        assert c[index].shape == expected.shape
        np.testing.assert_array_equal(key.decrypt(c[index]), expected)
    for bad in ((0, 0, 0, 0), 2, (0, 3), "x", (..., 0, 0, 0, 0), (slice(None), slice(None), slice(None), 0)):
        with pytest.raises(IndexError):
            c[bad]


def test_reshape_transpose_and_iteration_follow_numpy(key):
    a = np.arange(6).reshape(2, 3)
    c = key.encrypt(a)
    for shape in ((3, 2), (-1,), (6,), (1, 2, 3), (2, -1)):
        np.testing.assert_array_equal(key.decrypt(c.reshape(*shape)), a.reshape(*shape))
        np.testing.assert_array_equal(key.decrypt(c.reshape(shape)), a.reshape(shape))
    np.testing.assert_array_equal(key.decrypt(c.T), a.T)
    assert len(c) == 2
    assert (c.ndim, c.size) == (2, 6)
    assert [key.decrypt(row).tolist() for row in c] == a.tolist()
    with pytest.raises(ValueError):
        c.reshape(4, 2)
    with pytest.raises(TypeError):
        len(c[0, 0])


@pytest.mark.parametrize(
    ("left", "right"),
    [((3, 1), (1, 4)), ((2, 3), (3,)), ((), (2, 2)), ((2, 1, 3), (4, 1)), ((1,), (0,)), ((1,), (1, 1))],
)
def test_broadcasting_follows_numpy(key, left, right, rng):
    a, b = rng.integers(-9, 9, left), rng.integers(-9, 9, right)
    ca, cb = key.encrypt(a), key.encrypt(b)
    for got, expected in (
        (ca + cb, a + b),
        (ca - cb, a - b),
        (ca + b, a + b),
        (a + cb, a + b),
        (ca * b, a * b),
        (a * cb, a * b),
    ):
        assert got.shape == np.shape(expected)
        np.testing.assert_array_equal(key.decrypt(got), expected)


def test_shapes_that_do_not_broadcast_are_refused(key):
    c = key.encrypt([1, 2, 3])
    for bad in (lambda: c + key.encrypt([1, 2]), lambda: c + np.ones(2), lambda: c * np.ones(2)):
        with pytest.raises(ValueError):
            bad()


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), (0, 1, 2), ()])
def test_sum_follows_numpy(key, axis, rng):
    a = rng.integers(-9, 9, (2, 3, 4))
    np.testing.assert_array_equal(key.decrypt(key.encrypt(a).sum(axis)), a.sum(axis=axis))


def test_sums_over_nothing_and_bad_axes(key):
    assert key.decrypt(key.encrypt(np.empty((0, 2), dtype=int)).sum(0)).tolist() == [0, 0]
    for axis in (1, -2, (0, 1)):
        with pytest.raises(ValueError, match="axis"):
            key.encrypt([1, 2]).sum(axis)


def test_builtin_sum_and_numpy_scalars_work(key):
    c = key.encrypt([1, 2, 3])
    assert key.decrypt(sum(c)) == 6
    assert key.decrypt(np.int64(3) * c).tolist() == [3, 6, 9]
    assert key.decrypt(np.float64(0.5) * c).tolist() == [0.5, 1.0, 1.5]
    assert key.decrypt(np.array([1, 1, 1]) + c).tolist() == [2, 3, 4]


def test_concatenate_follows_numpy(key):
    a, b = np.arange(6).reshape(2, 3), np.arange(3).reshape(1, 3)
    joined = concatenate([key.encrypt(a), key.encrypt(b)])
    np.testing.assert_array_equal(key.decrypt(joined), np.concatenate([a, b]))
    joined = concatenate([key.encrypt(a), key.encrypt(a)], axis=-1)
    np.testing.assert_array_equal(key.decrypt(joined), np.concatenate([a, a], axis=-1))
    mixed = concatenate([key.encrypt([1, 2]), key.encrypt([0.5])])
    assert key.decrypt(mixed).tolist() == [1.0, 2.0, 0.5]
    for bad in ([], [key.encrypt(1)], [key.encrypt(a), key.encrypt([1])]):
        with pytest.raises(ValueError):
            concatenate(bad)


# ---- bins and segments ----


@pytest.mark.parametrize("n_rows", SIZES)
def test_sum_by_bin_equals_sums_in_the_clear(key, n_rows, rng):
    values, bins = rng.integers(-99, 99, (n_rows, 2)), rng.integers(0, 5, (n_rows, 3)).astype(np.uint8)
    expected = np.zeros((3, 6, 2), dtype=np.int64)
    for feature in range(3):
        np.add.at(expected[feature], bins[:, feature], values)
    c = key.encrypt(values)
    np.testing.assert_array_equal(key.decrypt(c.sum_by_bin(bins, 6)), expected)
    np.testing.assert_array_equal(key.decrypt(c[:, 0].sum_by_bin(bins[:, 1], 6, n_jobs=2)), expected[1, :, 0])


@pytest.mark.parametrize(
    ("bins", "n_bins", "error"),
    [([0, 1, 5], 5, ValueError), ([0, -1, 1], 5, ValueError), ([0, 1], 5, ValueError), ([0.0, 1.0, 2.0], 5, TypeError),
     ([0, 0, 0], 0, ValueError), (np.zeros((3, 1, 1), dtype=int), 2, ValueError)],
)  # fmt: skip
def test_bad_bins_are_refused(key, bins, n_bins, error):
    with pytest.raises(error, match="bins"):
        key.encrypt([1, 2, 3]).sum_by_bin(bins, n_bins)


def test_sum_rows_takes_rows_as_often_as_named(key):
    c = key.encrypt([[1, 10], [2, 20], [3, 30]])
    got = c.sum_rows(np.array([0, 3, 3, 4]), np.array([0, 0, 2, 1], dtype=np.int32))
    assert key.decrypt(got).tolist() == [[5, 50], [0, 0], [2, 20]]


@pytest.mark.parametrize(
    ("indptr", "indices"),
    [
        ([0, 2], [0]),
        ([1, 1], [0]),
        ([0, 1, 0, 1], [0]),
        ([], []),
        ([0, 1], [3]),
        ([0, 1], [-1]),
        ([[0, 1]], [0]),
    ],
)
def test_bad_segments_are_refused(key, indptr, indices):
    with pytest.raises(ValueError):
        key.encrypt([1, 2, 3]).sum_rows(np.array(indptr, dtype=int), np.array(indices, dtype=int))


def test_compressed_slots_come_apart_again(key, rng):
    values = rng.integers(-(2**20), 2**20, 11)
    c = key.encrypt(values, bound=2**20)
    packed = c.compress(22, 4)
    assert packed.shape == (3,)
    slots = split_slots(key.decrypt_words(packed), 22, 4, 11)
    signed = wide.to_ints(slots)
    assert signed == values.tolist()
    assert c[:0].compress(22, 4).shape == (0,)


def test_compress_refuses_what_does_not_fit(key):
    c = key.encrypt([1, 2], bound=2**20)
    with pytest.raises(SlotOverflowError, match="wider slots"):
        c.compress(21, 2)
    with pytest.raises(BoundOverflowError, match="a compressed reply"):
        c.compress(22, 30)
    for bad in ((0, 1), (22, 0)):
        with pytest.raises(ValueError):
            c.compress(*bad)
    with pytest.raises(ValueError):
        c.reshape(1, 2).compress(22, 1)


# ---- bounds ----


def test_overflow_raises_at_the_operation_that_causes_it(key256):
    # int64 values: 63 bits; the key offers 255.
    c = key256.encrypt(np.array([1, -1]))
    for _ in range(3):
        c = c * np.array([2, 3])
    for operation, name in (
        (lambda: c * np.array([2, 3]), "product"),
        (lambda: np.array([[2, 3]]) @ c, "product of 2 terms"),
        (lambda: c.compress(255, 2), "compressed reply"),
        (lambda: c + 0.125, "aligning scales"),
    ):
        with pytest.raises(BoundOverflowError, match=rf"{name}.* may need \d+ bits.* the key offers 255"):
            operation()


def test_no_chain_of_operations_ever_decrypts_to_a_wrong_number(key256, rng):
    value, c = 1, key256.encrypt(1, bound=1)
    with pytest.raises(OverflowError):
        while True:
            k = int(rng.integers(2, 2**20))
            c, value = c * k + c, value * k + value
            assert key256.decrypt(c) == value


def test_a_thousand_sums_of_small_integers_fit(key):
    c = key.encrypt(np.ones(1000, dtype=np.int64))
    assert c.sum().bound == 1000 * 2**63


# ---- what Paillier cannot do, and keys that do not match ----


def test_what_paillier_cannot_do_explains_itself(key):
    two, three = key.public_key.encrypt(2), key.public_key.encrypt(3)
    with pytest.raises(TypeError, match="adds ciphertexts and multiplies only by plain numbers"):
        two * three
    for operation in (
        lambda: two @ three,
        lambda: two**2,
        lambda: two // 2,
        lambda: 2 // two,
        lambda: two % 2,
        lambda: two < three,
        lambda: two >= 1,
        lambda: two == three,
        lambda: two != 2,
        lambda: bool(two),
        lambda: float(two),
        lambda: int(two),
        lambda: two / three,
        lambda: 1 / two,
        lambda: hash(two),
        lambda: np.asarray(two),
        lambda: two in [three],
        lambda: abs(two),
        lambda: two * "2",
        lambda: two + None,
    ):
        with pytest.raises(TypeError):
            operation()


def test_division_by_zero_is_refused(key):
    with pytest.raises(ValueError, match="infinity"):
        key.encrypt(2.0) / 0


def test_values_under_two_keys_never_mix(key, other_key):
    mine, theirs = key.public_key.encrypt([1]), other_key.public_key.encrypt([1])
    received = CiphertextArray.from_bytes(theirs.to_bytes(), other_key.public_key)
    for other in (theirs, received):
        for operation in (
            lambda other=other: mine + other,
            lambda other=other: mine - other,
            lambda other=other: concatenate([mine, other]),
            lambda other=other: key.decrypt(other),
            lambda other=other: key.decrypt_words(other),
        ):
            with pytest.raises(KeyMismatchError, match="key"):
                operation()
    with pytest.raises(KeyMismatchError):
        CiphertextArray.from_bytes(theirs.to_bytes(), key.public_key)
    assert issubclass(KeyMismatchError, ValueError)


@pytest.mark.skipif(len(kernels.backends()) < 2, reason="only one backend runs here")
def test_arrays_of_two_backends_combine():
    first, second = (insecure_key("INSECURE_TEST_KEY_512", backend) for backend in kernels.backends()[:2])
    a, b = first.encrypt([1, 2]), second.encrypt([10, 20])
    assert first.decrypt(a + b).tolist() == [11, 22]
    assert second.decrypt(b - a).tolist() == [9, 18]
    assert second.decrypt(concatenate([a, b])).tolist() == [1, 2, 10, 20]


# ---- wide integers ----


def test_wide_integers_need_no_python_objects(key, rng):
    words = rng.integers(0, 2**64, (3, 2, 4), dtype=np.uint64)
    words[..., 3] = np.where(words[..., 2] >> np.uint64(63), np.uint64(2**64 - 1), np.uint64(0))
    for side in (key, key.public_key):
        c = side.encrypt_words(words, bound=1 << 192)
        assert c.shape == (3, 2)
        got = key.decrypt_words(c)
        assert got.shape == (3, 2, 8)
        assert wide.to_ints(got.reshape(-1, 8)) == wide.to_ints(words.reshape(-1, 4))


def test_wide_integers_are_checked(key):
    one = np.ones((1, 2), dtype=np.uint64)
    for words, bound, error in (
        (one.astype(np.int64), 1 << 70, TypeError),
        (one, 1 << 64, OverflowError),
        (one, 1 << 600, OverflowError),
        (one, 0, OverflowError),
        (np.uint64(3), 5, TypeError),
    ):
        with pytest.raises(error):
            key.encrypt_words(words, bound=bound)


# ---- copies ----


def test_pickles_and_copies_decrypt_alike(key):
    c = key.public_key.encrypt([1.5, -2.0])
    for array in (c, c + c, c[:1].reshape(1, 1)):
        again = pickle.loads(pickle.dumps(array))
        np.testing.assert_array_equal(key.decrypt(again), key.decrypt(array))
        assert (again.encoding, again.bound, again.freshness) == (
            array.encoding,
            array.bound,
            array.freshness,
        )
        assert copy.deepcopy(array) is array
    assert c.encoding == FixedPoint(96, False)


def test_repr_shows_no_ciphertext_and_slices_share_memory(key):
    c = key.encrypt(np.arange(20))
    assert len(repr(c)) < 120
    assert np.shares_memory(c[5:10].elements, c.elements)
