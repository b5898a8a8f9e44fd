"""Residuals of order 3, the active party's side."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from vflparty.party import Round

from ..leading import batch_array, in_step
from ..scores.active import ScoresLead
from .cubes import cubic, power_scores
from .messages import NextPowers, SealedPowers


class PowersLead(ScoresLead):
    """As the scores exchange, with powers that pass along the parties in place of scores."""

    def residuals(
        self, step: int, rows: np.ndarray | None
    ) -> Generator[Round, Round, tuple[dict[str, Any], Any]]:
        opened, batch = self.take_opened(), batch_array(rows)
        answers: dict[str, SealedPowers] = {}
        payload = b""
        for party in self.passive:
            message = NextPowers(step, opened[party], self.curvature, batch, payload)
            answers |= in_step((yield {party: message}), SealedPowers, step)
            payload = answers[party].powers
        if self.all_settled(step, answers):
            return answers, None
        shape = (self.n_batch(rows), self.targets.y.shape[1], 3)
        powers = self.read(self.passive[-1], payload, shape)
        own = power_scores(self.own.scores(rows))
        linear, cube, constant = self.targets.cubic_parts(rows)
        formed = cubic(self.arithmetic, powers, own, linear, cube)
        formed = self.arithmetic.add(formed, constant)
        return answers, self.targets.weighted(self.arithmetic, formed, rows)
