"""A passive party's order of things: which step is next, whose values are out, and batches large enough to answer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vflparty import RemoteProtocolError

from .arithmetic import Arithmetic
from .batches import least_batch
from .own import OwnModel
from .shared import SharedSettings


class StepKeeper:
    """Steps come one by one, each summed once and opened once; anything else is the active party's mistake.

    decode : from opened integers to sums, (n_coefficients, n_outputs), where an exchange packs them
    """

    def __init__(
        self, own: OwnModel, arithmetic: Arithmetic, settings: SharedSettings, *, small_batches: bool
    ) -> None:
        self._own, self._arithmetic, self._settings = own, arithmetic, settings
        self.watches_loss = settings.watch_loss and settings.residual != "exact"
        self._least = 1 if small_batches else least_batch(own.columns.n_columns)
        self._next = 0
        self._awaits_sum = False
        self._awaits_opened = False
        self._rows: np.ndarray | None = None
        self.decode: Callable[[np.ndarray], np.ndarray] = lambda sums: sums.reshape(own.coefficients.shape)

    def begin(self, step: int, rows: np.ndarray, opened: bytes, curvature: float) -> np.ndarray | None:
        """Take the step that was opened; returns the rows of the next one (None: all)."""
        self.take_opened(opened, curvature)
        if step != self._next or self._awaits_sum:
            raise RemoteProtocolError(f"step {step} was announced, step {self._next} is next")
        self._rows = self._checked_rows(rows)
        self._next += 1
        self._awaits_sum = True
        return self._rows

    def rows_to_sum(self, step: int) -> np.ndarray | None:
        """The rows of the step in progress, which has not been summed yet."""
        if step != self._next - 1 or not self._awaits_sum:
            raise RemoteProtocolError(f"residuals of step {step} are not awaited")
        return self._rows

    def sums_are_out(self) -> None:
        self._awaits_sum, self._awaits_opened = False, True

    def take_opened(self, opened: bytes, curvature: float) -> None:
        """The opened sums of the step before."""
        if bool(opened) != self._awaits_opened:
            raise RemoteProtocolError("opened sums are missing" if self._awaits_opened else "nothing to open")
        if not opened:
            return
        if not (np.isfinite(curvature) and curvature > 0):
            raise RemoteProtocolError(f"a curvature of {curvature}")
        self._awaits_opened = False
        sums = self.decode(self._arithmetic.reveal(opened))
        self._own.take_step(sums, 0 if self._rows is None else len(self._rows), curvature)

    def _checked_rows(self, rows: np.ndarray) -> np.ndarray | None:
        if rows.ndim != 1:
            raise RemoteProtocolError(f"rows of a batch must be a vector, got shape {rows.shape}")
        if not len(rows):
            return None
        if rows[0] < 0 or rows[-1] >= self._own.columns.n_rows or (np.diff(rows) <= 0).any():
            raise RemoteProtocolError("the rows of a batch must ascend and exist")
        if len(rows) < self._least:
            raise RemoteProtocolError(
                f"a batch of {len(rows)} rows; this party answers from {self._least} on"
            )
        return rows.astype(np.int64)
