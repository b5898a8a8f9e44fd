"""Safe primes p = 2x + 1 (x prime too), from the operating system's randomness.

With safe primes every non-trivial square generates the quadratic residues and no small cosets exist, which is what
the noise of `noise.py` rests on. Candidates are x = r + M k: M is the product of the first primes, r a random residue
that makes neither x nor 2x + 1 divisible by any of them, k random. A window of neighbouring k is then sieved for x
and 2x + 1 at once; only a few survivors, in random order, are tested before everything is drawn anew, so primes after
long gaps are not favoured.
"""

from functools import lru_cache
from typing import NamedTuple

import gmpy2
import numpy as np
from numpy.typing import NDArray

from .randomness import primes_below, random_below

SIEVE_LIMIT = 1 << 17  # where sieving further costs as much as the Fermat tests it saves
WINDOW = 512  # neighbouring k sieved together; a dozen in a hundred survive
TESTS_PER_WINDOW = 24  # a window finds a prime with a chance of 1 or 2 in 100: its neighbours hardly matter
MILLER_RABIN_ROUNDS = 64
_PLAIN_SEARCH_BITS = 160  # below this a sieve takes longer than it saves


class _Wheel(NamedTuple):
    """What one size of x needs, made once."""

    product: int  # M
    primes: list[int]  # the primes of M
    units: list[int]  # u_l = 1 mod l and 0 modulo the others
    sieve_primes: NDArray[np.int64]  # the primes from there to SIEVE_LIMIT
    inverses: NDArray[np.int64]  # of M modulo each of them
    powers: NDArray[np.float64]  # 2**(16 i) modulo each of them; sums of products stay below 2**53, exact


@lru_cache(maxsize=4)
def _wheel(bits: int) -> _Wheel:
    """The wheel for x of `bits` bits: M leaves k some 48 bits."""
    primes = primes_below(SIEVE_LIMIT)
    product, count = 1, 0
    while product * int(primes[count]) < 1 << (bits - 48):
        product *= int(primes[count])
        count += 1
    wheel = [int(prime) for prime in primes[:count]]
    units = [product // prime * pow(product // prime, -1, prime) for prime in wheel]
    rest = primes[count:]
    inverses = np.array([pow(product % int(prime), -1, int(prime)) for prime in rest], dtype=np.int64)
    powers = np.empty((-(-bits // 16), len(rest)), dtype=np.int64)
    powers[0] = 1
    for i in range(1, len(powers)):
        powers[i] = (powers[i - 1] << 16) % rest
    return _Wheel(product, wheel, units, rest, inverses, powers.astype(np.float64))


def _random_residue(wheel: _Wheel) -> int:
    """A random r modulo M with neither r nor 2r + 1 divisible by a prime of M."""
    total = 0
    for prime, unit in zip(wheel.primes, wheel.units, strict=True):
        forbidden = (prime - 1) // 2  # where 2r + 1 = 0; for prime 2 there is none
        residue = 1 + random_below(prime - 2) if prime > 2 else 1
        total += unit * (residue + (prime > 2 and residue >= forbidden))
    return total % wheel.product


def _survivors(wheel: _Wheel, start: int) -> NDArray[np.int64]:
    """Offsets i < WINDOW with start + M i and its double plus one free of small factors."""
    primes, inverses = wheel.sieve_primes, wheel.inverses
    digits = np.frombuffer(start.to_bytes(2 * len(wheel.powers), "little"), dtype="<u2")
    residues = (digits.astype(np.float64) @ wheel.powers).astype(np.int64) % primes
    hit = np.zeros(WINDOW, dtype=bool)
    halves = (primes + 1) // 2  # 1/2 modulo each prime
    for target in (-residues, -residues - halves):  # x = 0, and x = -1/2
        first = target % primes * inverses % primes
        while (inside := first < WINDOW).any():
            hit[first[inside]] = True
            first = first + primes
    return np.flatnonzero(~hit)


def _is_safe_prime(candidate: int) -> bool:
    """Whether x and 2x + 1 are prime, for x = candidate; cheap tests first."""
    x = gmpy2.mpz(candidate)
    p = 2 * x + 1
    if gmpy2.powmod(2, x - 1, x) != 1 or gmpy2.powmod(2, p - 1, p) != 1:
        return False
    return is_prime(int(x)) and is_prime(int(p))


def is_prime(value: int) -> bool:
    """Primality: GMP's Baillie-PSW, then at least MILLER_RABIN_ROUNDS Miller-Rabin rounds."""
    # GMP counts the Baillie-PSW test as 24 of the rounds asked for.
    return value > 1 and bool(gmpy2.is_prime(value, MILLER_RABIN_ROUNDS + 24))


def is_safe_prime(p: int) -> bool:
    """Whether p and (p - 1) / 2 are prime."""
    return p % 2 == 1 and is_prime(p) and is_prime((p - 1) // 2)


def random_safe_prime(bits: int) -> int:
    """A random safe prime of exactly `bits` bits whose two top bits are set.

    Two such primes multiply to a number of exactly the sum of their lengths. At least 6 bits.
    """
    low, high = 3 << (bits - 3), 1 << (bits - 1)  # x = (p - 1) / 2 lies in [low, high)
    if bits < _PLAIN_SEARCH_BITS:
        while True:
            p = 2 * (low + random_below(high - low)) + 1
            if is_safe_prime(p):
                return p
    wheel = _wheel(bits - 1)
    while True:
        residue = _random_residue(wheel)
        first_k, last_k = -(-low // wheel.product), high // wheel.product - WINDOW - 1
        start = residue + wheel.product * (first_k + random_below(last_k - first_k))
        offsets = _survivors(wheel, start)
        for _ in range(min(TESTS_PER_WINDOW, len(offsets))):
            pick = random_below(len(offsets))
            candidate = start + wheel.product * int(offsets[pick])
            if _is_safe_prime(candidate):
                return 2 * candidate + 1
            offsets = np.delete(offsets, pick)
