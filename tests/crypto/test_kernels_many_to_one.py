"""Segment products and Horner agree with Python loops, whatever the lengths, backends and threads."""

from itertools import pairwise

import numpy as np
import pytest
from kernel_patterns import filled, modulus

from vflcrypto import kernels
from vflcrypto.kernels import UNIT_LENGTH, Ring

BACKENDS = kernels.backends()
LENGTHS = {
    "none": [],
    "one empty": [0],
    "all empty": [0, 0, 0],
    "single rows": [1] * 9,
    "mixed": [0, 3, 1, 0, 17, 2, 9, 8, 7, 1, 0],
    "one long": [3 * UNIT_LENGTH + 5],
    "long among short": [2, 0, UNIT_LENGTH + 1, 1, 4, UNIT_LENGTH, 0],
}


def segments(lengths, n_rows, seed=1):
    """indptr and indices that draw rows with repetition."""
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return indptr, np.random.default_rng(seed).integers(0, n_rows, indptr[-1])


def expected_products(values, indptr, indices, square):
    out = []
    for start, stop in pairwise(indptr):
        product = 1
        for i in indices[start:stop]:
            product = product * values[i] % square
        out.append(product)
    return out


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS.keys())
@pytest.mark.parametrize("bits", [5, 65, 256])
@pytest.mark.parametrize("backend", BACKENDS)
def test_segment_products_agree_with_a_loop(backend, bits, lengths, n_jobs):
    ring = Ring(modulus(bits), backend=backend)
    values = [3 * i + 2 for i in range(40)]
    values = [v % ring.modulus**2 for v in values]
    indptr, indices = segments(lengths, len(values))
    products = ring.product_segments(ring.from_ints(values), indptr, indices, n_jobs)
    assert ring.to_ints(products) == expected_products(values, indptr, indices, ring.modulus**2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_unused_indices_before_and_after_the_segments_are_ignored(backend):
    ring = Ring(modulus(100), backend=backend)
    values, x = filled(ring, 9, 1)
    indptr, indices = np.array([2, 4, 5]), np.array([0, 0, 7, 6, 5, 1], dtype=np.int32)
    expected = expected_products(values, indptr, indices, ring.modulus**2)
    assert ring.to_ints(ring.product_segments(x, indptr, indices)) == expected


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS.keys())
@pytest.mark.parametrize("backend", BACKENDS)
def test_layers_read_rows_and_earlier_results_and_write_only_their_places(backend, lengths, n_jobs):
    ring = Ring(modulus(100), backend=backend)
    values, x = filled(ring, 20, 1)
    earlier, out = filled(ring, len(lengths) + 9, 2)
    before = out.copy()
    places = np.random.default_rng(3).permutation(len(out))[: len(lengths)]
    untouched = np.setdiff1d(np.arange(len(out)), places)
    readable = np.concatenate([np.arange(len(x)), len(x) + untouched])
    indptr, indices = segments(lengths, len(readable))
    ring.product_layer(out, places, x, indptr, readable[indices], n_jobs)
    both = np.array(values + earlier, dtype=object)
    expected = expected_products(both[readable].tolist(), indptr, indices, ring.modulus**2)
    assert ring.to_ints(np.ascontiguousarray(out[places])) == expected
    assert (out[untouched] == before[untouched]).all()


def test_layers_outside_their_arrays_are_refused():
    ring = Ring(modulus(100))
    _, x = filled(ring, 5, 1)
    _, out = filled(ring, 3, 2)
    for index in (-1, 8):
        with pytest.raises(ValueError, match=f"index {index} at position 0 is out of range for 8 rows"):
            ring.product_layer(out, np.array([0]), x, np.array([0, 1]), np.array([index]))
    for place in (-1, 3):
        with pytest.raises(ValueError, match="segment 0"):
            ring.product_layer(out, np.array([place]), x, np.array([0, 1]), np.array([0]))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("shift", [0, 1, 7, 64])
@pytest.mark.parametrize("lengths", [[], [0], [1], [4] * 9, [3, 0, 1, 5, 2, 2, 2, 1, 4, 1, 3]], ids=str)
@pytest.mark.parametrize("backend", BACKENDS)
def test_horner_agrees_with_its_formula(backend, lengths, shift, n_jobs):
    ring = Ring(modulus(100), backend=backend)
    values, x = filled(ring, sum(lengths), 3)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    expected = []
    for start, stop in pairwise(indptr):
        acc = 1
        for value in values[start:stop]:
            acc = pow(acc, 2**shift, ring.modulus**2) * value % ring.modulus**2
        expected.append(acc)
    assert ring.to_ints(ring.horner(x, indptr, shift, n_jobs)) == expected


def test_damaged_segments_are_refused():
    ring = Ring(modulus(100))
    _, x = filled(ring, 5, 1)
    with pytest.raises(ValueError, match="indptr"):
        ring.product_segments(x, np.array([0, 3, 2]), np.arange(3))
    with pytest.raises(ValueError, match="indptr"):
        ring.product_segments(x, np.array([0, 4]), np.arange(3))
    with pytest.raises(ValueError, match="indptr"):
        ring.product_segments(x, np.array([], dtype=int), np.arange(3))
    with pytest.raises(ValueError, match="integers"):
        ring.product_segments(x, np.array([0.0, 1.0]), np.arange(3))
    for index in (-1, 5, 2**40):
        with pytest.raises(ValueError, match=f"index {index} at position 1 is out of range for 5 rows"):
            ring.product_segments(x, np.array([0, 3]), np.array([0, index, 2]))
    with pytest.raises(ValueError, match="indptr"):
        ring.horner(x, np.array([0, 6]), 3)
    with pytest.raises(ValueError, match="shift must be between"):
        ring.horner(x, np.array([0, 5]), -1)
