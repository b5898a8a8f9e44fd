"""Federated prediction, the active party's side: all rows and all trees at once, one question per step and owner."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from typing import Any

import numpy as np

from vflparty import Conversation, Leader, Round, codec, to_all
from vflparty.modelfile import FilePath

from ..categories import Categories
from ..tree import RecordTable, Router, sum_leaves
from .masks import unpack_masks
from .messages import ActiveResult, JoinPrediction, Predicted, PredictionSetup, RouteRows, RowsRouted
from .models import decode_categories, decode_records, result_trees
from .numbering import OWN


class ActivePredictor(Leader):
    """The active party with its half of the model and new rows.

    features : float64 (n_rows, n_features).  passive_parties : in training order; of them only those in present_parties
    have a seat, which is enough when the others own no split.
    """

    setup_message = PredictionSetup
    result_message = Predicted

    def __init__(
        self,
        features: np.ndarray,
        model: ActiveResult,
        *,
        passive_parties: tuple[str, ...],
        present_parties: tuple[str, ...] | None = None,
        ids_digest: bytes,
        categories: Categories | None = None,
    ) -> None:
        self._own_splits = decode_records(model.records)
        given = Categories.none() if categories is None else categories
        self._features, self._ids_digest = self._own_splits.categories.recode(features, given), ids_digest
        self._parties = passive_parties
        self._present = passive_parties if present_parties is None else present_parties
        self._base_score = model.base_score
        self._trees = result_trees(model)

    @classmethod
    def from_setup(cls, setup: PredictionSetup) -> ActivePredictor:
        model = codec.decode(setup.model, (ActiveResult,))
        assert isinstance(model, ActiveResult)
        return cls(
            setup.features,
            model,
            passive_parties=setup.passive_parties,
            present_parties=setup.present_parties,
            ids_digest=setup.ids_digest,
            categories=decode_categories(setup.categories),
        )

    @classmethod
    def from_file(cls, file: FilePath, X: Any, ids: Collection[Any] | None = None) -> ActivePredictor:
        """The active party with its rows X, out of its own file; see `growing.own_file`."""
        from .own_file import prediction_setup  # pandas, which a party on a seat does without

        return cls.from_setup(prediction_setup(file, X, ids))

    def conversation(self) -> Conversation:
        """At most max_depth steps; nothing is asked about nodes off a row's path."""
        n_rows = len(self._features)
        yield to_all(self._present, JoinPrediction(self._ids_digest, n_rows))
        router = Router(self._trees, n_rows)
        yield from route_rows(router, self._own_splits, self._features, self._parties)
        leaves = router.leaves()
        n_outputs = len(self._base_score)
        outputs = [tree % n_outputs for tree in range(len(self._trees))]
        # Tree after tree, in training's order, so that training rows get exactly their training scores.
        raw = sum_leaves(self._trees, leaves, outputs, self._base_score)
        return Predicted(raw.astype(np.float64), leaves)


def route_rows(
    router: Router, own_splits: RecordTable, features: np.ndarray, passive_parties: Sequence[str]
) -> Generator[Round, Round, None]:
    """Send all rows of a router to their leaves, as many steps as the deepest of them needs.

    features : float64 (n_rows, n_features), the active party's.  passive_parties : in training order.
    """
    while _walk_own_nodes(router, own_splits, features):
        asked = {passive_parties[p - 1]: router.waiting(p) for p in router.owners_waiting()}
        answers = yield {party: RouteRows(ask.ids, ask.rows.astype(np.int32)) for party, ask in asked.items()}
        for party, answer in answers.items():
            assert isinstance(answer, RowsRouted)
            (left,) = unpack_masks(answer.left, [len(asked[party].rows)], party)
            router.advance(asked[party], left)


def _walk_own_nodes(router: Router, own_splits: RecordTable, features: np.ndarray) -> bool:
    """Move rows on until all wait at foreign nodes; False when all have arrived."""
    while OWN in (waiting := router.owners_waiting()):
        ask = router.waiting(OWN)
        router.advance(ask, own_splits.goes_left(own_splits.find(ask.ids), features, ask.rows))
    return bool(waiting)
