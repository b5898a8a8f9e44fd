"""The value that loaders return, and the loaders of real tables. Nothing here uses the network."""

import dataclasses
import gzip
import io
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from sklearn.datasets import load_breast_cancer

from vfldata import VerticalDataset, columns_by_party, load_breast_cancer_vertical, load_credit, load_nursery
from vfldata.credit import FEATURES, LABEL


@pytest.fixture
def small():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "c": [5.0, 6.0]}, index=[10, 11])
    y = pd.Series([0, 1], index=[10, 11])
    return VerticalDataset(
        "small", frame, frame, y, y, {"x": ["a"], "y": ["b", "c"]}, "binary", ("no", "yes")
    )


def no_network(*args, **kwargs):
    raise OSError("tests use no network")


# ---- the value -----------------------------------------------------------------------------------


def test_blocks_give_each_party_its_own_columns_and_nothing_else(small):
    blocks = small.blocks("train")
    assert list(blocks) == ["x", "y"]
    assert list(blocks["x"]) == ["a"]
    assert list(blocks["y"]) == ["b", "c"]
    assert blocks["x"].index.tolist() == [10, 11]


def test_blocks_share_no_memory_with_the_data_set(small):
    block = small.blocks("test")["x"]
    block.loc[10, "a"] = 99.0
    assert small.X_test.loc[10, "a"] == 1.0


def test_first_party_is_active(small):
    assert small.active_party == "x"
    assert small.passive_parties == ("y",)
    assert "small" in repr(small)
    assert "x: 1, y: 2" in repr(small)


def test_a_data_set_is_frozen_and_checks_itself(small):
    with pytest.raises(dataclasses.FrozenInstanceError):
        small.name = "other"
    with pytest.raises(ValueError, match="no party owns 'c'"):
        dataclasses.replace(small, partition={"x": ["a"], "y": ["b"]})
    with pytest.raises(ValueError, match="same columns in the same order"):
        dataclasses.replace(small, X_test=small.X_test[["b", "a", "c"]])
    with pytest.raises(ValueError, match="2 train rows and 1 labels"):
        dataclasses.replace(small, y_train=small.y_train[:1])
    with pytest.raises(ValueError, match=r"one-hot group 'a'\.\. is cut across parties"):
        dataclasses.replace(small, one_hot_groups=(("a", "b"),))
    with pytest.raises(ValueError, match='part is "train" or "test"'):
        small.blocks("valid")


@pytest.mark.parametrize("load", [load_breast_cancer_vertical, load_nursery])
def test_loaders_repeat_themselves_and_follow_their_seed(load):
    first, again, other = load(), load(), load(random_state=1)
    assert first.X_train.equals(again.X_train)
    assert first.y_test.equals(again.y_test)
    assert not first.X_train.index.equals(other.X_train.index)
    assert not set(first.X_train.index) & set(first.X_test.index)
    assert set(first.X_train.index) | set(first.X_test.index) == set(other.X_train.index) | set(
        other.X_test.index
    )


# ---- breast cancer -------------------------------------------------------------------------------


def test_breast_cancer_is_split_as_in_fate():
    dataset, bunch = load_breast_cancer_vertical(), load_breast_cancer()
    names = bunch.feature_names.tolist()
    assert dataset.partition == {"hospital": names[20:], "laboratory": names[:20]}
    assert all(name.startswith("worst") for name in dataset.partition["hospital"])
    rows = dataset.X_train.index
    assert np.array_equal(dataset.X_train[names], bunch.data[rows])
    assert np.array_equal(dataset.y_train, bunch.target[rows])
    assert (len(dataset.X_train), len(dataset.X_test)) == (426, 143)
    assert dataset.class_names == ("malignant", "benign")


def test_breast_cancer_agrees_with_fates_files(data_home):
    path = data_home / "fate" / "breast_hetero_guest.csv"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    guest = pd.read_csv(path, index_col="id").sort_index()
    dataset = load_breast_cancer_vertical()
    hospital = pd.concat(list(dataset.blocks(part)["hospital"] for part in ("train", "test"))).sort_index()
    standardised = (hospital - hospital.mean()) / hospital.std(ddof=0)
    assert np.abs(standardised.to_numpy() - guest.drop(columns="y").to_numpy()).max() < 1e-5
    assert pd.concat([dataset.y_train, dataset.y_test]).sort_index().tolist() == guest["y"].tolist()


# ---- credit --------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def credit_file(data_home):
    path = data_home / "credit_default" / "UCI_Credit_Card.csv.gz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path


@pytest.fixture
def offline(monkeypatch):
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", no_network)
    monkeypatch.delenv("VFL_DATA_HOME", raising=False)


def test_credit_is_read_from_the_data_folder_and_split_as_in_the_papers(credit_file, offline, monkeypatch):
    monkeypatch.setenv("VFL_DATA_HOME", str(credit_file.parents[1]))
    dataset = load_credit()
    assert {party: len(columns) for party, columns in dataset.partition.items()} == {
        "bank": 11,
        "payments": 12,
    }
    assert all(name.startswith(("BILL_AMT", "PAY_AMT")) for name in dataset.partition["payments"])
    assert (len(dataset.X_train), len(dataset.X_test)) == (24_000, 6_000)
    assert int(dataset.y_train.sum() + dataset.y_test.sum()) == 6_636
    assert dataset.source == str(credit_file)
    first_client = pd.concat([dataset.X_train, dataset.X_test]).loc[1]
    assert first_client["LIMIT_BAL"] == 20_000
    assert first_client["BILL_AMT3"] == 689


def test_credit_reads_a_plain_file_lying_in_the_folder_itself(credit_file, offline, tmp_path):
    with gzip.open(credit_file) as packed, open(tmp_path / "UCI_Credit_Card.csv", "wb") as plain:
        shutil.copyfileobj(packed, plain)
    dataset = load_credit(data_home=tmp_path, random_state=3)
    assert dataset.source == str(tmp_path / "UCI_Credit_Card.csv")
    assert columns_by_party(dataset.partition, feature_names=list(dataset.X_train))["bank"].tolist() == list(
        range(11)
    )


def test_credit_from_openml_equals_credit_from_the_file(credit_file, monkeypatch):
    table = pd.read_csv(credit_file).set_index("ID")
    data = table[FEATURES].set_axis([f"x{i}" for i in range(1, 24)], axis=1).reset_index(drop=True)
    bunch = SimpleNamespace(
        data=data, target=table[LABEL].astype(str).astype("category").reset_index(drop=True)
    )
    monkeypatch.delenv("VFL_DATA_HOME", raising=False)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **kwargs: bunch)
    fetched, read = load_credit(), load_credit(data_home=credit_file.parents[1])
    pd.testing.assert_frame_equal(fetched.X_train, read.X_train)
    pd.testing.assert_series_equal(fetched.y_test, read.y_test)
    assert "OpenML" in fetched.source


@pytest.mark.parametrize("download", [True, False])
def test_credit_that_is_nowhere_says_what_to_get_and_where_to_put_it(
    download, offline, tmp_path, monkeypatch
):
    with pytest.raises(
        FileNotFoundError, match=r"VFL_DATA_HOME is not set.*UCI_Credit_Card\.csv.*UCI or Kaggle"
    ):
        load_credit(download=download)
    monkeypatch.setenv("VFL_DATA_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=f"it is not in {tmp_path}"):
        load_credit(download=download)


def test_a_file_that_is_not_the_credit_set_is_refused(offline, tmp_path):
    path = tmp_path / "UCI_Credit_Card.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="is not the credit data set: it has no column"):
        load_credit(data_home=tmp_path)
    buffer = io.StringIO()
    pd.DataFrame([[1] * 25], columns=["ID", *FEATURES, LABEL]).to_csv(buffer, index=False)
    path.write_text(buffer.getvalue())
    with pytest.raises(ValueError, match="1 rows with 1 defaults, expected 30000 with 6636"):
        load_credit(data_home=tmp_path)
