"""Penalties, weights, warm starts, batches and what is refused before a key is made."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.linear_model import ElasticNet, LogisticRegression

from tests.linear.small import PLAIN, WEAK, estimator, some_data
from vfltree import NotEncryptedWarning, SecureLogisticRegression, SecurePoissonRegression
from vfltree.linear.columns import FixedColumns
from vfltree.linear.optimisers import WIDEST_BLOCK, inverse
from vfltree.linear.residuals import integer_weights

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def scaled(task):
    X, y = some_data(task)
    X[:, 5] = X[:, 5] / 20 - 5
    return X, y


@quiet
def test_elastic_net_agrees_with_scikit_learn():
    X, y = scaled("linear")
    how = {"optimizer": "sgd", "learning_rate": 0.3, "max_iter": 600, "tol": 1e-9}
    model = estimator("linear", alpha=100.0, l1_ratio=0.7, **how, **PLAIN).fit(X, y)
    judge = ElasticNet(100.0 / len(y), l1_ratio=0.7, tol=1e-12, max_iter=100_000).fit(X, y)
    assert (judge.coef_ == 0).any()
    assert ((model.coef_ == 0) == (judge.coef_ == 0)).all()
    assert np.abs(model.coef_ - judge.coef_).max() < 1e-4


@quiet
@pytest.mark.parametrize(("optimizer", "rate"), [("sgd", 0.5), ("momentum", 0.05)])
def test_l1_logistic_regression_agrees_with_scikit_learn(optimizer, rate):
    X, y = scaled("binary")
    how = {"residual": "exact", "optimizer": optimizer, "learning_rate": rate, "max_iter": 800, "tol": 1e-9}
    model = estimator("binary", C=0.3, l1_ratio=1.0, **how, **PLAIN).fit(X, y)
    judge = LogisticRegression(C=0.3, l1_ratio=1.0, solver="saga", tol=1e-10, max_iter=20_000).fit(X, y)
    assert ((np.abs(model.coef_) < 1e-6) == (np.abs(judge.coef_) < 1e-6)).all()
    assert np.abs(model.coef_ - judge.coef_).max() < 1e-4


@quiet
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "adagrad"])
def test_every_optimizer_arrives(optimizer):
    X, y = scaled("binary")
    rate = {"sgd": 0.8, "momentum": 0.2, "adam": 0.1, "adagrad": 0.5}[optimizer]
    how = {"residual": "exact", "max_iter": 500, "tol": 1e-6}
    model = estimator("binary", optimizer=optimizer, learning_rate=rate, **how, **PLAIN).fit(X, y)
    judge = LogisticRegression(tol=1e-10).fit(X, y)
    assert np.abs(model.coef_ - judge.coef_).max() < 2e-3


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 3.0}])
def test_class_weights_agree_with_scikit_learn(class_weight):
    X, y = scaled("binary")
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    how = {"residual": "exact", "max_iter": 1000, "tol": 1e-8, "class_weight": class_weight}
    model = estimator("binary", **how, **PLAIN).fit(X, y, weights)
    judge = LogisticRegression(class_weight=class_weight, tol=1e-10).fit(X, y, weights)
    assert np.abs(model.coef_ - judge.coef_).max() < 1e-4


@quiet
def test_a_warm_start_goes_on_where_training_ended():
    X, y = scaled("binary")
    how = {"optimizer": "sgd", "learning_rate": 0.5, "tol": 0.0}
    whole = estimator("binary", max_iter=10, **how, **PLAIN).fit(X, y)
    parts = estimator("binary", max_iter=5, warm_start=True, **how, **PLAIN).fit(X, y).fit(X, y)
    assert whole._halves()["p1"] == parts._halves()["p1"]
    assert (whole.coef_ == parts.coef_).all()
    cold = estimator("binary", max_iter=5, **how, **PLAIN).fit(X, y).fit(X, y)
    assert (cold.coef_ != parts.coef_).any()


@quiet
def test_learning_rates_decay():
    X, y = scaled("binary")
    how = {"optimizer": "sgd", "max_iter": 3, "tol": 0.0}
    constant, decaying = (
        estimator("binary", learning_rate=0.5, learning_rate_decay=decay, **how, **PLAIN).fit(X, y)
        for decay in (0.0, 1.0)
    )
    assert np.abs(decaying.coef_).sum() < np.abs(constant.coef_).sum()


def test_unscaled_columns_give_finite_numbers_and_maybe_a_warning():
    X4, y4 = {"a": [[1e4], [2e4], [3e4], [4e4]], "b": [[0.0], [1.0], [2.0], [3.0]]}, [0, 0, 1, 1]
    for residual in ("taylor", "exact"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = SecureLogisticRegression(max_iter=100, residual=residual, **PLAIN).fit(X4, y4)
        kinds = {warning.category for warning in caught}
        assert kinds <= {NotEncryptedWarning, ConvergenceWarning}
        P = model.predict_proba(X4)
        assert np.isfinite(P).all() and np.abs(P.sum(axis=1) - 1).max() < 1e-12
        assert np.isfinite(model.loss_curve_).all()
        assert list(model.predict(X4)) == y4


@pytest.mark.parametrize("optimizer", ["adam", "adagrad"])
def test_steps_that_do_not_grow_with_the_columns_end_finite_with_a_warning(optimizer):
    X4, y4 = {"a": [[1e4], [2e4], [3e4], [4e4]], "b": [[5.0]] * 4}, [0, 0, 1, 1]
    with pytest.warns(ConvergenceWarning, match="columns scaled to like sizes"):
        model = SecureLogisticRegression(max_iter=100, optimizer=optimizer, **PLAIN).fit(X4, y4)
    assert np.isfinite(model.predict_proba(X4)).all()


@pytest.mark.parametrize("network", ["inprocess", "process"])
def test_a_cubic_that_turns_back_says_what_helps(network):
    X4, y4 = {"a": [[-1.5], [-0.5], [0.5], [1.5]], "b": [[5.0]] * 4}, [0, 0, 1, 1]
    how = {"order": 3, "network": network, **PLAIN}
    with pytest.raises(OverflowError, match=r"training diverges.*order=1.*smaller C"):
        SecureLogisticRegression(C=10.0, **how).fit(X4, y4)
    model = SecureLogisticRegression(C=1.0, **how).fit(X4, y4)
    assert list(model.predict(X4)) == y4


def test_a_diverging_fit_says_so():
    X, y = some_data("binary")
    with pytest.raises(OverflowError, match="scale the columns or lower learning_rate"):
        estimator("binary", optimizer="sgd", learning_rate=1e3, max_iter=50, **PLAIN).fit(X, y)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [([-1, 1], [-1, 1]), (["no", "yes"], ["no", "yes"]), ([False, True], [False, True]), ([1, 2], [1, 2])],
)
@quiet
def test_labels_of_any_kind(labels, classes):
    X, y = some_data("binary", n_rows=40)
    model = estimator("binary", max_iter=5, **PLAIN).fit(X, np.array(labels)[y])
    assert model.classes_.tolist() == classes
    assert set(model.predict(X)) <= set(labels)


@pytest.mark.parametrize(
    "kind",
    [lambda y: pd.Series(y, dtype="Int64"), pd.Categorical, np.array(["no", "yes"], dtype=object).take, list],
)
@quiet
def test_labels_in_any_container(kind):
    X, y = some_data("binary", n_rows=40)
    model, same = (estimator("binary", max_iter=5, **PLAIN).fit(X, labels) for labels in (kind(y), y))
    assert (model.predict_proba(X) == same.predict_proba(X)).all()
    assert list(model.classes_) == sorted(set(kind(y)))


@quiet
def test_a_column_of_labels_warns_and_works():
    X, y = some_data("binary", n_rows=40)
    with pytest.warns(DataConversionWarning):
        model = estimator("binary", max_iter=5, **PLAIN).fit(X, y[:, None])
    assert (model.predict(X) == estimator("binary", max_iter=5, **PLAIN).fit(X, y).predict(X)).all()


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"batch_size": 1, "optimizer": "sgd"}, ValueError, "party 'active' with 4 columns.*at least 320"),
        ({"batch_size": 0, "optimizer": "sgd"}, ValueError, "batch_size must be a positive integer or None"),
        ({"batch_size": 500}, ValueError, "full batches only"),
        ({"C": 0.0}, ValueError, "C must be positive"),
        ({"C": "1"}, TypeError, "C must be a number"),
        ({"l1_ratio": 2.0}, ValueError, "l1_ratio must be in"),
        ({"l1_ratio": 0.5}, ValueError, "takes no L1 penalty"),
        ({"encryption": "affine"}, ValueError, "encryption must be one of 'paillier', 'none'"),
        ({"exchange": "gossip"}, ValueError, "exchange must be one of"),
        ({"residual": "guess"}, ValueError, "residual must be one of"),
        ({"optimizer": "lbfgs"}, ValueError, "optimizer must be one of"),
        ({"order": 2}, ValueError, "even powers of the logistic function vanish"),
        ({"order": 3, "residual": "exact"}, ValueError, "no polynomial"),
        ({"multi_class": "both"}, ValueError, "multi_class must be one of"),
        ({"class_weight": {0: -1.0, 1: 1.0}}, ValueError, "class_weight must be 0 or more and finite"),
        ({"class_weight": {0: np.nan, 1: 1.0}}, ValueError, "class_weight must be 0 or more and finite"),
        ({"max_iter": 0}, ValueError, "max_iter must be an integer in"),
        ({"max_iter": 1.5}, TypeError, "max_iter must be an integer"),
        ({"learning_rate": "fast"}, TypeError, "learning_rate must be a number"),
        ({"fit_intercept": "yes"}, TypeError, "fit_intercept must be True or False"),
        ({"key_bits": 512}, ValueError, "allow_weak_key=True"),
        ({"network": "carrier pigeon"}, ValueError, "network must be one of"),
    ],
)
def test_wrong_parameters_are_refused_by_fit(parameters, error, words, monkeypatch):
    X, y = some_data("binary")

    def no_key(*_, **__):
        raise AssertionError("a key was made")

    monkeypatch.setattr("vflparty.coordinator.obtain_keypair", no_key)
    model = estimator("binary", **parameters)
    with pytest.raises(error, match=words):
        model.fit(X, y)


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ({"a": [[0.0], [1.0]], "b": [[0.0], [1.0]]}, [0, 0], "1 class"),
        ({"a": [[0.0], [1.0]]}, [0, 1], "2 parties at least"),
        ({"a": [[0.0], [1.0]], "b": [[0.0]]}, [0, 1], "2 rows, party 'b' has 1"),
        ({"a": [[0.0], [np.nan]], "b": [[0.0], [1.0]]}, [0, 1], "party 'a': column 0.*NaN"),
        ({"a": [[0.0], [1.0]], "b": [[0.0], [np.inf]]}, [0, 1], "party 'b': column 0"),
        ({"a": [[0.0], [1.0]], "b": [[0.0], [1.0]]}, [[1, 0], [0, 1]], r"\(2, 2\)"),
    ],
)
def test_wrong_data_are_refused_before_a_key_is_made(X, y, words):
    with pytest.raises(ValueError, match=words):
        SecureLogisticRegression().fit(X, y)


def test_counts_must_not_be_negative():
    X, _ = some_data("poisson", n_rows=20)
    with pytest.raises(ValueError, match="y >= 0, got -1"):
        SecurePoissonRegression(**PLAIN).fit(X, np.arange(20) - 1.0)
    with pytest.raises(ValueError, match="0 everywhere"):
        SecurePoissonRegression(**PLAIN).fit(X, np.zeros(20))


def test_no_encryption_warns_every_time():
    X, y = some_data("binary", n_rows=20)
    for _ in range(2):
        with pytest.warns(NotEncryptedWarning, match="read labels"):
            model = estimator("binary", max_iter=1, tol=1e9, **PLAIN).fit(X, y)
    assert model.encryption_ == "none" and model.coordinator_log_ is None


def test_an_active_party_without_columns_or_intercept_still_leads():
    X, y = scaled("binary")
    how = {"partition": {"bank": [], "shop": range(7)}, "fit_intercept": False, "max_iter": 3, "tol": 0}
    for exchange in ("scores", "rows"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            plain, encrypted = (
                estimator("binary", exchange=exchange, **how, **kind).fit(X, y) for kind in (PLAIN, WEAK)
            )
        assert plain._halves() == encrypted._halves()
        assert plain.intercept_ == 0.0


def test_whole_weights_are_themselves():
    integers, step = integer_weights(np.array([3.0, 0.0, 1.0, 2.0]))
    assert integers.tolist() == [3, 0, 1, 2] and step == 1.0
    integers, step = integer_weights(np.array([0.5, 0.25, 1.0]))
    assert integers.tolist() == [2, 1, 4] and step == 0.25
    assert integer_weights(np.full(3, 0.3)) == (None, 0.3)
    integers, step = integer_weights(np.array([0.3, 0.7]))
    assert np.abs(integers * step - [0.3, 0.7]).max() < 1e-12


def test_fixed_columns_keep_ones_and_zeros_small_and_ends_within_their_bits():
    columns = FixedColumns(np.array([[0.0, 1e-300, 0.999999999, -5e6], [1.0, 2e-300, 0.1, 3.0]]))
    assert columns.values[:, 0].tolist() == [0, 1] and columns.exponents[0] == 0
    assert np.abs(columns.values).max() < 2**23
    back = np.ldexp(columns.values.astype(float), -columns.exponents)
    assert np.allclose(back[:, 1:], [[1e-300, 0.999999999, -5e6], [2e-300, 0.1, 3.0]], rtol=1e-6, atol=1.0)


def test_the_inverse_of_a_block_is_one():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 12))
    matrix = A.T @ A
    assert np.abs(inverse(matrix) @ matrix - np.eye(12)).max() < 1e-6
    singular = inverse(np.ones((3, 3)))
    assert np.isfinite(singular).all()


@quiet
def test_blocks_too_wide_for_a_matrix_take_a_diagonal():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, WIDEST_BLOCK + 30))
    y = (X[:, 0] > 0).astype(int)
    partition = {"bank": [0], "shop": range(1, X.shape[1])}
    losses = (
        estimator("binary", partition=partition, residual="exact", max_iter=15, tol=0, **PLAIN)
        .fit(X, y)
        .loss_curve_
    )
    assert losses[-1] < losses[0]


@quiet
def test_a_party_may_be_called_coordinator():
    X, y = scaled("binary")
    how = {"partition": {"bank": [0, 1, 2], "coordinator": [3, 4, 5, 6]}, "max_iter": 1, **WEAK}
    model = estimator("binary", **how).fit(X, y)
    assert model.coordinator_log_.parties == ("bank", "coordinator")


@quiet
@pytest.mark.parametrize("n_parties", [2, 3, 5])
def test_newton_arrives_where_columns_of_different_parties_are_nearly_the_same(n_parties):
    rng = np.random.default_rng(0)
    base = rng.normal(size=(150, 2))
    X = np.hstack([base + 0.1 * rng.normal(size=base.shape) for _ in range(n_parties)])
    y = (X.sum(axis=1) + rng.normal(size=150) > 0).astype(int)
    partition = {f"p{k}": [2 * k, 2 * k + 1] for k in range(n_parties)}
    model = estimator("binary", partition=partition, tol=1e-6, max_iter=400, **PLAIN).fit(X, y)
    assert model.n_iter_ < 400
