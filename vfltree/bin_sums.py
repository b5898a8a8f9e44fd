"""Which rows to add for which bin, and how the sums become a histogram again: both sides, without the cipher.

The fullest bin of each feature is left out (the active party takes it from the node's total) and empty bins cost
nothing, so a feature of a node with r rows costs at most r minus its fullest bin minus its other bins additions; what
features share is added once (`joint_cells.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vfltree._jit import jit


def carried_bins(present: np.ndarray, fullest: np.ndarray) -> np.ndarray:
    """The bins whose sums travel: those present, without the fullest of each feature. Bool, shape of `present`."""
    carried = present.copy()
    np.put_along_axis(carried, fullest.astype(np.int64)[..., None], False, axis=-1)
    return carried


def count_bins(binned: np.ndarray, rows_by_node: Sequence[np.ndarray], n_bins: int) -> np.ndarray:
    """How many rows of each node lie in each bin, int64 (n_nodes, n_features, n_bins).

    binned : unsigned integers (n_rows, n_features), below n_bins; best in Fortran order.  rows_by_node : row numbers.
    """
    counts = np.zeros((len(rows_by_node), binned.shape[1], n_bins), dtype=np.int64)
    columns = np.ascontiguousarray(binned.T)
    for node, rows in enumerate(rows_by_node):
        _count(columns, rows.astype(np.int64), counts[node])
    return counts


def fullest_bins(counts: np.ndarray) -> np.ndarray:
    """The bin of most rows, the first if equal, of each node and feature, int16 (n_nodes, n_features)."""
    return counts.argmax(axis=2).astype(np.int16)


@jit
def _count(columns, rows, counts):  # type: ignore[no-untyped-def]
    """counts[f, columns[f, row]] += 1"""
    for f in range(len(columns)):
        for i in range(len(rows)):
            counts[f, columns[f, rows[i]]] += 1


def unpack_present(packed: np.ndarray, fullest: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    """Which bins hold a row, bool (n_nodes, n_features, n_bins) = `shape`; ValueError where a reply cannot be.

    packed : uint8, bits in the order of `shape`.  fullest : the bin left out of each, integers (n_nodes, n_features).
    """
    n_nodes, n_features, n_bins = shape
    n_cells = n_nodes * n_features * n_bins
    if packed.size != (n_cells + 7) // 8 or fullest.shape != shape[:2]:
        raise ValueError(f"expected {n_nodes} nodes of {n_features} features and {n_bins} bins")
    present = np.unpackbits(packed, count=n_cells).astype(bool).reshape(shape)
    if ((fullest < 0) | (fullest >= n_bins)).any():
        raise ValueError(f"a fullest bin lies outside 0..{n_bins - 1}")
    if not np.take_along_axis(present, fullest.astype(np.int64)[..., None], axis=2).all():
        raise ValueError("a fullest bin is said to be empty")
    return present


def expand_histograms(
    present: np.ndarray,
    fullest: np.ndarray,
    values: np.ndarray,
    totals: np.ndarray,
    sources: np.ndarray,
    outputs: np.ndarray,
) -> np.ndarray:
    """Put travelled sums back into full histograms; the fullest bin is what is missing from the total.

    present, fullest : as in `unpack_present`.  values : int64 (n_values, n_kinds, n_outputs), by node, feature and bin.
    totals : int64 (n_wanted, n_kinds), of each wanted histogram (boosting: gradient and hessian).
    sources, outputs : (n_wanted,), the node of the reply and the output that each is made from.
    Returns int64 (n_wanted, n_features, n_bins, n_kinds).
    """
    carried = carried_bins(present, fullest)
    positions = np.cumsum(carried.ravel()).reshape(carried.shape) - 1
    wanted = carried[sources]
    histograms = np.zeros((*wanted.shape, totals.shape[1]), dtype=np.int64)
    histograms[wanted] = values[positions[sources][wanted], :, outputs[np.nonzero(wanted)[0]]]
    rest = totals[:, None, :] - histograms.sum(axis=2)
    np.put_along_axis(
        histograms, fullest[sources].astype(np.int64)[:, :, None, None], rest[:, :, None, :], axis=2
    )
    return histograms
