"""The rows exchange, the passive party's side."""

from __future__ import annotations

import numpy as np

from vflparty import RemoteProtocolError

from ..arithmetic import Arithmetic
from ..own import OwnModel
from ..steps import StepKeeper
from .halves import RowsHalf
from .messages import HalfSums, OtherHalf, SealedRows, ShareRows


class RowsAnswers:
    """Answers the messages of one training, in order."""

    def __init__(self, own: OwnModel, arithmetic: Arithmetic, keeper: StepKeeper) -> None:
        self._own, self._keeper = own, keeper
        self._half = RowsHalf(arithmetic, own, own.coefficients.shape[1])
        self._scores = np.zeros((0, 0), dtype=np.int64)
        self._rows: np.ndarray | None = None
        self._mixed: bool | None = None
        keeper.decode = self._decode

    def share_rows(self, msg: ShareRows) -> SealedRows:
        if self._mixed is not None:
            raise RemoteProtocolError("rows have been shared already")
        if not 0 <= msg.n_coefficients <= self._own.columns.n_rows * 1024:
            raise RemoteProtocolError(f"{msg.n_coefficients} coefficients")
        self._half.take_rows(msg.rows, msg.n_coefficients)
        self._mixed = self._half.is_mixed = msg.mixed
        return SealedRows(self._half.sealed_rows())

    def half_sums(self, msg: HalfSums) -> OtherHalf:
        if self._mixed is None:
            raise RemoteProtocolError("sums of rows that have not been shared")
        self._rows = self._keeper.begin(msg.step, msg.rows, msg.opened, msg.curvature)
        self._scores = self._half.half(self._own.scores(self._rows))
        sums = self._half.others_sums(self._scores, self._rows)
        masked = self._half.hide(msg.sums)
        self._keeper.sums_are_out()
        return OtherHalf(msg.step, self._own.settled, sums, masked)

    def _decode(self, packed: np.ndarray) -> np.ndarray:
        """What was opened, to the sums of both halves."""
        return self._half.own_sums(packed, self._scores, self._rows)
