"""CIFAR: the publishers' binary files and pictures of images, in halves and quarters."""

import json

import numpy as np
import pytest

from tests.data.pictures import png
from vfldata import cifar, load_cifar10, load_cifar100

N = 20  # images of a small batch, two of each class


@pytest.fixture
def small(monkeypatch, tmp_path):
    monkeypatch.setattr(cifar, "N_PER_BATCH", N)
    monkeypatch.setattr(cifar, "N_TRAIN_100", N)
    monkeypatch.delenv("VFL_DATA_HOME", raising=False)
    (tmp_path / "cifar10").mkdir()
    (tmp_path / "cifar100").mkdir()
    return tmp_path


def batch(seed, n=N):
    pixels = np.random.default_rng(seed).integers(0, 256, (n, 3, 32, 32)).astype(np.uint8)
    return pixels, (np.arange(n) + seed) % 10


def binary(pixels, *labels):
    columns = [np.asarray(label, dtype=np.uint8)[:, None] for label in labels]
    return np.concatenate([*columns, pixels.reshape(len(pixels), -1)], axis=1).tobytes()


def write_pictures(folder, numbers):
    labels = [label for k in range(1, 6) for label in batch(k)[1].tolist()]
    for name, seed in [*((f"data_batch_{k}", k) for k in numbers), ("test_batch", 9)]:
        pixels = batch(seed)[0].transpose(0, 2, 3, 1).reshape(N, 1024, 3)
        (folder / f"{name}.png").write_bytes(png(pixels, [y % 3 for y in range(N)]))
    (folder / "train_lables.json").write_text(json.dumps(labels))
    (folder / "test_lables.json").write_text(json.dumps(batch(9)[1].tolist()))


def write_binary(folder, numbers):
    folder.mkdir(exist_ok=True)
    for name, seed in [*((f"data_batch_{k}", k) for k in numbers), ("test_batch", 9)]:
        pixels, labels = batch(seed)
        (folder / f"{name}.bin").write_bytes(binary(pixels, labels))


def whole(data, part="train"):
    """The images again, from two halves, as bytes."""
    blocks = data.blocks(part)
    return np.rint(np.concatenate([blocks["upper"], blocks["lower"]], axis=2) * 255).astype(np.uint8)


def test_some_batches_of_pictures_are_taken_with_their_own_labels(small):
    write_pictures(small / "cifar10", [2, 4])
    data = load_cifar10(data_home=small)
    assert data.source.endswith("cifar10, training batches 2, 4 only")
    assert np.array_equal(whole(data), np.concatenate([batch(2)[0], batch(4)[0]]))
    assert data.y_train.tolist() == [*batch(2)[1], *batch(4)[1]]
    assert np.array_equal(whole(data, "test"), batch(9)[0])


@pytest.mark.parametrize("folder", ["cifar10", "cifar10/cifar-10-batches-bin"])
def test_the_binary_version_gives_the_same_as_pictures(small, folder):
    write_pictures(small / "cifar10", range(1, 6))
    pictures = load_cifar10(data_home=small)
    assert pictures.source == str(small / "cifar10")
    write_binary(small / folder, range(1, 6))
    (small / "cifar10" / "test_batch.png").unlink()
    data = load_cifar10(data_home=small)
    assert np.array_equal(whole(data), whole(pictures))
    assert data.y_train.equals(pictures.y_train)
    assert len(data.y_train) == 5 * N


def test_quarters_and_two_classes(small):
    write_binary(small / "cifar10", [1])
    data = load_cifar10(data_home=small, n_parties=4, classes=(9, 0))
    assert {block.shape for block in data.blocks("test").values()} == {(4, 3, 16, 16)}
    assert data.class_names == ("truck", "airplane")
    assert data.partition[data.active_party] == ["red", "green", "blue"]


def test_cifar100_has_fine_and_coarse_classes(small, monkeypatch):
    monkeypatch.setattr(cifar, "N_TRAIN_100", 100)
    for part, n in (("train", 100), ("test", 20)):
        (small / "cifar100" / f"{part}.bin").write_bytes(
            binary(batch(1, n)[0], np.arange(n) % 20, np.arange(n))
        )
    fine, coarse = load_cifar100(data_home=small), load_cifar100(labels="coarse", data_home=small)
    assert (fine.y_train.tolist(), len(fine.class_names)) == (list(range(100)), 100)
    assert (coarse.y_test.tolist(), len(coarse.class_names)) == (list(range(20)), 20)
    assert np.array_equal(whole(fine), batch(1, 100)[0])
    (small / "cifar100" / "coarse_label_names.txt").write_text(
        "\n".join(f"kind{k}" for k in range(20)) + "\n"
    )
    assert load_cifar100(labels="coarse", data_home=small).class_names[19] == "kind19"
    with pytest.raises(ValueError, match='labels is "fine" or "coarse", got \'both\''):
        load_cifar100(labels="both", data_home=small)


def test_damaged_or_foreign_files_are_refused(small):
    folder = small / "cifar10"
    write_pictures(folder, [5])
    (folder / "train_lables.json").write_text(json.dumps([0] * N))
    with pytest.raises(ValueError, match=r"train_lables\.json ends before the labels of data_batch_5\.png"):
        load_cifar10(data_home=small)
    (folder / "train_lables.json").write_text(json.dumps([10] * 5 * N))
    with pytest.raises(ValueError, match=r"no list of class numbers 0\.\.9"):
        load_cifar10(data_home=small)
    (folder / "train_lables.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"train_lables\.json is not there"):
        load_cifar10(data_home=small)
    (folder / "data_batch_5.png").write_bytes(png(np.zeros((3, 4, 3), np.uint8)))
    with pytest.raises(ValueError, match="3 lines of 4 pixels, expected 20 of 1024"):
        load_cifar10(data_home=small)
    write_binary(folder, [1])
    (folder / "test_batch.bin").write_bytes(binary(batch(1)[0], [3] * N))
    with pytest.raises(ValueError, match=r"not CIFAR-10: \[0, 0, 0, 20\] test images per class"):
        load_cifar10(data_home=small)
    (folder / "data_batch_1.bin").write_bytes(binary(batch(1)[0], [10] * N))
    with pytest.raises(ValueError, match=r"class 10, expected 0\.\.9"):
        load_cifar10(data_home=small)
    (folder / "data_batch_1.bin").write_bytes(b"\0" * 99)
    with pytest.raises(ValueError, match="99 bytes, expected 61460 for 20 images"):
        load_cifar10(data_home=small)


@pytest.mark.parametrize(
    ("load", "words"), [(load_cifar10, "cifar-10-binary"), (load_cifar100, "cifar-100-binary")]
)
def test_what_is_nowhere_is_named_with_its_archive(load, words, tmp_path):
    with pytest.raises(FileNotFoundError, match=f"it is not in .*{words}.*VFL_DATA_HOME"):
        load(data_home=tmp_path)


@pytest.mark.slow
def test_cifar10_from_the_data_folder_has_the_published_labels(data_home):
    if not (data_home / "cifar10" / "data_batch_1.png").exists():
        pytest.skip(f"data_batch_1.png is not in {data_home}/cifar10")
    data = load_cifar10(data_home=data_home)
    assert data.y_train.tolist()[:10] == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    assert data.y_test.tolist()[:10] == [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]
    assert np.bincount(data.y_train[:10_000]).tolist() == [
        1005,
        974,
        1032,
        1016,
        999,
        937,
        1030,
        1001,
        1025,
        981,
    ]
    assert data.blocks("test")["upper"].shape == (10_000, 3, 16, 32)
    mean = whole(data, "test").mean((0, 2, 3)) / 255
    assert mean == pytest.approx([0.4942, 0.4851, 0.4504], abs=1e-4)
