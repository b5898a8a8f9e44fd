"""NUS-WIDE, from small files of the publishers' forms."""

import gzip

import numpy as np
import pytest

from vfldata import load_nuswide, nuswide
from vfldata.nuswide import CONCEPTS, FEATURES

N = {"Train": 25, "Test": 10}


def value(part, row, column):
    return (row * 1000 + column + (part == "Test") * 0.5) / 1e5


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Photograph k carries the concept k % 7 of ours; 5 means none and 6 means all."""
    monkeypatch.setattr(nuswide, "CHUNK", 8)
    root = tmp_path / "nuswide"
    folders = [root / name for name in ("Groundtruth/TrainTestLabels", "Low_Level_Features", "NUS_WID_Tags")]
    for sub in folders:
        sub.mkdir(parents=True)
    labels, features, tags = folders
    for part, n in N.items():
        for c, name in enumerate(CONCEPTS):
            text = "".join(f"{int(k % 7 in (c, 6))}\n" for k in range(n))
            (labels / f"Labels_{name}_{part}.txt").write_text(text)
        at = 0
        for kind, width in FEATURES.items():
            rows = [" ".join(f"{value(part, k, at + j):.6f}" for j in range(width)) + " \n" for k in range(n)]
            (features / f"{part}_Normalized_{kind}.dat").write_text("".join(rows))
            at += width
        rows = ["".join(f"{int(j == k)}\t" for j in range(1000)) + "\n" for k in range(n)]
        (tags / f"{part}_Tags1k.dat").write_text("".join(rows))
    return root


def test_photographs_with_exactly_one_concept_are_taken(folder):
    data = load_nuswide(data_home=folder.parent)
    kept = {part: [k for k in range(n) if k % 7 < 5] for part, n in N.items()}
    assert data.y_train.tolist() == [k % 7 for k in kept["Train"]]
    assert data.y_test.index.tolist() == [f"test_{k}" for k in kept["Test"]]
    assert data.X_train["photographs"].shape == (len(kept["Train"]), 634)
    expected = [[value("Test", k, j) for j in range(634)] for k in kept["Test"]]
    assert np.allclose(data.X_test["photographs"], expected, atol=1e-6)
    assert data.X_train["tags"].argmax(axis=1).tolist() == kept["Train"]
    assert data.X_train["tags"].sum(axis=1).tolist() == [1.0] * len(kept["Train"])
    assert data.active_party == "photographs"
    assert data.class_names == CONCEPTS


def test_packed_files_are_read_too(folder, monkeypatch):
    plain = load_nuswide(data_home=folder.parent)
    for path in (*folder.rglob("*_Tags1k.dat"), *folder.rglob("Labels_*.txt")):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    monkeypatch.setenv("VFL_DATA_HOME", str(folder.parent))
    packed = load_nuswide()
    assert np.array_equal(packed.X_test["tags"], plain.X_test["tags"])
    assert packed.y_train.equals(plain.y_train)


def test_other_concepts_and_numbers_of_rows(folder):
    data = load_nuswide(concepts=["water", "grass"], n_train=4, n_test=None, data_home=folder.parent)
    assert data.task == "binary"
    assert data.y_train.tolist() == [1, 0, 1, 0]  # photographs 1, 3, 8, 10
    assert data.y_test.tolist() == [1, 0, 1]
    (folder / "NUS_WID_Tags" / "TagList1k.txt").write_text("\n".join(f"word{k}" for k in range(1000)))
    assert load_nuswide(data_home=folder.parent).partition["tags"][999] == "word999"


def test_files_that_do_not_fit_together_are_refused(folder, monkeypatch):
    path = folder / "NUS_WID_Tags" / "Test_Tags1k.dat"
    whole = path.read_text()
    path.write_text(whole + "0\t" * 1000 + "\n")
    with pytest.raises(ValueError, match=r"Test_Tags1k\.dat has 11 lines, the files of labels 10"):
        load_nuswide(data_home=folder.parent)
    path.write_text("".join(line[:-4] + "\n" for line in whole.splitlines()))
    with pytest.raises(ValueError, match="has 998 numbers a line, expected 1000"):
        load_nuswide(data_home=folder.parent)
    (folder / "Groundtruth" / "TrainTestLabels" / "Labels_water_Train.txt").write_text("1\n")
    with pytest.raises(ValueError, match=r"Labels_water_Train\.txt has 1 lines, the file of 'buildings' 25"):
        load_nuswide(data_home=folder.parent)
    with pytest.raises(FileNotFoundError, match=r"NUS-WIDE \(Labels_dragon_Train\.txt\).*Groundtruth"):
        load_nuswide(concepts=("person", "dragon"), data_home=folder.parent)
    monkeypatch.delenv("VFL_DATA_HOME", raising=False)
    with pytest.raises(FileNotFoundError, match="VFL_DATA_HOME is not set"):
        load_nuswide()
    with pytest.raises(ValueError, match="two or more different names"):
        load_nuswide(concepts=("person",), data_home=folder.parent)
