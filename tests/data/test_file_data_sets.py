"""Loaders of tables that lie in a folder of the user's: the whole files, their counts, and what is refused."""

import gzip

import numpy as np
import pandas as pd
import pytest

from vfldata import (
    FATE_EXAMPLES,
    load_adult,
    load_breast_cancer_vertical,
    load_census_income,
    load_diabetes,
    load_fate_example,
)

SIZES = {"breast": (10, 20), "vehicle": (9, 9), "motor": (4, 7), "student": (6, 7), "dvisits": (3, 9)}


@pytest.fixture(scope="module")
def fate_home(data_home):
    if not (data_home / "fate" / "breast_hetero_guest.csv").exists():
        pytest.skip(f"FATE's example files are not in {data_home}/fate")
    return data_home


@pytest.fixture(scope="module")
def census_home(data_home):
    if not (data_home / "census_income_kdd").is_dir():
        pytest.skip(f"the Census-Income files are not in {data_home}/census_income_kdd")
    return data_home


@pytest.mark.parametrize("name", FATE_EXAMPLES)
def test_fate_examples_have_their_columns_rows_and_tasks(fate_home, name):
    data = load_fate_example(name, data_home=fate_home)
    assert tuple(len(columns) for columns in data.partition.values()) == SIZES[name]
    assert data.active_party == "guest"
    rows = len(data.X_train) + len(data.X_test)
    assert rows == {"breast": 569, "vehicle": 846, "motor": 800, "student": 395, "dvisits": 5190}[name]
    assert not data.X_train.isna().any().any()
    y = pd.concat([data.y_train, data.y_test])
    counts = {"breast": [212, 357], "vehicle": [212, 217, 218, 199]}
    if name in counts:
        assert np.bincount(y).tolist() == counts[name]
    else:
        assert data.task == "regression"


def test_fates_breast_cancer_is_the_one_that_ships_with_scikit_learn(fate_home):
    fate, ours = load_fate_example("breast", data_home=fate_home), load_breast_cancer_vertical()
    theirs = pd.concat([fate.y_train, fate.y_test]).sort_index()
    assert theirs.tolist() == pd.concat([ours.y_train, ours.y_test]).sort_index().tolist()


def test_an_unknown_or_foreign_fate_example_is_refused(tmp_path):
    with pytest.raises(ValueError, match="one of breast, vehicle, motor, student, dvisits, got 'iris'"):
        load_fate_example("iris")
    with pytest.raises(
        FileNotFoundError, match=r"motor_hetero_guest\.csv was not found: it is not in .*set VFL_DATA_HOME"
    ):
        load_fate_example("motor", data_home=tmp_path)
    (tmp_path / "fate").mkdir()
    (tmp_path / "fate" / "motor_hetero_guest.csv").write_text("idx,pm\n1,2\n")
    with pytest.raises(ValueError, match=r"not FATE's file: 1 rows.*800 rows with a column 'motor_speed'"):
        load_fate_example("motor", data_home=tmp_path)


def test_census_income_holds_the_published_counts(census_home):
    data = load_census_income(data_home=census_home)
    assert (len(data.X_train), len(data.X_test)) == (199_523, 99_762)
    assert (data.y_train.sum(), data.y_test.sum()) == (12_382, 6_186)
    assert {party: len(columns) for party, columns in data.partition.items()} == {
        "registry": 24,
        "tax_office": 16,
    }
    assert int(data.X_train.isna().sum().sum()) == 415_717
    assert set(data.X_train.dtypes) == {np.dtype("float64")}
    assert data.X_train["sex"].unique().tolist() == [0.0, 1.0]


@pytest.mark.slow
def test_census_income_keeps_categories_on_request_with_the_same_codes(census_home):
    codes = load_census_income(data_home=census_home)
    kept = load_census_income(categories="category", data_home=census_home)
    assert kept.X_test["race"].cat.categories.tolist()[-1] == "White"
    assert (
        kept.X_test["born_in"].cat.codes.astype(float).replace(-1.0, np.nan).equals(codes.X_test["born_in"])
    )
    assert kept.X_train["age"].dtype == np.float64


def test_a_truncated_census_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="Census-Income"):
        load_census_income(data_home=tmp_path)
    with pytest.raises(ValueError, match='"codes" or "category"'):
        load_census_income(categories="onehot", data_home=tmp_path)
    folder = tmp_path / "census_income_kdd"
    folder.mkdir()
    row = ", ".join(["1"] * 42)
    for part in ("train", "test"):
        (folder / f"census_income_1994_1995_{part}.csv.gz").write_bytes(
            gzip.compress(f"{row}\n{row}\n".encode())
        )
    with pytest.raises(ValueError, match="2 rows of 42 columns, expected 199523 of 42"):
        load_census_income(data_home=tmp_path)


@pytest.fixture(scope="module")
def adult(data_home):
    if not (data_home / "adult").is_dir():
        pytest.skip(f"the Adult files are not in {data_home}/adult")
    return load_adult(data_home=data_home)


def test_adult_has_the_papers_rows_and_columns(adult, data_home):
    assert (len(adult.X_train), len(adult.X_test)) == (34_153, 14_637)
    assert {party: len(columns) for party, columns in adult.partition.items()} == {
        "registry": 93,
        "tax_office": 15,
    }
    assert len(adult.one_hot_groups) == 8
    for group in adult.one_hot_groups:
        assert (adult.X_test[list(group)].sum(axis=1) == 1).all()
    assert int(adult.y_train.sum() + adult.y_test.sum()) == 11_681
    dropped = load_adult(one_hot="drop_first", data_home=data_home)
    assert dropped.X_train.shape[1] == 108 - 8
    assert dropped.X_train["age"].equals(adult.X_train["age"])


def test_a_table_that_is_not_adult_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="Adult"):
        load_adult(data_home=tmp_path)
    (tmp_path / "adult").mkdir()
    (tmp_path / "adult" / "adult.data").write_text(", ".join(["?"] * 15) + "\n")
    with pytest.raises(ValueError, match="1 rows, expected 32561"):
        load_adult(data_home=tmp_path)


def test_diabetes_has_the_papers_rows_and_columns(data_home, tmp_path):
    if not (data_home / "pima").is_dir():
        pytest.skip(f"the Pima file is not in {data_home}/pima")
    data = load_diabetes(data_home=data_home)
    assert (len(data.X_train), len(data.X_test)) == (614, 154)
    assert int(data.y_train.sum() + data.y_test.sum()) == 268
    assert list(map(len, data.partition.values())) == [4, 4]
    assert (pd.concat([data.X_train, data.X_test])["insulin"] == 0).sum() == 374
    with pytest.raises(FileNotFoundError, match="Pima"):
        load_diabetes(data_home=tmp_path)
