"""Top-k: only a share of an output's entries goes up, with a bit for every entry that says which.

The other end takes the rest for zeros. Gradients come back whole, and pass straight through, to entries left out too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vflparty import Message, RemoteProtocolError

from ..messages import SparseOutputs
from ..split import Rows
from .options import real_number, switch
from .uncompressed import Reals, check_finite, checked_array

SCORES = ("magnitude", "gradient")


class TopK:
    """Of entries that score alike the first are kept.

    ratio : share of the entries kept, 0 < ratio <= 1: round(ratio * n_rows * width) of an output, at least one
    score : "magnitude": |h|; "gradient": |g| at the same place in the last round, and |h| while there is none of this
        shape (C-VFL's score, of which it keeps the largest)
    per_row : keep ceil(ratio * width) entries of every row instead
    error_feedback : what was left out of a sample is added to its output when it comes next
    """

    def __init__(
        self,
        ratio: float = 0.9,
        score: str = "magnitude",
        per_row: bool = False,
        error_feedback: bool = False,
    ) -> None:
        self._ratio = real_number(ratio, "ratio")
        if not 0 < self._ratio <= 1:
            raise ValueError(f"ratio must be above 0 and at most 1, got {ratio!r}")
        if score not in SCORES:
            raise ValueError(f"score must be 'magnitude' or 'gradient', got {score!r}")
        self._by_gradient = score == "gradient"
        self._per_row = switch(per_row, "per_row")
        self._error_feedback = switch(error_feedback, "error_feedback")
        self._last_gradient: Reals | None = None
        self._left_out: dict[int, Reals] = {}  # row number -> what has not been sent of it

    @property
    def upload_share(self) -> float:
        return self._ratio

    def pack(self, outputs: Reals, step: int, rows: Rows) -> Message:
        check_finite(outputs)
        if self._error_feedback:
            nothing = np.zeros_like(outputs[0])
            outputs = outputs + np.stack([self._left_out.get(row, nothing) for row in rows.tolist()])
        kept = self._best(self._scores(outputs))
        if self._error_feedback:
            self._left_out.update(zip(rows.tolist(), np.where(kept, 0, outputs), strict=True))
        return SparseOutputs(np.packbits(kept).tobytes(), outputs[kept])

    def unpack(self, message: Message, step: int, shape: tuple[int, int]) -> Reals:
        if not isinstance(message, SparseOutputs):
            raise RemoteProtocolError(f"answered with {type(message).__name__}, Top-k outputs were agreed on")
        kept = self._checked_bits(message.kept, shape)
        values = checked_array(message.values, (int(kept.sum()),), "kept outputs")
        outputs = np.zeros(shape, dtype=values.dtype)
        outputs[kept] = values
        return outputs

    def note_gradient(self, gradient: Reals) -> None:
        if self._by_gradient:
            self._last_gradient = gradient

    def _scores(self, outputs: Reals) -> Reals:
        last = self._last_gradient
        return np.abs(outputs if last is None or last.shape != outputs.shape else last)

    def _best(self, scores: Reals) -> NDArray[np.bool_]:
        """Where the highest scores are, bool (n_rows, width)."""
        groups = self._groups(scores)
        order = np.argsort(-groups, axis=1, kind="stable")  # stable: of equal ones the first
        kept = np.zeros(groups.shape, dtype=bool)
        np.put_along_axis(kept, order[:, : self._n_kept(groups.shape[1])], True, axis=1)
        return kept.reshape(scores.shape)

    def _groups(self, entries: NDArray[Any]) -> NDArray[Any]:
        """(n_groups, group_size): every row by itself, or all of them as one group."""
        return entries if self._per_row else entries.reshape(1, -1)

    def _n_kept(self, group_size: int) -> int:
        share = self._ratio * group_size
        # 0.28 * 25 is 7.000000000000001 in floats, and 7 entries are meant.
        return max(1, math.ceil(share - 1e-9) if self._per_row else round(share))

    def _checked_bits(self, packed: bytes, shape: tuple[int, int]) -> NDArray[np.bool_]:
        """Which entries came, bool `shape`; RemoteProtocolError unless they are as many as was agreed on."""
        n_entries = shape[0] * shape[1]
        n_bytes = -(-n_entries // 8)
        if len(packed) != n_bytes:
            raise RemoteProtocolError(
                f"{len(packed)} bytes say which outputs were kept, {n_entries} outputs take {n_bytes} bytes"
            )
        bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8)).view(bool)
        if bits[n_entries:].any():
            raise RemoteProtocolError("bits are set after the last output")
        kept = bits[:n_entries].reshape(shape)
        groups = self._groups(kept)
        n_kept, counts = self._n_kept(groups.shape[1]), groups.sum(axis=1)
        if (counts != n_kept).any():
            wrong = counts[counts != n_kept][0]
            place = "of a row" if self._per_row else f"of {n_entries}"
            raise RemoteProtocolError(f"{wrong} outputs {place} were kept, {n_kept} were agreed on")
        return kept
