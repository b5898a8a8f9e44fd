"""The plain matrix of a linear combination, dense or sparse, as lines of wide integers.

A dense matrix is one array of words. A sparse one (anything with SciPy's `tocsr`) stays its nonzero entries and is
never filled up; SciPy itself is not imported.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import words as wide
from .words import Words

Indices: TypeAlias = NDArray[np.int64]
Line: TypeAlias = tuple[Indices, Words]


@dataclass(frozen=True)
class Coefficients:
    """An integer matrix of shape (m, n).

    words : uint64, two's complement; (m * n, n_words) in C order where dense, else one row per nonzero entry
    row, column : int64, place of every entry where sparse, each place once
    """

    shape: tuple[int, int]
    words: Words
    row: Indices | None = None
    column: Indices | None = None

    @property
    def n_entries(self) -> int:
        """Entries that are kept: all of them where dense."""
        return len(self.words)

    def lines(self, axis: int) -> Iterator[Line]:
        """Per row (axis 0) or column (axis 1): where its nonzero values lie along the other axis, and the values."""
        if self.row is None or self.column is None:
            dense = self.words.reshape(*self.shape, self.words.shape[1])
            for i in range(self.shape[axis]):
                yield _nonzero(np.arange(self.shape[1 - axis]), dense[i] if axis == 0 else dense[:, i])
            return
        own, other = (self.row, self.column) if axis == 0 else (self.column, self.row)
        order = np.lexsort((other, own))
        starts = np.searchsorted(own[order], np.arange(self.shape[axis] + 1))
        for i in range(self.shape[axis]):
            chosen = order[starts[i] : starts[i + 1]]
            yield _nonzero(other[chosen], self.words[chosen])

    def entries(self) -> tuple[Indices, Indices, Words]:
        """Row, column and value of every nonzero entry."""
        row, column = self.row, self.column
        if row is None or column is None:
            row, column = (axis.ravel() for axis in np.indices(self.shape, dtype=np.int64))
        present = self.words.any(axis=1)
        return row[present], column[present], self.words[present]

    def without_common_zeros(self) -> tuple["Coefficients", int]:
        """The matrix divided by the largest power of two that divides every value, and its exponent."""
        seen = [int(np.bitwise_or.reduce(self.words[:, i])) for i in range(self.words.shape[1])]
        together = sum(value << wide.WORD_BITS * i for i, value in enumerate(seen))
        zeros = (together & -together).bit_length() - 1 if together else 0
        if zeros == 0 and len(seen) == 1:
            return self, 0
        words = _shift_right(self.words, zeros)
        return Coefficients(self.shape, _narrowest(words), self.row, self.column), zeros


def is_sparse(values: Any) -> bool:
    """Whether this is one of SciPy's sparse arrays or matrices, or behaves like one."""
    return hasattr(values, "tocsr") and hasattr(values, "nnz")


def sparse_entries(values: Any) -> tuple[NDArray[Any], Indices, Indices]:
    """Values, rows and columns of a sparse matrix, each place once, in SciPy's sense: duplicates are added up."""
    matrix = values.tocsr()
    if len(matrix.shape) != 2:
        raise ValueError(f"a sparse factor needs two dimensions, got shape {matrix.shape}")
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # the caller's matrix stays as it is
        matrix.sum_duplicates()
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return matrix.data, row.astype(np.int64), matrix.indices.astype(np.int64)


def signed_bits(words: Words) -> tuple[int, bool]:
    """Bits that hold every row: in two's complement, and True, where some are negative; else unsigned, and False."""
    negative = wide.is_negative(words)
    if not negative.any():
        return wide.bit_length(words), False
    folded = words ^ (np.uint64(0) - negative.astype(np.uint64))[:, None]
    return wide.bit_length(folded) + 1, True


def distinct_rows(words: Words) -> tuple[Indices, Words]:
    """For every row the number of its value, and the values."""
    _, number = np.unique(words[:, 0], return_inverse=True)
    for i in range(1, words.shape[1]):
        if (words[:, i] == words[0, i]).all():
            continue
        _, other = np.unique(words[:, i], return_inverse=True)
        _, number = np.unique(number * (int(other.max()) + 1) + other, return_inverse=True)
    values = np.empty((int(number.max(initial=-1)) + 1, words.shape[1]), dtype=np.uint64)
    values[number] = words
    return number.astype(np.int64), values


def count_distinct(words: Words) -> int:
    """How many different rows there are."""
    if words.shape[1] > 1:
        return len(distinct_rows(words)[1])
    ordered = np.sort(words[:, 0])
    return int(len(ordered) > 0) + int(np.count_nonzero(ordered[1:] != ordered[:-1]))


def _nonzero(where: Indices, words: Words) -> Line:
    present = words[:, 0] != 0 if words.shape[1] == 1 else words.any(axis=1)
    return (where, words) if present.all() else (where[present], words[present])


def _shift_right(words: Words, shift: int) -> Words:
    """words / 2**shift for rows that it divides."""
    longer = wide.resize(words, words.shape[1] + 1)
    fields = [
        wide.get_field(longer, shift + wide.WORD_BITS * i, wide.WORD_BITS) for i in range(words.shape[1])
    ]
    whole = np.stack(fields, axis=1)
    top, rest = divmod(shift, wide.WORD_BITS)
    sign = np.uint64(0) - wide.is_negative(words).astype(np.uint64)
    first = words.shape[1] - top  # words above this one, and the high bits of this one minus one, are signs
    whole[:, first:] = sign[:, None]
    if rest and first > 0:
        whole[:, first - 1] |= sign << np.uint64(wide.WORD_BITS - rest)
    return whole


def _narrowest(words: Words) -> Words:
    bits, _ = signed_bits(words)
    return np.ascontiguousarray(words[:, : min(words.shape[1], wide.words_for(bits + 1))])
