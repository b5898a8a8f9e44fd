"""An encrypted forest is the plain one, bit for bit: every backend, network, number of threads and kind of data."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.forest.small import forest
from tests.secureboost.small import WEAK, assert_same_model, some_data, thirds
from vflcrypto import kernels
from vfltree.forest import groups

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
    pytest.mark.filterwarnings("ignore:.*out-of-bag"),
]


@cache
def plain(task: str, n_parties: int, missing: bool):
    X, y = some_data(task, missing=missing)
    return forest(task, partition=thirds(X.shape[1], n_parties), encryption="none").fit(X, y)


# Backends give the same bytes (tests/crypto); processes take seconds each, and one backend is enough for them.
WAYS = [
    way
    for backend in kernels.backends()
    for way in (("inprocess", 2, False, 1, backend), ("inprocess", 3, True, 2, backend))
]
WAYS += [("process", 3, True, 1, kernels.backends()[0])]


@pytest.mark.parametrize(("network", "n_parties", "missing", "n_jobs", "backend"), WAYS)
@pytest.mark.parametrize("task", ["binary", "five", "regression"])
def test_encrypted_training_equals_plain(task, network, n_parties, missing, n_jobs, backend, monkeypatch):
    monkeypatch.setenv("VFL_BACKEND", backend)
    X, y = some_data(task, missing=missing)
    expected = plain(task, n_parties, missing)
    assert {len(table.ids) > 0 for table in expected._passive_models.values()} == {True}
    partition = thirds(X.shape[1], n_parties)
    model = forest(task, partition=partition, network=network, n_jobs=n_jobs, **WEAK).fit(X, y)
    assert_same_model(model, expected, X)
    assert model.costs_["decryptions"] > 0


@pytest.mark.parametrize(
    "parameters",
    [
        {"criterion": "entropy", "class_weight": "balanced_subsample"},
        {"bootstrap": False, "max_features": None},
        {"oob_score": True, "max_samples": 0.5},
        {"min_samples_leaf": 7, "min_impurity_decrease": 0.01, "class_weight": {0: 3.0}},
        {"min_rows_per_sum": 1, "max_depth": 6},
        {"min_rows_per_sum": 25, "max_features": None},
    ],
    ids=["entropy", "all rows and features", "out of bag", "limits", "sums of any rows", "wide groups"],
)
def test_every_option_gives_the_plain_forest(parameters):
    X, y = some_data("five", missing=True)
    weights = np.random.default_rng(0).random(len(y)) + 0.1
    models = [
        [
            forest("five", **parameters, **encryption).fit(X, y, w)
            for encryption in ({"encryption": "none"}, WEAK)
        ]
        for w in (None, weights)
    ]
    for pair in models:
        assert_same_model(*pair, X)
    assert models[0][0]._active_model != models[1][0]._active_model


def test_weighted_regression_gives_the_plain_forest():
    X, y = some_data("regression", missing=True)
    weights = np.random.default_rng(0).random(len(y)) * 1e6
    models = [
        forest("regression", **encryption).fit(X, y, weights) for encryption in ({"encryption": "none"}, WEAK)
    ]
    assert_same_model(*models, X)


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_trees_do_not_depend_on_which_grow_together(task, monkeypatch):
    X, y = some_data(task, missing=True)
    together = forest(task, 5, encryption="none").fit(X, y)
    monkeypatch.setattr(groups, "SUMS_AT_ONCE", 1)
    alone = forest(task, 5, encryption="none").fit(X, y)
    assert alone.costs_["rounds"] > 3 * together.costs_["rounds"]
    assert_same_model(together, alone, X)


def test_rounds_do_not_grow_with_the_number_of_trees():
    X, y = some_data("binary")
    rounds = [forest("binary", n, encryption="none").fit(X, y).costs_["rounds"] for n in (4, 40)]
    # To join, the targets, the end; per group its roots; per level sums, splits, children (none below the last).
    assert max(rounds) <= 3 + 1 + 3 * 4 - 1


def test_both_networks_count_the_same_traffic():
    X, y = some_data("binary")
    tables = [
        forest("binary", network=network, **WEAK).fit(X, y).traffic_ for network in ("inprocess", "process")
    ]
    assert tables[0].equals(tables[1])


def test_with_all_features_the_secret_order_changes_nothing():
    X, y = some_data("five", missing=True)
    models = [
        forest("five", max_features=None, bootstrap=False, encryption="none", random_state=seed).fit(X, y)
        for seed in range(3)
    ]
    for model in models[1:]:
        assert_same_model(models[0], model, X)
