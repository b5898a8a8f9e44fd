"""scikit-learn's own checks of an estimator."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from tests.secureboost.small import WEAK
from vfltree import SecureForestClassifier, SecureForestRegressor

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]

# A bootstrap sample of repeated rows is another draw than one of weighted rows: scikit-learn expects its own forests to
# fail these too. Without a bootstrap the next test says that weights are repetitions.
NOT_OF_BOOTSTRAPS = {
    name: "rows are drawn, so a weight is not a repetition"
    for name in (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    )
}


@parametrize_with_checks(
    [SecureForestClassifier(4, encryption="none"), SecureForestRegressor(4, encryption="none")],
    expected_failed_checks=lambda estimator: NOT_OF_BOOTSTRAPS,
)
def test_plain_estimators_pass_every_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [SecureForestClassifier, SecureForestRegressor])
def test_without_a_bootstrap_weights_are_repetitions(kind):
    estimator = kind(
        3, encryption="none", bootstrap=False, max_features=None, max_bin=256, min_rows_per_sum=1
    )
    ran = 0
    for instance, check in estimator_checks_generator(estimator):
        if getattr(check, "func", check).__name__ == "check_sample_weight_equivalence_on_dense_data":
            check(instance)
            ran += 1
    assert ran == 1


# Checks that look at data, shapes, pickling and repeatability; the others do not reach the cipher.
_WITH_A_KEY = {
    "check_fit2d_1sample",
    "check_fit2d_1feature",
    "check_estimators_pickle",
    "check_fit_idempotent",
    "check_methods_subset_invariance",
    "check_n_features_in",
}


def encrypted_checks():
    for kind in (SecureForestClassifier, SecureForestRegressor):
        for estimator, check in estimator_checks_generator(kind(2, max_depth=2, **WEAK)):
            name = getattr(check, "func", check).__name__
            if name in _WITH_A_KEY:
                yield pytest.param(estimator, check, id=f"{kind.__name__}-{name}")


@pytest.mark.parametrize(("estimator", "check"), list(encrypted_checks()))
def test_encrypted_estimators_pass_the_checks_that_reach_the_cipher(estimator, check):
    check(estimator)
