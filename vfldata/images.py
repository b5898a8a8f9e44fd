"""Images cut into parts: two halves, the upper and the lower, or four quarters, each held by one party.

The lower half, or the lower right quarter, belongs to the active party: the last one in reading order.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vfldata.dataset import VerticalDataset

PARTS = {  # number of parties -> party -> rows and columns as (which of how many); the active party first
    2: {"lower": ((1, 2), (0, 1)), "upper": ((0, 2), (0, 1))},
    4: {
        "lower_right": ((1, 2), (1, 2)),
        "upper_left": ((0, 2), (0, 2)),
        "upper_right": ((0, 2), (1, 2)),
        "lower_left": ((1, 2), (0, 2)),
    },
}


def from_images(
    name: str,
    train: tuple[NDArray[np.uint8], NDArray[np.int64]],
    test: tuple[NDArray[np.uint8], NDArray[np.int64]],
    *,
    channels: Sequence[str],
    class_names: Sequence[str],
    n_parties: int,
    flat: bool,
    classes: Sequence[int] | None,
    source: str,
) -> VerticalDataset:
    """Cut images into one part per party.

    Parameters
    ----------
    train, test : images (n, channels, height, width), 0..255, and their classes (n,)
    n_parties : 2 or 4
    flat : whether a block is (n, channels * height * width), in reading order per channel, instead of four axes
    classes : keep only images of these classes; the k-th one listed becomes class k. None: all.
    """
    if n_parties not in PARTS:
        raise ValueError(f"{name}: images are cut for 2 or 4 parties, got n_parties={n_parties!r}")
    kept = _checked_classes(name, classes, len(class_names))
    blocks, labels = [], []
    for images, numbers in (train, test):
        if classes is not None:
            chosen = np.isin(numbers, kept)
            images, numbers = images[chosen], _renumbered(numbers[chosen], kept)
        labels.append(pd.Series(numbers, dtype="int64", name="class"))
        blocks.append({party: _part(images, where, flat) for party, where in PARTS[n_parties].items()})
    height, width = train[0].shape[2:]
    return VerticalDataset(
        name,
        blocks[0],
        blocks[1],
        labels[0],
        # Sample IDs count on from the training images.
        labels[1].set_axis(pd.RangeIndex(len(labels[0]), len(labels[0]) + len(labels[1]))),
        {
            party: _pixel_names(channels, where, height, width) if flat else list(channels)
            for party, where in PARTS[n_parties].items()
        },
        "binary" if len(kept) == 2 else "multiclass",
        tuple(class_names[k] for k in kept),
        source=source,
    )


def _checked_classes(name: str, classes: Sequence[int] | None, n_classes: int) -> list[int]:
    if classes is None:
        return list(range(n_classes))
    kept = list(classes)
    if len(kept) < 2 or len(set(kept)) < len(kept) or not set(kept) <= set(range(n_classes)):
        raise ValueError(
            f"{name}: classes are two or more different numbers of 0..{n_classes - 1}, got {classes!r}"
        )
    return kept


def _renumbered(numbers: NDArray[np.int64], kept: list[int]) -> NDArray[np.int64]:
    new = np.full(max(kept) + 1, -1, dtype=np.int64)
    new[kept] = range(len(kept))
    return new[numbers]


def _part(images: NDArray[np.uint8], where: Any, flat: bool) -> NDArray[np.float32]:
    rows, columns = (_span(axis, size) for axis, size in zip(where, images.shape[2:], strict=True))
    # Divided into a new array of float32 at once: no copy of all pixels in float64 in between.
    block = np.divide(images[:, :, rows, columns], np.float32(255), dtype=np.float32)
    return block.reshape(len(block), -1) if flat else np.ascontiguousarray(block)


def _span(axis: tuple[int, int], size: int) -> slice:
    which, of = axis
    return slice(which * size // of, (which + 1) * size // of)


def _pixel_names(channels: Sequence[str], where: Any, height: int, width: int) -> list[str]:
    rows, columns = (
        range(size)[_span(axis, size)] for axis, size in zip(where, (height, width), strict=True)
    )
    return [f"{channel}_{row}_{column}" for channel in channels for row in rows for column in columns]
