"""The key owner's glue agrees with textbook Python, for toy keys and for odd sizes."""

import random

import gmpy2
import pytest
from kernel_patterns import SIZES, from_words

from vflcrypto import kernels
from vflcrypto.kernels import CrtRings, Ring

BACKENDS = kernels.backends()


def prime(bits, seed):
    """A prime of exactly this many bits."""
    start = random.Random(seed).getrandbits(bits - 1) | 3 << (bits - 2)
    return int(gmpy2.next_prime(start & ~(1 << (bits - 4)) if bits > 8 else start))


PAIRS = {
    "5 and 6 bits": (23, 59),
    "6 and 5 bits": (59, 23),
    "32": (prime(32, 1), prime(32, 2)),  # n fits one word like p does
    "33": (prime(33, 1), prime(33, 2)),
    "64": (prime(64, 1), prime(64, 2)),
    "100": (prime(100, 1), prime(100, 2)),
    "256": (prime(256, 1), prime(256, 2)),
    "500": (prime(500, 1), prime(500, 2)),  # eight words each, sixteen together, both ends short
    "512": (prime(512, 1), prime(512, 2)),
    "544": (prime(544, 1), prime(544, 2)),  # nine words each, seventeen together
}
CASES = [(b, name) for b in BACKENDS for name in PAIRS]


@pytest.fixture(params=CASES, ids=[f"{b}-{name}" for b, name in CASES])
def rings(request):
    backend, name = request.param
    return CrtRings(*PAIRS[name], backend=backend)


def ciphertexts(n, messages, seed=1):
    """Textbook Paillier."""
    generator, out = random.Random(seed), []
    for m in messages:
        r = generator.randrange(1, n)
        while gmpy2.gcd(r, n) != 1:
            r = generator.randrange(1, n)
        out.append((1 + m * n) * pow(r, n, n * n) % (n * n))
    return out


def numbers(n, size):
    edges = [0, 1, n - 1, n, n * n - 1, n * n - n]
    generator = random.Random(size)
    return [edges[i] if i < len(edges) else generator.randrange(n * n) for i in range(size)]


def test_split_reduces_modulo_both_squares(rings):
    p, q, n = rings.p.modulus, rings.q.modulus, rings.n.modulus
    for size in SIZES:
        values = numbers(n, size)
        xp, xq = rings.split(rings.n.from_ints(values))
        assert rings.p.to_ints(xp) == [v % p**2 for v in values]
        assert rings.q.to_ints(xq) == [v % q**2 for v in values]


def test_join_undoes_split(rings):
    for size in SIZES:
        values = numbers(rings.n.modulus, size)
        x = rings.n.from_ints(values)
        assert (rings.join(*rings.split(x)) == x).all()


def test_join_finds_the_one_number_with_both_residues(rings):
    p, q, n = rings.p.modulus, rings.q.modulus, rings.n.modulus
    residues = [(0, 0), (p**2 - 1, 0), (0, q**2 - 1), (p**2 - 1, q**2 - 1), (1, q), (p, 1), (p - 1, q - 1)]
    xp = rings.p.from_ints([a for a, _ in residues])
    xq = rings.q.from_ints([b for _, b in residues])
    joined = rings.n.to_ints(rings.join(xp, xq))
    assert [(v % p**2, v % q**2) for v in joined] == residues
    assert max(joined) < n**2


def test_decrypt_recovers_the_messages(rings):
    n = rings.n.modulus
    generator = random.Random(5)
    messages = [0, 1, n - 1, n // 2, n // 2 + 1, *(generator.randrange(n) for _ in range(6))]
    decrypted = rings.decrypt(rings.n.from_ints(ciphertexts(n, messages)))
    assert decrypted.shape == (11, rings.n.words)
    assert from_words(decrypted) == messages


@pytest.mark.parametrize("n_jobs", [2, 3])
@pytest.mark.parametrize("backend", BACKENDS)
def test_threads_change_no_result(backend, n_jobs):
    rings = CrtRings(*PAIRS["100"], backend=backend)
    x = rings.n.from_ints(ciphertexts(rings.n.modulus, range(33)))
    assert (rings.decrypt(x, n_jobs) == rings.decrypt(x)).all()
    xp, xq = rings.split(x, n_jobs)
    assert (rings.join(xp, xq, n_jobs) == x).all()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_ciphertext_that_is_no_unit_is_named(rings, n_jobs):
    n, q = rings.n.modulus, rings.q.modulus
    values = [*ciphertexts(n, range(9)), q, 0]
    with pytest.raises(ValueError, match="ciphertext 9 is not a unit"):
        rings.decrypt(rings.n.from_ints(values), n_jobs)


def test_a_ring_of_the_same_modulus_is_shared():
    ring = Ring(23 * 59)
    assert CrtRings(23, 59, ring=ring).n is ring


def test_unsuitable_factors_are_refused():
    with pytest.raises(ValueError, match="not the product"):
        CrtRings(23, 59, ring=Ring(23 * 61))
    with pytest.raises(ValueError, match="coprime"):
        CrtRings(23, 23)
    with pytest.raises(ValueError, match="same number of 64-bit words"):
        CrtRings(23, 2**89 - 1)
    with pytest.raises(ValueError, match="more than 64 times"):
        CrtRings(3, 2**61 - 1)
    rings = CrtRings(23, 59)
    with pytest.raises(ValueError, match="1 and 2 elements"):
        rings.join(rings.p.one(), rings.q.from_ints([1, 2]))
