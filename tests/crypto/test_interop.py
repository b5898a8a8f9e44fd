"""python-paillier's keys and numbers, both ways."""

import subprocess

import pytest
from insecure_keys import insecure_key, primes_of
from new_process import PYTHON

from vflcrypto import KeyMismatchError, NotFreshError, interop, plan_packing

phe = pytest.importorskip("phe")

P, Q = primes_of("INSECURE_TEST_KEY_512")
PHE_PUBLIC = phe.PaillierPublicKey(P * Q)
PHE_PRIVATE = phe.PaillierPrivateKey(PHE_PUBLIC, P, Q)


@pytest.fixture
def from_phe(backend):
    return interop.private_key_from_phe(PHE_PRIVATE, allow_weak_key=True, backend=backend)


def test_importing_the_package_does_not_import_phe():
    program = "import sys, vflcrypto.interop; assert 'phe' not in sys.modules"
    subprocess.run([*PYTHON, "-c", program], check=True, timeout=60)


def test_keys_cross_both_ways(key, from_phe):
    assert from_phe == key
    assert interop.public_key_from_phe(PHE_PUBLIC, allow_weak_key=True) == key.public_key
    assert interop.public_key_to_phe(key.public_key) == PHE_PUBLIC
    back = interop.unsafe_private_key_to_phe(key)
    assert back.decrypt(PHE_PUBLIC.encrypt(-1.25)) == -1.25
    with pytest.raises(ValueError, match="512"):
        interop.public_key_from_phe(PHE_PUBLIC)


def test_keys_of_phe_blind_with_textbook_noise(from_phe):
    assert from_phe.public_key.textbook_noise
    assert from_phe.public_key.encrypt([1]).freshness == "wide"


@pytest.mark.parametrize(
    "values", [[1, -2, 3], [0.1, -1e-3, 12345.678, 0.0], [2.5, 7], [2**70, -5], [1e20, 1e-10], []], ids=repr
)
def test_numbers_encrypted_by_phe_decrypt_here(from_phe, values):
    numbers = [PHE_PUBLIC.encrypt(v) for v in values]
    array = interop.ciphertexts_from_phe(numbers, from_phe.public_key)
    assert array.freshness is None
    got = from_phe.decrypt(array).tolist()
    assert got == values
    assert all(isinstance(v, int) for v in got) == all(isinstance(v, int) for v in values)


def test_positive_exponents_of_phe_are_integers(from_phe):
    numbers = [
        PHE_PUBLIC.encrypt(48).decrease_exponent_to(0),
        phe.EncryptedNumber(PHE_PUBLIC, PHE_PUBLIC.raw_encrypt(3), 2),
    ]
    assert from_phe.decrypt(interop.ciphertexts_from_phe(numbers, from_phe.public_key)).tolist() == [48, 768]


@pytest.mark.parametrize("values", [[1, -2, 3], [0.1, -1e-3, 12345.678], [[1.5, 2.0], [3.0, -4.0]]])
def test_arrays_decrypt_in_phe(key, values):
    for side in (key, key.public_key):
        c = side.encrypt(values)
        numbers = interop.ciphertexts_to_phe(c)
        decrypted = [PHE_PRIVATE.decrypt(number) for number in numbers]
        assert decrypted == pytest.approx(
            [v for row in values for v in (row if isinstance(row, list) else [row])]
        )


def test_phes_numbers_are_summed_scaled_and_blinded_here(from_phe):
    values = [0.5, -1.25, 3.0, 100.0]
    numbers = [PHE_PUBLIC.encrypt(v) for v in values]
    array = interop.ciphertexts_from_phe(numbers, from_phe.public_key)
    total = (array.sum() * 2 + 1).rerandomize()
    (number,) = interop.ciphertexts_to_phe(total, PHE_PUBLIC)
    assert PHE_PRIVATE.decrypt(number) == pytest.approx(205.5)
    bins = array.sum_by_bin([0, 1, 0, 1], 2).rerandomize()
    assert [PHE_PRIVATE.decrypt(c) for c in interop.ciphertexts_to_phe(bins)] == [3.5, 98.75]


def test_what_phe_computed_with_our_numbers_decrypts_here(from_phe):
    ours = interop.ciphertexts_to_phe(from_phe.public_key.encrypt([1.5, 2.5]), PHE_PUBLIC)
    mixed = [ours[0] + ours[1], ours[0] * 3 + 0.25, ours[1] - 7]
    array = interop.ciphertexts_from_phe(mixed, from_phe.public_key)
    assert from_phe.decrypt(array).tolist() == [4.0, 4.75, -4.5]


def test_blinding_a_number_of_phe_keeps_its_value_and_changes_its_bytes(from_phe):
    (number,) = [PHE_PUBLIC.encrypt(42)]
    array = interop.ciphertexts_from_phe([number], from_phe.public_key)
    (blinded,) = interop.ciphertexts_to_phe(array.rerandomize())
    assert blinded.ciphertext(be_secure=False) != number.ciphertext(be_secure=False)
    assert PHE_PRIVATE.decrypt(blinded) == 42


def test_what_must_not_cross_is_refused(key, other_key, from_phe):
    with pytest.raises(NotFreshError):
        interop.ciphertexts_to_phe(key.encrypt([1]) + 1)
    with pytest.raises(ValueError, match="powers of 16"):
        interop.ciphertexts_to_phe(key.encrypt([0.5], fraction_bits=3))
    with pytest.raises(KeyMismatchError):
        interop.ciphertexts_to_phe(other_key.encrypt([1]), PHE_PUBLIC)
    with pytest.raises(KeyMismatchError):
        interop.ciphertexts_from_phe([PHE_PUBLIC.encrypt(1)], other_key.public_key)
    plan = plan_packing(1, key_bits=512)
    with pytest.raises(TypeError, match="packed"):
        interop.ciphertexts_to_phe(plan.encrypt(key, [[1]], [[1]]))
    with pytest.raises(ValueError, match="ciphertext 1 "):
        damaged = phe.EncryptedNumber(PHE_PUBLIC, P, 0)
        interop.ciphertexts_from_phe([PHE_PUBLIC.encrypt(1), damaged], from_phe.public_key)
    with pytest.raises(OverflowError, match="do not fit"):
        interop.ciphertexts_from_phe([PHE_PUBLIC.encrypt(1)], from_phe.public_key, bound=2.0**511)


def test_keys_made_by_phe_work_in_full(backend):
    """phe's primes are not safe primes."""
    public, private = phe.generate_paillier_keypair(n_length=512)
    ours = interop.private_key_from_phe(private, allow_weak_key=True, backend=backend)
    for side in (ours, ours.public_key):
        c = (side.encrypt([1.5, -2.0]) * 3).rerandomize()
        assert ours.decrypt(c).tolist() == [4.5, -6.0]
        assert [private.decrypt(x) for x in interop.ciphertexts_to_phe(c)] == [4.5, -6.0]
    assert interop.public_key_to_phe(ours.public_key) == public


def test_the_private_key_crosses_only_under_an_unsafe_name():
    assert not hasattr(interop, "private_key_to_phe")
    assert insecure_key("INSECURE_TEST_KEY_512").unsafe_primes() == (P, Q)
