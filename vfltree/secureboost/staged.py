"""Predictions after every round, out of one federated prediction: the leaves of all rows in all trees say them all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from ..growing.models import result_trees
from ..tree import add_leaves
from .objectives import predictions
from .training import trees_per_round


class StagedPredictions:
    """Mixin of the boosting estimators."""

    def _staged_raw(self, X: Any, ids: Any) -> Iterator[np.ndarray]:
        """Raw scores, float64 (n_rows, n_outputs), after one round, two, and so on."""
        model = cast("Any", self)
        leaves = model._predict(X, ids=ids).leaves
        trees, base_score = result_trees(model._active_model), model._active_model.base_score
        per_round = trees_per_round(model._active_model)
        raw = np.tile(base_score, (len(leaves), 1))
        for start in range(0, len(trees), per_round):
            rounds = slice(start, start + per_round)
            add_leaves(raw, trees[rounds], leaves[:, rounds], range(per_round))
            yield raw.astype(np.float64)

    def staged_predict(self, X: Any, ids: Any = None) -> Iterator[np.ndarray]:
        """`predict` after one round, after two, and so on: the last is `predict(X)`. One prediction crosses."""
        for raw in self._staged_raw(X, ids):
            yield cast("Any", self)._predicted(raw)


class StagedClassification(StagedPredictions):
    """The same for classes."""

    def staged_predict_proba(self, X: Any, ids: Any = None) -> Iterator[np.ndarray]:
        """`predict_proba` after one round, after two, and so on."""
        for raw in self._staged_raw(X, ids):
            yield predictions(cast("Any", self)._active_model.objective, raw)

    def staged_decision_function(self, X: Any, ids: Any = None) -> Iterator[np.ndarray]:
        """`decision_function` after one round, after two, and so on."""
        for raw in self._staged_raw(X, ids):
            yield cast("Any", self)._decision(raw)
