"""What both sides of the rows exchange do: seal their rows, multiply the other's, open their own sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arithmetic import Arithmetic
from ..columns import coarse, mixed
from ..own import OwnModel
from .layout import RowLayout, plan_rows


class RowsHalf:
    """One party, with the other's encrypted rows once they have come.

    is_mixed : residuals of a row add up to 0 over the outputs, so the last one need not be sent; see columns.mixed
    """

    def __init__(
        self, arithmetic: Arithmetic, own: OwnModel, n_outputs: int, *, is_mixed: bool = False
    ) -> None:
        self._arithmetic, self._own, self._n_outputs = arithmetic, own, n_outputs
        self.is_mixed = is_mixed
        self._layout = self._plan(own.columns.n_coefficients)
        self._others_rows: Any = None

    def _plan(self, n_columns: int) -> RowLayout:
        n_rows = self._own.columns.n_rows
        return plan_rows(n_columns, n_rows, self._n_outputs, self._arithmetic.key_bits)

    @property
    def _n_sent(self) -> int:
        return self._n_outputs - self.is_mixed

    def half(self, scores: np.ndarray) -> np.ndarray:
        """This party's half of d, from its scores (the active party's: less the targets); int64, short."""
        short = coarse(scores)
        return mixed(short) if self.is_mixed else short

    def sealed_rows(self) -> bytes:
        """[[x_i]] of all own rows, packed."""
        layout = self._layout
        return self._arithmetic.seal_words(layout.pack(self._own.columns.values), layout.bits)

    def take_rows(self, payload: bytes, n_columns: int) -> None:
        """The other party's."""
        shape = (self._own.columns.n_rows, self._plan(n_columns).per_row)
        self._others_rows = self._arithmetic.read(payload, shape)

    def others_sums(self, half: np.ndarray, rows: np.ndarray | None) -> bytes:
        """[[X^T d]] of the other's rows and this party's half of d, blinded for the other."""
        chosen = self._others_rows if rows is None else self._others_rows[rows]
        return self._arithmetic.send(self._arithmetic.combine(half[:, : self._n_sent], chosen))

    def hide(self, payload: bytes) -> bytes:
        """The other's [[X^T d]] of own rows, masked for the coordinator."""
        shape = (self._n_sent, self._layout.per_row)
        return self._arithmetic.hide(self._arithmetic.read(payload, shape))

    def reveal(self, opened: bytes, half: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        """X^T d of own rows and both halves, Python integers (n_coefficients, n_outputs)."""
        return self.own_sums(self._arithmetic.reveal(opened), half, rows)

    def own_sums(self, packed: np.ndarray, half: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        others = self._layout.unpack(packed.reshape(self._n_sent, self._layout.per_row))
        if self.is_mixed:
            others = np.hstack([others, -others.sum(axis=1, keepdims=True)])
        return np.asarray(others + self._own.columns.sums(half, rows))
