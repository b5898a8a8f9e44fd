"""Avazu click-through (Kaggle challenge of 2014): 22 categories of every advertisement shown on a phone."""

import pandas as pd

from vfldata.clicks import ClickLog, click_dataset, hashed, read_log
from vfldata.dataset import VerticalDataset
from vfldata.home import Folder

PARTITION = {
    "exchange": [
        "hour", "banner_pos", "site_id", "site_domain", "site_category", "app_id", "app_domain", "app_category",
        "device_id", "device_ip", "device_model", "device_type", "device_conn_type",
    ],
    "advertiser": ["C1", *(f"C{k}" for k in range(14, 22))],
}  # fmt: skip
LOG = ClickLog(
    "Avazu",
    ("id", "click", "hour", "C1", *PARTITION["exchange"][1:], *PARTITION["advertiser"][1:]),
    "click",
    ("avazu/train.csv", "avazu/train.csv.gz", "avazu/train.gz"),
    "avazu/wide_resdnn",
    "avazu/avazu_sample.txt",
    "Get train.gz of the Avazu click-through rate challenge (1 GB)",
)


def load_avazu(
    *, n_buckets: int = 10_000, share: float = 0.02, data_home: Folder = None, random_state: int = 0
) -> VerticalDataset:
    """Avazu for two parties: the active "exchange" has 13 categories and the clicks, "advertiser" 9 anonymous ones.

    Both blocks are int64, the bucket of each category (see `vfldata.clicks`). Of "hour", written YYMMDDHH, the hour of
    the day is taken: no date returns.

    Parameters
    ----------
    n_buckets : int
        Buckets per column. An embedding has so many rows for every column: the paper has 1 million.
    share : float
        Of the whole file, so much is taken at random, in file order: 2 % are 808,579 rows. Samples are taken whole.
    data_home, random_state
        Looks in the folder "avazu" of `data_home`, or else of the folder that VFL_DATA_HOME names, for train.csv or
        train.gz, the published file; else for a sample: the folder wide_resdnn with train.csv, dev.csv and test.csv,
        8,999 rows, or avazu_sample.txt, 100 rows. The last tenth of the rows is the test part.

    Raises FileNotFoundError saying what to get, ValueError for files of those names that hold something else.
    """
    train, test, source = read_log(LOG, share, data_home, random_state)
    blocks = [
        {party: hashed(_with_hour_of_day(table)[columns], n_buckets) for party, columns in PARTITION.items()}
        for table in (train, test)
    ]
    return click_dataset("avazu", (train, test), blocks, PARTITION, LOG.label, n_buckets, source)


def _with_hour_of_day(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(hour=table["hour"].str[-2:])
