"""Images in halves and quarters: MNIST as published, and from small files."""

import gzip
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.datasets

from vfldata import load_mnist, mnist
from vfldata.images import from_images
from vfldata.mnist import COUNTS, FILES, read_idx


@pytest.fixture(scope="module")
def mnist_home(data_home):
    if not (data_home / "mnist").is_dir():
        pytest.skip(f"the MNIST files are not in {data_home}/mnist")
    return data_home


def idx(values):
    return (
        bytes([0, 0, 8, values.ndim])
        + b"".join(size.to_bytes(4, "big") for size in values.shape)
        + values.tobytes()
    )


def cut(n_parties=2, flat=False, classes=None):
    """Six images of 2 channels, 4x6 pixels, pixel value = place in the image."""
    images = np.tile(np.arange(48, dtype=np.uint8).reshape(1, 2, 4, 6), (6, 1, 1, 1))
    labels = np.array([0, 1, 2, 0, 1, 2])
    return from_images(
        "small", (images, labels), (images[:3], labels[:3]), channels=("a", "b"), class_names=("x", "y", "z"),
        n_parties=n_parties, flat=flat, classes=classes, source="",
    )  # fmt: skip


@pytest.mark.parametrize("n_parties", [2, 4])
def test_parts_put_together_in_reading_order_are_the_image(n_parties):
    blocks = cut(n_parties).X_train
    if n_parties == 2:
        whole = np.concatenate([blocks["upper"], blocks["lower"]], axis=2)
    else:
        rows = [
            np.concatenate([blocks[f"{row}_left"], blocks[f"{row}_right"]], axis=3)
            for row in ("upper", "lower")
        ]
        whole = np.concatenate(rows, axis=2)
    assert np.array_equal(np.rint(whole[0] * 255), np.arange(48).reshape(2, 4, 6))
    assert whole.dtype == np.float32


def test_the_last_part_is_the_active_partys():
    assert cut(2).parties == ("lower", "upper")
    assert cut(4).parties == ("lower_right", "upper_left", "upper_right", "lower_left")


def test_flat_blocks_hold_the_same_pixels_and_name_them():
    flat, square = cut(4, flat=True), cut(4)
    for party in flat.parties:
        assert np.array_equal(flat.X_test[party], square.X_test[party].reshape(3, -1))
    assert flat.partition["lower_right"][:4] == ["a_2_3", "a_2_4", "a_2_5", "a_3_3"]
    assert square.partition["lower_right"] == ["a", "b"]


def test_chosen_classes_are_numbered_as_listed():
    data = cut(classes=(2, 0))
    assert data.y_train.tolist() == [1, 0, 1, 0]
    assert data.class_names == ("z", "x")
    assert data.task == "binary"
    assert len(data.X_train["upper"]) == 4


def test_other_numbers_of_parties_and_unknown_classes_are_refused():
    with pytest.raises(ValueError, match="cut for 2 or 4 parties, got n_parties=3"):
        cut(3)
    for classes in [(0,), (0, 0), (0, 3), (-1, 0)]:
        with pytest.raises(ValueError, match=r"two or more different numbers of 0\.\.2"):
            cut(classes=classes)


# ---- MNIST


def test_mnist_has_the_published_images_in_halves(mnist_home):
    data = load_mnist(data_home=mnist_home, download=False)
    assert {party: block.shape for party, block in data.blocks("train").items()} == {
        "lower": (60_000, 1, 14, 28),
        "upper": (60_000, 1, 14, 28),
    }
    assert tuple(np.bincount(data.y_test)) == COUNTS["test"]
    assert data.y_train.tolist()[:10] == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert set(data.y_train.index).isdisjoint(data.y_test.index)
    whole = np.concatenate([data.X_train["upper"][0], data.X_train["lower"][0]], axis=1)[0]
    pixels = read_idx(mnist_home / "mnist" / "train-images-idx3-ubyte.gz")[0]
    assert np.array_equal(np.rint(whole * 255), pixels)


def test_mnist_of_two_digits_is_binary(mnist_home):
    data = load_mnist(flat=True, classes=(3, 8), data_home=mnist_home, download=False)
    assert np.bincount(data.y_train).tolist() == [6131, 5851]
    assert data.X_test["upper"].shape == (1010 + 974, 392)


@pytest.fixture
def few(monkeypatch, tmp_path):
    """Files of MNIST's form with one image per digit."""
    monkeypatch.setattr(mnist, "COUNTS", {"train": (1,) * 10, "test": (1,) * 10})
    monkeypatch.delenv("VFL_DATA_HOME", raising=False)
    (tmp_path / "mnist").mkdir()
    images = np.arange(7840, dtype=np.uint64).astype(np.uint8).reshape(10, 28, 28)
    for images_name, digits_name in FILES.values():
        (tmp_path / "mnist" / images_name).write_bytes(idx(images))
        (tmp_path / "mnist" / f"{digits_name}.gz").write_bytes(
            gzip.compress(idx(np.arange(10, dtype=np.uint8)))
        )
    return tmp_path


def test_mnist_reads_files_packed_or_not(few):
    data = load_mnist(data_home=few, download=False)
    assert data.source == str(few / "mnist")
    assert len(data.y_train) == len(data.y_test) == 10


def test_mnist_from_openml_equals_mnist_from_files(few, monkeypatch):
    images = np.arange(7840, dtype=np.uint64).astype(np.uint8).reshape(10, 784)
    bunch = SimpleNamespace(
        data=np.concatenate([images, images]).astype(float),
        target=np.array([*"0123456789"] * 2, dtype=object),
    )
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **kwargs: bunch)
    fetched, read = load_mnist(), load_mnist(data_home=few)
    assert "OpenML" in fetched.source
    assert np.array_equal(fetched.X_test["lower"], read.X_test["lower"])
    assert fetched.y_test.equals(read.y_test)


def test_damaged_or_foreign_mnist_files_are_refused(few, monkeypatch):
    path = few / "mnist" / "train-images-idx3-ubyte"
    whole = path.read_bytes()
    for content, words in [
        (whole[:-1], r"cut short or too long: 7839 values for shape \(10, 28, 28\)"),
        (b"GIF8" + whole, "no idx file of unsigned bytes: it starts with 47 49 46 38"),
        (b"", "it starts with nothing"),
        (idx(np.zeros((10, 5, 5), np.uint8)), r"shapes \(10, 5, 5\) and \(10,\), expected"),
    ]:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=words):
            load_mnist(data_home=few)
    path.write_bytes(whole)
    monkeypatch.setattr(mnist, "COUNTS", COUNTS)
    with pytest.raises(ValueError, match=r"is not MNIST: .* train images per digit, expected"):
        load_mnist(data_home=few)


def test_mnist_that_is_nowhere_says_what_to_get(tmp_path, monkeypatch):
    def no_network(**kwargs):
        raise OSError("tests use no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", no_network)
    with pytest.raises(
        FileNotFoundError, match=r"train-images-idx3-ubyte\).*not in .*put them into mnist/.*VFL_DATA"
    ):
        load_mnist(data_home=tmp_path, download=False)
    with pytest.raises(FileNotFoundError, match="OpenML: OSError: tests use no network"):
        load_mnist(data_home=tmp_path)
