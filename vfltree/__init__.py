"""Trees over columns that several organisations keep to themselves: estimators in scikit-learn's manner.

    from vfltree import SecureBoostClassifier
    model = SecureBoostClassifier(n_estimators=5, partition={"bank": bank_columns, "shop": shop_columns})
    model.fit(X_train, y_train).predict_proba(X_test)

The plain half (binning, losses, histogram, splitting, tree) is NumPy and Numba and knows no cipher and no channel;
`sealing` carries gradients and sums across; each protocol is a package of its own.
"""

from importlib import import_module as _import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

from .exceptions import InterruptedFitWarning, NotEncryptedWarning, RowsLeftOutWarning

if TYPE_CHECKING:
    from .forest.estimator import SecureForestClassifier, SecureForestRegressor
    from .linear.logistic import SecureLogisticRegression
    from .linear.regression import SecureLinearRegression, SecurePoissonRegression
    from .saving import load, load_active
    from .secureboost.estimator import SecureBoostClassifier, SecureBoostRegressor

__version__ = _version("vfltree")

__all__ = [
    "InterruptedFitWarning",
    "NotEncryptedWarning",
    "RowsLeftOutWarning",
    "SecureBoostClassifier",
    "SecureBoostRegressor",
    "SecureForestClassifier",
    "SecureForestRegressor",
    "SecureLinearRegression",
    "SecureLogisticRegression",
    "SecurePoissonRegression",
    "__version__",
    "load",
    "load_active",
]

_ON_FIRST_USE = {
    "SecureBoostClassifier": "secureboost.estimator",
    "SecureBoostRegressor": "secureboost.estimator",
    "SecureForestClassifier": "forest.estimator",
    "SecureForestRegressor": "forest.estimator",
    "SecureLinearRegression": "linear.regression",
    "SecureLogisticRegression": "linear.logistic",
    "SecurePoissonRegression": "linear.regression",
    "load": "saving",
    "load_active": "saving",
}


def __getattr__(name: str) -> Any:
    """What needs scikit-learn is loaded on first use: a party in a process of its own does without."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f"{__name__}.{_ON_FIRST_USE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
