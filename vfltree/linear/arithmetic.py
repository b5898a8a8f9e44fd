"""What a party of a linear model does with values it may not read: as in vflparty, with sums over its columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from vflcrypto import CiphertextArray
from vflcrypto.products import PreparedProduct
from vflparty import Ledger, arithmetic
from vflparty.arithmetic import COUNTERS, read_public_key

from .columns import FixedColumns

__all__ = ["COUNTERS", "Arithmetic", "PaillierArithmetic", "PlainArithmetic", "make_arithmetic"]


class PlainArithmetic(arithmetic.PlainArithmetic):
    """Without encryption: no coordinator, no masks."""

    def sums(self, columns: FixedColumns, values: Any, rows: np.ndarray | None = None) -> Any:
        """X^T values, (n_coefficients, n_outputs)."""
        return columns.sums(values, rows)


class PaillierArithmetic(arithmetic.PaillierArithmetic):
    """Under the coordinator's key. Everything that leaves is freshly blinded."""

    _prepared: tuple[FixedColumns, PreparedProduct] | None = None

    def sums(
        self, columns: FixedColumns, values: CiphertextArray, rows: np.ndarray | None = None
    ) -> CiphertextArray:
        if rows is not None:
            return self.combine(columns.rows(rows), values)
        if self._prepared is None or self._prepared[0] is not columns:  # the plan of all rows is made once
            self._prepared = columns, self.prepare(columns.rows(None))
        return self.product(self._prepared[1], values)


Arithmetic = PlainArithmetic | PaillierArithmetic


def make_arithmetic(public_key: bytes, *, allow_weak_key: bool, n_jobs: int, ledger: Ledger) -> Arithmetic:
    """For the coordinator's key as received, which is checked; without a key, in the clear."""
    if not public_key:
        return PlainArithmetic()
    return PaillierArithmetic(read_public_key(public_key, allow_weak_key=allow_weak_key), n_jobs, ledger)
