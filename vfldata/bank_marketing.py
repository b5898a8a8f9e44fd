"""Bank Marketing (Moro, Cortez and Rita 2014, UCI): telephone calls of a Portuguese bank; who takes a time deposit?"""

from pathlib import Path
from typing import Literal

import pandas as pd

from vfldata import openml
from vfldata.dataset import VerticalDataset, from_table
from vfldata.home import Folder, find_file, missing
from vfldata.onehot import OneHot, check_one_hot, group_columns, indicators

CLIENT = ("age", "job", "marital", "education", "default", "balance", "housing", "loan")
CALL = ("contact", "day", "month", "duration", "campaign", "pdays", "previous", "poutcome")
COLUMNS = (*CLIENT, *CALL, "y")
NUMBERS = ("age", "balance", "day", "duration", "campaign", "pdays", "previous")
LEAK = "duration"
PARTITION = {"call_centre": CALL, "bank": CLIENT}  # ours: no paper splits the columns of this set
FILES = ("bank_marketing/bank-full.csv.gz", "bank_marketing/bank-full.csv")
OPENML_ID = 1461  # "bank-marketing", version 1: columns V1..V16 in the order above, classes 1 and 2
N_ROWS, N_YES = 45_211, 5_289


def load_bank_marketing(
    *,
    one_hot: OneHot | None = "full",
    duration: bool = False,
    task: Literal["binary", "regression"] = "binary",
    data_home: Folder = None,
    download: bool = True,
    random_state: int = 0,
) -> VerticalDataset:
    """Bank Marketing for two parties: a call centre with the outcome, and the bank that knows its clients.

    Active "call_centre": means of contact, day and month, number of calls, earlier calls and their outcome, and the
    label (1: 5,289 of 45,211 clients took the deposit). Passive "bank": age, job, marital status, education, default,
    balance, housing loan, other loan. 40,690 training and 4,521 test rows, drawn at random with `random_state`; for
    8 : 1 : 1, hold 4,521 of the training rows out (`held_out`). An unknown value is a value of its own.

    Parameters
    ----------
    one_hot : "full", "drop_first" or None
        As for `load_nursery`; values in alphabetical order.
    duration : bool
        Keep the length of the call. It is known only afterwards, like the outcome, and gives the outcome away.
    task : "binary" or "regression"
        With "regression" the label is 0.0 or 1.0, for a squared loss.
    data_home, download
        Looks for bank_marketing/bank-full.csv, packed with gzip or not, in `data_home`, or else in the folder that
        VFL_DATA_HOME names; if it is not there, asks scikit-learn to fetch it from OpenML unless ``download=False``.

    Raises FileNotFoundError saying what to get, ValueError when a file of that name holds something else.
    """
    check_one_hot(one_hot)
    if task not in ("binary", "regression"):
        raise ValueError(f'task is "binary" or "regression", got {task!r}')
    path = find_file(FILES, data_home)
    table, source = (_read(path), str(path)) if path else (_fetch(data_home, download), f"OpenML {OPENML_ID}")
    n_yes = int(table["y"].eq("yes").sum())
    if (len(table), n_yes) != (N_ROWS, N_YES):
        raise ValueError(
            f"{source} is not the whole Bank Marketing data set: {len(table)} rows with {n_yes} deposits, expected "
            f"{N_ROWS} with {N_YES}"
        )
    owned = {party: [c for c in names if duration or c != LEAK] for party, names in PARTITION.items()}
    text = [name for names in owned.values() for name in names if name not in NUMBERS]
    groups = {name: group_columns(name, sorted(table[name].unique()), one_hot) for name in text}
    numbers = table[[name for name in NUMBERS if duration or name != LEAK]].astype("float64")
    y = table["y"].eq("yes").astype("int64" if task == "binary" else "float64").rename("deposit")
    return from_table(
        "bank_marketing",
        pd.concat([numbers, table[text] if one_hot is None else indicators(table, groups)], axis=1),
        y,
        {
            party: [column for name in names for column in groups.get(name, (name,))]
            for party, names in owned.items()
        },
        n_test=N_ROWS // 10,
        random_state=random_state,
        task=task,
        class_names=("no", "yes") if task == "binary" else (),
        one_hot_groups=() if one_hot is None else tuple(groups.values()),
        source=source,
    )


def _read(path: Path) -> pd.DataFrame:
    table = pd.read_csv(path, sep=";", keep_default_na=False)
    if tuple(table.columns) != COLUMNS:
        raise ValueError(
            f"{path} is not Bank Marketing: it has the columns {list(table.columns)}, expected {COLUMNS}"
        )
    return table


def _fetch(data_home: Folder, download: bool) -> pd.DataFrame:
    what_to_do = missing("Bank Marketing", data_home, "Get bank-full.csv from UCI", FILES[1])
    if not download:
        raise FileNotFoundError(what_to_do)
    bunch = openml.fetch(OPENML_ID, what_to_do)
    if bunch.data.shape[1] != len(COLUMNS) - 1:
        raise ValueError(
            f"OpenML data set {OPENML_ID} has {bunch.data.shape[1]} feature columns, expected 16"
        )
    table = bunch.data.set_axis(COLUMNS[:-1], axis=1)
    text = [name for name in COLUMNS[:-1] if name not in NUMBERS]
    return table.astype(dict.fromkeys(text, str)).assign(
        y=bunch.target.astype(str).map({"1": "no", "2": "yes"})
    )
