"""Sums of sums: layers of segments, each over what the layer before has made, with the rows in every sum counted."""

from collections.abc import Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .ciphertexts import CiphertextArray
from .kernels import Elements, Ring
from .shapes import checked_segments


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
    values = np.empty((n_values, per_row, array.elements.shape[1]), dtype=np.uint64)
    times_made = np.zeros(n_values, dtype=np.int64)
    longest = 1
    for batch in batches:
        elements, weights = array.elements, np.ones(len(array), dtype=np.int64)
        for layer in batch:
            starts, indices = checked_segments(layer.starts, layer.indices, len(weights))
            made = _sums(ring, elements.reshape(len(weights), per_row, -1), starts, indices, n_jobs)
            weights = np.diff(np.concatenate([[0], np.cumsum(weights[indices])])[starts])
            done = np.flatnonzero(layer.places >= 0)
            places = layer.places[done]
            values[places] = made[done]
            np.add.at(times_made, places, 1)
            longest = max(longest, int(weights[done].max(initial=0)))
            elements = made.reshape(-1, made.shape[2])
    if (times_made != 1).any():
        wrong = int(np.flatnonzero(times_made != 1)[0])
        raise ValueError(f"value {wrong} is made {times_made[wrong]} times by the layers, expected once")
    # In public only what the shapes tell, as in CiphertextArray.sum_rows.
    public = max(len(array), longest)
    return array._sum_of(values.reshape(-1, values.shape[2]), (n_values, *trailing), longest, public)


def _sums(
    ring: Ring, elements: Elements, starts: NDArray[np.int64], indices: NDArray[np.int64], n_jobs: int
) -> Elements:
    """Sums of segments of elements (n, per_row, words). Many hold a single one: those are only copied."""
    n_sums, (_, per_row, width) = len(starts) - 1, elements.shape
    lengths = np.diff(starts)
    several = np.flatnonzero(lengths != 1)
    single = np.flatnonzero(lengths == 1)
    made = np.empty((n_sums, per_row, width), dtype=np.uint64)
    made[single] = elements[indices[starts[:-1][single]]]
    inner = np.concatenate([[0], np.cumsum(lengths[several])])
    chosen = indices[np.repeat(lengths != 1, lengths)]
    for k in range(per_row):
        rows = chosen if per_row == 1 else chosen * per_row + k
        made[several, k] = ring.product_segments(elements.reshape(-1, width), inner, rows, n_jobs=n_jobs)
    return made
