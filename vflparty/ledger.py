"""The ledger: bytes, messages and rounds per party and kind; seconds per phase; counts of costly operations.

Bytes are those of encoded frames. A round is everything a party sends before it next waits; the answers
belong to the round that asked for them. Every party keeps a ledger of its own (its seconds and counts); the
network merges them with the traffic it carried, in one process or several, so the figures mean the same in
both.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .messages import Message

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class LedgerReport(Message):
    """party -> launcher: a ledger's whole content."""

    receivers: tuple[str, ...]  # one entry per (receiver, sender, kind), as the two lists below and the array
    senders: tuple[str, ...]
    kinds: tuple[str, ...]
    traffic: NDArray[np.int64]  # (n_entries, 3): messages, bytes, rounds
    rounds: int
    phases: tuple[str, ...]
    seconds: tuple[float, ...]
    counters: tuple[str, ...]
    counts: tuple[int, ...]


class Ledger:
    """Counts what parties say to each other and what it costs them. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._clear()

    def _clear(self) -> None:
        # (receiver, sender, kind) -> [messages, bytes, rounds, last round it was seen in]
        self._traffic: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        self._rounds = 0
        self._seconds: dict[str, float] = defaultdict(float)
        self._counts: dict[str, int] = defaultdict(int)

    # ------------------------------------------------------------ writing

    def open_round(self) -> None:
        """The leading party begins to send; what is recorded from now on belongs to this round."""
        with self._lock:
            self._rounds += 1

    def record(self, sender: str, receiver: str, kind: str, n_bytes: int) -> None:
        """One frame of n_bytes has been sent."""
        with self._lock:
            entry = self._traffic[receiver, sender, kind]
            entry[0] += 1
            entry[1] += n_bytes
            entry[2] += entry[3] != self._rounds
            entry[3] = self._rounds

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the seconds of the `with` block to a phase; phases of several threads add up."""
        start = time.perf_counter()
        try:
            yield
        finally:
            elapsed = time.perf_counter() - start
            with self._lock:
                self._seconds[name] += elapsed

    def count(self, name: str, amount: int = 1) -> None:
        """Add to a counter of costly operations ("encryptions", "multiplications")."""
        with self._lock:
            self._counts[name] += int(amount)

    # ------------------------------------------------------------ reading

    @property
    def rounds(self) -> int:
        """How often the leading party sent something and then waited."""
        return self._rounds

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds per phase, over all parties."""
        with self._lock:
            return dict(sorted(self._seconds.items()))

    @property
    def counts(self) -> dict[str, int]:
        """Costly operations per name, over all parties."""
        with self._lock:
            return dict(sorted(self._counts.items()))

    @property
    def messages_sent(self) -> int:
        with self._lock:
            return sum(entry[0] for entry in self._traffic.values())

    @property
    def bytes_sent(self) -> int:
        with self._lock:
            return sum(entry[1] for entry in self._traffic.values())

    def summary(self) -> pd.DataFrame:
        """Traffic as a table: party (who received), sender, kind, messages, bytes, rounds; sorted."""
        import pandas as pd  # here, so that a party's process need not load it

        with self._lock:
            rows = [(*key, *entry[:3]) for key, entry in sorted(self._traffic.items())]
        table = pd.DataFrame(rows, columns=["party", "sender", "kind", "messages", "bytes", "rounds"])
        return table.astype({"messages": "int64", "bytes": "int64", "rounds": "int64"})

    # ------------------------------------------------------------ between ledgers

    def to_message(self) -> LedgerReport:
        """Everything in it, as a message."""
        with self._lock:
            keys = sorted(self._traffic)
            figures = [self._traffic[key][:3] for key in keys]
            return LedgerReport(
                receivers=tuple(key[0] for key in keys),
                senders=tuple(key[1] for key in keys),
                kinds=tuple(key[2] for key in keys),
                traffic=np.array(figures, dtype=np.int64).reshape(-1, 3),
                rounds=self._rounds,
                phases=tuple(self._seconds),
                seconds=tuple(self._seconds.values()),
                counters=tuple(self._counts),
                counts=tuple(self._counts.values()),
            )

    def take(self) -> LedgerReport:
        """to_message(), and start again from zero: what has been merged elsewhere is not merged twice."""
        with self._lock:
            report = self.to_message()
            self._clear()
        return report

    def merge(self, report: LedgerReport) -> None:
        """Add the figures of another ledger."""
        keys = zip(report.receivers, report.senders, report.kinds, strict=True)
        with self._lock:
            self._rounds += report.rounds
            for key, figures in zip(keys, report.traffic.tolist(), strict=True):
                entry = self._traffic[key]
                entry[:3] = [a + b for a, b in zip(entry[:3], figures, strict=True)]
            for name, seconds in zip(report.phases, report.seconds, strict=True):
                self._seconds[name] += seconds
            for name, amount in zip(report.counters, report.counts, strict=True):
                self._counts[name] += amount

    @classmethod
    def from_message(cls, report: LedgerReport) -> Ledger:
        """A ledger with the figures of a report."""
        ledger = cls()
        ledger.merge(report)
        return ledger
