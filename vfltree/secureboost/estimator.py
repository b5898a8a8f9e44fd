"""`SecureBoostClassifier` and `SecureBoostRegressor`: seat the parties, let them talk, gather the model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone

from vflcrypto import kernels
from vflparty.callables import name_of

from ..base import check_targets, finite_targets, found_classes
from ..bin_groups import MIN_ROWS
from ..federated import FederatedTrees
from ..growing.models import categorical_columns
from ..losses import POISSON_DELTA_STEP
from ..parameters import check_flag
from ..weights import weighted_rows
from .cost import estimate
from .export import ExportedToXGBoost
from .files import FILE_KIND
from .fitting import Fitting
from .monotone import signs_of_blocks
from .objectives import check_objective, predictions
from .passive import PassiveParty
from .settings import BoostSettings
from .staged import StagedClassification, StagedPredictions
from .training import trees_per_round


class _SecureBoost(ExportedToXGBoost, FederatedTrees):
    """What both estimators share. `__init__` only stores; everything is checked in `fit`, before a key is made."""

    _file_kind = FILE_KIND
    _passive_party = PassiveParty
    _splits_categories = True

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        learning_rate: float = 0.3,
        max_depth: int = 6,
        max_bin: int = 32,
        reg_lambda: float = 1.0,
        reg_alpha: float = 0.0,
        gamma: float = 0.0,
        min_child_weight: float = 1.0,
        subsample: float = 1.0,
        max_delta_step: float | None = None,
        colsample_bytree: float = 1.0,
        colsample_bylevel: float = 1.0,
        sampling_method: str = "uniform",
        top_rate: float = 0.2,
        other_rate: float = 0.1,
        grow_policy: str = "depthwise",
        max_leaves: int = 0,
        monotone_constraints: Mapping[Any, Any] | Sequence[int] | None = None,
        scale_pos_weight: float = 1.0,
        base_score: float | None = None,
        objective: str | Callable[..., Any] | None = None,
        quantile_alpha: float | Sequence[float] = 0.5,
        huber_slope: float = 1.0,
        class_weight: Mapping[Any, float] | str | None = None,
        multi_strategy: str = "one_output_per_tree",
        categorical_features: Any = None,
        max_cat_to_onehot: int = 4,
        max_cat_threshold: int = 64,
        partition: Mapping[str, Any] | None = None,
        min_rows_per_sum: int = MIN_ROWS,
        first_tree: str = "all",
        label_privacy_epsilon: float | None = None,
        encryption: str = "paillier",
        key_bits: int = 3072,
        allow_weak_key: bool = False,
        network: str = "inprocess",
        timeout: float = 3600.0,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        eval_metric: Any = None,
        early_stopping_rounds: int | None = None,
        callbacks: Sequence[Any] | None = None,
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 1,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_bin = max_bin
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.gamma = gamma
        self.min_child_weight = min_child_weight
        self.subsample = subsample
        self.max_delta_step = max_delta_step
        self.colsample_bytree = colsample_bytree
        self.colsample_bylevel = colsample_bylevel
        self.sampling_method = sampling_method
        self.top_rate = top_rate
        self.other_rate = other_rate
        self.grow_policy = grow_policy
        self.max_leaves = max_leaves
        self.monotone_constraints = monotone_constraints
        self.scale_pos_weight = scale_pos_weight
        self.base_score = base_score
        self.objective = objective
        self.quantile_alpha = quantile_alpha
        self.huber_slope = huber_slope
        self.class_weight = class_weight
        self.multi_strategy = multi_strategy
        self.categorical_features = categorical_features
        self.max_cat_to_onehot = max_cat_to_onehot
        self.max_cat_threshold = max_cat_threshold
        self.partition = partition
        self.min_rows_per_sum = min_rows_per_sum
        self.first_tree = first_tree
        self.label_privacy_epsilon = label_privacy_epsilon
        self.encryption = encryption
        self.key_bits = key_bits
        self.allow_weak_key = allow_weak_key
        self.network = network
        self.timeout = timeout
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.eval_metric = eval_metric
        self.early_stopping_rounds = early_stopping_rounds
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    # ---- training

    def _encode(self, y: np.ndarray) -> tuple[np.ndarray, BoostSettings]:
        """Targets in float64, and the settings of the objective."""
        raise NotImplementedError

    def _fit(self, X: Any, y: Any, sample_weight: Any, ids: Any, *evaluation: Any) -> Any:
        """Check, seat, train, gather. evaluation : sets, their weights and their row IDs."""
        self._default_settings()  # parameters first: the cheapest check
        fitting = Fitting(self, *evaluation)
        with fitting.keeping_past():
            X, y, sample_weight = self._joined(X, y, sample_weight, ids)
            blocks, y = self._begin_fit(X, y)
            blocks, y, weights = weighted_rows(
                blocks, y, sample_weight, self.class_weight, getattr(self, "classes_", None)
            )
            targets, settings = self._encode(y)
            fitting.signs = signs_of_blocks(self, settings, blocks)
            fitting.prepare(settings)
            self._warn_of_keys(settings)
            fitting.train(blocks, targets, weights, settings)
        return self

    def _evaluation_targets(self, y: np.ndarray) -> np.ndarray:
        """Targets of an evaluation set, float64."""
        raise NotImplementedError

    def estimate_cost(self, X: Any, y: Any) -> dict[str, Any]:
        """What `fit(X, y)` will cost at most, before a key is made and without training.

        Returns the counters of `costs_` (encryptions, additions, squarings, blindings, decryptions), bytes of
        ciphertexts, and seconds on this machine and one thread: counted products times the measured price of one.
        All are upper bounds for full trees; without encryption they are what encryption would cost.
        """
        probe = clone(self)
        probe._default_settings()
        blocks, y = probe._training_blocks(X, y)
        active, *passive = blocks.values()
        y = check_targets(y, active.n_rows, probe._several_targets)
        probe._see_labels(y)
        _, settings = probe._encode(y)
        features = {block.party: block.values for block in passive}
        return estimate(settings, active.n_rows, features, active.n_features)

    def _settings(self, default: str, n_classes: int, n_targets: int = 1) -> BoostSettings:
        """Settings with the objective that was asked for, or the default one."""
        self._check_seating()
        check_flag("warm_start", self.warm_start)
        if self.label_privacy_epsilon is not None and self.class_weight is not None:
            raise ValueError(
                "class_weight would tell true labels apart, which label_privacy_epsilon hides: use scale_pos_weight, "
                "which sees randomised labels only"
            )
        own = {name: getattr(self, name) for name in _SHARED_PARAMETERS}
        custom = name_of(self.objective, "objective", self.network) if callable(self.objective) else ""
        objective = default if custom or self.objective is None else cast("str", self.objective)
        check_objective(objective, n_classes)
        if own["max_delta_step"] is None:
            own["max_delta_step"] = POISSON_DELTA_STEP if objective == "count:poisson" else 0.0
        return BoostSettings(
            **own,
            objective=objective,
            n_classes=n_classes,
            n_targets=n_targets,
            custom_objective=custom,
            quantile_alpha=tuple(np.atleast_1d(self.quantile_alpha).tolist()),
            n_jobs=kernels.thread_count(self.n_jobs),
        )

    def _default_settings(self) -> BoostSettings:
        """Before y is known: whatever is wrong with parameters shows."""
        raise NotImplementedError

    def _keep_model(self, active: Any, passive: dict[str, Any]) -> None:
        super()._keep_model(active, passive)
        self.base_score_ = active.base_score
        self.n_rounds_ = len(active.sizes) // trees_per_round(active)
        self._categorical = categorical_columns(self.parties_, active, passive)


_SHARED_PARAMETERS = [
    "n_estimators",
    "learning_rate",
    "max_depth",
    "max_bin",
    "reg_lambda",
    "reg_alpha",
    "gamma",
    "min_child_weight",
    "subsample",
    "max_delta_step",
    "colsample_bytree",
    "colsample_bylevel",
    "sampling_method",
    "top_rate",
    "other_rate",
    "grow_policy",
    "max_leaves",
    "scale_pos_weight",
    "base_score",
    "huber_slope",
    "multi_strategy",
    "max_cat_to_onehot",
    "max_cat_threshold",
    "encryption",
    "key_bits",
    "first_tree",
    "label_privacy_epsilon",
    "allow_weak_key",
]


class SecureBoostClassifier(ClassifierMixin, StagedClassification, _SecureBoost):
    """Federated gradient-boosted trees for two or more classes; labels stay with the active (first) party.

    With ``min_rows_per_sum=1`` the same trees as XGBoost's ``tree_method="hist"`` on the same cuts with columns in
    party order; always, bit for bit, the same trees with and without encryption. Parameters carry XGBoost's names;
    those of our own, and what differs:

    objective : None chooses "binary:logistic" or "multi:softprob" by the number of classes; either can be named. Or a
        function f(y, raw) -> (gradients, hessians) of class numbers and raw scores; see docs/training.md.
    class_weight : dict label -> factor, or "balanced"; multiplies sample_weight, and what weighs 0 does not enter.
    colsample_bytree, colsample_bylevel : shares of the features of all parties; a round's trees share the draw.
    sampling_method : "uniform" (with `subsample`), or "goss" as in LightGBM: the `top_rate` of rows with the largest
        gradients and, with more weight, `other_rate` of all rows from the rest. Shows which rows have large gradients.
    max_delta_step : bound of leaves before the learning rate; None: 0.7 for "count:poisson", else none (0).
    monotone_constraints : 1 or -1 where predictions may not fall or rise with a column: {column: sign}, a sequence for
        all columns, or {party: either of these}. A passive party's signs show at the active one, without names.
    grow_policy : "depthwise", or "lossguide" with `max_leaves`; `max_depth` bounds both, and 0 (no bound) is refused.
    multi_strategy : "one_output_per_tree", or "multi_output_tree": a round grows one tree for all classes, whose leaves
        hold a value for each; passive parties then sum one tree's nodes in place of one tree's per class.
    categorical_features : columns of categories besides those of pandas' dtype "category": names, numbers or a mask, or
        a dict party -> columns. At most 255 categories a column; a value not seen in training counts as missing.
    partition : dict party name -> columns; the first party is active. None: two parties, half the columns each.
    min_rows_per_sum : policy of every passive party: it merges bins until each sum it sends, and each that follows for
        a sibling, is over 0 or at least so many rows; nodes of less than twice that are split by the active party's
        features alone. 1: off, and the trees are XGBoost's.
    first_tree : "all", or "active": nothing is sent to passive parties for the first round, which uses the active
        party's features only.
    label_privacy_epsilon : randomises every label once, before training sees it; smaller is more private. Unseeded:
        fits differ whatever `random_state` is. See `vfltree.label_privacy`. None: labels as they are.
    encryption : "paillier", or "none" for the same protocol in the clear (warns).
    key_bits : 3072 (default), 2048 or 4096; weaker keys, for tests only, need ``allow_weak_key=True``.
    network : "inprocess", or "process": every party in an operating-system process of its own.
    timeout : seconds to wait for a silent party.
    n_jobs : threads per party; -1 means all cores.
    random_state : seeds row sampling and each party's secret feature order. It never reaches the cipher.
    verbose : 1 prints a line per round: number, seconds, metrics, ciphertexts made.
    eval_metric : a name, a function f(y, predictions), or a list of them; see docs/training.md.
    early_stopping_rounds : rounds without improvement of the last metric on the last evaluation set after which
        training ends; the model keeps the rounds up to the best.
    callbacks : objects with after_iteration(model, epoch, evals_log) -> bool, True ends the training.
    warm_start : `fit` continues the model that is there up to `n_estimators` rounds.
    checkpoint, checkpoint_every : folder where each party writes its own file after so many rounds, and where `fit`
        with the same data and parameters goes on; never a key.

    Attributes
    ----------
    classes_ : the labels, sorted.
    parties_ : party names, the active one first.
    n_rows_ : rows that were trained on.
    n_features_in_per_party_ : dict party -> number of features.
    traffic_ : DataFrame of messages and bytes per party and kind.
    costs_ : dict: encryptions, additions, squarings, blindings, decryptions, seconds per phase, key bits, backend.
    n_rounds_ : rounds that the model holds.
    base_score_ : raw score before the first tree, per output.
    training_id_ : drawn once per fit; all files that `save` writes carry it.
    evals_result_ : dict evaluation set ("validation_0", ...) -> metric -> value per round; with an eval_set.
    best_iteration_, best_score_ : the best round (from 0), which is the last one kept; with early_stopping_rounds.

    Who learns what, and what leaks: see the docstring of `vfltree.secureboost`.
    Source: Cheng et al., SecureBoost; gain and leaf formulas of XGBoost (Chen and Guestrin 2016).
    """

    def _default_settings(self) -> BoostSettings:
        return self._settings("binary:logistic", 2)  # any objective of classes suits two

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        ids: Any = None,
        eval_set: Any = None,
        sample_weight_eval_set: Any = None,
        ids_eval_set: Any = None,
    ) -> SecureBoostClassifier:
        """Train.

        X : DataFrame or array of all columns, or a dict party -> DataFrame or array; NaN is missing. With DataFrames in
            a dict the index is the row ID: the parties' rows are matched by it.
        y : (n_rows,) labels of any kind scikit-learn accepts, in the order of the active party's rows.
        sample_weight : (n_rows,), optional; known to the active party only. Rows of weight 0 do not enter.
        ids : row IDs per party, a dict or a list in the order of the parties, for an X of blocks. Rows are matched by
            them in place of an index, and those that all parties have are trained on (`n_rows_`); a
            `RowsLeftOutWarning` says how many others there are.
        eval_set : (X, y), or a list of such pairs, to evaluate after every round; every party is needed.
        sample_weight_eval_set : weights of each set, or a list of them.
        ids_eval_set : row IDs per party as `ids`, or for a list of sets a list of them, None where a set has none; all
            parties must have the active one's rows. DataFrames in a dict are matched by their index here too.

        Ctrl-C leaves the rounds that are finished, with a warning; KeyboardInterrupt is raised where there are none.
        """
        return self._fit(X, y, sample_weight, ids, eval_set, sample_weight_eval_set, ids_eval_set)

    def _see_labels(self, y: np.ndarray) -> None:
        self.classes_ = found_classes(y)

    def _encode(self, y: np.ndarray) -> tuple[np.ndarray, BoostSettings]:
        n_classes = len(self.classes_)
        default = "binary:logistic" if n_classes == 2 else "multi:softprob"
        return np.searchsorted(self.classes_, y).astype(np.float64), self._settings(default, n_classes)

    def _evaluation_targets(self, y: np.ndarray) -> np.ndarray:
        unknown = sorted(set(np.unique(y).tolist()) - set(self.classes_.tolist()), key=str)
        if unknown:
            raise ValueError(f"its y holds the label {unknown[0]!r}, which y of the training rows does not")
        return np.searchsorted(self.classes_, y).astype(np.float64)

    def decision_function(self, X: Any, ids: Any = None) -> np.ndarray:
        """Raw scores: (n_rows,) for two classes, else (n_rows, n_classes).

        ids : row IDs per party, as in `fit`. Here and in all predictions, row i of the result is row i of the active
            party's; a ValueError names a needed party that lacks some of its rows, and how many.
        """
        return self._decision(self._predict(X, ids=ids).raw_scores)

    def _decision(self, raw: np.ndarray) -> np.ndarray:
        if raw.shape[1] == 2:
            return raw[:, 1] - raw[:, 0]
        return raw[:, 0] if raw.shape[1] == 1 else raw

    def predict_proba(self, X: Any, ids: Any = None) -> np.ndarray:
        """Probabilities, (n_rows, n_classes), columns in the order of `classes_`."""
        raw = self._predict(X, ids=ids).raw_scores
        return predictions(self._active_model.objective, raw)

    def predict(self, X: Any, ids: Any = None) -> np.ndarray:
        """Labels, (n_rows,)."""
        return self._predicted(self._predict(X, ids=ids).raw_scores)

    def _predicted(self, raw: np.ndarray) -> np.ndarray:
        scores = self._decision(raw)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]


class SecureBoostRegressor(RegressorMixin, StagedPredictions, _SecureBoost):
    """Federated gradient-boosted trees for numbers. Parameters and attributes as `SecureBoostClassifier`, and:

    objective : "reg:squarederror" (None), "reg:absoluteerror", "reg:quantileerror", "reg:pseudohubererror",
        "count:poisson", or a function of one's own as there.
    multi_strategy : also for y of several columns ("reg:squarederror", "reg:pseudohubererror").
    quantile_alpha : of "reg:quantileerror": one level in (0, 1) or several, which are predicted together.
    huber_slope : of "reg:pseudohubererror": where errors begin to count absolutely.
    """

    _several_targets = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _default_settings(self) -> BoostSettings:
        if self.class_weight is not None:
            raise ValueError(f"class_weight is for classifiers, got {self.class_weight!r}; use sample_weight")
        return self._settings("reg:squarederror", 1)

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        ids: Any = None,
        eval_set: Any = None,
        sample_weight_eval_set: Any = None,
        ids_eval_set: Any = None,
    ) -> SecureBoostRegressor:
        """Train; y : (n_rows,) finite numbers, or (n_rows, n_targets). See `SecureBoostClassifier.fit`."""
        return self._fit(X, y, sample_weight, ids, eval_set, sample_weight_eval_set, ids_eval_set)

    def _encode(self, y: np.ndarray) -> tuple[np.ndarray, BoostSettings]:
        targets = self._evaluation_targets(y)
        settings = self._settings("reg:squarederror", 1, 1 if targets.ndim == 1 else targets.shape[1])
        if settings.objective == "count:poisson" and (targets.min() < 0 or targets.max() <= 0):
            raise ValueError(
                f"count:poisson needs y of 0 or more, and one above 0; y lies between {targets.min():g} and "
                f"{targets.max():g}"
            )
        return targets, settings

    def _evaluation_targets(self, y: np.ndarray) -> np.ndarray:
        return finite_targets(y)

    def predict(self, X: Any, ids: Any = None) -> np.ndarray:
        """Predicted values, (n_rows,); (n_rows, n_targets) or (n_rows, n_quantiles) where there are several."""
        return self._predicted(self._predict(X, ids=ids).raw_scores)

    def _predicted(self, raw: np.ndarray) -> np.ndarray:
        return predictions(self._active_model.objective, raw)
