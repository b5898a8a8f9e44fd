"""Rows that are predicted while training goes: raw scores round by round, metrics, and when to stop.

Each round only its new trees are asked about, for all evaluation sets at once, by the messages of prediction: a step a
level at most. Passive parties see the paths of these rows through their own nodes, as they would when the finished
model predicted them.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import cast

import numpy as np

from vflparty import Round
from vflparty.callables import find_function

from ..growing.models import decode_categories
from ..growing.prediction import route_rows
from ..losses import Loss, Scores
from ..metrics import Metric, metric_by_name, metric_of_function
from ..tree import RecordTable, Router, Tree, add_leaves
from .messages import EvaluationSetup
from .settings import BoostSettings

Log = dict[str, dict[str, list[float]]]  # evaluation set -> metric -> a value per round
_FUNCTION = "function "  # before the name of a function, where names of metrics are listed

DEFAULT_METRICS = {
    "binary:logistic": "logloss",
    "multi:softprob": "mlogloss",
    "reg:squarederror": "rmse",
    "reg:absoluteerror": "mae",
    "reg:quantileerror": "quantile",
    "reg:pseudohubererror": "mphe",
    "count:poisson": "poisson-nloglik",
}


def function_metric(name: str) -> str:
    """How a function of this name stands in a list of metrics."""
    return _FUNCTION + name


def make_metrics(names: Sequence[str], settings: BoostSettings) -> list[Metric]:
    """The metrics of these names; ValueError names one that does not suit the objective."""
    n_classes, alphas = settings.n_classes, settings.quantile_alpha
    if settings.objective != "reg:quantileerror":
        alphas = alphas[:1]  # one prediction a row
    return [
        metric_of_function(find_function(name.removeprefix(_FUNCTION)))
        if name.startswith(_FUNCTION)
        else metric_by_name(name, n_classes, alphas, settings.huber_slope)
        for name in names
    ]


def set_names(n_sets: int) -> list[str]:
    """As XGBoost calls them."""
    return [f"validation_{i}" for i in range(n_sets)]


@dataclass
class History:
    """Values of the metrics so far, and the best round by the last metric of the last set.

    log : values per set and metric, one a round that was evaluated.
    best_iteration : number of the best round; -1 where none was evaluated or nothing stops early.
    waited : rounds since then.
    """

    log: Log = field(default_factory=dict)
    best_iteration: int = -1
    best_score: float = float("nan")
    waited: int = 0

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> History:
        return cls(**json.loads(text)) if text else cls()

    def add(self, scores: Mapping[str, Mapping[str, float]], number: int, maximize: bool) -> None:
        """Take the values of round `number`; a tie with the best is no improvement, as in XGBoost."""
        for name, values in scores.items():
            for metric, value in values.items():
                self.log.setdefault(name, {}).setdefault(metric, []).append(value)
        score = list(list(scores.values())[-1].values())[-1]
        better = score > self.best_score if maximize else score < self.best_score
        if self.best_iteration < 0 or better:
            self.best_iteration, self.best_score, self.waited = number, score, 0
        else:
            self.waited += 1


class Evaluation:
    """The active party's side."""

    def __init__(self, setup: EvaluationSetup, loss: Loss, settings: BoostSettings) -> None:
        self.ids_digest, self.n_rows = setup.ids_digest, len(setup.features)
        self._setup, self._loss = setup, loss
        self._metrics = make_metrics(setup.metrics, settings)
        self._ends = np.cumsum(setup.sizes)
        self.history = History()
        self.raw: Scores

    def start(self, base_score: Scores) -> None:
        """Raw scores before the first tree."""
        self.raw = cast("Scores", np.tile(base_score, (self.n_rows, 1)))

    @property
    def should_stop(self) -> bool:
        """Whether nothing has improved for long enough."""
        patience = self._setup.early_stopping_rounds
        return patience > 0 and self.history.waited >= patience

    @property
    def n_kept(self) -> int | None:
        """Rounds up to the best one, where training may stop early; else None: all of them."""
        if not self._setup.early_stopping_rounds or self.history.best_iteration < 0:
            return None
        return self.history.best_iteration + 1

    def take_round(
        self, number: int, trees: list[Tree], own_splits: RecordTable, passive_parties: Sequence[str]
    ) -> Generator[Round, Round, None]:
        """Send the rows down the trees of a round, and measure."""
        router = Router(trees, self.n_rows, first=number * len(trees))
        given = decode_categories(self._setup.categories)
        features = own_splits.categories.recode(self._setup.features, given)
        yield from route_rows(router, own_splits, features, passive_parties)
        add_leaves(self.raw, trees, router.leaves(), range(len(trees)))
        maximize = self._metrics[-1].maximize
        self.history.add(self._measure(), number, maximize)

    def _measure(self) -> dict[str, dict[str, float]]:
        scores = {}
        for name, rows in zip(set_names(len(self._ends)), self._sets(), strict=True):
            y, weights = self._setup.targets[rows], self._setup.weights[rows]
            predictions = self._loss.link(self.raw[rows])
            scores[name] = {m.name: m.measure(y, predictions, weights) for m in self._metrics}
        return scores

    def _sets(self) -> list[slice]:
        starts = self._ends - self._setup.sizes
        return [slice(start, end) for start, end in zip(starts, self._ends, strict=True)]
