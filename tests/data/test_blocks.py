"""Data sets whose parties hold images, texts, hashed categories or graphs: what they give, and what is refused."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from vfldata import VerticalDataset, held_out

N_TRAIN, N_TEST = 4, 2


def parts(block):
    return block[:N_TRAIN], block[N_TRAIN:]


@pytest.fixture
def mixed():
    """One party with texts, one with images, one with hashed categories."""
    rng = np.random.default_rng(0)
    n = N_TRAIN + N_TEST
    held = {
        "words": sparse.random_array((n, 5), density=0.5, rng=rng, dtype=np.float32, format="csr"),
        "images": rng.random((n, 3, 4, 4), dtype=np.float32),
        "clicks": rng.integers(0, 7, (n, 2)),
    }
    cut = {party: parts(block) for party, block in held.items()}
    return VerticalDataset(
        "mixed",
        {party: train for party, (train, _) in cut.items()},
        {party: test for party, (_, test) in cut.items()},
        pd.Series([0, 1, 0, 1]),
        pd.Series([1, 0], index=[4, 5]),
        {"words": list("abcde"), "images": ["red", "green", "blue"], "clicks": ["site", "app"]},
        "binary",
        ("no", "yes"),
        n_buckets={"clicks": 7},
    )


@pytest.fixture
def graph():
    """Three samples with a graph; one is labelled for training, one for testing."""
    X = {party: np.ones((3, 1), dtype=np.float32) for party in ("a", "b")}
    return VerticalDataset(
        "graph", X, X, pd.Series([0, -1, -1]), pd.Series([-1, -1, 1]), {"a": ["x"], "b": ["y"]}, "binary",
        ("no", "yes"), graphs={party: sparse.eye_array(3, dtype=np.float32, format="csr") for party in ("a", "b")},
    )  # fmt: skip


def with_block(data, party, block):
    """The data with another block of one party, the same rows for training and testing."""
    train, test = parts(block)
    return dataclasses.replace(
        data, X_train=data.X_train | {party: train}, X_test=data.X_test | {party: test}
    )


def test_blocks_come_as_they_are_in_party_order_with_the_active_party_first(mixed):
    blocks = mixed.blocks("test")
    assert list(blocks) == ["words", "images", "clicks"] == list(mixed.parties)
    assert mixed.active_party == "words"
    assert not mixed.is_table
    assert all(block is mixed.X_test[party] for party, block in blocks.items())
    assert repr(mixed) == (
        "VerticalDataset(mixed, 4 + 2 rows, blocks {words: 5, images: 3x4x4, clicks: 2}, binary)"
    )


@pytest.mark.parametrize(
    ("party", "block", "error", "words"),
    [
        ("images", np.zeros((6, 3, 4, 4)), TypeError, r"party 'images' holds float32 .* got ndarray of float64"),
        ("images", np.zeros((6, 3, 4), np.float32), ValueError, r"shape \(4, 3, 4\); expected \(samples, feat"),
        ("images", np.zeros((6, 2, 4, 4), np.float32), ValueError, r"\(4, 2, 4, 4\), and `partition` names 3"),
        ("images", np.full((6, 3, 4, 4), np.nan, np.float32), ValueError, "'images' holds NaN or infinite"),
        ("clicks", np.full((6, 2), 7), ValueError, r"party 'clicks' has buckets 7\.\.7, expected 0\.\.6"),
        ("clicks", np.full((6, 2), -1), ValueError, r"buckets -1\.\.-1"),
        ("clicks", np.zeros((6, 2, 1, 1), np.int64), ValueError, r"shape \(4, 2, 1, 1\)"),
        ("clicks", np.zeros((6, 2), np.float32), ValueError, r"n_buckets is given for \['clicks'\], int64"),
        ("words", sparse.csr_array((6, 5)), TypeError, "got csr_array of float64"),
        ("words", pd.DataFrame(np.zeros((6, 5))), TypeError, "is a frame: give X_train and X_test as one frame"),
    ],
)  # fmt: skip
def test_a_block_of_a_wrong_kind_is_refused_by_party(mixed, party, block, error, words):
    with pytest.raises(error, match=words):
        with_block(mixed, party, block)


def test_parties_with_different_samples_are_refused(mixed):
    images = mixed.X_train["images"]
    with pytest.raises(ValueError, match=r"same train samples.*'words': 4, 'images': 3"):
        dataclasses.replace(mixed, X_train=mixed.X_train | {"images": images[:3]})
    with pytest.raises(ValueError, match="4 train samples and 3 labels"):
        dataclasses.replace(mixed, y_train=mixed.y_train[:3])
    with pytest.raises(
        ValueError, match="float32 of 3x4x2 a sample for training and float32 of 3x4x4 a sample"
    ):
        dataclasses.replace(mixed, X_train=mixed.X_train | {"images": images[..., :2]})


def test_blocks_that_are_no_dict_or_of_other_parties_are_refused(mixed):
    with pytest.raises(TypeError, match=r"both frames or both dicts.*got ndarray for X_test"):
        dataclasses.replace(mixed, X_test=mixed.X_test["images"])
    with pytest.raises(
        ValueError, match=r"train blocks of \['clicks', 'images', 'sounds', 'words'\] for the part"
    ):
        dataclasses.replace(mixed, X_train=mixed.X_train | {"sounds": mixed.X_train["images"]})
    with pytest.raises(ValueError, match="needs at least two parties, got 1"):
        dataclasses.replace(mixed, partition={"words": list("abcde")})


@pytest.mark.parametrize("labels", [[0, 1, 2, 0], [0, 1, -2, 0]])
def test_labels_beyond_the_classes_are_refused(mixed, labels):
    with pytest.raises(ValueError, match=r"y_train holds .* expected -1 \(not labelled\) or a class 0\.\.1"):
        dataclasses.replace(mixed, y_train=pd.Series(labels))
    with pytest.raises(TypeError, match="labels of classes are integers, got float64"):
        dataclasses.replace(mixed, y_train=pd.Series(labels, dtype=float))


def test_a_label_of_minus_one_is_a_sample_without_a_label(graph):
    assert (graph.y_train >= 0).sum() == 1
    assert graph.blocks("train")["a"].shape[0] == len(graph.y_train) == 3


def test_a_graph_spans_the_samples_of_both_parts(graph):
    with pytest.raises(ValueError, match=r"party 'a' has shape \(2, 2\) for 3 samples"):
        dataclasses.replace(
            graph, graphs=dict.fromkeys("ab", sparse.eye_array(2, dtype=np.float32, format="csr"))
        )
    with pytest.raises(TypeError, match="SciPy CSR array of float32, got ndarray of float64"):
        dataclasses.replace(graph, graphs=dict.fromkeys("ab", np.eye(3)))
    with pytest.raises(ValueError, match=r"graphs of \['a'\] for the parties \['a', 'b'\]"):
        dataclasses.replace(graph, graphs={"a": graph.graphs["a"]})
    with pytest.raises(TypeError, match="samples of a graph cannot be held out"):
        held_out(graph, 1)


def test_an_unknown_task_and_labels_that_are_no_series_are_refused(mixed):
    with pytest.raises(ValueError, match="task is one of binary, multiclass, regression, got 'ranking'"):
        dataclasses.replace(mixed, task="ranking")
    with pytest.raises(TypeError, match=r"y_test is a Series .* got ndarray"):
        dataclasses.replace(mixed, y_test=np.array([0, 1]))


def test_an_unknown_column_in_a_one_hot_group_is_named(mixed):
    with pytest.raises(ValueError, match=r"one-hot group 'a'\.\. has an unknown column 'z'"):
        dataclasses.replace(mixed, one_hot_groups=(("a", "z"),))


def test_held_out_samples_leave_the_training_part_of_every_party_in_step(mixed):
    tuned = held_out(mixed, 1)
    assert (len(tuned.y_train), len(tuned.y_test)) == (3, 1)
    chosen = tuned.y_test.index[0]
    assert np.array_equal(tuned.X_test["images"][0], mixed.X_train["images"][chosen])
    assert (tuned.X_test["words"] != mixed.X_train["words"][[chosen]]).nnz == 0
    with pytest.raises(ValueError, match="1 to 3 training samples can be held out, got 4"):
        held_out(mixed, 4)
