"""`SecureLogisticRegression` and its like: seat the parties and the coordinator, let them talk, gather the model."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Container, Mapping
from typing import Any, cast

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from vflcrypto import kernels
from vflcrypto.callers import outside_level
from vflparty import Ledger, Message, Network, Seat, codec, make_network, make_seat, new_training_id
from vflparty.coordinator import Coordinator, CoordinatorLog, CoordinatorSetup

from ..base import check_targets, party_seeds
from ..blocks import Block
from ..joining import join_training
from ..parameters import check_flag
from ..progress import ProgressBar
from ..saving import SavedByParty
from ..seating import check_seating, costs_of, warn_of_keys
from ..weights import checked_weights, entering_rows
from .active import LinearActiveParty, check_batches, check_exchange
from .arithmetic import COUNTERS
from .features import encode_features
from .files import FILE_KIND
from .messages import (
    LinearActiveSetup,
    LinearPassiveSetup,
    LinearPredicted,
    LinearPredictionSetup,
    LinearResult,
    PassiveCoefficients,
)
from .passive import LinearPassiveParty
from .prediction import LinearPredictor
from .rows.layout import plan_rows
from .settings import LinearSettings
from .vertical import VerticallyTransformed

IN_THE_CLEAR = "parties receive scores and residuals in the clear and can read labels from them"


class SecureLinear(SavedByParty, VerticallyTransformed):
    """What the estimators share. `__init__` only stores; everything is checked in `fit`, before a key is made."""

    _accept_sparse = True
    _file_kind = FILE_KIND
    coordinator_log_: CoordinatorLog | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        tags.input_tags.sparse = True
        return tags

    # ---- what each estimator says

    def _encode(self, y: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets, float64 (n_rows, n_outputs), and weights."""
        raise NotImplementedError

    def _family(self) -> dict[str, Any]:
        """`family`, `n_outputs` and penalties of the settings."""
        raise NotImplementedError

    # ---- training

    def _settings(self, **family: Any) -> LinearSettings:
        check_seating(self.network, self.timeout, self.verbose)
        check_flag("warm_start", self.warm_start)
        check_flag("share_coef", self.share_coef)  # a text that says "no" must not pass for consent
        own = {name: getattr(self, name) for name in SHARED_PARAMETERS if hasattr(self, name)}
        size = 0 if self.batch_size is None else self.batch_size
        if self.batch_size is not None and (not isinstance(size, numbers.Integral) or size < 1):
            raise ValueError(f"batch_size must be a positive integer or None for all rows, got {size!r}")
        return LinearSettings(**own, batch_size=size, n_jobs=kernels.thread_count(self.n_jobs), **family)

    def _fit(self, X: Any, y: Any, sample_weight: Any, ids: Any) -> Any:
        """Check, seat, train, gather."""
        self._settings(**self._family())  # parameters first: the cheapest check
        previous = self._halves() if self.__sklearn_is_fitted__() and self.warm_start else None
        self.__dict__.pop("_active_model", None)  # a fit that fails must not leave an old model
        if ids is not None:
            X, y, sample_weight = join_training(X, y, sample_weight, ids, self.partition)
        blocks, y = self._training_blocks(X, y)
        n_rows = next(iter(blocks.values())).n_rows
        if n_rows == 0:
            raise ValueError("0 rows to train on")
        check_finite(blocks)
        y = check_targets(y, n_rows)
        targets, weights = self._encode(y, checked_weights(sample_weight, n_rows))
        blocks, targets, weights = entering_rows(blocks, targets, weights, "class")
        settings = self._settings(**self._family())
        check_batches(settings, {block.party: block.n_features for block in blocks.values()})
        for block in blocks.values():
            check_exchange(settings, len(blocks) - 1, weights is not None, block.values)
        warn_of_keys(settings, self.network, IN_THE_CLEAR)
        self._train(blocks, targets, weights, settings, previous)
        return self

    def _train(
        self,
        blocks: dict[str, Block],
        targets: np.ndarray,
        weights: np.ndarray | None,
        settings: LinearSettings,
        previous: dict[str, Message] | None,
    ) -> None:
        start = _starting_points(previous, blocks, settings)
        seats = self._seats(blocks, targets, weights, settings, start)
        with (
            ProgressBar(self.verbose, settings.max_iter, "epoch") as bar,
            make_network(self.network, seats, timeout=self.timeout, on_progress=bar) as network,
        ):
            result = self._run(network, settings)
            passive = {party: network.collect(party) for party in self.parties_[1:]}
            encrypted = settings.encryption != "none"
            log = network.collect(_coordinator_name(blocks)) if encrypted else None
        self._keep_model(result, passive)
        self.training_id_ = new_training_id()
        self.coordinator_log_ = cast("CoordinatorLog | None", log)
        self.encryption_ = settings.encryption
        self.n_iter_ = int(result.n_epochs)
        self.loss_curve_ = result.losses.tolist()
        self._report_costs(network.ledger, settings)
        if not result.converged and not settings.batch_size:
            warnings.warn(
                f"{result.n_epochs} epochs were not enough for gradients below tol={settings.tol:g}: more max_iter, "
                "another learning_rate, or columns scaled to like sizes",
                ConvergenceWarning,
                stacklevel=outside_level(),
            )

    @staticmethod
    def _run(network: Network, settings: LinearSettings) -> LinearResult:
        try:
            return cast("LinearResult", network.run())
        except OverflowError as error:
            if settings.order == 1:
                raise
            raise OverflowError(
                f"{error}. A polynomial of order {settings.order} turns back far from 0, so where columns tell classes "
                "apart it may diverge at any learning_rate: order=1, residual='exact' or more penalty (a smaller C)"
            ) from error

    def _seats(
        self,
        blocks: dict[str, Block],
        targets: np.ndarray,
        weights: np.ndarray | None,
        settings: LinearSettings,
        start: dict[str, np.ndarray],
    ) -> list[Seat]:
        active, *passive = blocks.values()
        encrypted = settings.encryption != "none"
        setup = LinearActiveSetup(
            party=active.party,
            features=encode_features(active.values),
            targets=targets,
            weights=np.zeros(0) if weights is None else weights,
            ids_digest=active.ids_digest,
            passive_parties=tuple(block.party for block in passive),
            coordinator=_coordinator_name(blocks) if encrypted else "",
            settings_json=settings.to_json(),
            start=start[active.party],
            random_seed=party_seeds(self.random_state, 1)[0],
        )
        seats = [make_seat(active.party, LinearActiveParty, setup)]
        for block in passive:
            seats.append(self._passive_seat(block, settings.n_jobs, start[block.party]))
        if encrypted:
            coordinator = coordinator_setup(blocks, settings)
            seats.append(make_seat(_coordinator_name(blocks), Coordinator, coordinator))
        return seats

    def _passive_seat(
        self, block: Block, n_jobs: int, start: np.ndarray | None, model: Message | None = None
    ) -> Seat:
        setup = LinearPassiveSetup(
            party=block.party,
            features=encode_features(block.values),
            ids_digest=block.ids_digest,
            allow_weak_key=bool(self.allow_weak_key),
            allow_small_batches=bool(self.allow_small_batches),
            n_jobs=n_jobs,
            start=np.zeros((0, 0)) if start is None else start,
            model=b"" if model is None else codec.encode(model),
        )
        return make_seat(block.party, LinearPassiveParty, setup)

    def _report_costs(self, ledger: Ledger, settings: LinearSettings) -> None:
        self.traffic_ = ledger.summary()
        self.costs_ = costs_of(ledger, settings, COUNTERS)

    # ---- the model

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_active_model")

    def _halves(self) -> dict[str, Message]:
        """party -> its half of the model."""
        return {self.parties_[0]: self._active_model, **self._passive_models}

    @property
    def intercept_(self) -> Any:
        """The active party's."""
        check_is_fitted(self, "_active_model")
        return self._own_intercept(self._active_model)

    def coefficients(self, party: str) -> np.ndarray:
        """A party's own coefficients, float64 (n_outputs, n_columns): for that party to look at.

        Here all parties live in one process; between organisations nobody else can ask.
        """
        check_is_fitted(self, "_active_model")
        if party not in (halves := self._halves()):
            raise ValueError(f"no half of party {party!r} is here, there are {list(halves)}")
        half = halves[party]
        assert isinstance(half, LinearResult | PassiveCoefficients)
        return np.ascontiguousarray(half.coefficients.T)

    @property
    def coef_(self) -> np.ndarray:
        """All coefficients, as scikit-learn has them; only with share_coef=True, every party's consent."""
        check_is_fitted(self, "_active_model")
        if self.share_coef not in (True,):  # whatever else is true is no consent
            raise AttributeError(
                "coefficients belong to the parties: coefficients(party) is each one's own, and share_coef=True, "
                "if all consent, gives coef_"
            )
        parts = {party: self.coefficients(party) for party in self.parties_}
        n_outputs = len(parts[self.parties_[0]])
        whole = np.zeros((n_outputs, sum(part.shape[1] for part in parts.values())))
        at = 0
        for party, part in parts.items():
            where = np.arange(at, at + part.shape[1]) if self._columns is None else self._columns[party]
            whole[:, where] = part
            at += part.shape[1]
        return self._shaped(whole)

    def _shaped(self, coefficients: np.ndarray) -> np.ndarray:
        """As scikit-learn's estimator of the same kind has them."""
        return coefficients

    def _own_intercept(self, result: LinearResult) -> Any:
        return result.intercept

    # ---- prediction

    def _scores(self, X: Any, ids: Any = None, ledger: Ledger | None = None) -> np.ndarray:
        """float64 (n_rows, n_outputs), by the federated protocol; its traffic is added to `ledger`."""
        check_is_fitted(self, "_active_model")
        blocks = self._prediction_blocks(X if ids is None else self._with_ids(X, ids))
        check_finite(blocks)
        active = blocks[self.parties_[0]]
        if active.n_rows == 0:
            raise ValueError("0 rows to predict")
        setup = LinearPredictionSetup(
            party=active.party,
            features=encode_features(active.values),
            ids_digest=active.ids_digest,
            passive_parties=self.parties_[1:],
            model=codec.encode(self._active_model),
        )
        if self._ask is not None:
            asked: LinearPredicted = self._ask(setup)
            return asked.scores
        seats = [make_seat(active.party, LinearPredictor, setup)]
        for party in self.parties_[1:]:
            seats.append(self._passive_seat(blocks[party], 1, None, self._passive_models[party]))
        with make_network(self.network, seats, timeout=self.timeout) as network:
            result: LinearPredicted = network.run()
        if ledger is not None:
            ledger.merge(network.ledger.to_message())
        return result.scores

    def prediction_traffic(self, X: Any, ids: Any = None) -> pd.DataFrame:
        """Predict, and say what crossed: messages and bytes per party and kind, as `traffic_`."""
        ledger = Ledger()
        self._scores(X, ids, ledger)
        return ledger.summary()

    def _check_present(self, party: str, present: Mapping[str, Any]) -> None:
        if party not in present and self.n_features_in_per_party_[party]:
            number = self.parties_.index(party)
            raise ValueError(f"party {number} ({party}) is needed: the model uses its columns")


SHARED_PARAMETERS = (
    "exchange",
    "residual",
    "order",
    "interval",
    "fit_intercept",
    "optimizer",
    "learning_rate",
    "learning_rate_decay",
    "momentum",
    "max_iter",
    "tol",
    "allow_small_batches",
    "early_stopping",
    "n_iter_no_change",
    "encryption",
    "key_bits",
    "allow_weak_key",
)


def _coordinator_name(parties: Container[str]) -> str:
    """A name that no party has."""
    name = "coordinator"
    while name in parties:
        name += "'"
    return name


def coordinator_setup(blocks: dict[str, Block], settings: LinearSettings) -> CoordinatorSetup:
    """Quotas: a value per coefficient of a party, in every step."""
    widths = [block.n_features for block in blocks.values()]
    # With exact residuals the active party computes its own gradient in the clear.
    widths[0] = 0 if settings.residual == "exact" else widths[0] + bool(settings.fit_intercept)
    n_rows = next(iter(blocks.values())).n_rows
    watched = bool(settings.early_stopping) and settings.residual != "exact"
    n_outputs = int(settings.n_outputs)
    if settings.exchange == "rows":
        key_bits = int(settings.key_bits)
        widths = [plan_rows(width, n_rows, n_outputs, key_bits).per_row for width in widths]
        n_outputs -= settings.family == "multinomial"  # the last one follows from the others
    quotas = {party: width * n_outputs for party, width in zip(blocks, widths, strict=True) if width}
    if watched:  # one more value for the loss
        active = next(iter(blocks))
        quotas[active] = quotas.get(active, 0) + 1
    n_batches = max(1, n_rows // settings.batch_size) if settings.batch_size else 1
    return CoordinatorSetup(
        parties=tuple(quotas),
        values_per_step=tuple(quotas.values()),
        max_steps=int(settings.max_iter) * n_batches,
        key_bits=int(settings.key_bits),
        allow_weak_key=bool(settings.allow_weak_key),
        n_jobs=settings.n_jobs,
    )


def check_finite(blocks: Mapping[str, Block]) -> None:
    """ValueError naming party and column where a feature is missing or infinite."""
    for block in blocks.values():
        features: Any = block.values
        sparse = hasattr(features, "tocsr")
        bad = ~np.isfinite(features.data if sparse else features)
        if not bad.any():
            continue
        column = int(features.indices[bad.argmax()]) if sparse else int(np.argwhere(bad)[0][1])
        name = block.names[column] if block.names else column
        raise ValueError(
            f"party {block.party!r}: column {name!r} and maybe others contain NaN or infinity ({int(bad.sum())} "
            "values): impute them first, with a vertical_transformer, say"
        )


def _starting_points(
    previous: dict[str, Message] | None, blocks: dict[str, Block], settings: LinearSettings
) -> dict[str, np.ndarray]:
    """party -> coefficients of the model before; empty arrays where there is none of this shape."""
    nothing = dict.fromkeys(blocks, np.zeros((0, 0)))
    if previous is None or list(previous) != list(blocks):
        return nothing
    start = {}
    for (party, half), block in zip(previous.items(), blocks.values(), strict=True):
        assert isinstance(half, LinearResult | PassiveCoefficients)
        if half.coefficients.shape != (block.n_features, settings.n_outputs):
            return nothing
        start[party] = half.coefficients
        if isinstance(half, LinearResult) and settings.fit_intercept:
            start[party] = np.vstack([half.coefficients, half.intercept])
    return start
