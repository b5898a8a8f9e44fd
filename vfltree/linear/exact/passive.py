"""Exact residuals, a passive party's side."""

from __future__ import annotations

from ..arithmetic import Arithmetic
from ..own import OwnModel
from ..scores.passive import ResidualsSummed
from ..steps import StepKeeper
from .hiding import Hiding
from .messages import ClearScores, NextExactStep


class ExactAnswers(ResidualsSummed):
    """Answers the messages of one training, in order.

    hiding : None where the active party says that this is its only passive party; otherwise masks are insisted on.
    """

    def __init__(
        self, own: OwnModel, arithmetic: Arithmetic, keeper: StepKeeper, hiding: Hiding | None
    ) -> None:
        super().__init__(own, arithmetic, keeper)
        self._hiding = hiding

    def next_exact_step(self, msg: NextExactStep) -> ClearScores:
        rows = self.keeper.begin(msg.step, msg.rows, msg.opened, msg.curvature)
        scores = self.own.scores(rows)
        if self._hiding is not None:
            scores = self._hiding.hide(scores, f"scores of step {msg.step}")
        return ClearScores(msg.step, self.own.settled, scores)
