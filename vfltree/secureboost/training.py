"""Training as its launcher sees it: run the network round by round, gather both halves, show progress, stop early."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from vflparty import Ledger, Network

from ..growing.messages import ActiveResult, Records
from ..growing.models import decode_result, first_records, first_trees, joined_results
from .evaluation import History, Log
from .messages import RoundsGrown


class Callback(Protocol):
    """As XGBoost's `TrainingCallback`, of which the other methods are not called."""

    def after_iteration(self, model: Any, epoch: int, evals_log: Log) -> bool:
        """Called after round `epoch` (from 0) with the estimator, which can predict; True ends the training."""


@dataclass
class Grown:
    """Rounds that are finished, with the tables of all parties as they stood then."""

    halves: list[ActiveResult] = field(default_factory=list)  # trees of some rounds each, in order
    tables: dict[str, Records] = field(default_factory=dict)
    n_rounds: int = 0
    ended: bool = False
    interrupted: bool = False
    training: str = ""
    loss: float = float("nan")
    history: History = field(default_factory=History)

    def take(self, report: RoundsGrown, tables: dict[str, Records]) -> Grown:
        """With another round; a new object, so that an interruption finds the one or the other."""
        new = [decode_result(report.model)] if report.model else []
        return Grown(
            [*self.halves, *new],
            tables,
            report.n_rounds,
            ended=report.ended,
            training=report.training,
            loss=report.loss,
            history=History.from_json(report.history),
        )

    def model(self, n_rounds: int) -> tuple[ActiveResult, dict[str, Records]]:
        """Both halves of the model of the first rounds."""
        whole = joined_results(self.halves)
        n_trees = n_rounds * (len(whole.sizes) // self.n_rounds)
        tables = {party: first_records(table, n_trees) for party, table in self.tables.items()}
        return first_trees(whole, n_trees), tables


def trees_per_round(model: ActiveResult) -> int:
    """One per output, unless the leaves of a tree have a value for each."""
    return len(model.base_score) if model.value.shape[1] == 1 else 1


def grow(network: Network, after_round: Callable[[Grown], bool]) -> Grown:
    """Run rounds until the training ends, `after_round` says so, or Ctrl-C does.

    KeyboardInterrupt is raised where no round is finished; else what is finished is returned as `interrupted`.
    """
    grown = Grown()
    try:
        while not grown.ended:
            report = cast("RoundsGrown", network.run())
            tables = {party: cast("Records", network.collect(party)) for party in network.parties}
            grown = grown.take(report, tables)
            if after_round(grown):
                break
    except KeyboardInterrupt:
        if not grown.n_rounds:
            raise
        grown.interrupted = True
    return grown


class ProgressLines:
    """One line a round on standard output: number, seconds, metrics or loss, ciphertexts made."""

    def __init__(self, verbose: int, total: int, ledger: Ledger) -> None:
        self._verbose, self._total, self._ledger = verbose, total, ledger
        self._since, self._encryptions = time.perf_counter(), 0

    def show(self, grown: Grown) -> None:
        if self._verbose <= 0:
            return
        now, encryptions = time.perf_counter(), self._ledger.counts.get("encryptions", 0)
        width = len(str(self._total))
        parts = [f"[{grown.n_rounds:{width}}/{self._total}]", f"{now - self._since:.2f} s"]
        parts += _scores(grown.history.log) or [f"loss {grown.loss:.6g}"]
        if encryptions > self._encryptions:
            parts.append(f"{encryptions - self._encryptions} rows encrypted")
        print("  ".join(parts), flush=True)
        self._since, self._encryptions = now, encryptions


def _scores(log: Log) -> list[str]:
    return [
        f"{name}-{metric} {values[-1]:.6g}"
        for name, of_set in log.items()
        for metric, values in of_set.items()
    ]


def call_back(callbacks: Sequence[Callback], model: Any, grown: Grown) -> bool:
    """Whether one of them wants to stop; all are called."""
    log = grown.history.log
    return any([bool(callback.after_iteration(model, grown.n_rounds - 1, log)) for callback in callbacks])
