"""Cuts and bins: XGBoost's convention, doubles throughout, missing values apart."""

import numpy as np
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from vfltree.binning import LARGEST, BinMapper, check_max_bin, quantile_cuts

NAN, INF = np.nan, np.inf
COLUMN = arrays(
    np.float64,
    st.integers(1, 60),
    elements=st.one_of(st.integers(-5, 5).map(float), st.floats(width=64), st.just(NAN)),
)


def column(*values):
    return np.array(values, dtype=np.float64)[:, None]


def test_few_distinct_values_are_cut_at_each_from_the_second_on():
    (cuts,) = quantile_cuts(column(3, 1, 2, 1, 3), max_bin=32)
    assert cuts.tolist() == [2.0, 3.0]


def test_as_many_bins_as_distinct_values_still_leaves_no_bin_empty():
    (cuts,) = quantile_cuts(column(0, 0, 1, 1), max_bin=2)
    assert cuts.tolist() == [1.0]


@pytest.mark.parametrize("values", [(5, 5, 5), (NAN, NAN), (NAN, 4, 4), (INF, INF), ()])
def test_a_column_with_one_value_or_none_has_no_cut(values):
    (cuts,) = quantile_cuts(column(*values))
    assert cuts.tolist() == []


def test_a_value_equal_to_a_cut_lies_right_of_it():
    mapper = BinMapper([[2.0, 3.0]])
    assert mapper.transform(column(1, 2, 2.5, 3, 9))[:, 0].tolist() == [0, 1, 1, 2, 2]


def test_missing_values_have_the_last_bin_of_the_table_in_every_column():
    mapper = BinMapper([[1.0], [1.0, 2.0, 3.0]])
    assert (mapper.n_bins, mapper.missing_bin) == (5, 4)
    assert mapper.transform([[NAN, NAN]]).tolist() == [[4, 4]]


def test_neighbouring_doubles_beyond_single_precision_keep_their_own_bins():
    X = column(16777216, 16777217, 16777218, 16777219)
    assert BinMapper.from_data(X).transform(X)[:, 0].tolist() == [0, 1, 2, 3]


def test_infinite_values_are_extreme_values_and_cuts_stay_finite():
    X = column(1, 2, INF, -INF)
    mapper = BinMapper.from_data(X)
    assert mapper.transform(X)[:, 0].tolist() == [1, 2, 3, 0]
    assert mapper.cuts[0].tolist() == [1.0, 2.0, LARGEST]


@pytest.mark.parametrize("max_bin", [0, 1, 257, -3])
def test_max_bin_out_of_range_names_the_range(max_bin):
    with pytest.raises(ValueError, match=f"between 2 and 256, got {max_bin}"):
        quantile_cuts(column(1, 2), max_bin)


@pytest.mark.parametrize("max_bin", [2.0, "32", None, True])
def test_max_bin_must_be_an_integer(max_bin):
    with pytest.raises(TypeError, match="max_bin"):
        check_max_bin(max_bin)


@pytest.mark.parametrize(
    ("max_bin", "dtype"), [(2, np.uint8), (255, np.uint8), (256, np.uint16), (np.int64(32), np.uint8)]
)
def test_every_allowed_max_bin_works_and_widens_only_when_it_must(max_bin, dtype):
    X = np.arange(1000.0)[:, None]
    binned = BinMapper.from_data(X, max_bin).transform(X)
    assert binned.dtype == dtype
    assert len(np.unique(binned)) == max_bin


def test_bins_of_a_smooth_column_hold_about_equally_many_rows():
    X = np.random.default_rng(0).normal(size=(10_000, 1))
    sizes = np.bincount(BinMapper.from_data(X, 32).transform(X)[:, 0])
    assert len(sizes) == 32
    assert 0.9 < sizes.min() * 32 / 10_000 <= sizes.max() * 32 / 10_000 < 1.1


def test_a_frequent_value_has_its_own_bin_and_the_rest_share_all_others():
    X = np.concatenate([np.zeros(9000), np.arange(1.0, 1001)])[:, None]
    sizes = np.bincount(BinMapper.from_data(X, 11).transform(X)[:, 0])
    assert sizes.tolist() == [9000] + [100] * 10


@settings(max_examples=200, deadline=None)
@given(COLUMN, st.integers(2, 12))
def test_cuts_are_values_of_the_column_and_every_bin_is_in_use(values, max_bin):
    X = values[:, None]
    (cuts,) = quantile_cuts(X, max_bin)
    present = np.clip(values[~np.isnan(values)], -LARGEST, LARGEST)
    assert np.isin(cuts, present).all()
    assert len(cuts) + 1 == max(1, min(max_bin, len(np.unique(present))))
    binned = BinMapper([cuts]).transform(X)[:, 0]
    assert set(binned[~np.isnan(values)]) == (set(range(len(cuts) + 1)) if len(present) else set())


@settings(max_examples=100, deadline=None)
@given(COLUMN, st.integers(2, 12))
def test_bins_count_the_cuts_that_are_not_above_the_value(values, max_bin):
    mapper = BinMapper.from_data(values[:, None], max_bin)
    expected = [
        mapper.missing_bin if np.isnan(x) else sum(cut <= x for cut in mapper.cuts[0]) for x in values
    ]
    assert mapper.transform(values[:, None])[:, 0].tolist() == expected


def test_the_threshold_of_a_bin_is_its_upper_cut_and_past_the_last_everything_present():
    mapper = BinMapper([[2.0, 3.0]])
    assert [mapper.threshold(0, b) for b in range(3)] == [2.0, 3.0, INF]


@pytest.mark.parametrize(
    "cuts", [[[1.0, 1.0]], [[2.0, 1.0]], [[NAN]], [[INF]], [[[1.0]]], [np.arange(256.0)]]
)
def test_cuts_that_cannot_be_are_refused(cuts):
    with pytest.raises(ValueError, match="feature 0"):
        BinMapper(cuts)


def test_another_number_of_columns_is_refused_with_both_numbers():
    with pytest.raises(ValueError, match="X has 2 columns, the bins were made from 1"):
        BinMapper([[1.0]]).transform(np.zeros((3, 2)))


def test_the_cuts_of_a_mapper_cannot_be_changed_from_outside():
    mine = np.array([1.0, 2.0])
    mapper = BinMapper([mine])
    mine[0] = 5
    assert mapper.cuts[0].tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        mapper.cuts[0][0] = 7


def xgboost_cuts(X, max_bin):
    return xgboost.QuantileDMatrix(X, max_bin=max_bin).get_quantile_cut()


def test_xgboost_cuts_lose_only_the_two_ends():
    X = np.array([[1.0, 5.0], [2.0, 5.0], [2.0, NAN], [3.0, 5.0]])
    mapper = BinMapper.from_xgboost_cuts(*xgboost_cuts(X, 32))
    assert [cuts.tolist() for cuts in mapper.cuts] == [[2.0, 3.0], []]


def test_rounded_xgboost_cuts_bin_doubles_as_xgboost_bins_their_single_values():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 500, size=(3000, 4)) / 10  # 0.1 and its like round up or down
    stored = xgboost_cuts(X, 64)
    by_value = BinMapper.from_xgboost_cuts(*stored).transform(X.astype(np.float32))
    assert (BinMapper.from_xgboost_cuts(*stored, round_rows=True).transform(X) == by_value).all()
    assert (BinMapper.from_xgboost_cuts(*stored).transform(X) != by_value).any()


@settings(max_examples=300, deadline=None)
@given(st.floats(-(2.0**100), 2.0**100, width=32))
def test_a_rounded_cut_is_the_smallest_double_that_rounds_to_it(cut):
    stored = np.array([cut, cut, cut], dtype=np.float32)
    ((t,),) = BinMapper.from_xgboost_cuts([0, 3], stored, round_rows=True).cuts
    assert np.float32(t) >= np.float32(cut)
    assert np.float32(np.nextafter(t, -INF)) < np.float32(cut)
