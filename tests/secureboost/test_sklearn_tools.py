"""The tools around estimators: routing, pipelines, searches, calibration, permutation; threads and processes."""

from __future__ import annotations

import multiprocessing
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from tests.secureboost.children import fit_in_a_child, fit_with_threads
from tests.secureboost.small import CONST4, PROBA4, XA4, Y4, blocks, boost1, positive, some_data
from vfltree import SecureBoostClassifier, SecureBoostRegressor

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]
COLUMNS = [f"c{i}" for i in range(9)]
BY_NAME = {"bank": COLUMNS[:4], "shop": COLUMNS[4:]}


def small(**parameters):
    settings = {"n_estimators": 3, "max_depth": 3, "encryption": "none", "random_state": 0}
    return SecureBoostClassifier(**{**settings, **parameters})


@pytest.fixture(scope="module")
def data():
    X, y = some_data("binary", n_rows=120)
    return pd.DataFrame(X, columns=COLUMNS), y


class TestRouting:
    @pytest.fixture(autouse=True)
    def routing(self):
        with sklearn.config_context(enable_metadata_routing=True):
            yield

    def test_weights_are_routed_through_a_pipeline_and_a_search(self, data):
        X, y = data
        weights = np.where(y == 1, 5.0, 1.0)
        model = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False), small().set_fit_request(sample_weight=True)
        )
        model.fit(X, y, sample_weight=weights)
        direct = small().fit(StandardScaler().fit_transform(X), y, sample_weight=weights)
        scaled = model[0].transform(X)
        assert (model.predict_proba(X) == direct.predict_proba(scaled)).all()
        assert (model.predict_proba(X) != small().fit(scaled, y).predict_proba(scaled)).any()
        requested = small().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(requested, {"max_depth": [2, 3]}, cv=2)
        search.fit(X, y, sample_weight=weights)
        best = clone(search.best_estimator_).fit(X, y, sample_weight=weights)
        assert (search.predict_proba(X) == best.predict_proba(X)).all()

    def test_scores_are_weighted_where_asked(self, data):
        X, y = data
        weights = np.where(np.arange(len(y)) % 2, 1.0, 1e-6)
        model = small(learning_rate=0.01).set_fit_request(sample_weight=True)
        plain = cross_validate(
            model.set_score_request(sample_weight=False), X, y, params={"sample_weight": weights}
        )
        weighted = cross_validate(
            model.set_score_request(sample_weight=True), X, y, params={"sample_weight": weights}
        )
        assert (plain["test_score"] != weighted["test_score"]).any()


class TestPipelines:
    def test_frames_out_of_a_pipeline_keep_the_names_that_partition_uses(self, data):
        X, y = data
        model = make_pipeline(StandardScaler(), small(partition=BY_NAME)).set_output(transform="pandas")
        model.fit(X, y)
        assert list(model[-1].feature_names_in_) == COLUMNS
        assert model.score(X, y) > 0.9
        with pytest.raises(ValueError, match="feature names"):
            model[-1].predict(X[COLUMNS[::-1]])

    def test_columns_can_be_selected_by_importance(self, data):
        X, y = data
        chosen = SelectFromModel(small(), max_features=3, threshold=-np.inf).fit(X, y)
        assert set(chosen.get_feature_names_out()) == set(
            X.columns[np.argsort(small().fit(X, y).feature_importances_)[-3:]]
        )

    def test_cross_validation_runs(self, data):
        X, y = data
        assert cross_val_score(small(), X, y, cv=3).mean() > 0.6
        assert cross_val_predict(small(), X, y, cv=3, method="predict_proba").shape == (120, 2)

    def test_a_search_changes_parameters_and_keeps_the_estimator(self, data):
        X, y = data
        model = small(partition=BY_NAME)
        before = model.get_params()
        search = GridSearchCV(
            make_pipeline(model), {"secureboostclassifier__learning_rate": [0.1, 1.0]}, cv=2
        )
        search.fit(X, y)
        assert model.get_params() == before
        assert not hasattr(model, "classes_")


class TestMetaEstimators:
    def test_calibration_uses_its_scores(self, data):
        X, y = data
        for method in ("sigmoid", "isotonic"):
            model = CalibratedClassifierCV(small(), method=method, cv=3).fit(X, y)
            proba = model.predict_proba(X)
            assert proba.shape == (120, 2)
            np.testing.assert_allclose(proba.sum(axis=1), 1)
            assert model.score(X, y) > 0.85

    def test_permutation_importance_finds_the_columns_that_matter(self, data):
        X, y = data
        model = small().fit(X, y)
        found = permutation_importance(model, X, y, n_repeats=2, random_state=0).importances_mean
        unused = model.feature_importances_ == 0
        assert unused.any()
        assert (found[unused] == 0).all()
        assert found.max() > 0.05

    def test_partial_dependence_is_computed_by_brute_force(self, data):
        X, y = data
        found = partial_dependence(small().fit(X, y), X, [0], grid_resolution=4, method="brute")
        assert np.isfinite(found["average"]).all()

    def test_ensembles_of_it_train(self, data):
        X, y = data
        members = [("trees", small()), ("line", LogisticRegression())]
        five = some_data("five", n_rows=100)
        for model, (rows, labels) in (
            (VotingClassifier(members, voting="soft"), (X, y)),
            (StackingClassifier(members, cv=2), (X, y)),
            (BaggingClassifier(small(), n_estimators=2, random_state=0), (X, y)),  # repeats rows
            (OneVsRestClassifier(small(n_estimators=2)), five),
        ):
            assert model.fit(rows, labels).score(rows, labels) > 0.6


class TestState:
    def test_a_fit_that_fails_leaves_an_estimator_that_is_not_fitted(self, data):
        X, y = data
        model = small()
        with pytest.raises(NotFittedError):
            check_is_fitted(model)
        model.fit(X, y)
        check_is_fitted(model)
        with pytest.raises(ValueError):
            model.fit(X, y[:-1])
        with pytest.raises(NotFittedError):
            check_is_fitted(model)
        with pytest.raises(NotFittedError):
            model.predict(X)

    @pytest.mark.parametrize("kind", [SecureBoostClassifier, SecureBoostRegressor])
    def test_everything_that_needs_a_model_says_not_fitted(self, kind, data, tmp_path):
        X, _ = data
        model = kind()
        for use in (
            lambda: model.predict(X),
            lambda: model.apply(X),
            lambda: model.prediction_traffic(X),
            lambda: model.save(tmp_path),
            lambda: model.importances(),
            lambda: model.to_xgboost(consent=["a"]),
        ):
            with pytest.raises((NotFittedError, ImportError)):
                use()

    def test_regressors_have_no_probabilities(self, data):
        assert not hasattr(SecureBoostRegressor(), "predict_proba")
        assert not hasattr(SecureBoostRegressor(), "decision_function")


def inner_threads(model) -> int:
    return model.costs_["n_jobs"]


class TestThreadsAndProcesses:
    def test_processes_share_the_cores_between_them(self, data):
        X, y = data
        found = cross_validate(small(n_jobs=-1), X, y, cv=2, n_jobs=2, return_estimator=True)
        assert (found["test_score"] == cross_val_score(small(), X, y, cv=2)).all()
        cores = multiprocessing.cpu_count()
        assert all(inner_threads(model) <= max(1, cores // 2) for model in found["estimator"])

    def test_limits_of_the_environment_and_of_threadpoolctl_hold(self, data, monkeypatch):
        X, y = data
        with threadpool_limits(1):
            assert inner_threads(small(n_jobs=-1).fit(X, y)) == 1
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        assert inner_threads(small(n_jobs=-1).fit(X, y)) == 1

    def test_two_fits_in_two_threads_both_finish(self):
        def fit(seed):
            return positive(
                boost1(random_state=seed, n_jobs=2).fit(blocks(XA4, CONST4), Y4), blocks(XA4, CONST4)
            )

        with ThreadPoolExecutor(2) as pool:
            for proba in pool.map(fit, [0, 1, 2, 3]):
                np.testing.assert_allclose(proba, PROBA4, atol=1e-6)

    @pytest.mark.slow
    @pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
    def test_a_child_of_a_parent_that_used_threads_fits(self, method):
        fit_with_threads()
        context = multiprocessing.get_context(method)
        here, there = context.Pipe(duplex=False)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # newer Pythons dislike any fork beside threads
            child = context.Process(target=fit_in_a_child, args=(there,))
            child.start()
        there.close()  # so that a child that dies is heard at once
        try:
            assert here.poll(120), "the child hangs"
            np.testing.assert_allclose(here.recv(), PROBA4, atol=1e-6)
            child.join(60)
            assert child.exitcode == 0
        finally:
            child.kill()
