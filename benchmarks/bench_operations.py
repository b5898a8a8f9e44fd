"""The operations of Paillier on arrays, on every backend and key size, beside python-paillier (phe).

    make bench ARGS="-k encrypt"

Times are per array; `per_second` in the extra columns is values per second on one thread. Keys are made of fixed
primes, since key generation is not what is measured. phe runs fewer values, being slower; compare per second.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import phe
import pytest

from vflcrypto import PrivateKey, generate_keypair, kernels

KEY_BITS = (1024, 2048, 3072)
BACKENDS = kernels.backends()
COUNT, PHE_COUNT = 512, 16
BIN_ROWS, BIN_FEATURES, N_BINS = 2000, 4, 32

pytestmark = pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning")


@cache
def primes(key_bits: int) -> tuple[int, int]:
    _, private = generate_keypair(key_bits, allow_weak_key=True)
    return private._primes


@cache
def our_key(key_bits: int, backend: str) -> PrivateKey:
    key = PrivateKey.from_primes(*primes(key_bits), allow_weak_key=True, backend=backend)
    key.encrypt([1.0])  # tables are made once per key, outside the timed part
    key.public_key.encrypt([1.0])
    return key


@cache
def phe_key(key_bits: int) -> tuple[phe.PaillierPublicKey, phe.PaillierPrivateKey]:
    p, q = primes(key_bits)
    public = phe.PaillierPublicKey(p * q)
    return public, phe.PaillierPrivateKey(public, p, q)


def values(count: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=count).round(6)


def timed(benchmark: Any, count: int, operation: Any, *arguments: Any, rounds: int = 5) -> Any:
    """Run, and note values per second."""
    result = benchmark.pedantic(operation, args=arguments, rounds=rounds, warmup_rounds=1)
    benchmark.extra_info["per_second"] = round(count / benchmark.stats.stats.median)
    return result


ours = pytest.mark.parametrize(("backend", "key_bits"), [(b, k) for k in KEY_BITS for b in BACKENDS])
theirs = pytest.mark.parametrize("key_bits", KEY_BITS)


@ours
@pytest.mark.parametrize("path", ["owner", "public-half", "public-wide"])
def test_encrypt(benchmark, backend, key_bits, path):
    key = our_key(key_bits, backend)
    encrypt = key.encrypt if path == "owner" else key.public_key.encrypt
    keywords = {} if path == "owner" else {"noise": path.removeprefix("public-")}
    array = timed(benchmark, COUNT, lambda x: encrypt(x, **keywords), values(COUNT))
    assert np.allclose(key.decrypt(array), values(COUNT))


@theirs
def test_encrypt_phe(benchmark, key_bits):
    public, _ = phe_key(key_bits)
    timed(
        benchmark, PHE_COUNT, lambda x: [public.encrypt(v) for v in x], values(PHE_COUNT).tolist(), rounds=2
    )


@ours
def test_decrypt(benchmark, backend, key_bits):
    key = our_key(key_bits, backend)
    decrypted = timed(benchmark, COUNT, key.decrypt, key.encrypt(values(COUNT)))
    assert np.allclose(decrypted, values(COUNT))


@theirs
def test_decrypt_phe(benchmark, key_bits):
    public, private = phe_key(key_bits)
    encrypted = [public.encrypt(v) for v in values(PHE_COUNT).tolist()]
    timed(benchmark, PHE_COUNT, lambda x: [private.decrypt(c) for c in x], encrypted, rounds=2)


@ours
def test_add(benchmark, backend, key_bits):
    key = our_key(key_bits, backend)
    one, two = key.encrypt(values(COUNT)), key.encrypt(values(COUNT))
    total = timed(benchmark, COUNT, lambda: one + two)
    assert np.allclose(key.decrypt(total), 2 * values(COUNT))


@theirs
def test_add_phe(benchmark, key_bits):
    public, _ = phe_key(key_bits)
    encrypted = [public.encrypt(v, precision=2.0**-40) for v in values(PHE_COUNT).tolist()]
    timed(benchmark, PHE_COUNT, lambda x: [c + c for c in x], encrypted)


@ours
@pytest.mark.parametrize("bits", [20, 62])
def test_multiply(benchmark, backend, key_bits, bits):
    key = our_key(key_bits, backend)
    factors = np.random.default_rng(1).integers(1 << (bits - 1), 1 << bits, size=COUNT)
    product = (
        timed(benchmark, COUNT, lambda: numbers * factors)
        if (numbers := key.encrypt(np.arange(COUNT)))
        else None
    )
    assert (key.decrypt(product)[:4] == np.arange(4) * factors[:4]).all()


@theirs
@pytest.mark.parametrize("bits", [20, 62])
def test_multiply_phe(benchmark, key_bits, bits):
    public, _ = phe_key(key_bits)
    factors = np.random.default_rng(1).integers(1 << (bits - 1), 1 << bits, size=PHE_COUNT).tolist()
    encrypted = [public.encrypt(v) for v in range(PHE_COUNT)]
    timed(benchmark, PHE_COUNT, lambda: [c * f for c, f in zip(encrypted, factors, strict=True)])


@ours
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_bin_sum(benchmark, backend, key_bits, n_jobs):
    key = our_key(key_bits, backend)
    bins = np.random.default_rng(2).integers(N_BINS, size=(BIN_ROWS, BIN_FEATURES))
    rows = key.encrypt(np.arange(BIN_ROWS))
    sums = timed(
        benchmark, BIN_ROWS * BIN_FEATURES, lambda: rows.sum_by_bin(bins, N_BINS, n_jobs=n_jobs), rounds=3
    )
    assert key.decrypt(sums[0, :1]) == np.arange(BIN_ROWS)[bins[:, 0] == 0].sum()


@theirs
def test_bin_sum_phe(benchmark, key_bits):
    public, _ = phe_key(key_bits)
    n_rows = 200
    bins = np.random.default_rng(2).integers(N_BINS, size=n_rows).tolist()
    one = public.encrypt(1)
    rows = [one + i for i in range(n_rows)]

    def add_up() -> list[Any]:
        sums: list[Any] = [0] * N_BINS
        for b, row in zip(bins, rows, strict=True):
            sums[b] = sums[b] + row
        return sums

    timed(benchmark, n_rows, add_up, rounds=3)


@ours
def test_rerandomize_wide(benchmark, backend, key_bits):
    key = our_key(key_bits, backend)
    timed(benchmark, COUNT, key.encrypt(values(COUNT)).rerandomize, rounds=3)
