"""Exact residuals: scikit-learn's coefficients on pooled data, and scores hidden among several passive parties."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

from tests.linear.small import PLAIN, WEAK, estimator, some_data
from vfltree.linear.families import FAMILIES

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]

JUDGES = {
    "binary": LogisticRegression(C=2.0, tol=1e-10, max_iter=5000),
    "three": LogisticRegression(C=2.0, tol=1e-10, max_iter=5000),
    "linear": Ridge(alpha=0.5),
    "poisson": PoissonRegressor(alpha=0.1, tol=1e-10, max_iter=5000),
}
STRENGTH = {"binary": {"C": 2.0}, "three": {"C": 2.0}, "linear": {"alpha": 0.5}, "poisson": {"alpha": 0.1}}


@pytest.mark.parametrize("n_parties", [2, 3])
@pytest.mark.parametrize("task", list(JUDGES))
def test_coefficients_agree_with_scikit_learn_on_pooled_data(task, n_parties):
    X, y = some_data(task)
    X[:, 5] = X[:, 5] / 20 - 5
    weights = np.random.default_rng(3).integers(0, 3, len(y)).astype(float)
    how = {"residual": "exact", "tol": 1e-7, "max_iter": 1500, **STRENGTH[task]}
    model = estimator(task, n_parties, **how, **PLAIN).fit(X, y, weights)
    judge = JUDGES[task].fit(X, y, weights)
    assert np.abs(model.coef_ - judge.coef_).max() < 1e-4
    assert np.abs(model.intercept_ - judge.intercept_).max() < 1e-4
    assert np.abs(model.predict(X[:50]) == judge.predict(X[:50])).all() or task in ("linear", "poisson")


def test_one_against_the_rest_agrees_with_three_binary_models():
    X, y = some_data("three")
    X[:, 5] = X[:, 5] / 20 - 5
    how = {"residual": "exact", "tol": 1e-7, "max_iter": 800}
    model = estimator("three", multi_class="ovr", **how, **PLAIN).fit(X, y)
    for k in range(3):
        judge = LogisticRegression(tol=1e-10, max_iter=5000).fit(X, y == k)
        assert np.abs(model.coef_[k] - judge.coef_[0]).max() < 1e-4


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("task", list(JUDGES))
@pytest.mark.parametrize("n_parties", [2, 3])
def test_encrypted_training_gives_the_plain_model(task, n_parties):
    X, y = some_data(task)
    weights = np.random.default_rng(3).uniform(0, 3, len(y))
    plain, encrypted = (
        estimator(task, n_parties, residual="exact", max_iter=3, **kind).fit(X, y, weights)
        for kind in (PLAIN, WEAK)
    )
    assert plain._halves() == encrypted._halves()
    assert encrypted.costs_["masks"] == sum(encrypted.coordinator_log_.opened)
    assert "active" not in encrypted.coordinator_log_.parties


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_losses_are_exact_and_fall():
    X, y = some_data("binary")
    model = estimator("binary", residual="exact", max_iter=20, tol=0, C=np.inf, **PLAIN).fit(X, y)
    assert model.loss_curve_[0] == pytest.approx(np.log(2))
    assert len(model.loss_curve_) == 20
    assert model.loss_curve_[-1] < 0.7 * np.log(2)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_large_margins_give_finite_losses_and_probabilities():
    X, y = some_data("binary")
    model = estimator("binary", residual="exact", max_iter=60, tol=0, C=np.inf, **PLAIN).fit(X, y)
    P = model.predict_proba(X * 1e4)
    assert np.isfinite(P).all() and np.abs(P.sum(axis=1) - 1).max() < 1e-12
    margins = np.array([[-1000.0], [1000.0]])
    with np.errstate(all="raise", under="ignore"):
        assert FAMILIES["binomial"].losses(margins, np.array([[1.0], [1.0]])).tolist() == [1000.0, 0.0]
        both = np.hstack([margins, -margins])
        assert FAMILIES["multinomial"].losses(both, np.array([[1.0, 0.0]] * 2)).tolist() == [2000.0, 0.0]
