"""Trees over columns that several organisations keep to themselves: estimators in scikit-learn's manner.

    from vfltree import SecureBoostClassifier
    model = SecureBoostClassifier(n_estimators=5, partition={"bank": bank_columns, "shop": shop_columns})
    model.fit(X_train, y_train).predict_proba(X_test)

The plain half (binning, losses, histogram, splitting, tree) is NumPy and Numba and knows no cipher and no channel;
`sealing` carries gradients and sums across; each protocol is a package of its own.
"""

from importlib.metadata import version as _version

from .exceptions import NotEncryptedWarning
from .secureboost.estimator import SecureBoostClassifier, SecureBoostRegressor

__version__ = _version("vfltree")

__all__ = ["NotEncryptedWarning", "SecureBoostClassifier", "SecureBoostRegressor", "__version__"]
