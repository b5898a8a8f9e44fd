"""Plain matrices times encrypted vectors: exact for every shape, scalar and method, planned and counted in advance."""

import subprocess
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from insecure_keys import insecure_key
from new_process import PYTHON
from reference_ring import Ring as ReferenceRing

from vflcrypto import BoundOverflowError, kernels, product_plans
from vflcrypto import words as wide
from vflcrypto.coefficients import Coefficients
from vflcrypto.digits import best_widths, expected_products
from vflcrypto.kernels import Ring
from vflcrypto.product_plans import Count, plan_products
from vflcrypto.products import count_multiplications, linear_combinations

scipy_sparse = pytest.importorskip("scipy.sparse")

MODULUS = (1 << 61) - 1
SQUARE = MODULUS**2
quick = settings(max_examples=60, deadline=None)


class CountingRing(ReferenceRing):
    """Plain integers, and the multiplications that the real ring would do for the same calls."""

    def __init__(self, modulus):
        super().__init__(modulus)
        self.counted = Count()

    def mul(self, a, b, n_jobs=1):
        self.counted += Count(products=max(len(a), len(b)))
        return super().mul(a, b)

    def inverse(self, x, n_jobs=1):
        self.counted += Count(inverses=len(x))
        return super().inverse(x)

    def product_segments(self, x, indptr, indices, n_jobs=1):
        self.counted += Count(products=sum(max(int(n) - 1, 0) for n in np.diff(indptr)))
        return super().product_segments(x, indptr, indices)

    def horner(self, x, indptr, shift_bits, n_jobs=1):
        steps = sum(max(int(n) - 1, 0) for n in np.diff(indptr))
        self.counted += Count(products=steps, squarings=steps * shift_bits)
        return super().horner(x, indptr, shift_bits)

    def pow_vartime(self, x, exponents, n_jobs=1):
        bits = max(int(v).bit_length() for v in wide.to_ints(exponents, signed=False)) if len(x) else 0
        window = kernels.public_window(bits)
        table = [j % 2 for j in range(2, 1 << window)]  # even powers are squares
        later = max(-(-bits // window) - 1, 0)
        one = Count(products=sum(table) + later, squarings=len(table) - sum(table) + later * window)
        self.counted += one.times(len(x))
        return super().pow_vartime(x, exponents)


def as_matrix(rows, n_columns, sparse):
    """Python integers as Coefficients."""
    flat = [value for row in rows for value in row]
    n_words = max((abs(value).bit_length() for value in flat), default=0) // 64 + 1
    places = [i for i, value in enumerate(flat) if value or not sparse]
    row, column = np.divmod(np.array(places, dtype=np.int64), max(n_columns, 1))
    coordinates = (row, column) if sparse else (None, None)
    return Coefficients(
        (len(rows), n_columns), wide.from_ints([flat[i] for i in places], n_words), *coordinates
    )


def expected(rows, x):
    """By definition, one power per entry."""
    out = []
    for row in rows:
        for v in range(len(x[0]) if x else 1):
            product = 1
            for factor, term in zip(row, x, strict=True):
                product = product * pow(term[v], factor, SQUARE) % SQUARE
            out.append(product)
    return out


def computed(ring, rows, n_columns, x, *, sparse=False, n_jobs=1):
    n_vectors = len(x[0]) if x else 1
    elements = ring.from_ints([value for term in x for value in term])
    shaped = elements.reshape(n_columns, n_vectors, 2 * ring.words)
    out = linear_combinations(ring, shaped, as_matrix(rows, n_columns, sparse), n_jobs)
    assert out.shape == (len(rows), n_vectors, 2 * ring.words)
    return ring.to_ints(np.ascontiguousarray(out.reshape(-1, 2 * ring.words)))


@st.composite
def problems(draw):
    """Matrices of few or many different values, with zeros, of one sign or both, of 1 to 200 bits; and terms."""
    m, n = draw(st.sampled_from([(1, 1), (1, 7), (7, 1), (3, 40), (40, 3), (9, 9), (0, 4), (4, 0)]))
    bits = draw(st.sampled_from([1, 2, 5, 16, 63, 64, 65, 200]))
    low = draw(st.sampled_from([0, 1 - (1 << bits)]))
    numbers = st.integers(low, (1 << bits) - 1)
    values = st.sampled_from(draw(st.lists(numbers, min_size=1, max_size=4)))
    values = draw(st.sampled_from([values, numbers])) | st.just(0)
    shift = draw(st.sampled_from([0, 0, 7, 70]))
    random = draw(st.randoms(use_true_random=False))
    flat = draw(st.lists(values, min_size=12, max_size=12))
    rows = [
        [(random.choice(flat) >> random.choice([0, 0, bits // 2])) << shift for _ in range(n)]
        for _ in range(m)
    ]
    x = [[random.randrange(1, MODULUS) for _ in range(draw(st.just(2)))] for _ in range(n)]
    return rows, n, x


@quick
@given(problems(), st.booleans(), st.sampled_from(kernels.backends()))
def test_every_matrix_gives_what_one_power_per_entry_gives(problem, sparse, backend):
    rows, n, x = problem
    assert computed(Ring(MODULUS, backend=backend), rows, n, x, sparse=sparse) == expected(rows, x)


@quick
@given(problems(), st.booleans())
def test_the_count_is_what_the_execution_asks_of_the_ring(problem, sparse):
    rows, n, x = problem
    ring = CountingRing(MODULUS)
    assert computed(ring, rows, n, x, sparse=sparse) == expected(rows, x)
    per_vector = plan_products(as_matrix(rows, n, sparse)).count()
    assert ring.counted == per_vector.times(len(x[0]) if x else 1)


@pytest.mark.parametrize(
    ("kind", "method"),
    [("tall", "tables"), ("wide", "buckets"), ("diagonal", "powers"), ("few values", "buckets")],
)
def test_large_matrices_of_every_method_agree_and_count_right(kind, method, rng, monkeypatch):
    monkeypatch.setattr(product_plans, "BLOCK_ENTRIES", 500)  # several blocks
    x = {
        "tall": rng.integers(-(2**15), 2**15, (300, 5)),
        "wide": rng.integers(-(2**15), 2**15, (5, 300)),
        "diagonal": np.diag(rng.integers(-(2**40), 2**40, 60)),
        "few values": rng.choice([-30_000, 0, 7, 12_345], (5, 300)),
    }[kind]
    rows, n = x.tolist(), x.shape[1]
    plan = plan_products(as_matrix(rows, n, False))
    assert plan.method == method
    terms = [[int(v) + 2] for v in rng.integers(MODULUS // 2, size=n)]
    ring = CountingRing(MODULUS)
    assert computed(ring, rows, n, terms) == expected(rows, terms)
    assert ring.counted == plan.count()


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("kind", ["many values", "few values", "even values", "zeros"])
def test_layers_multiplied_while_others_are_planned_give_the_same_and_count_the_same(
    kind, n_jobs, rng, monkeypatch
):
    monkeypatch.setattr(product_plans, "BLOCK_ENTRIES", 500)
    monkeypatch.setattr(product_plans, "_TRY_BOTH", 100)
    x = {
        "many values": rng.integers(-(2**15), 2**15, (5, 200)),
        "few values": rng.choice([-30_000, 0, 7, 12_345], (5, 200)),
        "even values": 64 * rng.integers(-(2**15), 2**15, (5, 200)),
        "zeros": np.zeros((5, 200), dtype=np.int64),
    }[kind]
    rows, n = x.tolist(), x.shape[1]
    assert product_plans.only_buckets(as_matrix(rows, n, False))
    terms = [[int(v) + 2] for v in rng.integers(MODULUS // 2, size=n)]
    ring = CountingRing(MODULUS)
    assert computed(ring, rows, n, terms, n_jobs=n_jobs) == expected(rows, terms)
    assert ring.counted == plan_products(as_matrix(rows, n, False)).count()


def test_vectors_are_taken_in_parts_without_changing_the_result(rng, monkeypatch):
    rows = rng.integers(-99, 99, (4, 6)).tolist()
    x = [[int(v) + 2 for v in rng.integers(MODULUS // 2, size=7)] for _ in range(6)]
    whole = computed(Ring(MODULUS), rows, 6, x, n_jobs=2)
    monkeypatch.setattr("vflcrypto.products._ELEMENTS_AT_ONCE", 50)
    assert computed(Ring(MODULUS), rows, 6, x) == whole == expected(rows, x)


# ---- what is promised about the number of multiplications ----


def columns(rng, n_rows, n_columns, n_values):
    """Signed 16-bit columns, each of n_values different values."""
    values = [rng.permutation(1 << 16)[:n_values] - (1 << 15) for _ in range(n_columns)]
    places = [rng.permutation(np.arange(n_rows) % n_values) for _ in range(n_columns)]
    return np.stack([v[p] for v, p in zip(values, places, strict=True)]).astype(np.int16)


def test_all_different_16_bit_values_take_at_most_1_6_multiplications_each(rng):
    x = columns(rng, 24_000, 23, 24_000)
    assert count_multiplications(x).multiplications <= 1.6 * x.size
    assert count_multiplications(x.T).multiplications <= 1.6 * x.size
    assert count_multiplications(x[:1]).multiplications <= 2.05 * x[:1].size


@pytest.mark.parametrize(("n_values", "most"), [(2399, 1.13), (200, 1.03), (9, 0.34), (2, 0.12)])
def test_equal_values_are_summed_first_and_columns_share_their_pairs(rng, n_values, most):
    x = columns(rng, 24_000, 23, n_values)
    assert count_multiplications(x).multiplications <= most * x.size


def test_one_hot_columns_of_several_categories_share_their_pairs(rng):
    levels = rng.integers(0, 10, (24_000, 4)) + 10 * np.arange(4)
    dense = np.zeros((24_000, 40), dtype=bool)
    np.put_along_axis(dense, levels, True, axis=1)
    sparse = scipy_sparse.csr_array(dense)
    for x in (sparse.T, dense.T):
        assert count_multiplications(x).multiplications <= 0.52 * levels.size
    assert count_multiplications(sparse).multiplications <= 0.27 * levels.size


def test_zeros_are_free_and_ones_are_sums():
    assert count_multiplications(np.zeros((5, 1000), dtype=int)) == Count()
    assert count_multiplications(np.ones((1, 1000), dtype=int)) == Count(products=999)
    assert count_multiplications(np.ones((5, 1000), dtype=int)) == Count(products=999)  # equal columns, once
    assert count_multiplications(np.eye(7, dtype=int)) == Count()


def test_small_negative_numbers_have_no_high_digits(rng):
    x = rng.integers(-9, 0, (1, 4000))
    x[0, :20] = 2**60
    assert count_multiplications(x).multiplications <= 1.2 * x.size


def test_widths_make_up_all_bits_at_the_least_expected_cost():
    for n_rows, bits in [(1, 1), (10, 64), (1000, 16), (24_000, 368), (24_000, 5)]:
        widths, cost = best_widths(n_rows, bits)
        assert sum(widths) == bits
        assert cost == pytest.approx(sum(expected_products(n_rows, width) for width in widths))
        for width in range(1, min(bits, 16) + 1):
            parts = [width] * (bits // width) + ([bits % width] if bits % width else [])
            assert cost <= sum(expected_products(n_rows, part) for part in parts) + 1e-6


def test_the_expected_products_of_a_key_are_met_by_random_keys(rng):
    bits, n_rows = 6, 5000
    counted = count_multiplications(rng.integers(0, 2, (bits, n_rows)))
    assert counted.squarings == counted.inverses == 0
    assert counted.products == pytest.approx(expected_products(n_rows, bits), rel=0.01)


# ---- SciPy's matrices ----

KEY = insecure_key("INSECURE_TEST_KEY_512")


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dia", "bsr"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_sparse_matrices_multiply_from_both_sides_in_every_format(key, rng, form, kind):
    dense = rng.integers(-99, 99, (6, 9)) * (rng.random((6, 9)) < 0.3)
    x = getattr(scipy_sparse, f"{form}_{kind}")(dense)
    v, w, m = rng.integers(-99, 99, 9), rng.integers(-99, 99, 6), rng.integers(-99, 99, (9, 2))
    c, cw, cm = key.encrypt(v), key.encrypt(w), key.encrypt(m)
    for got, want in (
        (x @ c, dense @ v),
        (x @ c if form == "coo" else x.dot(c), dense @ v),  # coo.dot refuses whatever is no array
        (c.dot(x, n_jobs=2), dense @ v),
        (x @ cm, dense @ m),
        (x.T @ cw, w @ dense),
        (cw @ x, w @ dense),
    ):
        assert got.shape == want.shape
        assert got.freshness is None
        np.testing.assert_array_equal(key.decrypt(got), want)


def test_duplicates_add_up_and_the_order_of_indices_does_not_matter(key):
    data, indices, indptr = [5, 2, -7, 1, 1], [3, 0, 3, 2, 2], [0, 3, 5]
    x = scipy_sparse.csr_matrix((np.array(data), np.array(indices), np.array(indptr)), shape=(2, 4))
    v = np.array([1, 10, 100, 1000])
    assert key.decrypt(x @ key.encrypt(v)).tolist() == [2 - 2000, 200]
    assert x.data.tolist() == data  # the caller's matrix is as before


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float32, np.float64])
def test_sparse_and_dense_factors_follow_the_same_rules(key1024, dtype, rng):
    dense = (rng.random((4, 6)) * 100 * (rng.random((4, 6)) < 0.5)).astype(dtype)
    v = rng.integers(-99, 99, 6)
    c = key1024.encrypt(v)
    from_sparse, from_dense = scipy_sparse.csr_array(dense) @ c, dense @ c
    assert from_sparse.encoding == from_dense.encoding
    assert from_sparse.bound == from_dense.bound
    np.testing.assert_array_equal(key1024.decrypt(from_sparse), key1024.decrypt(from_dense))
    coarse = c.dot(scipy_sparse.csr_array(dense), fraction_bits=40)
    assert coarse.encoding.fraction_bits == 40


def test_the_bound_is_checked_at_the_operation_for_sparse_factors_too(key256):
    c = key256.encrypt(np.ones(3), bound=1.0)
    with pytest.raises(BoundOverflowError, match="product of 3 terms"):
        scipy_sparse.csr_array(np.full((2, 3), 2.0**60)) @ c


def test_empty_and_mismatched_sparse_factors(key):
    c = key.encrypt([1, 2, 3])
    assert key.decrypt(scipy_sparse.csr_array((2, 3), dtype=int) @ c).tolist() == [0, 0]
    assert (scipy_sparse.csr_array((0, 3), dtype=int) @ c).shape == (0,)
    with pytest.raises(ValueError, match=r"cannot multiply shapes \(2, 4\) @ \(3,\)"):
        scipy_sparse.csr_array((2, 4), dtype=int) @ c
    with pytest.raises(ValueError, match="NaN"):
        scipy_sparse.csr_array(np.array([[np.nan, 0, 1]])) @ c


def test_nobody_but_scipy_gets_an_array_of_ciphertexts(key):
    with pytest.raises(TypeError, match="decrypt it"):
        np.asarray(key.encrypt([1, 2]))


def test_scipy_is_not_imported_by_the_library():
    code = "import sys, vflcrypto.products; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([*PYTHON, "-c", code], check=False).returncode == 0


@quick
@given(st.data())
def test_matrices_times_encrypted_matrices_are_numpys(data):
    m, n, k = (data.draw(st.integers(0, 5)) for _ in range(3))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    x, c = rng.integers(-(2**20), 2**20, (m, n)), rng.integers(-(2**20), 2**20, (n, k))
    np.testing.assert_array_equal(KEY.decrypt(x @ KEY.encrypt(c)), x @ c)


def test_methods_are_all_met_by_small_random_problems(rng):
    """So that the properties above speak of all three."""
    met = Counter()
    for shape in [(1, 1), (7, 1), (1, 7), (3, 40), (40, 3)]:
        rows = rng.integers(-(2**20), 2**20, shape).tolist()
        met[plan_products(as_matrix(rows, shape[1], False)).method] += 1
    assert set(met) == {"buckets", "tables", "powers"}
