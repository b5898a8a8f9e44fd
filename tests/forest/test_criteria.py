"""Which split is best: known answers, brute force, and scikit-learn's trees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from tests.forest.small import forest
from vfltree.forest.criteria import Least, best_splits
from vfltree.forest.values import class_values, deviations

pytestmark = pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning")


def impurity(criterion, y, w):
    """Impurity times weight, from the definition."""
    if criterion == "squared_error":
        return float((w * (y - np.average(y, weights=w)) ** 2).sum()) if len(y) else 0.0
    shares = np.array([w[y == k].sum() for k in np.unique(y)]) / w.sum()
    value = 1 - (shares**2).sum() if criterion == "gini" else -(shares * np.log2(shares)).sum()
    return float(value * w.sum())


def by_hand(criterion, bins, y, w, n_bins, least):
    """Best gain over every bin and direction of the missing rows (bin n_bins - 1)."""
    best = -np.inf
    for b in range(n_bins - 1):
        for missing_left in (False, True):
            left = (bins <= b) | (missing_left & (bins == n_bins - 1))
            if min(left.sum(), (~left).sum()) < least:
                continue
            parts = [impurity(criterion, y[side], w[side]) for side in (left, ~left)]
            best = max(best, impurity(criterion, y, w) - sum(parts))
    return best


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_best_split_is_that_of_brute_force(data):
    criterion = data.draw(st.sampled_from(["gini", "entropy", "squared_error"]))
    n_rows, n_bins = data.draw(st.integers(2, 25)), data.draw(st.integers(2, 6))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    bins, weighted = rng.integers(0, n_bins, n_rows), data.draw(st.booleans())
    w = rng.random(n_rows) + 0.1 if weighted else np.ones(n_rows)
    if criterion == "squared_error":
        y = rng.normal(size=n_rows) * 100
        values = deviations(y, w if weighted else None)
    else:
        y = rng.integers(0, 3, n_rows)
        values = class_values(y, 3, w if weighted else None)
    least = data.draw(st.integers(1, 3))
    histogram = np.zeros((1, n_bins, values.rows.shape[1]), dtype=np.int64)
    np.add.at(histogram[0], bins, values.rows)
    found = best_splits(
        criterion, values, histogram, values.rows.sum(axis=0)[None], None, Least(least, np.zeros(1))
    )
    expected = by_hand(criterion, bins, y, w, n_bins, least)
    if expected == -np.inf:
        assert found.gain[0] == -np.inf
        return
    assert found.gain[0] * values.gain_unit == pytest.approx(expected, rel=1e-6, abs=1e-6 * n_rows)
    left = (bins <= found.bin[0]) | (found.missing_left[0] & (bins == n_bins - 1))
    parts = [impurity(criterion, y[side], w[side]) for side in (left, ~left)]
    assert impurity(criterion, y, w) - sum(parts) == pytest.approx(expected, rel=1e-6, abs=1e-6 * n_rows)


def test_the_gain_of_gini_is_known():
    """Two rows of each class; a bin apart: 4 * 1/2 before, nothing after."""
    values = class_values(np.array([0, 0, 1, 1]), 2, None)
    histogram = np.array([[[2, 0], [0, 2], [0, 0]]])
    found = best_splits("gini", values, histogram, np.array([[2, 2]]), None, Least(1, np.zeros(1)))
    assert (found.gain[0], found.bin[0], found.missing_left[0]) == (2.0, 0, False)


def test_a_split_that_gains_nothing_is_allowed():
    """As in scikit-learn: the parity of two columns begins with one."""
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, dtype=float)
    y = X[:, 0].astype(int) ^ X[:, 1].astype(int)
    model = forest(
        "binary", 1, bootstrap=False, max_features=None, encryption="none", min_rows_per_sum=1
    ).fit(X, y)
    assert model.score(X, y) == 1.0


def test_class_weights_multiply_whole_slots():
    y = np.array([0, 0, 0, 1])
    values = class_values(y, 2, None)
    histogram = np.array([[[2, 0], [1, 1], [0, 0]]])
    args = ("gini", values, histogram, np.array([[3, 1]]))
    weighted = best_splits(*args, np.array([[1.0, 3.0]]), Least(1, np.zeros(1)))
    by_rows = by_hand("gini", np.array([0, 0, 1, 1]), y, np.array([1.0, 1, 1, 3]), 3, 1)
    assert weighted.gain[0] == pytest.approx(by_rows)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_tree_of_all_rows_and_features_is_scikit_learns(criterion, weighted):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 40, size=(300, 6)).astype(float)
    signal = X[:, 0] * X[:, 3] / 40 + X[:, 5] + 8 * rng.normal(size=300)
    weights = rng.random(300) + 0.5 if weighted else None
    regression = criterion == "squared_error"
    y = signal if regression else np.digitize(signal, [20, 45])
    judge = (DecisionTreeRegressor if regression else DecisionTreeClassifier)(
        criterion=criterion, max_depth=4, random_state=0
    ).fit(X, y, weights)
    model = forest(
        "regression" if regression else "five", 1, criterion=criterion, bootstrap=False, max_features=None,
        encryption="none", max_bin=64, min_rows_per_sum=1,
    ).fit(X, y, weights)  # fmt: skip
    if regression:
        np.testing.assert_allclose(model.predict(X), judge.predict(X), rtol=1e-9)
    else:
        np.testing.assert_allclose(model.predict_proba(X), judge.predict_proba(X), atol=1e-9)
    assert model._active_model.gain.sum() == pytest.approx(gain_of(judge.tree_), rel=1e-6)


def gain_of(tree) -> float:
    """What all splits of a tree of scikit-learn take away, times weight."""
    inner = np.flatnonzero(tree.children_left >= 0)
    whole = tree.impurity * tree.weighted_n_node_samples
    return float((whole[inner] - whole[tree.children_left[inner]] - whole[tree.children_right[inner]]).sum())
