"""Every way of growing trees: the encrypted model is the plain one, whatever the network, threads and parties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.secureboost.small import WEAK, assert_same_model, some_data, thirds
from tests.secureboost.test_encrypted_equals_plain import estimator

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]

OPTIONS: dict[str, dict[str, Any]] = {
    "max_delta_step": {"max_delta_step": 0.3},
    "bytree": {"colsample_bytree": 0.5},
    "bylevel": {"colsample_bytree": 0.9, "colsample_bylevel": 0.3},
    "one column": {"colsample_bytree": 0.01, "subsample": 0.8},
    "lossguide": {"grow_policy": "lossguide", "max_leaves": 6, "max_depth": 5},
    "max_leaves": {"max_leaves": 5},
    "lossguide and columns": {"grow_policy": "lossguide", "max_leaves": 5, "colsample_bylevel": 0.5},
    "monotone": {"monotone_constraints": [1, 0, 0, 0, -1, 0, -1, 0, 1]},
    "monotone and more": {
        "monotone_constraints": {0: 1, 5: 1, 8: -1},
        "grow_policy": "lossguide",
        "max_leaves": 7,
        "max_delta_step": 0.5,
        "colsample_bytree": 0.8,
        "sampling_method": "goss",
        "top_rate": 0.4,
        "other_rate": 0.3,
    },
    "in groups": {
        "min_rows_per_sum": 8,
        "monotone_constraints": {0: 1, 5: 1, 8: -1},
        "grow_policy": "lossguide",
        "max_leaves": 6,
        "max_depth": 5,
    },
    "fewer columns in groups": {"min_rows_per_sum": 8, "colsample_bylevel": 0.4},
    "goss": {"sampling_method": "goss", "top_rate": 0.3, "other_rate": 0.2},
}
option = pytest.mark.parametrize("name", OPTIONS)


def fitted(name: str, task: str, n_parties: int, **parameters: Any):
    X, y = some_data(task, missing=True)
    partition = thirds(X.shape[1], n_parties)
    model = estimator(task, partition=partition, **parameters)
    return model.set_params(**OPTIONS[name]).fit(X, y), X


@option
@pytest.mark.parametrize(("n_parties", "task"), [(2, "binary"), (3, "five")])
def test_encrypted_training_equals_plain_and_costs_no_more_than_estimated(name, n_parties, task):
    plain, X = fitted(name, task, n_parties, encryption="none")
    encrypted, _ = fitted(name, task, n_parties, **WEAK)
    assert_same_model(plain, encrypted, X)
    assert encrypted.costs_["decryptions"] > 0
    bound = encrypted.estimate_cost(*some_data(task, missing=True))
    for counter in ("encryptions", "additions", "squarings", "blindings", "decryptions"):
        assert encrypted.costs_[counter] <= bound[counter], counter


@pytest.mark.parametrize("name", ["monotone and more", "fewer columns in groups"])
def test_parties_in_processes_with_two_threads_grow_the_same_trees(name):
    here, X = fitted(name, "binary", 3, encryption="none")
    there, _ = fitted(name, "binary", 3, network="process", n_jobs=2, **WEAK)
    assert_same_model(here, there, X)


@option
def test_an_option_changes_the_trees_and_a_seed_brings_them_back(name):
    model, X = fitted(name, "regression", 2, encryption="none")
    again, _ = fitted(name, "regression", 2, encryption="none")
    assert_same_model(model, again, X)
    X, y = some_data("regression", missing=True)
    without = estimator("regression", partition=thirds(9, 2), encryption="none").fit(X, y)
    assert not np.array_equal(model.predict(X), without.predict(X))


def test_only_the_rows_that_goss_chose_are_encrypted():
    model, X = fitted("goss", "binary", 2, **WEAK)
    n_rounds, n_chosen = 2, int(0.3 * len(X)) + int(0.2 * len(X))
    assert model.costs_["encryptions"] == n_rounds * n_chosen
