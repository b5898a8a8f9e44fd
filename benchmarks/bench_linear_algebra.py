"""Plain matrices times encrypted vectors: 16-bit columns, few distinct values, one-hot rows; beside python-paillier.

    make bench ARGS="-k linear_algebra"

The columns of the table are seconds per product. In the extra columns (`--benchmark-json`), per matrix entry that is
not zero: modular multiplications, as planned, and microseconds. phe gets few rows, being slower; compare per entry.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import phe
import pytest
import scipy.sparse

from vflcrypto import CiphertextArray, PrivateKey, generate_keypair, kernels
from vflcrypto.products import count_multiplications

KEY_BITS = 2048
N_ROWS, N_COLUMNS, PHE_ROWS = 24_000, 23, 20

pytestmark = pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning")


@cache
def primes() -> tuple[int, int]:
    return generate_keypair(KEY_BITS)[1]._primes


@cache
def encrypted(backend: str) -> tuple[PrivateKey, CiphertextArray, np.ndarray]:
    """A key and a vector under it."""
    key = PrivateKey.from_primes(*primes(), backend=backend)
    values = np.random.default_rng(0).integers(-(2**30), 2**30, N_ROWS)
    return key, key.encrypt(values, n_jobs=2), values


def columns(n_values: int) -> np.ndarray:
    """Signed 16-bit columns, as rows of the factor, with so many different values each."""
    rng = np.random.default_rng(1)
    values = [rng.permutation(1 << 16)[:n_values] - (1 << 15) for _ in range(N_COLUMNS)]
    places = [rng.permutation(np.arange(N_ROWS) % n_values) for _ in range(N_COLUMNS)]
    return np.stack([v[p] for v, p in zip(values, places, strict=True)]).astype(np.int16)


def one_hot() -> Any:
    """Eight categories of five levels, sparse: 8 entries per row of 40."""
    levels = np.random.default_rng(2).integers(0, 5, (N_ROWS, 8)) + 5 * np.arange(8)
    data = np.ones(levels.size, dtype=np.int8)
    return scipy.sparse.csr_array(
        (data, levels.ravel(), np.arange(0, levels.size + 1, 8)), shape=(N_ROWS, 40)
    )


FACTORS = {
    "16-bit-all-different": lambda: columns(N_ROWS),
    "16-bit-2000-values": lambda: columns(2000),
    "16-bit-10-values": lambda: columns(10),
    "one-hot-csr": lambda: one_hot().T,
}


@pytest.mark.parametrize("backend", kernels.backends())
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("name", FACTORS)
def test_linear_algebra(benchmark, backend, name, n_jobs):
    factor = FACTORS[name]()
    key, c, values = encrypted(backend)
    rounds = 3 if backend != "portable" else 1
    product = benchmark.pedantic(
        c.dot, args=(factor,), kwargs={"n_jobs": n_jobs}, rounds=rounds, warmup_rounds=1
    )
    entries = factor.nnz if hasattr(factor, "nnz") else factor.size
    count = count_multiplications(factor)
    benchmark.extra_info["multiplications_per_entry"] = round(count.multiplications / entries, 3)
    benchmark.extra_info["us_per_entry"] = round(benchmark.stats.stats.median * 1e6 / entries, 3)
    assert (key.decrypt(product) == factor.astype(np.int64) @ values).all()


@pytest.mark.parametrize("backend", kernels.backends())
def test_linear_algebra_predictions(benchmark, backend):
    """X @ w for every row, w encrypted: many outputs of few terms."""
    factor = columns(N_ROWS).T
    key, c, values = encrypted(backend)
    product = benchmark.pedantic(c[:N_COLUMNS].dot, args=(factor,), rounds=1)
    count = count_multiplications(factor)
    benchmark.extra_info["multiplications_per_entry"] = round(count.multiplications / factor.size, 3)
    benchmark.extra_info["us_per_entry"] = round(benchmark.stats.stats.median * 1e6 / factor.size, 3)
    assert (key.decrypt(product[:9]) == (factor.astype(np.int64) @ values[:N_COLUMNS])[:9]).all()


def test_linear_algebra_phe(benchmark):
    p, q = primes()
    public = phe.PaillierPublicKey(p * q)
    private = phe.PaillierPrivateKey(public, p, q)
    factor, values = columns(N_ROWS)[0, :PHE_ROWS].tolist(), list(range(PHE_ROWS))
    c = [public.encrypt(value) for value in values]
    product = benchmark.pedantic(
        lambda: sum(x * y for x, y in zip(factor, c, strict=True)), rounds=3, warmup_rounds=1
    )
    benchmark.extra_info["us_per_entry"] = round(benchmark.stats.stats.median * 1e6 / PHE_ROWS, 3)
    assert private.decrypt(product) == sum(x * y for x, y in zip(factor, values, strict=True))
