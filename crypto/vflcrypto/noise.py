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
generator modulo p. Independent exponents modulo p - 1 and the Chinese remainders give textbook noise up to 2^-128, at
0.3 of the price. An exponent is 2 y + b: b is a bit and y = r / R modulo x = (p - 1)/2, for r of |x| + 128 bits and
R the power of two of a Montgomery reduction, which takes constant time. Dividing by R permutes the residues.
Generators are known because p and q are safe primes; for other keys the owner takes textbook noise, as does everybody
for public keys marked so (see `interop.py`).
"""

from hashlib import shake_256
from math import gcd
from weakref import WeakValueDictionary

import gmpy2
import numpy as np

from . import randomness
from .kernels import CrtRings, Elements, FixedBaseTable, Ring
from .once import Once
from .words import Words, from_ints, words_for

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
        safe = (rings.p, rings.q) if safe_primes else ()
        self._exponents = tuple(_OwnerExponents(ring.modulus, ring.backend) for ring in safe)
        self._tables = Once(self._make_tables)

    def _make_tables(self) -> tuple[FixedBaseTable, FixedBaseTable]:
        return _owner_table(self._rings.p), _owner_table(self._rings.q)

    def draw(self, count: int, n_jobs: int = 1) -> Elements:
        """`count` independent blinding factors modulo n^2, shape (count, 2 * words)."""
        rings = (self._rings.p, self._rings.q)
        if self._safe:
            halves = [
                table.power(exponents(count), n_jobs=n_jobs)
                for table, exponents in zip(self._tables(), self._exponents, strict=True)
            ]
        else:
            halves = [_textbook(ring, ring.modulus, count, n_jobs) for ring in rings]
        return self._rings.join(halves[0], halves[1], n_jobs=n_jobs)


def _owner_table(ring: Ring) -> FixedBaseTable:
    generator = ring.from_ints([residue_generator(ring.modulus)])
    return FixedBaseTable(ring, generator, ring.modulus.bit_length())


class _OwnerExponents:
    """Draws exponents modulo p - 1, for a safe prime p, within 2^-128 of uniform."""

    def __init__(self, p: int, backend: str) -> None:
        self._order = p - 1
        bits = (p - 1).bit_length() - 1
        # r must stay below x R; toy keys have too short an R.
        self._half = Ring(p >> 1, backend=backend) if bits > STATISTICAL_BITS else None

    def __call__(self, count: int) -> Words:
        """uint64 (count, words of p)."""
        if self._half is None:
            words = words_for(self._order.bit_length())
            return from_ints([randomness.random_below(self._order) for _ in range(count)], words + 1)
        ring = self._half
        r = randomness.random_words(count, ring.modulus.bit_length() + STATISTICAL_BITS)
        padded = np.zeros((count, 2 * ring.words), dtype=np.uint64)
        padded[:, : r.shape[1]] = r
        y = ring.redc(padded)
        exponents = np.zeros((count, words_for(self._order.bit_length())), dtype=np.uint64)
        exponents[:, : ring.words] = y << np.uint64(1)
        exponents[:, 0] |= randomness.random_bits(count)
        carried = exponents[:, 1 : ring.words + 1]
        carried |= (y >> np.uint64(63))[:, : carried.shape[1]]
        return exponents


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
