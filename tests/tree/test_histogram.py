"""Histograms are exact sums, whatever the grouping, the outputs, the threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tree.pooled import node_totals, partition_rows
from vfltree import histogram
from vfltree.histogram import build_histograms


def random_nodes(seed, n_rows=40, n_features=3, n_bins=5, n_outputs=1, n_nodes=3, dtype=np.uint8):
    rng = np.random.default_rng(seed)
    binned = np.asfortranarray(rng.integers(0, n_bins, (n_rows, n_features)).astype(dtype))
    g, h = rng.integers(-(2**30), 2**30, (n_rows, n_outputs)), rng.integers(0, 2**30, (n_rows, n_outputs))
    sizes = rng.integers(0, n_rows // 2, n_nodes)
    return binned, rng.integers(0, n_rows, sizes.sum()), np.concatenate([[0], np.cumsum(sizes)]), g, h


def slow_histograms(binned, rows, indptr, g, h, n_bins):
    sums = np.zeros((len(indptr) - 1, binned.shape[1], n_bins, 2 * g.shape[1]), dtype=np.int64)
    for node in range(len(indptr) - 1):
        for row in rows[indptr[node] : indptr[node + 1]]:
            for feature in range(binned.shape[1]):
                sums[node, feature, binned[row, feature]] += np.concatenate([g[row], h[row]])
    return sums


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 3),
    st.integers(0, 4),
    st.integers(1, 4),
    st.sampled_from([np.uint8, np.uint16]),
)
def test_sums_equal_a_loop_over_rows(seed, n_outputs, n_nodes, n_features, dtype):
    binned, rows, indptr, g, h = random_nodes(
        seed, n_outputs=n_outputs, n_nodes=n_nodes, n_features=n_features, dtype=dtype
    )
    fast = build_histograms(binned, rows, indptr, g, h, 5)
    assert (fast == slow_histograms(binned, rows, indptr, g, h, 5)).all()


@pytest.mark.parametrize("n_jobs", [1, 2, 7, -1])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_threads_change_no_sum(monkeypatch, n_jobs, n_outputs):
    monkeypatch.setattr(histogram, "MIN_SUMS_FOR_THREADS", 0)
    binned, rows, indptr, g, h = random_nodes(9, n_features=5, n_outputs=n_outputs)
    sums = build_histograms(binned, rows, indptr, g, h, 5, n_jobs)
    assert (sums == slow_histograms(binned, rows, indptr, g, h, 5)).all()


def test_row_order_and_memory_order_do_not_matter():
    binned, rows, indptr, g, h = random_nodes(1, n_nodes=1)
    once = build_histograms(binned, rows, indptr, g, h, 5)
    again = build_histograms(np.ascontiguousarray(binned), rows[::-1], indptr, g, h, 5)
    assert (once == again).all()


def test_a_parent_minus_one_child_is_the_other():
    binned, rows, indptr, g, h = random_nodes(2, n_rows=200, n_nodes=2)
    goes_left = np.random.default_rng(3).random(len(rows)) < 0.3
    parents = build_histograms(binned, rows, indptr, g, h, 5)
    child_rows, child_indptr = partition_rows(rows, indptr, goes_left)
    children = build_histograms(binned, child_rows, child_indptr, g, h, 5)
    assert (parents - children[0::2] == children[1::2]).all()


def test_a_node_alone_has_the_sums_it_has_among_others():
    binned, rows, indptr, g, h = random_nodes(4)
    many = build_histograms(binned, rows, indptr, g, h, 5)
    last = rows[indptr[-2] :]
    one = build_histograms(binned, last, np.array([0, len(last)]), g[:, 0], h[:, 0], 5)
    assert (one[0] == many[-1]).all()


def test_every_feature_of_a_node_sums_to_its_totals():
    binned, rows, indptr, g, h = random_nodes(5, n_outputs=2)
    sums = build_histograms(binned, rows, indptr, g, h, 5).sum(axis=2)
    total_g, total_h = node_totals(rows, indptr, g, h)
    assert (sums[..., :2] == total_g[:, None]).all()
    assert (sums[..., 2:] == total_h[:, None]).all()


def test_no_node_no_row_and_no_feature_are_possible():
    binned, rows, _, g, h = random_nodes(6)
    assert build_histograms(binned, rows[:0], np.array([0]), g, h, 5).shape == (0, 3, 5, 2)
    assert not build_histograms(binned, rows[:0], np.array([0, 0]), g, h, 5).any()
    assert build_histograms(binned[:, :0], rows, np.array([0, len(rows)]), g, h, 5).shape == (1, 0, 5, 2)


@pytest.mark.parametrize("row", [-1, 40])
def test_a_row_that_is_not_there_is_refused(row):
    binned, _, _, g, h = random_nodes(7)
    with pytest.raises((ValueError, IndexError), match=r"row|out of bounds"):
        build_histograms(binned, np.array([0, row]), np.array([0, 2]), g, h, 5)


def test_a_bin_that_is_not_there_is_refused():
    binned, rows, _, g, h = random_nodes(8)
    with pytest.raises(ValueError, match="n_bins is 3"):
        build_histograms(binned, rows, np.array([0, len(rows)]), g, h, 3)


def test_largest_sums_do_not_overflow():
    n_rows = 2**11
    g = np.full(n_rows, -(2**50), dtype=np.int64)
    binned = np.zeros((n_rows, 1), np.uint8)
    sums = build_histograms(binned, np.arange(n_rows), np.array([0, n_rows]), g, -g, 1)
    assert sums[0, 0, 0].tolist() == [-(2**61), 2**61]
