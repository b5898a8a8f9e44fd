"""The rows exchange, the active party's side."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from vflparty import RemoteProtocolError
from vflparty.party import Round

from ..leading import Lead, batch_array, in_step
from .halves import RowsHalf
from .messages import HalfSums, OtherHalf, SealedRows, ShareRows


class RowsLead(Lead):
    """Encrypted rows once; then plain halves times the other's rows, masked sums.

    n_columns : of every passive party, here of the only one
    """

    def __init__(self, *args: Any, n_columns: dict[str, int]) -> None:
        super().__init__(*args)
        (self._peer,) = self.passive
        self._half = RowsHalf(
            self.arithmetic, self.own, self.targets.y.shape[1], is_mixed=self.targets.is_mixed
        )
        self._n_columns = n_columns[self._peer]

    def begin(self) -> Generator[Round, Round, None]:
        """Each party's rows to the other."""
        message = ShareRows(self.own.columns.n_coefficients, self.targets.is_mixed, self._half.sealed_rows())
        answers = yield {self._peer: message}
        answer = answers[self._peer]
        assert isinstance(answer, SealedRows)
        self._read(self._half.take_rows, answer.rows, self._n_columns)

    def step(self, step: int, rows: np.ndarray | None) -> Generator[Round, Round, bool]:
        half = self._half.half(self.own.scores(rows) - self.targets.targets(rows))
        opened, sums = self.take_opened(), self._half.others_sums(half, rows)
        message = HalfSums(step, opened[self._peer], self.curvature, batch_array(rows), sums)
        answers: dict[str, OtherHalf] = in_step((yield {self._peer: message}), OtherHalf, step)
        if self.all_settled(step, answers):
            return True
        answer = answers[self._peer]
        asked = {self._peer: answer.masked}
        if self.own.columns.n_coefficients:
            asked[self.name] = self._read(self._half.hide, answer.sums)
        self.opened = yield from self.opening.open(asked)
        if self.name in asked:
            self.take_own_step(self._half.reveal(self.opened.pop(self.name), half, rows), rows)
        else:
            self.own.settled = True
        return False

    def _read(self, read: Any, *arguments: Any) -> Any:
        try:
            return read(*arguments)
        except RemoteProtocolError as error:
            raise error.by(self._peer) from error
