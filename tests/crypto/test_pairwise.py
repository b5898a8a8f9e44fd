"""Masks that cancel over all parties."""

from __future__ import annotations

import pickle

import gmpy2
import numpy as np
import pytest

from vflcrypto import CryptoError
from vflcrypto.pairwise import GROUP_BITS, PairwiseKey, ZeroSumMasks, group_modulus


def masks_of(*names):
    keys = {name: PairwiseKey() for name in names}
    return {
        name: ZeroSumMasks(name, key, {other: keys[other].public for other in names if other != name})
        for name, key in keys.items()
    }


def test_the_group_is_that_of_the_standard():
    p = group_modulus()
    assert p.bit_length() == GROUP_BITS
    assert gmpy2.is_prime(p, 10) and gmpy2.is_prime((p - 1) // 2, 10)
    # The first words of group 15, as RFC 3526 prints them.
    assert f"{p:X}".startswith("FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD1")


@pytest.mark.parametrize("names", [("a", "b"), ("shop", "phone", "cinema", "bus")])
def test_only_the_sum_shows(names):
    masks = masks_of(*names)
    values = {name: np.array([[i, -(2**60)], [2**62, -5 * i]]) for i, name in enumerate(names)}
    hidden = {name: masks[name].hide(values[name], "step 0") for name in names}
    with np.errstate(over="ignore"):
        assert (sum(hidden.values()) == sum(values.values())).all()
    assert all((hidden[name] != values[name]).all() for name in names)


def test_masks_of_different_labels_differ_and_a_label_is_used_once():
    masks = masks_of("a", "b")["a"]
    zeros = np.zeros(50, dtype=np.int64)
    one, two = masks.hide(zeros, "one"), masks.hide(zeros, "two")
    assert (one != two).all() and len(set(one)) == 50
    with pytest.raises(ValueError, match="used already"):
        masks.hide(zeros, "one")


def test_hidden_values_are_uniform():
    hidden = masks_of("a", "b")["a"].hide(np.zeros(16000, dtype=np.int64), "x").view(np.uint64)
    for table in (
        np.bincount((hidden >> np.uint64(60)).astype(int)),
        np.bincount((hidden % np.uint64(16)).astype(int)),
    ):
        assert ((table - 1000.0) ** 2 / 1000.0).sum() < 60.0  # 15 degrees of freedom


@pytest.mark.parametrize("public", [b"", bytes(384), b"\0" * 383 + b"\1", b"\xff" * 384])
def test_values_outside_the_group_are_refused(public):
    with pytest.raises(CryptoError, match="outside its group"):
        PairwiseKey().shared(public)


def test_secrets_stay():
    key = PairwiseKey()
    assert str(key._secret) not in repr(key)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(key)
    with pytest.raises(ValueError, match="with itself"):
        ZeroSumMasks("a", key, {"a": key.public})
