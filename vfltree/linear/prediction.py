"""Federated prediction, the active party's side: one question to every passive party, one sum of scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from vflparty import Conversation, Leader, RemoteProtocolError, codec, to_all

from .columns import SCORE_BITS
from .exact.keys import exchange_keys
from .features import decode_features, float_scores
from .messages import (
    HiddenScores,
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
        yield from exchange_keys(self._passive)
        answers = yield to_all(self._passive, SendLinearScores(self._ids_digest, n_rows))
        hidden = np.zeros(total.shape, dtype=np.uint64)
        for party, answer in answers.items():
            assert isinstance(answer, LinearScores | HiddenScores)
            if answer.scores.shape != total.shape or not np.isfinite(answer.scores).all():
                raise RemoteProtocolError(
                    f"scores of shape {answer.scores.shape}, expected finite {total.shape}", party
                )
            if isinstance(answer, HiddenScores):
                hidden = hidden + answer.scores.view(np.uint64)  # masks cancel modulo 2**64
            else:
                total = total + answer.scores
        shown = np.ldexp(hidden.view(np.int64).astype(np.float64), -SCORE_BITS) * self._model.unit
        return LinearPredicted(total + shown)
