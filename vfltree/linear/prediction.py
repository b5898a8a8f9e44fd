"""Federated prediction, the active party's side: one question to every passive party, one sum of scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from vflparty import Conversation, Leader, RemoteProtocolError, codec, to_all

from .features import decode_features, float_scores
from .messages import (
    LinearPredicted,
    LinearPredictionSetup,
    LinearResult,
    LinearScores,
    SendLinearScores,
)


class LinearPredictor(Leader):
    """The active party with its half of the model and new rows."""

    setup_message = LinearPredictionSetup
    result_message = LinearPredicted

    def __init__(
        self, features: Any, model: LinearResult, *, passive_parties: tuple[str, ...], ids_digest: bytes
    ) -> None:
        self._features, self._model = features, model
        self._passive, self._ids_digest = passive_parties, ids_digest

    @classmethod
    def from_setup(cls, setup: LinearPredictionSetup) -> LinearPredictor:
        model = codec.decode(setup.model, (LinearResult,))
        assert isinstance(model, LinearResult)
        return cls(
            decode_features(setup.features),
            model,
            passive_parties=setup.passive_parties,
            ids_digest=setup.ids_digest,
        )

    def conversation(self) -> Conversation:
        n_rows = self._features.shape[0]
        total = float_scores(self._features, self._model.coefficients) + self._model.intercept
        answers = yield to_all(self._passive, SendLinearScores(self._ids_digest, n_rows))
        for party, answer in answers.items():
            assert isinstance(answer, LinearScores)
            if answer.scores.shape != total.shape or not np.isfinite(answer.scores).all():
                raise RemoteProtocolError(
                    f"scores of shape {answer.scores.shape}, expected finite {total.shape}", party
                )
            total = total + answer.scores
        return LinearPredicted(total)
