"""Criteo and Avazu: samples and files of the published form; buckets that anybody can recompute."""

import gzip
import zlib

import numpy as np
import pandas as pd
import pytest

from vfldata import load_avazu, load_criteo
from vfldata.avazu import LOG as AVAZU
from vfldata.clicks import hashed
from vfldata.criteo import LOG as CRITEO


def criteo_line(k, label=None):
    counts = ["", "-2", str(k), *["5"] * 10]
    return "\t".join([str(k % 2 if label is None else label), *counts, *[f"{k:08x}"] * 25, ""])


def write(folder, name, lines, packed=False):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    return path


def test_a_bucket_is_the_checksum_of_the_text():
    table = pd.DataFrame({"a": ["05db9164", "", "05db9164"], "b": ["x", "y", "x"]})
    buckets = hashed(table, 1000)
    assert buckets.dtype == np.int64
    assert buckets[0, 0] == buckets[2, 0] == zlib.crc32(b"05db9164") % 1000 == 436
    assert buckets[1, 0] == 0
    for wrong in (1, 0, True, 10.0, "10"):
        with pytest.raises(ValueError, match="n_buckets is a number of buckets, 2 or more"):
            hashed(table, wrong)


def test_the_published_criteo_file_is_sampled_and_cut_in_file_order(tmp_path):
    write(tmp_path, "criteo/train.txt", map(criteo_line, range(1000)))
    data = load_criteo(share=0.1, n_buckets=50, data_home=tmp_path)
    assert (len(data.y_train), len(data.y_test)) == (90, 10)
    counts = np.rint(np.expm1(np.concatenate([data.X_train["advertiser"], data.X_test["advertiser"]])))
    lines = counts[:, 2].astype(int)
    assert (np.diff(lines) > 0).all()  # as in the file, each line once
    assert np.array_equal(data.y_train, lines[:90] % 2)
    assert (counts[:, 0] == 0).all() and (counts[:, 1] == 0).all() and (counts[:, 3] == 5).all()
    assert data.X_train["publisher"][0].tolist() == [zlib.crc32(f"{lines[0]:08x}".encode()) % 50] * 25 + [0]
    assert data.n_buckets == {"publisher": 50}
    assert data.source == f"0.1 of {tmp_path / 'criteo' / 'train.txt'}"
    other = load_criteo(share=0.1, data_home=tmp_path, random_state=1)
    assert not np.array_equal(other.X_train["advertiser"], data.X_train["advertiser"])
    whole = load_criteo(share=1, data_home=tmp_path)
    assert whole.y_train.tolist() == [k % 2 for k in range(900)]


def test_the_published_avazu_file_has_a_line_of_names_and_hours_of_the_day(tmp_path):
    rows = [[str(10**18 + k), str(int(k == 3)), f"141021{k:02}", "1005", *["a"] * 20] for k in range(20)]
    write(tmp_path, "avazu/train.gz", map(",".join, [AVAZU.columns, *rows]), packed=True)
    data = load_avazu(share=1.0, data_home=tmp_path)
    assert (len(data.y_train), len(data.y_test)) == (18, 2)
    assert data.y_train.tolist() == [int(k == 3) for k in range(18)]
    assert data.X_train["exchange"][7, 0] == zlib.crc32(b"07") % 10_000
    assert data.X_train["advertiser"][7, 0] == zlib.crc32(b"1005") % 10_000
    assert {party: len(columns) for party, columns in data.partition.items()} == {
        "exchange": 13,
        "advertiser": 9,
    }
    half = load_avazu(share=0.5, data_home=tmp_path)
    assert len(half.y_train) + len(half.y_test) == 10


def test_criteo_samples_have_the_known_clicks(data_home, tmp_path):
    if not (data_home / "criteo" / "wide_resdnn").is_dir():
        pytest.skip(f"the Criteo samples are not in {data_home}/criteo")
    data = load_criteo(data_home=data_home)
    assert (len(data.y_train), len(data.y_test)) == (7_200, 800)
    assert (data.y_train.sum(), data.y_test.sum()) == (1_549, 93 + 86)
    assert {party: block.shape[1] for party, block in data.blocks("test").items()} == {
        "advertiser": 13,
        "publisher": 26,
    }
    (tmp_path / "criteo").mkdir()
    (tmp_path / "criteo" / "criteo_sample.txt").symlink_to(data_home / "criteo" / "criteo_sample.txt")
    small = load_criteo(data_home=tmp_path)
    assert (len(small.y_train), len(small.y_test)) == (180, 20)
    assert small.y_train.sum() + small.y_test.sum() == 49


def test_avazu_samples_have_the_known_clicks(data_home, tmp_path):
    if not (data_home / "avazu" / "wide_resdnn").is_dir():
        pytest.skip(f"the Avazu samples are not in {data_home}/avazu")
    data = load_avazu(data_home=data_home)
    assert (data.y_train.sum(), data.y_test.sum()) == (1_397, 86 + 80)
    assert (len(data.y_train), len(data.y_test)) == (8_087, 912)
    assert data.n_buckets == {"exchange": 10_000, "advertiser": 10_000}
    (tmp_path / "avazu").mkdir()
    (tmp_path / "avazu" / "avazu_sample.txt").symlink_to(data_home / "avazu" / "avazu_sample.txt")
    small = load_avazu(data_home=tmp_path)
    assert small.y_train.sum() + small.y_test.sum() == 20


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([",".join(AVAZU.columns), "0"], "has the columns id, click, .*; expected label, I1"),
        (["0\t1\t2"], "has 3 columns, expected 40"),
        ([criteo_line(0), "0\t1"], "short rows, or labels other than"),
        ([criteo_line(0, label=2)], "short rows, or labels other than 0 and 1"),
        ([",".join(CRITEO.columns)], "is not Criteo: it has no rows"),
        ([criteo_line(0), criteo_line(1) + "\tmore"], "Expected 40 fields in line 2, saw 41"),
        ([], "has 1 columns, expected 40"),
    ],
)
def test_files_of_another_form_are_refused(lines, words, tmp_path):
    write(tmp_path, "criteo/criteo_sample.txt", lines)
    with pytest.raises(ValueError, match=words):
        load_criteo(data_home=tmp_path)


def test_what_is_nowhere_and_impossible_shares_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Criteo was not found.*put it as criteo/train\.txt"):
        load_criteo(data_home=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"Avazu was not found.*train\.gz"):
        load_avazu(data_home=tmp_path)
    for share in (0, 1.5, -1, float("nan")):
        with pytest.raises(ValueError, match="share is above 0 and at most 1"):
            load_avazu(share=share, data_home=tmp_path)
