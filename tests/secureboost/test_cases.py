"""How people use such estimators, and break them: labels, degenerate features, schemas, edges of tree growth."""

from __future__ import annotations

import logging
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV

from tests.secureboost.small import CONST4, PROBA4, WEAK, XA4, Y4, blocks, boost1, positive, some_data
from vflcrypto import paillier
from vfltree import NotEncryptedWarning, SecureBoostClassifier, SecureBoostRegressor
from vfltree.growing.models import result_trees

pytestmark = pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning")


def refuse_keys(*args, **kwargs):
    raise AssertionError("a key was made")


@pytest.fixture
def no_key(monkeypatch):
    """Fails the test when a key is made: complaints must come before."""
    monkeypatch.setattr("vfltree.growing.leader.obtain_keypair", refuse_keys)


class TestLabels:
    @pytest.mark.parametrize(
        "y",
        [
            [-1, -1, 1, 1],
            ["no", "no", "yes", "yes"],
            [False, False, True, True],
            pd.Categorical(["x", "x", "y", "y"]),
            np.array(["no", "no", "yes", "yes"], dtype=object),
            pd.Series([0, 0, 1, 1], dtype="Int64"),
            [1.0, 1.0, 2.0, 2.0],
        ],
        ids=["signs", "strings", "bools", "categorical", "objects", "Int64", "floats"],
    )
    def test_labels_of_any_kind_are_learned_and_returned(self, y):
        model = boost1().fit(blocks(XA4, CONST4), y)
        assert list(model.classes_) == sorted(set(y))
        assert list(model.predict(blocks(XA4, CONST4))) == list(y)
        np.testing.assert_allclose(positive(model, blocks(XA4, CONST4)), PROBA4, atol=1e-6)

    def test_a_single_class_is_refused_before_a_key_is_made(self, no_key):
        with pytest.raises(ValueError, match="1 class"):
            boost1(encryption="paillier").fit(blocks(XA4, CONST4), [1, 1, 1, 1])

    def test_a_column_of_labels_warns_and_works(self):
        with pytest.warns(DataConversionWarning):
            model = boost1().fit(blocks(XA4, CONST4), [[0], [0], [1], [1]])
        np.testing.assert_allclose(positive(model, blocks(XA4, CONST4)), PROBA4, atol=1e-6)

    def test_one_hot_labels_are_refused_with_their_shape(self, no_key):
        with pytest.raises(ValueError, match=r"\(4, 2\)"):
            boost1().fit(blocks(XA4, CONST4), [[1, 0], [1, 0], [0, 1], [0, 1]])

    def test_missing_labels_are_refused(self, no_key):
        with pytest.raises(ValueError, match=r"1 missing values? .*NaN"):
            boost1().fit(blocks(XA4, CONST4), [0, None, 1, 1])

    def test_continuous_labels_are_no_classes(self, no_key):
        with pytest.raises(ValueError, match="continuous"):
            boost1().fit(blocks(XA4, CONST4), [0.1, 0.2, 0.3, 0.4])

    def test_three_classes_give_a_column_each_in_the_order_of_classes(self):
        X6, y = np.arange(6.0)[:, None], ["c", "c", "a", "a", "b", "b"]
        model = SecureBoostClassifier(
            20, max_depth=2, learning_rate=0.5, min_child_weight=0, encryption="none"
        ).fit(blocks(X6, X6), y)
        proba = model.predict_proba(blocks(X6, X6))
        assert list(model.predict(blocks(X6, X6))) == y
        assert list(model.classes_) == ["a", "b", "c"]
        assert proba.shape == (6, 3)
        assert np.abs(proba.sum(axis=1) - 1).max() < 1e-12
        assert (model.classes_[proba.argmax(axis=1)] == y).all()
        assert model.decision_function(blocks(X6, X6)).shape == (6, 3)

    def test_labels_indexed_in_another_order_are_refused(self, no_key):
        frame = pd.DataFrame(XA4, index=[1, 2, 3, 4])
        with pytest.raises(ValueError, match="another order"):
            boost1().fit(blocks(frame, frame), pd.Series(Y4, index=[4, 3, 2, 1]))


class TestFeatures:
    @pytest.mark.parametrize("order", [(XA4, CONST4), (CONST4, XA4)])
    @pytest.mark.parametrize("encryption", [{"encryption": "none"}, {"encryption": "paillier", **WEAK}])
    @pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning")
    def test_a_constant_party_is_never_split(self, order, encryption):
        model = boost1(**encryption).fit(blocks(*order), Y4)
        np.testing.assert_allclose(positive(model, blocks(*order)), PROBA4, atol=1e-6)
        assert model.feature_importances_.tolist() == [float(block is not CONST4) for block in order]

    @pytest.mark.parametrize("max_bin", [2, 32, 255, 256])
    def test_more_bins_than_values_do_no_harm(self, max_bin):
        X = np.array([[0.0], [0.0], [1.0], [1.0]])
        for pair in ((X, CONST4), (CONST4, X)):
            model = boost1(max_bin=max_bin).fit(blocks(*pair), Y4)
            np.testing.assert_allclose(positive(model, blocks(*pair)), PROBA4, atol=1e-6)

    @pytest.mark.parametrize("max_bin", [0, 1, 257])
    def test_impossible_numbers_of_bins_are_refused(self, max_bin, no_key):
        with pytest.raises(ValueError, match=rf"max_bin .*\[2, 256\].*{max_bin}"):
            boost1(max_bin=max_bin).fit(blocks(XA4, CONST4), Y4)

    @pytest.mark.parametrize("swap", [False, True])
    def test_missing_values_go_the_same_way_in_training_and_prediction(self, swap):
        X = np.array([[0.0], [1.0], [np.nan], [np.nan]])
        pair = blocks(CONST4, X) if swap else blocks(X, CONST4)
        model = boost1().fit(pair, Y4)
        np.testing.assert_allclose(positive(model, pair), PROBA4, atol=1e-6)
        leaves = model.apply(pair)[:, 0]
        assert leaves[0] == leaves[1] != leaves[2] == leaves[3]

    @pytest.mark.parametrize("swap", [False, True])
    def test_infinite_values_are_extremes(self, swap):
        X = np.array([[1.0], [2.0], [np.inf], [-np.inf]])
        pair = blocks(CONST4, X) if swap else blocks(X, CONST4)
        model = SecureBoostClassifier(
            5, max_depth=2, learning_rate=1.0, min_child_weight=0, encryption="none", base_score=0.5
        ).fit(pair, Y4)
        assert list(model.predict(pair)) == [0, 0, 1, 1]

    def test_text_that_is_not_said_to_be_categories_is_refused_by_column(self, no_key):
        frame = pd.DataFrame({"c": ["u", "v", "u", "v"]})
        with pytest.raises(TypeError, match=r"'c' of party 'b'"):
            SecureBoostClassifier(**WEAK).fit(blocks(XA4, frame), Y4)
        with pytest.raises(TypeError, match="'c'"):
            SecureBoostClassifier(**WEAK).fit(frame, Y4)

    def test_nullable_and_object_columns_of_numbers_are_converted(self):
        nullable = pd.DataFrame({"a": pd.array([0, 1, None, 3], dtype="Int64")})
        as_nan = np.array([[0.0], [1.0], [np.nan], [3.0]])
        expected = positive(boost1().fit(blocks(as_nan, CONST4), Y4), blocks(as_nan, CONST4))
        model = boost1().fit(blocks(nullable, CONST4), Y4)
        assert (positive(model, blocks(nullable, CONST4)) == expected).all()
        objects = pd.DataFrame({"a": ["0", "1", "2", "3"]}, dtype=object)
        np.testing.assert_allclose(
            positive(boost1().fit(blocks(objects, CONST4), Y4), blocks(objects, CONST4)), PROBA4, atol=1e-6
        )

    def test_neighbouring_doubles_beyond_single_precision_are_told_apart(self):
        X = np.array([[16777216.0], [16777217.0], [16777218.0], [16777219.0]])
        model = SecureBoostClassifier(
            50, max_depth=3, learning_rate=1.0, min_child_weight=0, encryption="none"
        ).fit(blocks(X, CONST4), [0, 1, 0, 1])
        assert list(model.predict(blocks(X, CONST4))) == [0, 1, 0, 1]
        assert model.predict(blocks(X.astype("f4"), CONST4)).shape == (4,)

    def test_integers_and_fortran_order_are_accepted(self):
        model = boost1().fit(blocks(XA4, CONST4), Y4)
        proba = positive(model, blocks(np.asfortranarray(XA4.astype(np.int32)), CONST4.astype(np.int8)))
        np.testing.assert_allclose(proba, PROBA4, atol=1e-6)


class TestSchema:
    def frames(self):
        rng = np.random.default_rng(1)
        return pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"]), rng.normal(size=(30, 3))

    def test_columns_are_matched_by_name(self):
        frame, other = self.frames()
        y = (frame["a"] + other[:, 0] > 0).astype(int)
        model = SecureBoostClassifier(3, encryption="none").fit(blocks(frame, other), y)
        expected = model.predict_proba(blocks(frame, other))
        assert (model.predict_proba(blocks(frame[["b", "a"]], other)) == expected).all()

    def test_missing_and_extra_columns_name_the_party_and_both_numbers(self):
        frame, other = self.frames()
        model = boost1().fit(blocks(frame, other), (other[:, 0] > 0).astype(int))
        with pytest.raises(ValueError, match=r"party 'b': expected 3 features, got 2"):
            model.predict(blocks(frame, other[:, :2]))
        with pytest.raises(
            ValueError, match=r"party 'a': expected 2 features, got 3.*unexpected columns \['c'\]"
        ):
            model.predict(blocks(frame.assign(c=1.0), other))
        with pytest.raises(ValueError, match=r"missing columns \['b'\]"):
            model.predict(blocks(frame[["a"]], other))

    def test_rows_are_matched_by_id(self):
        first = pd.DataFrame(np.zeros((4, 1)), index=[1, 2, 3, 4])
        second = pd.DataFrame([[3.0], [2.0], [1.0], [0.0]], index=[4, 3, 2, 1])
        model = boost1().fit(blocks(first, second), Y4)
        np.testing.assert_allclose(positive(model, blocks(first, second)), PROBA4, atol=1e-6)
        shuffled = positive(model, blocks(first.iloc[[2, 0, 3, 1]], second))
        np.testing.assert_allclose(shuffled, PROBA4[[2, 0, 3, 1]], atol=1e-6)

    def test_duplicate_ids_are_refused_by_party_and_number(self, no_key):
        first, second = pd.DataFrame(XA4, index=[1, 2, 3, 4]), pd.DataFrame(XA4, index=[1, 1, 2, 3])
        with pytest.raises(ValueError, match=r"party 'b': 1 row IDs"):
            boost1().fit(blocks(first, second), Y4)

    def test_differing_ids_are_refused_with_counts(self, no_key):
        first, second = pd.DataFrame(XA4, index=[1, 2, 3, 4]), pd.DataFrame(XA4, index=[1, 2, 3, 9])
        with pytest.raises(ValueError, match=r"4 rows of party 'a', 4 rows of party 'b'; 3 common"):
            boost1().fit(blocks(first, second), Y4)

    def test_unequal_lengths_name_both(self, no_key):
        with pytest.raises(ValueError, match=r"'a' has 4 rows, party 'b' has 3"):
            boost1().fit(blocks(XA4, XA4[:3]), Y4)
        with pytest.raises(ValueError, match=r"3 labels.*4 rows"):
            boost1().fit(blocks(XA4, CONST4), Y4[:3])

    def test_one_party_is_not_enough(self, no_key):
        for X in ({"a": XA4}, {}):
            with pytest.raises(ValueError, match="2 parties at least"):
                boost1().fit(X, Y4)

    def test_a_party_without_splits_may_stay_away_and_another_may_not(self):
        model = boost1().fit(blocks(XA4, CONST4), Y4)
        np.testing.assert_allclose(positive(model, {"a": XA4}), PROBA4, atol=1e-6)
        model = boost1().fit(blocks(CONST4, XA4), Y4)
        with pytest.raises(ValueError, match=r"party 1 \(b\) is needed: its features are used in 1 splits"):
            model.predict({"a": CONST4})
        with pytest.raises(ValueError, match="unknown parties"):
            model.predict({"a": CONST4, "b": XA4, "c": XA4})

    def test_an_active_party_may_hold_no_features(self):
        model = boost1().fit({"a": None, "b": XA4}, Y4)
        np.testing.assert_allclose(positive(model, {"a": None, "b": XA4}), PROBA4, atol=1e-6)
        np.testing.assert_allclose(positive(model, {"b": XA4}), PROBA4, atol=1e-6)

    def test_a_passive_party_needs_features(self, no_key):
        with pytest.raises(ValueError, match="party 'b' has no features"):
            boost1().fit({"a": XA4, "b": np.zeros((4, 0))}, Y4)

    def test_partition_and_blocks_must_name_the_same_parties(self, no_key):
        with pytest.raises(ValueError, match="partition names parties"):
            boost1(partition={"a": [0], "c": [1]}).fit(blocks(XA4, CONST4), Y4)

    def test_the_number_of_features_is_kept_per_party(self):
        model = boost1().fit(blocks(XA4, CONST4), Y4)
        assert model.n_features_in_ == 2
        assert model.n_features_in_per_party_ == {"a": 1, "b": 1}


class TestGrowth:
    @pytest.mark.parametrize(
        ("name", "value"),
        [("max_depth", 0), ("n_estimators", 0), ("max_depth", 31), ("learning_rate", 0), ("reg_lambda", -1),
         ("subsample", 0), ("subsample", 1.5), ("gamma", -0.1), ("min_child_weight", float("nan")),
         ("base_score", 0), ("base_score", 1), ("scale_pos_weight", 0)],
    )  # fmt: skip
    def test_parameters_out_of_range_are_named(self, name, value, no_key):
        with pytest.raises(ValueError, match=name):
            boost1(encryption="paillier", **{name: value}).fit(blocks(XA4, CONST4), Y4)

    @pytest.mark.parametrize(
        ("name", "value"), [("max_depth", "three"), ("n_estimators", 2.5), ("max_depth", True)]
    )
    def test_parameters_of_the_wrong_type_are_named(self, name, value, no_key):
        with pytest.raises(TypeError, match=name):
            boost1(**{name: value}).fit(blocks(XA4, CONST4), Y4)

    def test_many_deep_trees_on_few_rows_fit_them(self):
        X8, y8 = np.arange(8.0)[:, None], [0, 1] * 4
        model = SecureBoostClassifier(200, max_depth=10, min_child_weight=0, encryption="none").fit(
            blocks(X8, X8), y8
        )
        assert list(model.predict(blocks(X8, X8))) == y8

    def test_a_single_row_is_its_own_mean(self):
        model = SecureBoostRegressor(1, encryption="none").fit(blocks([[0.0]], [[1.0]]), [7.0])
        assert model.predict(blocks([[0.0]], [[1.0]])) == [7.0]

    def test_large_targets_keep_their_differences(self):
        y = np.array([1e9, 1e9, 1e9 + 4, 1e9 + 4])
        model = SecureBoostRegressor(1, max_depth=1, learning_rate=1.0, reg_lambda=0, encryption="none")
        np.testing.assert_allclose(
            model.fit(blocks(XA4, CONST4), y).predict(blocks(XA4, CONST4)), y, atol=1e-3
        )
        y = np.array([-1e9, -1e9, 1e9, 1e9])
        np.testing.assert_allclose(model.fit(blocks(XA4, CONST4), y).predict(blocks(XA4, CONST4)), y)

    def test_large_weights_change_the_leaves_and_nothing_else(self):
        model = boost1().fit(blocks(XA4, CONST4), Y4, sample_weight=[1e6] * 4)
        np.testing.assert_allclose(
            positive(model, blocks(XA4, CONST4)), [0.119203, 0.119203, 0.880797, 0.880797], atol=1e-6
        )

    def test_rows_of_weight_zero_might_as_well_not_be_there(self):
        X = np.vstack([XA4, [[9.0], [-3.0]]])
        const = np.full((6, 1), 5.0)
        with_zeros = boost1().fit(blocks(const, X), [*Y4, 0, 1], sample_weight=[1, 1, 1, 1, 0, 0])
        without = boost1().fit(blocks(CONST4, XA4), Y4)
        assert (positive(with_zeros, blocks(const, X)) == positive(without, blocks(const, X))).all()

    def test_rows_left_out_of_a_tree_still_get_its_scores(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(120, 4))
        y = (X[:, 0] + X[:, 2] > 0).astype(int)
        model = SecureBoostClassifier(15, subsample=0.5, encryption="none", random_state=3).fit(X, y)
        assert model.score(X, y) > 0.95
        again = SecureBoostClassifier(15, subsample=0.5, encryption="none", random_state=3).fit(X, y)
        assert (again.predict_proba(X) == model.predict_proba(X)).all()


class TestEstimator:
    def test_parameters_survive_cloning_and_fitting(self):
        estimator = boost1(max_depth=np.int64(3))
        assert clone(estimator).get_params() == estimator.get_params()
        before = estimator.get_params()
        estimator.fit(blocks(XA4, CONST4), Y4)
        assert estimator.get_params() == before

    def test_grid_search_runs_on_one_matrix(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 4))
        search = GridSearchCV(SecureBoostClassifier(3, encryption="none"), {"max_depth": [1, 2]}, cv=2)
        search.fit(X, (X[:, 3] > 0).astype(int))
        assert search.best_score_ > 0.9

    def test_prediction_before_fitting_is_refused(self):
        with pytest.raises(NotFittedError):
            boost1().predict(blocks(XA4, CONST4))
        with pytest.raises(NotFittedError):
            SecureBoostRegressor().predict(XA4)

    def test_a_misspelt_parameter_is_a_type_error(self):
        with pytest.raises(TypeError, match="max_dept"):
            SecureBoostClassifier(max_dept=3)

    @pytest.mark.parametrize(
        ("name", "value", "known"),
        [
            ("encryption", "affine", "'paillier', 'none'"),
            ("network", "carrier pigeon", "'inprocess', 'process'"),
            ("objective", "rank:ndcg", "binary:logistic.*multi:softprob"),
        ],
    )
    def test_unknown_schemes_list_the_known_ones(self, name, value, known, no_key):
        with pytest.raises(ValueError, match=known) as caught:
            boost1(**{name: value}).fit(blocks(XA4, CONST4), Y4)
        assert value in str(caught.value)

    def test_no_encryption_warns_once_per_fit_and_is_recorded(self):
        with pytest.warns(NotEncryptedWarning) as caught:
            model = boost1().fit(blocks(XA4, CONST4), Y4)
        assert sum(issubclass(w.category, NotEncryptedWarning) for w in caught) == 1
        assert model.encryption_ == "none"
        assert model.costs_["encryptions"] == model.costs_["decryptions"] == 0

    @pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning")
    def test_encryption_is_recorded_with_its_costs(self):
        model = boost1(encryption="paillier", **WEAK).fit(blocks(CONST4, XA4), Y4)
        assert model.encryption_ == "paillier"
        assert model.costs_["key_bits"] == 512
        assert model.costs_["encryptions"] == 4
        assert model.costs_["decryptions"] == model.costs_["blindings"] == 1

    @pytest.mark.parametrize("key_bits", [512, 1024, 2047, 2050])
    def test_weak_and_odd_keys_need_an_explicit_word(self, key_bits, no_key):
        with pytest.raises(ValueError, match="allow_weak_key"):
            boost1(encryption="paillier", key_bits=key_bits).fit(blocks(XA4, CONST4), Y4)

    def test_a_pair_that_does_not_fit_the_key_is_refused_with_both_numbers(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(ValueError, match=r"needs? \d+ bits.* \d+"):
                boost1(encryption="paillier", key_bits=64, allow_weak_key=True).fit(blocks(XA4, CONST4), Y4)

    def test_silence_is_the_default(self, capfd):
        handlers = list(logging.getLogger().handlers)
        boost1().fit(blocks(XA4, CONST4), Y4)
        assert capfd.readouterr() == ("", "")
        assert logging.getLogger().handlers == handlers

    @pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning")
    def test_verbose_shows_a_line_per_round(self, capfd):
        model = SecureBoostClassifier(2, verbose=1, min_child_weight=0, **WEAK)
        X = blocks(XA4, CONST4)
        model.fit(X, Y4, eval_set=(X, Y4))
        lines = capfd.readouterr().out.splitlines()
        assert len(lines) == 2
        for i, line in enumerate(lines):
            score = model.evals_result_["validation_0"]["logloss"][i]
            number = rf"\[{i + 1}/2\]"
            assert re.fullmatch(
                rf"{number}  \d+\.\d\d s  validation_0-logloss {score:.6g}  4 rows encrypted", line
            ), line

    @pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning")
    def test_costs_are_estimated_from_above_before_a_key_is_made(self, monkeypatch):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(150, 6))
        y = np.digitize(X[:, 0] + X[:, 4], [-0.5, 0.5])
        for labels in (y, (y > 0).astype(int)):
            model = SecureBoostClassifier(2, max_depth=3, **WEAK)
            with monkeypatch.context() as patch:
                patch.setattr("vfltree.growing.leader.obtain_keypair", refuse_keys)
                before = model.estimate_cost(X, labels)
            assert not hasattr(model, "classes_")
            after = model.fit(X, labels).costs_
            assert before["encryptions"] == after["encryptions"]
            for name in ("additions", "squarings", "blindings", "decryptions"):
                assert 0 < after[name] <= before[name], name
            assert before["seconds"] > 0
            assert before["bytes"] > 0

    def test_the_private_key_stays_out_of_the_estimator(self):
        assert paillier.PrivateKey is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = boost1(encryption="paillier", **WEAK).fit(blocks(CONST4, XA4), Y4)
        held = [type(value).__name__ for value in vars(model).values()]
        assert "PrivateKey" not in held


def test_the_cover_of_a_node_is_that_of_its_children():
    X, y = some_data("five", n_rows=200)
    model = SecureBoostClassifier(3, encryption="none", subsample=0.8, random_state=0).fit(X, y)
    for tree in result_trees(model._active_model):
        inner = tree.owner >= 0
        children = tree.cover[tree.left[inner]] + tree.cover[tree.right[inner]]
        assert inner.any()
        np.testing.assert_allclose(tree.cover[inner], children)
