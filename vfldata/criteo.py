"""Criteo display advertising (Kaggle challenge of 2014): 13 counts and 26 categories of every advertisement shown."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vfldata.clicks import ClickLog, click_dataset, hashed, read_log
from vfldata.dataset import VerticalDataset
from vfldata.home import Folder

PARTITION = {
    "advertiser": [f"I{k}" for k in range(1, 14)],
    "publisher": [f"C{k}" for k in range(1, 27)],
}
LOG = ClickLog(
    "Criteo",
    ("label", *PARTITION["advertiser"], *PARTITION["publisher"]),
    "label",
    ("criteo/train.txt", "criteo/train.txt.gz"),
    "criteo/wide_resdnn",
    "criteo/criteo_sample.txt",
    "Get train.txt of the Criteo display advertising challenge (11 GB)",
)


def load_criteo(
    *, n_buckets: int = 10_000, share: float = 0.04, data_home: Folder = None, random_state: int = 0
) -> VerticalDataset:
    """Criteo for two parties: the active "advertiser" has 13 counts and the clicks, "publisher" 26 categories.

    The active block is float32, log(1 + count), with 0 for missing and negative counts; the passive one int64, the
    bucket of each category (see `vfldata.clicks`; a missing category is a category).

    Parameters
    ----------
    n_buckets : int
        Buckets per category column. An embedding has so many rows for every column: the paper's 5 million ask for
        gigabytes.
    share : float
        Of the whole file, so much is taken at random, in file order: 4 % are 1,833,625 rows. Samples are taken whole.
    data_home, random_state
        Looks in the folder "criteo" of `data_home`, or else of the folder that VFL_DATA_HOME names, for train.txt, the
        published file (.gz is fine); else for a sample: the folder wide_resdnn with train.csv, dev.csv and test.csv,
        8,000 rows, or criteo_sample.txt, 200 rows. The last tenth of the rows is the test part.

    Raises FileNotFoundError saying what to get, ValueError for files of those names that hold something else.
    """
    train, test, source = read_log(LOG, share, data_home, random_state)
    blocks = [
        {
            "advertiser": _log_counts(table[PARTITION["advertiser"]]),
            "publisher": hashed(table[PARTITION["publisher"]], n_buckets),
        }
        for table in (train, test)
    ]
    return click_dataset("criteo", (train, test), blocks, PARTITION, LOG.label, n_buckets, source)


def _log_counts(table: pd.DataFrame) -> NDArray[np.float32]:
    counts = table.replace("", "0").to_numpy(np.float64)
    return np.log1p(np.maximum(counts, 0)).astype(np.float32)
