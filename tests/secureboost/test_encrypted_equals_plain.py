"""Encrypted training gives the plain model, bit for bit: every backend, network, number of threads and kind of data."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.secureboost.small import WEAK, assert_same_model, some_data, thirds
from vflcrypto import kernels
from vfldata import load_credit, load_nursery
from vfltree import SecureBoostClassifier, SecureBoostRegressor

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]


def estimator(task: str, **parameters: Any):
    kind = SecureBoostRegressor if task == "regression" else SecureBoostClassifier
    return kind(2, max_depth=3, random_state=1, **parameters)


@cache
def plain(task: str, n_parties: int, missing: bool):
    X, y = some_data(task, missing=missing)
    return estimator(task, partition=thirds(X.shape[1], n_parties), encryption="none").fit(X, y)


# Backends give the same bytes (tests/crypto); processes take seconds each, and one backend is enough for them.
WAYS = [
    ("inprocess", n_parties, missing, n_jobs, backend)
    for backend in kernels.backends()
    for n_jobs in (1, 2)
    for n_parties in (2, 3)
    for missing in (False, True)
]
WAYS += [("process", n_parties, n_parties == 3, 2, kernels.backends()[0]) for n_parties in (2, 3)]


@pytest.mark.parametrize(("network", "n_parties", "missing", "n_jobs", "backend"), WAYS)
@pytest.mark.parametrize("task", ["binary", "five", "regression"])
def test_encrypted_training_equals_plain(network, task, n_parties, missing, n_jobs, backend, monkeypatch):
    monkeypatch.setenv("VFL_BACKEND", backend)
    X, y = some_data(task, missing=missing)
    expected = plain(task, n_parties, missing)
    assert {len(table.ids) > 0 for table in expected._passive_models.values()} == {True}
    model = estimator(
        task, partition=thirds(X.shape[1], n_parties), network=network, n_jobs=n_jobs, **WEAK
    ).fit(X, y)
    assert_same_model(model, expected, X)
    assert model.costs_["decryptions"] > 0


@pytest.mark.parametrize("task", ["binary", "five", "regression"])
def test_the_secret_feature_order_changes_nothing(task):
    X, y = some_data(task, missing=True)
    partition = thirds(X.shape[1], 3)
    models = [
        estimator(task, partition=partition, encryption="none").set_params(random_state=seed).fit(X, y)
        for seed in range(5)
    ]
    for model in models[1:]:
        assert_same_model(models[0], model, X)


@pytest.mark.parametrize("encryption", [{"encryption": "none"}, WEAK], ids=["none", "paillier"])
def test_both_networks_count_the_same_traffic(encryption):
    X, y = some_data("binary")
    tables = [
        estimator("binary", network=network, **encryption).fit(X, y).traffic_
        for network in ("inprocess", "process")
    ]
    assert tables[0].equals(tables[1])


def test_predictions_of_training_rows_are_the_training_scores():
    """The raw scores that training ended with are what prediction adds up, bit for bit."""
    X, y = some_data("five", missing=True)
    model = estimator("five", encryption="none").fit(X, y)
    raw = np.tile(model.base_score_, (len(X), 1))
    leaves = model.apply(X)
    starts = np.concatenate([[0], np.cumsum(model._active_model.sizes)])
    for tree in range(leaves.shape[1]):
        raw[:, tree % 5] += model._active_model.value[starts[tree] + leaves[:, tree], 0]
    assert (model.decision_function(X) == raw).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["credit", "nursery"])
def test_a_whole_data_set_gives_the_plain_model(name, request):
    data = (
        load_credit(data_home=request.getfixturevalue("data_home"))
        if name == "credit"
        else load_nursery(one_hot="full")
    )
    settings: dict[str, Any] = {"max_depth": 6, "partition": data.partition, "n_jobs": -1, "random_state": 0}
    rounds = 2 if name == "credit" else 1
    fits = [
        SecureBoostClassifier(rounds, **encryption, **settings).fit(data.X_train, data.y_train)
        for encryption in ({"encryption": "none"}, WEAK)
    ]
    assert_same_model(fits[0], fits[1], data.X_test)
    assert fits[1].score(data.X_test, data.y_test) > 0.8
