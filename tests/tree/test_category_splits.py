"""Splits of categories: XGBoost's trees with ``enable_categorical=True``, and laws it does not state."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tests.tree.xgboost_judge import compare
from vfltree.binning import BinMapper
from vfltree.category_splits import CategoryRules, best_mixed_splits
from vfltree.losses import Logistic, Softmax, SquaredError
from vfltree.splitting import SplitRules, best_splits
from vfltree.tree import RecordTable, record_id

SIZES = (3, 8, 30)
RULES = CategoryRules()
LOSSES = {"binary": Logistic(), "four classes": Softmax(4), "regression": SquaredError()}


def some_categories(task: str, missing: bool, n_rows: int = 400, seed: int = 0):
    """Three columns of codes (every code occurs) and two of numbers; targets that all of them move."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, k, n_rows).astype(float) for k in SIZES]
    numbers = rng.normal(size=(n_rows, 2)).round(1)
    effects = [rng.normal(size=k)[column.astype(int)] for k, column in zip(SIZES, codes, strict=True)]
    score = sum(effects) + numbers[:, 0] + 0.3 * rng.normal(size=n_rows)
    X = np.column_stack([*codes, numbers])
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    for column, k in enumerate(SIZES):
        X[:k, column] = np.arange(k)
    if task == "binary":
        return X, (score > 0).astype(float)
    return X, score * 3 if task == "regression" else np.digitize(score, [-1, 0, 1]).astype(float)


@pytest.mark.parametrize("missing", [False, True], ids=["whole", "holes"])
@pytest.mark.parametrize("task", LOSSES)
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({}, id="plain"),
        pytest.param({"min_child_weight": 5.0}, id="min_child_weight 5"),
        pytest.param({"min_child_weight": 0.0, "reg_alpha": 0.5}, id="min_child_weight 0, alpha"),
        pytest.param({"categories": CategoryRules(10, 5)}, id="one-hot to 9, threshold 5"),
        pytest.param({"categories": CategoryRules(1, 64)}, id="never one-hot"),
    ],
)
def test_every_tree_is_xgboosts(arguments, task, missing):
    X, y = some_categories(task, missing)
    result = compare(X, y, LOSSES[task], n_rounds=6, categorical=(0, 1, 2), **arguments)
    assert result.differences == []
    assert result.prediction_gap < 1e-5
    assert sum(mine.n_nodes for mine in result.mine.trees) > 60
    assert np.isnan(result.mine.table.thresholds).any()


def one_feature(g, h, total_g=None, total_h=None, rules=None, category_rules=RULES):
    """The best split of one node by one categorical feature; sums given per category."""
    G, H = (np.array(x, dtype=np.int64)[None, None] << 30 for x in ([*g, 0], [*h, 0]))
    total_g = sum(g) if total_g is None else total_g
    total_h = sum(h) if total_h is None else total_h
    totals = (np.array([x], dtype=np.int64) << 30 for x in (total_g, total_h))
    return best_mixed_splits(
        G, H, *totals, 2.0**-30, 2.0**-30, rules or SplitRules(0, 0, 0, 0), np.array([len(g)]), category_rules
    )


@pytest.mark.parametrize("seed", range(5))
def test_no_partition_of_seven_categories_gains_more_than_the_sorted_one(seed):
    """Fisher 1958, for lambda = 0: all 2^6 - 1 two-way partitions are tried."""
    rng = np.random.default_rng(seed)
    g, h = rng.integers(-50, 50, 7), rng.integers(1, 30, 7)
    best = one_feature(g, h)
    gains = []
    for size in range(1, 7):
        for chosen in map(list, combinations(range(7), size)):
            a, b = (
                g[chosen].sum() ** 2 / h[chosen].sum(),
                (g.sum() - g[chosen].sum()) ** 2 / (h.sum() - h[chosen].sum()),
            )
            gains.append(a + b - g.sum() ** 2 / h.sum())
    assert best.gain[0, 0] == pytest.approx(max(gains), rel=1e-5)
    right = best.right[0, 0]
    assert (-g / h)[right].max() < (-g / h)[~right].min()


def test_one_hot_takes_one_category_and_sends_missing_values_left_when_there_are_none():
    best = one_feature([4, -6, 4], [4, 4, 4])
    assert best.right[0, 0].tolist() == [False, True, False]
    assert best.missing_left[0, 0]
    assert best.bin[0, 0] == -1
    assert best.left_g[0, 0] >> 30 == 8
    # 64/8 + 36/4 - 4/12
    assert best.gain[0, 0] == pytest.approx(8 + 9 - 1 / 3)


def test_missing_values_join_the_category_they_resemble():
    best = one_feature([4, -6, 4], [4, 4, 4], total_g=-4, total_h=16)
    assert best.right[0, 0].tolist() == [False, True, False]
    assert not best.missing_left[0, 0]


def test_the_smallest_set_wins_among_equal_partitions():
    """Categories 1 and 2 hold no rows here: they sort between the others and never decide."""
    best = one_feature([3, 0, 0, -3], [2, 0, 0, 2])
    assert best.right[0, 0].tolist() == [True, False, False, False]


@pytest.mark.parametrize("threshold", [2, 3, 64])
def test_the_threshold_bounds_the_parts_tried_from_either_end(threshold):
    """-g/h ascends by category; the best part of all is the first three of six."""
    best = one_feature([9, 8, 7, -7, -8, -9], [1] * 6, category_rules=CategoryRules(4, threshold))
    expected = {2: 1, 3: 2, 64: 3}[threshold]
    assert best.right[0, 0].sum() == expected


@pytest.mark.parametrize("rules", [SplitRules(), SplitRules(0.5, 0.3, 0, 2)])
def test_numbers_beside_categories_are_split_as_if_alone(rules):
    rng = np.random.default_rng(0)
    G, H = rng.integers(-9, 9, (3, 4, 6)) << 30, rng.integers(0, 9, (3, 4, 6)) << 30
    totals = np.full(3, 5 << 30), np.full(3, 99 << 30)
    units = 2.0**-30, 2.0**-30
    mixed = best_mixed_splits(G, H, *totals, *units, rules, np.array([0, 5, 0, 3]), CategoryRules())
    alone = best_splits(G[:, [0, 2]], H[:, [0, 2]], *totals, *units, rules)
    for name in ("gain", "bin", "missing_left", "left_g", "left_h"):
        assert np.array_equal(getattr(mixed, name)[:, [0, 2]], getattr(alone, name))
    assert not mixed.right[:, [0, 2]].any()


def test_a_categorical_column_has_a_bin_for_each_code_and_the_last_for_missing_values():
    mapper = BinMapper.from_data(np.array([[0, 0.5], [2, np.nan], [1, 0.7]]), n_categories=[3, 0])
    assert mapper.n_bins == 4
    binned = mapper.transform(np.array([[2.0, 0.6], [np.nan, 9.0], [0, 0.0], [1, 0]]))
    assert binned[:, 0].tolist() == [2, 3, 0, 1]
    left = mapper.outside_goes_left(binned[:, 0], np.array([True, False, True]), missing_left=False)
    assert left.tolist() == [False, False, False, True]


def test_a_table_of_sets_and_thresholds_answers_by_either():
    ids = record_id(0, [1, 2, 3])
    table = RecordTable.empty().append(ids[:1], [1], [0.5], [True])
    mask = np.zeros(200, bool)
    mask[[0, 9, 150]] = True
    table = table.append(ids[[2, 1]], [0, 0], [np.nan, np.nan], [False, True], [mask, mask[:2]])
    assert table.right.shape == (3, 25)
    values = np.array([[9, 0.0], [0, 9], [150, np.nan], [151, 0], [np.nan, 0], [1e6, 0]])
    rows = np.arange(len(values))

    def answers(record):
        return table.goes_left(np.full(len(rows), record), values, rows).tolist()

    assert answers(0) == [True, False, True, True, True, True]  # x < 0.5
    assert answers(1) == [True, False, True, True, True, True]  # not code 0; missing left
    assert answers(2) == [False, False, False, True, False, True]  # not 0, 9, 150; missing right


@pytest.mark.parametrize(
    ("threshold", "right"), [(0.5, [True]), (np.nan, [False]), (np.nan, None)], ids=["both", "empty", "none"]
)
def test_a_split_without_exactly_one_condition_is_refused(threshold, right):
    with pytest.raises(ValueError, match="either a threshold or a set"):
        RecordTable.empty().append(
            [1], [0], [threshold], [True], [None if right is None else np.array(right)]
        )
