"""From values to bins: quantile cuts of each column, XGBoost's convention, float64 throughout.

A column with cuts c_0 < c_1 < ... puts x into bin "number of cuts <= x", so the question "x < c_b" is "bin
<= b":

    bin      0    |    1    |    2
    value   x < c_0   x < c_1   c_1 <= x        a value equal to a cut lies right of it

Missing values (NaN) have one bin of their own, the last of the table, in every column.
Infinite values count as the largest finite double of their sign, so cuts are always finite numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vfltree._jit import jit

MIN_BINS, MAX_BINS = 2, 256
NONE_LEFT = -2  # as the bin of a split: no value present goes left
LARGEST = np.finfo(np.float64).max


def check_max_bin(max_bin: int) -> int:
    """`max_bin` as an int, or a ValueError that names the range."""
    if isinstance(max_bin, bool) or not isinstance(max_bin, (int, np.integer)):
        raise TypeError(f"max_bin must be an integer from {MIN_BINS} to {MAX_BINS}, got {max_bin!r}")
    if not MIN_BINS <= max_bin <= MAX_BINS:
        raise ValueError(f"max_bin must lie between {MIN_BINS} and {MAX_BINS}, got {max_bin}")
    return int(max_bin)


def quantile_cuts(X: ArrayLike, max_bin: int = 32) -> list[NDArray[np.float64]]:
    """Cuts of every column, at most `max_bin - 1` each, all of them values of the column.

    With at most `max_bin` distinct values the cuts are the distinct values from the second on, so every bin
    is in use; a constant or wholly missing column has none. Otherwise bins hold about equally many rows: a
    value more frequent than that has a bin of its own and the rest share what is left. Rows are not
    weighted.

    Parameters
    ----------
    X : array_like of float64, shape (n_rows, n_features)
        NaN is missing.
    max_bin : int
        From 2 to 256, missing values not counted.

    Returns
    -------
    list of ndarray of float64, shape (n_cuts,), strictly increasing and finite
    """
    max_bin = check_max_bin(max_bin)
    columns = _as_matrix(X).T
    return [_column_cuts(column, max_bin) for column in columns]


def _as_matrix(X: ArrayLike) -> NDArray[np.float64]:
    matrix = np.asarray(X, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(f"X must have two dimensions (rows, columns), got shape {matrix.shape}")
    return matrix


def _column_cuts(column: NDArray[np.float64], max_bin: int) -> NDArray[np.float64]:
    present = np.clip(column[~np.isnan(column)], -LARGEST, LARGEST)
    values, counts = np.unique(present, return_counts=True)
    if len(values) <= max_bin:
        cuts = values[1:]
    else:
        cuts = values[_first_of_bins(counts.astype(np.int64), max_bin)[1:]]
    return np.ascontiguousarray(cuts)


@jit
def _first_of_bins(counts: NDArray[np.int64], max_bin: int) -> NDArray[np.int64]:
    """Index of the first distinct value of each bin.

    Fills bins from the left. A bin is closed as soon as the next value would take it further beyond its
    fair share of the rows not yet placed than stopping leaves it below.
    """
    first = np.zeros(max_bin, dtype=np.int64)
    rows_left = counts.sum()
    n_bins = 1
    in_bin = counts[0]
    for i in range(1, len(counts)):
        bins_left = max_bin - n_bins + 1  # the open one included
        if bins_left > 1:
            # in_bin + counts[i] / 2 >= rows_left / bins_left, in integers
            enough = (2 * in_bin + counts[i]) * bins_left >= 2 * rows_left
            if enough or len(counts) - i < bins_left:
                rows_left -= in_bin
                first[n_bins] = i
                n_bins += 1
                in_bin = 0
        in_bin += counts[i]
    return first[:n_bins]


class BinMapper:
    """The cuts of one party's columns, and the way from values to bins.

    Parameters
    ----------
    cuts : iterable of array_like of float64
        One strictly increasing, finite sequence per column; at most 255 numbers each.
    n_categories : array_like of int, shape (n_features,), or None
        How many categories a column has, 0 for a column of numbers; None: all hold numbers. A categorical column holds
        codes 0, 1, ..., and a code is its bin: its cuts are 1, 2, ..., whatever `cuts` says.

    Attributes
    ----------
    cuts : tuple of ndarray of float64
    n_categories : ndarray of int64, shape (n_features,)
    n_features : int
    n_bins : int
        Columns of a histogram: the largest number of bins of a feature, plus one for missing values.
        Bins beyond a feature's own stay empty.
    missing_bin : int
        `n_bins - 1`, the same for every feature.
    dtype : numpy.dtype
        uint8, or uint16 where 257 bins need it.
    """

    def __init__(self, cuts: Iterable[ArrayLike], n_categories: ArrayLike | None = None) -> None:
        given = list(cuts)
        self.n_features = len(given)
        self.n_categories = np.zeros(self.n_features, dtype=np.int64)
        if n_categories is not None:
            self.n_categories[:] = n_categories
        for j in np.flatnonzero(self.n_categories):
            given[j] = np.arange(1.0, self.n_categories[j])
        self.cuts = tuple(_checked_cuts(column, j) for j, column in enumerate(given))
        self.n_bins = max((len(column) for column in self.cuts), default=0) + 2
        self.missing_bin = self.n_bins - 1
        self.dtype = np.dtype(np.uint8 if self.n_bins <= 256 else np.uint16)

    @classmethod
    def from_data(
        cls,
        X: ArrayLike,
        max_bin: int = 32,
        cuts: Iterable[ArrayLike] | None = None,
        n_categories: ArrayLike | None = None,
    ) -> BinMapper:
        """The mapper with the `quantile_cuts` of X, or with cuts that are given."""
        return cls(quantile_cuts(X, max_bin) if cuts is None else cuts, n_categories)

    @classmethod
    def from_xgboost_cuts(
        cls, indptr: ArrayLike, values: ArrayLike, *, round_rows: bool = False
    ) -> BinMapper:
        """The mapper that splits rows as XGBoost does with `QuantileDMatrix.get_quantile_cut()`.

        XGBoost stores, per feature, a number below the minimum, the cuts, and a number above the maximum.
        The two ends decide nothing and are dropped.

        Parameters
        ----------
        indptr : array_like of int, shape (n_features + 1,)
        values : array_like of float32, shape (indptr[-1],)
        round_rows : bool
            XGBoost rounds rows to float32 before it compares. False: the cuts keep their values, right for
            rows that are float32 numbers already. True: each cut becomes the smallest double that rounds to
            it or above, so float64 rows fall as their rounded values do.
        """
        bounds = np.asarray(indptr, dtype=np.int64)
        stored = np.asarray(values, dtype=np.float32)
        inner = [stored[start + 1 : stop - 1] for start, stop in pairwise(bounds)]
        return cls(_smallest_that_rounds_to(cuts) if round_rows else cuts for cuts in inner)

    def transform(self, X: ArrayLike) -> NDArray[np.uint8] | NDArray[np.uint16]:
        """Bins of X.

        Parameters
        ----------
        X : array_like of float64, shape (n_rows, n_features)

        Returns
        -------
        ndarray of uint8 or uint16, shape (n_rows, n_features), Fortran order (each feature contiguous)
        """
        matrix = _as_matrix(X)
        if matrix.shape[1] != self.n_features:
            raise ValueError(f"X has {matrix.shape[1]} columns, the bins were made from {self.n_features}")
        binned = np.empty(matrix.shape, dtype=self.dtype, order="F")
        for j, cuts in enumerate(self.cuts):
            column = matrix[:, j]
            binned[:, j] = np.searchsorted(cuts, column, side="right")
            binned[np.isnan(column), j] = self.missing_bin
        return binned

    def threshold(self, feature: int, bin: int) -> float:
        """The number t for which "bin or lower" is "x < t"; past the last cut +inf: all present values.

        -inf for a bin below 0, NONE_LEFT or -1: none of them.
        """
        cuts = self.cuts[feature]
        if bin < 0:
            return -np.inf
        return float(cuts[bin]) if bin < len(cuts) else np.inf

    def goes_left(self, bins: NDArray[np.integer], bin: int, missing_left: bool) -> NDArray[np.bool_]:
        """Which way bins of a feature go at a split "`bin` or lower goes left", elementwise."""
        return np.where(bins == self.missing_bin, missing_left, bins <= bin)

    def outside_goes_left(
        self, bins: NDArray[np.integer], right: NDArray[np.bool_], missing_left: bool
    ) -> NDArray[np.bool_]:
        """The same at a split of categories: `right`, bool (n_categories,), marks those that go right."""
        left = np.ones(self.n_bins, dtype=np.bool_)
        left[: len(right)] = ~right
        left[self.missing_bin] = missing_left
        return left[bins]

    def __repr__(self) -> str:
        return f"BinMapper(n_features={self.n_features}, n_bins={self.n_bins})"


def _checked_cuts(cuts: ArrayLike, feature: int) -> NDArray[np.float64]:
    column = np.array(cuts, dtype=np.float64)  # a copy, so that nobody changes it under us
    if column.ndim != 1:
        raise ValueError(f"the cuts of feature {feature} must be one sequence, got shape {column.shape}")
    if len(column) >= MAX_BINS:
        raise ValueError(f"feature {feature} has {len(column)} cuts, at most {MAX_BINS - 1} are possible")
    if not np.isfinite(column).all() or (np.diff(column) <= 0).any():
        raise ValueError(f"the cuts of feature {feature} must be finite and strictly increasing")
    column.setflags(write=False)
    return column


def _smallest_that_rounds_to(cuts: Sequence[np.float32] | NDArray[np.float32]) -> NDArray[np.float64]:
    """For each float32 c, the smallest double whose float32 rounding is c or more."""
    singles = np.asarray(cuts, dtype=np.float32)
    below = np.nextafter(singles, np.float32(-np.inf))
    halfway = (below.astype(np.float64) + singles.astype(np.float64)) / 2
    # Halfway cases round to the even neighbour: up to c, or down and out.
    return np.where(halfway.astype(np.float32) >= singles, halfway, np.nextafter(halfway, np.inf))
