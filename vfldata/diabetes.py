"""Pima Indians diabetes (Smith et al. 1988): 768 women, eight measurements; who has diabetes within five years?"""

from pathlib import Path

import pandas as pd

from vfldata.dataset import VerticalDataset, from_table
from vfldata.home import Folder, need_file

PARTITION = {  # the papers' split: four and four columns, the label with the last four
    "clinic": ["insulin", "bmi", "pedigree", "age"],
    "laboratory": ["pregnancies", "glucose", "blood_pressure", "skin_thickness"],
}
FILE = "pima/pima-indians-diabetes.data"
COLUMNS = [*PARTITION["laboratory"], *PARTITION["clinic"], "diabetes"]
N_ROWS, N_TEST = 768, 154


def load_diabetes(*, data_home: Folder = None, random_state: int = 0) -> VerticalDataset:
    """Pima diabetes for two parties; active "clinic": insulin, BMI, pedigree, age and the label (1: 268 women).

    Passive "laboratory": pregnancies, glucose, blood pressure, skin thickness. 614 training and 154 test rows, drawn at
    random with `random_state`. Zeros of glucose, blood pressure, skin thickness, insulin and BMI are missing values of
    the original and stay 0, as in the papers.

    Looks in `data_home`, or else in the folder that VFL_DATA_HOME names. Raises FileNotFoundError saying what to get.
    """
    path = _path(data_home)
    table = pd.read_csv(path, names=COLUMNS, dtype="float64")
    if len(table) != N_ROWS:
        raise ValueError(f"{path} is not the Pima diabetes data set: {len(table)} rows, expected {N_ROWS}")
    y = table.pop("diabetes").astype("int64")
    return from_table(
        "diabetes", table, y, PARTITION, n_test=N_TEST, random_state=random_state, task="binary",
        class_names=("healthy", "diabetes"), source=str(path),
    )  # fmt: skip


def _path(data_home: Folder) -> Path:
    return need_file((FILE, f"{FILE}.gz"), data_home, "the Pima diabetes data set", "OpenML or Kaggle")
