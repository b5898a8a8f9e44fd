"""Trees and lookup tables as messages, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vflparty import codec

from ..tree import RecordTable, Tree
from .messages import ActiveResult, Records

_TREE_ARRAYS = ("node", "owner", "left", "right", "value", "gain", "cover")


def records_message(table: RecordTable, features: np.ndarray | None = None) -> Records:
    """features : the rows that were trained on, float64 (n_rows, n_features): the message then tells `lower`."""
    lower = np.zeros(0) if features is None else values_below(table, features)
    return Records(table.ids, table.columns, table.thresholds, table.missing_left, lower=lower)


def values_below(table: RecordTable, features: np.ndarray) -> np.ndarray:
    """Per split the largest value of its column that goes left, float64 (n_records,); -inf where none does.

    NaN for splits of categories.
    """
    lower = np.where(np.isnan(table.thresholds), np.nan, -np.inf)
    for column in np.unique(table.columns):
        mine = (table.columns == column) & ~np.isnan(table.thresholds)
        values = np.sort(features[:, column][~np.isnan(features[:, column])])
        side = np.searchsorted(values, table.thresholds[mine], side="left")
        side = np.where(np.isposinf(table.thresholds[mine]), len(values), side)
        lower[mine] = np.concatenate([[-np.inf], values])[side]
    return lower


def record_table(message: Records) -> RecordTable:
    none = np.zeros((len(message.ids), 0), np.uint8)
    return RecordTable(message.ids, message.columns, message.thresholds, message.missing_left, none)


def decode_records(data: bytes) -> RecordTable:
    """The table in a setup message or in a party's own half; empty bytes are an empty table."""
    if not data:
        return RecordTable.empty()
    message = codec.decode(data, (Records,), fill=True)
    assert isinstance(message, Records)
    return record_table(message)


def active_result(
    base_score: np.ndarray,
    trees: Sequence[Tree],
    own_splits: RecordTable,
    objective: str = "",
    features: np.ndarray | None = None,
) -> ActiveResult:
    """base_score : raw, (n_outputs,).  objective : says what raw scores mean.  features : see `records_message`."""
    joint = {name: np.concatenate([getattr(tree, name) for tree in trees]) for name in _TREE_ARRAYS}
    sizes = np.array([tree.n_nodes for tree in trees], dtype=np.int64)
    return ActiveResult(
        base_score=base_score,
        sizes=sizes,
        records=codec.encode(records_message(own_splits, features)),
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
