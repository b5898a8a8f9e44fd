"""Default of credit card clients (Yeh and Lien 2009): 30,000 clients of a bank in Taiwan.

The label says who fails to pay next month. 23 features: the credit limit, four personal columns, six
repayment states, six bills and six payments.
The file is not ours to ship. It is read from a folder of yours, or fetched once from OpenML by scikit-learn.
"""

from pathlib import Path

import pandas as pd

from vfldata import openml
from vfldata.dataset import VerticalDataset, from_table
from vfldata.home import DATA_HOME, Folder, find_file, where_looked

MONTHS = range(1, 7)
PARTITION = {  # the papers' split: 11 + 12 columns
    "bank": ["LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE", "PAY_0", *(f"PAY_{m}" for m in range(2, 7))],
    "payments": [f"BILL_AMT{m}" for m in MONTHS] + [f"PAY_AMT{m}" for m in MONTHS],
}
FEATURES = PARTITION["bank"] + PARTITION["payments"]  # in the order of every copy of the file
LABEL = "default.payment.next.month"
N_ROWS, N_DEFAULTS, N_TEST = 30_000, 6_636, 6_000

FILES = (
    "credit_default/UCI_Credit_Card.csv.gz",
    "credit_default/UCI_Credit_Card.csv",
    "UCI_Credit_Card.csv.gz",
    "UCI_Credit_Card.csv",
)
OPENML_ID = 42477  # "default-of-credit-card-clients", version 1: columns x1..x23 in the order above, label y


def load_credit(
    *, stratified: bool = False, data_home: Folder = None, download: bool = True, random_state: int = 0
) -> VerticalDataset:
    """Credit card clients for two parties: a bank, and a payment company that sees bills and payments.

    Active "bank": LIMIT_BAL, SEX, EDUCATION, MARRIAGE, AGE, PAY_0, PAY_2..PAY_6 and the label (1: 6,636
    clients who do not pay next month). Passive "payments": BILL_AMT1..6, PAY_AMT1..6. 24,000 training and
    6,000 test rows, drawn at random with `random_state`; `stratified`: with the same share of defaults.
    Sample IDs are the client numbers 1..30,000.

    Looks for the file in `data_home`, or else in the folder that the environment variable VFL_DATA_HOME
    names; if it is not there, asks scikit-learn to fetch it from OpenML (which keeps a copy) unless
    ``download=False``. `VerticalDataset.source` says where the data came from.

    Raises
    ------
    FileNotFoundError
        When the data is nowhere to be had; the message says what to get and where to put it.
    ValueError
        When a file of that name holds something else.
    """
    path = find_file(FILES, data_home)
    if path is not None:
        table, source = _read(path), str(path)
    elif download:
        table, source = _fetch(data_home), f"OpenML data set {OPENML_ID}"
    else:
        raise FileNotFoundError(_what_to_do(data_home))
    _check(table, source)
    return from_table(
        "credit",
        table[FEATURES].astype("float64"),
        table[LABEL].astype("int64").rename("default"),
        PARTITION,
        n_test=N_TEST,
        stratified=stratified,
        random_state=random_state,
        task="binary",
        class_names=("pays", "defaults"),
        source=source,
    )


def _read(path: Path) -> pd.DataFrame:
    table = pd.read_csv(path)
    missing = {"ID", LABEL, *FEATURES} - set(table.columns)
    if missing:
        raise ValueError(f"{path} is not the credit data set: it has no column {sorted(missing)[0]!r}")
    return table.set_index("ID")


def _fetch(data_home: Folder) -> pd.DataFrame:
    bunch = openml.fetch(OPENML_ID, _what_to_do(data_home))
    if bunch.data.shape[1] != len(FEATURES):
        raise ValueError(
            f"OpenML data set {OPENML_ID} has {bunch.data.shape[1]} feature columns, expected {len(FEATURES)}"
        )
    table = bunch.data.set_axis(FEATURES, axis=1)
    table[LABEL] = pd.to_numeric(bunch.target)
    return table.set_axis(pd.RangeIndex(1, len(table) + 1, name="ID"), axis=0)


def _check(table: pd.DataFrame, source: str) -> None:
    n_rows, n_defaults = len(table), int(table[LABEL].sum())
    if (n_rows, n_defaults) != (N_ROWS, N_DEFAULTS):
        raise ValueError(
            f"{source} is not the whole credit data set: {n_rows} rows with {n_defaults} defaults, "
            f"expected {N_ROWS} with {N_DEFAULTS}"
        )


def _what_to_do(data_home: Folder) -> str:
    return (
        f"the credit data set was not found: {where_looked(data_home)}. Get UCI_Credit_Card.csv ('Default of Credit "
        f"Card Clients', from UCI or Kaggle), put it into a folder of your choice as {FILES[1]} (gzip-packed as "
        f".csv.gz is fine), and set {DATA_HOME} to that folder; or run this once on a machine with network, "
        "where scikit-learn fetches it from OpenML"
    )
