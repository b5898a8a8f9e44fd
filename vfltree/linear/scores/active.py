"""The scores exchange, the active party's side: one step."""

from __future__ import annotations

from collections.abc import Generator
from functools import reduce
from typing import Any

import numpy as np

from vflparty import RemoteProtocolError, to_all
from vflparty.party import Round

from ..columns import coarse
from ..leading import Lead, batch_array, in_step
from .messages import MaskedSums, NextStep, SealedResiduals, SealedScores


class ScoresLead(Lead):
    """Sums of encrypted scores, encrypted residuals, masked sums."""

    def begin(self) -> Generator[Round, Round, None]:
        """Nothing is sent once and for all."""
        yield from ()

    def step(self, step: int, rows: np.ndarray | None) -> Generator[Round, Round, bool]:
        answers, residuals = yield from self.residuals(step, rows)
        if self.all_settled(step, answers):
            return True
        # Blinded for the passive parties; the sums below are of the same plaintexts.
        message = SealedResiduals(step, self.arithmetic.send(residuals))
        masked: dict[str, MaskedSums] = in_step((yield to_all(self.passive, message)), MaskedSums, step)
        columns = self.own.columns
        own_sums = self.arithmetic.sums(columns, residuals, rows) if columns.n_coefficients else None
        loss = self._loss(masked, residuals, rows) if self.watches_loss else None
        yield from self.open({party: answer.sums for party, answer in masked.items()}, own_sums, rows, loss)
        return False

    def residuals(
        self, step: int, rows: np.ndarray | None
    ) -> Generator[Round, Round, tuple[dict[str, Any], Any]]:
        """The answers that tell who has settled, and [[d]] (n_batch, n_outputs); None where all have."""
        opened, batch = self.take_opened(), batch_array(rows)
        asked: Round = {party: NextStep(step, opened[party], self.curvature, batch) for party in self.passive}
        answers: dict[str, SealedScores] = in_step((yield asked), SealedScores, step)
        if self.all_settled(step, answers):
            return answers, None
        shape = (self.n_batch(rows), self.targets.y.shape[1])
        others = reduce(
            self.arithmetic.add, [self.read(party, answer.scores, shape) for party, answer in answers.items()]
        )
        formed = self.targets.residuals(self.arithmetic, others, self.own.scores(rows), rows)
        return answers, formed

    def _loss(self, masked: dict[str, MaskedSums], residuals: Any, rows: np.ndarray | None) -> Any:
        """[[sum of d (z - t)]]: every party has multiplied the residuals by its own scores."""
        own = coarse(self.own.scores(rows) - self.targets.targets(rows))
        parts = [self.read(party, answer.products, (1,)) for party, answer in masked.items()]
        return reduce(self.arithmetic.add, [self.arithmetic.inner(own, residuals), *parts])

    def read(self, party: str, payload: bytes, shape: tuple[int, ...]) -> Any:
        """Values of a party, which an error names."""
        try:
            return self.arithmetic.read(payload, shape)
        except RemoteProtocolError as error:
            raise error.by(party) from error
