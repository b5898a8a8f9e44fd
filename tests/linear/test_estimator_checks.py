"""scikit-learn's own checks of an estimator."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from vfltree import SecureLinearRegression, SecureLogisticRegression, SecurePoissonRegression

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
FULL = {"encryption": "none", "max_iter": 20}
ADAM = {**FULL, "optimizer": "adam", "learning_rate": 0.1}
EQUIVALENCE = tuple(f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse"))


@parametrize_with_checks(
    [
        SecureLogisticRegression(multi_class="ovr", class_weight="balanced", **ADAM),
        SecureLinearRegression(**ADAM),
    ]
)
def test_estimators_pass_every_check(estimator, check):
    check(estimator)


def expected(estimator):
    """The way of this optimizer, though not where it ends, depends on how rows are weighted."""
    why = "passive parties know rows, not weights, so their bound of the curvature is another one"
    return dict.fromkeys(EQUIVALENCE, why)


@parametrize_with_checks(
    [SecureLogisticRegression(**FULL), SecurePoissonRegression(**FULL)],
    expected_failed_checks=expected,
)
def test_newton_passes_every_check_but_equivalence_of_weights(estimator, check):
    check(estimator)


def weight_checks(estimator):
    checks = [
        check for _, check in estimator_checks_generator(estimator) if check.func.__name__ in EQUIVALENCE
    ]
    assert len(checks) == 2
    return checks


@pytest.mark.parametrize("kind", [SecureLogisticRegression, SecurePoissonRegression])
def test_weights_equal_repeated_rows_at_full_batch(kind):
    for check in weight_checks(kind(**ADAM)):
        check(kind(**ADAM))


def test_batches_of_repeated_rows_are_not_batches_of_weighted_rows():
    """As in scikit-learn's own stochastic estimators: what is equivalent is the loss, not the order of its parts."""
    batches = SecureLogisticRegression(batch_size=5, allow_small_batches=True, random_state=0, **ADAM)
    for check in weight_checks(batches):
        with pytest.raises(AssertionError, match="not equivalent"):
            check(batches)
