"""Exact sums of gradients and hessians per node, feature and bin: int64, so the order of addition never
matters.

Rows come grouped by node, as in a sparse matrix:  rows[indptr[k] : indptr[k + 1]]  are the rows of node k.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vflcrypto.kernels import thread_count
from vfltree._jit import jit
from vfltree._threads import run_ranges

Ints = NDArray[np.int64]

MIN_SUMS_FOR_THREADS = 1 << 18  # additions; below about that, starting threads takes longer than adding


def build_histograms(
    binned: NDArray[np.uint8] | NDArray[np.uint16],
    rows: Ints,
    indptr: Ints,
    g: Ints,
    h: Ints,
    n_bins: int,
    n_jobs: int | None = None,
) -> Ints:
    """Sums per node, feature and bin.

    Parameters
    ----------
    binned : ndarray of uint8 or uint16, shape (n_rows, n_features)
        Bins, all below `n_bins`, from `BinMapper.transform` (Fortran order is read fastest).
    rows : ndarray of int64, shape (indptr[-1],)
        Row indices grouped by node; a row that stands there twice counts twice.
    indptr : ndarray of int64, shape (n_nodes + 1,)
    g, h : ndarray of int64, shape (n_rows, n_outputs) or (n_rows,)
    n_bins : int
        `BinMapper.n_bins`; the last is for missing values.
    n_jobs : int or None
        Threads, over features; see `kernels.thread_count`. Small sums use one.

    Returns
    -------
    ndarray of int64, shape (n_nodes, n_features, n_bins, 2 * n_outputs)
        The last axis holds all outputs' g, then all outputs' h.
    """
    rows, indptr = np.ascontiguousarray(rows, dtype=np.int64), np.ascontiguousarray(indptr, dtype=np.int64)
    values = _gathered(g, h, rows)
    columns = np.ascontiguousarray(binned.T)
    if columns.size and len(rows) and (rows.min() < 0 or rows.max() >= columns.shape[1]):
        raise ValueError(f"rows must lie between 0 and {columns.shape[1] - 1}")
    if columns.size and columns.max() >= n_bins:
        raise ValueError(f"bins go up to {columns.max()}, but n_bins is {n_bins}")
    n_nodes, n_features = len(indptr) - 1, columns.shape[0]
    sums = np.zeros((n_nodes, n_features, n_bins, values.shape[1]), dtype=np.int64)
    add = _add_pairs if values.shape[1] == 2 else _add_many
    n_threads = thread_count(n_jobs) if len(rows) * n_features >= MIN_SUMS_FOR_THREADS else 1
    run_ranges(
        lambda start, stop: add(columns, rows, indptr, values, sums, start, stop), n_features, n_threads
    )
    return sums


def _gathered(g: Ints, h: Ints, rows: Ints) -> Ints:
    """g and h of the rows side by side, int64 (len(rows), 2 * n_outputs), to be read straight on."""
    g, h = (x.reshape(len(x), -1) for x in (g, h))
    if g.shape != h.shape:
        raise ValueError(f"gradients have shape {g.shape}, hessians {h.shape}")
    values = np.empty((len(rows), 2 * g.shape[1]), dtype=np.int64)
    values[:, : g.shape[1]] = g[rows]
    values[:, g.shape[1] :] = h[rows]
    return values


@jit
def _add_pairs(columns, rows, indptr, values, sums, start, stop):  # type: ignore[no-untyped-def]
    """One output, features start to stop: sums[k, f, bin] += values[i] for the rows of node k."""
    for f in range(start, stop):
        column = columns[f]
        for k in range(len(indptr) - 1):
            for i in range(indptr[k], indptr[k + 1]):
                b = column[rows[i]]
                sums[k, f, b, 0] += values[i, 0]
                sums[k, f, b, 1] += values[i, 1]


@jit
def _add_many(columns, rows, indptr, values, sums, start, stop):  # type: ignore[no-untyped-def]
    """`_add_pairs` for any number of outputs."""
    for f in range(start, stop):
        column = columns[f]
        for k in range(len(indptr) - 1):
            for i in range(indptr[k], indptr[k + 1]):
                b = column[rows[i]]
                for c in range(values.shape[1]):
                    sums[k, f, b, c] += values[i, c]
