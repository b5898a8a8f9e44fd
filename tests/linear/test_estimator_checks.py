"""scikit-learn's own checks of an estimator."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from vfltree import SecureLinearRegression, SecureLogisticRegression, SecurePoissonRegression

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


FULL = {"encryption": "none", "max_iter": 30}
ADAM = {**FULL, "optimizer": "adam", "learning_rate": 0.1}


@parametrize_with_checks(
    [
        SecureLogisticRegression(**ADAM),
        SecureLogisticRegression(multi_class="ovr", class_weight="balanced", **ADAM),
        SecureLinearRegression(**ADAM),
        SecurePoissonRegression(**ADAM),
    ]
)
def test_estimators_pass_every_check(estimator, check):
    check(estimator)


def expected(estimator):
    """Where an optimizer's way, though not where it ends, depends on how rows are weighted."""
    why = {
        "newton": "passive parties know rows, not weights, so the bound of their curvature is another one",
        "adam": "batches of repeated rows are not batches of weighted rows",
    }[estimator.optimizer]
    return {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}


@parametrize_with_checks(
    [
        SecureLogisticRegression(**FULL),
        SecureLinearRegression(**FULL),
        SecureLogisticRegression(batch_size=8, allow_small_batches=True, random_state=0, **ADAM),
    ],
    expected_failed_checks=expected,
)
def test_newton_and_small_batches_pass_every_check_but_equivalence_of_weights(estimator, check):
    check(estimator)
