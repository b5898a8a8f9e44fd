"""Encrypted training gives the plain coefficients, bit for bit: every backend, network, kind of data and exchange."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from tests.linear.small import PLAIN, WEAK, estimator, some_data
from vflcrypto import kernels

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def assert_same_model(one, other):
    assert one._halves() == other._halves()  # messages: arrays are compared bit for bit
    assert (one.coef_ == other.coef_).all() and np.isfinite(one.coef_).all()


def fitted(task, n_parties, X, y, sample_weight=None, **parameters):
    settings = {"max_iter": 3, **parameters}
    return estimator(task, n_parties, **settings).fit(X, y, sample_weight)


@pytest.mark.parametrize("backend", kernels.backends())
@pytest.mark.parametrize("n_parties", [2, 3])
@pytest.mark.parametrize("task", ["binary", "three", "linear", "poisson"])
def test_every_family(task, n_parties, backend, monkeypatch):
    monkeypatch.setenv("VFL_BACKEND", backend)
    X, y = some_data(task)
    plain, encrypted = (fitted(task, n_parties, X, y, **kind) for kind in (PLAIN, WEAK))
    assert_same_model(plain, encrypted)
    assert encrypted.costs_["decryptions"] == sum(encrypted.coordinator_log_.opened) > 0


@pytest.mark.parametrize("n_parties", [2, 3])
def test_dense_and_sparse_features(n_parties):
    X, y = some_data("binary")
    X[np.abs(X) < 0.5] = 0.0
    models = [
        fitted("binary", n_parties, kind(X), y, **how)
        for kind in (np.asarray, sparse.csr_matrix, sparse.coo_array)
        for how in (PLAIN, WEAK)
    ]
    for model in models[1:]:
        assert_same_model(models[0], model)


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "adagrad"])
def test_every_optimizer_in_batches(optimizer):
    X, y = some_data("binary")
    X[:, 5] /= 100
    how = {"optimizer": optimizer, "batch_size": 50, "allow_small_batches": True, "l1_ratio": 0.3}
    plain, encrypted = (fitted("binary", 2, X, y, **how, **kind) for kind in (PLAIN, WEAK))
    assert_same_model(plain, encrypted)
    assert encrypted.coordinator_log_.steps == 3 * 2


@pytest.mark.parametrize("task", ["binary", "three", "poisson"])
def test_weights(task):
    X, y = some_data(task)
    weights = np.random.default_rng(2).uniform(0, 3, len(y))
    weights[:5] = 0.0
    plain, encrypted = (fitted(task, 2, X, y, weights, **kind) for kind in (PLAIN, WEAK))
    assert_same_model(plain, encrypted)


@pytest.mark.parametrize("n_parties", [2, 3])
def test_one_process_and_several(n_parties):
    X, y = some_data("binary", n_rows=60)
    here, there = (
        fitted("binary", n_parties, X, y, max_iter=2, network=network, **WEAK)
        for network in ("inprocess", "process")
    )
    assert_same_model(here, there)
    assert here.traffic_.equals(there.traffic_)
    assert (here.predict_proba(X) == there.predict_proba(X)).all()


def test_threads_change_nothing():
    X, y = some_data("binary")
    one, two = (fitted("binary", 2, X, y, n_jobs=n_jobs, **WEAK) for n_jobs in (1, 2))
    assert_same_model(one, two)
