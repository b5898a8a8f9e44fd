"""Rows of small integers side by side in few plaintexts, so that one exponentiation multiplies all columns of a row.

A slot holds the sum over all rows of a feature times a coarse score, with a sign; digits are cut from the low end with
sign extension. Widths follow the number of rows only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vflcrypto import words as wide

from ..columns import COARSE_BITS, FEATURE_BITS, LARGEST_SCORE_BITS, SCORE_BITS

# A score, mixed over the outputs: see columns.mixed.
_SCORE_BITS = LARGEST_SCORE_BITS - SCORE_BITS + COARSE_BITS


@dataclass(frozen=True)
class RowLayout:
    """n_columns integers in slots of `width` bits, `per_plaintext` to a plaintext. Without a key: one each."""

    n_columns: int
    width: int
    per_plaintext: int

    @property
    def per_row(self) -> int:
        """Plaintexts of a row."""
        return -(-self.n_columns // self.per_plaintext)

    @property
    def bits(self) -> int:
        """Magnitude of a packed row."""
        return (self.per_plaintext - 1) * self.width + FEATURE_BITS

    def pack(self, values: np.ndarray) -> np.ndarray:
        """int32 (n_rows, n_columns) to words, uint64 (n_rows, per_row, n_words)."""
        n_words = wide.words_for(self.bits + 1)
        out = np.zeros((len(values), self.per_row, n_words), dtype=np.uint64)
        for column in range(self.n_columns):
            place, slot = divmod(column, self.per_plaintext)
            value = wide.resize(wide.from_int64(values[:, column].astype(np.int64)), n_words)
            out[:, place] = wide.add(
                np.ascontiguousarray(out[:, place]), wide.shift_left(value, slot * self.width)
            )
        return out

    def unpack(self, sums: np.ndarray) -> np.ndarray:
        """Python integers (n_outputs, per_row) to (n_columns, n_outputs)."""
        out = np.zeros((self.n_columns, len(sums)), dtype=object)
        half, full = 1 << (self.width - 1), 1 << self.width
        for output, line in enumerate(sums):
            rest = 0
            for column in range(self.n_columns):
                place, slot = divmod(column, self.per_plaintext)
                if slot == 0:
                    rest = int(line[place])
                digit = (rest + half) % full - half
                out[column, output] = digit
                rest = (rest - digit) >> self.width
        return out


def plan_rows(n_columns: int, n_rows: int, n_outputs: int, key_bits: int) -> RowLayout:
    """The layout under a key of that many bits; ValueError where not even one column fits. key_bits = 0: no key."""
    score_bits = _SCORE_BITS + (2 * n_outputs).bit_length()
    width = score_bits + FEATURE_BITS + n_rows.bit_length() + 1
    if not key_bits:
        return RowLayout(n_columns, width, 1)
    # The cipher counts every score as 64 bits, so the highest slot needs room for that.
    highest = FEATURE_BITS + 64 + n_rows.bit_length()
    per_plaintext = 1 + (key_bits - 2 - highest) // width
    if per_plaintext < 1:
        raise ValueError(f"a slot of {highest} bits does not fit a key of {key_bits} bits")
    return RowLayout(n_columns, width, min(per_plaintext, max(1, n_columns)))
