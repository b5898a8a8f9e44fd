"""Rows of weight 0, their own or their class's, take no part in any estimator; their labels are still classes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from vfltree import (
    NotEncryptedWarning,
    SecureBoostClassifier,
    SecureForestClassifier,
    SecureLinearRegression,
    SecureLogisticRegression,
    SecurePoissonRegression,
)

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{category.__module__}.{category.__qualname__}")
    for category in (NotEncryptedWarning, ConvergenceWarning)
]
CLASSIFIERS = {
    "boosting": (SecureBoostClassifier, {"n_estimators": 2, "max_depth": 2}),
    "forest": (SecureForestClassifier, {"n_estimators": 3, "max_depth": 3, "random_state": 0}),
    "linear": (SecureLogisticRegression, {"max_iter": 30}),
    "ovr": (SecureLogisticRegression, {"max_iter": 30, "multi_class": "ovr", "residual": "exact"}),
}


def classifier(name, **parameters):
    kind, own = CLASSIFIERS[name]
    return kind(**own, encryption="none", **parameters)


def three_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    return X, np.array(["a", "b", "c"])[(X[:, 0] + X[:, 2] > 0) + (rng.random(90) < 0.3).astype(int)]


def with_outliers(X, y, label):
    """The rows of a label moved far away: whoever looks at them, at their bins or their bounds, finds another model."""
    return np.where((y == label)[:, None], 1e3 * X, X)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_class_of_weight_0_is_left_out_but_stays_a_class(name):
    X, y = three_classes()
    weights = (y != "c").astype(float)
    by_class = classifier(name, class_weight={"c": 0.0}).fit(with_outliers(X, y, "c"), y)
    by_rows = classifier(name).fit(X, y, weights)
    assert by_class.classes_.tolist() == ["a", "b", "c"]
    P = by_class.predict_proba(X)
    assert (by_rows.predict_proba(X) == P).all()
    assert P.shape == (90, 3) and np.isfinite(P).all()
    assert set(by_class.predict(X)) == {"a", "b"}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_rows_of_weight_0_are_as_good_as_absent(name):
    X, y = three_classes()
    used = np.arange(90) % 3 > 0
    model = classifier(name).fit(np.where(used[:, None], X, 1e3), y, used.astype(float))
    same = classifier(name).fit(X[used], y[used])
    assert (model.predict_proba(X) == same.predict_proba(X)).all()


@pytest.mark.parametrize("kind", [SecureLinearRegression, SecurePoissonRegression])
def test_regressions_leave_out_rows_of_weight_0(kind):
    X, _ = three_classes()
    y, used = np.exp(X[:, 0] / 2), np.arange(90) % 3 > 0
    weights = np.where(used, 1.0 + np.arange(90) % 2, 0.0)
    model = kind(encryption="none", share_coef=True).fit(np.where(used[:, None], X, 1e3), y, weights)
    same = kind(encryption="none", share_coef=True).fit(X[used], y[used], weights[used])
    assert (model.coef_ == same.coef_).all() and model.intercept_ == same.intercept_


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_balanced_counts_the_classes_that_have_weight(name):
    X, y = three_classes()
    used = y != "c"
    model = classifier(name, class_weight="balanced").fit(X, y, used.astype(float))
    odds = {label: used.sum() / (2 * (y == label).sum()) for label in ("a", "b")}
    same = classifier(name, class_weight={**odds, "c": 0.0}).fit(X, y)
    assert (model.predict_proba(X) == same.predict_proba(X)).all()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_one_class_that_has_weight_is_always_predicted(name):
    X, y = three_classes()
    model = classifier(name, class_weight={"b": 0.0, "c": 0.0}).fit(X, y)
    assert set(model.predict(X)) == {"a"}
    assert np.isfinite(model.predict_proba(X)).all()
    two = y != "c"
    model = classifier(name, class_weight={"a": 0.0}).fit(X[two], y[two])
    assert set(model.predict(X)) == {"b"}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_no_weight_at_all_is_refused(name):
    X, y = three_classes()
    with pytest.raises(ValueError, match="every class weight is 0"):
        classifier(name, class_weight=dict.fromkeys("abc", 0.0)).fit(X, y)
    with pytest.raises(ValueError, match=r"(?i)sample weight"):
        classifier(name).fit(X, y, np.zeros(90))


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize(
    ("value", "error"), [(3, TypeError), ("heavy", ValueError), ([1, 2], TypeError), ({"a": -1}, ValueError)]
)
def test_what_is_no_weight_of_classes_is_named(name, value, error):
    X, y = three_classes()
    with pytest.raises(error, match="class_weight must be"):
        classifier(name, class_weight=value).fit(X, y)


def test_out_of_bag_shares_know_rows_of_no_weight_not():
    X, y = three_classes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three trees leave some rows without an answer
        model = classifier("forest", oob_score=True, class_weight={"c": 0.0}).fit(X, y)
    assert model.oob_decision_function_.shape == (90, 3)
    assert np.isnan(model.oob_decision_function_[y == "c"]).all()
    assert not np.nanmax(model.oob_decision_function_[:, 2]) > 0
