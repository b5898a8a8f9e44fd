"""Sums of drawn pairs, what siblings share, and draws: laws against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.forest.small import forest
from tests.secureboost.small import WEAK, some_data
from vfltree.forest import active as active_module
from vfltree.forest import pair_sums, requests
from vfltree.forest.draws import draw_rows, draw_slots
from vfltree.forest.pair_sums import pair_histograms, plan_pairs, varied_features
from vfltree.joint_cells import find_trees
from vfltree.sealing import PlainSummer, SlotLayout

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]


def some_nodes(rng, n_rows, n_features, n_nodes):
    """Row multisets and asked columns (in any order) of some nodes."""
    rows = [np.sort(rng.integers(0, n_rows, rng.integers(1, 3 * n_rows))) for _ in range(n_nodes)]
    columns = [rng.permutation(n_features)[: rng.integers(0, n_features + 1)] for _ in range(n_nodes)]
    return rows, columns


def by_hand(binned, values, rows, columns, n_bins):
    """Per node int64 (n_columns, n_bins, n_kinds)."""
    found = []
    for of_node, chosen in zip(rows, columns, strict=True):
        sums = np.zeros((len(chosen), n_bins, values.shape[1]), dtype=np.int64)
        for k, column in enumerate(chosen):
            np.add.at(sums[k], binned[of_node, column], values[of_node])
        found.append(sums)
    return found


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_sums_of_asked_pairs_are_those_of_brute_force(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n_rows, n_features, n_bins = (data.draw(st.integers(*span)) for span in ((1, 40), (1, 7), (2, 6)))
    binned = np.asfortranarray(rng.integers(0, n_bins, (n_rows, n_features)).astype(np.uint8))
    values = rng.integers(0, 9, (n_rows, 2))
    rows, columns = some_nodes(rng, n_rows, n_features, data.draw(st.integers(1, 4)))
    expected = by_hand(binned, values, rows, columns, n_bins)
    for got, wanted in zip(pair_histograms(binned, rows, columns, values, n_bins), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_sums, "CELLS_AT_ONCE", data.draw(st.sampled_from([1, 1 << 22])))
        plan, counts = plan_pairs(binned, rows, columns, find_trees(binned, n_bins), n_bins)
    summer = PlainSummer(SlotLayout(10**6, n_counts=2))
    summer.load(values.astype("<i8").tobytes(), n_rows)
    sums = np.frombuffer(summer.sum(plan), "<i8").reshape(-1, 2)
    carried = counts > 0
    if len(carried):
        carried[np.arange(len(carried)), counts.argmax(axis=1)] = False
    np.testing.assert_array_equal(sums, np.concatenate(expected)[carried])


def test_what_is_not_asked_costs_nothing():
    rng = np.random.default_rng(0)
    binned = np.asfortranarray(rng.integers(0, 5, (300, 8)).astype(np.uint8))
    rows = [np.arange(300)]
    trees = find_trees(binned, 5)
    costs = [plan_pairs(binned, rows, [np.arange(n)], trees, 5)[0].n_multiplications for n in (0, 1, 8)]
    assert costs[0] == 0
    assert costs[1] <= 300
    assert costs[2] > 3 * costs[1]


def test_features_that_vary():
    binned = np.asfortranarray([[1, 0], [1, 2], [2, 0]]).astype(np.uint8)
    assert varied_features(binned, np.array([0, 1])).tolist() == [False, True]
    assert varied_features(binned, np.array([0, 0])).tolist() == [False, False]
    assert varied_features(binned, np.array([0, 1, 2])).tolist() == [True, True]


class TestSiblings:
    def ask_directly(self, division):
        """No sharing: what is drawn is asked."""
        for child in division.children:
            none = [np.zeros(0, dtype=np.int64)] * len(division.parent.held)
            child.held = child.asked = child.drawn or none

    @pytest.mark.parametrize("min_rows_per_sum", [1, 10])
    @pytest.mark.parametrize(("max_features", "share"), [("sqrt", 1.0), (0.7, 0.8), (None, 0.7)])
    def test_shared_sums_give_the_same_trees_and_never_cost_more(
        self, max_features, share, min_rows_per_sum, monkeypatch
    ):
        X, y = some_data("binary", missing=True)
        parameters = {"max_features": max_features, "min_rows_per_sum": min_rows_per_sum, **WEAK}
        shared = forest("binary", 4, **parameters).fit(X, y)
        monkeypatch.setattr(active_module, "share_siblings", self.ask_directly)
        monkeypatch.setattr(active_module, "take_siblings", lambda division: None)
        direct = forest("binary", 4, **parameters).fit(X, y)
        assert shared._active_model == direct._active_model
        assert shared.costs_["additions"] <= share * direct.costs_["additions"]

    def test_a_slot_is_asked_where_it_is_cheaper(self):
        class Child:
            def __init__(self, drawn):
                self.drawn, self.held, self.asked = drawn, [], []

        class Division:
            parent, smaller, larger = Child([]), Child([np.array([1, 2])]), Child([np.array([2, 3, 4])])

        Division.parent.held = [np.array([2, 3])]
        requests.share_siblings(Division)
        assert Division.smaller.asked[0].tolist() == [1, 2, 3]  # 3 only for its sibling
        assert Division.larger.asked[0].tolist() == [4]  # the parent has no sums of it
        assert Division.larger.held[0].tolist() == [2, 3, 4]


class TestDraws:
    def test_rows_are_drawn_with_replacement(self):
        times = draw_rows(0, 3, 1000, 1000)
        assert times.sum() == 1000
        assert 0.60 < (times > 0).mean() < 0.66  # 1 - 1/e
        assert not np.array_equal(times, draw_rows(0, 4, 1000, 1000))

    def test_slots_are_drawn_evenly_over_parties(self):
        varied = [np.ones(3, bool), np.zeros(0, bool), np.ones(7, bool)]
        found = np.zeros(10)
        for record in range(3000):
            own, none, other = draw_slots(0, record, varied, 2)
            assert len(own) + len(other) == 2
            assert not len(none)
            found[own] += 1
            found[3 + other] += 1
        assert np.abs(found / 3000 - 0.2).max() < 0.04  # five standard deviations

    def test_slots_that_do_not_vary_count_but_one_that_does_is_found(self):
        varied = [np.zeros(5, bool), np.array([False, True, False])]
        for record in range(50):
            own, other = draw_slots(0, record, varied, 3)
            assert own.tolist() == []
            assert other.tolist() == [1]

    def test_nothing_is_drawn_where_nothing_varies(self):
        assert [len(slots) for slots in draw_slots(0, 1, [np.zeros(4, bool), np.zeros(2, bool)], 3)] == [0, 0]
