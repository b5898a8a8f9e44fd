"""Nursery is generated, so it must equal the file everybody else uses."""

import gzip
import hashlib

import pytest

from vfldata import load_nursery
from vfldata.nursery import ATTRIBUTES, CLASSES, nursery_class, nursery_text

PUBLISHED_SHA256 = "8e0389c3dd37590248a921c2726d869ee96b817761a35eb8416afa24f31f931d"


def test_generated_text_is_the_published_file():
    text = nursery_text().encode()
    assert len(text) == 1_059_371
    assert hashlib.sha256(text).hexdigest() == PUBLISHED_SHA256


def test_generated_text_equals_a_copy_of_the_file_row_by_row(data_home):
    packed = data_home / "nursery" / "nursery.data.gz"
    if not packed.exists():
        pytest.skip(f"{packed} is not there")
    assert gzip.decompress(packed.read_bytes()).decode().split("\n") == nursery_text().split("\n")


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ("usual proper complete 1 convenient convenient nonprob recommended", "recommend"),
        ("usual proper complete 1 convenient convenient nonprob not_recom", "not_recom"),
        ("great_pret very_crit foster more critical inconv problematic priority", "spec_prior"),
        ("usual proper complete 2 less_conv convenient nonprob recommended", "very_recom"),
    ],
)
def test_known_rows_have_their_class(values, verdict):
    assert nursery_class(*values.split()) == verdict


def test_full_one_hot_has_one_column_per_value_and_groups_stay_with_one_party():
    dataset = load_nursery()
    assert dataset.X_train.shape == (10_368, 27)
    assert dataset.X_test.shape == (2_592, 27)
    assert [len(group) for group in dataset.one_hot_groups] == [3, 5, 4, 4, 3, 2, 3, 3]
    assert {party: len(columns) for party, columns in dataset.partition.items()} == {"school": 16, "town": 11}
    for group in dataset.one_hot_groups:
        assert (dataset.X_train[list(group)].sum(axis=1) == 1.0).all()
        assert sum(set(group) <= set(columns) for columns in dataset.partition.values()) == 1


def test_drop_first_leaves_out_the_first_value_of_each_attribute():
    dataset, full = load_nursery(one_hot="drop_first"), load_nursery()
    first = {f"{name}={values[0]}" for name, values in ATTRIBUTES.items()}
    assert set(full.X_train) - set(dataset.X_train) == first
    assert {party: len(columns) for party, columns in dataset.partition.items()} == {"school": 12, "town": 7}
    assert dataset.X_train.equals(full.X_train[list(dataset.X_train)])


def test_without_one_hot_the_text_stands_as_in_the_file():
    dataset = load_nursery(one_hot=None)
    assert dataset.partition["school"] == ["parents", "has_nurs", "form", "children"]
    row = dataset.X_train.iloc[17]
    line = nursery_text().split("\n")[dataset.X_train.index[17]]
    assert line == ",".join([*row, dataset.class_names[dataset.y_train.iloc[17]]])
    assert dataset.one_hot_groups == ()


def test_classes_are_counted_as_published_and_all_five_are_in_the_default_training_part():
    dataset = load_nursery()
    counts = dataset.y_train.value_counts().add(dataset.y_test.value_counts(), fill_value=0)
    expected = {"not_recom": 4320, "recommend": 2, "very_recom": 328, "priority": 4266, "spec_prior": 4044}
    assert {CLASSES[k]: int(n) for k, n in counts.items()} == expected
    assert set(dataset.y_train) == {0, 1, 2, 3, 4}


def test_unknown_one_hot_is_refused():
    with pytest.raises(ValueError, match="one_hot is"):
        load_nursery(one_hot="half")
