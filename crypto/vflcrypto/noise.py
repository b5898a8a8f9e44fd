"""The blinding factors of Paillier: what makes a ciphertext fresh.

With the public key only (Damgard, Jurik, Nielsen 2010, with two repairs):

    noise = (u^n)^b * h_s^a  mod n^2        h = -x^2 mod n,  h_s = h^n mod n^2

* x comes from SHAKE-256 of a domain string and n, so every encryptor derives h_s itself. Were it sent along, a
  sender could send 1 and so switch blinding off.
* h has Jacobi symbol +1. Alone it would leave the Jacobi symbol of a blinded product standing, one bit about what
  was multiplied. u is the least positive integer with symbol -1 and b a uniform bit: together they reach the whole
  group.
* a has |n|/2 bits (HALF: its secrecy rests on factoring, for receivers without the private key) or |n| + 128 bits
  (WIDE: statistical, for receivers that hold it).

With the private key, modulo p^2 and q^2 apart: the n-th residues modulo p^2 are the p - 1 powers of T = g^p, g a
generator modulo p. Independent exponents of |p| + 128 bits and the Chinese remainders give textbook noise up to
2^-128, at a third of the price. Generators are known because p and q are safe primes; for other keys the owner
takes textbook noise, as does everybody for public keys marked so (see `interop.py`).
"""

from hashlib import shake_256
from math import gcd
from weakref import WeakValueDictionary

import gmpy2
import numpy as np

from . import randomness
from .kernels import CrtRings, Elements, FixedBaseTable, Ring
from .once import Once

HALF, WIDE = "half", "wide"
STATISTICAL_BITS = 128  # extra exponent bits: the distance from uniform is at most 2**-128

_DOMAIN = b"vflcrypto: base of the public noise, version 1"
_public_tables: WeakValueDictionary[tuple[int, str], Once[FixedBaseTable]] = WeakValueDictionary()
_BULK_BITS = 256  # below this (toy keys) a random number need not be invertible: draw one by one


def check_noise(noise: str) -> str:
    """The length class, or ValueError."""
    if noise not in (HALF, WIDE):
        raise ValueError(f"noise must be 'half' or 'wide', got {noise!r}")
    return noise


def exponent_bits(n: int, noise: str) -> int:
    """Length of the public exponent a in this class."""
    bits = n.bit_length()
    return -(-bits // 2) if noise == HALF else bits + STATISTICAL_BITS


def derived_base(n: int) -> int:
    """h = -x^2 mod n with x from SHAKE-256 of n; the same for everyone who knows n."""
    data = n.to_bytes(-(-n.bit_length() // 8), "big")
    size = -(-(n.bit_length() + STATISTICAL_BITS) // 8)
    for counter in range(256):  # the first x is coprime to any n worth factoring
        digest = shake_256(_DOMAIN + bytes([counter]) + data).digest(size)
        x = int.from_bytes(digest, "big") % n
        if gcd(x, n) == 1:
            return -x * x % n
    raise ValueError("no base of the noise found: the modulus has many small factors")


def least_non_residue(n: int) -> int:
    """The least positive integer with Jacobi symbol -1 modulo n, which must not be a square."""
    u = 2
    while gmpy2.jacobi(u, n) != -1:
        u += 1
    return u


def residue_generator(p: int) -> int:
    """A generator T of the n-th residues modulo p^2, for a safe prime p: T = g^p, g the least generator modulo p."""
    g = 2
    # The order of a non-residue divides 2x but not x: it is 2x, or 2 for -1.
    while gmpy2.jacobi(g, p) != -1 or g == p - 1:
        g += 1
    return pow(g, p, p * p)


class PublicNoise:
    """Noise from the public key alone."""

    def __init__(self, ring: Ring, *, textbook: bool = False) -> None:
        self._ring = ring
        self._textbook = textbook
        # Key objects of one modulus, as of several parties or one after another, share a table. It goes with the last.
        self._table = _public_tables.setdefault(
            (ring.modulus, ring.backend), Once(lambda: _public_table(ring))
        )

    def freshness(self, noise: str) -> str:
        """The class that noise of this length earns; textbook noise is as good as WIDE."""
        return WIDE if self._textbook else check_noise(noise)

    def draw(self, count: int, noise: str, n_jobs: int = 1) -> Elements:
        """`count` independent blinding factors modulo n^2, shape (count, 2 * words)."""
        if self._textbook:
            return _textbook(self._ring, self._ring.modulus, count, n_jobs)
        bits = exponent_bits(self._ring.modulus, noise)
        exponents = randomness.random_words(count, bits)
        return self._table().power(exponents, bits, randomness.random_bits(count), n_jobs=n_jobs)


def _public_table(ring: Ring) -> FixedBaseTable:
    n = ring.modulus
    base = int(gmpy2.powmod(derived_base(n), n, n * n))
    extra = int(gmpy2.powmod(least_non_residue(n), n, n * n))
    return FixedBaseTable(ring, ring.from_ints([base]), exponent_bits(n, WIDE), extra=ring.from_ints([extra]))


class OwnerNoise:
    """Noise drawn modulo p^2 and q^2 by who holds the private key. Always of class WIDE."""

    def __init__(self, rings: CrtRings, *, safe_primes: bool) -> None:
        self._rings = rings
        self._safe = safe_primes
        self._tables = Once(self._make_tables)

    def _make_tables(self) -> tuple[FixedBaseTable, FixedBaseTable]:
        return _owner_table(self._rings.p), _owner_table(self._rings.q)

    def draw(self, count: int, n_jobs: int = 1) -> Elements:
        """`count` independent blinding factors modulo n^2, shape (count, 2 * words)."""
        rings = (self._rings.p, self._rings.q)
        if self._safe:
            halves = [_from_table(t, r, count, n_jobs) for t, r in zip(self._tables(), rings, strict=True)]
        else:
            halves = [_textbook(ring, ring.modulus, count, n_jobs) for ring in rings]
        return self._rings.join(halves[0], halves[1], n_jobs=n_jobs)


def _owner_table(ring: Ring) -> FixedBaseTable:
    bits = ring.modulus.bit_length() + STATISTICAL_BITS
    return FixedBaseTable(ring, ring.from_ints([residue_generator(ring.modulus)]), bits)


def _from_table(table: FixedBaseTable, ring: Ring, count: int, n_jobs: int) -> Elements:
    bits = ring.modulus.bit_length() + STATISTICAL_BITS
    return table.power(randomness.random_words(count, bits), bits, n_jobs=n_jobs)


def _textbook(ring: Ring, exponent: int, count: int, n_jobs: int) -> Elements:
    """r^m mod m^2 for uniform r modulo m: the noise of the definition, whatever the factors of m.

    r^m depends on r mod m only, so uniform numbers below a power of two near m^2 serve as r.
    """
    m = ring.modulus
    if m.bit_length() < _BULK_BITS:
        units: list[int] = []
        while len(units) < count:
            r = randomness.random_below(m)
            if gcd(r, m) == 1:
                units.append(pow(r, exponent, m * m))
        return ring.from_ints(units)
    r_words = randomness.random_words(count, 2 * m.bit_length() - 2)
    padded = np.zeros((count, 2 * ring.words), dtype=np.uint64)
    padded[:, : r_words.shape[1]] = r_words
    bases = ring.from_bytes(padded.astype("<u8", copy=False).tobytes(), count)
    # pow_secret: for the owner the exponent is a prime of the key.
    return ring.pow_secret(bases, exponent, exponent.bit_length(), n_jobs=n_jobs)
