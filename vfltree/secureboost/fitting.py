"""One `fit` of a boosting estimator: what goes around the trees is checked, the parties are seated, rounds are run."""

from __future__ import annotations

import dataclasses
import numbers
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from vflcrypto.callers import outside_level
from vflparty import Ledger, RemoteProtocolError, Seat, file_names, make_network, make_seat
from vflparty.modelfile import SUFFIX

from ..base import party_seeds
from ..blocks import Block
from ..exceptions import InterruptedFitWarning
from ..growing.models import encode_categories
from ..parameters import check_range
from .continuation import Past
from .evaluation_sets import EvaluationSets, eval_pairs, evaluation_blocks, metric_names
from .messages import ActiveSetup
from .passive import PassiveParty
from .settings import BoostSettings
from .stepwise import StepwiseActiveParty
from .training import Grown, ProgressLines, call_back, grow

CHECKPOINT_SUFFIX = ".checkpoint"


class Fitting:
    """Made when `fit` begins; `estimator` is one of `SecureBoostClassifier` and `SecureBoostRegressor`."""

    def __init__(self, estimator: Any, eval_set: Any, sample_weight_eval_set: Any, ids_eval_set: Any) -> None:
        self._estimator: Any = estimator
        self._pairs = eval_pairs(eval_set, sample_weight_eval_set, ids_eval_set)
        self._patience = 0
        if estimator.early_stopping_rounds is not None:
            check_range(
                "early_stopping_rounds", estimator.early_stopping_rounds, numbers.Integral, 1, np.inf, False
            )
            self._patience = int(estimator.early_stopping_rounds)
            if not self._pairs:
                raise ValueError(
                    "early_stopping_rounds needs an eval_set: fit(X, y, eval_set=[(X_val, y_val)])"
                )
        self._callbacks = _checked_callbacks(estimator.callbacks)
        check_range("checkpoint_every", estimator.checkpoint_every, numbers.Integral, 1, np.inf, False)
        if estimator.checkpoint is not None and not isinstance(estimator.checkpoint, str | os.PathLike):
            raise TypeError(f"checkpoint must be a folder or None, got {estimator.checkpoint!r}")
        if estimator.checkpoint == "":
            raise ValueError("checkpoint must be a folder or None, got an empty text")
        self._past = Past.of(estimator)
        self._sets: EvaluationSets | None = None
        self._ledger = Ledger()
        self.signs: dict[str, np.ndarray] = {}  # monotone constraints of every party, int8 (n_features,)

    @contextmanager
    def keeping_past(self) -> Iterator[None]:
        """What fails in the block leaves a model that was to be continued as it was."""
        before = dict(self._estimator.__dict__)
        try:
            yield
        except BaseException:
            if self._past is not None:
                self._estimator.__dict__.clear()
                self._estimator.__dict__.update(before)
            raise

    def prepare(self, settings: BoostSettings) -> None:
        """Check what needs settings and the parties' columns: the model that is continued, and evaluation sets."""
        if self._past is not None:
            self._past.check(self._estimator, settings)
        metrics = metric_names(self._estimator.eval_metric, settings, self._estimator.network)
        if self._pairs:
            encode = self._estimator._evaluation_targets
            sets = [
                (*evaluation_blocks(self._estimator, i, X, y, ids, encode), weights)
                for i, (X, y, weights, ids) in enumerate(self._pairs)
            ]
            self._sets = EvaluationSets(sets, metrics, self._patience)

    def train(
        self,
        blocks: dict[str, Block],
        targets: np.ndarray,
        weights: np.ndarray | None,
        settings: BoostSettings,
    ) -> None:
        """Seat the parties, run rounds, and leave the estimator with the model."""
        estimator = self._estimator
        seeds = self._seeds(list(blocks))
        past = self._past_state(blocks, settings)
        seats = self._seats(blocks, targets, weights, settings, seeds, past)
        try:
            with make_network(
                estimator.network, seats, timeout=estimator.timeout, ledger=self._ledger
            ) as network:
                lines = ProgressLines(estimator.verbose, settings.n_estimators, self._ledger)

                def after_round(grown: Grown) -> bool:
                    lines.show(grown)
                    if not self._callbacks:
                        return False
                    self._keep(grown, grown.n_rounds, settings, seeds)
                    return call_back(self._callbacks, estimator, grown)

                grown = grow(network, after_round)
        except RemoteProtocolError as error:
            if estimator.checkpoint is not None:
                error.add_note(f"fit again with checkpoint={str(estimator.checkpoint)!r} to go on from there")
            raise
        if grown.interrupted:
            warnings.warn(
                f"interrupted: the model holds the {grown.n_rounds} of {settings.n_estimators} rounds that were "
                "finished",
                InterruptedFitWarning,
                stacklevel=outside_level(),
            )
        best = grown.history.best_iteration + 1 if self._patience else 0
        self._keep(grown, best or grown.n_rounds, settings, seeds)

    # ---- seats

    def _seeds(self, parties: list[str]) -> dict[str, int]:
        """Of every party: those of the model that is continued, else new ones."""
        known = getattr(self._estimator, "_seeds", None)
        if self._past is not None and known is not None and list(known) == parties:
            return dict(known)
        return dict(zip(parties, party_seeds(self._estimator.random_state, len(parties)), strict=True))

    def _past_state(self, blocks: dict[str, Block], settings: BoostSettings) -> bytes:
        """The model that is continued with the raw scores it gives; empty without one."""
        past = self._past
        if past is None:
            return b""
        past.check_categories(blocks)
        estimator = self._estimator
        estimator._keep_model(past.model, past.tables)
        raw = estimator._predict_blocks(blocks, self._ledger).raw_scores
        evaluated = None
        if self._sets is not None:
            evaluated = estimator._predict_blocks(self._sets.blocks, self._ledger).raw_scores
        return past.state(raw, evaluated, settings)

    def _seats(
        self,
        blocks: dict[str, Block],
        targets: np.ndarray,
        weights: np.ndarray | None,
        settings: BoostSettings,
        seeds: dict[str, int],
        past: bytes,
    ) -> list[Seat]:
        estimator, sets = self._estimator, self._sets
        active, *passive = blocks.values()
        files = self._checkpoint_files(list(blocks))
        setup = ActiveSetup(
            party=active.party,
            features=active.values,
            targets=targets,
            weights=np.zeros(0) if weights is None else weights,
            ids_digest=active.ids_digest,
            passive_parties=tuple(block.party for block in passive),
            settings_json=settings.to_json(),
            cuts=estimator._cuts_of(active),
            random_seed=seeds[active.party],
            categories=encode_categories(active.categories),
            signs=self.signs[active.party],
            past=past,
            evaluation=b"" if sets is None else sets.active_bytes(active.party),
            checkpoint=files[active.party],
            checkpoint_every=int(estimator.checkpoint_every),
            seed_given=isinstance(estimator.random_state, numbers.Integral),
        )
        seats = [make_seat(active.party, StepwiseActiveParty, setup)]
        tables = {} if self._past is None else self._past.tables
        for block in passive:
            party = block.party
            seat = estimator._passive_setup(block, settings.n_jobs, seeds[party], tables.get(party))
            extra = b"" if sets is None else sets.passive_bytes(party)
            seat = dataclasses.replace(
                seat, evaluation=extra, checkpoint=files[party], signs=self.signs[party]
            )
            seats.append(make_seat(party, PassiveParty, seat))
        return seats

    def _checkpoint_files(self, parties: list[str]) -> dict[str, str]:
        """Path of each party's file; empty texts without a checkpoint."""
        folder = self._estimator.checkpoint
        if folder is None:
            return dict.fromkeys(parties, "")
        names = file_names(parties)
        return {
            party: str(Path(folder).absolute() / (names[party].removesuffix(SUFFIX) + CHECKPOINT_SUFFIX))
            for party in parties
        }

    # ---- the model

    def _keep(self, grown: Grown, n_rounds: int, settings: BoostSettings, seeds: dict[str, int]) -> None:
        """Leave the estimator trained, with the first rounds that were grown."""
        estimator = self._estimator
        estimator._keep_model(*grown.model(n_rounds))
        estimator.training_id_, estimator._seeds = grown.training, seeds
        estimator.encryption_ = settings.encryption
        estimator._report_costs(self._ledger, settings)
        for name in ("evals_result_", "best_iteration_", "best_score_"):
            estimator.__dict__.pop(name, None)
        history = grown.history
        if self._sets is not None:
            estimator.evals_result_ = {name: dict(of_set) for name, of_set in history.log.items()}
        if self._patience:
            estimator.best_iteration_, estimator.best_score_ = history.best_iteration, history.best_score


def _checked_callbacks(callbacks: Any) -> Sequence[Any]:
    if callbacks is not None and not isinstance(callbacks, Iterable):
        raise TypeError(
            f"callbacks must be a list of objects with a method after_iteration, got {callbacks!r}"
        )
    found = [] if callbacks is None else list(callbacks)
    for callback in found:
        if not callable(getattr(callback, "after_iteration", None)):
            raise TypeError(
                f"callbacks need a method after_iteration(model, epoch, evals_log), {callback!r} has none"
            )
    return found
