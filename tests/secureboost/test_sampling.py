"""Which rows and columns are drawn: how many, from where, and always the same from the same seed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from vfltree.secureboost import BoostSettings
from vfltree.secureboost.sampling import draw_columns, draw_rows, n_drawn, n_sampled_rows, samples_columns

GRADIENTS = np.random.default_rng(0).normal(size=(200, 2))


def goss(**changes) -> BoostSettings:
    return BoostSettings(sampling_method="goss", **changes)


class TestRows:
    @pytest.mark.parametrize("settings", [BoostSettings(subsample=0.3), goss(), goss(top_rate=0)])
    def test_a_draw_depends_on_seed_and_round_alone(self, settings):
        one, again, later, other = (
            draw_rows(settings, seed, number, GRADIENTS).rows
            for seed, number in [(1, 0), (1, 0), (1, 1), (2, 0)]
        )
        assert one.tolist() == again.tolist()
        assert one.tolist() != later.tolist()
        assert one.tolist() != other.tolist()
        assert len(one) == n_sampled_rows(settings, 200)
        assert (np.diff(one) > 0).all()  # the order says nothing of how a row was chosen

    def test_the_largest_gradients_are_kept_and_some_of_the_rest_count_more(self):
        settings = goss(top_rate=0.25, other_rate=0.1)
        sample = draw_rows(settings, 0, 0, GRADIENTS)
        sizes = np.abs(GRADIENTS).sum(axis=1)
        top = np.argsort(-sizes)[:50]
        assert set(top) <= set(sample.rows.tolist())
        heavier = np.isin(sample.rows, top, invert=True)
        assert heavier.sum() == 20
        assert set(sample.factors[~heavier]) == {1.0}
        assert set(sample.factors[heavier]) == {0.75 / 0.1}

    def test_rows_of_equal_gradients_are_chosen_by_lot(self):
        sample = draw_rows(goss(), 0, 0, np.ones((200, 1)))
        kept = sample.rows[sample.factors == 1]
        assert len(kept) == 40
        assert kept.max() > 100  # not simply the first ones

    def test_the_sum_of_gradients_is_kept_on_average(self):
        """The factor makes up for the rows that are left out."""
        sums = [
            GRADIENTS[sample.rows].T @ sample.factors
            for sample in (draw_rows(goss(), seed, 0, GRADIENTS) for seed in range(400))
        ]
        spread = np.std(sums, axis=0) / 20  # of the mean of 400
        assert (np.abs(np.mean(sums, axis=0) - GRADIENTS.sum(axis=0)) < 5 * spread).all()

    @pytest.mark.parametrize("n_rows", [1, 2, 7])
    def test_few_rows_leave_one_at_least(self, n_rows):
        for settings in (goss(), goss(top_rate=0.5, other_rate=0.5), BoostSettings(subsample=0.01)):
            rows = draw_rows(settings, 0, 0, GRADIENTS[:n_rows]).rows
            assert 1 <= len(rows) == n_sampled_rows(settings, n_rows) <= n_rows

    def test_all_rows_are_no_list_of_rows(self):
        sample = draw_rows(BoostSettings(), 0, 0, GRADIENTS)
        assert (sample.rows.size, sample.factors) == (0, None)


class TestColumns:
    def test_levels_are_drawn_from_the_columns_of_the_tree(self):
        settings = BoostSettings(colsample_bytree=0.5, colsample_bylevel=0.5, max_depth=4)
        sample = draw_columns(settings, 0, 0, (6, 7, 7))
        levels = [
            {(party, slot) for party, slots in enumerate(level) for slot in slots.tolist()}
            for level in sample.by_level
        ]
        assert [len(level) for level in levels] == [5] * 4
        assert len(set.union(*levels)) <= 10
        assert len({frozenset(level) for level in levels}) > 1

    def test_what_is_needed_shrinks_with_depth_and_ends_with_the_last_draw(self):
        settings = BoostSettings(colsample_bylevel=0.3, max_depth=5)
        sample = draw_columns(settings, 3, 1, (5, 20))
        for party in range(2):
            needed = [set(sample.summed(depth)[party].tolist()) for depth in range(5)]
            assert all(later <= earlier for earlier, later in pairwise(needed))
            assert needed[-1] == set(sample.at(4)[party].tolist())
            assert all(set(sample.at(depth)[party].tolist()) <= needed[depth] for depth in range(5))

    def test_one_column_is_always_drawn(self):
        settings = BoostSettings(colsample_bytree=0.01, colsample_bylevel=0.01, max_depth=2)
        for number in range(20):
            sample = draw_columns(settings, 0, number, (2, 1))
            assert [sum(len(slots) for slots in level) for level in sample.by_level] == [1, 1]

    def test_every_column_of_every_party_has_the_same_chance(self):
        settings = BoostSettings(colsample_bytree=0.5, max_depth=1)
        counts = np.zeros(8)
        for number in range(800):
            own, first, second = draw_columns(settings, 0, number, (3, 4, 1)).by_level[0]
            counts[np.concatenate([own, 3 + first, 7 + second])] += 1
        assert np.abs(counts / 800 - 0.5).max() < 5 * np.sqrt(0.25 / 800)

    @pytest.mark.parametrize(
        ("share", "n", "expected"), [(0.7, 10, 7), (0.3, 10, 3), (0.29, 10, 2), (0.1, 3, 1)]
    )
    def test_shares_are_cut_to_integers_as_xgboost_cuts_them(self, share, n, expected):
        assert n_drawn(share, n) == expected

    def test_whole_shares_draw_nothing(self):
        assert not samples_columns(BoostSettings())
        assert samples_columns(BoostSettings(colsample_bylevel=0.9))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"colsample_bytree": 0.0}, "colsample_bytree must be a number in (0"),
        ({"colsample_bylevel": 1.1}, "colsample_bylevel must be a number in (0"),
        ({"max_delta_step": -1.0}, "max_delta_step must be a number in [0"),
        ({"max_leaves": -1}, "max_leaves must be an integer in [0"),
        ({"sampling_method": "gradient_based"}, "sampling_method must be one of 'uniform', 'goss'"),
        ({"grow_policy": "leafwise"}, "grow_policy must be one of 'depthwise', 'lossguide'"),
        ({"sampling_method": "goss", "subsample": 0.5}, "subsample=0.5"),
        ({"sampling_method": "goss", "top_rate": 0.8, "other_rate": 0.3}, "together at most 1, got 0.8 and 0.3"),
        ({"other_rate": 0.0}, "other_rate must be a number in (0"),
        ({"top_rate": -0.1}, "top_rate must be a number in [0"),
        ({"grow_policy": "lossguide", "max_depth": 0}, "max_depth=30 is the most"),
        ({"grow_policy": "lossguide", "max_depth": 31}, "max_depth must be an integer in [1, 30]"),
    ],
)  # fmt: skip
def test_wrong_settings_are_named_with_their_range(parameters, message):
    with pytest.raises(ValueError) as caught:
        BoostSettings(**parameters)
    assert message in str(caught.value)
