"""One-time masks: uniform, fresh, WIDE, used once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from vflcrypto import CiphertextArray, DecryptionError, generate_keypair
from vflcrypto.masking import hide
from vflcrypto.words import to_ints

pytestmark = pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning")


@pytest.fixture(scope="module")
def keys():
    return generate_keypair(256, allow_weak_key=True)


def values_of(array):
    return array.public_key.ring.to_ints(array.elements)


def test_what_is_hidden_comes_back(keys):
    public, private = keys
    numbers = [[0, 1], [-1, 2**100], [-(2**100), 7]]
    masked, mask = hide(public.encrypt(np.array(numbers, dtype=object)))
    opened = private.decrypt_words(CiphertextArray.from_bytes(masked.to_bytes(), public))
    assert mask.remove(opened).tolist() == numbers


def test_masked_values_are_fresh_and_wide_and_unlike_each_other(keys):
    public, private = keys
    sums = public.encrypt(np.zeros(4, dtype=np.int64)) + 0
    (one, _), (two, _) = hide(sums), hide(sums)
    assert one.freshness == two.freshness == "wide"
    assert len({*values_of(one), *values_of(two)}) == 8
    opened = [to_ints(private.decrypt_words(array)) for array in (one, two)]
    assert len({*opened[0], *opened[1]}) == 8


def test_a_mask_changes_the_noise_and_not_the_plaintext_alone(keys):
    """Without fresh noise c' / c would be 1 modulo n, and the key owner could tell what was combined."""
    public, _ = keys
    sums = public.encrypt(np.arange(5))
    masked, _ = hide(sums)
    ratios = [
        after * pow(before, -1, public.n**2) % public.n
        for before, after in zip(values_of(sums), values_of(masked), strict=True)
    ]
    assert 1 not in ratios
    planted = sums + 12345  # a mask added in the clear
    assert all(
        after * pow(before, -1, public.n**2) % public.n == 1
        for before, after in zip(values_of(sums), values_of(planted), strict=True)
    )


def test_a_mask_is_used_once(keys):
    public, private = keys
    masked, mask = hide(public.encrypt(np.arange(3)))
    opened = private.decrypt_words(masked)
    mask.remove(opened)
    with pytest.raises(ValueError, match="used once"):
        mask.remove(opened)


def test_another_decryption_is_noticed(keys):
    public, private = keys
    masked, mask = hide(public.encrypt(np.arange(3)))
    other, _ = hide(public.encrypt(np.arange(3)))
    with pytest.raises(DecryptionError, match="not the decryption"):
        mask.remove(private.decrypt_words(other))
    with pytest.raises(ValueError, match="3 values were masked, 2 came back"):
        hide(public.encrypt(np.arange(3)))[1].remove(private.decrypt_words(masked)[:2])


def uniform(values, modulus):
    """Chi-squared over 16 bins of value / modulus, over the low four bits, and over residues modulo 13."""
    tables = [
        np.bincount([16 * value // modulus for value in values], minlength=16),
        np.bincount([value % 16 for value in values], minlength=16),
        np.bincount([value % 13 for value in values], minlength=13),
        np.bincount([16 * ((b - a) % modulus) // modulus for a, b in pairwise(values)]),
    ]
    return all(
        ((table - len(values) / len(table)) ** 2).sum() / (len(values) / len(table)) < 45.0
        for table in tables
    )


def test_masked_plaintexts_are_uniform(keys):
    """45 at 15 degrees of freedom is beyond one in 10,000; one retry."""
    public, private = keys
    sums = public.encrypt(np.zeros(800, dtype=np.int64))

    def opened():
        return [value % public.n for value in to_ints(private.decrypt_words(hide(sums)[0]))]

    assert uniform(opened(), public.n) or uniform(opened(), public.n)
    same_for_all = (sums + 2**150).rerandomize()
    assert not uniform([value % public.n for value in to_ints(private.decrypt_words(same_for_all))], public.n)


def test_packed_gradients_are_refused(keys):
    from vflcrypto import plan_packing

    public, _ = keys
    plan = plan_packing(10, 1, 30, public.key_bits)
    rows = plan.encrypt(keys[1], np.zeros((10, 1), dtype=np.int64), np.zeros((10, 1), dtype=np.int64))
    with pytest.raises(TypeError, match="packed"):
        hide(rows)
