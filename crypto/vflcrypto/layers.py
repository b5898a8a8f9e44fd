"""Sums of sums: layers of segments, each over what the layer before has made, with the rows in every sum counted.

Elements are numbered: rows, then the wanted values, then cells, which only later layers need. A layer reads elements by
number and writes its sums to their places, so nothing is copied; a cell of one element is that element by another
number. Batches do not depend on each other, so small ones are done together, layer by layer.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .batches import ahead, thread_count
from .ciphertexts import CiphertextArray
from .kernels import Elements
from .shapes import checked_segments

Indices = NDArray[np.int64]

CELLS_TOGETHER = 1 << 12  # batches are joined up to about so many cells: 2 MB under a 2048-bit key


class SumLayer(Protocol):
    """Segments over the sums of the layer before; over rows in the first layer."""

    @property
    def starts(self) -> NDArray[np.integer]:
        """(n_sums + 1,), non-decreasing from 0"""

    @property
    def indices(self) -> NDArray[np.integer]:
        """(starts[-1],)"""

    @property
    def places(self) -> NDArray[np.integer]:
        """(n_sums,): which value of the result a sum is, or -1"""


def sum_in_layers(
    array: CiphertextArray, n_values: int, batches: Iterable[Iterable[SumLayer]], n_jobs: int = 1
) -> CiphertextArray:
    """Sums of rows by way of sums that several of them share.

    Plaintext  same encoding. For packed arrays the rows that went into each value are counted through all layers, one
               that went in twice counting twice; the most of them counts against the slots.
    Fresh      no: rerandomize() before it leaves.
    Cost       a segment of k elements takes k - 1 multiplications modulo n^2 per trailing value.
    Timing     depends on the layers, not on plaintexts.
    Raises     SlotOverflowError, BoundOverflowError, ValueError (segments; a value that no layer makes, or two do).
    Source     Paillier 1999, additive homomorphism.

    Parameters
    ----------
    batches : layers; each batch begins at the rows of `array`

    Returns
    -------
    CiphertextArray of shape (n_values, *array.shape[1:])
    """
    ring, trailing = array.public_key.ring, array.shape[1:]
    per_row = int(np.prod(trailing, dtype=np.int64))
    numbers = _Numbers(len(array), n_values)
    sums = ring.empty(n_values * per_row)
    for n_cells, layers in ahead(_joined(batches, numbers), thread_count(n_jobs)):
        sums = _with_room(sums, n_values * per_row, (n_values + n_cells) * per_row)
        for layer in layers:
            for k in range(per_row):
                indices, places = layer.indices * per_row + k, layer.places * per_row + k
                ring.product_layer(sums, places, array.elements, layer.starts, indices, n_jobs=n_jobs)
    if (numbers.times_made != 1).any():
        wrong = int(np.flatnonzero(numbers.times_made != 1)[0])
        raise ValueError(
            f"value {wrong} is made {numbers.times_made[wrong]} times by the layers, expected once"
        )
    # In public only what the shapes tell, as in CiphertextArray.sum_rows.
    public = max(len(array), numbers.longest)
    return array._sum_of(sums[: n_values * per_row], (n_values, *trailing), numbers.longest, public)


@dataclass(frozen=True)
class _Layer:
    """Segments over numbered elements, and where their sums belong among values and cells."""

    starts: Indices
    indices: Indices
    places: Indices


class _Numbers:
    """Gives numbers to the sums of batches, and counts the rows in each."""

    def __init__(self, n_rows: int, n_values: int) -> None:
        self.n_rows, self.n_values, self.n_cells = n_rows, n_values, 0
        self.times_made = np.zeros(n_values, dtype=np.int64)
        self.longest = 1

    def of_batch(self, batch: Iterable[SumLayer]) -> Iterator[_Layer]:
        """The batch's segments that are more than another name."""
        names, weights = np.arange(self.n_rows), np.ones(self.n_rows, dtype=np.int64)
        for layer in batch:
            starts, indices = checked_segments(layer.starts, layer.indices, len(names))
            lengths, places = np.diff(starts), layer.places.astype(np.int64)
            weights = np.diff(np.concatenate([[0], np.cumsum(weights[indices])])[starts])
            wanted = places >= 0
            np.add.at(self.times_made, places[wanted], 1)
            self.longest = max(self.longest, int(weights[wanted].max(initial=0)))
            cells = np.flatnonzero(~wanted & (lengths != 1))
            places[cells] = self.n_values + self.n_cells + np.arange(len(cells))
            self.n_cells += len(cells)
            members, made = names[indices], places >= 0
            yield _Layer(_starts(lengths[made]), members[np.repeat(made, lengths)], places[made])
            names = np.where(made, self.n_rows + places, members[np.minimum(starts[:-1], len(members) - 1)])


def _joined(batches: Iterable[Iterable[SumLayer]], numbers: _Numbers) -> Iterator[tuple[int, list[_Layer]]]:
    """Neighbouring batches as one, up to CELLS_TOGETHER cells and those of the last batch: cells and layers."""
    group: list[list[_Layer]] = []
    for batch in batches:
        group.append(list(numbers.of_batch(batch)))
        if numbers.n_cells >= CELLS_TOGETHER:
            yield numbers.n_cells, _side_by_side(group)
            group, numbers.n_cells = [], 0
    if group:
        yield numbers.n_cells, _side_by_side(group)


def _side_by_side(group: list[list[_Layer]]) -> list[_Layer]:
    """The first layers of all batches as one layer, and so on."""
    levels = [[layer for layer in level if layer is not None] for level in zip_longest(*group)]
    return [
        _Layer(
            _starts(np.concatenate([np.diff(layer.starts) for layer in level])),
            np.concatenate([layer.indices for layer in level]),
            np.concatenate([layer.places for layer in level]),
        )
        for level in levels
    ]


def _starts(lengths: Indices) -> Indices:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _with_room(sums: Elements, n_kept: int, n_rows: int) -> Elements:
    """The array with room for n_rows elements, of which the first n_kept are kept."""
    if n_rows <= len(sums):
        return sums
    larger = np.empty((n_rows, sums.shape[1]), dtype=np.uint64)
    larger[:n_kept] = sums[:n_kept]
    return larger
