"""Forests as people use them: labels, parameters, weights, seeds, out-of-bag scores, scikit-learn's tools."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import accuracy_score, balanced_accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score

from tests.forest.small import forest
from tests.secureboost.small import WEAK, Y4, blocks, some_data, thirds
from vflparty import RemoteProtocolError
from vfltree import SecureForestClassifier, SecureForestRegressor, load
from vfltree.growing.models import result_trees

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
    pytest.mark.filterwarnings("ignore:.*out-of-bag"),
]

XA4 = np.array([[0.0], [1.0], [2.0], [3.0]])
CONST4 = np.full((4, 1), 5.0)


@pytest.fixture
def no_key(monkeypatch):
    def refuse_keys(*args, **kwargs):
        raise AssertionError("a key was made")

    monkeypatch.setattr("vfltree.growing.leader.obtain_keypair", refuse_keys)


def whole_tree(**parameters):
    """One tree of all rows and features, so that leaves can be computed by hand."""
    return SecureForestClassifier(1, bootstrap=False, max_features=None, encryption="none", **parameters)


class TestLabels:
    @pytest.mark.parametrize(
        "y",
        [
            ["no", "no", "yes", "yes"],
            [False, False, True, True],
            pd.Series(["b", "b", "a", "a"], dtype="category"),
            np.array([1.5, 1.5, 2.0, 2.0]).astype(int) * 7,
            pd.Series([0, 0, 1, 1], dtype="Int64"),
        ],
        ids=["text", "bool", "category", "numbers", "nullable"],
    )
    def test_predictions_are_labels(self, y):
        model = whole_tree().fit(blocks(XA4, CONST4), y)
        assert model.predict(blocks(XA4, CONST4)).tolist() == list(y)
        assert model.classes_.tolist() == sorted(set(y))

    def test_leaves_hold_shares(self):
        y = [0, 1, 1, 1]
        model = whole_tree(max_depth=1, min_samples_leaf=2).fit(blocks(XA4, CONST4), y)
        assert model.predict_proba(blocks(XA4, CONST4)).tolist() == [[0.5, 0.5]] * 2 + [[0.0, 1.0]] * 2

    def test_one_class_is_refused_before_a_key_is_made(self, no_key):
        with pytest.raises(ValueError, match="1 class"):
            SecureForestClassifier().fit(blocks(XA4, CONST4), [1, 1, 1, 1])

    def test_a_column_vector_warns_and_one_hot_labels_are_refused(self):
        with pytest.warns(DataConversionWarning):
            whole_tree().fit(blocks(XA4, CONST4), Y4[:, None])
        with pytest.raises(ValueError, match=r"\(4, 2\)"):
            whole_tree().fit(blocks(XA4, CONST4), np.eye(2)[Y4])

    @pytest.mark.parametrize("task", ["binary", "five"])
    def test_probabilities_are_shares_of_all_classes(self, task):
        X, y = some_data(task, missing=True)
        model = forest(task, 7, encryption="none").fit(X, y)
        P = model.predict_proba(X)
        assert P.shape == (len(X), len(model.classes_))
        assert np.abs(P.sum(axis=1) - 1).max() < 1e-12
        assert (model.classes_[P.argmax(axis=1)] == model.predict(X)).all()
        np.testing.assert_array_equal(np.exp(model.predict_log_proba(X)).round(12), P.round(12))

    def test_a_regressor_has_no_probabilities(self):
        assert not hasattr(SecureForestRegressor(), "predict_proba")


class TestParameters:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"max_depth": 0}, r"max_depth must be an integer in \[1, 30\], got 0"),
            ({"n_estimators": 0}, "n_estimators must be an integer"),
            ({"criterion": "mse"}, "criterion must be"),
            ({"criterion": "squared_error"}, "for classes"),
            ({"max_features": "auto"}, "max_features must be one of 'sqrt', 'log2'"),
            ({"max_features": 0}, "max_features"),
            ({"max_features": 1.5}, "max_features"),
            ({"min_samples_split": 1}, "min_samples_split"),
            ({"min_samples_leaf": 0}, "min_samples_leaf"),
            ({"min_weight_fraction_leaf": 0.6}, "min_weight_fraction_leaf"),
            ({"max_samples": 5}, "max_samples=5 is more than the 4 rows"),
            ({"max_samples": 0.5, "bootstrap": False}, "needs bootstrap=True"),
            ({"oob_score": True, "bootstrap": False}, "needs bootstrap=True"),
            ({"class_weight": "heavy"}, "class_weight must be a dict or one of"),
            ({"class_weight": {0: -1.0}}, "0 or more"),
            ({"key_bits": 1024}, "key_bits must be one of"),
            ({"min_rows_per_sum": 0}, "min_rows_per_sum"),
            ({"network": "carrier pigeon"}, "network"),
            ({"encryption": "affine"}, "encryption must be one of 'paillier', 'none'"),
        ],
    )
    def test_wrong_ones_are_refused_before_a_key_is_made(self, parameters, message, no_key):
        with pytest.raises(ValueError, match=message):
            SecureForestClassifier(**parameters).fit(blocks(XA4, CONST4), Y4)

    @pytest.mark.parametrize(
        "parameters", [{"oob_score": "yes"}, {"bootstrap": 1}, {"max_depth": 2.5}, {"class_weight": 3}]
    )
    def test_those_of_another_type_too(self, parameters, no_key):
        with pytest.raises(TypeError):
            SecureForestClassifier(**parameters).fit(blocks(XA4, CONST4), Y4)

    @pytest.mark.parametrize(
        ("max_features", "n"), [("sqrt", 4), ("log2", 4), (None, 20), (7, 7), (99, 20), (0.5, 10), (0.01, 1)]
    )
    def test_max_features_counts_the_features_of_all_parties(self, max_features, n):
        from vfltree.forest import ForestSettings

        assert ForestSettings(max_features=max_features).n_drawn_features(20) == n

    def test_no_depth_grows_until_leaves_are_pure(self):
        X, y = some_data("binary")
        settings = {"bootstrap": False, "max_features": None, "encryption": "none", "min_rows_per_sum": 1}
        deep = forest("binary", 1, max_depth=None, max_bin=256, **settings).fit(X, y)
        assert deep.score(X, y) == 1.0
        assert result_trees(deep._active_model)[0].depth > 4

    def test_limits_of_leaves_and_decrease_hold(self):
        X, y = some_data("binary")
        model = forest("binary", 4, min_samples_leaf=20, bootstrap=False, encryption="none").fit(X, y)
        leaves = model.apply(X)
        for tree in range(4):
            assert np.unique(leaves[:, tree], return_counts=True)[1].min() >= 20
        stumps = forest("binary", 4, min_impurity_decrease=10.0, encryption="none").fit(X, y)
        assert stumps._active_model.sizes.tolist() == [1] * 4


class TestWeights:
    def test_rows_of_weight_0_do_not_enter(self):
        X, y = some_data("five")
        used = np.arange(len(y)) % 3 > 0
        whole = forest("five", encryption="none").fit(X, y, used.astype(float))
        part = forest("five", encryption="none").fit(X[used], y[used], np.ones(used.sum()))
        assert whole._active_model == part._active_model

    def test_class_weights_are_weights_of_rows_without_a_bootstrap(self):
        X, y = some_data("binary")
        settings = {"bootstrap": False, "encryption": "none"}
        by_class = forest("binary", class_weight={1: 4.0}, **settings).fit(X, y)
        by_row = forest("binary", **settings).fit(X, y, np.where(y == 1, 4.0, 1.0))
        np.testing.assert_allclose(by_class.predict_proba(X), by_row.predict_proba(X), atol=1e-12)

    @pytest.mark.parametrize("class_weight", ["balanced", "balanced_subsample", {1: 30.0}])
    def test_rare_classes_are_found_when_they_weigh_more(self, class_weight):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(600, 6))
        y = ((X[:, 0] + X[:, 4] + rng.normal(size=600)) > 3).astype(int)  # 1 of 20
        plain, weighted = (
            forest("binary", 10, class_weight=w, encryption="none").fit(X, y).predict(X)
            for w in (None, class_weight)
        )
        assert balanced_accuracy_score(y, weighted) > balanced_accuracy_score(y, plain) + 0.05


class TestOutOfBag:
    @pytest.mark.parametrize("task", ["five", "regression"])
    def test_it_is_what_trees_say_of_rows_they_did_not_draw(self, task):
        from vfltree.forest.draws import draw_rows

        X, y = some_data(task, missing=True)
        model = forest(task, 6, oob_score=True, encryption="none").fit(X, y)
        from vfltree.base import party_seeds

        seed = party_seeds(1, 2)[0]
        leaves, trees = model.apply(X), result_trees(model._active_model)
        total, n = 0.0, np.zeros((len(X), 1))
        for t, tree in enumerate(trees):
            undrawn = draw_rows(seed, t, len(X), len(X)) == 0
            total = total + np.where(undrawn[:, None], tree.value[leaves[:, t]], 0)
            n += undrawn[:, None]
        with np.errstate(invalid="ignore"):
            expected = total / n
        if task == "five":
            np.testing.assert_allclose(model.oob_decision_function_, expected)
            known = ~np.isnan(expected[:, 0])
            assert model.oob_score_ == accuracy_score(y[known], expected[known].argmax(axis=1))
        else:
            np.testing.assert_allclose(model.oob_prediction_, expected[:, 0])
            known = ~np.isnan(expected[:, 0])
            assert model.oob_score_ == pytest.approx(r2_score(y[known], expected[known, 0]))

    def test_rows_of_weight_0_have_none(self):
        X, y = some_data("binary")
        weights = (np.arange(len(y)) > 9).astype(float)
        model = forest("binary", 20, oob_score=True, encryption="none").fit(X, y, weights)
        assert np.isnan(model.oob_decision_function_[:10]).all()
        assert 0.6 < model.oob_score_ <= 1

    def test_one_weight_for_all_rows_is_no_weight(self):
        X, y = some_data("binary")
        models = [
            forest("binary", 5, oob_score=True, encryption="none").fit(X, y, weight) for weight in (None, 2.0)
        ]
        assert models[0].oob_score_ == models[1].oob_score_

    def test_a_function_of_ones_own_scores(self):
        X, y = some_data("binary")
        model = forest("binary", 20, oob_score=balanced_accuracy_score, encryption="none").fit(X, y)
        assert 0.6 < model.oob_score_ < 1

    def test_it_changes_no_tree(self):
        X, y = some_data("binary", missing=True)
        models = [forest("binary", oob_score=flag, encryption="none").fit(X, y) for flag in (False, True)]
        assert models[0]._active_model == models[1]._active_model
        assert not hasattr(models[0], "oob_score_")
        models[1].set_params(oob_score=False).fit(X, y)
        assert not hasattr(models[1], "oob_score_")


class TestSeeds:
    @pytest.mark.parametrize(
        "seed", [lambda: 0, lambda: np.random.RandomState(3), lambda: np.random.default_rng(3)]
    )
    def test_the_same_seed_gives_the_same_forest_whatever_the_threads(self, seed):
        X, y = some_data("five")
        models = [
            forest("five", 5, random_state=seed(), n_jobs=n_jobs, encryption="none").fit(X, y)
            for n_jobs in (1, 4, 1, 4)
        ]
        assert all(model._active_model == models[0]._active_model for model in models)

    def test_no_seed_gives_other_forests(self):
        X, y = some_data("five")
        models = [forest("five", random_state=None, encryption="none").fit(X, y) for _ in range(2)]
        assert models[0]._active_model != models[1]._active_model

    def test_trees_differ_from_one_another(self):
        X, y = some_data("binary")
        trees = result_trees(forest("binary", 8, encryption="none").fit(X, y)._active_model)
        assert len({tree.gain.tobytes() for tree in trees}) == 8


class TestTools:
    def test_clones_pickles_and_files_predict_the_same(self, tmp_path):
        X, y = some_data("five", missing=True)
        model = forest("five", partition=thirds(9, 3), **WEAK).fit(X, y)
        expected = model.predict_proba(X)
        assert (pickle.loads(pickle.dumps(model)).predict_proba(X) == expected).all()
        model.save(tmp_path)
        again = load(tmp_path)
        assert (again.predict_proba(X) == expected).all()
        assert again.get_params()["max_features"] == "sqrt"
        assert clone(model).get_params() == model.get_params()

    def test_searches_and_cross_validation(self):
        X, y = load_breast_cancer(return_X_y=True)
        model = SecureForestClassifier(5, max_depth=4, encryption="none", random_state=0)
        search = GridSearchCV(model, {"max_features": ["sqrt", None]}, cv=2).fit(X[:300], y[:300])
        assert search.best_score_ > 0.85
        assert cross_val_score(model, X[:300], y[:300], cv=3).mean() > 0.85

    def test_importances_are_shares_of_the_gain(self):
        X, y = some_data("binary")
        model = forest("binary", 20, encryption="none").fit(X, y)
        shares = model.feature_importances_
        assert shares.sum() == pytest.approx(1.0)
        assert set(np.argsort(shares)[-3:]) & {0, 6, 8}  # what the signal is made of

    def test_a_party_that_owns_no_split_may_stay_away(self):
        model = whole_tree().fit(blocks(XA4, CONST4), Y4)
        assert model.predict({"a": XA4}).tolist() == Y4.tolist()

    def test_blocks_with_other_rows_are_refused(self):
        frames = {"a": pd.DataFrame(XA4, index=list("wxyz")), "b": pd.DataFrame(CONST4, index=list("wxya"))}
        with pytest.raises((ValueError, RemoteProtocolError)):
            whole_tree().fit(frames, Y4)

    @pytest.mark.parametrize("task", ["binary", "five", "regression"])
    @pytest.mark.parametrize(
        "parameters", [{}, {"max_features": None, "min_rows_per_sum": 1}, {"max_samples": 0.3}]
    )
    def test_costs_are_estimated_from_above_before_a_key_is_made(self, task, parameters, monkeypatch):
        X, y = some_data(task, missing=True)
        model = forest(task, **parameters, **WEAK)
        with monkeypatch.context() as patch:
            patch.setattr("vfltree.growing.leader.obtain_keypair", None)
            estimate = model.estimate_cost(X, y)
        costs = model.fit(X, y).costs_
        for name in ("encryptions", "additions", "squarings", "blindings", "decryptions"):
            assert costs[name] <= estimate[name], name
        assert estimate["encryptions"] == costs["encryptions"]
        assert estimate["seconds"] > 0

    def test_costs_are_reported(self):
        X, y = some_data("binary")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = forest("binary", **WEAK).fit(X, y)
        assert model.costs_["encryptions"] == len(X)
        assert model.costs_["additions"] > 0
        assert {"TargetsOfForest", "SumSlots", "Histograms"} <= set(model.traffic_["kind"])
        assert len(model.prediction_traffic(X))


def test_a_regression_is_as_good_as_scikit_learns():
    X, y = some_data("regression", n_rows=600)
    train, test = slice(0, 400), slice(400, 600)
    ours, theirs = [], []
    for seed in range(5):
        model = SecureForestRegressor(
            10, max_depth=6, min_rows_per_sum=1, encryption="none", random_state=seed
        )
        ours.append(model.fit(X[train], y[train]).score(X[test], y[test]))
        judge = RandomForestRegressor(10, max_depth=6, random_state=seed)
        theirs.append(judge.fit(X[train], y[train]).score(X[test], y[test]))
    assert np.mean(ours) > np.mean(theirs) - 0.03
