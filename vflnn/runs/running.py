"""All repeats of a config, one after the other; what is finished already is not made again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from tqdm import tqdm

from vflparty.party import ProgressHook

from ..communication import communication
from .config import Config, RunConfig
from .results import Results, repeat_key
from .training import auc, epoch_line, train_once

Say = Callable[[str], None]


def run_config(config: Config, *, fresh: bool = False, say: Say = print) -> Results:
    """Train every run with every seed, all runs with the first seed first; a line is said for each.

    A run whose data is not there is left out, and said so.

    fresh : make repeats again whose results are there already
    """
    results = Results(config.results)
    repeats = [(run, seed) for seed in config.seeds for run in config.runs]
    for number, (run, seed) in enumerate(repeats, 1):
        place = f"[{number}/{len(repeats)}] {run.name}, seed {seed}"
        if repeat_key(run, seed) in results and not fresh:
            say(f"{place}: made already")
            continue
        try:
            with progress(place, run.training.epochs) as hook:
                figures = run_once(run, seed, hook)
        except FileNotFoundError as error:
            say(f"{place}: left out, {error}")
            continue
        results.add(run, seed, figures)
        say(f"{place}: {_line(figures)}")
    return results


def run_once(run: RunConfig, seed: int, on_progress: ProgressHook | None = None) -> dict[str, Any]:
    """The figures of one repeat."""
    data, plan, trained = train_once(run, seed, on_progress)
    result = trained.result
    figures = {
        "data": repr(data),
        "source": data.source,
        "score": float(result.epoch_score[-1]),
        "auc": auc(data, trained),
        "loss": float(result.epoch_loss[-1]),
        "train_loss": float(result.step_loss[-1]),
        "training_seconds": float(np.sum(result.step_seconds)),
        "epoch_scores": result.epoch_score.tolist(),
    }
    if data.task != "regression":
        # No accuracy exceeds 1: without a target nothing is reached, and what a round sends is told all the same.
        told = communication(
            result, trained.ledger, plan.settings, plan.widths, target=run.training.target or 1.0
        )
        figures |= {
            "rounds_to_target": told.rounds,
            "seconds_to_target": told.seconds,
            "rounds": told.trained_rounds,
            "mib_per_round": told.amount,
            "sent_mib_per_round": told.sent,
            "mib_to_target": told.total,
            "sent_mib_to_target": told.total_sent,
        }
    return {name: None if value != value else value for name, value in figures.items()}  # nan is no JSON


@contextmanager
def progress(title: str, epochs: int) -> Iterator[ProgressHook | None]:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    with tqdm(total=epochs, desc=title, unit="epoch", leave=False) as bar:

        def show(text: str, done: int, total: int | None) -> None:
            bar.set_postfix_str(epoch_line(text), refresh=False)
            bar.update(done - bar.n)

        yield show


def _line(figures: dict[str, Any]) -> str:
    reached = figures.get("rounds_to_target")
    rounds = "" if reached is None else f", target in round {reached}"
    return f"score {figures['score']:.4f}{rounds}, {figures['training_seconds']:.1f} s"
