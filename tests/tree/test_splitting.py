"""The split search does what a slow search in words does: XGBoost's rounding, order and ties, on exact
sums."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vfltree.splitting import (
    MIN_GAIN,
    BestSplits,
    SplitRules,
    best_splits,
    choose,
    leaf_values,
)

F = np.float32
UNIT = 2.0**-30


def score(g, h, rules):
    """T(G)^2 / (H + lambda) in XGBoost's rounding, from real sums."""
    if h <= 0:
        return F(0)
    alpha = float(F(rules.reg_alpha))
    shrunk = np.sign(g) * max(abs(g) - alpha, 0.0)
    return F(F(shrunk * shrunk) / F(h + float(F(rules.reg_lambda))))


def slow_best(G, H, total_g, total_h, g_unit, h_unit, rules):
    """Best (gain, bin, missing_left) of one node and feature, by listing all candidates in order."""
    candidates = [(b, False) for b in range(len(G) - 1)]
    if H[-1] or G[-1]:
        candidates += [(b, True) for b in range(len(G) - 3, -1, -1)]
    best = (F(0), -1, False)
    for b, missing_left in candidates:
        left_g = int(G[: b + 1].sum() + missing_left * G[-1])
        left_h = int(H[: b + 1].sum() + missing_left * H[-1])
        right_g, right_h = total_g - left_g, total_h - left_h
        weights = left_h * h_unit, right_h * h_unit
        if min(left_h, right_h) <= 0 or min(weights) < rules.min_child_weight:
            continue
        both = F(score(left_g * g_unit, weights[0], rules) + score(right_g * g_unit, weights[1], rules))
        gain = F(both - score(total_g * g_unit, total_h * h_unit, rules))
        if gain > best[0]:
            best = (gain, b, missing_left)
    return best


def random_sums(seed, n_nodes=3, n_features=4, n_bins=6):
    """Histograms of nodes whose features share one total, as they do when they come from rows."""
    rng = np.random.default_rng(seed)
    shape = (n_nodes, n_features, n_bins)
    n_rows = 30
    G, H = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    # Few different values and few rows, so that ties and empty bins are common.
    g, h = rng.integers(-2, 3, (n_nodes, n_rows)) << 28, rng.integers(1, 3, (n_nodes, n_rows)) << 28
    for k in range(n_nodes):
        for f in range(n_features):
            bins = rng.integers(0, rng.integers(1, n_bins + 1), n_rows)
            if rng.random() < 0.5:
                bins[bins == n_bins - 1] = 0  # a feature without missing values
            np.add.at(G[k, f], bins, g[k])
            np.add.at(H[k, f], bins, h[k])
    return G, H, g.sum(axis=1), h.sum(axis=1)


RULES = st.builds(
    SplitRules,
    reg_lambda=st.sampled_from([0.0, 0.3, 1.0, 50.0]),
    reg_alpha=st.sampled_from([0.0, 0.3, 2.0]),
    min_child_weight=st.sampled_from([0.0, 1.0, 3.0]),
)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), RULES, st.sampled_from([1.0, 0.25, 8.0]), st.sampled_from([1.0, 0.5]))
def test_the_search_equals_a_list_of_all_candidates_in_order(seed, rules, g_factor, h_factor):
    G, H, total_g, total_h = random_sums(seed)
    g_unit, h_unit = UNIT * g_factor, UNIT * h_factor
    best = best_splits(G, H, total_g, total_h, g_unit, h_unit, rules)
    for k, f in np.ndindex(G.shape[:2]):
        expected = slow_best(G[k, f], H[k, f], int(total_g[k]), int(total_h[k]), g_unit, h_unit, rules)
        assert (best.gain[k, f], best.bin[k, f], best.missing_left[k, f]) == expected
        if expected[1] >= 0:
            b, missing = expected[1], expected[2]
            assert best.left_g[k, f] == G[k, f, : b + 1].sum() + missing * G[k, f, -1]
            assert best.left_h[k, f] == H[k, f, : b + 1].sum() + missing * H[k, f, -1]


def sums(*bins, missing=(0, 0)):
    """G, H, totals of one node with one feature; bins as (rows with y = 0, rows with y = 1) at p = 1/2."""
    pairs = [*bins, missing]
    G = np.array([[[(zeros - ones) << 29 for zeros, ones in pairs]]])
    H = np.array([[[(zeros + ones) << 28 for zeros, ones in pairs]]])
    return G, H, G.sum(axis=(1, 2)), H.sum(axis=(1, 2)), UNIT, UNIT


LOOSE = SplitRules(min_child_weight=0)


def test_four_rows_split_in_the_middle_with_the_gain_of_the_formula():
    best = best_splits(*sums((1, 0), (1, 0), (0, 1), (0, 1)), LOOSE)
    # G_L = 1, H_L = 0.5, G = 0: the gain is 2 * 1 / 1.5.
    assert best.bin.item() == 1
    assert best.gain.item() == pytest.approx(4 / 3, rel=1e-6)
    assert (best.left_g.item(), best.left_h.item()) == (2 << 29, 2 << 28)


def test_of_equal_splits_the_lowest_bin_wins():
    best = best_splits(*sums((2, 0), (0, 0), (0, 0), (0, 2)), LOOSE)
    assert (best.bin.item(), best.missing_left.item()) == (0, False)


def test_missing_values_go_right_when_both_ways_are_equal():
    G, H, *rest = sums((1, 0), (0, 1))
    best = best_splits(G, H, *rest, LOOSE)
    assert not best.missing_left.item()


def test_missing_values_go_with_the_rows_they_resemble():
    assert best_splits(*sums((2, 0), (0, 2), missing=(2, 0)), LOOSE).missing_left.item()
    assert not best_splits(*sums((2, 0), (0, 2), missing=(0, 2)), LOOSE).missing_left.item()


def test_presence_itself_can_be_the_split():
    best = best_splits(*sums((1, 0), (1, 0), missing=(0, 2)), LOOSE)
    assert (best.bin.item(), best.missing_left.item()) == (1, False)


def test_no_child_is_without_rows():
    best = best_splits(*sums((2, 2)), LOOSE)
    assert best.bin.item() == -1
    best = best_splits(*sums((0, 0), (2, 2), (0, 0)), LOOSE)
    assert best.bin.item() == -1


def test_min_child_weight_counts_hessians_of_both_children():
    one_against_seven = sums((1, 0), (0, 7))  # hessians 0.25 and 1.75
    assert best_splits(*one_against_seven, SplitRules(min_child_weight=0.25)).bin.item() == 0
    assert best_splits(*one_against_seven, SplitRules(min_child_weight=0.26)).bin.item() == -1


@pytest.mark.parametrize("power", [-60, -30, 0, 40, 60])
def test_the_size_of_targets_does_not_change_the_choice(power):
    G, H, total_g, total_h = random_sums(11)
    small = best_splits(G, H, total_g, total_h, UNIT, UNIT, LOOSE)
    large = best_splits(G, H, total_g, total_h, UNIT * 2.0**power, UNIT, LOOSE)
    assert (large.bin == small.bin).all()
    assert (large.gain == small.gain * 4.0**power).all()


def test_shapes_that_do_not_fit_are_refused():
    G, H, total_g, total_h = random_sums(0)
    with pytest.raises(ValueError, match="nodes, features, bins"):
        best_splits(G[0], H[0], total_g, total_h, UNIT, UNIT, LOOSE)
    with pytest.raises(ValueError, match="as many totals"):
        best_splits(G, H, total_g[:1], total_h[:1], UNIT, UNIT, LOOSE)


def test_rules_below_zero_are_refused_by_name():
    for name in ("reg_lambda", "reg_alpha", "gamma", "min_child_weight", "max_delta_step"):
        for wrong in (-1.0, np.nan):
            with pytest.raises(ValueError, match=name):
                SplitRules(**{name: wrong})


# ---- between features and parties


def bests(*gains):
    """A party's best splits of one node, only gains."""
    gain = np.array([gains], dtype=np.float64).reshape(1, len(gains))
    zeros = np.zeros(gain.shape, dtype=np.int64)
    return BestSplits(gain, zeros.astype(np.int32), zeros.astype(bool), zeros, zeros)


def test_the_earlier_party_wins_a_tie_and_all_its_equal_slots_are_named():
    choice = choose([bests(1.0, 2.0), bests(3.0, 1.0, 3.0), bests(3.0)], LOOSE)
    assert (choice.party.tolist(), choice.gain.tolist()) == ([1], [3.0])
    assert choice.slots[0].tolist() == [0, 2]


def test_a_party_without_features_never_wins():
    choice = choose([bests(), bests(1.0)], LOOSE)
    assert choice.party.tolist() == [1]
    assert choose([bests(), bests()], LOOSE).party.tolist() == [-1]


@pytest.mark.parametrize(("gain", "gamma"), [(0.0, 0.0), (MIN_GAIN, 0.0), (0.5, 0.5), (0.4, 0.5)])
def test_a_gain_that_is_not_above_gamma_splits_nothing(gain, gamma):
    choice = choose([bests(gain)], SplitRules(gamma=gamma))
    assert choice.party.tolist() == [-1]
    assert choice.slots[0].size == 0
    assert choose([bests(np.nextafter(gain, 1))], SplitRules(gamma=gamma)).party.tolist() == [
        0 if gain >= max(gamma, MIN_GAIN) else -1
    ]


def test_the_order_in_which_features_are_shown_changes_no_choice():
    G, H, total_g, total_h = random_sums(3, n_features=7)
    G[:, 5], H[:, 5] = G[:, 1], H[:, 1]  # two columns that are always equal
    order = np.random.default_rng(0).permutation(7)
    straight = choose([best_splits(G, H, total_g, total_h, UNIT, UNIT, LOOSE)], LOOSE)
    shuffled = choose([best_splits(G[:, order], H[:, order], total_g, total_h, UNIT, UNIT, LOOSE)], LOOSE)
    assert (straight.party == shuffled.party).all()
    assert (straight.gain == shuffled.gain).all()
    for mine, shown in zip(straight.slots, shuffled.slots, strict=True):
        assert sorted(order[shown]) == mine.tolist()


# ---- leaves


def test_a_leaf_is_minus_gradient_over_hessian_plus_lambda():
    g, h = np.array([1 << 30, -(1 << 29)]), np.array([1 << 29, 1 << 29])
    values = leaf_values(g, h, UNIT, UNIT, LOOSE, learning_rate=0.5)
    assert values.tolist() == [-1 / 3, 1 / 6]


def test_alpha_shrinks_a_leaf_to_zero_and_not_beyond():
    g, h = np.array([1 << 30, -(1 << 30), 1 << 28]), np.full(3, 1 << 30)
    assert leaf_values(g, h, UNIT, UNIT, SplitRules(reg_alpha=0.5)).tolist() == [-0.25, 0.25, 0.0]


def test_a_leaf_lighter_than_min_child_weight_is_zero():
    """Only a root can be one: XGBoost gives it no weight."""
    g, h = np.array([1 << 30, 1 << 30]), np.array([1 << 30, (1 << 30) - 1])
    assert leaf_values(g, h, UNIT, UNIT, SplitRules(min_child_weight=1.0)).tolist() == [-0.5, 0.0]


def test_a_leaf_without_hessian_and_lambda_is_zero():
    with np.errstate(all="raise"):
        values = leaf_values(np.array([5, 0]), np.array([0, 0]), UNIT, UNIT, SplitRules(reg_lambda=0))
    assert values.tolist() == [0.0, 0.0]


def test_single_precision_leaves_are_rounded_as_xgboost_rounds_them():
    g, h = np.array([1 << 30]), np.array([1 << 29])
    value = leaf_values(g, h, UNIT, UNIT, LOOSE, 0.1, dtype=np.float32)
    assert value.dtype == np.float64
    assert value == F(-2 / 3) * F(0.1)
