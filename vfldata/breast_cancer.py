"""Breast cancer Wisconsin: 569 tumours, 30 measurements of their cell nuclei, benign or malignant.

Ships inside scikit-learn. The split is the one of FATE's example data: the label holder ("guest" there) has
the ten "worst" columns 20..29, the other party ("host") the ten means and ten standard errors, columns 0..19.
"""

import pandas as pd
from sklearn.datasets import load_breast_cancer

from vfldata.dataset import VerticalDataset, from_table

N_TEST = 143  # a quarter, as scikit-learn's train_test_split takes by default


def load_breast_cancer_vertical(*, n_test: int = N_TEST, random_state: int = 0) -> VerticalDataset:
    """Breast cancer for two parties: a hospital with diagnoses and ten columns, a laboratory with twenty.

    Active "hospital": the ten "worst" columns and the label. Passive "laboratory": the ten "mean" and ten
    "error" columns. Label 0 is malignant (212 rows), 1 benign (357), as in scikit-learn. 426 training and 143 test
    rows (`n_test`), drawn at random with `random_state`. Sample IDs are the row numbers.
    """
    bunch = load_breast_cancer(as_frame=True)
    names = list(bunch.data.columns)
    return from_table(
        "breast cancer",
        bunch.data.astype("float64"),
        pd.Series(bunch.target, dtype="int64", name="benign"),
        {"hospital": names[20:], "laboratory": names[:20]},
        n_test=n_test,
        random_state=random_state,
        task="binary",
        class_names=tuple(str(name) for name in bunch.target_names),
        source="scikit-learn, load_breast_cancer",
    )
