"""The kernels agree with the same classes in plain Python integers, through the whole of Paillier."""

import numpy as np
import pytest
import reference_ring
from insecure_keys import primes_of

from vflcrypto import kernels
from vflcrypto import words as wide

P, Q = primes_of("INSECURE_TEST_KEY_256")
N = P * Q
SIZES = [0, 1, 7, 8, 9, 17]


def units(count: int, seed: int, modulus: int = N) -> list[int]:
    """Every one different, so that a swapped lane shows."""
    return [pow(3 + seed, 1000 + 7 * i, modulus**2) for i in range(count)]


@pytest.fixture
def rings(backend):
    return kernels.Ring(N, backend=backend), reference_ring.Ring(N)


def same(rings, operation) -> None:
    """The operation gives equal integers in both rings."""
    real, reference = rings
    assert real.to_ints(operation(real)) == reference.to_ints(operation(reference))


@pytest.mark.parametrize("size", SIZES)
def test_elementwise_operations_agree(rings, size):
    a, b = units(size, 1), units(size, 2)
    k = wide.from_ints([i * 12345678901234567 for i in range(size)], rings[0].words)
    same(rings, lambda r: r.mul(r.from_ints(a), r.from_ints(b)))
    same(rings, lambda r: r.mul(r.from_ints(a), r.from_ints(units(1, 9))))
    same(rings, lambda r: r.mul_one_plus_mk(r.from_ints(a), k))
    same(rings, lambda r: r.pow_vartime(r.from_ints(a), k))
    same(rings, lambda r: r.pow_secret(r.from_ints(a), Q, 128))
    same(rings, lambda r: r.inverse(r.from_ints(a)))


@pytest.mark.parametrize("size", SIZES)
def test_sums_and_horner_chains_agree(rings, size, rng):
    a = units(size, 3)
    indptr = np.array([0, size // 3, size // 3, size], dtype=np.int64)
    indices = rng.integers(0, max(size, 1), size)
    same(rings, lambda r: r.product_segments(r.from_ints(a), indptr, indices))
    same(rings, lambda r: r.horner(r.from_ints(a), indptr, 11))


@pytest.mark.parametrize("size", SIZES)
def test_tables_agree(rings, size, rng):
    exponents = rng.integers(0, 2**63, (size, 2)).astype(np.uint64)
    bits = rng.integers(0, 2, size).astype(np.uint8)
    results = []
    for ring, table_class in zip(rings, (kernels.FixedBaseTable, reference_ring.FixedBaseTable), strict=True):
        g, u = ring.from_ints([units(1, 4)[0]]), ring.from_ints([units(1, 5)[0]])
        table = table_class(ring, g, 200, extra=u)
        results.append(ring.to_ints(table.power(exponents, 128, bits)))
    assert results[0] == results[1]


@pytest.mark.parametrize("size", SIZES)
def test_the_key_owners_ways_agree(backend, size):
    real, reference = kernels.CrtRings(P, Q, backend=backend), reference_ring.CrtRings(P, Q)
    c = units(size, 6)
    halves = [[value % m**2 for value in c] for m in (P, Q)]
    for rings in (real, reference):
        xp, xq = rings.split(rings.n.from_ints(c))
        assert [rings.p.to_ints(xp), rings.q.to_ints(xq)] == halves
        assert rings.n.to_ints(rings.join(xp, xq)) == c
    np.testing.assert_array_equal(
        real.decrypt(real.n.from_ints(c)), reference.decrypt(reference.n.from_ints(c))
    )
