"""Batched arithmetic modulo m**2 on the native kernels: the only door to vflcrypto._native.

A residue is kept as the pair (x mod m, x div m), in Montgomery form, which makes a product five half-size
products instead of eight; README.md in native/ derives it. A batch ("elements") is a C-contiguous uint64 array of
shape (count, 2 * words), words = ceil(bits of m / 64): the little-endian words of both halves, canonical.

Montgomery form belongs to a backend, so elements never travel between rings; `to_bytes` and `from_bytes` do, as
plain integers. Functions release the GIL; `n_jobs` splits a batch over short-lived threads and never changes a
result. Nothing here depends on a secret by branch or address except where a name says `vartime` or a docstring
says so; building a ring or a table uses Python integers and is not covered.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeAlias

import gmpy2
import numpy as np
from numpy.typing import NDArray

from . import _native
from .batches import (
    T,
    Words,
    aligned_words,
    check_indptr,
    even_spans,
    exponent_rows,
    fitted_exponents,
    int64_vector,
    public_window,
    rows_of,
    run,
    spans,
    thread_count,
    to_words,
    uint64_rows,
    usable_cores,
    word_count,
)
from .words import bit_length

__all__ = [
    "CrtRings",
    "Elements",
    "FixedBaseTable",
    "Ring",
    "backends",
    "cpu_features",
    "thread_count",
    "usable_cores",
]

Elements: TypeAlias = NDArray[np.uint64]
MAX_MODULUS_BITS = 8192
DEFAULT_WINDOW = 6  # of a fixed-base table: more would save products but outgrow the caches
SECRET_WINDOW = 4  # of a secret exponent: its table is read whole once per window and should stay close
MAX_RATIO = 64  # between p and q; keys have factors of equal length, toy keys come close
UNIT_LENGTH = 256  # a longer segment is cut into units, so that no lane waits long for another


# ---- backends and threads ----


@cache
def _proven_backends() -> tuple[str, ...]:
    names = [name for name, runs in _native.backends() if runs]
    good = tuple(name for name in names if _native.self_test(name))
    for name in set(names) - set(good):
        warnings.warn(
            f"backend '{name}' gave a wrong known answer and is not used", RuntimeWarning, stacklevel=2
        )
    return good


def backends() -> list[str]:
    """Names of the backends that run here, best first. Each has proved itself on a known answer."""
    return list(_proven_backends())


def cpu_features() -> tuple[str, ...]:
    """The CPU features the choice of a backend looks at; "os-ymm", "os-zmm": the system saves these registers."""
    return tuple(_native.cpu_features().split())


def _choose_backend(name: str | None) -> str:
    """The backend asked for by argument or by the environment variable VFL_BACKEND, else the best."""
    source = "" if name else " (from VFL_BACKEND)"
    name = name or os.environ.get("VFL_BACKEND") or backends()[0]
    if name not in backends():
        raise ValueError(f"backend '{name}'{source} does not run here; these do: {', '.join(backends())}")
    return name


# ---- one modulus ----


class Ring:
    """Integers modulo modulus**2 for an odd modulus of 2 to 8192 bits, on one backend.

    modulus : int
    words : int, 64-bit words of the modulus
    row_bytes : int, bytes of one plain integer or of one element
    backend : str, see `backends()`
    """

    def __init__(self, modulus: int, *, backend: str | None = None) -> None:
        modulus = int(modulus)
        if modulus < 3 or modulus % 2 == 0:
            raise ValueError("a modulus must be odd and at least 3")
        if modulus.bit_length() > MAX_MODULUS_BITS:
            raise ValueError(f"a modulus has at most {MAX_MODULUS_BITS} bits, got {modulus.bit_length()}")
        self.modulus = modulus
        self.backend = _choose_backend(backend)
        self.words = word_count(modulus.bit_length())
        self.row_bytes = 16 * self.words
        self._native = _native.Ring(self.backend, modulus.to_bytes(8 * self.words, "little"))

    def __repr__(self) -> str:
        return f"Ring({self.modulus.bit_length()} bits, backend='{self.backend}')"

    def __reduce__(self) -> str:
        raise TypeError(
            "a Ring is bound to this process and may hold a secret factor; pickle its key instead"
        )

    # -- plain integers in and out --

    def from_bytes(self, data: bytes | bytearray | memoryview, count: int, n_jobs: int = 1) -> Elements:
        """Plain integers below modulus**2, little-endian, row_bytes bytes each.

        Raises ValueError naming the index of the first integer that is not below modulus**2.
        """
        if count < 0 or memoryview(data).nbytes != count * self.row_bytes:
            got = memoryview(data).nbytes
            raise ValueError(
                f"{count} integers of {self.row_bytes} bytes need {count * self.row_bytes} bytes, got {got}"
            )
        plain = np.frombuffer(data, dtype="<u8").astype(np.uint64, copy=False).reshape(count, 2 * self.words)
        plain = np.require(plain, requirements=["C", "A"])  # a slice of a frame begins anywhere
        return self._from_plain(plain, n_jobs)

    def _from_plain(self, plain: Words, n_jobs: int) -> Elements:
        out = self.empty(len(plain))

        def task(start: int, stop: int) -> int:
            good = self._native.from_plain(out[start:stop], plain[start:stop])
            return start + good if good < stop - start else len(plain)

        first_bad = min(self._split(task, len(plain), n_jobs))
        if first_bad < len(plain):
            raise ValueError(f"integer {first_bad} is not below the square of the modulus")
        return out

    def to_bytes(self, x: Elements, n_jobs: int = 1) -> bytes:
        """The plain integers, little-endian, row_bytes bytes each."""
        x = self._checked(x)
        out = self.empty(len(x))
        self._split(lambda i, j: self._native.to_plain(out[i:j], x[i:j]), len(x), n_jobs)
        return out.astype("<u8", copy=False).tobytes()

    def from_ints(self, ints: Iterable[int]) -> Elements:
        """Python integers in [0, modulus**2). For keys and tests; not constant time."""
        values = [int(v) for v in ints]
        for i, value in enumerate(values):
            if not 0 <= value < self.modulus**2:
                raise ValueError(f"integer {i} is not below the square of the modulus, or negative")
        return self.from_bytes(b"".join(v.to_bytes(self.row_bytes, "little") for v in values), len(values))

    def to_ints(self, x: Elements) -> list[int]:
        """Python integers in [0, modulus**2). For keys and tests; not constant time."""
        data, size = self.to_bytes(x), self.row_bytes
        return [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]

    def redc(self, x: Words) -> Words:
        """x / 2**(64 words) modulo the modulus itself, in constant time: uniform numbers stay uniform.

        x : uint64 (count, 2 * words), integers below modulus * 2**(64 words).  Returns uint64 (count, words).
        """
        x = self._checked(x)
        out = np.empty((len(x), self.words), dtype=np.uint64)
        good = self._native.redc(out, x)
        if good < len(x):
            raise ValueError(f"integer {good} is not below the modulus times 2**{64 * self.words}")
        return out

    # -- elements --

    def empty(self, count: int) -> Elements:
        """An uninitialised batch, to be written."""
        return np.empty((count, 2 * self.words), dtype=np.uint64)

    def one(self) -> Elements:
        """The integer 1, shape (1, 2 * words)."""
        out = self.empty(1)
        self._native.one(out)
        return out

    def mul(self, a: Elements, b: Elements, n_jobs: int = 1) -> Elements:
        """a * b, element by element; a batch of one serves every element of the other."""
        a, b = self._checked(a), self._checked(b)
        out = self.empty(self._common_count(len(a), len(b)))
        self._split(
            lambda i, j: self._native.mul(out[i:j], rows_of(a, i, j), rows_of(b, i, j)), len(out), n_jobs
        )
        return out

    def add(self, a: Elements, b: Elements, n_jobs: int = 1) -> Elements:
        """a + b modulo modulus**2, element by element."""
        a, b = self._checked(a), self._checked(b)
        if len(a) != len(b):
            raise ValueError(f"batches of {len(a)} and {len(b)} elements do not match")
        out = self.empty(len(a))
        self._split(lambda i, j: self._native.add(out[i:j], a[i:j], b[i:j]), len(out), n_jobs)
        return out

    def mul_one_plus_mk(self, x: Elements, k: Words, n_jobs: int = 1) -> Elements:
        """x * (1 + modulus * k): Paillier's message factor.

        k : uint64 (count, words), plain integers below the modulus; x may have one element.
        """
        x = self._checked(x)
        k = uint64_rows(k, self.words, "messages")
        if len(x) not in (1, len(k)):
            raise ValueError(f"{len(k)} messages do not match {len(x)} elements")
        out = self.empty(len(k))
        self._split(lambda i, j: self._native.message(out[i:j], rows_of(x, i, j), k[i:j]), len(k), n_jobs)
        return out

    # -- powers --

    def pow_vartime(self, x: Elements, exponents: int | Words, n_jobs: int = 1) -> Elements:
        """x ** exponents for PUBLIC exponents: time follows them.

        exponents : one int, or uint64 (count, e_words) little-endian words, or uint64 (1, e_words) for all.
        """
        x = self._checked(x)
        e = exponent_rows(exponents)
        bits = bit_length(e)
        count = self._common_count(len(x), len(e))
        out = self.empty(count)
        e = np.ascontiguousarray(e[:, : word_count(bits)])
        shared, window = int(len(e) == 1), public_window(bits)

        def task(i: int, j: int) -> None:
            part = e if shared else e[i:j]
            self._native.pow_vartime(out[i:j], rows_of(x, i, j), part, shared, bits, window)

        self._split(task, count, n_jobs)
        return out

    def pow_secret(self, x: Elements, exponent: int, exponent_bits: int, n_jobs: int = 1) -> Elements:
        """x ** exponent for one secret exponent below 2**exponent_bits; only exponent_bits shows in the time."""
        x = self._checked(x)
        if exponent < 0 or exponent >> exponent_bits:
            raise ValueError(f"the exponent is negative or has more than {exponent_bits} bits")
        e = to_words(exponent, word_count(exponent_bits))
        out = self.empty(len(x))
        window = min(SECRET_WINDOW, max(exponent_bits, 1))
        self._split(
            lambda i, j: self._native.pow_secret(out[i:j], x[i:j], e, exponent_bits, window), len(x), n_jobs
        )
        return out

    def inverse(self, x: Elements, n_jobs: int = 1) -> Elements:
        """1 / x by Montgomery's trick: pairwise products up to one element, one inversion, and down again.

        Three products per element. Not constant time. Raises ValueError naming the first element without inverse.
        """
        x = self._checked(x)
        if len(x) == 0:
            return self.empty(0)
        levels = [x]
        while len(levels[-1]) > 1:
            level = levels[-1]
            if len(level) % 2:
                level = levels[-1] = np.concatenate([level, self.one()])
            half = len(level) // 2
            levels.append(self.mul(level[:half], level[half:], n_jobs))
        (total,) = self.to_ints(levels.pop())
        square = self.modulus**2
        if gmpy2.gcd(total, self.modulus) != 1:
            raise ValueError(f"element {self._first_non_unit(x)} has no inverse")
        inverses = self.from_ints([int(gmpy2.invert(total, square))])
        for level in reversed(levels):
            half = len(level) // 2
            swapped = np.concatenate([level[half:], level[:half]])
            above = inverses[:half]  # an odd level was padded with one
            inverses = self.mul(np.concatenate([above, above]), swapped, n_jobs)
        return np.ascontiguousarray(inverses[: len(x)])

    def _first_non_unit(self, x: Elements) -> int:
        return next(i for i, v in enumerate(self.to_ints(x)) if gmpy2.gcd(v, self.modulus) != 1)

    # -- many to one --

    def product_segments(
        self, x: Elements, indptr: NDArray[np.integer], indices: NDArray[np.integer], n_jobs: int = 1
    ) -> Elements:
        """out[s] = product of x[indices[indptr[s]:indptr[s+1]]]; an empty segment gives one. The bin sums.

        Long segments are cut into units of nearly equal length, units are sorted by length so that those sharing
        a vector end together, and threads share the units. Time follows indptr and indices, not the elements.
        """
        out = self.empty(max(len(indptr) - 1, 0))
        self._products(out, np.arange(len(out)), x, None, indptr, indices, n_jobs)
        return out

    def product_layer(
        self,
        out: Elements,
        places: NDArray[np.integer],
        x: Elements,
        indptr: NDArray[np.integer],
        indices: NDArray[np.integer],
        n_jobs: int = 1,
    ) -> None:
        """product_segments into out[places[s]]; indices number the rows of x, and after them the rows of `out`.

        So sums of sums need no copies. Rows of `out` that are read must have been written by an earlier call.
        """
        self._products(self._checked(out), int64_vector(places, "places"), x, out, indptr, indices, n_jobs)

    def _products(
        self,
        out: Elements,
        places: NDArray[np.int64],
        x: Elements,
        more: Elements | None,
        indptr: NDArray[np.integer],
        indices: NDArray[np.integer],
        n_jobs: int,
    ) -> None:
        x = self._checked(x)
        indptr, indices = int64_vector(indptr, "indptr"), int64_vector(indices, "indices")
        check_indptr(indptr, len(indices))
        start, length, threads = indptr[:-1], np.diff(indptr), thread_count(n_jobs)
        slots = 2 * self._native.lanes * threads
        # At least 2, so that every level of the recursion is shorter than the one before.
        limit = min(max(-(-int(length.sum()) // slots), self._native.lanes, 2), UNIT_LENGTH)
        short, long = np.flatnonzero(length <= limit), np.flatnonzero(length > limit)
        self._units(out, places[short], x, more, indices, start[short], length[short], threads)
        if len(long) == 0:
            return
        start, length = start[long], length[long]
        pieces = -(-length // limit)
        first = np.concatenate([[0], np.cumsum(pieces)])
        owner = np.repeat(np.arange(len(long)), pieces)
        rank = np.arange(first[-1]) - first[owner]
        lower, upper = (length[owner] * (rank + i) // pieces[owner] for i in (0, 1))
        units, numbers = self.empty(first[-1]), np.arange(first[-1])
        self._units(units, numbers, x, more, indices, start[owner] + lower, upper - lower, threads)
        self._products(out, places[long], units, None, first, numbers, n_jobs)

    def _units(
        self,
        out: Elements,
        places: NDArray[np.int64],
        x: Elements,
        more: Elements | None,
        indices: NDArray[np.int64],
        start: NDArray[np.int64],
        length: NDArray[np.int64],
        threads: int,
    ) -> None:
        """out[places[u]] = the product of length[u] rows from start[u] on: neighbours of like length share a vector."""
        order = np.argsort((UNIT_LENGTH - length).astype(np.uint16), kind="stable")  # short numbers: by radix
        start, length, places = start[order], length[order], places[order]

        def task(i: int, j: int) -> None:
            self._native.products(out, x, more, indices, start[i:j], length[i:j], places[i:j])

        run(task, even_spans(length + 1, threads, self._native.lanes), threads)

    def horner(self, x: Elements, indptr: NDArray[np.integer], shift_bits: int, n_jobs: int = 1) -> Elements:
        """out[s]: acc = x[i0], then acc = acc ** (2**shift_bits) * x[i] for the further i in indptr[s]..indptr[s+1].

        Joins packed plaintexts: the first of a segment ends in the highest slot. An empty segment gives one.
        """
        x = self._checked(x)
        indptr = int64_vector(indptr, "indptr")
        check_indptr(indptr, len(x))
        length = np.diff(indptr)
        place = np.argsort(-length, kind="stable")
        start, length = indptr[:-1][place], length[place]
        out = self.empty(len(length))
        threads = thread_count(n_jobs)

        def task(i: int, j: int) -> None:
            self._native.horner(out, x, start[i:j], length[i:j], place[i:j], shift_bits)

        run(task, even_spans(length + 1, threads, self._native.lanes), threads)
        return out

    # -- helpers --

    def _split(self, task: Callable[[int, int], T], count: int, n_jobs: int) -> list[T]:
        threads = thread_count(n_jobs)
        return run(task, spans(count, threads, self._native.lanes), threads)

    def _checked(self, x: Elements) -> Elements:
        return uint64_rows(x, 2 * self.words, "elements")

    @staticmethod
    def _common_count(a: int, b: int) -> int:
        if a != b and 1 not in (a, b):
            raise ValueError(f"batches of {a} and {b} elements do not match")
        return b if a == 1 else a


# ---- one base, many exponents ----


class FixedBaseTable:
    """Powers of one generator from a table, reading every entry of a row: constant time in the exponents.

    Row i holds generator ** (j * 2**(window * i)) for j below 2**window. An optional extra row [1, extra, 1, ...]
    multiplies in `extra` where a bit says so. Built once per key, shared by threads, never pickled.
    """

    def __init__(
        self,
        ring: Ring,
        generator: Elements,
        exponent_bits: int,
        window: int = DEFAULT_WINDOW,
        extra: Elements | None = None,
    ) -> None:
        self.ring, self.exponent_bits, self.window = ring, exponent_bits, window
        native = ring._native
        row_words = native.table_row_words(window)
        rows = -(-exponent_bits // window)
        bases = ring.empty(rows)
        native.powers_of_two(bases, ring._checked(generator), window)
        self._table = aligned_words(rows * row_words)
        native.table_build(self._table, bases, window)
        self._row_words = row_words
        self._extra = None
        if extra is not None:
            self._extra = aligned_words(row_words)
            native.table_choice(self._extra, ring._checked(extra), window)

    def __reduce__(self) -> str:
        raise TypeError("a FixedBaseTable is bound to this process; rebuild it from the key")

    @property
    def nbytes(self) -> int:
        """Memory of the table."""
        return self._table.nbytes + (0 if self._extra is None else self._extra.nbytes)

    def power(
        self,
        exponents: Words,
        exponent_bits: int | None = None,
        extra_bits: NDArray[np.uint8] | None = None,
        n_jobs: int = 1,
    ) -> Elements:
        """generator ** exponents, times extra where extra_bits is 1.

        exponents : uint64 (count, e_words), below 2**exponent_bits (default: what the table was built for).
        extra_bits : uint8 (count,) of 0 and 1; needed exactly when the table has an extra element.
        """
        bits = self.exponent_bits if exponent_bits is None else exponent_bits
        if not 0 <= bits <= self.exponent_bits:
            raise ValueError(f"the table serves exponents up to {self.exponent_bits} bits, got {bits}")
        if (extra_bits is None) != (self._extra is None):
            raise ValueError("extra_bits are needed exactly when the table has an extra element")
        rows = -(-bits // self.window)
        e = fitted_exponents(exponent_rows(exponents), bits, word_count(rows * self.window))
        flags = None if extra_bits is None else np.ascontiguousarray(extra_bits, dtype=np.uint8)
        if flags is not None and flags.shape != (len(e),):
            raise ValueError(f"extra_bits must have shape ({len(e)},), got {flags.shape}")
        out = self.ring.empty(len(e))
        table = self._table[: rows * self._row_words]

        def task(i: int, j: int) -> None:
            part = None if flags is None else flags[i:j]
            self.ring._native.table_power(out[i:j], table, e[i:j], self._extra, part, self.window)

        self.ring._split(task, len(e), n_jobs)
        return out


# ---- the key owner: n, p and q ----


class CrtRings:
    """The rings modulo n**2, p**2 and q**2 of a key owner, and the ways between them, in constant time.

    n, p, q : Ring
    """

    def __init__(self, p: int, q: int, *, ring: Ring | None = None, backend: str | None = None) -> None:
        self.n = Ring(p * q, backend=backend) if ring is None else ring
        if self.n.modulus != p * q:
            raise ValueError("the ring's modulus is not the product of p and q")
        self.p, self.q = Ring(p, backend=self.n.backend), Ring(q, backend=self.n.backend)
        if gmpy2.gcd(p, q) != 1 or self.p.words != self.q.words:
            raise ValueError("p and q must be coprime and of the same number of 64-bit words")
        self._wraps = max(p // q, q // p)
        if self._wraps > MAX_RATIO:
            raise ValueError(f"one of p and q is more than {MAX_RATIO} times the other")
        self._factors = [_Factor(self.n, self.p, self.q), _Factor(self.n, self.q, self.p)]
        self._q = to_words(q, self.q.words)
        self._q_inv_r = to_words((pow(q, -1, p) << (64 * self.p.words)) % p, self.p.words)

    def __reduce__(self) -> str:
        raise TypeError("CrtRings hold a private key; pickling them would write it out")

    def split(self, x: Elements, n_jobs: int = 1) -> tuple[Elements, Elements]:
        """x modulo n**2 -> (x modulo p**2, x modulo q**2)."""
        x = self.n._checked(x)
        xp, xq = (self._reduce(f, x, n_jobs) for f in self._factors)
        return xp, xq

    def _reduce(self, f: _Factor, x: Elements, n_jobs: int = 1) -> Elements:
        out = f.ring.empty(len(x))

        def task(i: int, j: int) -> None:
            f.ring._native.reduce(out[i:j], x[i:j], f.other_rr, f.change, self.n.words)

        f.ring._split(task, len(x), n_jobs)
        return out

    def join(self, xp: Elements, xq: Elements, n_jobs: int = 1) -> Elements:
        """The elements modulo n**2 that are xp modulo p**2 and xq modulo q**2."""
        xp, xq = self.p._checked(xp), self.q._checked(xq)
        if len(xp) != len(xq):
            raise ValueError(f"batches of {len(xp)} and {len(xq)} elements do not match")
        out = self.n.empty(len(xp))

        def task(i: int, j: int) -> None:
            terms = [self._embed(f, x[i:j]) for f, x in zip(self._factors, (xp, xq), strict=True)]
            self.n._native.add(out[i:j], *terms)

        self.n._split(task, len(xp), n_jobs)
        return out

    def _embed(self, f: _Factor, x: Elements) -> Elements:
        """An element modulo f**2 that is zero modulo the other square."""
        same, out = self.n.empty(len(x)), self.n.empty(len(x))
        self.n._native.embed(same, x, f.modulus, self._wraps)
        self.n._native.mul(out, same, f.idempotent)
        return out

    def decrypt(self, x: Elements, n_jobs: int = 1) -> Words:
        """Paillier: the messages in [0, n), uint64 (count, words of n), of ciphertexts modulo n**2.

        Raises ValueError naming the first ciphertext that is not a unit.
        """
        x = self.n._checked(x)
        threads = thread_count(n_jobs)
        parts = spans(len(x), threads, self.n._native.lanes)

        def half(part: int, factor: int) -> tuple[Words, int]:
            start, stop = parts[part]
            message, good = self._message(self._factors[factor], x[start:stop])
            return message, start + good if good < stop - start else len(x)

        # The two factors of a part are work for two threads, so few ciphertexts keep them as busy as many.
        halves = run(half, [(part, factor) for part in range(len(parts)) for factor in (0, 1)], threads)
        bad = min(good for _, good in halves)
        if bad < len(x):
            raise ValueError(f"ciphertext {bad} is not a unit modulo the square of the key's modulus")
        out = np.zeros((len(x), self.n.words), dtype=np.uint64)
        for (i, j), (mp, _), (mq, _) in zip(parts, halves[::2], halves[1::2], strict=True):
            self.p._native.garner(out[i:j], mp, mq, self._q, self._q_inv_r, self.n.words)
        return out

    def _message(self, f: _Factor, x: Elements) -> tuple[Words, int]:
        """The messages modulo f, h * L(x**(f-1) mod f**2) with L(1 + f k) = k; and the first bad index, or len(x)."""
        ring = f.ring
        power = ring.pow_secret(self._reduce(f, x), ring.modulus - 1, ring.modulus.bit_length())
        out = np.empty((len(x), ring.words), dtype=np.uint64)
        return out, ring._native.log(out, power, f.h)


class _Factor:
    """The constants that belong to one prime factor, with its Montgomery radix R and R_n of the big ring."""

    def __init__(self, big: Ring, ring: Ring, other: Ring) -> None:
        f, g, square = ring.modulus, other.modulus, ring.modulus**2
        r, r_big = pow(2, ring._native.r_bits, square), pow(2, big._native.r_bits, square)
        self.ring = ring
        self.modulus = to_words(f, ring.words)
        self.other_rr = to_words((g << (128 * ring.words)) % f, ring.words)
        self.change = ring.from_ints([r * pow(r_big, -1, square) % square])  # x R_n -> x R
        self.h = to_words(pow(-g, -1, f), ring.words)  # 1 / L((1 + n)**(f-1) mod f**2)
        # x R -> x R_n modulo f**2, and 0 modulo the other square:
        self.idempotent = big.from_ints([g**2 * (r_big * pow(g**2 * r, -1, square) % square)])
