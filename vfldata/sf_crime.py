"""San Francisco crime (Kaggle competition of 2015): incidents of the city's police, and which of 39 crimes each was."""

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from vfldata.dataset import VerticalDataset, from_table
from vfldata.home import Folder, need_file
from vfldata.onehot import OneHot, check_one_hot, group_columns, indicators

FILES = (
    "sf_crime/train.csv",
    "sf_crime/train.csv.gz",
    "sf_crime/train_with_feature_test.csv.gz",  # 9,998 rows of five crimes in 2015, with columns of others added
    "sf_crime/train_with_feature_test.csv",
)
READ = ("Dates", "Category", "DayOfWeek", "PdDistrict", "Address", "X", "Y")
DATE_FORMS = ("%Y-%m-%d %H:%M:%S", "%m/%d/%Y %H:%M")  # of the published file, of the sample
NORTH = 60.0  # degrees: rows with an unknown place have latitude 90
PARTITION = {  # ours: no paper splits the columns of this set
    "police": ("year", "month", "day", "hour", "DayOfWeek"),
    "map_service": ("PdDistrict", "corner", "X", "Y"),
}
TEXT = ("DayOfWeek", "PdDistrict")


def load_sf_crime(
    *, one_hot: OneHot | None = "full", data_home: Folder = None, random_state: int = 0
) -> VerticalDataset:
    """San Francisco crime for two parties: the police, who know when and what, and a map service that knows where.

    Active "police": year, month, day, hour (with minutes as a fraction), day of the week, and the label: the category,
    numbered alphabetically. Passive "map_service": police district, whether the address is a street corner, longitude,
    latitude. Description and resolution are left out: they give the category away. So are rows without a known place.
    A fifth of the rows, drawn at random with `random_state`, is the test part. Sample IDs are row numbers of the file.

    one_hot : as for `load_nursery`, for the day of the week and the district; values in alphabetical order.

    Looks for sf_crime/train.csv, the published file (878,049 rows, 39 categories; .gz is fine), or for the sample
    train_with_feature_test.csv (9,998 rows, five categories), in `data_home` or else in the folder that VFL_DATA_HOME
    names. Raises FileNotFoundError saying what to get, ValueError when a file of that name holds something else.
    """
    check_one_hot(one_hot)
    path = need_file(FILES, data_home, "San Francisco crime", "the Kaggle competition (train.csv)")
    table = _read(path)
    table = table[table["Y"] < NORTH]
    class_names = sorted(table["Category"].unique())
    groups = {name: group_columns(name, sorted(table[name].unique()), one_hot) for name in TEXT}
    numbers = table[[name for names in PARTITION.values() for name in names if name not in TEXT]]
    return from_table(
        "sf_crime",
        pd.concat([numbers, table[list(TEXT)] if one_hot is None else indicators(table, groups)], axis=1),
        pd.Series(
            pd.Categorical(table["Category"], class_names).codes, table.index, dtype="int64", name="category"
        ),
        {
            party: [column for name in names for column in groups.get(name, (name,))]
            for party, names in PARTITION.items()
        },
        n_test=len(table) // 5,
        random_state=random_state,
        task="multiclass" if len(class_names) > 2 else "binary",
        class_names=tuple(class_names),
        one_hot_groups=() if one_hot is None else tuple(groups.values()),
        source=str(path),
    )


def _read(path: Path) -> pd.DataFrame:
    rows = _rows(path)
    names = next(rows, [])
    absent = [name for name in READ if name not in names]
    if absent:
        raise ValueError(f"{path} is not San Francisco crime: it has no column {absent[0]!r}")
    places = [names.index(name) for name in READ]
    try:
        table = pd.DataFrame([[row[place] for place in places] for row in rows], columns=list(READ))
        table[["X", "Y"]] = table[["X", "Y"]].astype("float64")
        form = DATE_FORMS[0] if "-" in table["Dates"].iloc[0] else DATE_FORMS[1]
        dates = pd.to_datetime(table["Dates"], format=form).dt
    except (IndexError, ValueError) as error:  # a short row, no rows, a place or a date that is none
        raise ValueError(f"{path} is not San Francisco crime: {error}") from error
    return table.assign(
        year=dates.year.astype("float64"),
        month=dates.month.astype("float64"),
        day=dates.day.astype("float64"),
        hour=dates.hour + dates.minute / 60,
        corner=table["Address"].str.contains(" / ", regex=False).astype(np.float64),
    )


def _rows(path: Path) -> Iterator[list[str]]:
    """The cells of every line. Some lines of the sample were quoted twice: one cell that is again a line."""
    with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
        for row in csv.reader(file):
            if row:
                yield next(csv.reader(row)) if len(row) == 1 else row
