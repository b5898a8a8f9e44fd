"""Merged bins: no sum, and no difference of sums, is over fewer than k rows and more than none."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from vfltree.bin_groups import BinGroups, child_groups, regroup, root_groups, unpack_borders

NONE = 10**6  # no sum is known
N_BINS = 7  # six present ones and the one for missing values


def counts_of(bins: np.ndarray) -> np.ndarray:
    return np.bincount(bins, minlength=N_BINS)[None, :]


def some_bins(rng: np.random.Generator) -> np.ndarray:
    """Bins of some rows; often uneven, with empty bins."""
    shares = rng.dirichlet(np.full(N_BINS, 0.4))
    return rng.choice(N_BINS, size=int(rng.integers(5, 80)), p=shares)


def some_split(rng: np.random.Generator, bins: np.ndarray) -> np.ndarray:
    """Which rows go left: by a related feature, by the feature itself, or at random. Bool; neither side empty."""
    kind = rng.integers(3)
    noise = {0: 0.0, 1: 2.0, 2: 100.0}[int(kind)]
    score = bins + noise * rng.normal(size=len(bins))
    left = score < np.sort(score)[int(rng.integers(1, len(bins)))]
    return left if left.any() and not left.all() else np.arange(len(bins)) == 0


def grow(rng: np.random.Generator, k: int, depth: int, step=child_groups):
    """A tree of random splits: its nodes (rows, groups) and the pairs (parent, smaller, larger) of their indices."""
    bins = some_bins(rng)
    nodes: list[tuple[np.ndarray, BinGroups]] = [(np.arange(len(bins)), root_groups(counts_of(bins), k))]
    pairs = []
    level = [0]
    for _ in range(depth):
        following = []
        for parent in level:
            rows, groups = nodes[parent]
            if len(rows) < 2:
                continue
            left = some_split(rng, bins[rows])
            small, large = sorted((rows[left], rows[~left]), key=len)
            pair = step(groups, counts_of(bins[small]), k)
            pairs.append((parent, len(nodes), len(nodes) + 1))
            following += [len(nodes), len(nodes) + 1]
            nodes += list(zip((small, large), pair, strict=True))
        level = following
    return bins, nodes, pairs


def each_group_fits(nodes, k: int) -> bool:
    return all(
        (count == 0) | (count >= k) | (count == len(rows))  # the node's own total is no secret
        for rows, groups in nodes
        for count in groups.group_counts[0].tolist()
    )


@pytest.mark.parametrize("k", [1, 2, 5, 10])
def test_every_group_of_every_node_holds_no_row_or_at_least_k(k):
    rng = np.random.default_rng(k)
    for _ in range(60):
        _, nodes, _ = grow(rng, k, depth=3)
        assert each_group_fits(nodes, k)


def test_groups_planted_without_merging_are_noticed():
    def keep(parent, smaller, k):
        return (
            BinGroups(smaller, parent.group),
            BinGroups(parent.counts - smaller, parent.group),
        )

    rng = np.random.default_rng(0)
    assert not all(each_group_fits(grow(rng, 5, depth=3, step=keep)[1], 5) for _ in range(20))


def test_a_childs_groups_are_unions_of_its_parents_and_both_children_have_the_same():
    rng = np.random.default_rng(1)
    for _ in range(150):
        _, nodes, pairs = grow(rng, 4, depth=3)
        for parent, smaller, larger in pairs:
            above, one, other = (nodes[i][1].group[0] for i in (parent, smaller, larger))
            assert (one == other).all()
            assert all(len(set(one[above == name])) == 1 for name in set(above.tolist()))
            # A group is a run of bins; only missing values may have joined the highest one.
            assert (np.diff(one[:-1]) >= 0).all()
            assert one[-1] in (N_BINS - 1, N_BINS - 2)
            assert set(one[:-1]) == {b for b in range(N_BINS - 1) if one[b] == b}


def sums_of(bins, nodes, pair) -> np.ndarray:
    """The sums that are known of a parent and its children, as the rows in each: float64 (n_sums, n_rows)."""
    known = []
    for rows, groups in (nodes[i] for i in pair):
        if groups.borders[0].sum() == 1:
            continue  # not answered
        names = groups.group[0][bins[rows]]
        known += [np.isin(np.arange(len(bins)), rows[names == name]) for name in set(names.tolist())]
    return np.array(known, dtype=float).reshape(-1, len(bins))


def fewest_derivable(sums: np.ndarray) -> int:
    """The fewest rows, more than none, whose plain sum is a linear combination of sums that are known.

    Rows that stand in the same sums cannot be told apart; with one value for each such class the candidates are the
    vectors of zeros and ones in the row space.
    """
    if not len(sums):
        return NONE
    classes, sizes = np.unique(sums, axis=1, return_counts=True)
    basis = np.linalg.svd(classes)[2][: np.linalg.matrix_rank(classes)]
    candidates = np.array(list(product((0.0, 1.0), repeat=len(sizes))))[1:]
    inside = np.abs(candidates - candidates @ basis.T @ basis).max(axis=1) < 1e-8
    return int((candidates[inside] @ sizes).min(initial=NONE))


def fewest_of_a_tree(rng, k: int, step=child_groups) -> int:
    bins, nodes, pairs = grow(rng, k, depth=2, step=step)
    return min((fewest_derivable(sums_of(bins, nodes, pair)) for pair in pairs), default=NONE)


@pytest.mark.parametrize("k", [2, 3, 6])
def test_no_linear_combination_of_a_pair_and_its_parent_is_a_sum_over_fewer_than_k_rows(k):
    rng = np.random.default_rng(10 + k)
    assert min(fewest_of_a_tree(rng, k) for _ in range(60)) >= k


def test_groups_that_only_count_rows_would_leave_such_a_combination():
    """The example of the module docstring, merged by counts alone: B of the parent less the union on the left."""
    bins = np.repeat([0, 1, 2], [30, 15, 40])
    left = np.concatenate([np.zeros(30, bool), np.arange(15) < 12, np.arange(40) < 20])
    root = root_groups(counts_of(bins), 10)
    smaller = counts_of(bins[left])
    naive = np.where(np.isin(root.group, [0, 1]), 1, root.group).astype(np.int16)
    counted = (BinGroups(smaller, naive), BinGroups(root.counts - smaller, naive))
    careful = child_groups(root, smaller, 10)
    fewest = []
    for small, large in (counted, careful):
        nodes = [(np.arange(85), root), (np.flatnonzero(left), small), (np.flatnonzero(~left), large)]
        assert each_group_fits(nodes, 10)
        fewest.append(fewest_derivable(sums_of(bins, nodes, (0, 1, 2))))
    assert fewest[0] == 3
    assert fewest[1] >= 10


def test_one_row_at_least_merges_nothing():
    rng = np.random.default_rng(2)
    for _ in range(20):
        _, nodes, _ = grow(rng, 1, depth=2)
        for rows, groups in nodes:
            if len(rows) >= 2:
                assert groups.borders.all() or (groups.borders.sum() == 1)


def test_a_node_of_fewer_than_2_k_rows_is_one_group():
    groups = root_groups(np.array([[5, 5, 5, 4, 0, 0, 0]]), 10)
    assert groups.borders[0].tolist() == [False] * 5 + [True, False]
    assert root_groups(np.array([[5, 5, 5, 5, 0, 0, 0]]), 10).borders[0].sum() > 1


@pytest.mark.parametrize(
    ("counts", "group"),
    [
        ([12, 3, 4, 40, 20, 0, 12], [0, 3, 3, 3, 4, 5, 6]),
        ([12, 3, 4, 40, 20, 0, 2], [0, 3, 3, 3, 5, 5, 5]),  # few missing values go with the highest group
        ([12, 0, 20, 0, 3, 0, 0], [0, 1, 5, 5, 5, 5, 6]),  # a rest at the top joins the group below it
        ([12, 0, 20, 0, 6, 0, 5], [0, 1, 2, 3, 5, 5, 5]),  # or the missing values
        ([3, 0, 0, 0, 3, 0, 30], [5, 5, 5, 5, 5, 5, 5]),  # 6 present rows cannot stand alone
        ([15, 0, 0, 0, 0, 0, 15], [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_known_groups(counts, group):
    assert root_groups(np.array([counts]), 10).group[0].tolist() == group


@pytest.mark.parametrize("missing_left", [False, True])
def test_a_split_within_a_group_moves_to_the_border_below(missing_left):
    groups = root_groups(np.array([[12, 3, 4, 40, 20, 0, 12]]), 10)  # groups 0, 3, 4, 5 and missing
    assert [groups.snap(0, b, missing_left)[0] for b in range(6)] == [0, 0, 0, 3, 4, 5]
    assert {groups.snap(0, b, missing_left)[1] for b in range(6)} == {missing_left}
    low = root_groups(np.array([[2, 3, 40, 40, 20, 0, 12]]), 10)
    assert low.snap(0, 1, missing_left) == (-1, missing_left)


@pytest.mark.parametrize("missing_left", [False, True])
def test_missing_values_that_joined_a_group_go_with_it(missing_left):
    groups = root_groups(np.array([[12, 3, 4, 40, 20, 0, 2]]), 10)  # groups 0, 3 and 5 with the missing ones
    assert [groups.snap(0, b, missing_left) for b in range(6)] == [
        (0, False), (0, False), (0, False), (3, False), (3, False), (5, True),
    ]  # fmt: skip


def test_regrouped_histograms_are_those_of_the_groups():
    rng = np.random.default_rng(3)
    for _ in range(40):
        bins, nodes, _ = grow(rng, 4, depth=2)
        for rows, groups in nodes:
            values = rng.integers(-50, 50, size=(len(bins), 2))
            histogram, expected = (np.zeros((1, N_BINS, 2), np.int64) for _ in range(2))
            np.add.at(histogram[0], bins[rows], values[rows])
            np.add.at(expected[0], groups.group[0][bins[rows]], values[rows])
            assert np.array_equal(regroup(histogram, groups.borders), expected)


def test_borders_survive_the_wire():
    rng = np.random.default_rng(4)
    for _ in range(20):
        _, nodes, _ = grow(rng, 4, depth=1)
        borders = np.stack([groups.borders for _, groups in nodes])
        histograms = np.stack([groups.group_counts for _, groups in nodes])[..., None]
        assert np.array_equal(unpack_borders(np.packbits(borders), histograms), borders)
        assert unpack_borders(np.zeros(0, np.uint8), histograms) is None


def test_borders_that_cannot_be_are_refused():
    histograms = np.zeros((1, 1, N_BINS, 2), dtype=np.int64)
    borders = np.ones((1, 1, N_BINS), dtype=bool)
    with pytest.raises(ValueError, match="7 bins were expected, got 2 bytes"):
        unpack_borders(np.zeros(2, np.uint8), histograms)
    borders[0, 0, -2] = False
    with pytest.raises(ValueError, match="belongs to no group"):
        unpack_borders(np.packbits(borders), histograms)
    borders[0, 0] = [True, False, True, True, True, True, False]
    histograms[0, 0, 1, 1] = 5
    with pytest.raises(ValueError, match="within a group"):
        unpack_borders(np.packbits(borders), histograms)
