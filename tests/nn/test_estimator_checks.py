"""scikit-learn's own checks of an estimator."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from vflnn import VFLClassifier, VFLRegressor

# Small batches: the checks' data sets have some hundred rows, and 30 steps are too few to learn them.
SETTINGS = {"epochs": 5, "lr": 0.05, "batch_size": 16}


@parametrize_with_checks([VFLClassifier(**SETTINGS), VFLRegressor(**SETTINGS)])
def test_estimators_pass_every_check(estimator, check):
    check(estimator)
