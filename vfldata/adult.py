"""Adult income (Kohavi 1996, UCI): 48,842 people of the US census of 1994; who earns more than 50,000 dollars?

The files `adult.data` and `adult.test` are joined and 52 repeated rows are dropped, as the VFLAIR benchmark does.
"""

from pathlib import Path

import pandas as pd

from vfldata.dataset import VerticalDataset, from_table
from vfldata.home import Folder, need_file
from vfldata.onehot import OneHot, check_one_hot, group_columns, indicators

COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip
PARTITION = {  # the paper's: seven text columns with the label, six numbers and the work class at the other party
    "registry": ("education", "marital-status", "occupation", "relationship", "race", "sex", "native-country"),
    "tax_office": (
        "age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week", "workclass",
    ),
}  # fmt: skip
NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
FILES = ("adult/adult.data.gz", "adult/adult.test.gz")
N_ROWS = {FILES[0]: 32_561, FILES[1]: 16_281}
N_TEST = 14_637  # 30 % of the 48,790 different rows


def load_adult(
    *, one_hot: OneHot | None = "full", data_home: Folder = None, random_state: int = 0
) -> VerticalDataset:
    """Adult for two parties: a registry that knows people and the label, a tax office with their numbers.

    Active "registry": education, marital status, occupation, relationship, race, sex, native country, and the label
    (1: more than 50,000 dollars). Passive "tax_office": age, fnlwgt, years of education, capital gain and loss, hours
    per week, work class. 34,153 training and 14,637 test rows, drawn at random with `random_state`. An unknown value
    ("?") is a value of its own.

    one_hot : "full" (93 + 15 columns), "drop_first", or None: text columns as they stand in the file.

    Looks in `data_home`, or else in the folder that VFL_DATA_HOME names. Raises FileNotFoundError saying what to get.
    """
    check_one_hot(one_hot)
    table = pd.concat([_read(name, data_home) for name in FILES], ignore_index=True)
    table = table.drop_duplicates().reset_index(drop=True)
    y = table.pop("income").eq(">50K").astype("int64").rename("income")
    groups = {
        name: group_columns(name, sorted(table[name].unique()), one_hot)
        for names in PARTITION.values()
        for name in names
        if name not in NUMBERS
    }
    numbers = table[list(NUMBERS)].astype("float64")
    text = table[list(groups)] if one_hot is None else indicators(table, groups)
    return from_table(
        "adult",
        pd.concat([numbers, text], axis=1),
        y,
        {
            party: [column for name in names for column in groups.get(name, (name,))]
            for party, names in PARTITION.items()
        },
        n_test=N_TEST,
        random_state=random_state,
        task="binary",
        class_names=("up to 50,000", "over 50,000"),
        one_hot_groups=() if one_hot is None else tuple(groups.values()),
        source=str(_path(FILES[0], data_home).parent),
    )


def _path(name: str, data_home: Folder) -> Path:
    return need_file((name, name.removesuffix(".gz")), data_home, "the Adult data set", "UCI")


def _read(name: str, data_home: Folder) -> pd.DataFrame:
    path = _path(name, data_home)
    # The test file opens with a comment, "|1x3 Cross validator".
    table = pd.read_csv(path, names=COLUMNS, skipinitialspace=True, comment="|", keep_default_na=False)
    if len(table) != N_ROWS[name]:
        raise ValueError(f"{path} is not the Adult data set: {len(table)} rows, expected {N_ROWS[name]}")
    table["income"] = table["income"].str.rstrip(".")  # labels of the test file end in a full stop
    return table
