"""`SecureBoostClassifier` and `SecureBoostRegressor`: seat the parties, let them talk, gather the model."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from vflcrypto import kernels
from vfldata import columns_by_party
from vflparty import Ledger, codec, make_network, make_seat

from ..blocks import Block, blocks_from_mapping, match_columns, numeric_frame
from ..exceptions import NotEncryptedWarning
from ..losses import Logistic, Softmax
from .active import ActiveParty
from .cost import estimate
from .messages import ActiveResult, ActiveSetup, PassiveSetup, Predicted, PredictionSetup, Records
from .passive import PassiveParty
from .prediction import ActivePredictor
from .progress import ProgressBar
from .settings import BoostSettings

NETWORKS = ("inprocess", "process")
_ANSWERS_AT_ONCE = 1 << 27  # a passive party keeps one byte per (record, row) while it predicts


class _SecureBoost(BaseEstimator):
    """What both estimators share. `__init__` only stores; everything is checked in `fit`, before a key is made."""

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
        scale_pos_weight: float = 1.0,
        base_score: float | None = None,
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
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_bin = max_bin
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.gamma = gamma
        self.min_child_weight = min_child_weight
        self.subsample = subsample
        self.scale_pos_weight = scale_pos_weight
        self.base_score = base_score
        self.partition = partition
        self.encryption = encryption
        self.key_bits = key_bits
        self.allow_weak_key = allow_weak_key
        self.network = network
        self.timeout = timeout
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # ---- training

    def _encode(self, y: np.ndarray) -> tuple[np.ndarray, BoostSettings]:
        """Targets in float64, and the settings of the objective."""
        raise NotImplementedError

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Check, seat, train, gather."""
        self._settings(**self._objective_defaults())  # parameters first: the cheapest check
        blocks, y = self._training_blocks(X, y)
        n_rows = next(iter(blocks.values())).n_rows
        if n_rows == 0:
            raise ValueError("0 rows to train on")
        y = _check_targets(y, n_rows)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, np.empty((n_rows, 1)), dtype=np.float64, ensure_non_negative=True
            )
            # Rows of weight 0 never enter: not the bins either, so that they might as well not be there.
            used = weights > 0
            if not used.any():
                raise ValueError("every sample weight is 0")
            if not used.all():
                blocks = {party: block.take(used) for party, block in blocks.items()}
                y, weights = y[used], weights[used]
        targets, settings = self._encode(y)
        if settings.encryption == "none":
            warnings.warn(
                'encryption="none": passive parties receive gradients in the clear and can read labels from them',
                NotEncryptedWarning,
                stacklevel=3,
            )
        self._train(blocks, targets, weights, settings)
        return self

    def estimate_cost(self, X: Any, y: Any) -> dict[str, Any]:
        """What `fit(X, y)` will cost at most, before a key is made and without training.

        Returns the counters of `costs_` (encryptions, additions, squarings, blindings, decryptions), bytes of
        ciphertexts, and seconds on this machine and one thread: counted products times the measured price of one.
        All are upper bounds for full trees; without encryption they are what encryption would cost.
        """
        probe = clone(self)
        probe._settings(**probe._objective_defaults())
        blocks, y = probe._training_blocks(X, y)
        active, *passive = blocks.values()
        _, settings = probe._encode(_check_targets(y, active.n_rows))
        return estimate(settings, active.n_rows, {block.party: block.values for block in passive})

    def _settings(self, **objective: Any) -> BoostSettings:
        if self.network not in NETWORKS:
            raise ValueError(f"network must be one of {NETWORKS}, got {self.network!r}")
        own = {name: getattr(self, name) for name in _SHARED_PARAMETERS}
        return BoostSettings(**own, n_jobs=kernels.thread_count(self.n_jobs), **objective)

    def _objective_defaults(self) -> dict[str, Any]:
        raise NotImplementedError

    def _training_blocks(self, X: Any, y: Any) -> tuple[dict[str, Block], Any]:
        """One block per party, and the attributes scikit-learn expects of an estimator that has seen X."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        self._columns: dict[str, np.ndarray] | None
        if _is_blocks(X):
            if self.partition is not None and set(self.partition) != set(X):
                raise ValueError(f"partition names parties {list(self.partition)}, X has {list(X)}")
            order = self.partition or X
            blocks = blocks_from_mapping({party: X[party] for party in order}, n_rows=len(y))
            _check_label_order(y, next(iter(blocks.values())))
            self._columns = None
            self.n_features_in_ = sum(block.n_features for block in blocks.values())
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        else:
            if isinstance(X, pd.DataFrame):
                X = numeric_frame(X)
            X, y = validate_data(
                self, X, y, dtype=np.float64, ensure_all_finite=False, y_numeric=False, multi_output=True
            )
            names = getattr(self, "feature_names_in_", None)
            self._columns = columns_by_party(self.partition, X.shape[1], names)
            blocks = self._cut(X)
        self.parties_ = tuple(blocks)
        self.n_features_in_per_party_ = {party: block.n_features for party, block in blocks.items()}
        self._names = {party: block.names for party, block in blocks.items()}
        for party in self.parties_[1:]:
            if not blocks[party].n_features:
                raise ValueError(f"party {party!r} has no features: a passive party needs one at least")
        return blocks, y

    def _cut(self, X: np.ndarray) -> dict[str, Block]:
        assert self._columns is not None
        return {party: Block(party, X[:, columns]) for party, columns in self._columns.items()}

    def _train(
        self,
        blocks: dict[str, Block],
        targets: np.ndarray,
        weights: np.ndarray | None,
        settings: BoostSettings,
    ) -> None:
        active, *passive = blocks.values()
        seeds = _seeds(self.random_state, len(blocks))
        setup = ActiveSetup(
            party=active.party,
            features=active.values,
            targets=targets,
            weights=np.zeros(0) if weights is None else weights,
            ids_digest=active.ids_digest,
            passive_parties=tuple(block.party for block in passive),
            settings_json=settings.to_json(),
            cuts=self._cuts_of(active),
            random_seed=seeds[0],
        )
        seats = [make_seat(active.party, ActiveParty, setup)] + [
            make_seat(block.party, PassiveParty, self._passive_setup(block, settings.n_jobs, seed))
            for block, seed in zip(passive, seeds[1:], strict=True)
        ]
        with (
            ProgressBar(
                self.verbose, settings.n_estimators, "tree" if settings.n_outputs == 1 else "round"
            ) as bar,
            make_network(self.network, seats, timeout=self.timeout, on_progress=bar) as network,
        ):
            result = network.run()
            tables = {block.party: network.collect(block.party) for block in passive}
        self._active_model: ActiveResult = result
        self._passive_models = cast("dict[str, Records]", tables)
        self.encryption_ = settings.encryption
        self.base_score_ = result.base_score
        self._report_costs(network.ledger, settings)

    def _cuts_of(self, block: Block) -> tuple[np.ndarray, ...] | None:
        """Bin borders given by the caller of a subclass; None means quantiles."""
        return None

    def _passive_setup(
        self, block: Block, n_jobs: int, seed: int = 0, table: Records | None = None
    ) -> PassiveSetup:
        return PassiveSetup(
            party=block.party,
            features=block.values,
            ids_digest=block.ids_digest,
            max_bin=int(self.max_bin),
            allow_weak_key=bool(self.allow_weak_key),
            cuts=self._cuts_of(block),
            random_seed=seed,
            n_jobs=n_jobs,
            records=codec.encode(table) if table else b"",
        )

    def _report_costs(self, ledger: Ledger, settings: BoostSettings) -> None:
        self.traffic_ = ledger.summary()
        encrypted = settings.encryption != "none"
        self.costs_ = {
            "encryption": settings.encryption,
            "key_bits": int(settings.key_bits) if encrypted else None,
            "backend": kernels.backends()[0] if encrypted else None,
            "n_jobs": settings.n_jobs,
            "rounds": ledger.rounds,
            "bytes": ledger.bytes_sent,
            **{name: ledger.counts.get(name, 0) for name in _COUNTERS},
            "seconds": dict(ledger.seconds),
        }

    # ---- prediction

    def _predict(self, X: Any, ledger: Ledger | None = None) -> Predicted:
        """Raw scores and leaves of every row, by the federated protocol; its traffic is added to `ledger`."""
        ledger = Ledger() if ledger is None else ledger
        check_is_fitted(self, "_active_model")
        blocks = self._prediction_blocks(X)
        n_rows = next(iter(blocks.values())).n_rows
        n_records = max([len(t.ids) for t in self._passive_models.values()] + [1])
        step = max(1, _ANSWERS_AT_ONCE // n_records)
        pieces = [
            self._predict_rows(
                {party: block.take(slice(at, at + step)) for party, block in blocks.items()}, ledger
            )
            for at in range(0, n_rows, step)
        ]
        return Predicted(
            np.concatenate([piece.raw_scores for piece in pieces]),
            np.concatenate([piece.leaves for piece in pieces]),
        )

    def _predict_rows(self, blocks: dict[str, Block], ledger: Ledger) -> Predicted:
        active = blocks[self.parties_[0]]
        asked = [party for party in self.parties_[1:] if party in blocks]
        setup = PredictionSetup(
            party=active.party,
            features=active.values,
            ids_digest=active.ids_digest,
            passive_parties=self.parties_[1:],
            present_parties=tuple(asked),
            model=codec.encode(self._active_model),
        )
        seats = [make_seat(active.party, ActivePredictor, setup)] + [
            make_seat(
                party, PassiveParty, self._passive_setup(blocks[party], 1, table=self._passive_models[party])
            )
            for party in asked
        ]
        with make_network(self.network, seats, timeout=self.timeout) as network:
            result: Predicted = network.run()
        ledger.merge(network.ledger.to_message())
        return result

    def _prediction_blocks(self, X: Any) -> dict[str, Block]:
        if not _is_blocks(X):
            if self._columns is None:
                raise ValueError(
                    f"this model was trained on a dict of blocks; pass a dict with {list(self.parties_)}"
                )
            if isinstance(X, pd.DataFrame):
                X = numeric_frame(X)
            return self._cut(validate_data(self, X, dtype=np.float64, ensure_all_finite=False, reset=False))
        unknown = [party for party in X if party not in self.parties_]
        if unknown:
            raise ValueError(f"unknown parties {unknown}; the model has {list(self.parties_)}")
        present = {party: X[party] for party in self.parties_ if X.get(party) is not None}
        for party in self.parties_:
            self._check_present(party, present)
        n_rows = len(next(iter(present.values())))
        if self.parties_[0] not in present:
            present = {self.parties_[0]: None, **present}
        blocks = blocks_from_mapping(present, n_rows=n_rows, least=1)
        return {
            party: match_columns(block, self._names[party], self.n_features_in_per_party_[party])
            if self.n_features_in_per_party_[party] or block.n_features
            else block
            for party, block in blocks.items()
        }

    def _check_present(self, party: str, present: Mapping[str, Any]) -> None:
        """A party that owns no split may stay away."""
        if party in present or not self.n_features_in_per_party_[party]:
            return
        number = self.parties_.index(party)
        n_splits = int((self._active_model.owner == number).sum())
        if n_splits or number == 0:
            raise ValueError(
                f"party {number} ({party}) is needed: its features are used in {n_splits} splits"
            )

    def prediction_traffic(self, X: Any) -> pd.DataFrame:
        """Predict, and say what crossed: messages and bytes per party and kind, as `traffic_`."""
        ledger = Ledger()
        self._predict(X, ledger)
        return ledger.summary()

    def apply(self, X: Any) -> np.ndarray:
        """Leaf of every row in every tree: int32 (n_rows, n_trees), nodes as numbered in the tree."""
        return self._predict(X).leaves


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
    "scale_pos_weight",
    "base_score",
    "encryption",
    "key_bits",
    "allow_weak_key",
]
_COUNTERS = ("encryptions", "additions", "squarings", "blindings", "decryptions")


def _is_blocks(X: Any) -> bool:
    """One block per party? Some sparse matrices are dicts too; scikit-learn's check refuses them in its own words."""
    return isinstance(X, Mapping) and not hasattr(X, "tocsr")


def _seeds(random_state: Any, n: int) -> list[int]:
    """One seed a party; from the system when no random_state is given."""
    if random_state is None:
        return [secrets.randbits(31) for _ in range(n)]
    if isinstance(random_state, np.random.Generator):
        return random_state.integers(1 << 31, size=n).tolist()
    return check_random_state(random_state).randint(1 << 31, size=n, dtype=np.int64).tolist()


def _check_targets(y: Any, n_rows: int) -> np.ndarray:
    """y in one dimension, as long as the blocks, without missing values."""
    if isinstance(y, pd.Series | pd.DataFrame):
        y = y.to_numpy()
    y = column_or_1d(y, warn=True)
    if len(y) != n_rows:
        raise ValueError(f"y has {len(y)} labels, the parties have {n_rows} rows")
    if pd.isna(y).any():
        raise ValueError(f"y contains {int(pd.isna(y).sum())} missing values (NaN)")
    return y


def _check_label_order(y: Any, active: Block) -> None:
    """Labels with an index of the same IDs in another order would be paired with the wrong rows."""
    if isinstance(y, pd.Series | pd.DataFrame) and active.ids is not None and len(y) == active.n_rows:
        index = y.index.to_numpy()
        if not np.array_equal(index, active.ids) and set(index) == set(active.ids):
            raise ValueError(
                f"y holds the row IDs of party {active.party!r} in another order; y.loc[X.index] aligns it"
            )


class SecureBoostClassifier(ClassifierMixin, _SecureBoost):
    """Federated gradient-boosted trees for two or more classes; labels stay with the active (first) party.

    The same trees as XGBoost's ``tree_method="hist"`` on the same cuts with columns in party order, and bit for bit the
    same trees with and without encryption. Parameters carry XGBoost's names; those of our own:

    partition : dict party name -> columns; the first party is active. None: two parties, half the columns each.
    encryption : "paillier", or "none" for the same protocol in the clear (warns).
    key_bits : 3072 (default), 2048 or 4096; weaker keys, for tests only, need ``allow_weak_key=True``.
    network : "inprocess", or "process": every party in an operating-system process of its own.
    timeout : seconds to wait for a silent party.
    n_jobs : threads per party; -1 means all cores.
    random_state : seeds row sampling and each party's secret feature order. It never reaches the cipher.
    verbose : 1 shows a progress bar.

    Attributes
    ----------
    classes_ : the labels, sorted.
    parties_ : party names, the active one first.
    n_features_in_per_party_ : dict party -> number of features.
    traffic_ : DataFrame of messages and bytes per party and kind.
    costs_ : dict: encryptions, additions, squarings, blindings, decryptions, seconds per phase, key bits, backend.
    base_score_ : raw score before the first tree, per output.

    Who learns what, and what leaks: see the docstring of `vfltree.secureboost`.
    Source: Cheng et al., SecureBoost; gain and leaf formulas of XGBoost (Chen and Guestrin 2016).
    """

    def _objective_defaults(self) -> dict[str, Any]:
        return {"objective": "binary:logistic", "n_classes": 2}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SecureBoostClassifier:
        """Train.

        X : DataFrame or array of all columns, or a dict party -> DataFrame or array; NaN is missing. With DataFrames in
            a dict the index is the row ID: the parties' rows are matched by it.
        y : (n_rows,) labels of any kind scikit-learn accepts, in the order of the active party's rows.
        sample_weight : (n_rows,), optional; known to the active party only. Rows of weight 0 do not enter.
        """
        return self._fit(X, y, sample_weight)

    def _encode(self, y: np.ndarray) -> tuple[np.ndarray, BoostSettings]:
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        n_classes = len(self.classes_)
        if n_classes < 2:
            raise ValueError(f"y holds 1 class ({self.classes_[0]!r}); two at least are needed")
        objective = "binary:logistic" if n_classes == 2 else "multi:softprob"
        return numbers.astype(np.float64), self._settings(objective=objective, n_classes=n_classes)

    def decision_function(self, X: Any) -> np.ndarray:
        """Raw scores: (n_rows,) for two classes, else (n_rows, n_classes)."""
        raw = self._predict(X).raw_scores
        return raw[:, 0] if len(self.classes_) == 2 else raw

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities, (n_rows, n_classes), columns in the order of `classes_`."""
        raw = self._predict(X).raw_scores
        loss = Logistic() if len(self.classes_) == 2 else Softmax(len(self.classes_))
        return loss.link(raw)

    def predict(self, X: Any) -> np.ndarray:
        """Labels, (n_rows,)."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]


class SecureBoostRegressor(RegressorMixin, _SecureBoost):
    """Federated gradient-boosted trees for squared error. Parameters and attributes as `SecureBoostClassifier`."""

    def _objective_defaults(self) -> dict[str, Any]:
        return {"objective": "reg:squarederror", "n_classes": 1}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SecureBoostRegressor:
        """Train; y : (n_rows,) finite numbers. See `SecureBoostClassifier.fit`."""
        return self._fit(X, y, sample_weight)

    def _encode(self, y: np.ndarray) -> tuple[np.ndarray, BoostSettings]:
        targets = np.asarray(y, dtype=np.float64)
        if not np.isfinite(targets).all():
            raise ValueError("y contains infinity or NaN")
        return targets, self._settings(**self._objective_defaults())

    def predict(self, X: Any) -> np.ndarray:
        """Predicted values, (n_rows,)."""
        return self._predict(X).raw_scores[:, 0]
