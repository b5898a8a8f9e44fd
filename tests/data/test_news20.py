"""News20-S5: the counts of the publishers, weights learned from training postings alone, three ways to the files."""

import io
import tarfile
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.datasets

from vfldata import load_news20, news20
from vfldata.news20 import CLASSES, without_header

POSTING = "From: me@{group}\nSubject: {group}\n\nA {part} word about topic{k} and caf\xe9.\n"


@pytest.fixture(scope="module")
def archive_home(data_home):
    if not (data_home / "newsgroups").is_dir():
        pytest.skip(f"the archive of 20 Newsgroups is not in {data_home}/newsgroups")
    return data_home


@pytest.mark.slow
def test_news20_by_date_has_the_published_counts(archive_home):
    data = load_news20(split="bydate", strip_headers=True, data_home=archive_home, download=False)
    assert np.bincount(data.y_train).tolist() == [480, 584, 591, 590, 578]
    assert np.bincount(data.y_test).tolist() == [319, 389, 394, 392, 385]
    halves = [block.shape[1] for block in data.blocks("train").values()]
    assert abs(halves[0] - halves[1]) <= 1
    for block in (*data.X_train.values(), *data.X_test.values()):
        assert block.format == "csr"
        assert block.dtype == np.float32
        assert 0 <= block.min() <= block.max() <= 1


@pytest.fixture
def few(monkeypatch, tmp_path):
    """Five training and five test postings of each class, and one of a class that is not asked for."""
    monkeypatch.setattr(news20, "N_POSTINGS", {"train": 25, "test": 25})
    monkeypatch.delenv("VFL_DATA_HOME", raising=False)
    postings = {
        f"20news-bydate-{part}/{group}/{k}": POSTING.format(part=part, group=group, k=k).encode("latin-1")
        for part in ("train", "test")
        for group in (*CLASSES, "sci.space")
        for k in range(5)
    }
    (tmp_path / "newsgroups").mkdir()
    return tmp_path / "newsgroups", postings


def write_archive(folder, postings, name="20news-bydate.tar.gz"):
    with tarfile.open(folder / name, "w:gz") as archive:
        for path, content in postings.items():
            member = tarfile.TarInfo(path)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def words(data):
    return [word for party in ("server", "archive") for word in data.partition[party]]


def test_words_come_from_training_postings_alone(few):
    folder, postings = few
    write_archive(folder, postings)
    data = load_news20(split="bydate", strip_headers=True, data_home=folder.parent)
    assert words(data) == sorted(
        ["about", "and", "café", "topic0", "topic1", "topic2", "topic3", "topic4", "train", "word"]
    )
    assert "test" not in words(data)
    with_headers = load_news20(split="bydate", data_home=folder.parent)
    assert "atheism" in words(with_headers)


def test_the_random_split_takes_a_fifth_of_every_class(few):
    folder, postings = few
    write_archive(folder, postings)
    data, again = (load_news20(data_home=folder.parent) for _ in range(2))
    assert np.bincount(data.y_train).tolist() == [8] * 5
    assert np.bincount(data.y_test).tolist() == [2] * 5
    assert not set(data.y_train.index) & set(data.y_test.index)
    assert data.y_test.equals(again.y_test)
    assert (data.X_test["archive"] != again.X_test["archive"]).nnz == 0


def test_archive_folder_and_scikit_learn_give_the_same(few, monkeypatch):
    folder, postings = few
    for path, content in postings.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    unpacked = load_news20(data_home=folder.parent)
    assert unpacked.source == str(folder)
    write_archive(folder, dict(reversed(postings.items())))
    packed = load_news20(data_home=folder.parent)
    assert packed.source == str(folder / "20news-bydate.tar.gz")

    def fetch(subset, categories, n_retries):
        chosen = [(p.split("/")[1], c.decode("latin-1")) for p, c in postings.items() if f"-{subset}/" in p]
        chosen = [(group, text) for group, text in chosen if group in categories]
        return SimpleNamespace(
            data=[text for _, text in chosen],
            target=[categories.index(group) for group, _ in chosen],
            target_names=categories,
        )

    monkeypatch.setattr(sklearn.datasets, "fetch_20newsgroups", fetch)
    fetched = load_news20()
    assert fetched.source.startswith("scikit-learn")
    for data in (packed, fetched):
        assert data.y_train.equals(unpacked.y_train)
        assert words(data) == words(unpacked)
        assert (data.X_train["server"] != unpacked.X_train["server"]).nnz == 0


def test_what_is_not_20_newsgroups_is_refused(few, monkeypatch):
    folder, postings = few
    with pytest.raises(ValueError, match="split is"):
        load_news20(split="half", data_home=folder.parent)
    with pytest.raises(FileNotFoundError, match=r"20 Newsgroups was not found: .*20news-bydate\.tar\.gz"):
        load_news20(data_home=folder.parent, download=False)

    def no_network(**kwargs):
        raise OSError("tests use no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_20newsgroups", no_network)
    with pytest.raises(FileNotFoundError, match="OSError: tests use no network"):
        load_news20(data_home=folder.parent)
    write_archive(folder, dict(list(postings.items())[1:]))
    with pytest.raises(ValueError, match="24 train postings of the five classes, expected 25"):
        load_news20(data_home=folder.parent)


def test_a_header_ends_at_the_first_empty_line():
    assert without_header("From: me\nSubject: x\n\nText\n\nmore") == "Text\n\nmore"
