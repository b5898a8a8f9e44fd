"""`SecureForestClassifier` and `SecureForestRegressor`: seat the parties, let them talk, gather the model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.metrics import accuracy_score, r2_score

from vflcrypto import kernels
from vflparty import codec

from ..base import check_targets, finite_targets, found_classes, party_seeds
from ..bin_groups import MIN_ROWS
from ..blocks import Block
from ..federated import FederatedTrees
from ..growing.numbering import MAX_DEPTH
from ..weights import checked_weights, class_factors, weighted_rows
from .active import ForestActive, row_values
from .cost import estimate
from .files import FILE_KIND
from .messages import ActiveResult, ForestResult, ForestSetup
from .passive import ForestPassive
from .settings import ForestSettings

CLASS_WEIGHTS = ("balanced", "balanced_subsample")


class _SecureForest(FederatedTrees):
    """What both estimators share. `__init__` only stores; everything is checked in `fit`, before a key is made."""

    _file_kind = FILE_KIND
    _passive_party = ForestPassive
    _shares_per_tree = True
    _in_the_clear = "the targets, so the labels, in the clear"
    class_weight: Any = None

    def __init__(
        self,
        n_estimators: int,
        criterion: str,
        max_depth: int | None,
        min_samples_split: int | float,
        min_samples_leaf: int | float,
        min_weight_fraction_leaf: float,
        max_features: str | int | float | None,
        min_impurity_decrease: float,
        bootstrap: bool,
        oob_score: bool | Callable[..., float],
        max_samples: int | float | None,
        max_bin: int,
        min_rows_per_sum: int,
        partition: Mapping[str, Any] | None,
        encryption: str,
        key_bits: int,
        allow_weak_key: bool,
        network: str,
        timeout: float,
        n_jobs: int | None,
        random_state: Any,
        verbose: int,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.max_samples = max_samples
        self.max_bin = max_bin
        self.min_rows_per_sum = min_rows_per_sum
        self.partition = partition
        self.encryption = encryption
        self.key_bits = key_bits
        self.allow_weak_key = allow_weak_key
        self.network = network
        self.timeout = timeout
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ---- training

    def _encode(self, y: np.ndarray) -> tuple[np.ndarray, ForestSettings]:
        """Targets in float64, and the settings."""
        raise NotImplementedError

    def _settings(self, n_classes: int) -> ForestSettings:
        self._check_seating()
        if not (isinstance(self.oob_score, bool) or callable(self.oob_score)):
            raise TypeError(f"oob_score must be True, False or a function, got {self.oob_score!r}")
        own = {name: getattr(self, name) for name in _SHARED_PARAMETERS}
        return ForestSettings(
            **own,
            max_depth=MAX_DEPTH if self.max_depth is None else self.max_depth,
            n_classes=n_classes,
            balanced_subsample=self.class_weight == "balanced_subsample",
            out_of_bag=bool(self.oob_score),
            n_jobs=kernels.thread_count(self.n_jobs),
        )

    def _factors_of_classes(self, y: np.ndarray) -> np.ndarray:
        """What sums of each class are multiplied by, float64 (n_classes,); empty for all one."""
        return np.zeros(0)

    def _entering_weights(self, y: np.ndarray, sample_weight: Any) -> np.ndarray | None:
        """Weights of rows, 0 where a row does not enter."""
        return checked_weights(sample_weight, len(y))

    def _fit(self, X: Any, y: Any, sample_weight: Any, ids: Any) -> Any:
        """Check, seat, train, gather."""
        self._settings(1)  # parameters first: the cheapest check
        for name in ("oob_score_", "oob_decision_function_", "oob_prediction_"):
            self.__dict__.pop(name, None)
        X, y, sample_weight = self._joined(X, y, sample_weight, ids)
        blocks, y = self._begin_fit(X, y)
        n_rows = len(y)
        sample_weight = self._entering_weights(y, sample_weight)
        used = np.ones(n_rows, dtype=bool) if sample_weight is None else sample_weight > 0
        blocks, y, weights = weighted_rows(blocks, y, sample_weight)
        targets, settings = self._encode(y)
        settings.n_draws(len(y))
        self._warn_of_keys(settings)
        out_of_bag = self._train(blocks, targets, weights, self._factors_of_classes(y), settings)
        if settings.out_of_bag:
            full = np.full((n_rows, out_of_bag.shape[1]), np.nan)
            full[used] = out_of_bag
            self._keep_out_of_bag(full, used, y)
        return self

    def estimate_cost(self, X: Any, y: Any, sample_weight: Any = None) -> dict[str, Any]:
        """What `fit(X, y, sample_weight)` will cost at most, before a key is made and without training.

        Returns the counters of `costs_` (encryptions, additions, squarings, blindings, decryptions), bytes of
        ciphertexts, and seconds on this machine and one thread: counted products times the measured price of one.
        All are upper bounds for full trees; without encryption they are what encryption would cost.
        """
        probe = clone(self)
        probe._settings(1)
        blocks, y = probe._training_blocks(X, y)
        y = check_targets(y, next(iter(blocks.values())).n_rows)
        probe._see_labels(y)
        blocks, y, weights = weighted_rows(blocks, y, probe._entering_weights(y, sample_weight))
        active, *passive = blocks.values()
        targets, settings = probe._encode(y)
        layout = row_values(settings, targets, weights).layout
        return estimate(settings, layout, {block.party: block.values for block in passive}, active.n_features)

    def _train(
        self,
        blocks: dict[str, Block],
        targets: np.ndarray,
        weights: np.ndarray | None,
        class_weights: np.ndarray,
        settings: ForestSettings,
    ) -> np.ndarray:
        """Keeps the model; returns what trees say of rows they did not draw, (n_rows, n_values)."""
        active, *passive = blocks.values()
        seeds = party_seeds(self.random_state, len(blocks))
        setup = ForestSetup(
            party=active.party,
            features=active.values,
            targets=targets,
            weights=np.zeros(0) if weights is None else weights,
            class_weights=class_weights,
            ids_digest=active.ids_digest,
            passive_parties=tuple(block.party for block in passive),
            settings_json=settings.to_json(),
            cuts=self._cuts_of(active),
            random_seed=seeds[0],
        )
        result, tables = self._lead_training(ForestActive, setup, passive, seeds[1:], settings, "tree")
        assert isinstance(result, ForestResult)
        self._keep_model(codec.decode(result.model, (ActiveResult,)), tables)
        return result.out_of_bag

    def _keep_out_of_bag(self, values: np.ndarray, used: np.ndarray, y: np.ndarray) -> None:
        """Set `oob_score_` and what it is of. values : (n_rows, n_values), NaN where no tree can say; y : of `used`."""
        raise NotImplementedError

    def _out_of_bag_score(self, y: np.ndarray, predicted: np.ndarray, default: Callable[..., Any]) -> float:
        if not len(y):
            raise ValueError(
                "every tree drew every row, so there is no out-of-bag score: more rows or trees are needed"
            )
        scorer = self.oob_score if callable(self.oob_score) else default
        return float(scorer(y, predicted))

    # ---- prediction

    def _means(self, X: Any, ids: Any) -> np.ndarray:
        """Mean leaf values over the trees, (n_rows, n_values)."""
        raw = self._predict(X, ids=ids).raw_scores
        return raw / len(self._active_model.sizes)


_SHARED_PARAMETERS = [
    "n_estimators",
    "criterion",
    "min_samples_split",
    "min_samples_leaf",
    "min_weight_fraction_leaf",
    "max_features",
    "min_impurity_decrease",
    "bootstrap",
    "max_samples",
    "max_bin",
    "encryption",
    "key_bits",
    "allow_weak_key",
]


def _warn_of_missing_out_of_bag(n_missing: int) -> None:
    if n_missing:
        warnings.warn(
            f"{n_missing} rows have no out-of-bag prediction: every tree drew them; more trees are needed",
            stacklevel=5,
        )


class SecureForestClassifier(ClassifierMixin, _SecureForest):
    """Federated random forest for two or more classes; labels stay with the active (first) party.

    Bit for bit the same trees with and without encryption. Parameters carry scikit-learn's names; those of our own, and
    what differs:

    max_depth : 10; None grows until leaves are pure, to 30 at most. Deep trees show passive parties more of the labels.
    min_samples_split, min_samples_leaf : count a row as often as its tree drew it.
    max_features : drawn anew at every node over the features of all parties, by number and not by name.
    oob_score : True or a function; rows that a tree did not draw then travel down with it (see `vfltree.forest`).
    class_weight : dict label -> factor, "balanced" or "balanced_subsample". Applied to opened sums by the active
        party: nothing of it leaves, and draws do not depend on it; but rows of a class of weight 0 do not enter.
    max_bin : bins per feature (quantiles), for missing values one more.
    min_rows_per_sum : policy of every passive party: it merges bins until each sum it sends, and each that follows for
        a sibling, is over no row or at least so many distinct ones; 1 sends sums of any rows.
    partition : dict party name -> columns; the first party is active. None: two parties, half the columns each.
    encryption : "paillier", or "none" for the same protocol in the clear (warns).
    key_bits : 3072 (default), 2048 or 4096; weaker keys, for tests only, need ``allow_weak_key=True``.
    network : "inprocess", or "process": every party in an operating-system process of its own.
    timeout : seconds to wait for a silent party.
    n_jobs : threads per party; -1 means all cores.
    random_state : seeds draws and each party's secret feature orders. It never reaches the cipher.
    verbose : 1 shows a progress bar.

    Attributes
    ----------
    classes_ : the labels, sorted.
    oob_score_, oob_decision_function_ : with `oob_score`; shares are NaN where every tree drew the row.
    parties_ : party names, the active one first.
    n_features_in_per_party_ : dict party -> number of features.
    traffic_ : DataFrame of messages and bytes per party and kind.
    costs_ : dict: encryptions, additions, squarings, blindings, decryptions, seconds per phase, key bits, backend.
    training_id_ : drawn once per fit; all files that `save` writes carry it.

    Who learns what, and what leaks: see the docstring of `vfltree.forest`.
    Source: Breiman, Random Forests (2001); the protocol after Cheng et al., SecureBoost.
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = 10,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: str | int | float | None = "sqrt",
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: bool | Callable[..., float] = False,
        class_weight: Mapping[Any, float] | str | None = None,
        max_samples: int | float | None = None,
        max_bin: int = 32,
        min_rows_per_sum: int = MIN_ROWS,
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
        super().__init__(
            n_estimators, criterion, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf,
            max_features, min_impurity_decrease, bootstrap, oob_score, max_samples, max_bin, min_rows_per_sum,
            partition, encryption, key_bits, allow_weak_key, network, timeout, n_jobs, random_state, verbose,
        )  # fmt: skip
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, ids: Any = None) -> SecureForestClassifier:
        """Train.

        X : DataFrame or array of all columns, or a dict party -> DataFrame or array; NaN is missing. With DataFrames in
            a dict the index is the row ID: the parties' rows are matched by it.
        y : (n_rows,) labels of any kind scikit-learn accepts, in the order of the active party's rows.
        sample_weight : (n_rows,), optional; known to the active party only. Rows of weight 0 do not enter. Weights
            multiply draws and travel encrypted; they do not change how often a row is drawn.
        ids : row IDs per party, a dict or a list in the order of the parties, as in `SecureBoostClassifier.fit`.
        """
        return self._fit(X, y, sample_weight, ids)

    def _settings(self, n_classes: int) -> ForestSettings:
        if self.criterion == "squared_error":
            raise ValueError("criterion must be 'gini' or 'entropy' for classes, got 'squared_error'")
        if isinstance(self.class_weight, str) and self.class_weight not in CLASS_WEIGHTS:
            raise ValueError(
                f"class_weight must be a dict or one of {CLASS_WEIGHTS}, got {self.class_weight!r}"
            )
        if not (self.class_weight is None or isinstance(self.class_weight, str | Mapping)):
            raise TypeError(f"class_weight must be a dict, a string or None, got {self.class_weight!r}")
        return super()._settings(n_classes)

    def _see_labels(self, y: np.ndarray) -> None:
        self.classes_ = found_classes(y)

    def _encode(self, y: np.ndarray) -> tuple[np.ndarray, ForestSettings]:
        return np.searchsorted(self.classes_, y).astype(np.float64), self._settings(len(self.classes_))

    def _entering_weights(self, y: np.ndarray, sample_weight: Any) -> np.ndarray | None:
        """Those of classes multiply sums later; but what weighs nothing does not enter."""
        weights = super()._entering_weights(y, sample_weight)
        if not isinstance(self.class_weight, Mapping):
            return weights
        enters = class_factors(self.class_weight, self.classes_, y)[np.searchsorted(self.classes_, y)] > 0
        if not enters.any():
            raise ValueError("every class weight is 0")
        if enters.all():
            return weights
        return enters.astype(np.float64) if weights is None else weights * enters

    def _factors_of_classes(self, y: np.ndarray) -> np.ndarray:
        if self.class_weight is None or self.class_weight == "balanced_subsample":
            return np.zeros(0)
        return class_factors(self.class_weight, self.classes_, y)

    def _keep_out_of_bag(self, values: np.ndarray, used: np.ndarray, y: np.ndarray) -> None:
        self.oob_decision_function_ = values
        known = ~np.isnan(values[used, 0])
        _warn_of_missing_out_of_bag(int((~known).sum()))
        predicted = self.classes_[values[used][known].argmax(axis=1)]
        self.oob_score_ = self._out_of_bag_score(y[known], predicted, accuracy_score)

    def predict_proba(self, X: Any, ids: Any = None) -> np.ndarray:
        """Mean class shares of the leaves, (n_rows, n_classes), columns in the order of `classes_`.

        ids : row IDs per party, as in `fit`. Row i of every result is row i of the active party's.
        """
        return self._means(X, ids)

    def predict_log_proba(self, X: Any, ids: Any = None) -> np.ndarray:
        """Logarithms of `predict_proba`; -inf where a share is 0."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X, ids)))

    def predict(self, X: Any, ids: Any = None) -> np.ndarray:
        """Labels, (n_rows,)."""
        shares = self.predict_proba(X, ids)
        return self.classes_[shares.argmax(axis=1)]


class SecureForestRegressor(RegressorMixin, _SecureForest):
    """Federated random forest for numbers. Parameters and attributes as `SecureForestClassifier`, but:

    criterion : "squared_error".
    max_features : 1.0, all features, as in scikit-learn.
    oob_prediction_ : with `oob_score`, (n_rows,), NaN where every tree drew the row.
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = 10,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: str | int | float | None = 1.0,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: bool | Callable[..., float] = False,
        max_samples: int | float | None = None,
        max_bin: int = 32,
        min_rows_per_sum: int = MIN_ROWS,
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
        super().__init__(
            n_estimators, criterion, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf,
            max_features, min_impurity_decrease, bootstrap, oob_score, max_samples, max_bin, min_rows_per_sum,
            partition, encryption, key_bits, allow_weak_key, network, timeout, n_jobs, random_state, verbose,
        )  # fmt: skip

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, ids: Any = None) -> SecureForestRegressor:
        """Train; y : (n_rows,) finite numbers. See `SecureForestClassifier.fit`."""
        return self._fit(X, y, sample_weight, ids)

    def _settings(self, n_classes: int) -> ForestSettings:
        if self.criterion != "squared_error":
            raise ValueError(f"criterion must be 'squared_error' for numbers, got {self.criterion!r}")
        return super()._settings(n_classes)

    def _encode(self, y: np.ndarray) -> tuple[np.ndarray, ForestSettings]:
        return finite_targets(y), self._settings(1)

    def _keep_out_of_bag(self, values: np.ndarray, used: np.ndarray, y: np.ndarray) -> None:
        self.oob_prediction_ = values[:, 0]
        known = ~np.isnan(values[used, 0])
        _warn_of_missing_out_of_bag(int((~known).sum()))
        self.oob_score_ = self._out_of_bag_score(
            np.asarray(y, dtype=np.float64)[known], values[used][known, 0], r2_score
        )

    def predict(self, X: Any, ids: Any = None) -> np.ndarray:
        """Predicted values, (n_rows,)."""
        return self._means(X, ids)[:, 0]
