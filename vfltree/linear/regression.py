"""`SecureLinearRegression` and `SecurePoissonRegression`: values and counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from ..base import finite_targets
from .estimator import SecureLinear
from .families import FAMILIES
from .messages import LinearResult
from .penalties import mean_penalty, sum_penalty


class _SecureRegression(RegressorMixin, SecureLinear):
    """One output; `fit` and what it checks of y."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, ids: Any = None) -> Any:
        """Train; y : (n_rows,) finite numbers. See `SecureLogisticRegression.fit`."""
        return self._fit(X, y, sample_weight, ids)

    def _encode(self, y: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        return finite_targets(y)[:, None], weights

    def _shaped(self, coefficients: np.ndarray) -> np.ndarray:
        return coefficients[0]

    def _own_intercept(self, result: LinearResult) -> float:
        return float(result.intercept[0])


class SecureLinearRegression(_SecureRegression):
    """Federated least squares; ridge with `alpha`, elastic net with `alpha` and `l1_ratio`.

    Minimises sum of weight (y - z)^2 / 2 + alpha ((1 - l1_ratio) |w|^2 / 2 + l1_ratio |w|_1): alpha is that of
    scikit-learn's Ridge; its ElasticNet and Lasso have alpha / (sum of weights). Nothing is approximated here.
    Other parameters and attributes as `SecureLogisticRegression`; coef_ is (n_features,), intercept_ a number.
    """

    def __init__(
        self,
        alpha: float = 0.0,
        *,
        l1_ratio: float = 0.0,
        exchange: str = "scores",
        residual: str = "taylor",
        fit_intercept: bool = True,
        optimizer: str = "newton",
        learning_rate: float = 1.0,
        learning_rate_decay: float = 0.0,
        momentum: float = 0.9,
        max_iter: int = 100,
        tol: float = 1e-4,
        batch_size: int | None = None,
        allow_small_batches: bool = False,
        early_stopping: bool = False,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        share_coef: bool = False,
        vertical_transformer: Any = None,
        partition: Mapping[str, Any] | None = None,
        encryption: str = "paillier",
        key_bits: int = 3072,
        allow_weak_key: bool = False,
        network: str = "inprocess",
        timeout: float = 3600.0,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.exchange = exchange
        self.residual = residual
        self.fit_intercept = fit_intercept
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.learning_rate_decay = learning_rate_decay
        self.momentum = momentum
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
        self.allow_small_batches = allow_small_batches
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.share_coef = share_coef
        self.vertical_transformer = vertical_transformer
        self.partition = partition
        self.encryption = encryption
        self.key_bits = key_bits
        self.allow_weak_key = allow_weak_key
        self.network = network
        self.timeout = timeout
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _family(self) -> dict[str, Any]:
        return {"family": "gaussian", "n_outputs": 1, **sum_penalty(self.alpha, self.l1_ratio)}

    def predict(self, X: Any, ids: Any = None) -> np.ndarray:
        """Predicted values, (n_rows,)."""
        return self._scores(X, ids)[:, 0]


class SecurePoissonRegression(_SecureRegression):
    """Federated Poisson regression of counts, mean exp(z).

    Minimises the weighted mean of half the Poisson deviance + alpha |w|^2 / 2, as scikit-learn's PoissonRegressor.
    residual="exact" shows the active party the sums of the others' scores; "taylor" is exp() to first order around
    the mean of y, good while means vary little; it shows passive parties that mean. Other parameters and attributes as
    `SecureLogisticRegression`; coef_ is (n_features,), intercept_ a number.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        exchange: str = "scores",
        residual: str = "taylor",
        fit_intercept: bool = True,
        optimizer: str = "newton",
        learning_rate: float = 1.0,
        learning_rate_decay: float = 0.0,
        momentum: float = 0.9,
        max_iter: int = 100,
        tol: float = 1e-4,
        batch_size: int | None = None,
        allow_small_batches: bool = False,
        early_stopping: bool = False,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        share_coef: bool = False,
        vertical_transformer: Any = None,
        partition: Mapping[str, Any] | None = None,
        encryption: str = "paillier",
        key_bits: int = 3072,
        allow_weak_key: bool = False,
        network: str = "inprocess",
        timeout: float = 3600.0,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.exchange = exchange
        self.residual = residual
        self.fit_intercept = fit_intercept
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.learning_rate_decay = learning_rate_decay
        self.momentum = momentum
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
        self.allow_small_batches = allow_small_batches
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.share_coef = share_coef
        self.vertical_transformer = vertical_transformer
        self.partition = partition
        self.encryption = encryption
        self.key_bits = key_bits
        self.allow_weak_key = allow_weak_key
        self.network = network
        self.timeout = timeout
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _family(self) -> dict[str, Any]:
        return {"family": "poisson", "n_outputs": 1, **mean_penalty(self.alpha)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _encode(self, y: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        targets, weights = super()._encode(y, weights)
        if (targets < 0).any():
            raise ValueError(f"Poisson regression needs y >= 0, got {targets.min():g}")
        used = targets if weights is None else targets[weights > 0]
        if not used.any():
            raise ValueError("y is 0 everywhere: the logarithm of its mean is not finite")
        return targets, weights

    def predict(self, X: Any, ids: Any = None) -> np.ndarray:
        """Predicted means, (n_rows,)."""
        return FAMILIES["poisson"].mean(self._scores(X, ids))[:, 0]
