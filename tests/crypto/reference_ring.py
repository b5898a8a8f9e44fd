"""The arithmetic of `vflcrypto.kernels` in plain Python integers: slow, short, and the oracle of the tests.

Same classes, same arguments, same results; an element simply is the plain integer, cut into words of
x mod m and x div m.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import gcd

import numpy as np
from numpy.typing import NDArray

Elements = NDArray[np.uint64]


def _cut(values: Sequence[int], words: int) -> Elements:
    data = b"".join(value.to_bytes(8 * words, "little") for value in values)
    return np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(len(values), words)


def _join(rows: Elements) -> list[int]:
    return [int.from_bytes(np.ascontiguousarray(row).tobytes(), "little") for row in rows]


class Ring:
    """Integers modulo m**2 as pairs (x mod m, x div m)."""

    backend = "reference"

    def __init__(self, modulus: int, *, backend: str | None = None) -> None:
        self.modulus = modulus
        self.words = -(-modulus.bit_length() // 64)
        self.square = modulus**2

    def from_ints(self, values: Iterable[int]) -> Elements:
        pairs = [half for value in values for half in divmod(value, self.modulus)[::-1]]
        return _cut(pairs, self.words).reshape(-1, 2 * self.words)

    def to_ints(self, x: Elements) -> list[int]:
        halves = _join(x.reshape(-1, self.words))
        return [low + self.modulus * high for low, high in zip(halves[::2], halves[1::2], strict=True)]

    def from_bytes(self, data: bytes, count: int) -> Elements:
        width = 16 * self.words
        values = [int.from_bytes(data[i * width : (i + 1) * width], "little") for i in range(count)]
        for index, value in enumerate(values):
            if value >= self.square:
                raise ValueError(f"value {index} is not below the square of the modulus")
        return self.from_ints(values)

    def to_bytes(self, x: Elements) -> bytes:
        return b"".join(value.to_bytes(16 * self.words, "little") for value in self.to_ints(x))

    def one(self) -> Elements:
        return self.from_ints([1])

    def _map(self, function: Callable[[int, int], int], a: Elements, b: Elements) -> Elements:
        left, right = self.to_ints(a), self.to_ints(b)
        count = len(right) if len(left) == 1 else len(left)
        left, right = (side * count if len(side) == 1 else side for side in (left, right))
        return self.from_ints([function(x, y) % self.square for x, y in zip(left, right, strict=True)])

    def mul(self, a: Elements, b: Elements, n_jobs: int = 1) -> Elements:
        return self._map(lambda x, y: x * y, a, b)

    def mul_one_plus_mk(self, x: Elements, k: Elements, n_jobs: int = 1) -> Elements:
        factors = self.from_ints([1 + self.modulus * value for value in _join(k)])
        return self.mul(x, factors)

    def pow_vartime(self, x: Elements, exponents: Elements, n_jobs: int = 1) -> Elements:
        powers = _join(exponents)
        powers = powers * len(x) if len(powers) == 1 else powers
        return self.from_ints([pow(b, e, self.square) for b, e in zip(self.to_ints(x), powers, strict=True)])

    def pow_secret(self, x: Elements, exponent: int, exponent_bits: int, n_jobs: int = 1) -> Elements:
        return self.from_ints([pow(base, exponent, self.square) for base in self.to_ints(x)])

    def inverse(self, x: Elements, n_jobs: int = 1) -> Elements:
        values = self.to_ints(x)
        for index, value in enumerate(values):
            if gcd(value, self.modulus) != 1:
                raise ValueError(f"value {index} is not invertible")
        return self.from_ints([pow(value, -1, self.square) for value in values])

    def product_segments(
        self, x: Elements, indptr: NDArray[np.int64], indices: NDArray[np.integer], n_jobs: int = 1
    ) -> Elements:
        values, products = self.to_ints(x), []
        for start, stop in pairwise(indptr):
            product = 1
            for index in indices[start:stop]:
                product = product * values[index] % self.square
            products.append(product)
        return self.from_ints(products)

    def horner(self, x: Elements, indptr: NDArray[np.int64], shift_bits: int, n_jobs: int = 1) -> Elements:
        values, results = self.to_ints(x), []
        for start, stop in pairwise(indptr):
            total = 1
            for value in values[start:stop]:
                total = pow(total, 1 << shift_bits, self.square) * value % self.square
            results.append(total)
        return self.from_ints(results)


class FixedBaseTable:
    """Powers of one generator; one optional extra factor chosen by a bit."""

    def __init__(
        self,
        ring: Ring,
        generator: Elements,
        exponent_bits: int,
        window: int = 6,
        extra: Elements | None = None,
    ) -> None:
        self.ring, self.exponent_bits = ring, exponent_bits
        (self.generator,) = ring.to_ints(generator)
        self.extra = None if extra is None else ring.to_ints(extra)[0]

    def power(
        self,
        exponents: Elements,
        exponent_bits: int,
        extra_bits: NDArray[np.uint8] | None = None,
        n_jobs: int = 1,
    ) -> Elements:
        square = self.ring.square
        values = [pow(self.generator, exponent, square) for exponent in _join(exponents)]
        if extra_bits is not None and self.extra is not None:
            values = [
                value * (self.extra if bit else 1) % square
                for value, bit in zip(values, extra_bits, strict=True)
            ]
        return self.ring.from_ints(values)


class CrtRings:
    """The key owner's view: everything modulo p**2 and q**2."""

    def __init__(self, p: int, q: int, *, ring: Ring | None = None, backend: str | None = None) -> None:
        self.n, self.p, self.q = ring or Ring(p * q), Ring(p), Ring(q)

    def join(self, xp: Elements, xq: Elements, n_jobs: int = 1) -> Elements:
        p2, q2 = self.p.square, self.q.square
        inverse = pow(p2, -1, q2)
        pairs = zip(self.p.to_ints(xp), self.q.to_ints(xq), strict=True)
        return self.n.from_ints([a + p2 * ((b - a) * inverse % q2) for a, b in pairs])

    def split(self, x: Elements, n_jobs: int = 1) -> tuple[Elements, Elements]:
        values = self.n.to_ints(x)
        return tuple(ring.from_ints([v % ring.square for v in values]) for ring in (self.p, self.q))

    def decrypt(self, x: Elements, n_jobs: int = 1) -> Elements:
        n, order = self.n.modulus, (self.p.modulus - 1) * (self.q.modulus - 1)
        inverse = pow(order, -1, n)
        return _cut([(pow(c, order, n * n) - 1) // n * inverse % n for c in self.n.to_ints(x)], self.n.words)
