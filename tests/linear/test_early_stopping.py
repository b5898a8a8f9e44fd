"""The loss under encryption, and what it stops."""

from __future__ import annotations

import numpy as np
import pytest

from tests.linear.small import PLAIN, WEAK, estimator, some_data
from vfltree.linear.early_stopping import Patience

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def taylor_loss(task, z, y):
    """To second order at 0 (for counts: at the mean), per row."""
    if task == "linear":
        return (z - y) ** 2 / 2
    if task == "binary":
        return np.log(2) + z / 2 - y * z + z**2 / 8
    if task == "poisson":
        start = np.log(y.mean())
        step = z - start
        return y.mean() * (1 + step + step**2 / 2) - y * z
    Y = (y[:, None] == np.arange(3)).astype(float)
    return np.log(3) + (z / 3 - Y * z).sum(axis=1) + (z**2).sum(axis=1) / 6 - z.sum(axis=1) ** 2 / 18


@pytest.mark.parametrize("n_parties", [2, 3])
@pytest.mark.parametrize("task", ["binary", "three", "linear", "poisson"])
def test_the_loss_is_that_of_the_approximation(task, n_parties):
    X, y = some_data(task)
    how = {"early_stopping": True, "tol": 0.0, "n_iter_no_change": 50}
    one = estimator(task, n_parties, max_iter=4, **how, **PLAIN).fit(X, y)
    two = estimator(task, n_parties, max_iter=3, **how, **PLAIN).fit(X, y)
    z = X @ two.coef_.T + two.intercept_
    z = z if task == "three" else z.ravel()
    assert one.loss_curve_[3] == pytest.approx(taylor_loss(task, z, y).mean(), abs=1e-4)
    assert one.loss_curve_[:3] == two.loss_curve_


@pytest.mark.parametrize("n_parties", [2, 3])
@pytest.mark.parametrize("task", ["binary", "three"])
def test_the_encrypted_loss_is_the_plain_one(task, n_parties):
    X, y = some_data(task, n_rows=60)
    weights = np.random.default_rng(0).uniform(0, 2, len(y))
    how = {"early_stopping": True, "optimizer": "adam", "batch_size": 30, "allow_small_batches": True}
    plain, encrypted = (
        estimator(task, n_parties, max_iter=2, **how, **kind).fit(X, y, weights) for kind in (PLAIN, WEAK)
    )
    assert plain._halves() == encrypted._halves()
    assert len(encrypted.loss_curve_) == 2
    n_outputs = len(encrypted.intercept_)
    own = len(encrypted.partition["active"]) + 1
    assert encrypted.coordinator_log_.opened[0] == 4 * (
        own * n_outputs + 1
    )  # columns + 1 values, and the loss


@pytest.mark.parametrize("residual", ["taylor", "exact"])
def test_training_stops_when_the_loss_no_longer_falls(residual):
    X, y = some_data("binary")
    how = {"residual": residual, "early_stopping": True, "n_iter_no_change": 3, "max_iter": 100}
    model = estimator("binary", tol=1e-3, **how, **PLAIN).fit(X, y)
    assert model.n_iter_ < 80
    assert len(model.loss_curve_) == model.n_iter_
    longer = estimator("binary", tol=1e-6, **how, **PLAIN).fit(X, y)
    assert longer.n_iter_ > model.n_iter_


def test_patience_counts_epochs_without_a_better_loss():
    patience = Patience(2, 0.1)
    assert [patience.is_over(loss) for loss in (1.0, 0.8, 0.75, 0.6, 0.55, 0.54)] == [*[False] * 5, True]
