"""Trees and lookup tables as messages, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from vflparty import codec

from ..categories import Categories
from ..tree import RecordTable, Tree
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


def records_message(table: RecordTable, features: np.ndarray | None = None) -> Records:
    """features : the rows that were trained on, float64 (n_rows, n_features): the message then tells `lower`."""
    lower = np.zeros(0) if features is None else values_below(table, features)
    return Records(
        table.ids, table.columns, table.thresholds, table.missing_left, lower, table.right,
        encode_categories(table.categories),
    )  # fmt: skip


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
