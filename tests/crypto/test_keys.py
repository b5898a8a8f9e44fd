"""Keys: made from safe primes, checked when received, never shown."""

import copy
import inspect
import json
import pickle
import random
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from insecure_keys import insecure_key, primes_of

from vflcrypto import (
    InsecureKeyWarning,
    InvalidKeyError,
    PrivateKey,
    PublicKey,
    generate_keypair,
    obtain_keypair,
    paillier,
    primes,
    reuse_keys,
)

PUBLIC = insecure_key("INSECURE_TEST_KEY_512").public_key
LARGE = insecure_key("INSECURE_TEST_KEY_2048")

ignore_weak = pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning")


# ---- making ----


@pytest.mark.parametrize("bits", [6, 7, 8, 16, 40, 159, 160, 256, 420, 512])
def test_safe_primes_have_their_exact_length_and_two_top_bits(bits):
    p = primes.random_safe_prime(bits)
    assert p.bit_length() == bits
    assert p >> (bits - 2) == 3
    assert primes.is_safe_prime(p)


def test_the_sieve_leaves_no_small_factor_and_loses_no_candidate():
    wheel = primes._wheel(255)
    start = primes._random_residue(wheel) + wheel.product * 2**40
    kept = set(primes._survivors(wheel, start).tolist())
    divisors = np.concatenate([np.array(wheel.primes), wheel.sieve_primes]).tolist()
    for i in range(300):
        x = start + wheel.product * i
        free = all(x % prime and (2 * x + 1) % prime for prime in divisors)
        assert (i in kept) == free


def test_wheel_residues_are_the_admissible_ones():
    wheel = primes._wheel(255)
    for _ in range(20):
        r = primes._random_residue(wheel)
        assert all(r % prime and (2 * r + 1) % prime for prime in wheel.primes)


@pytest.mark.parametrize(
    ("p", "safe"), [(5, True), (7, True), (11, True), (13, False), (23, True), (25, False), (46, False)]
)
def test_safe_primes_are_recognised(p, safe):
    assert primes.is_safe_prime(p) == safe


@ignore_weak
@pytest.mark.parametrize("bits", [64, 66, 256, 510, 512])
def test_generated_keys_have_their_exact_length(bits, backend):
    public, private = generate_keypair(bits, allow_weak_key=True, backend=backend)
    assert public.n.bit_length() == public.key_bits == private.key_bits == bits
    p, q = private.unsafe_primes()
    assert p * q == public.n
    assert p.bit_length() == q.bit_length()
    assert primes.is_safe_prime(p)
    assert primes.is_safe_prime(q)
    assert private.decrypt(public.encrypt(-5)) == -5


def test_a_search_that_was_given_up_ends():
    with pytest.raises(primes.SearchGivenUpError):
        primes.random_safe_prime(1024, lambda: True)


def test_an_interrupt_ends_both_searches(monkeypatch):
    started, ended = threading.Barrier(2), []

    def search(bits, given_up):
        if started.wait() == 0:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        while not given_up():
            time.sleep(0.001)
        ended.append(bits)
        raise primes.SearchGivenUpError

    monkeypatch.setattr(paillier, "random_safe_prime", search)
    # In the background of a shell the signal is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            generate_keypair(2048)
    finally:
        signal.signal(signal.SIGINT, before)
    # The signal may come while the second thread is being started; the pool then does not wait for it.
    deadline = time.monotonic() + 30
    while len(ended) < 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert ended == [1024, 1024]


def test_the_default_is_3072_bits():
    for function in (generate_keypair, obtain_keypair):
        assert inspect.signature(function).parameters["key_bits"].default == 3072


def test_nobody_can_choose_the_randomness():
    for method in (PublicKey.encrypt, PublicKey.encrypt_words, PrivateKey.encrypt, PrivateKey.encrypt_words):
        assert not {"r", "r_value", "random_state", "seed"} & set(inspect.signature(method).parameters)


@pytest.mark.parametrize("bits", [0, 1, 64, 512, 1024, 2047, 2056, 8192])
def test_weak_and_odd_sizes_need_an_explicit_word(bits):
    with pytest.raises(ValueError, match=rf"keys have 2048, 3072, 4096 bits, got {bits}"):
        generate_keypair(bits)


def test_weak_keys_warn_visibly():
    with pytest.warns(InsecureKeyWarning, match="64-bit key protects nothing"):
        generate_keypair(64, allow_weak_key=True)


@pytest.mark.parametrize("bits", [-64, 0, 20, 63, 65, 10000])
def test_impossible_sizes_are_refused_even_in_tests(bits):
    with pytest.raises(ValueError, match="bits"):
        generate_keypair(bits, allow_weak_key=True)


@pytest.mark.parametrize("bits", [512.5, "512", None, True])
def test_sizes_must_be_integers(bits):
    with pytest.raises((TypeError, ValueError)):
        generate_keypair(bits, allow_weak_key=True)


@ignore_weak
def test_seeds_do_not_reach_the_keys():
    moduli = set()
    for _ in range(3):
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        moduli.add(generate_keypair(256, allow_weak_key=True)[0].n)
    assert len(moduli) == 3


def test_seeds_do_not_reach_the_noise(key):
    seen = set()
    for _ in range(3):
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        seen.add(key.encrypt(1).to_bytes())
        seen.add(key.public_key.encrypt(1).to_bytes())
    assert len(seen) == 6


@ignore_weak
def test_fifty_keys_are_all_sound():
    for _ in range(50):
        public, private = generate_keypair(256, allow_weak_key=True)
        p, q = private.unsafe_primes()
        assert p != q
        assert primes.is_prime(p)
        assert primes.is_prime(q)
        assert np.gcd.reduce([(p - 1) * (q - 1) % public.n, public.n]) == 1
        assert abs(p - q) > 2 ** (256 // 2 - 100)
        assert private.decrypt(public.encrypt(-123.5)) == -123.5


# ---- received keys ----


def broken(n: int) -> bytes:
    """The bytes of a key with modulus n whose fingerprint fits."""
    from hashlib import sha256

    from vflcrypto import keyformat
    from vflcrypto.paillier import _FINGERPRINT_DOMAIN

    fingerprint = sha256(_FINGERPRINT_DOMAIN + keyformat.big_endian(n)).digest()
    return keyformat.public_to_bytes(n, False, fingerprint)


def test_public_keys_survive_bytes_json_and_pickle(key):
    public = key.public_key
    copies = [
        PublicKey.from_bytes(public.to_bytes(), allow_weak_key=True),
        PublicKey.from_json(public.to_json(), allow_weak_key=True),
        pickle.loads(pickle.dumps(public)),
        copy.deepcopy(public),
    ]
    for again in copies:
        assert again == public
        assert hash(again) == hash(public)
        assert again.fingerprint == public.fingerprint
        assert len(again.fingerprint) == 32
        assert key.decrypt(again.encrypt([1.5])).tolist() == [1.5]


def test_received_keys_must_have_an_allowed_size():
    assert PublicKey.from_bytes(LARGE.public_key.to_bytes()) == LARGE.public_key
    for read, text in ((PublicKey.from_bytes, PUBLIC.to_bytes()), (PublicKey.from_json, PUBLIC.to_json())):
        with pytest.raises(InvalidKeyError, match="got 512"):
            read(text)


def test_moduli_that_are_no_products_of_two_large_primes_are_refused():
    p, q = primes_of("INSECURE_TEST_KEY_512")
    cases = {
        "prime": primes.random_safe_prime(512),
        "perfect power": p * p,
        "small factor 3": 3 * (p * q),
        "small factor 65521": 65521 * (p * q),
        "odd": 2 * p * q,
    }
    for reason, n in cases.items():
        with pytest.raises(InvalidKeyError, match=reason):
            PublicKey.from_bytes(broken(n), allow_weak_key=True)


def test_damaged_key_bytes_are_refused():
    good = PUBLIC.to_bytes()
    wrong = [b"", good[:5], good[:-1], good + b"\0", b"VFLS" + good[4:], good[:4] + b"\2" + good[5:],
             good[:5] + b"\7" + good[6:], good[:6] + bytes(4) + good[10:], good[:10] + bytes(32) + good[42:],
             good[:42] + b"\0" + good[43:], good[:6] + b"\xff" * 4 + good[10:]]  # fmt: skip
    for data in wrong:
        with pytest.raises(InvalidKeyError):
            PublicKey.from_bytes(data, allow_weak_key=True)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_damage_to_a_key_gets_past(data):
    good = bytearray(PUBLIC.to_bytes())
    place = data.draw(st.integers(0, len(good) - 1))
    good[place] ^= data.draw(st.integers(1, 255))
    if place == 5:  # the flag for textbook noise changes no arithmetic
        return
    with pytest.raises(InvalidKeyError):
        PublicKey.from_bytes(bytes(good), allow_weak_key=True)


def test_json_holds_no_large_number_and_says_what_it_is():
    text = LARGE.public_key.to_json()
    document = json.loads(text)
    assert json.loads(text, parse_int=float) == document
    assert all(not isinstance(v, (int, float)) or abs(v) < 2**53 for v in document.values())
    assert document["format"].startswith("vflcrypto")
    assert document["version"] == 1


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", "3", "{}", '{"format": "other"}', "not json", "[" * 100_000]
    + [
        json.dumps({**json.loads(PUBLIC.to_json()), field: value})
        for field, value in (
            ("version", 2), ("n", 15), ("n", "0xff"), ("n", "zz"), ("n", "00ff"), ("n", "f" * 5000), ("key_bits", 511),
            ("fingerprint", "ab"), ("fingerprint", 5), ("n", None), ("key_bits", None),
        )
    ],
)  # fmt: skip
def test_damaged_json_is_refused(text):
    with pytest.raises(InvalidKeyError):
        PublicKey.from_json(text, allow_weak_key=True)


# ---- private keys ----


def test_private_keys_leave_only_by_a_method_that_says_so(key):
    data = key.unsafe_private_bytes()
    again = PrivateKey.from_unsafe_private_bytes(data, allow_weak_key=True)
    assert again == key
    assert again.decrypt(key.encrypt([7])).tolist() == [7]
    for bad in (
        b"",
        data[:-1],
        data[:50],
        data + b"\0",
        key.public_key.to_bytes(),
        data[:-1] + bytes([data[-1] ^ 2]),
    ):
        with pytest.raises(InvalidKeyError):
            PrivateKey.from_unsafe_private_bytes(bad, allow_weak_key=True)
    with pytest.raises(InvalidKeyError, match="got 512"):
        PrivateKey.from_unsafe_private_bytes(data)


def test_private_keys_cannot_be_pickled(key):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        for value in (key, [key], {"key": key}):
            with pytest.raises(TypeError, match="cannot be pickled"):
                pickle.dumps(value, protocol)


def test_nothing_printed_shows_a_secret(key):
    p, q = key.unsafe_primes()
    texts = [repr(key), str(key), f"{key}", repr(key.public_key), repr(key.encrypt(1)), repr([key])]
    for text in texts:
        for secret in (p, q, p - 1, p * q):
            assert str(secret) not in text
            assert f"{secret:x}" not in text
            assert f"{secret:x}"[:16] not in text


@pytest.mark.parametrize(("p", "q"), [(23, 23), (23, 57), (1, 23), (0, 23), (-23, 59), (23, 47)])
def test_primes_that_make_no_key_are_refused(p, q):
    # 47 = 2 * 23 + 1: gcd(n, (p - 1)(q - 1)) = 23.
    with pytest.raises(InvalidKeyError):
        PrivateKey.from_primes(p, q, allow_weak_key=True)


def test_keys_of_unusual_sizes_work(backend):
    key = insecure_key("INSECURE_TEST_KEY_1000", backend)
    assert key.key_bits == 1000
    values = [1.5, -2.25, 1e10]
    for c in (key.encrypt(values), key.public_key.encrypt(values)):
        assert key.decrypt((c * 2 + c).rerandomize()).tolist() == [4.5, -6.75, 3e10]


# ---- reuse ----


@ignore_weak
def test_keys_are_made_anew_unless_reuse_is_asked_for():
    ask = {"key_bits": 64, "allow_weak_key": True}
    assert obtain_keypair(**ask)[0] != obtain_keypair(**ask)[0]
    with reuse_keys():
        first = obtain_keypair(**ask)
        with reuse_keys():
            assert obtain_keypair(**ask)[1] is first[1]
        assert obtain_keypair(**ask)[1] is first[1]
        assert obtain_keypair(66, True)[1] is not first[1]
    assert obtain_keypair(**ask)[0] != first[0]
    with reuse_keys():
        assert obtain_keypair(**ask)[0] != first[0]


@ignore_weak
def test_a_given_key_serves_requests_of_its_size(key):
    with reuse_keys(key):
        assert obtain_keypair(512, True)[1] is key
        assert obtain_keypair(64, True)[1] is not key
    assert obtain_keypair(64, True)[1] is not key
    with pytest.raises(ZeroDivisionError), reuse_keys(key):
        raise ZeroDivisionError
    from vflcrypto import keycache

    assert keycache._depth == 0
    assert not keycache._keys
    assert not keycache._given
