"""Scaling learns from the training part alone; columns change hands whole groups at a time."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from vfldata import (
    VerticalDataset,
    held_out,
    load_breast_cancer_vertical,
    load_nursery,
    repartition,
    scaled_to_unit,
    standardised,
    with_partition,
)
from vfldata.dataset import from_table


@pytest.fixture
def table():
    """Two numbers (one of them constant in training) and an attribute of two indicators."""
    train = pd.DataFrame(
        {"age": [20.0, 30.0, 40.0], "fee": [0.1] * 3, "sex=f": [0.0, 1.0, 1.0], "sex=m": [1.0, 0.0, 0.0]}
    )
    test = pd.DataFrame({"age": [50.0], "fee": [0.3], "sex=f": [0.0], "sex=m": [1.0]}, index=[3])
    return VerticalDataset(
        "table", train, test, pd.Series([0, 1, 0]), pd.Series([1], index=[3]),
        {"a": ["age"], "b": ["fee", "sex=f", "sex=m"]}, "binary", ("no", "yes"), (("sex=f", "sex=m"),),
    )  # fmt: skip


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    X = {party: rng.random((6, 2, 3, 3), dtype=np.float32) * [[[[2]], [[5]]]] for party in ("a", "b")}
    X = {party: block.astype(np.float32) for party, block in X.items()}
    y = pd.Series([0, 1] * 3)
    names = ["red", "green"]
    return VerticalDataset("images", X, X, y, y, {"a": names, "b": names}, "binary", ("no", "yes"))


# ---- scaling


def test_standardised_columns_have_mean_0_and_deviation_1_in_training(table):
    scaled = standardised(table)
    assert scaled.X_train["age"].mean() == pytest.approx(0)
    assert scaled.X_train["age"].std(ddof=0) == pytest.approx(1)
    assert scaled.X_test.loc[3, "age"] == pytest.approx((50 - 30) / np.std([20, 30, 40]))
    assert list(scaled.X_train) == list(table.X_train)


def test_scaled_to_unit_spans_0_to_1_in_training_and_test_values_may_exceed_it(table):
    assert scaled_to_unit(table).X_train["age"].tolist() == [0.0, 0.5, 1.0]
    assert scaled_to_unit(table).X_test.loc[3, "age"] == 1.5
    assert scaled_to_unit(table, clip=True).X_test.loc[3, "age"] == 1.0


@pytest.mark.parametrize("scale", [standardised, scaled_to_unit])
def test_a_constant_column_becomes_0_and_one_hot_columns_stay(table, scale):
    scaled = scale(table)
    assert scaled.X_train["fee"].tolist() == [0.0] * 3
    assert scaled.X_test.loc[3, "fee"] == pytest.approx(0.2)
    pd.testing.assert_frame_equal(scaled.X_train[["sex=f", "sex=m"]], table.X_train[["sex=f", "sex=m"]])


@pytest.mark.parametrize("scale", [standardised, scaled_to_unit])
def test_test_rows_have_no_influence_on_the_scaling(scale):
    data = load_breast_cancer_vertical()
    other = dataclasses.replace(data, X_test=data.X_test * 1000)
    pd.testing.assert_frame_equal(scale(data).X_train, scale(other).X_train)
    assert not scale(data).X_test.equals(scale(other).X_test)


def test_missing_values_stay_missing_and_do_not_count(table):
    X = table.X_train.assign(age=[20.0, np.nan, 40.0])
    scaled = standardised(dataclasses.replace(table, X_train=X))
    assert scaled.X_train["age"].tolist()[::2] == [-1.0, 1.0]
    assert scaled.X_train["age"].isna().tolist() == [False, True, False]


def test_images_are_scaled_channel_by_channel_and_stay_float32(images):
    scaled = standardised(images)
    for block in scaled.X_train.values():
        assert block.dtype == np.float32
        assert np.allclose(block.mean((0, 2, 3)), 0, atol=1e-6)
        assert np.allclose(block.std((0, 2, 3)), 1, atol=1e-6)
    unit = scaled_to_unit(images).X_train["b"]
    assert unit.min((0, 2, 3)).tolist() == [0.0, 0.0]
    assert unit.max((0, 2, 3)).tolist() == [1.0, 1.0]


def test_columns_of_text_are_not_scaled():
    with pytest.raises(TypeError, match=r"nursery: column 'parents' holds .*no numbers"):
        standardised(load_nursery(one_hot=None))


# ---- partitions


@pytest.mark.parametrize("n_parties", [2, 3, 4, 8])
@pytest.mark.parametrize("random_state", [None, 5])
def test_repartition_deals_every_column_once_and_cuts_no_group(n_parties, random_state):
    data = load_nursery()
    dealt = repartition(data, n_parties, random_state=random_state)
    assert len(dealt.parties) == n_parties
    assert sorted(column for columns in dealt.partition.values() for column in columns) == sorted(
        data.X_train
    )
    assert all(dealt.partition.values())
    for group in data.one_hot_groups:
        assert sum(set(group) <= set(columns) for columns in dealt.partition.values()) == 1
    assert dealt.X_train[list(data.X_train)].equals(data.X_train)


def test_shares_are_met_as_nearly_as_columns_allow():
    data = load_breast_cancer_vertical()
    unequal = repartition(data, shares={"clinic": 1, "lab": 2, "scanner": 3})
    assert {party: len(columns) for party, columns in unequal.partition.items()} == {
        "clinic": 5, "lab": 10, "scanner": 15,
    }  # fmt: skip
    assert unequal.active_party == "clinic"
    assert [len(columns) for columns in repartition(data, 4).partition.values()] == [7, 8, 7, 8]
    tiny = repartition(data, shares=[1e-9, 1, 1e-9])
    assert [len(columns) for columns in tiny.partition.values()] == [1, 28, 1]
    assert tiny.parties == ("active", "passive_1", "passive_2")


def test_repartition_that_cannot_be_is_refused(table, images):
    with pytest.raises(ValueError, match="3 columns or one-hot groups cannot be dealt to 4 parties"):
        repartition(table, 4)
    for wrong in (1, 0):
        with pytest.raises(ValueError, match="two or more parties with shares above 0"):
            repartition(table, wrong)
    with pytest.raises(TypeError, match="float"):
        repartition(table, 2.0)
    for shares in ([1, 0], [1, np.nan], [3], "ab"):
        with pytest.raises(ValueError, match="two or more parties with shares above 0"):
            repartition(table, shares=shares)
    with pytest.raises(TypeError, match="n_parties or shares, one of the two"):
        repartition(table)
    with pytest.raises(TypeError, match="holds a block per party"):
        repartition(images, 2)


def test_a_partition_of_ones_own_changes_owners_and_keeps_values(table):
    mine = with_partition(table, {"x": slice(1, 4), "y": ["age"]})
    assert mine.partition == {"x": ["fee", "sex=f", "sex=m"], "y": ["age"]}
    assert list(mine.X_train) == ["fee", "sex=f", "sex=m", "age"]
    assert mine.X_test["age"].equals(table.X_test["age"])
    with pytest.raises(ValueError, match="is cut across parties"):
        with_partition(table, {"x": ["age", "fee", "sex=f"], "y": ["sex=m"]})


# ---- rows


def test_held_out_rows_come_from_the_training_part_alone():
    data = load_breast_cancer_vertical()
    tuned = held_out(data, 100)
    assert (len(tuned.X_train), len(tuned.X_test)) == (326, 100)
    assert set(tuned.X_train.index) | set(tuned.X_test.index) == set(data.X_train.index)


def test_a_stratified_split_keeps_the_share_of_every_class():
    y = pd.Series([0] * 80 + [1] * 20)
    data = from_table(
        "t", pd.DataFrame({"a": np.arange(100.0), "b": 0.0}), y, {"x": ["a"], "y": ["b"]}, n_test=10, random_state=1,
        task="binary", class_names=("no", "yes"), source="", stratified=True,
    )  # fmt: skip
    assert np.bincount(data.y_test).tolist() == [8, 2]
    assert not set(data.X_train.index) & set(data.X_test.index)
