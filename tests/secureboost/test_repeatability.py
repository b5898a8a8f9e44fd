"""The same seed gives the same model, whatever the threads and the ties; wide data pass too."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from tests.secureboost.small import CONST4, PROBA4, WEAK, XA4, Y4, blocks, boost1, positive
from vfltree import SecureBoostClassifier, SecureBoostRegressor

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]


def tied_data(n_rows=150):
    """Rounded features: many rows are equal, many splits tie."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(n_rows, 6)), 0)
    return X, np.round(X @ rng.normal(size=6) + rng.normal(size=n_rows), 0)


def same_model(first, second):
    """Bit for bit; messages compare so."""
    return first._active_model == second._active_model and first._passive_models == second._passive_models


def test_many_trees_on_ties_are_the_same_twice_and_for_any_number_of_threads():
    X, y = tied_data()
    first, *others = (
        SecureBoostRegressor(40, max_depth=3, encryption="none", n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 1, 4)
    )
    assert all(same_model(first, other) for other in others)


def test_encrypted_sums_of_ties_give_the_same_trees_for_any_number_of_threads():
    X, y = tied_data(80)
    plain, *sealed = (
        SecureBoostRegressor(3, max_depth=3, n_jobs=n_jobs, **cipher).fit(X, y)
        for n_jobs, cipher in ((1, {"encryption": "none"}), (1, WEAK), (3, WEAK))
    )
    assert all(same_model(plain, other) for other in sealed)


@pytest.mark.parametrize(
    "make", [lambda: 7, lambda: np.random.RandomState(7), lambda: np.random.default_rng(7)]
)
def test_seeds_of_every_kind_repeat(make):
    X, y = tied_data()
    first, second = (
        SecureBoostRegressor(5, subsample=0.5, encryption="none", random_state=make()).fit(X, y)
        for _ in range(2)
    )
    assert same_model(first, second)


def test_without_a_seed_fits_differ_and_with_another_one_too():
    X, y = tied_data()
    models = [
        SecureBoostRegressor(5, subsample=0.5, encryption="none", random_state=seed).fit(X, y)
        for seed in (None, None, 1, 2)
    ]
    assert not any(same_model(a, b) for i, a in enumerate(models) for b in models[i + 1 :])


@pytest.mark.parametrize("cipher", [{"encryption": "none"}, WEAK], ids=["plain", "paillier"])
def test_a_thousand_foreign_features_find_the_one_that_matters(cipher):
    rng = np.random.default_rng(0)
    X = {"a": np.zeros((200, 1)), "b": rng.normal(size=(200, 1000))}
    y = (X["b"][:, 17] > 0).astype(int)
    model = SecureBoostClassifier(1, max_depth=1, **cipher).fit(X, y)
    assert model.importances("weight")["b"].idxmax() == "column 17"
    assert model.score(X, y) > 0.9


def test_prediction_needs_no_labels_and_a_party_that_is_none_counts_as_absent():
    model = boost1().fit(blocks(XA4, CONST4), Y4)
    np.testing.assert_allclose(positive(model, {"a": XA4, "b": None}), PROBA4, atol=1e-6)
    model = boost1().fit(blocks(CONST4, XA4), Y4)
    with pytest.raises(ValueError, match=r"party 1 \(b\) is needed: its features are used in 1 splits"):
        model.predict({"a": CONST4, "b": None})


def test_no_handler_is_added_to_the_root_logger(capfd):
    before = list(logging.getLogger().handlers)
    boost1(verbose=0).fit(blocks(XA4, CONST4), Y4)
    assert logging.getLogger().handlers == before
    assert capfd.readouterr() == ("", "")
