"""Residuals of order 3: powers under encryption that pass along any number of parties."""

from __future__ import annotations

import numpy as np
import pytest

from tests.linear.small import PLAIN, WEAK, estimator, some_data
from vfltree.linear.approximations import logistic_polynomial

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@pytest.mark.parametrize("n_parties", [2, 3, 4])
@pytest.mark.parametrize("task", ["binary", "three"])
def test_encrypted_training_gives_the_plain_model(task, n_parties):
    X, y = some_data(task, n_rows=60)
    weights = np.random.default_rng(4).uniform(0, 2, len(y))
    how = {"order": 3, "max_iter": 2, "multi_class": "ovr", "C": 0.1}
    plain, encrypted = (
        estimator(task, n_parties, **how, **kind).fit(X, y, weights) for kind in (PLAIN, WEAK)
    )
    assert plain._halves() == encrypted._halves()
    assert encrypted.costs_["exponent_bits"] > 0


@pytest.mark.parametrize("kind", ["taylor", "least_squares", "minimax"])
@pytest.mark.parametrize("n_parties", [2, 3])
def test_descent_agrees_with_a_plain_implementation_of_the_polynomial(kind, n_parties):
    X, y = some_data("binary")
    X[:, 5] = X[:, 5] / 20 - 5
    how = {"optimizer": "sgd", "learning_rate": 0.5, "max_iter": 20, "tol": 0.0, "C": 0.3}
    model = estimator("binary", n_parties, residual=kind, order=3, interval=5.0, **how, **PLAIN).fit(X, y)
    c = logistic_polynomial(kind, 3, 5.0)
    w, b = np.zeros(7), 0.0
    for _ in range(20):
        d = np.polynomial.polynomial.polyval(X @ w + b, c) - y
        w, b = w - 0.5 * (X.T @ d + w / 0.3) / len(y), b - 0.5 * d.mean()
    assert np.abs(model.coef_[0] - w).max() < 1e-4
    assert abs(model.intercept_[0] - b) < 1e-4


def test_order_three_comes_closer_to_the_logistic_model_than_order_one():
    X, y = some_data("binary")
    X[:, 5] = X[:, 5] / 20 - 5
    how = {"C": 0.1, "max_iter": 200, "tol": 1e-6}
    exact = estimator("binary", residual="exact", **how, **PLAIN).fit(X, y).coef_
    distances = [
        np.abs(
            estimator("binary", residual="least_squares", interval=4.0, order=order, **how, **PLAIN)
            .fit(X, y)
            .coef_
            - exact
        ).max()
        for order in (1, 3)
    ]
    assert distances[1] < 0.5 * distances[0]


def test_every_party_is_asked_once_a_step():
    X, y = some_data("binary", n_rows=40)
    model = estimator("binary", 4, order=3, max_iter=2, tol=0, **WEAK).fit(X, y)
    asked = model.traffic_[model.traffic_["kind"] == "NextPowers"]
    assert list(asked["messages"]) == [2, 2, 2]
