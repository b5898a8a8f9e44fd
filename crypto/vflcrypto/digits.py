"""Columns of integers cut into digits, and digits of several columns joined into one key per row.

A matrix of N rows and K columns is to be written with few ones: x_rk = sum over its bits b of +-2^b. Bits of a
row that form one key are met again in other rows, and what is met again is computed once. A key of c bits costs N
multiplications whatever columns its bits come from, and 2^c to take it apart into bits again; so columns whose values
differ share keys of the best c. Columns with few distinct values put the number of the value into the key instead,
and join as long as the joint keys stay few. All choices are made by counting, before anything is multiplied.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np

from . import words as wide
from .batches import run, spans, thread_count
from .coefficients import Indices, Line, count_distinct, distinct_rows, signed_bits
from .words import Words

S = TypeVar("S")
T = TypeVar("T")

MAX_DIGIT_BITS = 16
MAX_KEY_BITS = 40  # of keys joined because they really are few
_OPEN_KEYS = 2  # how many unfinished keys a small digit is tried on
_FEW_ROWS = 64  # no width is much better than another, as keys are taken apart by halves: one key serves
_NARROW_BITS = 4  # columns that join others whole
_VALUE = -1  # position of an atom that is the number of a value


class Atom(NamedTuple):
    """A part of a key that is not taken apart: one bit, or the number of a value.

    position : of the bit, which stands for 2**position, or minus that; or -1 for the number of a value
    """

    column: int
    position: int
    width: int = 1
    negative: bool = False

    @property
    def is_value(self) -> bool:
        return self.position == _VALUE


@dataclass(frozen=True)
class Key:
    """Rows, their keys (int64, positive), and what the bits of a key mean, lowest first."""

    rows: Indices
    codes: Indices
    atoms: tuple[Atom, ...]

    @property
    def width(self) -> int:
        return sum(atom.width for atom in self.atoms)


def expected_products(n_rows: int, bits: int) -> float:
    """Multiplications that a key of `bits` bits costs: its products over rows of random bits, and to take it apart."""
    cells = 1 << bits
    return max(n_rows * (1 - 1 / cells) + cells - 2 * bits - 1, 0)


@lru_cache(1 << 12)
def best_widths(n_rows: int, bits: int) -> tuple[tuple[int, ...], float]:
    """Widths that cut `bits` bits into keys for the fewest multiplications, and how many those are."""
    options = []
    for count in {-(-bits // width) for width in range(1, min(bits, MAX_DIGIT_BITS) + 1)}:
        low, longer = divmod(bits, count)
        cost = longer * expected_products(n_rows, low + 1) + (count - longer) * expected_products(n_rows, low)
        options.append((cost, count))
    cost, count = min(options, default=(0.0, 0))
    return even_widths(bits, -(-bits // max(count, 1))), cost


def even_widths(bits: int, most: int) -> tuple[int, ...]:
    """As few widths of at most `most` as make up `bits`, no two differing by more than one."""
    count = -(-bits // max(most, 1))
    return tuple(bits * (i + 1) // count - bits * i // count for i in range(count))


@dataclass(frozen=True)
class _Column:
    number: int
    rows: Indices
    words: Words
    bits: int
    signed: bool


class _OpenKey:
    """A key under construction: digits are added above those it has."""

    def __init__(self, n_rows: int, digits: Iterable[Key] = ()) -> None:
        self.codes = np.zeros(n_rows, dtype=np.int64)
        self.atoms: list[Atom] = []
        self.width = 0
        for digit in digits:
            self.add(digit)

    def add(self, digit: Key) -> None:
        if len(digit.rows) == len(self.codes):
            self.codes |= digit.codes << self.width
        else:
            self.codes[digit.rows] |= digit.codes << self.width
        self.atoms.extend(digit.atoms)
        self.width += digit.width

    def close(self) -> Key:
        rows = np.flatnonzero(self.codes)
        return Key(rows, self.codes[rows], tuple(self.atoms))


def each(function: Callable[[S], T], items: Sequence[S], n_jobs: int) -> list[T]:
    """function(item) for every item, on threads: worth it where NumPy works without the interpreter's lock."""
    threads = thread_count(n_jobs)
    parts = run(lambda i, j: [function(item) for item in items[i:j]], spans(len(items), threads, 1), threads)
    return [result for part in parts for result in part]


def keys_of(lines: Sequence[Line], n_rows: int, n_jobs: int = 1) -> tuple[list[Key], dict[int, Words]]:
    """Keys for a matrix given by columns; and the values of the columns whose keys hold the number of a value.

    lines : per column its nonzero rows and their values
    """
    sizes = each(lambda line: signed_bits(line[1]), lines, n_jobs)
    columns = [_Column(k, *line, *size) for k, (line, size) in enumerate(zip(lines, sizes, strict=True))]
    dense_bits = sum(column.bits for column in columns if 2 * len(column.rows) >= n_rows)
    shared = max(best_widths(n_rows, dense_bits)[0], default=0)
    keys: list[Key] = []
    small: list[Key] = []
    long: list[_Column] = []
    values: dict[int, Words] = {}
    chosen = each(lambda column: _keys_alone(column, n_rows, shared), columns, n_jobs)
    for column, (own, own_values) in zip(columns, chosen, strict=True):
        if own is None:
            long.append(column)
            continue
        (small if len(own) == 1 else keys).extend(own)
        if own_values is not None:
            values[column.number] = own_values
    keys.extend(_joined_bits(long, n_rows, n_jobs))
    keys.extend(_joined_where_few(small, n_rows))
    return keys, values


def _keys_alone(column: _Column, n_rows: int, shared: int) -> tuple[list[Key] | None, Words | None]:
    """Keys of this column alone, and its values if they hold their numbers; None to share keys of `shared` bits."""
    dense = 2 * len(column.rows) >= n_rows
    bits_cost = expected_products(len(column.rows), shared) * column.bits / max(shared, 1) if dense else None
    numbered = _numbered(column, bits_cost, shared)
    if numbered is not None:
        return [numbered[0]], numbered[1]
    return _own_keys(column, bits_cost if column.bits > _NARROW_BITS else None), None


def _numbered(column: _Column, bits_cost: float | None, shared: int) -> tuple[Key, Words] | None:
    """The column as numbers of its values, equal values to be summed first, where that counts less.

    bits_cost : multiplications where its bits share keys of `shared` bits with other columns; None if they do not
    """
    if column.bits <= 2:
        return None
    n_rows, n_values = len(column.rows), count_distinct(column.words)
    width = n_values.bit_length()
    if width >= column.bits:
        return None
    share = width / shared if bits_cost is not None and 2 * width <= shared else 1.0
    summed_first = n_rows * share - n_values + best_widths(n_values, column.bits)[1]
    if bits_cost is None:
        bits_cost = best_widths(n_rows, column.bits)[1]
    if summed_first >= bits_cost:
        return None
    number, values = distinct_rows(column.words)
    return Key(column.rows, number + 1, (Atom(column.number, _VALUE, width),)), values


# ---- bits ----


def value_keys(column: int, rows: Indices, words: Words) -> list[Key]:
    """Keys of bits for rows of one column alone."""
    return _own_keys(_Column(column, rows, words, *signed_bits(words)), None) or []


def _own_keys(column: _Column, bits_cost: float | None) -> list[Key] | None:
    """Keys of this column's bits alone; None if keys shared with other columns, for bits_cost, are better."""
    few = len(column.rows) <= _FEW_ROWS
    widths = even_widths(column.bits, MAX_KEY_BITS) if few else best_widths(len(column.rows), column.bits)[0]
    borrow = column.signed and len(widths) > 1 and _many_small_negatives(column.words, sum(widths[:-1]))
    if bits_cost is not None and not borrow:
        return None
    keys = []
    for digit, atoms in _digits(column, widths, borrow):
        present = digit != 0
        if present.any():
            keys.append(Key(column.rows[present], digit[present], atoms))
    if bits_cost is not None and bits_cost <= sum(len(key.rows) + (1 << key.width) for key in keys):
        return None
    return keys


def _many_small_negatives(words: Words, bits: int) -> bool:
    """Whether an eighth of the values are negative and fit `bits` bits: they need no digit above, if digits borrow."""
    if words.shape[1] == 1:
        signed = words[:, 0].view(np.int64)
        return 8 * int(np.count_nonzero((signed < 0) & (signed >= -(1 << bits - 1)))) >= len(words)
    negative = words[wide.is_negative(words)]
    if 8 * len(negative) < len(words):
        return False
    magnitude, _ = wide.absolute(negative)
    return 8 * int(np.count_nonzero(~wide.exceeds(magnitude, 1 << (bits - 1)))) >= len(words)


def _digits(
    column: _Column, widths: tuple[int, ...], borrow: bool = False
) -> Iterator[tuple[Indices, tuple[Atom, ...]]]:
    """Digits of the given widths, lowest first, as bits in two's complement: the last signed if the column is.

    With `borrow` all are: a digit of at least half borrows from the next, so small negative numbers have no high
    digits. Adding half of every digit in advance makes all the borrowing at once.
    """
    words, last_signed = column.words, column.signed
    if column.signed and sum(widths) >= wide.WORD_BITS * words.shape[1]:
        words = wide.resize(words, words.shape[1] + 1)
    if borrow:
        starts = np.cumsum((0, *widths[:-2])).tolist()
        halves = sum(1 << start + width - 1 for start, width in zip(starts, widths[:-1], strict=True))
        words = wide.add(words, wide.from_int(halves, words.shape[1]))
        bits, last_signed = signed_bits(words)  # perhaps one more, and perhaps no longer negative
        widths = (*widths[:-1], max(bits - sum(widths[:-1]), 1))
    offset = 0
    for i, width in enumerate(widths):
        last = i + 1 == len(widths)
        digit = wide.get_field(words, offset, width).view(np.int64)
        if borrow and not last:
            digit = digit ^ (1 << (width - 1))
        signed = last_signed if last else borrow
        atoms = (Atom(column.number, offset + b, 1, signed and b + 1 == width) for b in range(width))
        yield digit, tuple(atoms)
        offset += width


# ---- several columns ----


def _joined_bits(columns: list[_Column], n_rows: int, n_jobs: int) -> list[Key]:
    """The bits of all these columns, one after another, cut into keys of nearly equal width."""
    widths, _ = best_widths(n_rows, sum(column.bits for column in columns))
    edges = np.cumsum((0, *widths))
    ends = np.cumsum([column.bits for column in columns])

    def digits_of(item: tuple[_Column, int]) -> list[Key]:
        column, end = item
        begin = end - column.bits
        inside = edges[(edges > begin) & (edges < end)]
        cuts = tuple(np.diff([begin, *inside, end]).tolist())
        return [Key(column.rows, digit, atoms) for digit, atoms in _digits(column, cuts)]

    parts = each(digits_of, list(zip(columns, ends.tolist(), strict=True)), n_jobs)
    digits = [digit for part in parts for digit in part]
    # Digit i belongs to the key in whose bits it lies.
    begins = np.cumsum([0, *(digit.width for digit in digits)])[:-1]
    split = np.searchsorted(begins, edges)
    groups = [digits[i:j] for i, j in pairwise(split.tolist())]
    return each(lambda group: _OpenKey(n_rows, group).close(), groups, n_jobs)


def _joined_where_few(digits: list[Key], n_rows: int) -> Iterator[Key]:
    """Digits joined as long as that saves: rows that have two digits, less the different pairs among them."""
    open_keys: list[_OpenKey] = []
    for digit in digits:
        key = next((key for key in reversed(open_keys) if _saves(key, digit)), None)
        if key is None:
            if len(open_keys) == _OPEN_KEYS:
                yield open_keys.pop(0).close()
            key = _OpenKey(n_rows)
            open_keys.append(key)
        key.add(digit)
    for key in open_keys:
        yield key.close()


def _saves(key: _OpenKey, digit: Key) -> bool:
    """Whether most rows that have both a key and this digit share the pair with other rows.

    A third as many pairs as rows is where a key of its own, or with digits to come, is about as good.
    """
    if key.width + digit.width > MAX_KEY_BITS:
        return False
    before = key.codes[digit.rows]
    both = before != 0
    pairs = (before[both] << digit.width | digit.codes[both]).view(np.uint64)[:, None]
    # Where they are many, half of the rows show it.
    return all(3 * count_distinct(part) <= len(pairs) for part in (pairs[: len(pairs) // 2], pairs))
