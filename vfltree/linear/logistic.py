"""`SecureLogisticRegression`: two or more classes, softmax or one against the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from ..base import found_classes
from ..weights import class_factors
from .estimator import SecureLinear
from .families import FAMILIES
from .penalties import inverse_penalty

MULTI_CLASS = ("softmax", "ovr")


class SecureLogisticRegression(ClassifierMixin, SecureLinear):
    """Federated logistic regression; labels stay with the active (first) party, a coordinator holds the key.

    Parameters carry scikit-learn's names (`C`, `l1_ratio`, `class_weight`, `fit_intercept`, `max_iter`, `tol`,
    `warm_start`); C = inf means no penalty. Those of our own:

    multi_class : "softmax" (one model for all classes) or "ovr" (one against the rest); two classes take one output.
    exchange : "scores", or "rows" for two parties: far less work, other leakage; see `vfltree.linear.rows`.
    residual : how the logistic function is computed under encryption: "taylor" (at 0), "least_squares" or "minimax"
        (over [-interval, interval]), all of the given `order` 1 or 3; or "exact", which shows the active party the
        sums of the others' scores (see `vfltree.linear.exact`).
    optimizer : "newton" (per party's own columns, full batches; see `BlockNewton`), "sgd", "momentum", "adam" or
        "adagrad".
    learning_rate, learning_rate_decay, momentum : of the optimizer; the rate falls as 1 / (1 + decay * step).
    batch_size : None for all rows; small batches give labels away and are refused without allow_small_batches=True.
    early_stopping, n_iter_no_change : stop when the training loss, to second order under encryption or exact, has not
        fallen by more than tol for so many epochs. The active party sees the loss and announces the end only.
    share_coef : every party consents that `coef_` shows its coefficients.
    vertical_transformer : a scikit-learn transformer that every party fits on its own raw columns (a StandardScaler,
        say), or a dict party -> transformer. Then coef_ goes with the transformed columns, parties in order.
    partition : dict party name -> columns; the first party is active. None: two parties, half the columns each.
    encryption : "paillier", or "none" for the same protocol in the clear (warns).
    key_bits : 3072 (default), 2048 or 4096; weaker keys, for tests only, need allow_weak_key=True.
    network : "inprocess", or "process": every party, and the coordinator, in an operating-system process of its own.
    n_jobs : threads per party; -1 means all cores.
    random_state : seeds the order of rows in batches. It never reaches the cipher.

    Attributes
    ----------
    classes_ : the labels, sorted.
    intercept_ : (n_outputs,), the active party's.
    coef_ : (n_outputs, n_features), with share_coef=True; `coefficients(party)` is a party's own view.
    n_iter_ : epochs.
    loss_curve_ : mean losses of epochs, where early_stopping or residual="exact" shows them; else empty.
    parties_, n_features_in_per_party_ : names, the active one first; number of columns of each.
    traffic_, costs_ : messages and bytes per party and kind; counts of operations, seconds per phase.
    coordinator_log_ : what the coordinator was asked.

    Encrypted and plain training give the same coefficients, bit for bit; with residual="exact" they agree with
    scikit-learn's on pooled data within 1e-4 at convergence. Source: Yang et al. 2019, section 2.4.
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        l1_ratio: float = 0.0,
        multi_class: str = "softmax",
        class_weight: Any = None,
        exchange: str = "scores",
        residual: str = "taylor",
        order: int = 1,
        interval: float = 6.0,
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
        self.C = C
        self.l1_ratio = l1_ratio
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.exchange = exchange
        self.residual = residual
        self.order = order
        self.interval = interval
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, ids: Any = None) -> SecureLogisticRegression:
        """Train.

        X : DataFrame, array or SciPy matrix of all columns, or a dict party -> one of them. With DataFrames in a dict
            the index is the row ID: the parties' rows are matched by it.
        y : (n_rows,) labels of any kind scikit-learn accepts, in the order of the active party's rows.
        sample_weight : (n_rows,), optional; known to the active party only. Rows of weight 0 do not enter.
        ids : dict party -> row IDs, where the parties hold rows in orders of their own.
        """
        return self._fit(X, y, sample_weight, ids)

    def _family(self) -> dict[str, Any]:
        if self.multi_class not in MULTI_CLASS:
            raise ValueError(f"multi_class must be one of {MULTI_CLASS}, got {self.multi_class!r}")
        n_classes = len(self.__dict__.get("classes_", (0, 1)))
        several = n_classes > 2
        family = "multinomial" if several and self.multi_class == "softmax" else "binomial"
        return {
            "family": family,
            "n_outputs": n_classes if several else 1,
            **inverse_penalty(self.C, self.l1_ratio),
        }

    def _encode(self, y: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        self.classes_ = found_classes(y)
        numbers, n_classes = np.searchsorted(self.classes_, y), len(self.classes_)
        if self.class_weight is not None:
            has_weight = np.ones(len(y), dtype=bool) if weights is None else weights > 0
            given = None if weights is None else weights[has_weight]
            factors = class_factors(self.class_weight, self.classes_, y[has_weight], given)[numbers]
            weights = factors if weights is None else weights * factors
        targets = (numbers[:, None] == np.arange(n_classes)).astype(np.float64)
        return (targets if n_classes > 2 else targets[:, 1:]), weights

    def decision_function(self, X: Any, ids: Any = None) -> np.ndarray:
        """Scores: (n_rows,) for two classes, else (n_rows, n_classes)."""
        scores = self._scores(X, ids)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any, ids: Any = None) -> np.ndarray:
        """Probabilities by the logistic function itself, (n_rows, n_classes), columns in the order of `classes_`."""
        scores = self._scores(X, ids)
        if len(self.classes_) == 2:
            positive = FAMILIES["binomial"].mean(scores)
            return np.hstack([1.0 - positive, positive])
        if self.multi_class == "softmax":
            return FAMILIES["multinomial"].mean(scores)
        each = FAMILIES["binomial"].mean(scores)
        total = each.sum(axis=1, keepdims=True)
        return np.where(total > 0, each / np.where(total > 0, total, 1.0), 1.0 / each.shape[1])

    def predict_log_proba(self, X: Any, ids: Any = None) -> np.ndarray:
        """Logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, ids))

    def predict(self, X: Any, ids: Any = None) -> np.ndarray:
        """Labels, (n_rows,)."""
        scores = self.decision_function(X, ids)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]
