"""The noise: derived by the encryptor, of the right length, uniform on toy keys, and never without the factor u."""

import gc
import weakref
from collections import Counter
from fractions import Fraction
from math import gcd

import gmpy2
import numpy as np
import pytest
from insecure_keys import insecure_key, primes_of

from vflcrypto import PrivateKey, PublicKey, noise, randomness
from vflcrypto import words as wide

P, Q = 23, 59  # safe primes small enough to enumerate everything
N = P * Q
RESIDUES = sorted({pow(r, N, N * N) for r in range(1, N) if gcd(r, N) == 1})


def toy_key(backend: str) -> PrivateKey:
    return PrivateKey.from_primes(P, Q, allow_weak_key=True, backend=backend)


def looks_uniform(draw, classes: int, per_class: int = 40) -> bool:
    """A chi-square test at five sigma, with one retry: fails once in some million runs."""
    for _ in range(2):
        counts = Counter(draw(classes * per_class))
        if len(counts) > classes:
            return False
        seen = np.array([*counts.values(), *[0] * (classes - len(counts))], dtype=float)
        chi2 = float(((seen - per_class) ** 2 / per_class).sum())
        if abs(chi2 - (classes - 1)) < 5 * (2 * (classes - 1)) ** 0.5:
            return True
    return False


# ---- where the base comes from ----


def test_the_base_is_derived_from_the_modulus_alone(key):
    n = key.public_key.n
    h = noise.derived_base(n)
    assert h == noise.derived_base(n)
    assert h != noise.derived_base(n + 2)
    assert gcd(h, n) == 1
    # h = -x^2: its negative is a square modulo both primes.
    assert all(gmpy2.jacobi(-h, prime) == 1 for prime in key.unsafe_primes())


def test_nothing_but_the_modulus_crosses_the_wire(key):
    """A sender could otherwise send a base of order 1 and switch blinding off."""
    data = key.public_key.to_bytes()
    assert len(data) == 4 + 1 + 1 + 4 + 32 + key.key_bits // 8
    public = PublicKey.from_bytes(data, allow_weak_key=True)
    assert noise.derived_base(public.n) == noise.derived_base(key.public_key.n)


def test_key_objects_of_one_modulus_share_a_table_as_long_as_one_lives():
    data = toy_key("portable").public_key.to_bytes()
    first, second = (
        PublicKey.from_bytes(data, allow_weak_key=True, backend="portable").noise for _ in range(2)
    )
    first.draw(1, noise.WIDE)
    assert first._table() is second._table()
    gone = weakref.ref(first._table())
    del first
    assert gone() is not None
    del second
    gc.collect()
    assert gone() is None


def test_u_is_the_least_positive_integer_with_symbol_minus_one(key):
    n = key.public_key.n
    u = noise.least_non_residue(n)
    assert [gmpy2.jacobi(v, n) for v in range(1, u)].count(-1) == 0
    assert gmpy2.jacobi(u, n) == -1


@pytest.mark.parametrize("p", [5, 7, 11, 23, 47, 59, 83, 107, 1019])
def test_the_owners_generator_reaches_every_residue_once(p):
    t = noise.residue_generator(p)
    powers = {pow(t, a, p * p) for a in range(p - 1)}
    assert len(powers) == p - 1
    assert powers == {pow(r, p, p * p) for r in range(1, p)}


# ---- how long the exponents are ----


@pytest.fixture
def drawn_bits(monkeypatch):
    """Lengths of all random words drawn during a test."""
    lengths = []
    original = randomness.random_words

    def spy(count, bits):
        lengths.append(bits)
        return original(count, bits)

    monkeypatch.setattr(randomness, "random_words", spy)
    return lengths


def wide_exponents(action, drawn_bits, n) -> bool:
    """Whether all noise that `action` draws has the length for receivers that hold the private key."""
    drawn_bits.clear()
    action()
    return drawn_bits != [] and min(drawn_bits) >= n.bit_length() + 128


def test_half_and_wide_have_their_lengths(key, drawn_bits):
    public, n = key.public_key, key.public_key.n
    c = public.encrypt([1, 2])
    assert drawn_bits == [256]
    assert wide_exponents(lambda: public.encrypt([1], noise="wide"), drawn_bits, n)
    assert wide_exponents(lambda: (c + c).rerandomize(), drawn_bits, n)
    drawn_bits.clear()
    key.encrypt([1])
    assert drawn_bits == [255 + 128, 255 + 128]  # for (p - 1)/2 and (q - 1)/2


def test_planted_half_for_wide_is_found(key, drawn_bits):
    c, n = key.public_key.encrypt([1]), key.public_key.n
    assert not wide_exponents(lambda: c.rerandomize(noise="half"), drawn_bits, n)


def test_planted_256_bit_exponents_are_found(drawn_bits, monkeypatch):
    monkeypatch.setattr(noise, "exponent_bits", lambda n, kind: 256)
    # A key and tables of its own: they are built under the fault.
    monkeypatch.setattr(noise, "_public_tables", {})
    public = PrivateKey.from_primes(*primes_of("INSECURE_TEST_KEY_1024"), allow_weak_key=True).public_key
    c = public.encrypt([1])
    assert not wide_exponents(lambda: c.rerandomize(), drawn_bits, public.n)


@pytest.mark.parametrize("bits", [11, 512, 1000, 1001])
def test_half_rounds_up_and_wide_adds_128_bits(bits):
    n = (1 << bits) - 1
    assert noise.exponent_bits(n, "half") == (bits + 1) // 2
    assert noise.exponent_bits(n, "wide") == bits + 128


# ---- distributions on toy primes ----


def test_owner_exponents_are_uniform_up_to_2_to_the_minus_128():
    for prime in (P, Q):
        order, span = prime >> 1, 1 << ((prime >> 1).bit_length() + 128)
        full, rest = divmod(span, order)
        # `rest` of the residues modulo the order occur full + 1 times, the others full times.
        distance = Fraction(rest, 1) * (Fraction(full + 1, span) - Fraction(1, order))
        assert 0 <= distance < Fraction(1, 1 << 128)


def test_owner_exponents_are_random_words_divided_by_a_unit_and_a_bit(key, backend, monkeypatch):
    """e = 2 (r / R mod x) + b, a permutation of the residues modulo p - 1 for every multiple of 2 x that r spans."""
    p, _ = key.unsafe_primes()
    x, words = p >> 1, 4
    edges = [0, 1, x - 1, x, (1 << 383) - 1]
    r = wide.from_ints(edges, 6)
    bits = np.array([0, 1, 1, 0, 1], dtype=np.uint8)
    monkeypatch.setattr(randomness, "random_words", lambda count, _: r[:count].copy())
    monkeypatch.setattr(randomness, "random_bits", lambda count: bits[:count])
    drawn = noise._OwnerExponents(p, backend)(5)
    inverse = pow(1 << 64 * words, -1, x)
    expected = [2 * (v * inverse % x) + int(b) for v, b in zip(edges, bits, strict=True)]
    assert wide.to_ints(drawn, signed=False) == expected
    assert max(expected) < p - 1


def test_owner_exponents_of_real_keys_are_uniform_in_every_bit(key):
    p, _ = key.unsafe_primes()
    drawn = wide.to_ints(noise._OwnerExponents(p, key.public_key.backend)(4000), signed=False)
    assert max(drawn) < p - 1
    for modulus in (2, 3, 7):
        counts = Counter(e % modulus for e in drawn)
        for residue in range(modulus):
            assert abs(counts[residue] - 4000 / modulus) < 6 * (4000 / modulus) ** 0.5
    thirds = Counter(3 * e // (p - 1) for e in drawn)
    assert all(abs(thirds[i] - 4000 / 3) < 6 * (4000 / 3) ** 0.5 for i in range(3))


def test_owner_noise_is_exactly_the_textbooks_on_toy_primes(backend):
    """Every pair of exponents modulo the orders, joined by the kernels, hits every n-th residue once."""
    rings = toy_key(backend)._rings
    t_p, t_q = noise.residue_generator(P), noise.residue_generator(Q)
    pairs = [(pow(t_p, a, P * P), pow(t_q, b, Q * Q)) for a in range(P - 1) for b in range(Q - 1)]
    joined = rings.join(rings.p.from_ints([x for x, _ in pairs]), rings.q.from_ints([y for _, y in pairs]))
    assert sorted(rings.n.to_ints(joined)) == RESIDUES


def test_drawn_owner_noise_is_uniform_on_toy_primes(backend):
    key = toy_key(backend)
    assert looks_uniform(lambda count: key._rings.n.to_ints(key._noise.draw(count)), len(RESIDUES))


@pytest.mark.parametrize("kind", ["wide", "half"])
def test_public_noise_stays_among_the_residues_on_toy_primes(backend, kind):
    key = toy_key(backend)
    drawn = key.public_key.ring.to_ints(key.public_key.noise.draw(2000, kind))
    assert set(drawn) <= set(RESIDUES)


def whole_group(n: int, h: int, u: int) -> bool:
    """Whether u^b h^a, b a bit, reaches every unit modulo n."""
    powers, x = set(), 1
    while x not in powers:
        powers.add(x)
        x = x * h % n
    reached = powers | {y * u % n for y in powers}
    return len(reached) == sum(gcd(r, n) == 1 for r in range(n))


def test_public_noise_reaches_the_whole_group_for_safe_primes():
    """h = -x^2 with x^2 a generator of the squares, and u, together generate everything; without u, half is missing."""
    h, u = noise.derived_base(N), noise.least_non_residue(N)
    assert whole_group(N, h, u)
    assert not whole_group(N, h, 1)
    assert not whole_group(N, 1, u)


def test_public_wide_noise_is_uniform_on_toy_primes(backend):
    key = toy_key(backend)
    draw = key.public_key.noise.draw
    assert looks_uniform(lambda count: key.public_key.ring.to_ints(draw(count, "wide")), len(RESIDUES))


def test_planted_missing_factor_is_found_on_toy_primes(backend, monkeypatch):
    monkeypatch.setattr(randomness, "random_bits", lambda count: np.zeros(count, dtype=np.uint8))
    key = toy_key(backend)
    draw = key.public_key.noise.draw
    assert not looks_uniform(lambda count: key.public_key.ring.to_ints(draw(count, "wide")), len(RESIDUES))


def test_textbook_noise_is_uniform_on_toy_primes_that_are_not_safe(backend):
    p, q = 31, 37  # coprime to (p - 1)(q - 1)
    key = PrivateKey.from_primes(p, q, allow_weak_key=True, backend=backend)
    assert key.public_key.textbook_noise
    n = p * q
    residues = {pow(r, n, n * n) for r in range(1, n) if gcd(r, n) == 1}
    for draw in (key._noise.draw, lambda count: key.public_key.noise.draw(count, "half")):
        assert looks_uniform(lambda count, draw=draw: key._rings.n.to_ints(draw(count)), len(residues))


def test_textbook_noise_of_large_keys_is_textbook(key):
    p, q = key.unsafe_primes()
    slow = PrivateKey(p, q, allow_weak_key=True, backend=key.public_key.backend, textbook_noise=True)
    n, order = p * q, (p - 1) * (q - 1)
    c = slow.public_key.encrypt([1, -2.5], noise="half")
    assert c.freshness == "wide"
    assert slow.decrypt(c).tolist() == [1, -2.5]
    for value in slow.public_key.ring.to_ints(slow.public_key.noise.draw(8, "half")):
        assert pow(value, order, n * n) == 1  # an n-th residue
    assert len(set(slow.public_key.ring.to_ints(slow.public_key.noise.draw(100, "half")))) == 100


# ---- the source ----


@pytest.mark.parametrize("bits", [0, 1, 63, 64, 65, 130])
def test_random_words_fill_exactly_their_bits(bits):
    words = randomness.random_words(200, bits)
    assert words.shape == (200, -(-bits // 64))
    values = [int.from_bytes(row.tobytes(), "little") for row in words]
    assert max(values, default=0).bit_length() <= bits
    if bits:
        assert max(values).bit_length() >= bits - 20 or bits == 1
        ones = sum(value.bit_count() for value in values)
        assert abs(ones - 100 * bits) < 5 * (50 * bits) ** 0.5 + 1


def test_random_bits_and_integers_are_uniform():
    assert looks_uniform(lambda count: randomness.random_bits(count).tolist(), 2, per_class=5000)
    for limit in (1, 2, 3, 7, 255, 256, 257):
        assert (
            looks_uniform(lambda count, m=limit: [randomness.random_below(m) for _ in range(count)], limit)
            or limit == 1
        )
    with pytest.raises(ValueError, match="positive"):
        randomness.random_below(0)


def test_primes_below_agree_with_trial_division():
    expected = [n for n in range(2, 1000) if all(n % d for d in range(2, int(n**0.5) + 1))]
    assert randomness.primes_below(1000).tolist() == expected
    assert randomness.primes_below(2).tolist() == []


def test_a_fixed_key_gives_new_noise_in_every_process_and_call(backend):
    key = insecure_key("INSECURE_TEST_KEY_512", backend)
    drawn = np.concatenate(
        [key.public_key.noise.draw(20, "half"), key.public_key.noise.draw(20, "wide"), key._noise.draw(20)]
    )
    assert len(np.unique(drawn, axis=0)) == 60
