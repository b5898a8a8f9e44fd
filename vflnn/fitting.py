"""What both estimators do: seat the parties, let them train or score, and keep what a training has left."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import nn

from vflparty import Ledger, LedgerReport, new_training_id
from vflparty.modelfile import FilePath

from .choices import Choice, choose_bottoms, choose_top, loss_of
from .history import CallbackFailedError, EpochRecord, Watcher, epochs_table, steps_table
from .inputs import Block, check_label_order
from .messages import HalfState, TrainingSettings
from .parameters import (
    check_count,
    check_parameters,
    checked_callbacks,
    checked_device,
    estimator_settings,
    for_prediction,
    n_threads,
)
from .partitioned import PartitionedEstimator
from .plotting import plot_learning_curves
from .saving import save
from .seating import PartyPlan, TrainingPlan, train, with_evaluation
from .split import JoinedNetwork
from .state import load_weights, weights_alone


class CutNetworkEstimator(PartitionedEstimator):
    """`__init__` stores, `fit` thinks; subclasses say what there is to predict."""

    steps_: pd.DataFrame
    history_: pd.DataFrame
    classes_: np.ndarray  # of a classifier
    _states: dict[str, HalfState]  # party -> what it has trained
    _bottoms: dict[str, Choice]
    _top: Choice

    def __init__(
        self,
        bottom: Any = "MLP2",
        top: Any = "sum",
        *,
        cut_width: int | Mapping[str, int] | None = None,
        protocol: str = "fedsgd",
        protocol_options: Mapping[str, Any] | None = None,
        compressor: Any = None,
        epochs: int = 30,
        lr: float = 0.01,
        batch_size: int | None = 1024,
        optimizer: Any = "adam",
        scheduler: Any = "inverse_sqrt",
        shuffle: bool = True,
        partition: Mapping[str, Any] | None = None,
        network: str = "inprocess",
        timeout: float = 3600.0,
        device: str = "cpu",
        n_jobs: int | None = None,
        callbacks: Sequence[Callable[[EpochRecord], object]] | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.bottom = bottom
        self.top = top
        self.cut_width = cut_width
        self.protocol = protocol
        self.protocol_options = protocol_options
        self.compressor = compressor
        self.epochs = epochs
        self.lr = lr
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.shuffle = shuffle
        self.partition = partition
        self.network = network
        self.timeout = timeout
        self.device = device
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_states")

    # ---- training

    def _fit(self, X: Any, y: Any, eval_set: Any) -> Self:
        check_parameters(self)
        # A fit that fails must not leave the weights of one data set with the labels of another.
        self.__dict__.pop("_states", None)
        blocks, targets = self._first_data(X, y)
        return self._train(blocks, targets, eval_set, int(self.epochs))

    def _partial_fit(self, X: Any, y: Any, eval_set: Any, epochs: int) -> Self:
        check_parameters(self)
        check_count("epochs", epochs)
        if not hasattr(self, "_states"):
            blocks, targets = self._first_data(X, y)
        else:
            blocks = self._later_blocks(X)
            check_label_order(y, blocks[self.parties_[0]])
            targets = self._targets(self._checked_y(y, blocks[self.parties_[0]].n_rows))
        return self._train(blocks, targets, eval_set, int(epochs))

    def _first_data(self, X: Any, y: Any) -> tuple[dict[str, Block], np.ndarray]:
        """Blocks and targets of a model's first training; and what follows from them."""
        blocks, y = self._training_blocks(X, y)
        self._see(y)
        self._seeds = _draw_seeds(self.random_state, ["batches", *blocks])
        self.n_epochs_ = 0
        self._choose()
        return blocks, self._targets(y)

    def _choose(self) -> None:
        """The parties' models."""
        n_outputs = self._n_outputs
        owners = [party for party, n in self.n_features_in_per_party_.items() if n]
        widths = _cut_widths(self.cut_width, owners, n_outputs)
        shapes = {party: self._shapes[party] for party in owners}
        seeds = {party: self._seeds[party] for party in self.parties_}
        self._bottoms = choose_bottoms(self.bottom, shapes, widths, seeds, self.network)
        self._top = choose_top(
            self.top, tuple(widths.values()), n_outputs, seeds[self.parties_[0]], self.network
        )
        self._widths = widths

    def _train(self, blocks: dict[str, Block], targets: np.ndarray, eval_set: Any, epochs: int) -> Self:
        device = checked_device(self.device)
        callbacks = checked_callbacks(self.callbacks)
        evaluation, evaluation_targets = self._evaluation(eval_set)
        settings = estimator_settings(
            self,
            n_samples=len(targets),
            n_evaluation=0 if evaluation_targets is None else len(evaluation_targets),
            epochs=epochs,
            first_epoch=self.n_epochs_,
            seed=self._seeds["batches"],
        )
        before = getattr(self, "_states", None)
        if before is not None:
            self._check_continued(settings)
        plan = self._plan(settings, blocks, targets, before, device)
        if evaluation_targets is not None:
            plan = with_evaluation(
                plan, {p: self._samples(b) for p, b in evaluation.items()}, evaluation_targets
            )
        try:
            with Watcher(int(self.verbose), epochs, callbacks) as watcher:
                trained = train(plan, self.network, on_progress=watcher, timeout=self.timeout)
        except CallbackFailedError as failed:
            raise failed.error from None
        steps = steps_table(trained.result, self.n_epochs_, epochs)
        history = epochs_table(trained.result, steps)
        if before is not None:
            steps, history = _appended(self.steps_, steps), _appended(self.history_, history)
            trained.ledger.merge(self._ledger)
        self.steps_, self.history_ = steps, history
        self.n_epochs_ += epochs
        self._settings, self._states = settings, trained.states
        self.training_id_ = new_training_id()
        self._report_costs(trained.ledger, settings, device)
        return self

    def _plan(
        self,
        settings: TrainingSettings,
        blocks: dict[str, Block],
        targets: np.ndarray,
        states: Mapping[str, HalfState] | None,
        device: str,
    ) -> TrainingPlan:
        """Everybody's seat. states : party -> where it goes on from."""
        states = states or {}
        parts = {
            party: PartyPlan(
                model.for_party(), self._widths[party], self._samples(blocks[party]), state=states.get(party)
            )
            for party, model in self._bottoms.items()
        }
        active, *passive = self.parties_
        return TrainingPlan(
            settings=settings,
            active=active,
            own=parts.get(active),
            passive={party: parts[party] for party in passive},
            top=self._top.for_party(),
            labels=targets,
            n_outputs=self._n_outputs,
            loss=loss_of(self._top, classes=is_classifier(self)),
            ids=blocks[active].ids,
            seed=self._seeds[active],
            device=device,
            n_threads=n_threads(self.n_jobs),
            active_state=states.get(active),
        )

    def _samples(self, block: Block) -> Any:
        model = self._bottoms.get(block.party)
        return block.samples(codes=model is not None and model.takes_codes)

    def _check_continued(self, settings: TrainingSettings) -> None:
        """What a training that goes on must keep."""
        for name in ("optimizer", "optimizer_options"):
            before, now = getattr(self._settings, name), getattr(settings, name)
            if before.lower() != now.lower():
                raise ValueError(
                    f"{name} was {before!r} and is {now!r}: partial_fit goes on with the same; fit starts anew"
                )

    def _report_costs(self, ledger: Ledger, settings: TrainingSettings, device: str) -> None:
        self._ledger: LedgerReport = ledger.to_message()
        self.traffic_ = ledger.summary()
        self.costs_ = {
            "protocol": settings.protocol,
            "compressor": settings.compressor or None,
            "device": device,
            "epochs": self.n_epochs_,
            "steps": len(self.steps_),
            "rounds": ledger.rounds,
            "bytes": ledger.bytes_sent,
            "seconds": {"training": float(self.steps_["seconds"].sum()), **ledger.seconds},
        }

    # ---- data of later calls

    def _evaluation(self, eval_set: Any) -> tuple[dict[str, Block], np.ndarray | None]:
        """Blocks and targets of the rows to evaluate; none without a set."""
        if eval_set is None:
            return {}, None
        pairs = eval_set if isinstance(eval_set, list) else [eval_set]
        if len(pairs) != 1 or not isinstance(pairs[0], tuple) or len(pairs[0]) != 2:
            raise ValueError("eval_set must be one pair (X, y)")
        X, y = pairs[0]
        try:
            blocks = self._later_blocks(X)
            active = blocks[self.parties_[0]]
            check_label_order(y, active)
            return blocks, self._targets(self._checked_y(y, active.n_rows))
        except ValueError as error:
            raise ValueError(f"eval_set: {error}") from error

    # ---- what the two kinds differ in

    _no_targets: ClassVar[np.ndarray]  # of no row
    _score_name: ClassVar[str]

    @property
    def _n_outputs(self) -> int:
        raise NotImplementedError

    def _see(self, y: np.ndarray) -> None:
        """Learn what there is to predict."""
        raise NotImplementedError

    def _targets(self, y: np.ndarray) -> np.ndarray:
        """What the active party trains on."""
        raise NotImplementedError

    # ---- prediction

    def _scores(self, X: Any, ledger: Ledger | None = None) -> np.ndarray:
        """Scores float32 (n_rows, n_outputs), by a conversation of the parties that `ledger` counts."""
        check_is_fitted(self)
        check_parameters(self)
        device = checked_device(self.device)
        blocks = self._later_blocks(X)
        n_rows = blocks[self.parties_[0]].n_rows
        if n_rows == 0:
            raise ValueError("0 rows to predict")
        none = {party: block.take(np.zeros(0, dtype=np.int64)) for party, block in blocks.items()}
        states = {party: weights_alone(state) for party, state in self._states.items()}
        plan = self._plan(for_prediction(self._settings, n_rows), none, self._no_targets, states, device)
        plan = dataclasses.replace(
            with_evaluation(plan, {party: self._samples(block) for party, block in blocks.items()}),
            ids=blocks[self.parties_[0]].ids,
        )
        scored = train(plan, self.network, timeout=self.timeout)
        if ledger is not None:
            ledger.merge(scored.ledger.to_message())
        return scored.result.scores

    def prediction_traffic(self, X: Any) -> pd.DataFrame:
        """Predict, and say what crossed: messages and bytes per party and kind, as `traffic_`."""
        ledger = Ledger()
        self._scores(X, ledger)
        return ledger.summary()

    # ---- the model

    def save(self, folder: FilePath) -> dict[str, Path]:
        """Write one file per party into `folder` (made if need be); returns dict party -> path.

        Each file is for its party alone, see `vflnn.saving`; `vflnn.load(folder)` gives the estimator again. Models
        must have been given by name or by functions that can be imported.
        """
        check_is_fitted(self)
        return save(self, folder)

    @property
    def bottoms_(self) -> dict[str, nn.Module]:
        """Party -> its trained bottom model, of the parties with columns: copies, in evaluation mode."""
        return self._modules()[0]

    @property
    def top_(self) -> nn.Module:
        """The active party's trained top model: a copy, in evaluation mode."""
        return self._modules()[1]

    def joined(self) -> JoinedNetwork:
        """The network in one piece, called with a block of each party that has columns; for whoever may see all."""
        bottoms, top = self._modules()
        return JoinedNetwork(list(bottoms.values()), top).eval()

    def plot_learning_curves(self, axes: Any = None) -> Any:
        """Draw `history_`: loss and score per epoch, on two axes of matplotlib (made if None), which are returned."""
        check_is_fitted(self)
        return plot_learning_curves(self.history_, self._score_name, axes)

    def _modules(self) -> tuple[dict[str, nn.Module], nn.Module]:
        check_is_fitted(self)
        bottoms, top = {party: choice.build() for party, choice in self._bottoms.items()}, self._top.build()
        active, *passive = self.parties_
        own = {"top": top} | ({"bottom": bottoms[active]} if active in bottoms else {})
        load_weights(self._states[active], nn.ModuleDict(own))
        for party in passive:
            load_weights(self._states[party], bottoms[party])
        return {party: bottom.eval() for party, bottom in bottoms.items()}, top.eval()


def _cut_widths(cut_width: Any, parties: Sequence[str], n_outputs: int) -> dict[str, int]:
    """Width of every party's output."""
    if cut_width is None:
        return dict.fromkeys(parties, n_outputs)
    if not isinstance(cut_width, Mapping):
        check_count("cut_width", cut_width)
        return dict.fromkeys(parties, int(cut_width))
    if set(cut_width) != set(parties):
        raise ValueError(f"cut_width names parties {list(cut_width)}; those with columns are {list(parties)}")
    for party, width in cut_width.items():
        check_count(f"cut_width of party {party!r}", width)
    return {party: int(cut_width[party]) for party in parties}


def _draw_seeds(random_state: Any, names: Sequence[str]) -> dict[str, int]:
    """One seed a name; from the system when no random_state is given."""
    if random_state is None:
        drawn = [secrets.randbits(31) for _ in names]
    elif isinstance(random_state, np.random.Generator):
        drawn = random_state.integers(1 << 31, size=len(names)).tolist()
    else:
        drawn = check_random_state(random_state).randint(1 << 31, size=len(names), dtype=np.int64).tolist()
    return dict(zip(names, drawn, strict=True))


def _appended(table: pd.DataFrame, more: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([table, more], ignore_index=True) if len(table) else more
