"""What keeps a training going: where it starts, what each round leaves behind, and with how many rounds it ends."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import cast

import numpy as np

from vflparty import codec, to_all
from vflparty.party import Round

from ..growing.leader import TreeLeader
from ..growing.models import active_result, decode_records, decode_result, result_trees
from ..losses import Loss, Scores
from ..tree import Tree
from .checkpoint import Checkpoint
from .evaluation import Evaluation, History
from .messages import ActiveResult, KeepRounds, TrainingEnded, TrainingState
from .settings import BoostSettings
from .taking_up import check_state


class KeptTraining(TreeLeader):
    """The active party around its rounds: where they start, evaluation, checkpoints, and which are kept.

    `ActiveParty` joins the others and grows the trees.
    """

    # Set by `from_setup`: what an estimator asks for beside the trees.
    _evaluation: Evaluation | None = None
    _checkpoint: Checkpoint | None = None
    _checkpoint_every = 1
    _past: TrainingState | None = None
    _seed_given = False

    _settings: BoostSettings
    _loss: Loss
    _targets: np.ndarray
    _weights: np.ndarray | None
    _seed: int
    _training: str
    _n_rounds: int
    _trees: list[Tree]
    _base_score: np.ndarray
    _raw: Scores
    _joined = False
    _last_loss = float("nan")

    def _join(self) -> Generator[Round, Round, None]:
        """Agree with the others on what is to be trained."""
        raise NotImplementedError

    def _grow_round(self, number: int, raw: np.ndarray) -> Generator[Round, Round, list[Tree]]:
        """The trees of one round; adds their leaf values to `raw`."""
        raise NotImplementedError

    def _begin(self) -> Generator[Round, Round, None]:
        """Take up what is finished; join the others unless nothing is left to do."""
        self._take_up()
        if not self._ended:
            yield from self._join()
            self._joined = True

    def _take_up(self) -> None:
        """Where training starts: at the checkpoint, at the model it continues, or before the first tree."""
        state = self._past
        kept = None if self._checkpoint is None else self._checkpoint.read(TrainingState, self._check_state)
        if kept is not None:
            _, state, _, seed = kept
            if self._seed_given and seed != self._seed:
                raise ValueError("the checkpoint was trained with another random_state")
            self._seed = seed
        if state is None:
            start = self._loss.start(self._targets, self._weights, self._settings.base_score)
            self._base_score, self._raw = start, cast("Scores", np.tile(start, (len(self._targets), 1)))
            if self._evaluation is not None:
                self._evaluation.start(start)
            return
        self._continue(state)

    def _check_state(self, state: TrainingState) -> None:
        n_evaluated = 0 if self._evaluation is None else self._evaluation.n_rows
        check_state(state, self._settings, self._features.shape, len(self._passive), n_evaluated)

    def _continue(self, state: TrainingState) -> None:
        if state.n_rounds > self._settings.n_estimators:
            raise ValueError(
                f"{state.n_rounds} rounds are finished already, n_estimators={self._settings.n_estimators} is less"
            )
        model = decode_result(state.model)
        self._training, self._n_rounds = state.training, state.n_rounds
        self._base_score, self._trees = model.base_score, result_trees(model)
        self._own_splits = decode_records(model.records)
        self._raw = cast("Scores", state.raw_scores)
        if self._settings.label_privacy_epsilon is not None:
            self._targets = state.private_targets
        if self._evaluation is not None:
            self._evaluation.raw = cast("Scores", state.evaluation_scores)
            self._evaluation.history = History.from_json(state.history)

    @property
    def _ended(self) -> bool:
        evaluation = self._evaluation
        enough = self._n_rounds >= self._settings.n_estimators
        return enough or (evaluation is not None and evaluation.should_stop)

    def _advance(self) -> Generator[Round, Round, float]:
        """One round: grow, evaluate, write down. Returns the loss of the training rows."""
        number, settings = self._n_rounds, self._settings
        grown = yield from self._grow_round(number, self._raw)
        if not np.isfinite(self._raw).all():
            raise ValueError(
                f"raw scores overflow in round {number}: learning_rate={settings.learning_rate:g} is too large"
            )
        if self._evaluation is not None:
            yield from self._evaluation.take_round(number, grown, self._own_splits, self._passive)
        self._trees += grown
        self._n_rounds += 1
        if self._checkpoint is not None and (self._ended or self._n_rounds % self._checkpoint_every == 0):
            yield to_all(self._passive, KeepRounds(self._n_rounds))
            self._checkpoint.write(self._training, self._state(), self._n_rounds, self._seed)
        self._last_loss = self._loss.value(self._targets, self._raw, self._weights)
        return self._last_loss

    def _end(self) -> Generator[Round, Round, None]:
        """Tell the others how many rounds the model keeps, and keep no more."""
        kept = None if self._evaluation is None else self._evaluation.n_kept
        kept = self._n_rounds if kept is None else kept
        if self._joined:
            yield to_all(self._passive, TrainingEnded(kept))
        self._trees = self._trees[: kept * self._settings.trees_per_round]
        self._own_splits = self._own_splits.of_trees(0, len(self._trees))

    def _half(self, trees: Sequence[Tree]) -> ActiveResult:
        objective = self._settings.objective
        return active_result(self._base_score, trees, self._own_splits, objective, self._below)

    def _state(self) -> TrainingState:
        evaluation = self._evaluation
        return TrainingState(
            training=self._training,
            n_rounds=self._n_rounds,
            model=codec.encode(self._half(self._trees)),
            raw_scores=self._raw,
            evaluation_scores=np.zeros((0, 0)) if evaluation is None else evaluation.raw,
            history="" if evaluation is None else evaluation.history.to_json(),
            private_targets=np.zeros(0) if self._settings.label_privacy_epsilon is None else self._targets,
        )
