"""The caller's evaluation sets as the parties' seats take them: rows one set after another, checked before training."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from vflparty import codec
from vflparty.callables import name_of

from ..base import check_targets
from ..blocks import Block
from ..categories import Categories
from ..growing.models import encode_categories
from ..joining import join_prediction
from .evaluation import DEFAULT_METRICS, function_metric, make_metrics
from .messages import EvaluationRows, EvaluationSetup
from .settings import BoostSettings


def eval_pairs(
    eval_set: Any, sample_weight_eval_set: Any, ids_eval_set: Any
) -> list[tuple[Any, Any, Any, Any]]:
    """(X, y, weights or None, ids or None) per set; eval_set is None, one pair (X, y) or a list of them."""
    if eval_set is None:
        for name, value in (
            ("sample_weight_eval_set", sample_weight_eval_set),
            ("ids_eval_set", ids_eval_set),
        ):
            if value is not None:
                raise ValueError(f"{name} needs eval_set")
        return []
    if not isinstance(eval_set, Iterable):
        raise TypeError(f"eval_set must be a pair (X, y) or a list of pairs, got {type(eval_set).__name__}")
    single = isinstance(eval_set, tuple) and len(eval_set) == 2 and not isinstance(eval_set[0], tuple)
    pairs = [eval_set] if single else list(eval_set)
    for i, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"eval_set {i} must be a pair (X, y), got {type(pair).__name__}")
    one_array = single and not isinstance(sample_weight_eval_set, list | tuple)
    weights = _per_set("sample_weight_eval_set", sample_weight_eval_set, len(pairs), alone=one_array)
    ids = _per_set("ids_eval_set", ids_eval_set, len(pairs), alone=single)
    return [(X, y, w, own) for (X, y), w, own in zip(pairs, weights, ids, strict=True)]


def _per_set(name: str, values: Any, n_sets: int, *, alone: bool) -> list[Any]:
    """One value per set. alone : it is the value of the only one."""
    if values is None:
        return [None] * n_sets
    found = [values] if alone else values
    if not isinstance(found, list | tuple) or len(found) != n_sets:
        n = f"{len(found)} sets" if isinstance(found, list | tuple) else f"a {type(found).__name__}"
        raise ValueError(f"{name} must be a list with one entry a set: it holds {n}, eval_set has {n_sets}")
    return list(found)


def metric_names(eval_metric: Any, settings: BoostSettings, network: str) -> tuple[str, ...]:
    """Names of the metrics; ValueError where one does not suit. eval_metric : None, a name, a function, or a list."""
    if eval_metric is None:
        eval_metric = DEFAULT_METRICS[settings.objective]
    given: Sequence[Any] = eval_metric if isinstance(eval_metric, list | tuple) else [eval_metric]
    if not given:
        raise ValueError("eval_metric must hold one metric at least")
    names = tuple(
        function_metric(name_of(m, "eval_metric", network)) if callable(m) else str(m) for m in given
    )
    called = [metric.name for metric in make_metrics(names, settings)]
    if len(set(called)) < len(called):
        raise ValueError(f"eval_metric names a metric twice: {called}")
    return names


class EvaluationSets:
    """Rows of all sets together.

    sets : (blocks by party, targets, weights or None) per set.
    """

    def __init__(
        self,
        sets: Sequence[tuple[dict[str, Block], np.ndarray, Any]],
        metrics: tuple[str, ...],
        patience: int,
    ) -> None:
        self.blocks = {
            party: _stacked(party, [blocks[party] for blocks, _, _ in sets]) for party in sets[0][0]
        }
        parts = [blocks for blocks, _, _ in sets]
        self._digests = {
            party: hashlib.sha256(b"".join(blocks[party].ids_digest for blocks in parts)).digest()
            for party in self.blocks
        }
        self._sizes = np.array([len(y) for _, y, _ in sets], dtype=np.int64)
        self._targets = np.concatenate([y for _, y, _ in sets])
        self._weights = np.concatenate([_weights(w, y, i) for i, (_, y, w) in enumerate(sets)])
        self._metrics, self._patience = metrics, patience

    def active_bytes(self, party: str) -> bytes:
        """For the active party's setup."""
        return codec.encode(
            EvaluationSetup(
                features=self.blocks[party].values,
                ids_digest=self._digests[party],
                sizes=self._sizes,
                targets=self._targets,
                weights=self._weights,
                metrics=self._metrics,
                early_stopping_rounds=self._patience,
                categories=encode_categories(self.blocks[party].categories),
            )
        )

    def passive_bytes(self, party: str) -> bytes:
        """For a passive party's setup."""
        block = self.blocks[party]
        return codec.encode(
            EvaluationRows(block.values, self._digests[party], encode_categories(block.categories))
        )


def evaluation_blocks(
    model: Any, i: int, X: Any, y: Any, ids: Any, encode: Callable[[np.ndarray], np.ndarray]
) -> tuple[dict[str, Block], np.ndarray]:
    """Blocks of all parties and targets of set i, checked.

    ids : row IDs per party, as for prediction, or None.  encode : labels -> targets.
    """
    if isinstance(X, Mapping):
        absent = [p for p in model.parties_[1:] if X.get(p) is None]
        if absent:
            raise ValueError(f"eval_set {i} has no rows of party {absent[0]!r}")
    try:
        blocks = model._prediction_blocks(X if ids is None else join_prediction(X, ids, model.parties_))
        n_rows = next(iter(blocks.values())).n_rows
        if not n_rows:
            raise ValueError("it has 0 rows")
        return blocks, encode(check_targets(y, n_rows, model._several_targets))
    except ValueError as error:
        raise ValueError(f"eval_set {i}: {error}") from error


def _stacked(party: str, blocks: Sequence[Block]) -> Block:
    keys: dict[int, dict[str, None]] = {}
    for block in blocks:
        for column, own in block.categories.lists.items():
            keys.setdefault(column, {}).update(dict.fromkeys(own))
    every = Categories({column: tuple(keys[column]) for column in sorted(keys)})
    values = [every.recode(block.values, block.categories) for block in blocks]
    return Block(party, np.concatenate(values), categories=every)


def _weights(weights: Any, y: np.ndarray, i: int) -> np.ndarray:
    checked = _check_sample_weight(weights, np.empty((len(y), 1)), dtype=np.float64, ensure_non_negative=True)
    if not checked.sum() > 0:
        raise ValueError(f"every weight of eval_set {i} is 0")
    return checked
