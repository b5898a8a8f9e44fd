"""The scores exchange, the active party's side: one step."""

from __future__ import annotations

from collections.abc import Generator
from functools import reduce
from typing import Any

import numpy as np

from vflparty import RemoteProtocolError, to_all
from vflparty.party import Round

from ..leading import Lead, batch_array, in_step
from .messages import MaskedSums, NextStep, SealedResiduals, SealedScores


class ScoresLead(Lead):
    """Sums of encrypted scores, encrypted residuals, masked sums."""

    def begin(self) -> Generator[Round, Round, None]:
        """Nothing is sent once and for all."""
        yield from ()

    def step(self, step: int, rows: np.ndarray | None) -> Generator[Round, Round, bool]:
        opened, batch = self.take_opened(), batch_array(rows)
        answers = yield {
            party: NextStep(step, opened[party], self.curvature, batch) for party in self.passive
        }
        sealed: dict[str, SealedScores] = in_step(answers, SealedScores, step)
        if self.all_settled(step, sealed):
            return True
        shape = (self.n_batch(rows), self.targets.y.shape[1])
        scores = [self._read(party, answer.scores, shape) for party, answer in sealed.items()]
        others = reduce(self.arithmetic.add, scores)
        residuals = self.targets.residuals(self.arithmetic, others, self.own.scores(rows), rows)
        # Blinded for the passive parties; the sums below are of the same plaintexts.
        answers = yield to_all(self.passive, SealedResiduals(step, self.arithmetic.send(residuals)))
        masked: dict[str, MaskedSums] = in_step(answers, MaskedSums, step)
        columns = self.own.columns
        own_sums = self.arithmetic.sums(columns, residuals, rows) if columns.n_coefficients else None
        yield from self.open({party: answer.sums for party, answer in masked.items()}, own_sums, rows)
        return False

    def _read(self, party: str, payload: bytes, shape: tuple[int, int]) -> Any:
        try:
            return self.arithmetic.read(payload, shape)
        except RemoteProtocolError as error:
            raise error.by(party) from error
