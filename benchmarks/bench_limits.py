"""How far every operation of Paillier is from its limit: the multiplications it cannot do without, times their price.

    .venv/bin/python benchmarks/bench_limits.py [--bits 2048] [--rounds 9]

The price is that of a product (or square) modulo n^2, p^2 or q^2 on numbers that stay in the cache. Prices and
operations take turns, and medians of CPU time are shown, so that a machine that drifts drifts for both. Threads are
timed by the clock on the wall, two against one; that needs two idle cores.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vflcrypto import CiphertextArray, PrivateKey, generate_keypair, kernels
from vflcrypto.batches import public_window
from vflcrypto.kernels import DEFAULT_WINDOW, SECRET_WINDOW, Ring
from vflcrypto.noise import STATISTICAL_BITS

VECTORS = Path(__file__).resolve().parents[1] / "tests" / "vectors" / "insecure_keys.json"
BINS, FEATURES = 32, 12
IN_CACHE = 64  # elements
CHAIN = 2048  # products or squares in a row
THREADED = ("encrypt, HALF", "encrypt, owner", "decrypt", "add", "bin sum")


@dataclass(frozen=True)
class Count:
    """Products and squares modulo n^2 and modulo p^2 (or q^2), per value."""

    mul_n: float = 0
    sqr_n: float = 0
    mul_p: float = 0
    sqr_p: float = 0

    def limit(self, price: dict[str, float]) -> float:
        return sum(getattr(self, name) * price[name] for name in price)

    def __str__(self) -> str:
        names = {"mul_n": "mul n²", "sqr_n": "sqr n²", "mul_p": "mul p²", "sqr_p": "sqr p²"}
        parts = [f"{getattr(self, k):.4g} {v}" for k, v in names.items() if getattr(self, k)]
        return " + ".join(parts)


@dataclass(frozen=True)
class Timed:
    name: str
    count: Count
    values: int
    run: Callable[[int], Any]  # takes n_jobs


MESSAGE = 0.8  # of a product: two half-size ones with their reductions, four of five units


def power_count(bits: int, window: int) -> tuple[int, int]:
    """Squares and products of a windowed power: its table, then a product per further window."""
    windows = -(-bits // window)
    return 2 ** (window - 1) - 1 + (windows - 1) * window, 2 ** (window - 1) - 1 + windows - 1


def counts(bits: int) -> dict[str, Count]:
    """What each operation cannot do without, as it is computed here."""
    half, wide = (-(-b // DEFAULT_WINDOW) for b in (bits // 2, bits + STATISTICAL_BITS))
    owner = -(-(bits // 2) // DEFAULT_WINDOW)
    secret_sqr, secret_mul = power_count(bits // 2, SECRET_WINDOW)
    short, long = (power_count(b, public_window(b)) for b in (20, 62))
    return {
        "encrypt, HALF": Count(mul_n=half + MESSAGE),  # rows and the extra one, less the first
        "encrypt, WIDE": Count(mul_n=wide + MESSAGE),
        "encrypt, owner": Count(mul_n=2 + MESSAGE, mul_p=2 * (owner - 1)),
        "rerandomize, HALF": Count(mul_n=half + 1),
        "rerandomize, WIDE": Count(mul_n=wide + 1),
        "decrypt": Count(mul_p=2 * (secret_mul + 1), sqr_p=2 * secret_sqr),
        "add": Count(mul_n=1),
        "multiply, 20 bits": Count(mul_n=short[1], sqr_n=short[0]),
        "multiply, 62 bits": Count(mul_n=long[1], sqr_n=long[0]),
        "bin sum": Count(mul_n=1),
    }


def key_of(bits: int, backend: str) -> PrivateKey:
    known = json.loads(VECTORS.read_text())["keys"].get(f"INSECURE_TEST_KEY_{bits}")
    primes = (int(known["p"], 16), int(known["q"], 16)) if known else None
    if primes is None:
        primes = generate_keypair(bits, allow_weak_key=True)[1].unsafe_primes()
    return PrivateKey.from_primes(*primes, allow_weak_key=True, backend=backend)


def operations(key: PrivateKey, rows: CiphertextArray, scale: int) -> list[Timed]:
    """`rows`: 24,000 ciphertexts under this key. Batches shrink by `scale`."""
    public, count = key.public_key, counts(key.key_bits)
    x = np.arange(2048 // scale)
    some, following = rows[: 8192 // scale], rows[1 : 8192 // scale + 1]
    few = rows[: 1024 // scale]
    rng = np.random.default_rng(0)
    factors = {b: rng.integers(1 << (b - 1), 1 << b, size=len(some)) for b in (20, 62)}
    bins = rng.integers(BINS, size=(len(rows), FEATURES)).astype(np.uint8)[:: 1 if scale == 1 else 4]
    summed = rows[: len(bins)]
    runs: list[tuple[str, int, Callable[[int], Any]]] = [
        ("encrypt, HALF", len(x), lambda n: public.encrypt(x, n_jobs=n)),
        ("encrypt, WIDE", len(x), lambda n: public.encrypt(x, noise="wide", n_jobs=n)),
        ("encrypt, owner", len(x), lambda n: key.encrypt(x, n_jobs=n)),
        ("rerandomize, HALF", len(few), lambda n: few.rerandomize("half", n_jobs=n)),
        ("rerandomize, WIDE", len(few), lambda n: few.rerandomize("wide", n_jobs=n)),
        ("decrypt", len(few), lambda n: key.decrypt(few, n_jobs=n)),
        ("add", len(some), lambda n: some.add(following, n_jobs=n)),
        ("multiply, 20 bits", len(some), lambda n: some.multiply(factors[20], n_jobs=n)),
        ("multiply, 62 bits", len(few), lambda n: few.multiply(factors[62][: len(few)], n_jobs=n)),
        ("bin sum", bins.size, lambda n: summed.sum_by_bin(bins, BINS, n_jobs=n)),
    ]
    return [Timed(name, count[name], values, run) for name, values, run in runs]


def cpu_seconds(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def prices(key: PrivateKey, scale: int) -> dict[str, float]:
    """Seconds per product (by a row that is in the cache) and per square, one sample of each."""
    found = {}
    p_ring = Ring(key.unsafe_primes()[0], backend=key.public_key.backend)
    for suffix, ring in (("n", key.public_key.ring), ("p", p_ring)):
        rows, length = ring.from_ints(range(2, IN_CACHE + 2)), CHAIN // scale
        ends = np.arange(9) * length  # eight chains of products, then eight of squares
        many = np.arange(8 * length) % IN_CACHE
        seconds = cpu_seconds(lambda: ring.product_segments(rows, ends, many))  # noqa: B023
        found[f"mul_{suffix}"] = seconds / (8 * length)
        pairs = np.arange(9) * 2
        seconds = cpu_seconds(lambda: ring.horner(rows[:16], pairs, length))  # noqa: B023
        found[f"sqr_{suffix}"] = seconds / (8 * length)
    return found


def measure(backend: str, bits: int, rounds: int) -> None:
    key, scale = key_of(bits, backend), {"ifma": 1, "avx2": 4}.get(backend, 8)
    fresh = key_of(bits, kernels.backends()[0]).encrypt(np.arange(24_000), n_jobs=-1)
    rows = CiphertextArray.from_bytes(fresh.to_bytes(), key.public_key)
    timed = operations(key, rows, scale)
    samples: dict[str, list[float]] = {t.name: [] for t in timed}
    ratios: dict[str, list[float]] = {t.name: [] for t in timed}
    all_prices: list[dict[str, float]] = []
    for t in timed:
        t.run(1)
    for _ in range(rounds):
        for t in timed:
            before = prices(key, scale)
            samples[t.name].append(cpu_seconds(lambda: t.run(1)) / t.values)  # noqa: B023
            after = prices(key, scale)
            all_prices += [before, after]
            limit = (t.count.limit(before) + t.count.limit(after)) / 2
            ratios[t.name].append(samples[t.name][-1] / limit)
    median = {name: statistics.median(p[name] for p in all_prices) for name in all_prices[0]}
    print(f"\n{backend}, {bits} bits; ns: " + ", ".join(f"{k} {v * 1e9:,.0f}" for k, v in median.items()))
    print("\n| operation | count | limit | measured | per second | measured / limit |\n" + "| --- " * 6 + "|")
    for t in timed:
        seconds, limit = statistics.median(samples[t.name]), t.count.limit(median)
        print(
            f"| {t.name} | {t.count} | {limit * 1e6:,.2f} µs | {seconds * 1e6:,.2f} µs | {1 / seconds:,.0f} "
            f"| {statistics.median(ratios[t.name]):.2f} |"
        )


def threads(backend: str, bits: int, rounds: int) -> None:
    key = key_of(bits, backend)
    rows = key.encrypt(np.arange(24_000), n_jobs=-1)
    print(
        f"\n{backend}: two threads against one, {rounds} rounds in turns: best by the clock on the wall, and the"
    )
    print(
        "share of both cores' time that the two threads computed, which a neighbour on the machine disturbs less\n"
    )
    for t in operations(key, rows, 1):
        if t.name not in THREADED:
            continue
        best, busy = {1: float("inf"), 2: float("inf")}, []
        for _ in range(rounds):
            for n in best:
                start, cpu = time.perf_counter(), time.process_time()
                t.run(n)
                seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
                best[n] = min(best[n], seconds)
                if n == 2:
                    busy.append(cpu / (2 * seconds))
        print(f"{t.name}: {best[1] / best[2]:.2f} x, {statistics.median(busy):.0%}", flush=True)


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bits", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", action="store_true", help="only the comparison of two threads with one")
    arguments = parser.parse_args()
    if arguments.threads:
        threads(kernels.backends()[0], arguments.bits, arguments.rounds)
        return
    for backend in kernels.backends():
        measure(backend, arguments.bits, arguments.rounds)


if __name__ == "__main__":
    main()
