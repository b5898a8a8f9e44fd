"""The scores exchange, the active party's side: one step."""

from __future__ import annotations

from collections.abc import Generator
from functools import reduce
from typing import Any

import numpy as np

from vflparty import RemoteProtocolError, to_all
from vflparty.party import Round

from ..arithmetic import Arithmetic
from ..opening import Opening
from ..own import OwnModel
from ..residuals import Targets
from .messages import MaskedSums, NextStep, SealedResiduals, SealedScores


class ScoresLead:
    """Leads steps; `opened` is what every passive party is still to be given."""

    def __init__(
        self,
        name: str,
        passive: tuple[str, ...],
        own: OwnModel,
        targets: Targets,
        arithmetic: Arithmetic,
        opening: Opening,
    ) -> None:
        self._name, self._passive = name, passive
        self._own, self._targets = own, targets
        self._arithmetic, self._opening = arithmetic, opening
        self.opened: dict[str, bytes] = dict.fromkeys(passive, b"")

    def begin(self) -> Generator[Round, Round, None]:
        """Nothing is sent once and for all."""
        yield from ()

    def step(self, step: int, rows: np.ndarray | None) -> Generator[Round, Round, bool]:
        """One step; True, and nothing done, when everybody had settled before it."""
        curvature = self._targets.curvature
        batch = np.zeros(0, dtype=np.int32) if rows is None else rows.astype(np.int32)
        answers = yield {
            party: NextStep(step, self.opened[party], curvature, batch) for party in self._passive
        }
        self.opened = dict.fromkeys(self._passive, b"")
        shape = (len(self._targets.y) if rows is None else len(rows), self._targets.y.shape[1])
        sealed = {party: self._checked(party, step, answer) for party, answer in answers.items()}
        if step and self._own.settled and all(answer.settled for answer in sealed.values()):
            return True
        scores = [self._read(party, answer.scores, shape) for party, answer in sealed.items()]
        others = reduce(self._arithmetic.add, scores)
        residuals = self._targets.residuals(self._arithmetic, others, self._own.scores(rows), rows)
        # Blinded for the passive parties; the sums below are of the same plaintexts.
        message = SealedResiduals(step, self._arithmetic.send(residuals))
        masked = yield to_all(self._passive, message)
        yield from self._open(step, masked, residuals, rows, curvature)
        return False

    def _open(
        self, step: int, answers: Round, residuals: Any, rows: np.ndarray | None, curvature: float
    ) -> Generator[Round, Round, None]:
        own_sums = self._arithmetic.sums(self._own.columns, residuals, rows)
        masked = {self._name: self._arithmetic.hide(own_sums)} if self._own.columns.n_coefficients else {}
        for party, answer in answers.items():
            if not isinstance(answer, MaskedSums) or answer.step != step:
                raise RemoteProtocolError(f"masked sums of another step than {step}", party)
            masked[party] = answer.sums
        self.opened = yield from self._opening.open(masked)
        if self._name in masked:
            own = self._arithmetic.reveal(self.opened.pop(self._name))
            self._own.take_step(own.reshape(own_sums.shape), 0 if rows is None else len(rows), curvature)
        else:
            self._own.settled = True

    def _checked(self, party: str, step: int, answer: Any) -> SealedScores:
        if not isinstance(answer, SealedScores) or answer.step != step:
            raise RemoteProtocolError(f"scores of another step than {step}", party)
        return answer

    def _read(self, party: str, payload: bytes, shape: tuple[int, int]) -> Any:
        try:
            return self._arithmetic.read(payload, shape)
        except RemoteProtocolError as error:
            raise error.by(party) from error
