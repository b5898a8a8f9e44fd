"""One party's own features in fixed point, dense or sparse, so that every score and every sum is an exact integer.

Column j becomes integers of FEATURE_BITS bits at a scale 2**exponent[j] that suits the column and never leaves the
party: columns of any size keep the same relative precision. Scores are int64 products, which do not depend on the order
in memory as a product of floats would, so encrypted and plain runs agree bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

FEATURE_BITS = 24  # sign included; rounding error at most 2**-23 of a column's largest value
SCORE_BITS = 44  # fraction bits of a score; scores up to 2**18 fit an int64
LARGEST_SCORE_BITS = 62
COARSE_BITS = 22  # fraction bits of scores that become exponents (exchange="rows"): short ones, error 2**-23
_EXACT_ROWS = 1 << 7  # of products of two 23-bit integers, in a double
_LOW_BITS = 20  # 23-bit features times 20-bit ends leave 20 bits for the number of columns
_LIMB_BITS = 16  # 23-bit features times 16-bit limbs leave 24 bits for the number of rows


class FixedColumns:
    """Integer columns, with a column of ones at the end where the party owns the intercept.

    Parameters
    ----------
    features : float64 (n_rows, n_columns), or a SciPy CSR matrix, which is never filled up
    intercept : append a column of ones

    Attributes
    ----------
    values : int32 (n_rows, n_coefficients), or CSR of int32
    exponents : int64 (n_coefficients,); value = integer * 2**-exponent
    """

    def __init__(self, features: Any, intercept: bool = False) -> None:
        self.n_rows, self.n_columns = features.shape
        self.intercept = intercept
        self.is_sparse = hasattr(features, "tocsr")
        largest = _largest_magnitudes(features)
        exponents = FEATURE_BITS - 1 - np.frexp(largest)[1].astype(np.int64)
        # A value just below a power of two would round up to it.
        exponents[np.rint(np.ldexp(largest, exponents)) >= 1 << (FEATURE_BITS - 1)] -= 1
        self.exponents = np.where(largest > 0, exponents, 0)
        self.values = self._without_common_zeros(self._scaled(features))
        if intercept:
            self._append_ones()
        self._magnitudes = _largest_magnitudes(self.values).astype(np.float64)

    @property
    def n_coefficients(self) -> int:
        return len(self.exponents)

    def _scaled(self, features: Any) -> Any:
        if not self.is_sparse:
            return np.rint(np.ldexp(features, self.exponents)).astype(np.int32)
        scaled = features.tocsr().astype(np.float64)
        scaled.sum_duplicates()
        data = np.rint(np.ldexp(scaled.data, self.exponents[scaled.indices]))
        return type(scaled)((data.astype(np.int32), scaled.indices, scaled.indptr), shape=scaled.shape)

    def _without_common_zeros(self, values: Any) -> Any:
        """Columns of few bits (0 and 1, say) as small integers: they are cheap exponents."""
        if self.n_columns == 0:
            return values
        if self.is_sparse:
            seen = np.zeros(self.n_columns, dtype=np.int32)
            np.bitwise_or.at(seen, values.indices, values.data)
        else:
            seen = np.bitwise_or.reduce(values, axis=0, initial=0)
        lowest = (seen & -seen).astype(np.float64)
        zeros = np.where(seen != 0, np.frexp(lowest)[1] - 1, 0)
        self.exponents = self.exponents - zeros
        if self.is_sparse:
            values.data >>= zeros[values.indices].astype(np.int32)
            return values
        return values >> zeros.astype(np.int32)

    def _append_ones(self) -> None:
        self.exponents = np.append(self.exponents, 0)
        if self.is_sparse:
            from scipy import sparse  # only who passes sparse data needs SciPy

            ones = sparse.csr_array(np.ones((self.n_rows, 1), dtype=np.int32))
            self.values = sparse.csr_array(sparse.hstack([self.values, ones], format="csr"))
        else:
            self.values = np.hstack([self.values, np.ones((self.n_rows, 1), dtype=np.int32)])

    def rows(self, rows: np.ndarray | None) -> Any:
        """The integer values of some rows; None: all."""
        return self.values if rows is None else self.values[rows]

    def scores(self, coefficients: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """X w, int64 (n_rows, n_outputs) with SCORE_BITS fraction bits.

        coefficients : float64 (n_coefficients, n_outputs)

        Raises OverflowError where scores would exceed 2**(LARGEST_SCORE_BITS - SCORE_BITS): training diverges.
        """
        scaled = np.ldexp(coefficients, (SCORE_BITS - self.exponents)[:, None])
        largest = (self._magnitudes[:, None] * (np.abs(scaled) + 1)).sum(axis=0)
        if not (largest < 2.0**LARGEST_SCORE_BITS).all():
            raise OverflowError(
                f"scores may exceed 2**{LARGEST_SCORE_BITS - SCORE_BITS}: training diverges; scale the columns or "
                "lower learning_rate"
            )
        # Coefficients keep _LOW_BITS more bits than scores, in a second product.
        whole = np.floor(scaled)
        low = np.rint(np.ldexp(scaled - whole, _LOW_BITS))
        values = self.rows(rows).astype(np.int64)
        rest = np.asarray(values @ low.astype(np.int64))
        return np.asarray(values @ whole.astype(np.int64)) + ((rest + (1 << (_LOW_BITS - 1))) >> _LOW_BITS)

    def sums(self, residuals: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """X^T d, exactly: Python integers, dtype object, (n_coefficients, n_outputs).

        residuals : integers (int64, or Python integers of any size), (n_rows, n_outputs)
        """
        transposed = self.rows(rows).astype(np.int64).T
        bits = max(int(end).bit_length() for end in (residuals.max(initial=0), residuals.min(initial=0)))
        total = np.zeros((self.n_coefficients, residuals.shape[1]), dtype=object)
        for k in range(0, bits + 1, _LIMB_BITS):
            limb = residuals >> k
            if k + _LIMB_BITS <= bits:
                limb = limb & ((1 << _LIMB_BITS) - 1)
            total = total + np.asarray(transposed @ limb.astype(np.int64)).astype(object) * (1 << k)
        return total

    def gram(self) -> np.ndarray:
        """X^T X of the integers, float64 (n_coefficients, n_coefficients); the same whatever the order in memory."""
        total = np.zeros((self.n_coefficients, self.n_coefficients))
        for start in range(0, self.n_rows, _EXACT_ROWS):
            # Every sum within a block is an integer below 2**53, which a BLAS adds exactly in any order.
            block = self.values[start : start + _EXACT_ROWS].astype(np.float64)
            product = block.T @ block
            total += product.todense() if self.is_sparse else product
        return total

    def row_bounds(self) -> np.ndarray:
        """For every column j the sum over rows of |x_ij| sum_l |x_il|, float64 in the columns' own units.

        A diagonal matrix of these is at least X^T X (Gershgorin).
        """
        scale = np.ldexp(1.0, -self.exponents)
        magnitudes = abs(self.values)
        return np.asarray(magnitudes.T @ (magnitudes @ scale)).ravel() * scale

    def gradients(self, sums: np.ndarray, factor: float) -> np.ndarray:
        """float64 (n_coefficients, n_outputs): integer sums, times factor, in the columns' own units.

        sums : Python integers (n_coefficients, n_outputs); their conversion to float64 rounds correctly
        """
        return np.ldexp(sums.astype(np.float64) * factor, -self.exponents[:, None])


def coarse(scores: np.ndarray) -> np.ndarray:
    """Scores, int64 or Python integers, with COARSE_BITS fraction bits, rounded; int64."""
    shift = SCORE_BITS - COARSE_BITS
    return ((scores + (1 << (shift - 1))) >> shift).astype(np.int64)


def mixed(values: np.ndarray) -> np.ndarray:
    """n_outputs * value - sum over the outputs: a residual of softmax to first order, times n_outputs squared.

    Integers (n_rows, n_outputs); Python integers where int64 could overflow.
    """
    n_outputs = values.shape[1]
    largest = max(abs(int(end)) for end in (values.max(initial=0), values.min(initial=0)))
    if values.dtype != object and 2 * n_outputs * largest >= 1 << 63:
        values = values.astype(object)
    return np.asarray(n_outputs * values - values.sum(axis=1, keepdims=True))


def _largest_magnitudes(features: Any) -> np.ndarray:
    """Per column, the largest magnitude; 0 where there is none."""
    if features.shape[0] == 0 or features.shape[1] == 0:
        return np.zeros(features.shape[1])
    largest = abs(features).max(axis=0)
    return np.asarray(largest.todense() if hasattr(largest, "todense") else largest).ravel()
