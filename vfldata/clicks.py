"""Logs of shown advertisements, with a label "clicked": reading Criteo's and Avazu's files, and hashing categories.

A category is the bucket ``crc32(text) % n_buckets`` of its text as it stands in the file, so that any program can
recompute it and no list of categories has to be learned from the rows.
"""

import gzip
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vfldata.dataset import VerticalDataset
from vfldata.home import Folder, find_file, missing

CLICKED = ("not clicked", "clicked")


@dataclass(frozen=True)
class ClickLog:
    """Where the files of one log lie, and what is in them.

    columns : names in the order of the file; `label` is one of them
    whole : names of the published file, of which a random share is taken
    split : folder with train.csv, dev.csv, test.csv: a small sample that others have split 90 : 5 : 5 already
    sample : a smaller sample in one file
    get_it : what to get, for an error message; `put_it` is where
    """

    name: str
    columns: tuple[str, ...]
    label: str
    whole: tuple[str, ...]
    split: str
    sample: str
    get_it: str


def read_log(
    log: ClickLog, share: float, data_home: Folder, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """Training rows, test rows (the last tenth), both of text as it stands in the file; and where they came from."""
    if not 0 < share <= 1:
        raise ValueError(f"{log.name}: share is above 0 and at most 1, got {share!r}")
    whole, sample = find_file(log.whole, data_home), find_file((log.sample,), data_home)
    if whole is not None:
        return *_last_tenth(_read(log, whole, share, seed)), f"{share:g} of {whole}"
    parts = [
        find_file((f"{log.split}/{part}.csv.gz", f"{log.split}/{part}.csv"), data_home)
        for part in ("train", "dev", "test")
    ]
    there = [path for path in parts if path is not None]
    if len(there) == len(parts):
        train, *others = (_read(log, path) for path in there)
        return train, pd.concat(others, ignore_index=True), f"the sample in {there[0].parent}"
    if sample is not None:
        return *_last_tenth(_read(log, sample)), f"the sample {sample}"
    raise FileNotFoundError(missing(log.name, data_home, log.get_it, log.whole[0]))


def click_dataset(
    name: str,
    tables: Sequence[pd.DataFrame],
    blocks: Sequence[Mapping[str, Any]],
    partition: dict[str, list[str]],
    label: str,
    n_buckets: int,
    source: str,
) -> VerticalDataset:
    """Wrap up the blocks of the training and the test table; sample IDs count on from one to the other."""
    n_train = len(tables[0])
    y = [pd.Series(table[label].to_numpy(np.int64), name="clicked") for table in tables]
    return VerticalDataset(
        name,
        dict(blocks[0]),
        dict(blocks[1]),
        y[0],
        y[1].set_axis(pd.RangeIndex(n_train, n_train + len(y[1]))),
        partition,
        "binary",
        CLICKED,
        source=source,
        n_buckets={party: n_buckets for party, block in blocks[0].items() if block.dtype == np.int64},
    )


def hashed(table: pd.DataFrame, n_buckets: int) -> NDArray[np.int64]:
    """Bucket numbers of the texts in all columns, shape (n_rows, n_columns)."""
    if isinstance(n_buckets, bool) or not isinstance(n_buckets, int | np.integer) or n_buckets < 2:
        raise ValueError(f"n_buckets is a number of buckets, 2 or more, got {n_buckets!r}")
    buckets = np.empty(table.shape, dtype=np.int64)
    for i, name in enumerate(table.columns):
        codes, texts = pd.factorize(table[name])  # every text is hashed once
        sums = np.array([zlib.crc32(str(text).encode()) for text in texts], dtype=np.int64)
        buckets[:, i] = sums[codes] % n_buckets
    return buckets


def _last_tenth(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    n_train = len(table) - len(table) // 10
    return table[:n_train], table[n_train:]


def _read(log: ClickLog, path: Path, share: float = 1.0, seed: int = 0) -> pd.DataFrame:
    """Rows of a file, tab- or comma-separated, with or without a line of names, all columns as text."""
    with _opened(path) as file:
        first = file.readline()
        named = first[:1].isalpha()
        separator = "\t" if "\t" in first else ","
        names = tuple(first.rstrip("\r\n").split(separator))
        if named and names != log.columns:
            raise ValueError(f"{path} has the columns {', '.join(names)}; expected {', '.join(log.columns)}")
        if len(names) != len(log.columns):
            raise ValueError(f"{path} has {len(names)} columns, expected {len(log.columns)}")
        lines = file if named else _chained(first, file)
        text = "".join(lines if share == 1.0 else _chosen(path, lines, share, seed, named))
    table = pd.read_csv(
        io.StringIO(text),
        sep=separator,
        header=None,
        names=list(log.columns),
        dtype=str,
        keep_default_na=False,
    )
    # pandas fills up short lines with empty texts, and an empty text is a category.
    short = text.count(separator) != len(table) * (len(log.columns) - 1)
    if not len(table) or short or not table[log.label].isin(["0", "1"]).all():
        raise ValueError(
            f"{path} is not {log.name}: it has no rows, short rows, or labels other than 0 and 1"
        )
    return table


def _chosen(path: Path, lines: Iterator[str], share: float, seed: int, named: bool) -> Iterator[str]:
    """A random share of the lines, in file order. The file is read twice, since it need not fit into memory."""
    with _opened(path) as file:
        n_lines = sum(1 for _ in file) - named
    n_chosen = max(1, round(share * n_lines))
    keep = np.zeros(n_lines, dtype=bool)
    keep[np.argpartition(np.random.RandomState(seed).random_sample(n_lines), n_chosen - 1)[:n_chosen]] = True
    return (line for line, kept in zip(lines, keep.tolist(), strict=True) if kept)


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    # Packed files of the publishers end in .gz without .csv before it.
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        yield file


def _chained(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest
