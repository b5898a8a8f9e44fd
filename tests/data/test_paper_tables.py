"""Bank Marketing and San Francisco crime: counts, columns, and what is left out because it gives the label away."""

import gzip
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets

from vfldata import bank_marketing, load_bank_marketing, load_sf_crime

# ---- Bank Marketing


@pytest.fixture(scope="module")
def bank_home(data_home):
    if not (data_home / "bank_marketing").is_dir():
        pytest.skip(f"the Bank Marketing files are not in {data_home}/bank_marketing")
    return data_home


def test_bank_marketing_has_the_published_counts(bank_home):
    data = load_bank_marketing(data_home=bank_home)
    assert (len(data.X_train), len(data.X_test)) == (40_690, 4_521)
    assert data.y_train.sum() + data.y_test.sum() == 5_289
    assert len(data.one_hot_groups) == 9
    for group in data.one_hot_groups:
        assert (data.X_test[list(group)].sum(axis=1) == 1).all()
    assert "job=unknown" in data.partition["bank"]
    assert not any(column.startswith("duration") for column in data.X_train)


def test_bank_marketing_without_one_hot_has_the_16_columns_of_the_file(bank_home):
    data = load_bank_marketing(one_hot=None, duration=True, data_home=bank_home)
    assert data.X_train.shape[1] == 16
    first = pd.concat([data.X_train, data.X_test]).loc[0]
    assert first[["age", "job", "balance", "duration", "pdays"]].tolist() == [58, "management", 2143, 261, -1]


def test_bank_marketing_as_regression_has_labels_0_and_1(bank_home):
    data = load_bank_marketing(task="regression", data_home=bank_home)
    assert data.y_train.dtype == np.float64
    assert set(data.y_train) == {0.0, 1.0}
    assert data.class_names == ()


def test_bank_marketing_from_openml_equals_the_file(bank_home, monkeypatch):
    table = pd.read_csv(bank_home / "bank_marketing" / "bank-full.csv.gz", sep=";")
    features = table.drop(columns="y").set_axis([f"V{k}" for k in range(1, 17)], axis=1)
    text = features.select_dtypes(exclude="number").columns
    bunch = SimpleNamespace(
        data=features.astype(dict.fromkeys(text, "category")),
        target=table["y"].map({"no": "1", "yes": "2"}).astype("category"),
    )
    monkeypatch.delenv("VFL_DATA_HOME", raising=False)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **kwargs: bunch)
    fetched, read = load_bank_marketing(), load_bank_marketing(data_home=bank_home)
    pd.testing.assert_frame_equal(fetched.X_train, read.X_train)
    pd.testing.assert_series_equal(fetched.y_test, read.y_test)


def test_what_is_not_bank_marketing_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Bank Marketing was not found.*bank-full\.csv"):
        load_bank_marketing(data_home=tmp_path, download=False)
    with pytest.raises(ValueError, match="task is"):
        load_bank_marketing(task="multiclass", data_home=tmp_path)
    folder = tmp_path / "bank_marketing"
    folder.mkdir()
    (folder / "bank-full.csv").write_text("age;job\n1;2\n")
    with pytest.raises(ValueError, match=r"has the columns \['age', 'job'\], expected"):
        load_bank_marketing(data_home=tmp_path)
    (folder / "bank-full.csv").write_text(
        ";".join(bank_marketing.COLUMNS) + "\n" + ";".join(["1"] * 17) + "\n"
    )
    with pytest.raises(ValueError, match="1 rows with 0 deposits, expected 45211 with 5289"):
        load_bank_marketing(data_home=tmp_path)


# ---- San Francisco crime

HEADER = "Dates,Category,Descript,DayOfWeek,PdDistrict,Resolution,Address,X,Y"
PUBLISHED = """2015-05-13 23:53:00,WARRANTS,WARRANT ARREST,Wednesday,PARK,"ARREST, CITED",OAK ST / ELM ST,-122.4,37.7
2014-01-02 00:30:00,ASSAULT,BATTERY,Thursday,MISSION,NONE,0 Block of TEDDY AV,-122.5,37.8
2003-01-06 00:01:00,ASSAULT,BATTERY,Monday,PARK,NONE,OAK ST / X,-120.5,90.0
"""


def write_crimes(folder, text, name="train.csv"):
    (folder / "sf_crime").mkdir(exist_ok=True)
    content = gzip.compress(text.encode()) if name.endswith("gz") else text.encode()
    (folder / "sf_crime" / name).write_bytes(content)


@pytest.mark.parametrize("name", ["train.csv", "train.csv.gz"])
def test_the_published_crime_file_becomes_dates_places_and_categories(tmp_path, name):
    more = [f"2015-05-1{k} 12:15:00,ASSAULT,X,Sunday,PARK,NONE,1 Block of A,-122.0,37.5" for k in range(8)]
    write_crimes(tmp_path, "\n".join([HEADER, PUBLISHED + "\n".join(more), ""]), name)
    data = load_sf_crime(data_home=tmp_path)
    X, y = (
        pd.concat([data.X_train, data.X_test]).sort_index(),
        pd.concat([data.y_train, data.y_test]).sort_index(),
    )
    assert (len(data.X_train), len(data.X_test)) == (8, 2)
    assert 2 not in X.index  # its place is unknown
    assert data.class_names == ("ASSAULT", "WARRANTS")
    assert y.tolist() == [1] + [0] * 9
    assert X.loc[0, ["year", "month", "day", "hour", "corner", "X", "Y"]].tolist() == [
        2015, 5, 13, pytest.approx(23 + 53 / 60), 1, -122.4, 37.7,
    ]  # fmt: skip
    assert X.loc[1, ["corner", "DayOfWeek=Thursday", "PdDistrict=PARK"]].tolist() == [0, 1, 0]
    assert not [column for column in X if "Descript" in column or "Resolution" in column]


def test_the_crime_sample_has_its_known_categories(data_home):
    if not (data_home / "sf_crime").is_dir():
        pytest.skip(f"the San Francisco crime sample is not in {data_home}/sf_crime")
    data = load_sf_crime(one_hot=None, data_home=data_home)
    y = pd.concat([data.y_train, data.y_test])
    assert dict(zip(data.class_names, np.bincount(y).tolist(), strict=True)) == {
        "ASSAULT": 1784, "BURGLARY": 851, "DRUG/NARCOTIC": 563, "LARCENY/THEFT": 5705, "VEHICLE THEFT": 1095,
    }  # fmt: skip
    assert {party: len(columns) for party, columns in data.partition.items()} == {
        "police": 5,
        "map_service": 4,
    }
    assert set(data.X_train["year"]) == {2015.0}
    assert 0.1 < data.X_train["corner"].mean() < 0.9
    assert not data.X_train.isna().any().any()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it has no column 'Dates'"),
        ("Dates,Category\n", "it has no column 'DayOfWeek'"),
        (f"{HEADER}\n", "not San Francisco crime"),
        (f"{HEADER}\n2015-05-13 23:53:00,A\n", "not San Francisco crime"),
        (f"{HEADER}\n2015-05-13 23:53:00,A,B,C,D,E,F,west,37\n", "could not convert string to float.*west"),
        (f"{HEADER}\nyesterday,A,B,C,D,E,F,-122,37\n", "yesterday"),
    ],
)
def test_what_is_not_the_crime_file_is_refused(tmp_path, text, words):
    write_crimes(tmp_path, text)
    with pytest.raises(ValueError, match=words):
        load_sf_crime(data_home=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"San Francisco crime was not found.*Kaggle"):
        load_sf_crime(data_home=tmp_path / "elsewhere")
