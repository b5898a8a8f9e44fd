"""Trees and lookup tables as messages, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vflparty import codec

from ..categories import Categories
from ..tree import RecordTable, Tree, record_parts
from .messages import ActiveResult, CategoryLists, Records

_TREE_ARRAYS = ("node", "owner", "left", "right", "value", "gain", "cover")


def encode_categories(categories: Categories) -> bytes:
    """Lists as a setup message or a lookup table carries them; none are empty bytes."""
    return codec.encode(CategoryLists(*categories.to_arrays())) if categories.lists else b""


def decode_categories(data: bytes) -> Categories:
    if not data:
        return Categories.none()
    message = codec.decode(data, (CategoryLists,))
    assert isinstance(message, CategoryLists)
    return Categories.from_arrays(message.columns.tolist(), message.sizes.tolist(), message.keys)


def records_message(table: RecordTable, below: ValuesBelow | None = None) -> Records:
    """below : of the rows that were trained on: the message then tells `lower`."""
    lower = np.zeros(0) if below is None else below(table)
    return Records(
        table.ids, table.columns, table.thresholds, table.missing_left, lower, table.right,
        encode_categories(table.categories),
    )  # fmt: skip


class ValuesBelow:
    """Per split the largest value of its column that goes left, among the rows that were trained on.

    features : float64 (n_rows, n_features).

    Called with a table it returns float64 (n_records,): -inf where no row goes left, NaN for splits of categories. What
    was found is remembered, since training asks about a growing table round after round.
    """

    def __init__(self, features: np.ndarray) -> None:
        self._features = features
        self._known: dict[tuple[int, float], float] = {}
        self._last, self._last_lower = RecordTable.empty(), np.zeros(0)

    def __call__(self, table: RecordTable) -> np.ndarray:
        places = self._last.find(table.ids)
        lower = np.append(self._last_lower, np.nan)[places]  # -1, not there yet, is the last
        for new in np.flatnonzero(places < 0).tolist():
            lower[new] = self._below(int(table.columns[new]), float(table.thresholds[new]))
        self._last, self._last_lower = table, lower
        return lower

    def _below(self, column: int, threshold: float) -> float:
        if np.isnan(threshold):
            return float("nan")
        if (column, threshold) not in self._known:
            values = self._features[:, column]
            left = ~np.isnan(values) if np.isposinf(threshold) else values < threshold
            self._known[column, threshold] = float(np.max(values, where=left, initial=-np.inf))
        return self._known[column, threshold]


def record_table(message: Records) -> RecordTable:
    right = message.right if message.right.size else np.zeros((len(message.ids), 0), np.uint8)
    return RecordTable(
        message.ids, message.columns, message.thresholds, message.missing_left, right,
        decode_categories(message.categories),
    )  # fmt: skip


def decode_records(data: bytes) -> RecordTable:
    """The table in a setup message or in a party's own half; empty bytes are an empty table."""
    if not data:
        return RecordTable.empty()
    message = codec.decode(data, (Records,), fill=True)
    assert isinstance(message, Records)
    return record_table(message)


def categorical_columns(
    parties: Sequence[str], active: ActiveResult, passive: Mapping[str, Records]
) -> dict[str, list[int]]:
    """Party -> its columns of categories, where its half is at hand; the first party is the active one."""
    tables = {parties[0]: decode_records(active.records)}
    tables |= {party: record_table(records) for party, records in passive.items()}
    return {party: list(table.categories.lists) for party, table in tables.items()}


def decode_result(data: bytes) -> ActiveResult:
    """The active party's half in another message."""
    message = codec.decode(data, (ActiveResult,), fill=True)
    assert isinstance(message, ActiveResult)
    return message


def active_result(
    base_score: np.ndarray,
    trees: Sequence[Tree],
    own_splits: RecordTable,
    objective: str = "",
    below: ValuesBelow | None = None,
) -> ActiveResult:
    """base_score : raw, (n_outputs,).  objective : says what raw scores mean.  below : see `records_message`."""
    joint = {name: np.concatenate([getattr(tree, name) for tree in trees]) for name in _TREE_ARRAYS}
    sizes = np.array([tree.n_nodes for tree in trees], dtype=np.int64)
    return ActiveResult(
        base_score=base_score,
        sizes=sizes,
        records=codec.encode(records_message(own_splits, below)),
        objective=objective,
        **joint,
    )


def result_trees(result: ActiveResult) -> list[Tree]:
    ends = np.cumsum(result.sizes)
    trees = []
    for start, end in zip(ends - result.sizes, ends, strict=True):
        arrays = {name: getattr(result, name)[start:end].copy() for name in _TREE_ARRAYS}
        trees.append(Tree(**arrays))
    return trees


def joined_results(halves: Sequence[ActiveResult]) -> ActiveResult:
    """One half out of several of consecutive trees; its own splits are those of the last."""
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(half, name) for half in halves]) for name in ("sizes", *_TREE_ARRAYS)
    }
    return dataclasses.replace(halves[-1], **arrays)


def first_trees(result: ActiveResult, n_trees: int) -> ActiveResult:
    """The active party's half without the trees from number `n_trees` on, and without its splits there."""
    end = int(result.sizes[:n_trees].sum())
    arrays: dict[str, Any] = {name: getattr(result, name)[:end] for name in _TREE_ARRAYS}
    records = codec.decode(result.records, (Records,), fill=True)
    assert isinstance(records, Records)
    kept = codec.encode(first_records(records, n_trees))
    return dataclasses.replace(result, sizes=result.sizes[:n_trees], records=kept, **arrays)


def first_records(records: Records, n_trees: int) -> Records:
    """A table without the splits in trees from number `n_trees` on; fields without an entry a split stay."""
    trees, _ = record_parts(records.ids)
    chosen = trees < n_trees
    arrays = {
        field.name: getattr(records, field.name)[chosen]
        for field in dataclasses.fields(records)
        if isinstance(getattr(records, field.name), np.ndarray)
        and len(getattr(records, field.name)) == len(records.ids)
    }
    return dataclasses.replace(records, **arrays)
