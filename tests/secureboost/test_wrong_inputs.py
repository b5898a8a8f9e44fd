"""What an impatient user passes: every mistake is named before anything is trained, and none passes in silence."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from tests.secureboost.small import CONST4, WEAK, XA4, Y4, blocks, boost1, some_data
from vflcrypto import InsecureKeyWarning
from vfltree import SecureBoostClassifier, SecureBoostRegressor, SecureForestRegressor

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]

PLAIN = {"n_estimators": 1, "encryption": "none"}


@pytest.mark.filterwarnings("error::RuntimeWarning")
class TestData:
    def test_columns_of_one_name_are_refused_and_never_dropped(self):
        X, y = some_data("binary")
        frame = pd.DataFrame(X[:, :3], columns=["age", "age", "income"])
        with pytest.raises(ValueError, match="column names occur twice: 'age'"):
            SecureBoostClassifier(**PLAIN).fit(frame, y)
        model = SecureBoostClassifier(**PLAIN).fit(pd.DataFrame(X[:, :3], columns=["age", "b", "income"]), y)
        with pytest.raises(ValueError, match="occur twice"):
            model.predict(frame)

    @pytest.mark.parametrize("y", [3, (label for label in Y4)])
    def test_labels_without_a_length_are_a_type_error(self, y):
        with pytest.raises(TypeError, match="sequence or array-like"):
            boost1().fit(blocks(XA4, CONST4), y)

    def test_no_rows_to_predict_is_said_so(self):
        model = boost1().fit(blocks(XA4, CONST4), Y4)
        with pytest.raises(ValueError, match="0 rows to predict"):
            model.predict(blocks(XA4[:0], CONST4[:0]))

    @pytest.mark.parametrize("encryption", ["none", "paillier"])
    @pytest.mark.parametrize("size", [1e-320, 1e-300, 1e140])
    def test_targets_of_extreme_size_train_or_are_refused(self, size, encryption):
        model = SecureBoostRegressor(2, encryption=encryption, **WEAK)
        predicted = model.fit(blocks(CONST4, XA4), Y4 * size).predict(blocks(CONST4, XA4))
        assert (np.abs(predicted) <= size).all()

    @pytest.mark.parametrize(
        "y", [[-1e308, 1e308, 0, 0], [1.7e308, 1.6e308, 1.7e308, 1.6e308], [0, 1e200, 0, 0]]
    )
    def test_targets_whose_squares_overflow_are_refused_with_both_numbers(self, y):
        with pytest.raises(ValueError, match=r"y holds values up to .*e\+\d+.* 1e\+150"):
            SecureBoostRegressor(**PLAIN).fit(blocks(XA4, CONST4), y)

    @pytest.mark.parametrize("columns", [1, 2])
    @pytest.mark.parametrize("kind", [SecureBoostRegressor, SecureForestRegressor])
    def test_words_are_no_targets_of_a_regressor(self, kind, columns):
        y = np.array(["low", "low", "high", "high"])
        y = y if columns == 1 or kind is SecureForestRegressor else np.stack([y, y], axis=1)
        with pytest.raises(ValueError, match=r"y holds values that are not numbers.*'low'.*classifier"):
            kind(**PLAIN).fit(blocks(XA4, CONST4), y)

    @pytest.mark.parametrize(
        "weights", [[1e-320] * 4, [1e-50] * 4, [1e308] * 4, [1e-300, 1, 1, 1e300], [1e38] * 4]
    )
    def test_weights_beyond_single_precision_are_refused_with_their_range(self, weights):
        with pytest.raises(
            ValueError, match=rf"between {min(weights):g} and {max(weights):g}".replace("+", r"\+")
        ):
            boost1().fit(blocks(XA4, CONST4), Y4, sample_weight=weights)


class TestParameters:
    @pytest.mark.parametrize(
        ("name", "value", "error"),
        [("callbacks", 5, TypeError), ("checkpoint", "", ValueError), ("checkpoint", 5, TypeError)],
    )
    def test_what_goes_around_the_rounds_is_checked_by_name_too(self, name, value, error):
        with pytest.raises(error, match=name):
            boost1(**{name: value}).fit(blocks(XA4, CONST4), Y4)

    def test_an_eval_set_that_is_none_is_named(self):
        with pytest.raises(TypeError, match=r"eval_set must be a pair .*got int"):
            boost1().fit(blocks(XA4, CONST4), Y4, eval_set=5)

    @pytest.mark.parametrize(
        ("name", "value", "error"),
        [
            ("n_jobs", "all", TypeError),
            ("n_jobs", 1.5, TypeError),
            ("n_jobs", True, TypeError),
            ("n_jobs", float("nan"), TypeError),
            ("n_jobs", 0, ValueError),
            ("timeout", "long", TypeError),
            ("timeout", -1, ValueError),
            ("timeout", 0, ValueError),
            ("timeout", float("nan"), ValueError),
            ("verbose", "loud", TypeError),
            ("verbose", None, TypeError),
            ("n_estimators", 10**400, ValueError),
            ("key_bits", 10**400, ValueError),
        ],
    )
    @pytest.mark.parametrize("network", ["inprocess", "process"])
    def test_every_parameter_is_checked_by_name_before_anything_starts(self, name, value, error, network):
        with pytest.raises(error, match=name):
            boost1(**{"network": network, name: value}).fit(blocks(XA4, CONST4), Y4)


class TestWarnings:
    @pytest.mark.parametrize("network", ["inprocess", "process"])
    def test_a_weak_key_warns_once_on_every_network(self, network):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            boost1(network=network, encryption="paillier", **WEAK).fit(blocks(CONST4, XA4), Y4)
        assert [w.category for w in caught] == [InsecureKeyWarning]


class TestFailedFits:
    @pytest.mark.filterwarnings("ignore::RuntimeWarning")
    def test_scores_that_overflow_are_refused_and_never_returned(self):
        X, y = some_data("binary")
        with pytest.raises(ValueError, match=r"overflow in round \d: learning_rate=1e\+300"):
            SecureBoostClassifier(2, learning_rate=1e300, encryption="none").fit(X, y)

    def test_a_fit_that_fails_leaves_no_model_of_mixed_data(self):
        model = boost1().fit(blocks(XA4, CONST4), Y4)
        with pytest.raises(ValueError, match="sample weights"):
            model.fit(blocks(XA4, CONST4), ["no", "no", "yes", "yes"], sample_weight=[1e308] * 4)
        with pytest.raises(NotFittedError):
            model.predict(blocks(XA4, CONST4))

    def test_wrong_parameters_are_found_before_the_old_model_is_given_up(self):
        model = boost1().fit(blocks(XA4, CONST4), Y4)
        with pytest.raises(ValueError, match="max_depth"):
            model.set_params(max_depth=0).fit(blocks(XA4, CONST4), Y4)
        assert list(model.predict(blocks(XA4, CONST4))) == list(Y4)
