"""Losses: derivatives of what they say, XGBoost's start values, no overflow, and integers that lose
nothing."""

import json
import warnings

import numpy as np
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st

from vfltree.losses import (
    AbsoluteError,
    CustomLoss,
    LeafLoss,
    Logistic,
    Poisson,
    PseudoHuber,
    QuantileError,
    Softmax,
    SquaredError,
    fraction_bits_for,
    quantile,
    quantize,
    single_precision_suits,
)

RNG = np.random.default_rng(0)
Y2 = np.array([0.0, 1, 1, 0, 1, 1, 1])
Y3 = np.array([0.0, 1, 2, 0, 1, 1, 1])
WEIGHTS = np.array([1, 2, 3, 0.5, 1, 1, 2.25])
CASES = [
    pytest.param(Logistic(), Y2, "binary:logistic", {}, id="logistic"),
    pytest.param(Logistic(3.0), Y2, "binary:logistic", {"scale_pos_weight": 3.0}, id="scale_pos_weight"),
    pytest.param(Softmax(3), Y3, "multi:softprob", {"num_class": 3}, id="softmax"),
    pytest.param(Softmax(4), Y3, "multi:softprob", {"num_class": 4}, id="a class without rows"),
    pytest.param(SquaredError(), Y3 * 0.37 - 5, "reg:squarederror", {}, id="squared error"),
    pytest.param(Poisson(), Y3, "count:poisson", {}, id="poisson"),
    pytest.param(AbsoluteError(), Y3 * 0.37 - 5, "reg:absoluteerror", {}, id="absolute error"),
    pytest.param(
        QuantileError((0.3,)), Y3 - 1.3, "reg:quantileerror", {"quantile_alpha": 0.3}, id="quantile error"
    ),
    pytest.param(
        QuantileError((0.05, 0.3, 0.99)),
        Y3 - 1.3,
        "reg:quantileerror",
        {"quantile_alpha": [0.05, 0.3, 0.99]},
        id="three quantiles",
    ),
    pytest.param(PseudoHuber(), Y3 * 3 - 5, "reg:pseudohubererror", {}, id="pseudo-Huber"),
    pytest.param(PseudoHuber(2.5), Y3 * 3, "reg:pseudohubererror", {"huber_slope": 2.5}, id="slope 2.5"),
]


def xgboost_start(objective, y, weights, **params):
    """What XGBoost fits as base score, and the margin it starts from."""
    data = xgboost.DMatrix(np.zeros((len(y), 1)), y, weight=weights)
    booster = xgboost.train(
        {"objective": objective, "tree_method": "hist", "eta": 0.0, "nthread": 1, **params}, data, 1
    )
    text = json.loads(booster.save_config())["learner"]["learner_model_param"]["base_score"]
    return np.array(json.loads(text.lower()), dtype=np.float32), booster.predict(data, output_margin=True)[0]


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize(("loss", "y", "objective", "params"), CASES)
def test_the_start_value_is_the_one_xgboost_fits(loss, y, objective, params, weights):
    base, margin = xgboost_start(objective, y, weights, **params)
    assert loss.base_score(y, weights) == pytest.approx(base, rel=1e-6, abs=1e-6)
    assert loss.start(y, weights) == pytest.approx(margin, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_start_margin_is_xgboosts_to_the_last_bit(seed):
    y = np.random.default_rng(seed).normal(size=333) * 10 + 7
    labels = (y > 5 + seed).astype(np.float64)
    assert SquaredError().start(y) == xgboost_start("reg:squarederror", y, None)[1]
    assert Logistic().start(labels) == xgboost_start("binary:logistic", labels, None)[1]
    assert Poisson().start(np.abs(y)) == xgboost_start("count:poisson", np.abs(y), None)[1]
    weights = np.random.default_rng(seed).random(333)
    for w in (None, weights):
        assert AbsoluteError().start(y, w) == xgboost_start("reg:absoluteerror", y, w)[1]


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    ("loss", "y"),
    [
        (Logistic(), Y2),
        (Logistic(2.5), Y2),
        (Softmax(3), Y3),
        (SquaredError(), Y3),
        (Poisson(), Y3),
        (PseudoHuber(), Y3),
        (PseudoHuber(0.7), Y3 * 4),
        (AbsoluteError(), Y3),
        (QuantileError((0.3,)), Y3),
    ],
)
def test_gradients_are_the_slopes_of_the_loss(loss, y, weights):
    raw = np.random.default_rng(1).normal(size=(len(y), loss.n_outputs))
    g, h = loss.gradients(y, raw, weights)
    step = 1e-4
    total = (np.ones(len(y)) if weights is None else weights) * (
        np.where(y == 1, loss.scale_pos_weight, 1) if isinstance(loss, Logistic) else 1
    )
    for i in range(len(y)):
        for k in range(loss.n_outputs):
            up, down = raw.copy(), raw.copy()
            up[i, k] += step
            down[i, k] -= step
            slope = (loss.value(y, up, weights) - loss.value(y, down, weights)) / (2 * step) * total.sum()
            # The loss is the square itself, its gradient by XGBoost's convention half the slope.
            expected = slope / 2 if isinstance(loss, SquaredError) else slope
            assert g[i, k] == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert (h > 0).all()


def test_the_softmax_hessian_is_twice_p_times_one_minus_p():
    raw = np.array([[0.0, 1.0, 2.0]])
    p = np.exp(raw) / np.exp(raw).sum()
    assert Softmax(3).gradients(np.array([2.0]), raw)[1] == pytest.approx(2 * p * (1 - p))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [100.0, 800.0, 1e30])
def test_huge_margins_overflow_nowhere(size, dtype):
    raw = np.array([[size], [-size], [size], [-size]], dtype=dtype)
    y = np.array([0.0, 0, 1, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        g, h = Logistic().gradients(y, raw)
        p = Logistic().link(raw)
        value = Logistic().value(y, raw)
        wide = Softmax(2).gradients(y, np.hstack([raw, -raw]))
    assert g[:, 0] == pytest.approx([1, 0, 0, -1])
    assert (h >= 0.9e-16).all()
    assert p.sum(axis=1) == pytest.approx(1)
    assert value == pytest.approx(size / 2)
    assert all(np.isfinite(x).all() for x in wide)


def test_probabilities_of_all_classes_sum_to_one():
    assert Logistic().link(np.array([[0.3], [-2.0]])).sum(axis=1) == pytest.approx(1)
    assert Softmax(3).link(RNG.normal(size=(5, 3)).astype(np.float32)).sum(axis=1) == pytest.approx(1)


def test_base_score_of_two_classes_must_be_a_probability():
    assert Logistic().start(Y2, None, 0.5) == 0.0
    for wrong in (-0.1, 1.5, np.nan):
        with pytest.raises(ValueError, match="between 0 and 1"):
            Logistic().start(Y2, None, wrong)


def test_targets_around_a_thousand_million_keep_their_differences():
    y = np.array([1e9, 1e9, 1e9 + 4, 1e9 + 4])
    start = SquaredError().start(y)
    assert start.dtype == np.float64
    g, _ = SquaredError().gradients(y, np.tile(start, (4, 1)))
    assert g[:, 0].tolist() == [2, 2, -2, -2]


@pytest.mark.parametrize(
    ("y", "single"),
    [
        ([-1e9, -1e9, 1e9, 1e9], True),
        ([0.0, 0.1, 0.2], True),
        ([1990.0, 2000.0, 2020.0], False),
        ([7.0], True),
        ([1e9 + 4], False),
        ([16777216.0, 16777217.0], False),
        ([0.0, 1e40], False),
        ([0.0, 1e-40], False),
    ],
)
def test_single_precision_is_used_only_where_it_keeps_targets_apart(y, single):
    assert single_precision_suits(np.array(y)) == single
    assert SquaredError().start(np.array(y)).dtype == (np.float32 if single else np.float64)


def test_a_mean_of_huge_targets_is_exact():
    y = np.array([1e16, 1e16 + 2, 1e16 + 4])
    assert SquaredError().base_score(y) == 1e16 + 2


# ---- quantiles, and losses of the user's own


def xgboost_leaf(y, weights, alpha):
    """The leaf that XGBoost gives a tree which cannot split, over targets that start at 0."""
    data = xgboost.DMatrix(np.zeros((len(y), 1)), y, weight=weights)
    params = {"objective": "reg:quantileerror", "quantile_alpha": alpha, "base_score": 0.0, "eta": 1.0}
    return xgboost.train({"tree_method": "hist", "nthread": 1, **params}, data, 1).predict(data)[0]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("alpha", [0.01, 0.5, 0.77, 0.99])
@pytest.mark.parametrize("n_rows", [1, 2, 101])
def test_quantiles_are_xgboosts_to_the_last_bit(n_rows, alpha, weighted):
    rng = np.random.default_rng(n_rows)
    y = rng.normal(size=n_rows).astype(np.float32)
    weights = rng.random(n_rows).astype(np.float32) if weighted else None
    assert np.float32(quantile(y, alpha, weights)) == xgboost_leaf(y, weights, alpha)


def test_a_median_by_hand():
    assert quantile(np.array([3.0, 1.0, 2.0]), 0.5) == 2.0
    assert quantile(np.array([3.0, 1.0, 2.0, 10.0]), 0.5) == 2.5
    assert quantile(np.array([3.0, 1.0, 2.0]), 0.5, np.array([1.0, 5.0, 1.0])) == 1.0


def test_only_quantile_losses_find_leaves_anew():
    assert [isinstance(loss, LeafLoss) for loss in (AbsoluteError(), QuantileError())] == [True, True]
    others = [Logistic(), Softmax(3), SquaredError(), Poisson(), PseudoHuber()]
    assert not any(isinstance(loss, LeafLoss) for loss in others)


def test_a_poisson_mean_must_be_positive():
    with pytest.raises(ValueError, match="must be positive, got 0"):
        Poisson().start(np.zeros(3))


def test_a_custom_loss_that_says_squared_error_is_squared_error():
    custom = CustomLoss(lambda y, raw: (raw - y, np.ones(len(y))), SquaredError())
    raw = RNG.normal(size=(7, 1)).astype(np.float32)
    y = Y3.astype(np.float32).astype(np.float64)
    for weights in (None, WEIGHTS):
        for mine, theirs in zip(
            custom.gradients(y, raw, weights), SquaredError().gradients(y, raw, weights), strict=True
        ):
            assert mine == pytest.approx(theirs, rel=1e-6, abs=1e-6)
    assert custom.start(y) == 0.5


def test_a_custom_loss_with_a_weight_parameter_applies_weights_itself():
    def doubled(y, raw, sample_weight=None):
        return 2 * sample_weight * (raw - y), sample_weight

    g, h = CustomLoss(doubled, SquaredError()).gradients(Y3, np.zeros((7, 1)), WEIGHTS)
    assert g[:, 0].tolist() == (-2 * WEIGHTS * Y3).tolist()
    assert h[:, 0].tolist() == WEIGHTS.tolist()


def test_a_custom_loss_that_writes_into_what_it_is_given_changes_nothing():
    def careless(y, raw, sample_weight=None):
        raw -= y
        raw *= sample_weight
        y[:], sample_weight[:] = 0, 0
        return raw, np.ones(7)

    y, raw, weights = Y3.copy(), np.zeros((7, 1)), WEIGHTS.copy()
    g, _ = CustomLoss(careless, SquaredError()).gradients(y, raw, weights)
    assert g[:, 0].tolist() == (-WEIGHTS * Y3).tolist()
    assert np.array_equal(y, Y3) and np.array_equal(weights, WEIGHTS) and not raw.any()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda y, raw: (raw - y, -np.ones(7)), "hessians must be 0 or more, the smallest of 7 is -1"),
        (lambda y, raw: (raw - y, np.ones(6)), r"hessians must have the shape \(7,\), got \(6,\)"),
        (lambda y, raw: (raw * np.nan, np.ones(7)), "7 of 7 gradients are NaN or infinite"),
        (lambda y, raw: raw - y, "two arrays, got ndarray"),
        (lambda y, raw: (["a"] * 7, np.ones(7)), "gradients must be numbers: .*'a'"),
        (lambda y, raw: (np.ones((7, 7)), np.ones(7)), r"gradients must have the shape \(7,\), got \(7, 7\)"),
    ],
)
def test_wrong_answers_of_a_custom_loss_are_named(answer, words):
    with pytest.raises(ValueError, match=f"objective <lambda>.*{words}"):
        CustomLoss(answer, SquaredError()).gradients(Y3, np.zeros((7, 1)))


# ---- integers


def test_units_are_powers_of_two_and_values_come_back_within_half_a_unit():
    g, h = RNG.normal(size=(500, 3)) * [1, 1e-6, 1e9], RNG.random((500, 3)) * 1e6
    q = quantize(g, h)
    for real, ints, unit in ((g, q.g, q.g_unit), (h, q.h, q.h_unit)):
        assert (np.frexp(unit)[0] == 0.5).all()
        assert (np.abs(ints * unit - real) <= unit / 2).all()
        largest = np.abs(ints).max(axis=0)
        assert ((largest <= 2**30) & (largest >= 2**29)).all()


def test_half_is_half_of_the_range():
    q = quantize(np.array([[-0.5]]), np.array([[0.5]]))
    assert (q.g.item(), q.h.item()) == (-(2**29), 2**29)


def test_whole_weights_are_exact():
    w = np.array([[1.0], [3.0], [1000.0]])
    q = quantize(-w, w)
    assert (q.h * q.h_unit == w).all()
    assert (q.g * q.g_unit == -w).all()


def test_a_row_counts_even_if_its_hessian_is_tiny():
    q = quantize(np.array([[1.0], [1.0]]), np.array([[1.0], [1e-16]]))
    assert q.h.min() == 1


def test_gradients_that_are_all_zero_are_zero():
    q = quantize(np.zeros((4, 1)), np.ones((4, 1)))
    assert not q.g.any()


@given(st.integers(1, 2**40))
@settings(max_examples=100, deadline=None)
def test_sums_over_all_rows_fit_sixty_one_bits(n_rows):
    bits = fraction_bits_for(n_rows)
    assert n_rows * 2**bits <= 2**61
    assert bits == 30 or (n_rows * 2 ** (bits + 1) > 2**61)


@pytest.mark.parametrize(("g", "h"), [(np.nan, 1.0), (np.inf, 1.0), (0.0, np.inf), (0.0, -1.0)])
def test_what_is_no_gradient_is_refused(g, h):
    with pytest.raises(ValueError, match=r"finite|negative"):
        quantize(np.array([[g]]), np.array([[h]]))
