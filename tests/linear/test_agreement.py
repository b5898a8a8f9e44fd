"""Coefficients agree with plain implementations: of the same approximation, and scikit-learn's on pooled data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge

from tests.linear.small import PLAIN, WEAK, dealt, estimator, some_data
from vfltree.linear.approximations import largest_error, logistic_polynomial
from vfltree.linear.columns import SCORE_BITS, FixedColumns

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def taylor_descent(X, y, rate, steps, C, fraction_bits=None):
    """Gradient descent on Taylor logistic regression in floats; coefficients are multiplied as they are sent."""
    w, b = np.zeros(X.shape[1]), 0.0
    for _ in range(steps):
        sent = w if fraction_bits is None else np.ldexp(np.rint(np.ldexp(w, fraction_bits)), -fraction_bits)
        d = (X @ sent + b) / 4 + 0.5 - y
        w, b = w - rate * (X.T @ d / len(y) + w / (C * len(y))), b - rate * d.mean()
    return w, b


@pytest.mark.parametrize("n_parties", [2, 3])
def test_descent_agrees_with_a_plain_taylor_implementation(n_parties):
    X, y = some_data("binary")
    X[:, 5] = X[:, 5] / 20 - 5
    how = {"optimizer": "sgd", "learning_rate": 0.7, "max_iter": 25, "tol": 0.0, "C": 0.5}
    model = estimator("binary", n_parties, **how, **WEAK).fit(X, y)
    columns = FixedColumns(X)
    held = np.ldexp(columns.values.astype(float), -columns.exponents)
    for data, bits, tolerance in ((held, SCORE_BITS + 20 - columns.exponents, 1e-9), (X, None, 1e-4)):
        w, b = taylor_descent(data, y, 0.7, 25, 0.5, bits)
        assert np.abs(model.coef_[0] - w).max() < tolerance
        assert abs(model.intercept_[0] - b) < tolerance


@pytest.mark.parametrize("alpha", [0.0, 3.0])
@pytest.mark.parametrize("n_parties", [2, 3])
def test_linear_and_ridge_regression_agree_with_scikit_learn(n_parties, alpha):
    X, y = some_data("linear")
    weights = np.random.default_rng(1).uniform(0.1, 2.0, len(y))
    model = estimator("linear", n_parties, alpha=alpha, tol=1e-8, max_iter=400, **PLAIN).fit(X, y, weights)
    judge = (Ridge(alpha) if alpha else LinearRegression()).fit(X, y, weights)
    assert np.abs(model.coef_ - judge.coef_).max() < 1e-4
    assert abs(model.intercept_ - judge.intercept_) < 1e-2  # 100 times a coefficient lies in it
    assert np.abs(model.predict(X) - judge.predict(X)).max() < 1e-4


def test_targets_of_any_size_are_learnt():
    X, y = some_data("linear")
    small = estimator("linear", tol=1e-7, max_iter=200, **PLAIN).fit(X, y)
    for scale in (1e-9, 1e9):
        model = estimator("linear", tol=1e-7, max_iter=200, **PLAIN).fit(X, y * scale)
        assert np.abs(model.coef_ / scale - small.coef_).max() < 1e-5


def test_taylor_logistic_regression_is_least_squares():
    """To first order the logistic residual is (z - 4 (y - 1/2)) / 4."""
    X, y = some_data("binary")
    model = estimator("binary", C=np.inf, tol=1e-9, max_iter=500, **PLAIN).fit(X, y)
    judge = LinearRegression().fit(X, 4 * (y - 0.5))
    assert np.abs(model.coef_[0] - judge.coef_).max() < 1e-4


def test_columns_of_any_scale_are_learnt_by_newton():
    X, y = some_data("binary")
    factors = 10.0 ** np.arange(-6, 8, 2)
    one, other = (
        estimator("binary", C=np.inf, tol=0, max_iter=40, **PLAIN).fit(Z, y) for Z in (X, X * factors)
    )
    assert np.abs(one.coef_ - other.coef_ * factors).max() < 1e-3
    assert one.score(X, y) == other.score(X * factors, y) > 0.8


@pytest.mark.parametrize("order", [1, 3])
@pytest.mark.parametrize("interval", [3.0, 6.0])
def test_fitted_polynomials_beat_the_series_on_their_interval(order, interval):
    errors = {
        kind: largest_error(logistic_polynomial(kind, order, interval), interval)
        for kind in ("taylor", "least_squares", "minimax")
    }
    assert errors["minimax"] < errors["least_squares"] < errors["taylor"]


def test_the_series_is_the_known_one():
    assert logistic_polynomial("taylor", 3, 1.0) == (0.5, 0.25, 0.0, -1 / 48)
    assert logistic_polynomial("taylor", 1, 1.0) == (0.5, 0.25)


def test_minimax_alternates_between_equal_errors():
    """Chebyshev's characterisation, which no other polynomial has: n + 2 extremes of one size on the right half."""
    c = logistic_polynomial("minimax", 3, 5.0)
    z = np.linspace(0, 5, 20001)
    error = np.polynomial.polynomial.polyval(z, c) - 1 / (1 + np.exp(-z))
    turns = np.flatnonzero(np.diff(np.sign(np.diff(error)))) + 1
    extremes = error[[*turns, -1]]
    assert len(extremes) == 3
    assert (np.sign(extremes[1:]) != np.sign(extremes[:-1])).all()
    assert np.abs(np.abs(extremes) / np.abs(extremes).max() - 1).max() < 0.01


@pytest.mark.parametrize("n_parties", [2, 3])
def test_the_split_between_parties_hardly_matters(n_parties):
    X, y = some_data("three")
    models = [
        estimator("three", partition=partition, C=1.0, tol=1e-7, max_iter=400, **PLAIN).fit(X, y)
        for partition in (dealt(7, n_parties), {"a": [6, 5], "b": [4, 3, 2, 1, 0]})
    ]
    assert np.abs(models[0].coef_ - models[1].coef_).max() < 1e-4
