"""VFLAIR's table of small data sets: rows, columns per party, and scaling fitted on training rows."""

import numpy as np
import pytest

from vfldata import VFLAIR, load_vflair


def needs(data_home, folder):
    if not (data_home / folder).is_dir():
        pytest.skip(f"needs the folder {folder} in {data_home}")
    return {"data_home": data_home}


def sizes(data):
    return (len(data.X_train), len(data.X_test)), tuple(len(columns) for columns in data.partition.values())


def test_breast_cancer_has_halves_of_15_columns_between_0_and_1():
    data = load_vflair("breast_cancer")
    assert sizes(data) == ((454, 114), (15, 15))
    assert data.X_train.min().eq(0).sum() == data.X_train.max().eq(1).sum() == 30
    assert data.X_test.max().max() > 1  # fitted on the training rows: a test row may lie outside
    assert data.partition["laboratory"][0] == "mean radius"
    assert data.partition["hospital"][-1] == "worst fractal dimension"


def test_nursery_is_stratified_without_the_first_value_of_each_attribute():
    data = load_vflair("nursery", random_state=3)
    assert sizes(data) == ((10_368, 2_592), (12, 7))
    assert np.bincount(data.y_test).tolist() == [864, 0, 66, 853, 809]
    assert set(np.unique(data.X_train)) == {0.0, 1.0}


def test_credit_is_stratified_and_standardised(data_home):
    data = load_vflair("credit", **needs(data_home, "credit_default"), download=False)
    assert sizes(data) == ((24_000, 6_000), (11, 12))
    assert (data.y_train.sum(), data.y_test.sum()) == (5_309, 1_327)
    assert data.X_train.mean().abs().max() < 1e-10
    assert (data.X_train.std(ddof=0) - 1).abs().max() < 1e-10
    assert data.X_test.mean().abs().max() > 1e-4


def test_diabetes_is_standardised(data_home):
    data = load_vflair("diabetes", **needs(data_home, "pima"))
    assert sizes(data) == ((614, 154), (4, 4))
    assert (data.X_train.std(ddof=0) - 1).abs().max() < 1e-10


def test_adult_has_standardised_numbers_and_full_indicators(data_home):
    data = load_vflair("adult", **needs(data_home, "adult"))
    assert sizes(data) == ((34_153, 14_637), (93, 15))
    assert data.X_train["age"].std(ddof=0) == pytest.approx(1)
    assert set(np.unique(data.X_train["race=White"])) == {0.0, 1.0}


def test_a_misspelt_name_is_answered_with_the_right_one():
    with pytest.raises(ValueError, match="no data set of VFLAIR called 'Nursary'; did you mean 'nursery'"):
        load_vflair("Nursary")


def test_all_thirteen_data_sets_are_listed():
    assert len(VFLAIR) == 13
    assert all(entry.description for entry in VFLAIR.values())


def test_tables_can_be_dealt_to_four_parties_after_scaling():
    data = load_vflair("breast_cancer", n_parties=4)
    assert [len(columns) for columns in data.partition.values()] == [7, 8, 7, 8]
    assert data.X_train.max().max() == 1


def test_mnist_is_flat(data_home):
    data = load_vflair("mnist", **needs(data_home, "mnist"), download=False, random_state=3)
    assert data.X_train["upper"].shape == (60_000, 392)
