"""scikit-learn's own checks of an estimator."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from tests.secureboost.small import WEAK
from vfltree import SecureBoostClassifier, SecureBoostRegressor

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]


# A row of weight 2 is not two rows where rows are counted; so sums are over any rows here.
PLAIN = {"encryption": "none", "min_rows_per_sum": 1}


@parametrize_with_checks([SecureBoostClassifier(5, **PLAIN), SecureBoostRegressor(10, **PLAIN)])
def test_plain_estimators_pass_every_check(estimator, check):
    check(estimator)


# Checks that look at data, shapes, pickling and repeatability; the others do not reach the cipher.
_WITH_A_KEY = {
    "check_fit2d_1sample",
    "check_fit2d_1feature",
    "check_estimators_pickle",
    "check_fit_idempotent",
    "check_methods_subset_invariance",
    "check_methods_sample_order_invariance",
    "check_dict_unchanged",
    "check_estimators_dtypes",
    "check_n_features_in",
    "check_dont_overwrite_parameters",
    "check_classifiers_one_label",
}


def encrypted_checks():
    for kind in (SecureBoostClassifier, SecureBoostRegressor):
        for estimator, check in estimator_checks_generator(kind(1, max_depth=2, **WEAK)):
            name = getattr(check, "func", check).__name__
            if name in _WITH_A_KEY:
                yield pytest.param(estimator, check, id=f"{kind.__name__}-{name}")


@pytest.mark.parametrize(("estimator", "check"), list(encrypted_checks()))
def test_encrypted_estimators_pass_the_checks_that_reach_the_cipher(estimator, check):
    check(estimator)


def test_most_of_the_listed_checks_exist():
    """Checks that scikit-learn renames would silently no longer run; one or two may go between its versions."""
    names = {param.id.split("-")[1] for param in encrypted_checks()}
    assert len(names) >= len(_WITH_A_KEY) - 2
