"""Census-Income (KDD): 299,285 people of the US Current Population Surveys of 1994 and 1995 (UCI).

The label says whose income exceeds 50,000 dollars. 40 features, most of them categories; the survey's instance weight
is no feature. Large enough to show how cost grows with rows.
"""

from pathlib import Path
from typing import Literal

import pandas as pd

from vfldata.dataset import VerticalDataset
from vfldata.home import Folder, need_file

COLUMNS = (
    "age", "class_of_worker", "industry_code", "occupation_code", "education", "wage_per_hour", "enrolled_in_education",
    "marital_status", "major_industry", "major_occupation", "race", "hispanic_origin", "sex", "labor_union",
    "reason_for_unemployment", "employment_status", "capital_gains", "capital_losses", "dividends", "tax_filer",
    "previous_region", "previous_state", "household_detail", "household_summary", "instance_weight", "migration_msa",
    "migration_region", "migration_within_region", "same_house_a_year_ago", "migration_sunbelt",
    "persons_worked_for_employer", "parents_present", "father_born_in", "mother_born_in", "born_in", "citizenship",
    "own_business", "veterans_questionnaire", "veterans_benefits", "weeks_worked", "year", "income",
)  # fmt: skip
WEIGHT, LABEL = "instance_weight", "income"
NUMBERS = (
    "age", "wage_per_hour", "capital_gains", "capital_losses", "dividends", "persons_worked_for_employer",
    "weeks_worked", "year",
)  # fmt: skip
WORK = (
    "class_of_worker", "industry_code", "occupation_code", "wage_per_hour", "major_industry", "major_occupation",
    "labor_union", "reason_for_unemployment", "employment_status", "capital_gains", "capital_losses", "dividends",
    "tax_filer", "persons_worked_for_employer", "own_business", "weeks_worked",
)  # fmt: skip
PARTITION = {  # ours: no paper splits this set
    "registry": [name for name in COLUMNS if name not in (*WORK, WEIGHT, LABEL)],
    "tax_office": list(WORK),
}
CLASSES = ("- 50000.", "50000+.")
FILES = {part: f"census_income_kdd/census_income_1994_1995_{part}.csv.gz" for part in ("train", "test")}
N_ROWS = {"train": 199_523, "test": 99_762}


def load_census_income(
    *, categories: Literal["codes", "category"] = "codes", data_home: Folder = None
) -> VerticalDataset:
    """Census-Income for two parties: a registry of people and households, and a tax office that knows their work.

    Active "registry": 24 columns and the label (1: 12,382 of the 199,523 training rows earn over 50,000 dollars).
    Passive "tax_office": 16 columns about work and income from capital. 199,523 training and 99,762 test rows, the
    split of the publishers. Missing values ("?") are NaN. Sample IDs are line numbers, test rows after training rows.

    categories : "codes" gives every category a number, in the order of the sorted names of both parts (float64);
        "category" keeps them as pandas categories.

    Looks in `data_home`, or else in the folder that VFL_DATA_HOME names. Raises FileNotFoundError saying what to get.
    """
    if categories not in ("codes", "category"):
        raise ValueError(f'categories is "codes" or "category", got {categories!r}')
    parts = {part: _read(part, data_home) for part in FILES}
    table = pd.concat(parts.values(), ignore_index=True)
    y = pd.Series(pd.Categorical(table[LABEL], CLASSES).codes.astype("int64"), table.index, name=LABEL)
    X = pd.DataFrame(
        {name: _column(name, table[name], categories) for name in COLUMNS if name not in (WEIGHT, LABEL)}
    )[[name for columns in PARTITION.values() for name in columns]]
    n_train = len(parts["train"])
    return VerticalDataset(
        "census_income",
        X[:n_train],
        X[n_train:],
        y[:n_train],
        y[n_train:],
        {party: list(columns) for party, columns in PARTITION.items()},
        "binary",
        ("up to 50,000", "over 50,000"),
        source=str(_path("train", data_home).parent),
    )


def _column(name: str, column: pd.Series, categories: str) -> pd.Series:
    if name in NUMBERS:
        return column.astype("float64")
    coded = column.astype("category")
    return coded if categories == "category" else coded.cat.codes.astype("float64").where(column.notna())


def _path(part: str, data_home: Folder) -> Path:
    return need_file(
        (FILES[part], FILES[part].removesuffix(".gz")), data_home, "the Census-Income (KDD) data set", "UCI"
    )


def _read(part: str, data_home: Folder) -> pd.DataFrame:
    path = _path(part, data_home)
    table = pd.read_csv(path, header=None, skipinitialspace=True, na_values="?", keep_default_na=False)
    if table.shape != (N_ROWS[part], len(COLUMNS)):
        raise ValueError(
            f"{path} is not the Census-Income data set: {table.shape[0]} rows of {table.shape[1]} columns, "
            f"expected {N_ROWS[part]} of {len(COLUMNS)}"
        )
    table.columns = pd.Index(COLUMNS)
    if not table[LABEL].isin(CLASSES).all():
        raise ValueError(f"{path} holds labels other than {CLASSES}")
    return table
