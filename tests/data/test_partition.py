"""Every way to write a partition, and every way to get it wrong."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfldata import columns_by_party

NAMES = ["age", "income", "debt", "city", "bill", "paid"]


def as_lists(columns):
    return {party: positions.tolist() for party, positions in columns.items()}


@pytest.mark.parametrize(
    "bank",
    [
        ["age", "income"],
        ("age", 1),
        [0, 1],
        [np.int64(0), -5],
        np.array([0, 1], dtype=np.uint8),
        range(2),
        slice(2),
        slice(None, 2),
        slice(-6, -4),
        [True, True, False, False, False, False],
        np.array([True, True, False, False, False, False]),
        pd.Index(["age", "income"]),
        pd.Series([0, 1], index=["x", "y"]),
        (name for name in ("age", "income")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_all_spellings_mean_the_same_columns(bank):
    columns = columns_by_party({"bank": bank, "shop": slice(2, None)}, feature_names=NAMES)
    assert as_lists(columns) == {"bank": [0, 1], "shop": [2, 3, 4, 5]}
    assert all(positions.dtype == np.int64 for positions in columns.values())


def test_a_single_name_is_one_column_not_its_letters():
    columns = columns_by_party({"a": "age", "b": 1, "c": range(2, 6)}, feature_names=NAMES)
    assert as_lists(columns) == {"a": [0], "b": [1], "c": [2, 3, 4, 5]}


def test_party_order_and_column_order_are_kept():
    columns = columns_by_party({"z": ["debt", "age"], "a": [5, 1, 4, 3]}, feature_names=NAMES)
    assert list(columns) == ["z", "a"]
    assert as_lists(columns) == {"z": [2, 0], "a": [5, 1, 4, 3]}


@pytest.mark.parametrize(
    ("n", "active", "passive"), [(1, [], [0]), (2, [0], [1]), (3, [0], [1, 2]), (6, [0, 1, 2], [3, 4, 5])]
)
def test_without_a_partition_two_parties_share_and_one_column_is_passive(n, active, passive):
    assert as_lists(columns_by_party(None, n_features=n)) == {"active": active, "passive": passive}


def test_only_the_active_party_may_own_nothing():
    assert as_lists(columns_by_party({"label": [], "data": slice(None)}, 3)) == {
        "label": [],
        "data": [0, 1, 2],
    }
    with pytest.raises(ValueError, match="party 'empty' owns no column"):
        columns_by_party({"label": [0, 1, 2], "empty": []}, 3)


def test_numbers_are_positions_even_where_names_are_numbers():
    columns = columns_by_party({"a": [0], "b": [1]}, feature_names=[7, 0])
    assert as_lists(columns) == {"a": [0], "b": [1]}


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        ({"a": [0, 1, 2], "b": [2, 3, 4, 5]}, "parties 'a' and 'b' both own 'debt' (column 2)"),
        ({"a": [0, 1, 2, 3], "b": [2, 3, 4, 5]}, "both own 'debt', 'city' (columns 2, 3)"),
        ({"a": [0, 1], "b": [3, 4, 5]}, "no party owns 'debt' (column 2)"),
        ({"a": [0, "age", 1], "b": [2, 3, 4, 5]}, "party 'a' lists 'age' (column 0) twice"),
        ({"a": [0, 1], "b": [2, 3, 4, 6]}, "party 'b': column 6 is out of range for 6 columns"),
        ({"a": [-7], "b": [1]}, "party 'a': column -7 is out of range for 6 columns"),
        ({"a": slice(0, 9), "b": [1]}, "party 'a': slice end 9 is out of range for 6 columns"),
        ({"a": range(7), "b": [1]}, "party 'a': column 6 is out of range for 6 columns"),
        ({"a": ["wage"], "b": [1]}, "party 'a': unknown column 'wage'"),
        ({"a": [True, False], "b": [1]}, "party 'a': the boolean mask has 2 entries, the data has 6 columns"),
        ({"a": [0, 1, 2, 3, 4, 5]}, "at least two parties, got 1"),
        ({}, "at least two parties, got 0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_partition_names_party_and_columns(partition, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        columns_by_party(partition, feature_names=NAMES)


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        ([[0], [1]], "partition is a dict from party name to columns, got list"),
        ({"a": None, "b": [1]}, "party 'a': columns are"),
        (
            {"a": {"age", "income"}, "b": slice(2, None)},
            "party 'a': columns are a list",
        ),  # a set has no order
        ({"a": b"age", "b": [1]}, "party 'a': columns are"),
        ({"a": [0.0], "b": [1]}, "party 'a': a column is a name or a position, got 0.0 (float)"),
        ({"a": [None], "b": [1]}, "got None (NoneType)"),
        ({"a": [0, True], "b": [1]}, "got True (bool)"),
        ({"a": slice("age", "debt"), "b": [1]}, "a slice of columns takes positions, got 'age'"),
        ({1: [0], "b": [1]}, "a party's name is text that is not empty, got 1"),
        ({"": [0], "b": [1]}, "a party's name is text that is not empty, got ''"),
    ],
)
def test_what_is_no_partition_is_a_type_error(partition, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        columns_by_party(partition, feature_names=NAMES)


def test_names_need_named_data():
    with pytest.raises(ValueError, match="party 'a': column 'age' is given by name, but the data"):
        columns_by_party({"a": ["age"], "b": [1]}, n_features=2)


def test_long_lists_of_columns_are_counted_in_messages():
    with pytest.raises(ValueError, match=r"columns 2, 3, 4, 5, 6, 7 and 92 more"):
        columns_by_party({"a": [0], "b": [1]}, n_features=100)


def test_data_must_be_described_and_consistent():
    with pytest.raises(TypeError, match="needs n_features or feature_names"):
        columns_by_party(None)
    with pytest.raises(ValueError, match="got 6 feature names for n_features=5"):
        columns_by_party(None, 5, NAMES)
    with pytest.raises(ValueError, match="at least one column, got n_features=0"):
        columns_by_party(None, 0)
    with pytest.raises(ValueError, match="more than one column is called 'age'"):
        columns_by_party(None, feature_names=["age", "age"])


@given(st.lists(st.integers(0, 3), min_size=2, max_size=40), st.randoms(use_true_random=False))
def test_every_column_comes_out_exactly_once_with_its_owner(owners, random):
    owners[:2] = [0, 1]
    names = [f"c{i}" for i in range(len(owners))]
    wanted = {p: [i for i, owner in enumerate(owners) if owner == p] for p in sorted(set(owners))}
    for columns in wanted.values():
        random.shuffle(columns)
    spelled = {f"p{p}": [random.choice([i, names[i], i - len(owners)]) for i in wanted[p]] for p in wanted}
    assert as_lists(columns_by_party(spelled, feature_names=names)) == {f"p{p}": wanted[p] for p in wanted}
