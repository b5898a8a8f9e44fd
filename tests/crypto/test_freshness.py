"""Freshness: what was computed does not leave before it is rerandomized."""

import pickle

import numpy as np
import pytest

from vflcrypto import CiphertextArray, NotFreshError, concatenate, plan_packing


def fresh(key, noise="half"):
    return key.public_key.encrypt([1, 2, 3], noise=noise)


def test_encryption_and_rerandomization_carry_their_class(key):
    assert fresh(key).freshness == "half"
    assert fresh(key, "wide").freshness == "wide"
    assert key.encrypt([1]).freshness == "wide"
    assert key.encrypt_words(np.ones((1, 1), dtype=np.uint64), bound=1).freshness == "wide"
    assert (fresh(key) + 1).rerandomize().freshness == "wide"
    assert (fresh(key) + 1).rerandomize(noise="half").freshness == "half"


def test_selecting_and_joining_keep_the_least_class(key):
    half, wide = fresh(key), fresh(key, "wide")
    assert half[1:].freshness == half.reshape(3, 1).freshness == half.T.freshness == "half"
    assert concatenate([half, wide]).freshness == "half"
    assert concatenate([wide, wide]).freshness == "wide"
    assert concatenate([wide, half + half]).freshness is None
    concatenate([half, wide[:1]]).to_bytes()


def computed(c):
    bins = np.array([0, 1, 0])
    return {
        "c + c": c + c,
        "c + 1": c + 1,
        "1 + c": 1 + c,
        "c - c": c - c,
        "c - 1": c - 1,
        "1 - c": 1 - c,
        "-c": -c,
        "c * 2": c * 2,
        "c * 1": c * 1,
        "c * 0": c * 0,
        "c / 2": c / 2,
        "x @ c": np.array([1, 0, 0]) @ c,
        "sum": c.sum(),
        "sum of one": c[:1].sum(),
        "sum_by_bin": c.sum_by_bin(bins, 2),
        "sum_rows": c.sum_rows(np.array([0, 1]), np.array([0])),
        "compress": c.compress(70, 2),
        "a selection of a sum": (c + c)[0],
        "a reshaped sum": (c + c).reshape(3, 1),
        "scales aligned": concatenate([c, key_float(c)]),
    }


def key_float(c):
    return c.public_key.encrypt([0.5])


@pytest.mark.parametrize("noise", ["half", "wide"])
def test_arithmetic_is_never_fresh_and_does_not_leave(key, noise):
    for name, array in computed(fresh(key, noise)).items():
        assert array.freshness is None, name
        with pytest.raises(NotFreshError, match="rerandomize"):
            array.to_bytes()
        array.rerandomize().to_bytes()


def test_adding_a_fresh_zero_does_not_make_a_sum_fresh(key):
    total = fresh(key) + fresh(key)
    with pytest.raises(NotFreshError):
        (total + key.public_key.encrypt([0, 0, 0], noise="wide")).to_bytes()


def test_received_bytes_are_not_fresh_but_may_be_passed_on_unchanged(key):
    data = fresh(key).to_bytes()
    received = CiphertextArray.from_bytes(data, key.public_key)
    assert received.freshness is None
    assert received.to_bytes() == data
    for touched in (received[:2], received.reshape(3, 1), received + received, concatenate([received])):
        with pytest.raises(NotFreshError):
            touched.to_bytes()


def test_pickling_inside_a_party_does_not_launder_freshness(key):
    received = CiphertextArray.from_bytes(fresh(key).to_bytes(), key.public_key)
    for array in (fresh(key), fresh(key) + 1, received):
        again = pickle.loads(pickle.dumps(array))
        assert (again.freshness, again.received) == (array.freshness, array.received)
    with pytest.raises(NotFreshError):
        pickle.loads(pickle.dumps(fresh(key) + 1)).to_bytes()


def test_packed_sums_are_not_fresh(key):
    plan = plan_packing(3, 1, 30, 512)
    rows = plan.encrypt(key.public_key, np.array([[1], [2], [3]]), np.array([[1], [2], [3]]))
    assert rows.freshness == "half"
    for array in (rows.sum_by_bin(np.array([0, 0, 1]), 2), plan.compress(rows), rows[:1] + rows[1:2]):
        with pytest.raises(NotFreshError):
            array.to_bytes()


def test_rerandomized_ciphertexts_differ_but_decrypt_equal(key):
    c = fresh(key)
    again = c.rerandomize()
    assert key.decrypt(again).tolist() == [1, 2, 3]
    assert not (again.elements == c.elements).all(axis=1).any()


def test_unknown_noise_is_refused(key):
    for call in (
        lambda: key.public_key.encrypt(1, noise="none"),
        lambda: fresh(key).rerandomize(noise="256"),
    ):
        with pytest.raises(ValueError, match="noise must be"):
            call()


def test_noise_is_never_reused(key):
    """Equal plaintexts, one batch and several: every ciphertext is different."""
    for encrypt in (key.encrypt, key.public_key.encrypt, lambda v: key.public_key.encrypt(v, noise="wide")):
        elements = np.concatenate([encrypt(np.zeros(40, dtype=int)).elements for _ in range(3)])
        assert len(np.unique(elements, axis=0)) == 120
