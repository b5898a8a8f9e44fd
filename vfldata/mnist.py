"""MNIST (LeCun, Cortes and Burges 1998): 70,000 handwritten digits of 28x28 grey pixels."""

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vfldata import openml
from vfldata.dataset import VerticalDataset
from vfldata.home import Folder, find_file, missing
from vfldata.images import from_images

Images = tuple[NDArray[np.uint8], NDArray[np.int64]]

FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
COUNTS = {  # images per digit, as published
    "train": (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
    "test": (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
}
OPENML_ID = 554  # "mnist_784", version 1: the training images, then the test images
IDX_UINT8 = 0x08


def load_mnist(
    *,
    flat: bool = False,
    n_parties: int = 2,
    classes: tuple[int, ...] | None = None,
    data_home: Folder = None,
    download: bool = True,
) -> VerticalDataset:
    """MNIST in halves: the active party "lower" holds the lower 14x28 pixels and the digit, "upper" the upper ones.

    60,000 training and 10,000 test images, the publishers' split; pixels between 0 and 1, float32, shape
    (n, 1, 14, 28). Sample IDs count from 0 over both parts.

    Parameters
    ----------
    flat : bool
        Blocks of shape (n, 392), for models that take rows.
    n_parties : 2 or 4
        Four: quarters of 14x14, the lower right one is the active party's.
    classes : sequence of digits, optional
        Only these digits, numbered 0, 1, ... as listed: ``classes=(3, 8)`` is a binary task.
    data_home, download
        Looks for the four idx files, packed or not, in the folder "mnist" of `data_home`, or else of the folder that
        VFL_DATA_HOME names; if they are not there, asks scikit-learn to fetch them from OpenML unless
        ``download=False``.

    Raises
    ------
    FileNotFoundError
        When the data is nowhere to be had; the message says what to get and where to put it.
    ValueError
        When files of those names hold something else.
    """
    parts, source = _read_or_fetch(data_home, download)
    for part, (_, digits) in parts.items():
        counts = tuple(np.bincount(digits, minlength=10).tolist())
        if counts != COUNTS[part]:
            raise ValueError(
                f"{source} is not MNIST: {counts} {part} images per digit, expected {COUNTS[part]}"
            )
    return from_images(
        "mnist",
        parts["train"],
        parts["test"],
        channels=("grey",),
        class_names=tuple("0123456789"),
        n_parties=n_parties,
        flat=flat,
        classes=classes,
        source=source,
    )


def read_idx(path: Path) -> NDArray[np.uint8]:
    """An idx file of unsigned bytes, packed with gzip or not: 0, 0, type, number of axes, sizes, values."""
    packed = path.read_bytes()
    raw = gzip.decompress(packed) if packed[:2] == b"\x1f\x8b" else packed
    n_axes = raw[3] if len(raw) > 3 else 0
    start = 4 + 4 * n_axes
    if raw[:3] != bytes((0, 0, IDX_UINT8)) or len(raw) < start:
        raise ValueError(
            f"{path} is no idx file of unsigned bytes: it starts with {raw[:4].hex(' ') or 'nothing'}"
        )
    shape = tuple(np.frombuffer(raw, ">u4", n_axes, offset=4).tolist())
    if len(raw) - start != int(np.prod(shape)):
        raise ValueError(f"{path} is cut short or too long: {len(raw) - start} values for shape {shape}")
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape)


def _read_or_fetch(data_home: Folder, download: bool) -> tuple[dict[str, Images], str]:
    paths = {
        name: find_file((f"mnist/{name}.gz", f"mnist/{name}"), data_home)
        for names in FILES.values()
        for name in names
    }
    found = {name: path for name, path in paths.items() if path is not None}
    if len(found) == len(paths):
        return {part: _read(found[images], found[digits]) for part, (images, digits) in FILES.items()}, str(
            found[FILES["train"][0]].parent
        )
    what_to_do = missing(
        f"MNIST (the file {next(name for name in paths if name not in found)})",
        data_home,
        "Get the four idx files (train-images-idx3-ubyte and so on, packed with gzip or not) from a mirror of MNIST",
        "mnist/",
    )
    if not download:
        raise FileNotFoundError(what_to_do)
    bunch = openml.fetch(OPENML_ID, what_to_do, as_frame=False)
    images = bunch.data.astype(np.uint8).reshape(-1, 1, 28, 28)
    digits = bunch.target.astype(np.int64)
    n_train = sum(COUNTS["train"])
    return {
        "train": (images[:n_train], digits[:n_train]),
        "test": (images[n_train:], digits[n_train:]),
    }, f"OpenML data set {OPENML_ID}"


def _read(images: Path, digits: Path) -> Images:
    pixels, numbers = read_idx(images), read_idx(digits)
    if pixels.shape[1:] != (28, 28) or numbers.shape != pixels.shape[:1]:
        raise ValueError(
            f"{images} and {digits.name} are not MNIST: shapes {pixels.shape} and {numbers.shape}, expected "
            "(n, 28, 28) and (n,)"
        )
    return pixels[:, None], numbers.astype(np.int64)
