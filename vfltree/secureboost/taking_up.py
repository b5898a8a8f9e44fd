"""Whether the active party can go on from what its checkpoint holds: a false file is refused when it is read."""

from __future__ import annotations

import numpy as np

from ..growing.checks import check_halves
from ..growing.models import decode_result
from .evaluation import History
from .messages import TrainingState
from .settings import BoostSettings


def check_state(
    state: TrainingState, settings: BoostSettings, shape: tuple[int, int], n_passive: int, n_evaluated: int
) -> None:
    """ValueError unless these are finished rounds under these settings, of as many rows and parties.

    shape : of the active party's features.  n_evaluated : rows that are evaluated.
    """
    model, n_outputs = decode_result(state.model), settings.n_outputs
    if state.n_rounds < 1 or len(model.sizes) != state.n_rounds * settings.trees_per_round:
        raise ValueError(f"{state.n_rounds} rounds come with {len(model.sizes)} trees")
    check_halves(model, [(None, shape[1]), *[(None, 0)] * n_passive])
    n_values = n_outputs if settings.vector_leaves else 1
    if model.base_score.shape != (n_outputs,) or model.value.shape[1] != n_values:
        raise ValueError(f"leaves of {model.value.shape[1]} values and {model.base_score.shape} base scores")
    for name, scores, n_rows in (
        ("raw", state.raw_scores, shape[0]),
        ("evaluation", state.evaluation_scores, n_evaluated),
    ):
        due = (n_rows, n_outputs) if n_rows else (0, 0)
        if scores.shape != due or (n_rows and scores.dtype != model.base_score.dtype):
            raise ValueError(f"{name} scores are {scores.dtype} {scores.shape}, {due} were due")
        if not np.isfinite(scores).all():
            raise ValueError(f"{name} scores are infinite or missing")
    private = state.private_targets
    due_targets = (0,) if settings.label_privacy_epsilon is None else (shape[0],)
    if private.shape != due_targets or not np.isin(private, np.arange(settings.n_classes)).all():
        raise ValueError(f"private labels of shape {private.shape} are none of {settings.n_classes} classes")
    _check_history(state.history)


def _check_history(text: str) -> None:
    """ValueError unless this is a `History`."""
    try:
        history = History.from_json(text)
        values = [v for of_set in history.log.values() for values in of_set.values() for v in values]
    except (TypeError, AttributeError) as error:
        raise ValueError(f"the history of the evaluation is none: {error}") from error
    numbers = [*values, history.best_score]
    if any(type(n) is not int for n in (history.best_iteration, history.waited)) or any(
        type(n) not in (int, float) for n in numbers
    ):
        raise ValueError("the history of the evaluation holds what is no number")
