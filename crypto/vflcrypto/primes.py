"""Safe primes p = 2x + 1 (x prime too), from the operating system's randomness.

With safe primes every non-trivial square generates the quadratic residues and no small cosets exist, which is what
the noise of `noise.py` rests on. Candidates are x = r + M k: M is the product of the first primes, r a random residue
that makes neither x nor 2x + 1 divisible by any of them, k from a random window. The window is sieved once for x and
2x + 1 together and its survivors are tested in random order. It holds some hundred safe primes, each as likely as
the others: a prime after a long gap is not favoured.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import gmpy2
import numpy as np
from numpy.typing import NDArray

from .randomness import primes_below, random_below

MILLER_RABIN_ROUNDS = 64
_PLAIN_SEARCH_BITS = 100  # below this a sieve takes longer than it saves
# (up to this many bits of p, log2 of the sieve's limit, log2 of the window): where sieving on costs as much as the
# Fermat tests it saves.
_SIEVES = ((400, 14, 15), (800, 18, 17), (1 << 20, 22, 20))
_DIGIT_BITS = 40  # a digit and a residue below 2**22 fit 62 bits
_FEW_HITS = 64  # primes with fewer multiples in the window are marked side by side, not slice by slice


class _Wheel(NamedTuple):
    """What one size of x needs, made once."""

    product: int  # M
    primes: list[int]  # the primes of M
    units: list[int]  # u_l = 1 mod l and 0 modulo the others
    sieve_primes: NDArray[np.int64]  # the primes from there to the sieve's limit
    inverses: NDArray[np.int64]  # of M modulo each of them
    window: int  # how many k are sieved together


@lru_cache(maxsize=4)
def _wheel(bits: int) -> _Wheel:
    """The wheel for x of `bits` bits: M leaves k some 48 bits."""
    _, limit_bits, window_bits = next(sieve for sieve in _SIEVES if bits < sieve[0])
    primes = primes_below(1 << limit_bits)
    product, count = 1, 0
    while product * int(primes[count]) < 1 << (bits - 48):
        product *= int(primes[count])
        count += 1
    wheel = [int(prime) for prime in primes[:count]]
    units = [product // prime * pow(product // prime, -1, prime) for prime in wheel]
    rest = primes[count:]
    return _Wheel(product, wheel, units, rest, _inverses(_residues(product, rest), rest), 1 << window_bits)


def _residues(value: int, primes: NDArray[np.int64]) -> NDArray[np.int64]:
    """value modulo each prime, digit by digit."""
    digit_bytes = _DIGIT_BITS // 8
    data = value.to_bytes(-(-value.bit_length() // _DIGIT_BITS) * digit_bytes, "big")
    residues = np.zeros(len(primes), dtype=np.int64)
    for i in range(0, len(data), digit_bytes):
        digit = int.from_bytes(data[i : i + digit_bytes], "big")
        residues = ((residues << _DIGIT_BITS) + digit) % primes
    return residues


def _inverses(values: NDArray[np.int64], primes: NDArray[np.int64]) -> NDArray[np.int64]:
    """1 / values modulo each prime, by Fermat's little theorem."""
    exponents, bases = primes - 2, values
    inverses = np.ones_like(values)
    while exponents.any():
        inverses = np.where(exponents & 1 == 1, inverses * bases % primes, inverses)
        bases, exponents = bases * bases % primes, exponents >> 1
    return inverses


def _random_residue(wheel: _Wheel) -> int:
    """A random r modulo M with neither r nor 2r + 1 divisible by a prime of M."""
    total = 0
    for prime, unit in zip(wheel.primes, wheel.units, strict=True):
        forbidden = (prime - 1) // 2  # where 2r + 1 = 0; for prime 2 there is none
        residue = 1 + random_below(prime - 2) if prime > 2 else 1
        total += unit * (residue + (prime > 2 and residue >= forbidden))
    return total % wheel.product


def _survivors(wheel: _Wheel, start: int) -> NDArray[np.int64]:
    """Offsets i in the window with x = start + M i and 2x + 1 free of small factors."""
    primes = wheel.sieve_primes
    residues = _residues(start, primes)
    hit = np.zeros(wheel.window, dtype=bool)
    halves = (primes + 1) // 2  # 1/2 modulo each prime
    few = int(np.searchsorted(primes, wheel.window // _FEW_HITS))
    for target in (-residues, -residues - halves):  # x = 0, and x = -1/2
        first = target % primes * wheel.inverses % primes
        for prime, offset in zip(primes[:few].tolist(), first[:few].tolist(), strict=True):
            hit[offset::prime] = True
        steps, places = primes[few:], first[few:]
        while len(places):
            inside = places < wheel.window
            steps, places = steps[inside], places[inside]
            hit[places] = True
            places = places + steps
    return np.flatnonzero(~hit)


def _is_safe_candidate(x: int) -> bool:
    """Whether x and 2x + 1 are prime; cheap tests first."""
    big = gmpy2.mpz(x)
    p = 2 * big + 1
    if gmpy2.powmod(2, big - 1, big) != 1 or gmpy2.powmod(2, p - 1, p) != 1:
        return False
    return is_safe_prime(int(p))


def is_prime(value: int) -> bool:
    """Primality: GMP's Baillie-PSW, then at least MILLER_RABIN_ROUNDS Miller-Rabin rounds."""
    # GMP counts the Baillie-PSW test as 24 of the rounds asked for.
    return value > 1 and bool(gmpy2.is_prime(value, MILLER_RABIN_ROUNDS + 24))


def is_safe_prime(p: int) -> bool:
    """Whether p and (p - 1) / 2 are prime."""
    return p % 2 == 1 and is_prime(p) and is_prime((p - 1) // 2)


class SearchGivenUpError(Exception):
    """Nobody waits for this prime any more."""


def random_safe_prime(bits: int, given_up: Callable[[], bool] = lambda: False) -> int:
    """A random safe prime of exactly `bits` bits whose two top bits are set.

    Two such primes multiply to a number of exactly the sum of their lengths. At least 6 bits. Before each candidate the
    search asks whether it has been given up, and then ends with SearchGivenUpError.
    """
    low, high = 3 << (bits - 3), 1 << (bits - 1)  # x = (p - 1) / 2 lies in [low, high)
    if bits < _PLAIN_SEARCH_BITS:
        while True:
            p = 2 * (low + random_below(high - low)) + 1
            if is_safe_prime(p):
                return p
    wheel = _wheel(bits - 1)
    while True:  # one window nearly always suffices
        first_k, last_k = -(-low // wheel.product), high // wheel.product - wheel.window - 1
        start = _random_residue(wheel) + wheel.product * (first_k + random_below(last_k - first_k))
        offsets = _survivors(wheel, start)
        for remaining in range(len(offsets), 0, -1):
            if given_up():
                raise SearchGivenUpError
            pick = random_below(remaining)
            candidate = start + wheel.product * int(offsets[pick])
            if _is_safe_candidate(candidate):
                return 2 * candidate + 1
            offsets[pick] = offsets[remaining - 1]
