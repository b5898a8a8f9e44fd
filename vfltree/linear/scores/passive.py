"""The scores exchange, a passive party's side."""

from __future__ import annotations

from ..arithmetic import Arithmetic
from ..own import OwnModel
from ..steps import StepKeeper
from .messages import MaskedSums, NextStep, SealedResiduals, SealedScores


class ScoresAnswers:
    """Answers the messages of one training, in order."""

    def __init__(self, own: OwnModel, arithmetic: Arithmetic, keeper: StepKeeper) -> None:
        self._own, self._arithmetic, self._keeper = own, arithmetic, keeper

    def next_step(self, msg: NextStep) -> SealedScores:
        rows = self._keeper.begin(msg.step, msg.rows, msg.opened, msg.curvature)
        sealed = self._arithmetic.seal(self._own.scores(rows))
        return SealedScores(msg.step, self._own.settled, sealed)

    def sealed_residuals(self, msg: SealedResiduals) -> MaskedSums:
        rows = self._keeper.rows_to_sum(msg.step)
        n_batch = self._own.columns.n_rows if rows is None else len(rows)
        residuals = self._arithmetic.read(msg.residuals, (n_batch, self._own.coefficients.shape[1]))
        sums = self._arithmetic.sums(self._own.columns, residuals, rows)
        masked = self._arithmetic.hide(sums)
        self._keeper.sums_are_out()
        return MaskedSums(msg.step, masked)
