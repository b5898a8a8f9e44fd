"""Attacks as regression tests: the leak that the documents describe exists, and the option that lowers it does."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from benchmarks.leakage import counts, equations, forest_views, label_inference, placements, views
from vfltree.growing.numbering import child_ids
from vfltree.secureboost import active

pytestmark = pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning")


@cache
def data() -> tuple[list[np.ndarray], np.ndarray]:
    """Breast cancer as it is shared out in the documents: ten columns active, twenty passive."""
    X, y = load_breast_cancer(return_X_y=True)
    return [X[:, 20:], X[:, :20]], y.astype(float)


@cache
def trained(**settings: Any) -> views.Training:
    blocks, y = data()
    return views.train(blocks, y, blocks, **{"n_estimators": 4, "max_depth": 4, **settings})


class TestLabelInference:
    def accuracy(self, training: views.Training) -> float:
        return label_inference.judge(label_inference.node_table(training.passive), data()[1], 8).accuracy

    def test_row_sets_tell_more_of_labels_than_the_partys_own_features(self):
        training = trained(min_rows_per_sum=10)
        own = label_inference.judge(label_inference.feature_table(training.passive), data()[1], 8).accuracy
        assert self.accuracy(training) > own + 0.02

    def test_label_privacy_lowers_it(self, monkeypatch):
        """With the noise of epsilon = 1/2, drawn from a seed so that the test does not fail by luck."""
        rng = np.random.default_rng(0)
        monkeypatch.setattr(
            active,
            "randomize_labels",
            lambda y, n_classes, epsilon: np.where(rng.random(len(y)) < 0.6225, y, 1 - y),
        )
        private = trained(min_rows_per_sum=10, label_privacy_epsilon=0.5)
        assert self.accuracy(private) < self.accuracy(trained(min_rows_per_sum=10)) - 0.05

    def test_the_view_holds_row_sets_and_own_features_only(self):
        training = trained(min_rows_per_sum=10)
        first = training.passive.rounds[0]
        assert sorted(len(rows) for rows in first.values())[-1] == len(data()[1])
        assert np.array_equal(training.passive.features, data()[0][1])


class TestPlacements:
    def shares(self, k: int) -> dict[str, float]:
        training = trained(min_rows_per_sum=k)
        return placements.score(placements.solve(training.active), training.judge)

    def test_small_sums_place_rows_in_bins_and_claims_are_true(self):
        shares = self.shares(1)
        assert shares["solved"] > 0.05
        assert shares["true claims"] == 1.0

    def test_ten_rows_a_sum_end_that(self):
        shares = self.shares(10)
        assert shares["solved"] == 0.0
        assert shares["alone"] < 0.02
        assert shares["true claims"] == 1.0

    def test_a_planted_row_is_found(self):
        """Four rows in bins 0, 0, 1 and 2; the sums of single rows name them, and the rest follows."""
        gradients = np.array([[5, 1], [7, 2], [11, 4], [-13, 8]])[:, :, None]
        sums = np.array([[[12, 3], [11, 4], [-13, 8], [0, 0]]])
        node = views.NodeSums(1, 0, np.arange(4), np.array([0]), sums, np.ones((1, 4), dtype=bool))
        (claims,) = placements.solve(views.ActiveView((views.ActiveRound(0, gradients, (node,)),)))
        assert claims.low[:, 0].tolist() == claims.high[:, 0].tolist() == [0, 0, 1, 2]

    def test_rows_of_equal_gradients_are_not_told_apart(self):
        gradients = np.array([[5, 1], [5, 1], [7, 2], [7, 2]])[:, :, None]
        sums = np.array([[[12, 3], [12, 3], [0, 0]]])
        node = views.NodeSums(1, 0, np.arange(4), np.array([0]), sums, np.ones((1, 3), dtype=bool))
        (claims,) = placements.solve(views.ActiveView((views.ActiveRound(0, gradients, (node,)),)))
        assert (claims.low == placements.NOT_PLACED).all()


@cache
def forest(**settings: Any) -> views.Training:
    blocks, y = data()
    return forest_views.train(blocks, y, blocks, **{"n_estimators": 6, "max_depth": 8, **settings})


class TestForests:
    def test_row_sets_of_many_trees_tell_labels(self):
        training = forest(min_rows_per_sum=10)
        table = label_inference.node_table(training.passive)
        assert label_inference.judge(table, data()[1], 8).accuracy > 0.88

    def test_the_view_holds_what_a_passive_party_sees(self):
        """Roots are the drawn rows, and every other node is a part of its parent."""
        for tree in forest(min_rows_per_sum=10).passive.rounds:
            sizes = [len(rows) for rows in tree.values()]
            assert 300 < max(sizes) < 420 and sizes[0] == max(sizes)
            for record, rows in tree.items():
                children = [tree[child] for child in child_ids(record) if child in tree]
                if children:
                    assert np.array_equal(np.sort(np.concatenate(children)), rows)

    @pytest.mark.parametrize("k", [1, 10])
    def test_sums_are_those_of_the_rows(self, k):
        training = forest(min_rows_per_sum=k)
        for tree in training.active.rounds:
            for node in tree.nodes:
                for place, slot in enumerate(node.slots):
                    bins = training.judge.bins[node.rows, training.judge.orders[tree.number][slot]]
                    ends = np.flatnonzero(node.borders[place])
                    want = np.zeros((len(ends), 2), dtype=np.int64)
                    np.add.at(want, np.searchsorted(ends, bins), tree.gradients[node.rows, :, 0])
                    assert (want == node.sums[place][ends]).all()

    def test_counts_place_rows_where_every_sum_is_sent_and_never_falsely(self):
        every, merged = (
            counts.score(training.active, training.judge)
            for training in (forest(min_rows_per_sum=1), forest(min_rows_per_sum=10))
        )
        assert every["solved"] > 0.05
        assert merged["solved"] < 0.01
        assert every["true"] == merged["true"] == 1.0

    def test_a_planted_row_is_found(self):
        """Rows of labels 1, 1, 0, drawn once, twice and once, in bins 0, 1 and 1: only one bin has two draws of 1."""
        gradients = np.array([[1, 1], [2, 2], [0, 1]])[:, :, None]
        node = views.NodeSums(
            1,
            0,
            np.arange(3),
            np.array([0]),
            np.array([[[1, 1], [2, 3], [0, 0]]]),
            np.ones((1, 3), dtype=bool),
        )
        view = views.ActiveView((views.ActiveRound(0, gradients, (node,)),))
        possible = counts.possible_bins(view, {0: np.array([0])}, 3)[:, 0]
        assert possible.tolist() == [[True, True, False], [False, True, False], [False, True, False]]


class TestEquations:
    def right(self, n_rounds: int, guess=equations.guess_bins) -> float:
        """30 rows in three bins of ten, summed at the root of so many rounds under gradients of their own."""
        rng = np.random.default_rng(0)
        bins = rng.permutation(np.repeat([0, 1, 2], 10))
        rounds = []
        for number in range(n_rounds):
            gradients = rng.integers(-(2**20), 2**20, size=(30, 2, 1))
            sums = np.zeros((1, 4, 2), dtype=np.int64)
            np.add.at(sums[0], bins, gradients[:, :, 0])
            node = views.NodeSums(number, 0, np.arange(30), np.array([0]), sums, np.ones((1, 4), dtype=bool))
            rounds.append(views.ActiveRound(number, gradients, (node,)))
        slots = dict.fromkeys(range(n_rounds), 0)
        return float((guess(views.ActiveView(tuple(rounds)), slots, 4) == bins).mean())

    def test_half_as_many_rounds_as_rows_place_every_row_whatever_k(self):
        assert self.right(16) == 1.0
        assert self.right(16, equations.guess_bins_from_roots) == 1.0

    def test_few_rounds_do_not(self):
        assert self.right(3) < 0.8
