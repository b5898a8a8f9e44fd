"""Objectives: XGBoost's trees on the same cuts, leaves refitted like its own, and functions of the user's own."""

from __future__ import annotations

import numpy as np
import pytest
import xgboost as xgb
from sklearn.base import clone
from sklearn.datasets import load_diabetes

from tests.secureboost.functions import logistic, softmax, squared
from tests.secureboost.small import WEAK, some_data
from tests.secureboost.test_xgboost_parity import (
    CutClassifier,
    CutRegressor,
    as_singles,
    assert_same_trees,
)
from vfltree import SecureBoostClassifier, SecureBoostRegressor
from vfltree.binning import BinMapper

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]
XD, YD = load_diabetes(return_X_y=True)
XD, YD = as_singles(XD), as_singles(YD)
MAX_BIN, ETA, DEPTH = 32, 0.3, 4


def both(X, y, rounds, weights=None, obj=None, kind=CutRegressor, **parameters):
    """XGBoost and ours on XGBoost's cuts, two parties; obj is a function of (y, raw)."""
    matrix = xgb.QuantileDMatrix(X, label=y, weight=weights, max_bin=MAX_BIN)
    names = {"quantile_alpha", "huber_slope", "objective", "base_score", "max_delta_step"}
    theirs = {
        "tree_method": "hist",
        "max_bin": MAX_BIN,
        "max_depth": DEPTH,
        "eta": ETA,
        "nthread": 1,
        **parameters,
    }
    assert set(parameters) <= names

    def fobj(raw, data):
        w = data.get_weight() if data.get_weight().size else np.ones(data.num_row())
        return [part * w for part in obj(data.get_label(), raw)]

    booster = xgb.train(theirs, matrix, rounds, obj=None if obj is None else fobj)
    parameters = {**parameters, "objective": parameters["objective"] if obj is None else obj}
    partition = {"a": range(X.shape[1] // 2), "b": range(X.shape[1] // 2, X.shape[1])}
    model = kind(
        rounds, max_depth=DEPTH, partition=partition, encryption="none", random_state=0, **parameters
    )
    model.all_cuts = BinMapper.from_xgboost_cuts(*matrix.get_quantile_cut()).cuts
    return booster, matrix, model.fit(X, y, sample_weight=weights)


WEIGHTS = np.random.default_rng(0).integers(1, 4, len(YD)).astype(float)
CASES = [
    pytest.param({"objective": "reg:absoluteerror"}, None, id="absolute"),
    pytest.param({"objective": "reg:absoluteerror"}, WEIGHTS, id="absolute weighted"),
    pytest.param({"objective": "reg:quantileerror", "quantile_alpha": 0.8}, None, id="quantile"),
    pytest.param({"objective": "reg:quantileerror", "quantile_alpha": 0.8}, WEIGHTS, id="quantile weighted"),
    pytest.param({"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.5, 0.9]}, None, id="quantiles"),
    pytest.param({"objective": "reg:absoluteerror", "base_score": 100.0}, None, id="absolute, base score"),
    pytest.param({"objective": "reg:pseudohubererror", "huber_slope": 20.0}, None, id="huber far off"),
    pytest.param(
        {"objective": "reg:pseudohubererror", "huber_slope": 20.0, "base_score": 150.0}, None, id="huber"
    ),
    pytest.param(
        {"objective": "reg:pseudohubererror", "huber_slope": 20.0, "base_score": 150.0},
        WEIGHTS,
        id="huber weighted",
    ),
    pytest.param({"objective": "count:poisson"}, None, id="poisson"),
    pytest.param({"objective": "count:poisson", "max_delta_step": 0.2}, WEIGHTS, id="poisson weighted"),
]


@pytest.mark.parametrize(("parameters", "weights"), CASES)
def test_whole_trees_are_xgboosts(parameters, weights):
    booster, matrix, model = both(XD, YD, 8, weights, **parameters)
    assert_same_trees(model, booster, matrix)
    np.testing.assert_allclose(model.predict(XD), booster.predict(matrix), rtol=1e-5)


def test_leaves_of_absolute_error_are_medians_of_what_is_left():
    """One tree at learning rate 1: every leaf predicts the median of its rows."""
    model = SecureBoostRegressor(
        1, max_depth=2, learning_rate=1.0, objective="reg:absoluteerror", encryption="none"
    ).fit(XD, YD)
    leaves, found = model.apply(XD)[:, 0], model.predict(XD)
    assert len(np.unique(leaves)) == 4
    for leaf in np.unique(leaves):
        assert found[leaves == leaf] == pytest.approx(np.median(YD[leaves == leaf]), rel=1e-6)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_a_function_gives_the_trees_it_gives_in_xgboost(weights):
    booster, matrix, model = both(XD, YD, 8, weights, obj=squared, objective="reg:squarederror")
    assert_same_trees(model, booster, matrix)
    np.testing.assert_allclose(model.predict(XD), booster.predict(matrix), rtol=1e-5)


def test_a_function_of_two_classes_is_read_through_the_logistic_function():
    X, y = some_data("binary", n_rows=500)
    X = as_singles(X)
    booster, matrix, model = both(
        X, y.astype(float), 10, obj=logistic, kind=CutClassifier, objective="binary:logistic"
    )
    assert_same_trees(model, booster, matrix)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], booster.predict(matrix), atol=1e-5)


def test_a_function_of_five_classes_trains_like_the_built_in_one():
    X, y = some_data("five")
    builtin = SecureBoostClassifier(3, max_depth=3, encryption="none", base_score=0.5).fit(X, y)
    own = clone(builtin).set_params(objective=softmax).fit(X, y)
    np.testing.assert_allclose(own.predict_proba(X), builtin.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize(
    ("objective", "y"),
    [
        ("reg:absoluteerror", YD),
        ("reg:quantileerror", YD),
        ("reg:pseudohubererror", YD / 50),
        (squared, YD),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_encrypted_is_plain(objective, y):
    X, y = XD[:80, :5], y[:80]
    kinds = [{"encryption": "none"}, WEAK]
    weights = None
    if callable(objective):  # it crosses to a process by its name; weights reach it everywhere
        kinds, weights = [*kinds, {"network": "process", **WEAK}], WEIGHTS[:80]
    models = [
        SecureBoostRegressor(
            2,
            max_depth=3,
            objective=objective,
            quantile_alpha=[0.2, 0.9],
            subsample=0.8,
            random_state=3,
            **kind,
        ).fit(X, y, sample_weight=weights)
        for kind in kinds
    ]
    for model in models[1:]:
        assert model._active_model == models[0]._active_model
        assert model._passive_models == models[0]._passive_models
    assert (models[0].predict(X) == models[-1].predict(X)).all()


# ---- what is refused, before a key is made


@pytest.fixture
def no_key(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a key was made")

    monkeypatch.setattr("vfltree.growing.leader.obtain_keypair", refuse)


@pytest.mark.parametrize(
    ("kind", "parameters", "words"),
    [
        (SecureBoostClassifier, {"objective": "binary:logitraw"}, "'binary:logistic', 'multi:softprob'"),
        (
            SecureBoostClassifier,
            {"objective": "reg:squarederror"},
            "classes must be one of 'binary:logistic'",
        ),
        (SecureBoostRegressor, {"objective": "binary:logistic"}, "'reg:squarederror', 'reg:absoluteerror'"),
        (SecureBoostRegressor, {"objective": 3}, "got 3"),
        (SecureBoostRegressor, {"quantile_alpha": 1.0}, r"quantile_alpha must lie in \(0, 1\), got 1.0"),
        (SecureBoostRegressor, {"quantile_alpha": [0.5, 0.0]}, "quantile_alpha .*got 0.0"),
        (SecureBoostRegressor, {"quantile_alpha": []}, "one number at least"),
        (SecureBoostRegressor, {"huber_slope": 0}, "huber_slope"),
        (SecureBoostRegressor, {"class_weight": "balanced"}, "class_weight is for classifiers"),
        (SecureBoostRegressor, {"objective": "count:poisson", "base_score": 0.0}, "base_score"),
        (
            SecureBoostRegressor,
            {"objective": lambda y, raw: (raw - y, 1), "network": "process"},
            "objective: .*lambda.*top level of a module",
        ),
        (
            SecureBoostRegressor,
            {"objective": type("F", (), {"__call__": squared})(), "network": "process"},
            "objective: F cannot be imported by name",
        ),
    ],
)
def test_wrong_objectives_are_refused(kind, parameters, words, no_key):
    with pytest.raises(ValueError, match=words):
        kind(1, **parameters).fit(XD[:20], (YD[:20] > 100).astype(int))


def test_two_classes_only_for_binary_logistic(no_key):
    X, y = some_data("five")
    with pytest.raises(ValueError, match="for 2 classes, y holds 5"):
        SecureBoostClassifier(1, objective="binary:logistic").fit(X, y)


@pytest.mark.parametrize("y", [-np.ones(20), np.zeros(20)])
def test_counts_are_not_negative_and_not_all_zero(y, no_key):
    with pytest.raises(ValueError, match="count:poisson needs y of 0 or more, and one above 0"):
        SecureBoostRegressor(1, objective="count:poisson").fit(XD[:20], y)


def test_what_a_function_does_wrong_is_said():
    model = SecureBoostRegressor(1, objective=lambda y, raw: (raw - y, 0 * raw - 1), encryption="none")
    with pytest.raises(ValueError, match="hessians must be 0 or more"):
        model.fit(XD, YD)


def test_softmax_of_two_classes_can_be_asked_for():
    X, y = some_data("binary")
    model = SecureBoostClassifier(5, objective="multi:softprob", encryption="none").fit(X, y)
    proba, decision = model.predict_proba(X), model.decision_function(X)
    assert decision.shape == (len(X),)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert (model.predict(X) == model.classes_[proba.argmax(axis=1)]).all()
    assert model.score(X, y) > 0.9


# ---- weights of classes


def test_class_weights_are_sample_weights():
    X, y = some_data("five")
    own = {k: 1.0 + k for k in range(5)}
    rows = np.random.default_rng(0).integers(1, 3, len(y)).astype(float)
    model = SecureBoostClassifier(2, max_depth=3, encryption="none", class_weight=own).fit(X, y, rows)
    same = SecureBoostClassifier(2, max_depth=3, encryption="none").fit(X, y, rows * (1.0 + y))
    assert model._active_model == same._active_model
    assert model._passive_models == same._passive_models


def test_balanced_classes_weigh_the_same():
    X, y = some_data("binary", n_rows=400)
    y = (np.arange(400) < 40).astype(int)
    model = SecureBoostClassifier(1, max_depth=1, encryption="none", class_weight="balanced").fit(X, y)
    assert model.base_score_ == pytest.approx(0, abs=1e-6)  # both halves of the weight


def test_a_class_of_weight_0_does_not_enter():
    X, y = some_data("five")
    weights = {4: 0.0}
    model = SecureBoostClassifier(2, max_depth=3, encryption="none", class_weight=weights).fit(X, y)
    judge = SecureBoostClassifier(2, max_depth=3, encryption="none").fit(X, y, (y < 4).astype(float))
    assert model.classes_.tolist() == [0, 1, 2, 3, 4]
    assert model._active_model == judge._active_model
    assert model.n_rows_ == len(y) and (model.predict(X) < 4).all()
