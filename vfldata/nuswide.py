"""NUS-WIDE (Chua et al. 2009): 269,648 Flickr photographs, described by image features and by the tags of their owners.

Read from the publishers' text files; none of the photographs is needed.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vfldata.dataset import VerticalDataset
from vfldata.home import Folder, data_folder, missing

CONCEPTS = (
    "buildings",
    "grass",
    "animal",
    "water",
    "person",
)  # VFLAIR's five classes; its two are clouds, person
FEATURES = {"CH": 64, "CM55": 225, "CORR": 144, "EDH": 73, "WT": 128}  # 634 in all
N_TAGS = 1_000
N_TRAIN, N_TEST = 60_000, 40_000
FOLDER = "nuswide"
CHUNK = 20_000  # lines read at once, so that rows not wanted never lie in memory together


def load_nuswide(
    *,
    concepts: Sequence[str] = CONCEPTS,
    n_train: int | None = N_TRAIN,
    n_test: int | None = N_TEST,
    data_home: Folder = None,
) -> VerticalDataset:
    """NUS-WIDE for two parties: the active "photographs" has 634 image features and the class, "tags" 1,000 tags (0/1).

    Only photographs that carry exactly one of `concepts` count; that one is the class. Both blocks are float32. The
    publishers' training and test photographs are kept apart.

    Parameters
    ----------
    concepts : sequence of names out of the publishers' 81
    n_train, n_test : int or None
        The first so many of each part, in the order of the files; None: all. If there are fewer, all.
    data_home
        The folder with a folder "nuswide"; by default the one that VFL_DATA_HOME names. Anywhere in it, for PART
        "Train" and "Test": Labels_CONCEPT_PART.txt (of the archive Groundtruth), PART_Normalized_CH.dat, and the same
        for CM55, CORR, EDH and WT (Low_Level_Features), PART_Tags1k.dat and, if you like, TagList1k.txt (NUS_WID_Tags).
        Labels, features and tags may be packed with gzip.

    Raises FileNotFoundError naming the missing file, ValueError for files that do not fit together.
    """
    names = list(concepts)
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(f"concepts are two or more different names, got {names}")
    blocks, y = {}, {}
    for part, n_wanted in (("Train", n_train), ("Test", n_test)):
        labels = _one_concept(part, names, data_home)
        rows = np.flatnonzero(labels >= 0)[:n_wanted]
        ids = [f"{part.lower()}_{row}" for row in rows]  # the number of the line in the files of its part
        y[part] = pd.Series(labels[rows], index=ids, dtype="int64", name="concept")
        kinds = [
            _numbers(_find(f"{part}_Normalized_{kind}.dat", data_home), rows, width, len(labels))
            for kind, width in FEATURES.items()
        ]
        tags = _numbers(_find(f"{part}_Tags1k.dat", data_home), rows, N_TAGS, len(labels))
        blocks[part] = {"photographs": np.concatenate(kinds, axis=1), "tags": tags}
    return VerticalDataset(
        "nuswide",
        blocks["Train"],
        blocks["Test"],
        y["Train"],
        y["Test"],
        {
            "photographs": [f"{kind}_{k}" for kind, width in FEATURES.items() for k in range(width)],
            "tags": _tag_names(data_home),
        },
        "binary" if len(names) == 2 else "multiclass",
        tuple(names),
        source=str(_folder(data_home)),
    )


def _one_concept(part: str, names: list[str], data_home: Folder) -> NDArray[np.int64]:
    """Which of the concepts each photograph carries, -1 for none or several."""
    marks = []
    for name in names:
        path = _find(f"Labels_{name}_{part}.txt", data_home)
        marks.append(pd.read_csv(path, header=None, dtype="int8").iloc[:, 0].to_numpy())
        if len(marks[-1]) != len(marks[0]):
            raise ValueError(f"{path} has {len(marks[-1])} lines, the file of {names[0]!r} {len(marks[0])}")
    carried = np.stack(marks, axis=1) == 1
    return np.where(carried.sum(axis=1) == 1, carried.argmax(axis=1), -1)


def _numbers(path: Path, rows: NDArray[np.int64], width: int, n_lines: int) -> NDArray[np.float32]:
    """The lines `rows` of a file of numbers, which must have `n_lines` lines of `width` numbers."""
    block = np.empty((len(rows), width), dtype=np.float32)
    start = 0
    for chunk in pd.read_csv(path, sep=r"\s+", header=None, dtype=np.float32, chunksize=CHUNK):
        if chunk.shape[1] != width:
            raise ValueError(f"{path} has {chunk.shape[1]} numbers a line, expected {width}")
        first, last = np.searchsorted(rows, [start, start + len(chunk)])
        block[first:last] = chunk.to_numpy()[rows[first:last] - start]
        start += len(chunk)
    if start != n_lines:
        raise ValueError(f"{path} has {start} lines, the files of labels {n_lines}")
    return block


def _tag_names(data_home: Folder) -> list[str]:
    lists = sorted(_folder(data_home).rglob("TagList1k.txt"))
    names = lists[0].read_text(encoding="utf-8").split() if lists else []
    return names if len(names) == N_TAGS else [f"tag_{k}" for k in range(N_TAGS)]


def _folder(data_home: Folder) -> Path:
    """Without a folder of data, one that does not exist, so that nothing is found in it."""
    return (data_folder(data_home) or Path(os.devnull)) / FOLDER


def _find(name: str, data_home: Folder) -> Path:
    folder = _folder(data_home)
    found = [path for spelled in (name, f"{name}.gz") for path in sorted(folder.rglob(spelled))]
    if not found:
        get_it = "Get Groundtruth, Low_Level_Features and NUS_WID_Tags from the page of NUS-WIDE, unpack them"
        raise FileNotFoundError(missing(f"NUS-WIDE ({name})", data_home, get_it, f"{FOLDER}/"))
    return found[0]
