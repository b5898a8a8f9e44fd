"""Exact residuals, the active party's side."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from vflparty import RemoteProtocolError, to_all
from vflparty.party import Round

from ..columns import LARGEST_SCORE_BITS, SCORE_BITS
from ..leading import Lead, batch_array, in_step
from ..scores.messages import MaskedSums, SealedResiduals
from .keys import exchange_keys
from .messages import ClearScores, NextExactStep

# Residuals of LARGEST_SCORE_BITS times weights of 40 bits.
_RESIDUAL_BITS = LARGEST_SCORE_BITS + 40


class ExactLead(Lead):
    """Sums of scores in the clear, encrypted residuals, masked sums. The active party's own sums need nobody."""

    def begin(self) -> Generator[Round, Round, None]:
        """Pairwise keys, where there are several passive parties to hide among."""
        yield from exchange_keys(self.passive)

    def step(self, step: int, rows: np.ndarray | None) -> Generator[Round, Round, bool]:
        opened, batch = self.take_opened(), batch_array(rows)
        answers = yield {
            party: NextExactStep(step, opened[party], self.curvature, batch) for party in self.passive
        }
        shown: dict[str, ClearScores] = in_step(answers, ClearScores, step)
        z = self._sum_of_scores(shown, rows)
        self.note_loss(self.targets.mean_loss(z, rows))
        if self.all_settled(step, shown):
            return True
        self.curvature = self.targets.curvature_at(z)
        residuals = self.targets.exact_residuals(z, rows)
        sealed = self.arithmetic.seal(residuals, _RESIDUAL_BITS)
        answers = yield to_all(self.passive, SealedResiduals(step, sealed))
        masked: dict[str, MaskedSums] = in_step(answers, MaskedSums, step)
        yield from self.open({party: answer.sums for party, answer in masked.items()}, None, rows)
        self.take_own_step(self.own.columns.sums(residuals, rows), rows)
        return False

    def _sum_of_scores(self, shown: dict[str, ClearScores], rows: np.ndarray | None) -> np.ndarray:
        """z of every row, float64 (n_batch, n_outputs) in true units."""
        total = self.own.scores(rows).view(np.uint64)
        for party, answer in shown.items():
            if answer.scores.shape != total.shape:
                raise RemoteProtocolError(
                    f"scores of shape {answer.scores.shape}, expected {total.shape}", party
                )
            total = total + answer.scores.view(np.uint64)  # masks cancel modulo 2**64
        return np.ldexp(total.view(np.int64).astype(np.float64), -SCORE_BITS) * self.targets.unit
