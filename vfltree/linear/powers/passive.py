"""Residuals of order 3, a passive party's side."""

from __future__ import annotations

from ..scores.passive import ResidualsSummed
from .cubes import CUBE_BITS, extended, first_powers, power_scores
from .messages import NextPowers, SealedPowers


class PowersAnswers(ResidualsSummed):
    """Answers the messages of one training, in order."""

    def next_powers(self, msg: NextPowers) -> SealedPowers:
        rows = self.keeper.begin(msg.step, msg.rows, msg.opened, msg.curvature)
        own = power_scores(self.own.scores(rows))
        if not msg.powers:
            sealed = self.arithmetic.seal(first_powers(own), CUBE_BITS)
        else:
            before = self.arithmetic.read(msg.powers, (*own.shape, 3))
            sealed = self.arithmetic.send(extended(self.arithmetic, before, own))
        return SealedPowers(msg.step, self.own.settled, sealed)
