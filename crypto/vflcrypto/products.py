"""Linear combinations of ciphertexts, prod c_j^(x_ij), as planned in product_plans.py: the part that multiplies."""

from collections.abc import Callable, Iterable
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .batches import ahead, thread_count
from .coefficients import Coefficients, Indices, is_sparse, sparse_entries
from .encoding import Encoded, encode
from .kernels import Elements, Ring
from .product_plans import (
    BitPlan,
    Bits,
    Count,
    Layer,
    PowerPlan,
    ProductPlan,
    bucket_steps,
    only_buckets,
    plan_products,
)

if TYPE_CHECKING:
    from .ciphertexts import CiphertextArray

_ELEMENTS_AT_ONCE = 1 << 16  # of the widest level, over several vectors: busy lanes, bounded memory


def count_multiplications(plain: ArrayLike, *, fraction_bits: int | None = None) -> Count:
    """Modular multiplications that `plain @ c` takes per column of c. A pure function of `plain`: only plans.

    plain : array of shape (n,) or (m, n), or a sparse matrix
    """
    matrix, _, _ = encode_matrix(plain, fraction_bits, capacity=1 << (1 << 14))
    return plan_products(matrix).count()


def encode_matrix(
    plain: ArrayLike, fraction_bits: int | None, capacity: int
) -> tuple[Coefficients, Encoded, tuple[int, ...]]:
    """A factor of a product, dense or sparse: its integers, how they are encoded, and its shape. See encode()."""
    if is_sparse(plain):
        data, row, column = sparse_entries(plain)
        factor = encode(data, fraction_bits=fraction_bits, capacity=capacity)
        shape = tuple(int(size) for size in plain.shape)  # type: ignore[union-attr]
        return Coefficients((shape[0], shape[1]), factor.words, row, column), factor, shape
    factor = encode(plain, fraction_bits=fraction_bits, capacity=capacity)
    if len(factor.shape) not in (1, 2):
        raise ValueError(f"cannot multiply shapes {factor.shape} @ a vector or a matrix")
    matrix = Coefficients((prod(factor.shape[:-1]), factor.shape[-1]), factor.words)
    return matrix, factor, factor.shape


def dot(
    array: "CiphertextArray", plain: ArrayLike, fraction_bits: int | None, n_jobs: int
) -> "CiphertextArray":
    """plain @ array; see CiphertextArray.dot."""
    array._fixed_point("multiplied")
    array._refuse_ciphertext(plain)
    matrix, factor, shape = encode_matrix(plain, fraction_bits, array.public_key.capacity)

    def combine(vectors: Elements) -> Elements:
        return linear_combinations(array.public_key.ring, vectors, matrix, n_jobs)

    return _product(array, shape, factor, combine)


class PreparedProduct:
    """`plain @ c` planned once, for many arrays: what repeats with the same matrix plans only once.

    plain : array of shape (n,) or (m, n), or a sparse matrix
    capacity : `public_key.capacity` of the arrays to come
    """

    def __init__(
        self, plain: ArrayLike, *, capacity: int, fraction_bits: int | None = None, n_jobs: int = 1
    ) -> None:
        matrix, self._factor, self.shape = encode_matrix(plain, fraction_bits, capacity)
        self._plan = plan_products(matrix, n_jobs)

    def count(self) -> Count:
        """Modular multiplications per column of an array."""
        return self._plan.count()

    def __call__(self, array: "CiphertextArray", n_jobs: int = 1) -> "CiphertextArray":
        """plain @ array; see CiphertextArray.dot."""

        def combine(vectors: Elements) -> Elements:
            return _by_plan(array.public_key.ring, vectors, self._plan, n_jobs)

        return _product(array, self.shape, self._factor, combine)


def _product(
    array: "CiphertextArray",
    shape: tuple[int, ...],
    factor: Encoded,
    combine: Callable[[Elements], Elements],
) -> "CiphertextArray":
    """The array of a product, whose elements `combine` computes from vectors (n, n_vectors, 2 * words)."""
    encoding = array._fixed_point("multiplied")
    if array.ndim not in (1, 2) or shape[-1] != array.shape[0]:
        raise ValueError(f"cannot multiply shapes {shape} @ {array.shape}")
    n_terms = array.shape[0]
    bound = array._checked_bound(
        array.bound * factor.bound * max(1, n_terms),
        f"a product of {n_terms} terms",
        array.bound,
        factor.bound,
    )
    width = array.elements.shape[1]
    out = combine(array.elements.reshape(n_terms, prod(array.shape[1:]), width))
    return array._replace(
        elements=out.reshape(-1, width),
        shape=shape[:-1] + array.shape[1:],
        encoding=encoding.times(factor.encoding),
        bound=bound,
        freshness=None,
    )


def linear_combinations(ring: Ring, x: Elements, matrix: Coefficients, n_jobs: int = 1) -> Elements:
    """out[i, v] = prod over j of x[j, v] ** matrix[i, j]; the time follows the matrix.

    Parameters
    ----------
    x : ndarray of uint64, shape (n, n_vectors, 2 * words)
    matrix : shape (m, n)

    Returns
    -------
    ndarray of uint64, shape (m, n_vectors, 2 * words)
    """
    if x.shape[1] == 1 and only_buckets(matrix):
        single = np.ascontiguousarray(x.transpose(1, 0, 2))
        return _Execution(ring, 1, n_jobs).run_ahead(matrix, single).transpose(1, 0, 2)
    return _by_plan(ring, x, plan_products(matrix, n_jobs), n_jobs)


def _by_plan(ring: Ring, x: Elements, plan: ProductPlan, n_jobs: int) -> Elements:
    n_vectors, width = x.shape[1:]
    out = np.empty((plan.shape[0], n_vectors, width), dtype=np.uint64)
    at_once = max(1, _ELEMENTS_AT_ONCE // max(1, plan.widest_level()))
    for start in range(0, n_vectors, at_once):
        part = x[:, start : start + at_once].transpose(1, 0, 2)
        result = _Execution(ring, part.shape[0], n_jobs).run(plan, np.ascontiguousarray(part))
        out[:, start : start + at_once] = result.transpose(1, 0, 2)
    return out


class _Execution:
    """One plan on several vectors at once. Levels have shape (n_vectors, n_entries, 2 * words)."""

    def __init__(self, ring: Ring, n_vectors: int, n_jobs: int) -> None:
        self.ring, self.n_vectors, self.n_jobs = ring, n_vectors, n_jobs

    def run(self, plan: ProductPlan, x: Elements) -> Elements:
        if plan.powers is not None:
            return self._shifted(self._by_powers(plan.powers, x), plan.shift)
        if plan.method == "buckets":
            return self._all_buckets(([*block.layers, block.bits] for block in plan.blocks), plan.shift, x)
        x = self._shifted(x, plan.shift)
        total, done = None, 0
        for block in plan.blocks:
            part = self._by_tables(block, x[:, done : done + block.bits.n_columns])
            total = part if total is None else self._mul(total, part)
            done += block.bits.n_columns
        return self._ones(plan.shape[0]) if total is None else total

    def run_ahead(self, matrix: Coefficients, x: Elements) -> Elements:
        """As run() of the matrix' plan by buckets, each layer multiplied while a thread plans the next."""
        matrix, shift = matrix.without_common_zeros()
        threads = thread_count(self.n_jobs)
        steps = (ahead(block, threads) for block in bucket_steps(matrix, self.n_jobs))
        return self._all_buckets(steps, shift, x)

    def _all_buckets(self, blocks: Iterable[Iterable[Layer | Bits]], shift: int, x: Elements) -> Elements:
        outputs = [self._by_buckets(steps, x) for steps in blocks]
        return self._shifted(np.concatenate(outputs, axis=1) if outputs else self._ones(0), shift)

    def _by_buckets(self, steps: Iterable[Layer | Bits], x: Elements) -> Elements:
        """Rows are terms: products of equal keys, of equal parts of keys, of equal bits; then a chain per column."""
        level, chains = x, self._ones(0)
        for step in steps:
            if isinstance(step, Layer):
                level = self._products(level, step.starts, step.upper)
            else:
                chains = self._chains(step, level)
        return chains

    def _chains(self, bits: Bits, level: Elements) -> Elements:
        level = self._inverted(level, bits)
        lengths = bits.chain_lengths()
        ends = np.cumsum(lengths)
        chains = self._ones(int(lengths.sum()))
        chains[:, ends[bits.column] - 1 - bits.position] = level
        indptr = self._tiled_indptr(np.concatenate([[0], ends]))
        return self._level(self.ring.horner(self._flat(chains), indptr, 1, n_jobs=self.n_jobs))

    def _by_tables(self, plan: BitPlan, x: Elements) -> Elements:
        """Columns are terms: powers of two of each, products for every key that occurs, and of keys per row."""
        bits = plan.bits
        level = np.empty((self.n_vectors, len(bits.position), x.shape[2]), dtype=np.uint64)
        power = x
        for position in range(int(bits.position.max(initial=0)) + 1):
            if position:
                power = self._mul(power, power)
            here = bits.position == position
            level[:, here] = power[:, bits.column[here]]
        level = self._inverted(level, bits)
        for layer in reversed(plan.layers):
            level = self._products(level, *layer.upwards())
        return level

    def _by_powers(self, plan: PowerPlan, x: Elements) -> Elements:
        bases = self._flat(x[:, plan.term])
        exponents = np.tile(plan.magnitude, (self.n_vectors, 1))
        powers = self._level(self.ring.pow_vartime(bases, exponents, n_jobs=self.n_jobs))
        halves = self._products(powers, plan.segments(), np.arange(len(plan.term)))
        out, divided = halves[:, ::2].copy(), plan.outputs_to_divide()
        if len(divided):
            inverses = self.ring.inverse(self._flat(halves[:, 2 * divided + 1]), n_jobs=self.n_jobs)
            out[:, divided] = self._mul(out[:, divided], self._level(inverses))
        return out

    # -- the ring on levels --

    def _flat(self, level: Elements) -> Elements:
        return np.ascontiguousarray(level).reshape(-1, level.shape[2])

    def _level(self, elements: Elements) -> Elements:
        return elements.reshape(self.n_vectors, len(elements) // self.n_vectors, elements.shape[1])

    def _ones(self, count: int) -> Elements:
        return np.tile(self.ring.one(), (self.n_vectors, count, 1))

    def _mul(self, a: Elements, b: Elements) -> Elements:
        return self._level(self.ring.mul(self._flat(a), self._flat(b), n_jobs=self.n_jobs))

    def _products(self, level: Elements, indptr: Indices, indices: Indices) -> Elements:
        offsets = np.arange(self.n_vectors) * level.shape[1]
        tiled = indices if self.n_vectors == 1 else (offsets[:, None] + indices).ravel()
        flat = self._flat(level)
        return self._level(
            self.ring.product_segments(flat, self._tiled_indptr(indptr), tiled, n_jobs=self.n_jobs)
        )

    def _tiled_indptr(self, indptr: Indices) -> Indices:
        later = np.arange(self.n_vectors)[:, None] * indptr[-1] + indptr[1:]
        return np.concatenate([[0], later.ravel()])

    def _inverted(self, level: Elements, bits: Bits) -> Elements:
        """The level of bits, those that count negative inverted."""
        if bits.negative.any():
            chosen = self._flat(level[:, bits.negative])
            level[:, bits.negative] = self._level(self.ring.inverse(chosen, n_jobs=self.n_jobs))
        return level

    def _shifted(self, level: Elements, shift: int) -> Elements:
        """Every element to the power of 2**shift: the element, and a one, side by side."""
        if shift == 0 or level.size == 0:
            return level
        pairs = np.stack([level, self._ones(level.shape[1])], axis=2).reshape(-1, level.shape[2])
        indptr = np.arange(0, len(pairs) + 1, 2, dtype=np.int64)
        return self._level(self.ring.horner(pairs, indptr, shift, n_jobs=self.n_jobs))
