"""A passive party's answers during prediction, and what it refuses.

An honest active party asks about each (record, row) once and only along the row's path. Anything else would turn
prediction into an oracle for every threshold, so a record asked twice for a row, a record off the path that earlier
answers chose, an unknown record, or a row beyond those agreed is refused.
"""

from __future__ import annotations

import numpy as np

from vflparty import RemoteProtocolError

from ..tree import RecordTable

_OPEN, _RIGHT, _LEFT = -1, 0, 1


class RouteAnswers:
    """records : the party's lookup table.  features : float64 (n_rows, n_features), rows to predict."""

    def __init__(self, records: RecordTable, features: np.ndarray) -> None:
        self._records, self._features = records, features
        self._given = np.full((len(records), len(features)), _OPEN, dtype=np.int8)
        self._ancestors, self._turns = records.nearest_ancestors()

    def answer(self, records: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Bool (n_questions,): goes left."""
        if records.shape != rows.shape or records.ndim != 1:
            raise RemoteProtocolError(f"records {records.shape} and rows {rows.shape} do not make pairs")
        if rows.size and (rows.min() < 0 or rows.max() >= len(self._features)):
            raise RemoteProtocolError(f"a row outside the {len(self._features)} agreed rows was asked")
        places = self._records.find(records)
        if (places < 0).any():
            raise RemoteProtocolError("an unknown record was asked")
        questions = places.astype(np.int64) * len(self._features) + rows
        if (self._given[places, rows] != _OPEN).any() or len(np.unique(questions)) != len(questions):
            raise RemoteProtocolError("a record was asked twice for a row")
        above = self._ancestors[places]
        on_path = (above < 0) | (self._given[above, rows] == self._turns[places])
        if not on_path.all():
            raise RemoteProtocolError("a record off a row's path was asked")
        left = self._records.goes_left(places, self._features, rows)
        self._given[places, rows] = np.where(left, _LEFT, _RIGHT)
        return left
