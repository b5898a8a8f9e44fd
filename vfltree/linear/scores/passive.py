"""The scores exchange, a passive party's side."""

from __future__ import annotations

from ..arithmetic import Arithmetic
from ..columns import coarse
from ..own import OwnModel
from ..steps import StepKeeper
from .messages import MaskedSums, NextStep, SealedResiduals, SealedScores


class ResidualsSummed:
    """Encrypted residuals in, masked sums out."""

    def __init__(self, own: OwnModel, arithmetic: Arithmetic, keeper: StepKeeper) -> None:
        self.own, self.arithmetic, self.keeper = own, arithmetic, keeper

    def sealed_residuals(self, msg: SealedResiduals) -> MaskedSums:
        """[[X_k^T d + R]] of the step in progress, once."""
        rows = self.keeper.rows_to_sum(msg.step)
        n_batch = self.own.columns.n_rows if rows is None else len(rows)
        residuals = self.arithmetic.read(msg.residuals, (n_batch, self.own.coefficients.shape[1]))
        masked = self.arithmetic.hide(self.arithmetic.sums(self.own.columns, residuals, rows))
        products = b""
        if self.keeper.watches_loss:
            products = self.arithmetic.send(self.arithmetic.inner(coarse(self.own.scores(rows)), residuals))
        self.keeper.sums_are_out()
        return MaskedSums(msg.step, masked, products)


class ScoresAnswers(ResidualsSummed):
    """Answers the messages of one training, in order."""

    def next_step(self, msg: NextStep) -> SealedScores:
        rows = self.keeper.begin(msg.step, msg.rows, msg.opened, msg.curvature)
        return SealedScores(msg.step, self.own.settled, self.arithmetic.seal(self.own.scores(rows)))
