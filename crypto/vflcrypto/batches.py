"""What batches need before a kernel runs: threads, spans of rows, and arrays of the right shape and type.

Only sizes and public numbers are looked at; of secret exponents, whether they are as short as was promised.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]
T = TypeVar("T")

SHARED_VECTORS = 8  # MONT_TABLE_GROUPS: vectors that share one pass over a row of a noise table
SPAN_WORK = 128  # rows: to multiply fewer takes less time than to start a thread
SQUARE_COST = 0.75  # of a square, in products; public windows and estimates of cost hang on it


# ---- threads ----


def usable_cores() -> int:
    """Cores this process may use: affinity, bounded by OMP_NUM_THREADS and by threadpoolctl's OpenMP limit."""
    affinity = getattr(os, "sched_getaffinity", None)
    limits = [len(affinity(0)) if affinity else os.cpu_count() or 1]
    declared = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if declared.isdigit() and int(declared) > 0:
        limits.append(int(declared))
    if "threadpoolctl" in sys.modules:  # otherwise nobody has set a limit with it
        pools = sys.modules["threadpoolctl"].threadpool_info()
        limits += [pool["num_threads"] for pool in pools if pool.get("user_api") == "openmp"]
    return max(1, min(limits))


def thread_count(n_jobs: int | None) -> int:
    """Threads that n_jobs stands for: None is one; -1 is every usable core, -2 all but one, and so on."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer):
        raise TypeError(f"n_jobs must be an integer or None, got {n_jobs!r} of type {type(n_jobs).__name__}")
    if n_jobs == 0:
        raise ValueError(
            "n_jobs must be a positive number of threads, or negative to count from all cores; got 0"
        )
    if n_jobs > 0:
        return int(n_jobs)
    return max(1, usable_cores() + 1 + int(n_jobs))


def run(task: Callable[[int, int], T], spans: Sequence[tuple[int, int]], threads: int) -> list[T]:
    """Calls task(start, stop) for every span, on this thread and on others that end with the call (so a later fork is
    safe). Where several fail, the error of the first span is raised."""
    if threads == 1 or len(spans) <= 1:
        return [task(start, stop) for start, stop in spans]
    done: list[T | None] = [None] * len(spans)
    failed: dict[int, BaseException] = {}
    waiting = iter(range(len(spans)))  # next() of it is one step of the interpreter

    def work() -> None:
        for i in waiting:
            try:
                done[i] = task(*spans[i])
            except BaseException as error:
                failed[i] = error
                return

    with ThreadPoolExecutor(min(threads, len(spans)) - 1) as pool:
        for _ in range(min(threads, len(spans)) - 1):
            pool.submit(work)
        work()
    if failed:
        raise failed[min(failed)]
    return cast("list[T]", done)


def ahead(items: Iterator[T], threads: int) -> Iterator[T]:
    """The same items; with several threads, one makes the next while the caller is busy with the one before."""
    if threads == 1:
        yield from items
        return
    end = object()
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, items, end)
        while (item := following.result()) is not end:
            following = pool.submit(next, items, end)
            yield cast("T", item)


def spans(count: int, threads: int, lanes: int) -> list[tuple[int, int]]:
    """[0, count) in pieces of whole vectors, up to four a thread, so that a core that is slower, or busy, takes fewer.

    Where there are more pieces than threads, each has at least SHARED_VECTORS.
    """
    vectors = -(-count // lanes)
    pieces = max(min(threads, vectors), min(4 * threads, vectors // SHARED_VECTORS), 1) if threads > 1 else 1
    edges = [min(vectors * i // pieces * lanes, count) for i in range(pieces + 1)]
    return list(pairwise(edges))


def even_spans(work: NDArray[np.int64], threads: int, lanes: int) -> list[tuple[int, int]]:
    """Whole vectors of units in up to 4 spans a thread, of about equal work; little work is not worth a thread."""
    count, total = len(work), int(work.sum())
    pieces = min(4 * threads, total // SPAN_WORK)
    if threads == 1 or count <= lanes or pieces < 2:
        return [(0, count)]
    wanted = total * np.arange(1, pieces) // pieces
    ends = -(-np.searchsorted(np.cumsum(work), wanted) // lanes) * lanes
    edges = np.unique(np.concatenate([[0], np.minimum(ends, count), [count]])).tolist()
    return list(pairwise(edges))


# ---- arrays ----


def to_words(value: int, count: int) -> Words:
    """An integer as little-endian 64-bit words."""
    return np.frombuffer(value.to_bytes(8 * count, "little"), dtype="<u8").astype(np.uint64)


def word_count(bits: int) -> int:
    return -(-bits // 64)


def aligned_words(count: int) -> Words:
    """An uninitialised array that begins on a cache line."""
    block = np.empty(count + 8, dtype=np.uint64)
    skip = -(block.ctypes.data // 8) % 8
    return block[skip : skip + count]


def rows_of(x: Words, start: int, stop: int) -> Words:
    """A span of a batch, or the one row that serves every span."""
    return x if len(x) == 1 else x[start:stop]


def uint64_rows(x: Words, width: int, what: str) -> Words:
    """x, contiguous and aligned, if it is uint64 of shape (count, width)."""
    if not isinstance(x, np.ndarray) or x.dtype != np.uint64:
        raise TypeError(f"{what} must be a uint64 array, got {getattr(x, 'dtype', type(x).__name__)}")
    if x.ndim != 2 or x.shape[1] != width:
        raise ValueError(f"{what} must have shape (count, {width}), got {x.shape}")
    return np.require(x, requirements=["C", "A"])


def int64_vector(x: NDArray[np.integer], what: str) -> NDArray[np.int64]:
    """x as contiguous int64, if it is a vector of integers of any size."""
    x = np.asarray(x)
    if x.ndim != 1 or (x.dtype.kind not in "iu" and x.size):
        raise ValueError(f"{what} must be a one-dimensional array of integers, got {x.dtype} {x.shape}")
    return np.require(x, dtype=np.int64, requirements=["C", "A"])


def check_indptr(indptr: NDArray[np.int64], limit: int) -> None:
    """Raises unless the segments that indptr describes follow each other inside `limit` items."""
    if len(indptr) == 0 or indptr[0] < 0 or indptr[-1] > limit or (np.diff(indptr) < 0).any():
        raise ValueError(f"indptr must begin at 0 or later, never fall, and end at {limit} or before")


def exponent_rows(exponents: int | Words) -> Words:
    """One integer as a batch of one; a batch as it is."""
    if isinstance(exponents, int):
        if exponents < 0:
            raise ValueError("an exponent must not be negative")
        return to_words(exponents, word_count(exponents.bit_length())).reshape(1, -1)
    if exponents.ndim != 2:
        raise ValueError(f"exponents must have shape (count, e_words), got {exponents.shape}")
    return uint64_rows(exponents, exponents.shape[1], "exponents")


def public_window(bits: int) -> int:
    """The window that raises to a public exponent of this length with the least work."""

    def cost(window: int) -> float:
        table = (2 ** (window - 1) - 1) * (SQUARE_COST + 1)
        return table + max(-(-bits // window) - 1, 0) * (window * SQUARE_COST + 1)

    return min(range(1, 7), key=cost)


def fitted_exponents(e: Words, bits: int, words: int) -> Words:
    """Rows below 2**bits, in exactly `words` words each."""
    full, rest = divmod(bits, 64)
    above = e[:, full:].copy()
    if above.shape[1]:
        above[:, 0] >>= np.uint64(rest)
    if above.any():
        raise ValueError(f"an exponent has more than {bits} bits")
    out = np.zeros((len(e), words), dtype=np.uint64)
    width = min(words, e.shape[1])
    out[:, :width] = e[:, :width]
    return out
