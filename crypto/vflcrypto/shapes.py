"""Shapes and indices of CiphertextArray: what NumPy does for its own arrays, on rows of words."""

from math import prod

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]
Rows = NDArray[np.uint64]


def broadcast(a: Rows, a_shape: Shape, b: Rows, b_shape: Shape) -> tuple[Rows, Rows, Shape]:
    """Rows of both sides in the common shape. A side of one row is left as it is: kernels broadcast it."""
    shape = np.broadcast_shapes(a_shape, b_shape)
    return _spread(a, a_shape, shape), _spread(b, b_shape, shape), shape


def _spread(rows: Rows, shape: Shape, wanted: Shape) -> Rows:
    if shape == wanted or len(rows) == prod(wanted):
        return rows
    if len(rows) == 1 and prod(wanted) > 0:
        return rows
    order = np.broadcast_to(np.arange(len(rows)).reshape(shape), wanted).ravel()
    return rows[order]


def checked_segments(
    indptr: NDArray[np.integer], indices: NDArray[np.integer], n_rows: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both as int64, or ValueError / TypeError where they are no segments of n_rows rows."""
    indptr, indices = np.asarray(indptr), np.asarray(indices)
    if indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        raise TypeError(f"indptr and indices must be integers, got {indptr.dtype} and {indices.dtype}")
    starts = indptr.astype(np.int64, copy=False)
    good_ends = starts.ndim == 1 and len(starts) > 0 and starts[0] == 0 and starts[-1] == len(indices)
    if indices.ndim != 1 or not good_ends or (np.diff(starts) < 0).any():
        raise ValueError(f"indptr must rise from 0 to {len(indices)}, the number of indices")
    if len(indices) and (int(indices.min()) < 0 or int(indices.max()) >= n_rows):
        raise ValueError(f"row indices must lie in 0..{n_rows - 1}, got {indices.min()}..{indices.max()}")
    return starts, indices.astype(np.int64, copy=False)


def segments_of_bins(bins: NDArray[np.integer], n_bins: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows grouped by bin: indptr and indices, one segment per bin, features one after another.

    bins : integers in [0, n_bins), shape (n,) or (n, n_features)
    """
    if bins.dtype.kind not in "iu":
        raise TypeError(f"bins must be integers, got dtype {bins.dtype}")
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1, got {n_bins}")
    if bins.size and (int(bins.min()) < 0 or int(bins.max()) >= n_bins):
        raise ValueError(f"bins must lie in 0..{n_bins - 1}, got {bins.min()}..{bins.max()}")
    columns = bins[:, None] if bins.ndim == 1 else bins
    n_features = columns.shape[1]
    small = columns.astype(np.uint16 if n_bins <= 1 << 16 else np.int64)  # 16 bits are sorted by radix
    order = np.argsort(small, axis=0, kind="stable").T.ravel()
    keys = columns.astype(np.int64) + np.arange(n_features) * n_bins
    sizes = np.bincount(keys.ravel(), minlength=n_features * n_bins)
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), order


def checked_axis(axis: int, ndim: int) -> int:
    """The axis counted from the front."""
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of range for {ndim} dimensions")
    return axis % ndim
