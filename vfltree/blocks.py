"""From what a user passes as X to one float64 block per party, rows aligned; every complaint names party and column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import _num_samples

from vflparty import align

from .rows import rows_digest


@dataclass(frozen=True)
class Block:
    """One party's features: float64 (n_rows, n_features), NaN for missing; names and row IDs where it has them."""

    party: str
    values: np.ndarray
    names: tuple[str, ...] | None = None
    ids: np.ndarray | None = field(default=None, compare=False)

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
        return Block(self.party, self.values[rows], self.names, None if self.ids is None else self.ids[rows])


def numeric_frame(frame: pd.DataFrame, party: str | None = None) -> pd.DataFrame:
    """The frame in float64, nullable and object columns of numbers included; TypeError names a column of text.

    ValueError where two columns share a name: nobody could say which of them is meant.
    """
    if not frame.columns.is_unique:
        twice = sorted({repr(name) for name in frame.columns[frame.columns.duplicated()]})
        raise ValueError(_at(party, f"column names occur twice: {', '.join(twice)}"))
    return pd.DataFrame(
        {name: _numeric_column(frame.iloc[:, i], party) for i, name in enumerate(frame.columns)},
        index=frame.index,
        columns=frame.columns,
    )


def _at(party: str | None, text: str) -> str:
    return text if party is None else f"party {party!r}: {text}"


def _numeric_column(column: pd.Series, party: str | None) -> np.ndarray:
    where = f"column {column.name!r}" + (f" of party {party!r}" if party else "")
    if isinstance(column.dtype, pd.CategoricalDtype):
        raise TypeError(f"{where} is categorical; encode it (one-hot, say) before training")
    if column.dtype.kind in "mM":
        raise TypeError(f"{where} holds dates or durations; turn it into numbers before training")
    try:
        if column.dtype == object:
            column = pd.to_numeric(column)
        if column.dtype.kind == "c":
            raise TypeError("complex numbers")
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{where} holds values that are not numbers: {error}") from None


def make_block(party: str, data: Any, n_rows: int | None = None, *, accept_sparse: bool = False) -> Block:
    """One party's block from a DataFrame, a Series, or anything array-like of two dimensions.

    data = None is a party without features (n_rows then says how many rows). A SciPy matrix, where it is accepted,
    becomes CSR of float64.
    """
    if data is None and n_rows is not None:
        return Block(party, np.zeros((n_rows, 0)))
    if isinstance(data, pd.Series):
        data = data.to_frame()
    if isinstance(data, pd.DataFrame):
        return _frame_block(party, data)
    if hasattr(data, "tocsr"):
        if accept_sparse:
            return Block(party, data.tocsr().astype(np.float64))
        raise TypeError(f"party {party!r}: sparse input is not supported; pass a dense array")
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
    return Block(party, values)


def _numeric_objects(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind != "O":
        raise TypeError(f"dtype {values.dtype}")
    return np.where(pd.isna(values), np.nan, values)


def _frame_block(party: str, frame: pd.DataFrame) -> Block:
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
    values = numeric_frame(frame, party).to_numpy(dtype=np.float64)
    return Block(party, values.reshape(len(frame), len(names)), names, ids)


def blocks_from_mapping(
    X: Mapping[str, Any], n_rows: int | None = None, least: int = 2, *, accept_sparse: bool = False
) -> dict[str, Block]:
    """Blocks of a dict party -> data, rows brought into the active (first) party's order by their IDs.

    Where several parties pass DataFrames the index is the row ID: all must hold the same IDs, in any order. Blocks
    without an index are taken row by row.
    """
    if len(X) < least:
        raise ValueError(f"{least} parties at least are needed, got {len(X)}: {list(X)}")
    bad = [name for name in X if not isinstance(name, str)]
    if bad:
        raise TypeError(f"party names must be strings, got {bad}")
    if n_rows is None:
        n_rows = next((_num_samples(data) for data in X.values() if data is not None), None)
    blocks = {
        party: make_block(party, data, n_rows, accept_sparse=accept_sparse) for party, data in X.items()
    }
    active, *passive = blocks.values()
    return {active.party: active} | {block.party: _aligned(block, active) for block in passive}


def _aligned(block: Block, active: Block) -> Block:
    if block.n_rows != active.n_rows:
        raise ValueError(
            f"party {active.party!r} has {active.n_rows} rows, party {block.party!r} has {block.n_rows}"
        )
    if block.ids is None or active.ids is None or np.array_equal(block.ids, active.ids):
        return Block(block.party, block.values, block.names, active.ids)
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
        return Block(block.party, block.values[:, order], names, block.ids)
    if block.n_features != n_features:
        raise ValueError(f"party {block.party!r}: expected {n_features} features, got {block.n_features}")
    return block
