"""Which rows to add for which bin, and how the sums become a histogram again: both sides, without the cipher.

The fullest bin of each feature is left out (the active party takes it from the node's total) and empty bins cost
nothing, so a feature of a node with r rows costs at most r minus its fullest bin minus its other bins additions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class BinSegments:
    """Rows to add, one segment a bin, in the order node, feature, bin."""

    present: np.ndarray  # bool (n_nodes, n_features, n_bins)
    fullest: np.ndarray  # int16 (n_nodes, n_features)
    starts: np.ndarray  # int64 (n_segments + 1,)
    rows: np.ndarray  # int64 (starts[-1],)

    @property
    def n_segments(self) -> int:
        return len(self.starts) - 1


def carried_bins(present: np.ndarray, fullest: np.ndarray) -> np.ndarray:
    """The bins whose sums travel: those present, without the fullest of each feature. Bool, shape of `present`."""
    carried = present.copy()
    np.put_along_axis(carried, fullest.astype(np.int64)[..., None], False, axis=-1)
    return carried


def segment_rows(binned: np.ndarray, rows_by_node: list[np.ndarray], n_bins: int) -> BinSegments:
    """Group each node's rows by the bin of every feature.

    binned : integers (n_rows, n_features), below n_bins.  rows_by_node : row numbers, at least one a node.
    """
    n_features = binned.shape[1]
    counts = np.zeros((len(rows_by_node), n_features, n_bins), dtype=np.int64)
    offsets = np.arange(n_features)[:, None] * n_bins
    sorted_rows, sorted_bins = [], []
    for node, rows in enumerate(rows_by_node):
        bins = binned[rows].T  # (n_features, n_rows of the node)
        order = np.argsort(bins, axis=1, kind="stable")
        bins = np.take_along_axis(bins, order, axis=1)
        counts[node] = np.bincount((bins + offsets).ravel(), minlength=n_features * n_bins).reshape(
            n_features, n_bins
        )
        sorted_rows.append(rows[order])
        sorted_bins.append(bins)
    present, fullest = counts > 0, counts.argmax(axis=2).astype(np.int16)
    kept = [
        rows[bins != fullest[node][:, None]]  # boolean indexing keeps the order feature, bin, row
        for node, (rows, bins) in enumerate(zip(sorted_rows, sorted_bins, strict=True))
    ]
    lengths = counts[carried_bins(present, fullest)]
    return BinSegments(
        present=present,
        fullest=fullest,
        starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        rows=np.concatenate(kept).astype(np.int64) if kept else np.zeros(0, np.int64),
    )


def unpack_present(packed: np.ndarray, fullest: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    """Which bins hold a row, bool (n_nodes, n_features, n_bins) = `shape`; ValueError where a reply cannot be.

    packed : uint8, bits in the order of `shape`.  fullest : as in `BinSegments`.
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

    present, fullest : as in `BinSegments`.  values : int64 (n_values, 2, n_outputs), in the order node, feature, bin.
    totals : int64 (n_wanted, 2), gradient and hessian of each wanted histogram.  sources, outputs : (n_wanted,), the
    node of the reply and the output that each is made from.
    Returns int64 (n_wanted, n_features, n_bins, 2).
    """
    carried = carried_bins(present, fullest)
    positions = np.cumsum(carried.ravel()).reshape(carried.shape) - 1
    wanted = carried[sources]
    histograms = np.zeros((*wanted.shape, 2), dtype=np.int64)
    histograms[wanted] = values[positions[sources][wanted], :, outputs[np.nonzero(wanted)[0]]]
    rest = totals[:, None, :] - histograms.sum(axis=2)
    np.put_along_axis(
        histograms, fullest[sources].astype(np.int64)[:, :, None, None], rest[:, :, None, :], axis=2
    )
    return histograms
