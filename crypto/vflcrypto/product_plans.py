"""How to compute linear combinations of ciphertexts with few multiplications: planned and counted, nothing multiplied.

An integer matrix is written as a product of sparse matrices of zeros and ones and one of signed powers of two:
rows | keys | halves of keys | ... | single bits (see digits.py). Read from the left, that computes X^T x with many rows
and few columns: products of rows with equal keys, keys with equal halves, and so on to one product per bit of a
column, and a Horner chain per column (Pippenger's buckets). Read from the right it computes X x with many
rows: powers x_k^(2^b), tables of the products that keys need, and per row a product of table entries (Straus). Both
cost the same up to the number of rows and columns; the longer side of the matrix becomes the rows.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .batches import SQUARE_COST, public_window
from .coefficients import Coefficients, Indices, Line
from .digits import Atom, Key, each, keys_of, value_keys
from .words import Words, absolute, bit_length

Mask: TypeAlias = NDArray[np.bool_]

BLOCK_ENTRIES = 1 << 20  # of the matrix, planned at once: bounds the memory of plans and of their products
_TRY_BOTH = 1 << 13  # so many entries are planned both ways
_SIMILAR = 4  # sides of a matrix whose ratio is at most this
_TRY_POWERS = 3  # terms per output up to which a power for each may be the best


@dataclass(frozen=True)
class Count:
    """Modular multiplications of a plan: products of two elements, squarings, and elements to be inverted."""

    products: int = 0
    squarings: int = 0
    inverses: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(
            self.products + other.products,
            self.squarings + other.squarings,
            self.inverses + other.inverses,
        )

    def times(self, factor: int) -> Count:
        return Count(self.products * factor, self.squarings * factor, self.inverses * factor)

    @property
    def multiplications(self) -> int:
        """All of them; an inverse in a batch takes three."""
        return self.products + self.squarings + 3 * self.inverses

    @property
    def price(self) -> float:
        """In products, squarings being cheaper."""
        return self.products + SQUARE_COST * self.squarings + 3 * self.inverses


@dataclass(frozen=True)
class Layer:
    """A matrix of zeros and ones between two levels: the upper entries that belong to each lower one.

    starts : int64 (n_lower + 1,); upper : int64 (starts[-1],); no lower entry is without an upper one
    """

    starts: Indices
    upper: Indices
    n_upper: int

    @property
    def n_lower(self) -> int:
        return len(self.starts) - 1

    def upwards(self) -> tuple[Indices, Indices]:
        """Segments (indptr, indices) the other way: the lower entries of each upper one, perhaps none."""
        lower = np.repeat(np.arange(self.n_lower), np.diff(self.starts))
        narrow = self.upper.astype(np.uint16) if self.n_upper <= 1 << 16 else self.upper  # sorted by radix
        return _indptr(self.upper, self.n_upper), lower[np.argsort(narrow, kind="stable")]


@dataclass(frozen=True)
class Bits:
    """What the entries of the last level stand for, +-2**position in a column; no two share column and position.

    column, position, negative : shape (n_bits,)
    """

    column: Indices
    position: Indices
    negative: Mask
    n_columns: int

    def chain_lengths(self) -> Indices:
        """Bits per column, those without a product included, shape (n_columns,)."""
        lengths = np.zeros(self.n_columns, dtype=np.int64)
        np.maximum.at(lengths, self.column, self.position + 1)
        return lengths


@dataclass(frozen=True)
class BitPlan:
    """matrix[r, k] = sum over the paths from r through the layers to the bits of column k, of +-2**position."""

    layers: tuple[Layer, ...]
    bits: Bits

    def count_buckets(self) -> Count:
        """Where rows are terms and columns are outputs."""
        joins = sum(len(layer.upper) - layer.n_lower for layer in self.layers)
        steps = int(np.maximum(self.bits.chain_lengths() - 1, 0).sum())
        return Count(joins + steps, steps, int(np.count_nonzero(self.bits.negative)))

    def count_tables(self) -> Count:
        """Where rows are outputs and columns are terms."""
        joins = sum(
            len(layer.upper) - int(np.count_nonzero(np.bincount(layer.upper))) for layer in self.layers
        )
        doublings = int(self.bits.position.max(initial=0)) * self.bits.n_columns  # done as products of equals
        return Count(joins + doublings, 0, int(np.count_nonzero(self.bits.negative)))


@dataclass(frozen=True)
class PowerPlan:
    """A power for every entry, and their products: for rows of one or two terms.

    segment, term, magnitude : per entry; segment 2 i holds the positive terms of output i, 2 i + 1 the negative ones
    """

    segment: Indices
    term: Indices
    magnitude: Words
    n_outputs: int

    def segments(self) -> Indices:
        return _indptr(self.segment, 2 * self.n_outputs)

    def outputs_to_divide(self) -> Indices:
        return np.unique(self.segment[self.segment % 2 == 1] // 2)

    def count(self) -> Count:
        joins = len(self.segment) - len(np.unique(self.segment))
        divided = len(self.outputs_to_divide())
        return count_powers(len(self.segment), bit_length(self.magnitude)) + Count(
            joins + divided, 0, divided
        )


@dataclass(frozen=True)
class ProductPlan:
    """What to do for `matrix @ x`, all entries being multiples of 2**shift.

    method : "buckets" (outputs in blocks), "tables" (terms in blocks) or "powers"
    """

    shape: tuple[int, int]
    shift: int
    method: str
    blocks: tuple[BitPlan, ...] = ()
    powers: PowerPlan | None = None

    def widest_level(self) -> int:
        """Elements of the level with the most, per vector."""
        sizes = [max(layer.n_upper, layer.n_lower) for block in self.blocks for layer in block.layers]
        return max([*self.shape, *sizes, len(self.powers.term) if self.powers else 0])

    def count(self) -> Count:
        """Exactly what the execution will ask of the ring, per vector x."""
        m, n = self.shape
        if self.powers is not None:
            return self.powers.count() + _count_shift(m, self.shift)
        if self.method == "tables":
            joins = Count(max(len(self.blocks) - 1, 0) * m)
            total = sum((block.count_tables() for block in self.blocks), joins)
            return total + _count_shift(n, self.shift)
        total = sum((block.count_buckets() for block in self.blocks), Count())
        return total + _count_shift(m, self.shift)


def count_powers(count: int, bits: int) -> Count:
    """What Ring.pow_vartime does for exponents of `bits` bits: a table per base, then windows."""
    window = public_window(bits)
    later = max(-(-bits // window) - 1, 0)
    half = (1 << window - 1) - 1
    return Count(half + later, half + later * window).times(count)


def only_buckets(matrix: Coefficients) -> bool:
    """Whether plan_products would have nothing to compare, so that layers may be multiplied before all are known."""
    m, n = matrix.shape
    return matrix.n_entries > _TRY_BOTH and matrix.row is None and m <= n


def bucket_steps(matrix: Coefficients, n_jobs: int = 1) -> Iterator[Iterator[Layer | Bits]]:
    """Block after block of outputs: its layers, each as soon as it is known, and at last its bits."""
    for block in _blocks(matrix, 0):
        yield bit_steps(block, matrix.shape[1], n_jobs)


def plan_products(matrix: Coefficients, n_jobs: int = 1) -> ProductPlan:
    """The plan with the fewest multiplications among those that size and scalars suggest; n_jobs changes nothing."""
    matrix, shift = matrix.without_common_zeros()
    m, n = matrix.shape
    few = matrix.n_entries <= _TRY_BOTH
    candidates: list[ProductPlan] = []
    if few or matrix.row is not None:
        row, column, words = matrix.entries()
        used = len(np.unique(row)), len(np.unique(column))
        if len(words) <= _TRY_POWERS * used[0]:
            powers = _power_plan(row, column, words, m)
            candidates.append(ProductPlan(matrix.shape, shift, "powers", powers=powers))
        if 2 * len(words) <= 3 * min(used):  # nearly a diagonal: nothing to share
            return candidates[0]
    methods = ["tables" if m > n else "buckets"]
    if few and max(m, n) <= _SIMILAR * min(m, n):
        methods = ["buckets", "tables"]
    for method in methods:
        axis = int(method == "tables")
        blocks = tuple(plan_bits(block, matrix.shape[1 - axis], n_jobs) for block in _blocks(matrix, axis))
        candidates.append(ProductPlan(matrix.shape, shift, method, blocks))
    return min(candidates, key=lambda plan: plan.count().price)


def _power_plan(row: Indices, column: Indices, words: Words, n_outputs: int) -> PowerPlan:
    magnitude, negative = absolute(words)
    segment = 2 * row + negative
    order = np.argsort(segment, kind="stable")
    return PowerPlan(segment[order], column[order], np.ascontiguousarray(magnitude[order]), n_outputs)


def _blocks(matrix: Coefficients, axis: int) -> Iterator[list[Line]]:
    """Neighbouring lines, with about BLOCK_ENTRIES entries at most."""
    block: list[Line] = []
    size = 0
    for line in matrix.lines(axis):
        if block and size + len(line[0]) > BLOCK_ENTRIES:
            yield block
            block, size = [], 0
        block.append(line)
        size += len(line[0])
    if block:
        yield block


def plan_bits(columns: list[Line], n_rows: int, n_jobs: int = 1) -> BitPlan:
    """A matrix, given by the nonzero rows of its columns and their values, as layers down to bits."""
    steps = list(bit_steps(columns, n_rows, n_jobs))
    layers = tuple(step for step in steps if isinstance(step, Layer))
    (bits,) = (step for step in steps if isinstance(step, Bits))
    return BitPlan(layers, bits)


def bit_steps(columns: list[Line], n_rows: int, n_jobs: int = 1) -> Iterator[Layer | Bits]:
    """The layers of plan_bits, each as soon as it is known, and at last the bits."""
    keys, values = keys_of(columns, n_rows, n_jobs)
    atoms, which, numbers = yield from _layers(keys, n_rows, n_jobs)
    if any(atom.is_value for atom in atoms):
        rest = list(_keys_of_values(atoms, which, numbers, values))
        atoms, which, _ = yield from _layers(rest, len(which), n_jobs)
    column, position, _, negative = np.array(atoms, dtype=np.int64).reshape(-1, len(Atom._fields))[which].T
    yield Bits(column, position, negative != 0, len(columns))


def _keys_of_values(
    atoms: list[Atom], which: Indices, numbers: Indices, values: dict[int, Words]
) -> Iterator[Key]:
    """Keys for a second round: the bits of the values whose numbers were the end of the first; bits stay."""
    for i, atom in enumerate(atoms):
        rows = np.flatnonzero(which == i)
        if atom.is_value:
            yield from value_keys(atom.column, rows, values[atom.column][numbers[rows] - 1])
        elif len(rows):
            yield Key(rows, np.ones(len(rows), dtype=np.int64), (atom,))


def _layers(
    keys: list[Key], n_rows: int, n_jobs: int
) -> Generator[Layer, None, tuple[list[Atom], Indices, Indices]]:
    """Layers from rows to keys and on to atoms; returns the atoms, which of them each last entry is, and its code."""
    keys = [key for key in keys if len(key.rows)]
    atoms = [atom for key in keys for atom in key.atoms]
    ends = np.cumsum([0, *(atom.width for atom in atoms)])  # where bits of an atom begin and end
    first = np.cumsum([0, *(len(key.atoms) for key in keys)])
    begin, end = first[:-1], first[1:]  # atoms of a node
    layer, node, code = _rows_to_keys(keys, n_rows, n_jobs)
    yield layer
    while (end - begin > 1).any():
        middle = (begin + end + 1) // 2
        shift = (ends[middle] - ends[begin])[node]
        low, high = code & (1 << shift) - 1, code >> shift
        with_low, with_high = np.flatnonzero(low), np.flatnonzero(high)
        upper = np.concatenate([with_low, with_high])
        child = np.concatenate([2 * node[with_low], 2 * node[with_high] + 1])
        part = np.concatenate([low[with_low], high[with_high]])
        begin, end = np.stack([begin, middle], 1).ravel(), np.stack([middle, end], 1).ravel()
        order, new = _grouped(child, part, int((ends[end] - ends[begin]).max()))
        upper, child, part = upper[order], child[order], part[order]
        yield Layer(np.append(new, len(order)), upper, len(node))
        node, code = child[new], part[new]
    return atoms, begin[node], code


def _rows_to_keys(keys: list[Key], n_rows: int, n_jobs: int) -> tuple[Layer, Indices, Indices]:
    """Equal keys brought together: the layer, and number and code of the key of every lower entry."""
    begin = np.cumsum([0, *(len(key.rows) for key in keys)])
    upper = np.empty(begin[-1], dtype=np.int64)

    def equal_codes(i: int) -> tuple[Indices, Indices]:
        """Writes the rows of a key in order of their codes; where each code begins, and the codes."""
        order = _sorted(keys[i].codes, keys[i].width)
        codes = keys[i].codes[order]
        new = _changes(codes)
        np.take(keys[i].rows, order, out=upper[begin[i] : begin[i + 1]])
        return new + begin[i], codes[new]

    groups = each(equal_codes, range(len(keys)), n_jobs)
    node = np.repeat(np.arange(len(keys)), [len(new) for new, _ in groups])
    starts = np.concatenate([*(new for new, _ in groups), begin[-1:]])
    codes = np.concatenate([codes for _, codes in groups]) if groups else begin[:0]
    return Layer(starts, upper, n_rows), node, codes


def _grouped(node: Indices, code: Indices, code_bits: int) -> tuple[Indices, Indices]:
    """An order that brings equal (node, code) together, and where each group begins in it."""
    bits = code_bits + int(node.max(initial=0)).bit_length()
    if bits < 63:
        joint = node << code_bits | code
        order = _sorted(joint, bits)
        return order, _changes(joint[order])
    order = np.lexsort((code, node))
    node, code = node[order], code[order]
    return order, np.union1d(_changes(node), _changes(code))


def _sorted(values: Indices, bits: int) -> Indices:
    if bits <= 16:  # sorted by radix
        return np.argsort(values.astype(np.uint16), kind="stable")
    return np.argsort(values)


def _changes(values: Indices) -> Indices:
    """Where values begin that differ from the one before."""
    return np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])[: len(values)])


def _count_shift(count: int, shift: int) -> Count:
    return Count(count, count * shift) if shift else Count()


def _indptr(group: Indices, n_groups: int) -> Indices:
    sizes = np.bincount(group, minlength=n_groups)
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
