"""scikit-learn's door to split training: `VFLClassifier` and `VFLRegressor`."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data
from torch import nn

from vfldata import columns_by_party
from vflparty import Ledger, LedgerReport

from .choices import Choice, choose_bottoms, choose_top
from .history import CallbackFailedError, EpochRecord, Watcher, epochs_table, steps_table
from .inputs import Block, blocks_from_mapping, check_label_order, like_training
from .messages import HalfState, TrainingSettings
from .parameters import (
    check_count,
    check_parameters,
    checked_callbacks,
    checked_device,
    for_prediction,
    training_settings,
)
from .seating import PartyPlan, TrainingPlan, train, with_evaluation
from .split import JoinedNetwork
from .state import load_weights, weights_alone


class _VFLEstimator(BaseEstimator):
    """What both estimators do: blocks of X, seats, and what is kept of a training. `__init__` stores, `fit` thinks."""

    steps_: pd.DataFrame
    history_: pd.DataFrame
    classes_: np.ndarray  # of a classifier
    _states: dict[str, HalfState]  # party -> what it has trained
    _bottoms: dict[str, Choice]
    _top: Choice
    _columns: dict[str, np.ndarray] | None  # party -> columns of X; None where it was given as blocks

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
        self.callbacks = callbacks
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

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
        """Blocks and targets of a model's first training; and attributes that say what it has seen."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        blocks, y = self._blocks_given(X, y) if _is_blocks(X) else self._blocks_cut(X, y)
        self.parties_ = tuple(blocks)
        active, *passive = blocks.values()
        for block in passive:
            if not block.n_features:
                raise ValueError(f"party {block.party!r} has no features: a passive party needs one at least")
        if active.n_rows == 0:
            raise ValueError("0 rows to train on")
        self.n_features_in_per_party_ = {party: block.n_features for party, block in blocks.items()}
        self._shapes = {party: block.shape for party, block in blocks.items()}
        self._names = {party: block.names for party, block in blocks.items()}
        y = self._checked_y(y, active.n_rows)
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
        settings = training_settings(
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
            loss=self._loss_name(),
            ids=blocks[active].ids,
            seed=self._seeds[active],
            device=device,
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

    # ---- data

    def _blocks_given(self, X: Mapping[str, Any], y: Any) -> tuple[dict[str, Block], Any]:
        """X is a dict of blocks; `partition` may give their order."""
        if self.partition is not None and set(self.partition) != set(X):
            raise ValueError(f"partition names parties {list(self.partition)}, X has {list(X)}")
        blocks = blocks_from_mapping({party: X[party] for party in self.partition or X}, _num_samples(y))
        check_label_order(y, next(iter(blocks.values())))
        self._columns = None
        self.n_features_in_ = sum(block.n_features for block in blocks.values())
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return blocks, y

    def _blocks_cut(self, X: Any, y: Any) -> tuple[dict[str, Block], Any]:
        """X holds all columns; `partition` says whose they are."""
        X, y = validate_data(
            self, X, y, dtype=np.float32, accept_sparse="csr", y_numeric=False, multi_output=True
        )
        self._columns = columns_by_party(self.partition, X.shape[1], getattr(self, "feature_names_in_", None))
        return self._cut(X), y

    def _cut(self, X: Any) -> dict[str, Block]:
        assert self._columns is not None
        return {party: Block(party, X[:, columns]) for party, columns in self._columns.items()}

    def _later_blocks(self, X: Any) -> dict[str, Block]:
        """Blocks as in training: of every party that has columns."""
        if not _is_blocks(X):
            if self._columns is None:
                raise ValueError(
                    f"this model was trained on a dict of blocks; pass a dict with {list(self.parties_)}"
                )
            return self._cut(validate_data(self, X, reset=False, dtype=np.float32, accept_sparse="csr"))
        unknown = [party for party in X if party not in self.parties_]
        if unknown:
            raise ValueError(f"unknown parties {unknown}; the model has {list(self.parties_)}")
        for party, n_features in self.n_features_in_per_party_.items():
            if n_features and X.get(party) is None:
                raise ValueError(f"X has no rows of party {party!r}, which has {n_features} features")
        n_rows = next(_num_samples(data) for data in X.values() if data is not None)
        blocks = blocks_from_mapping({party: X.get(party) for party in self.parties_}, n_rows)
        return {
            party: like_training(block, self._names[party], self._shapes[party])
            for party, block in blocks.items()
        }

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

    def _checked_y(self, y: Any, n_rows: int) -> np.ndarray:
        """One target per row, without missing values."""
        if isinstance(y, pd.Series | pd.DataFrame):
            y = y.to_numpy()
        y = column_or_1d(y, warn=True)
        if len(y) != n_rows:
            raise ValueError(f"y has {len(y)} labels, the parties have {n_rows} rows")
        if n_missing := int(pd.isna(y).sum()):
            raise ValueError(f"y contains {n_missing} missing values (NaN)")
        return y

    # ---- what the two kinds differ in

    _no_targets: ClassVar[np.ndarray]  # of no row

    @property
    def _n_outputs(self) -> int:
        raise NotImplementedError

    def _see(self, y: np.ndarray) -> None:
        """Learn what there is to predict."""
        raise NotImplementedError

    def _targets(self, y: np.ndarray) -> np.ndarray:
        """What the active party trains on."""
        raise NotImplementedError

    def _loss_name(self) -> str:
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

    def _modules(self) -> tuple[dict[str, nn.Module], nn.Module]:
        check_is_fitted(self)
        bottoms, top = {party: choice.build() for party, choice in self._bottoms.items()}, self._top.build()
        active, *passive = self.parties_
        own = {"top": top} | ({"bottom": bottoms[active]} if active in bottoms else {})
        load_weights(self._states[active], nn.ModuleDict(own))
        for party in passive:
            load_weights(self._states[party], bottoms[party])
        return {party: bottom.eval() for party, bottom in bottoms.items()}, top.eval()


class VFLClassifier(ClassifierMixin, _VFLEstimator):
    """A neural network cut between parties, for classes.

    Every party's bottom model turns its columns into an output; the active party's top model joins the outputs into one
    score per class. Trained by split learning: outputs up, gradients down, nothing encrypted. **Without a defence the
    gradients show every passive party the labels** (docs/neural.md).

    Parameters
    ----------
    bottom : what a party's model is: a name of `vflnn.models.BOTTOM_MODELS`, "module:function", (one of them, dict of
        options), a function of (shape of one sample, width), or a torch.nn.Module, from whose weights training starts.
        A dict party -> one of them for models that differ. Modules, and functions that cannot be imported, need
        network="inprocess".
    top : the same for the model that joins the outputs, of `vflnn.models.TOP_MODELS`: "sum" (aggVFL), "linear"
        (splitVFL) and others. A function gets (widths of the outputs, number of scores).
    cut_width : width of the parties' outputs, or a dict party -> width. None: as many as classes.
    protocol, protocol_options : a name of `vflnn.protocols.PROTOCOLS`, and a dict.
    compressor : how outputs are written: a name of `vflnn.protocols.COMPRESSORS`, or (name, options).
    epochs : passes over the rows.
    lr : learning rate of every party's optimiser.
    batch_size : rows per exchange; None takes all rows at once.
    optimizer : a name of `torch.optim` in any case, or (name, options).
    scheduler : how the learning rate falls: "inverse_sqrt" (lr / sqrt(epoch), epochs from 0; that of published runs,
        whose learning rates suit it), "constant", a name of `torch.optim.lr_scheduler`, or (name, options).
    shuffle : draw new batches every epoch, the same at every party.
    partition : dict party -> columns, the first party is the active one. None: two parties, half the columns each.
    network : "inprocess", or "process" for a process per party; the weights are the same, bit for bit.
    timeout : seconds that a party's process may be silent.
    device : "cpu", "cuda", "cuda:1", or "auto".
    callbacks : functions of an `EpochRecord`, called after every epoch.
    random_state : seeds weights, batches and dropout, of every party separately.
    verbose : 1 shows a progress bar.

    Attributes
    ----------
    classes_ : the labels, sorted.
    parties_ : party names, the active one first.
    n_features_in_per_party_ : dict party -> number of features.
    history_ : DataFrame, a row per epoch: loss and accuracy (means over its batches, each before its update), on the
        `eval_set` evaluation_loss and evaluation_score (accuracy), seconds.
    steps_ : the same per batch.
    n_epochs_ : epochs trained, over all calls of `partial_fit`.
    bottoms_, top_, joined() : the trained models, each party's or in one piece.
    traffic_ : DataFrame of messages and bytes per party and kind.
    costs_ : dict: rounds, bytes, steps, seconds per phase.
    """

    _no_targets = np.zeros(0, dtype=np.int64)

    def fit(self, X: Any, y: Any, *, eval_set: Any = None) -> Self:
        """Train.

        X : DataFrame, array or CSR matrix of all columns, or a dict party -> one of these or an array of images
            (n_rows, channels, height, width). With DataFrames in a dict the index is the row ID: the parties' rows are
            matched by it. Values must be finite; they are taken as float32.
        y : (n_rows,) labels of any kind scikit-learn accepts, in the order of the active party's rows.
        eval_set : a pair (X, y) to evaluate after every epoch.
        """
        return self._fit(X, y, eval_set)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, epochs: int = 1, eval_set: Any = None
    ) -> Self:
        """Go on for some epochs, as if there had been no pause: weights, optimisers and random numbers stand where they
        stood. A protocol that remembers batches (CELU-VFL) starts with none.

        classes : all labels that will come, for the first call; None: those of y.
        """
        self._coming = None if classes is None else np.unique(column_or_1d(classes))
        try:
            return self._partial_fit(X, y, eval_set, epochs)
        finally:
            del self._coming

    def predict(self, X: Any) -> np.ndarray:
        """Labels, (n_rows,)."""
        scores = self._scores(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities, float32 (n_rows, n_classes), columns in the order of `classes_`."""
        return torch.softmax(torch.from_numpy(self._scores(X)), dim=1).numpy()

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba`."""
        return torch.log_softmax(torch.from_numpy(self._scores(X)), dim=1).numpy()

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores, (n_rows, n_classes); of two classes the second's minus the first's, (n_rows,)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def _class_scores(self, X: Any) -> np.ndarray:
        return self._scores(X)

    @property
    def _n_outputs(self) -> int:
        return len(self.classes_)

    def _see(self, y: np.ndarray) -> None:
        check_classification_targets(y)
        coming = getattr(self, "_coming", None)
        found = np.unique(y) if coming is None else coming
        if len(found) < 2:
            raise ValueError(f"y has one class, {found[0]!r}: a classifier needs two classes at least")
        self.classes_ = found

    def _targets(self, y: np.ndarray) -> np.ndarray:
        known = np.isin(y, self.classes_)
        if not known.all():
            raise ValueError(
                f"y holds labels that training did not see, {np.unique(y[~known])[:3].tolist()}; there are "
                f"{self.classes_[:10].tolist()}, and `classes` of the first partial_fit names more"
            )
        return np.searchsorted(self.classes_, y).astype(np.int64)

    def _loss_name(self) -> str:
        return "nll" if self._top.log_probabilities else "cross_entropy"


class VFLRegressor(RegressorMixin, _VFLEstimator):
    """A neural network cut between parties, for numbers. Parameters and attributes as `VFLClassifier`, but:

    The active party trains on targets of mean 0 and deviation 1, so that a learning rate suits whatever their unit is;
    losses are squared errors of these, predictions come back in the unit of y. evaluation_score is R2; there is no
    accuracy. cut_width : None means 1.
    """

    _no_targets = np.zeros((0, 1), dtype=np.float32)

    def fit(self, X: Any, y: Any, *, eval_set: Any = None) -> Self:
        """Train; y : (n_rows,) finite numbers. See `VFLClassifier.fit`."""
        return self._fit(X, y, eval_set)

    def partial_fit(self, X: Any, y: Any, *, epochs: int = 1, eval_set: Any = None) -> Self:
        """Go on for some epochs, see `VFLClassifier.partial_fit`; targets keep the mean and deviation of the first."""
        return self._partial_fit(X, y, eval_set, epochs)

    def predict(self, X: Any) -> np.ndarray:
        """Predicted values, float64 (n_rows,)."""
        scores = self._scores(X)
        return scores[:, 0].astype(np.float64) * self._scale + self._mean

    @property
    def _n_outputs(self) -> int:
        return 1

    def _see(self, y: np.ndarray) -> None:
        values = _finite(y)
        self._mean, self._scale = float(values.mean()), float(values.std()) or 1.0

    def _targets(self, y: np.ndarray) -> np.ndarray:
        return ((_finite(y) - self._mean) / self._scale).astype(np.float32)[:, None]

    def _loss_name(self) -> str:
        if self._top.log_probabilities:
            raise ValueError(f"top {self.top!r} gives log-probabilities of classes, not numbers")
        return "squared_error"


def _is_blocks(X: Any) -> bool:
    """One block per party? Some sparse matrices are dicts too."""
    return isinstance(X, Mapping) and not hasattr(X, "tocsr")


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


def _finite(y: np.ndarray) -> np.ndarray:
    """Targets in float64, finite."""
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y holds values that are not numbers: {error}; classes are for VFLClassifier"
        ) from error
    if not np.isfinite(values).all():
        raise ValueError("y contains infinity or NaN")
    return values


def _appended(table: pd.DataFrame, more: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([table, more], ignore_index=True)
