"""All estimators of linear models by name, for files that are read."""

from .logistic import SecureLogisticRegression
from .regression import SecureLinearRegression, SecurePoissonRegression

__all__ = ["SecureLinearRegression", "SecureLogisticRegression", "SecurePoissonRegression"]
