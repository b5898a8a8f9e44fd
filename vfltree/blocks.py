"""From what a user passes as X to one float64 block per party, rows aligned; every complaint names party and column."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import _num_samples

from vflparty import align

from .categories import MAX_CATEGORIES, Categories
from .coding import coded_array, coded_frame
from .rows import rows_digest


@dataclass(frozen=True)
class Block:
    """One party's features: float64 (n_rows, n_features), NaN for missing; names and row IDs where it has them.

    Columns in `categories` hold codes of the lists there.
    """

    party: str
    values: np.ndarray
    names: tuple[str, ...] | None = None
    ids: np.ndarray | None = field(default=None, compare=False)
    categories: Categories = field(default_factory=Categories.none)

    @property
    def n_rows(self) -> int:
        return self.values.shape[0]

    @property
    def n_features(self) -> int:
        return self.values.shape[1]

    @property
    def ids_digest(self) -> bytes:
        """What parties compare before they start; without IDs, of the row numbers."""
        return rows_digest(self.ids, self.n_rows)

    def take(self, rows: np.ndarray | slice) -> Block:
        """The block of these rows (a mask or numbers)."""
        return replace(self, values=self.values[rows], ids=None if self.ids is None else self.ids[rows])

    def column_name(self, column: int) -> str:
        """What an error message calls a column."""
        return repr(self.names[column]) if self.names is not None else str(column)


def check_categories(block: Block) -> None:
    """Refuse a column of more categories than there are bins, before anything is trained."""
    for column, keys in block.categories.lists.items():
        if len(keys) > MAX_CATEGORIES:
            raise ValueError(
                f"column {block.column_name(column)} of party {block.party!r} has {len(keys)} categories, at most "
                f"{MAX_CATEGORIES} are possible: join the rare ones, or give the column as numbers"
            )


def check_kinds(block: Block, categorical: Collection[int]) -> None:
    """A column that held numbers in training must not hold categories now. categorical : columns that did not."""
    for column in sorted(set(block.categories.lists) - set(categorical)):
        raise TypeError(
            f"column {block.column_name(column)} of party {block.party!r} is categorical, in training it held numbers"
        )


def make_block(
    party: str,
    data: Any,
    n_rows: int | None = None,
    categorical: Any = (),
    *,
    accept_sparse: bool = False,
) -> Block:
    """One party's block from a DataFrame, a Series, or anything array-like of two dimensions.

    data = None is a party without features (n_rows then says how many rows). A SciPy matrix, where it is accepted,
    becomes CSR of float64.  categorical : see `coded_frame`.
    """
    if data is None and n_rows is not None:
        return Block(party, np.zeros((n_rows, 0)))
    if isinstance(data, pd.Series):
        data = data.to_frame()
    if isinstance(data, pd.DataFrame):
        return _frame_block(party, data, categorical)
    if hasattr(data, "tocsr"):
        if accept_sparse:
            return Block(party, data.tocsr().astype(np.float64))
        raise TypeError(f"party {party!r}: sparse input is not supported; pass a dense array")
    data, categories = coded_array(data, party, categorical)
    try:
        values = np.asarray(data)
        if values.dtype.kind not in "fiub":
            values = _numeric_objects(values)
        values = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"party {party!r}: features are not numbers: {error}") from None
    if values.ndim != 2:
        raise ValueError(
            f"party {party!r}: a block has two dimensions, got {values.ndim}; reshape(-1, 1) one column"
        )
    return Block(party, values, categories=categories)


def _numeric_objects(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind != "O":
        raise TypeError(f"dtype {values.dtype}")
    return np.where(pd.isna(values), np.nan, values)


def _frame_block(party: str, frame: pd.DataFrame, categorical: Any) -> Block:
    names = tuple(map(str, frame.columns))
    if len(set(names)) != len(names):
        raise ValueError(
            f"party {party!r}: column names occur twice: {sorted({n for n in names if names.count(n) > 1})}"
        )
    ids = frame.index.to_numpy()
    n_duplicated = int(frame.index.duplicated().sum())
    if n_duplicated:
        raise ValueError(
            f"party {party!r}: {n_duplicated} row IDs (of the index) are duplicated; IDs must be unique"
        )
    coded, categories = coded_frame(frame, party, categorical)
    values = coded.to_numpy(dtype=np.float64).reshape(len(frame), len(names))
    return Block(party, values, names, ids, categories)


def blocks_from_mapping(
    X: Mapping[str, Any],
    n_rows: int | None = None,
    least: int = 2,
    categorical: Mapping[str, Any] | None = None,
    *,
    accept_sparse: bool = False,
) -> dict[str, Block]:
    """Blocks of a dict party -> data, rows brought into the active (first) party's order by their IDs.

    Where several parties pass DataFrames the index is the row ID: all must hold the same IDs, in any order. Blocks
    without an index are taken row by row.  categorical : party -> its categorical columns, see `coded_frame`.
    """
    if len(X) < least:
        raise ValueError(f"{least} parties at least are needed, got {len(X)}: {list(X)}")
    bad = [name for name in X if not isinstance(name, str)]
    if bad:
        raise TypeError(f"party names must be strings, got {bad}")
    if n_rows is None:
        n_rows = next((_num_samples(data) for data in X.values() if data is not None), None)
    named = categorical or {}
    blocks = {
        party: make_block(party, data, n_rows, named.get(party, ()), accept_sparse=accept_sparse)
        for party, data in X.items()
    }
    active, *passive = blocks.values()
    return {active.party: active} | {block.party: _aligned(block, active) for block in passive}


def _aligned(block: Block, active: Block) -> Block:
    if block.n_rows != active.n_rows:
        raise ValueError(
            f"party {active.party!r} has {active.n_rows} rows, party {block.party!r} has {block.n_rows}"
        )
    if block.ids is None or active.ids is None or np.array_equal(block.ids, active.ids):
        return replace(block, ids=active.ids)
    return block.take(
        align({active.party: active.ids, block.party: block.ids}, how="exact").indices[block.party]
    )


def match_columns(block: Block, names: tuple[str, ...] | None, n_features: int) -> Block:
    """The block with its columns as in training: matched by name where both have names, else by number."""
    if names is not None and block.names is not None and block.names != names:
        missing, unexpected = set(names) - set(block.names), set(block.names) - set(names)
        if missing or unexpected:
            raise ValueError(
                f"party {block.party!r}: expected {n_features} features, got {block.n_features}; "
                f"missing columns {sorted(missing)}, unexpected columns {sorted(unexpected)}"
            )
        order = [block.names.index(name) for name in names]
        return replace(
            block, values=block.values[:, order], names=names, categories=block.categories.take(order)
        )
    if block.n_features != n_features:
        raise ValueError(f"party {block.party!r}: expected {n_features} features, got {block.n_features}")
    return block
