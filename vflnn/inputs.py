"""From what a user passes as X to one block of samples per party, rows aligned; every complaint names the party.

A block is a table, dense or CSR, or samples of more axes, such as images (n, channels, height, width).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from vflparty import align


@dataclass(frozen=True)
class Block:
    """One party's samples: float32 (n_rows, ...), integers as they came, or a CSR matrix of float32.

    names : of the columns of a DataFrame.  ids : of its rows.
    """

    party: str
    values: Any
    names: tuple[str, ...] | None = None
    ids: np.ndarray | None = field(default=None, compare=False)

    @property
    def n_rows(self) -> int:
        return int(self.values.shape[0])

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one row."""
        return tuple(int(size) for size in self.values.shape[1:])

    @property
    def n_features(self) -> int:
        return math.prod(self.shape)

    def take(self, rows: np.ndarray) -> Block:
        """The block of the rows of these numbers."""
        return replace(self, values=self.values[rows], ids=None if self.ids is None else self.ids[rows])

    def samples(self, *, codes: bool = False) -> Any:
        """What a party trains on. codes : its model takes numbers of embedding rows, so integers stay integers."""
        whole = codes and self.values.dtype.kind in "iu"
        return self.values.astype(np.int64 if whole else np.float32, copy=False)


def make_block(party: str, data: Any, n_rows: int | None = None) -> Block:
    """One party's block of a DataFrame, a Series, a SciPy matrix, or anything array-like of two dimensions or more.

    data = None is a party without columns (n_rows then says how many rows).
    """
    if data is None and n_rows is not None:
        return Block(party, np.zeros((n_rows, 0), dtype=np.float32))
    if isinstance(data, pd.Series):
        data = data.to_frame()
    if isinstance(data, pd.DataFrame):
        return _frame_block(party, data)
    if sparse.issparse(data):
        values = data.tocsr().astype(np.float32)
        _check_finite(party, values.data)
        return Block(party, values)
    values = np.asarray(data)
    if values.ndim < 2:
        raise ValueError(
            f"party {party!r}: a block has two dimensions or more, got {values.ndim}; reshape(-1, 1) one column"
        )
    return Block(party, _numbers(party, values))


def blocks_from_mapping(X: Mapping[str, Any], n_rows: int | None = None) -> dict[str, Block]:
    """Blocks of a dict party -> data, rows brought into the active (first) party's order by their IDs.

    Where several parties pass DataFrames the index is the row ID: all must hold the same IDs, in any order. Blocks
    without an index are taken row by row.
    """
    bad = [name for name in X if not isinstance(name, str) or not name]
    if bad:
        raise TypeError(f"a party's name is text that is not empty, got {bad[0]!r}")
    if len(X) < 2:
        raise ValueError(f"2 parties at least are needed, got {len(X)}: {list(X)}")
    active, *passive = (make_block(party, data, n_rows) for party, data in X.items())
    return {active.party: active} | {block.party: _aligned(block, active) for block in passive}


def like_training(block: Block, names: tuple[str, ...] | None, shape: tuple[int, ...]) -> Block:
    """The block with its columns as in training: by name where both have names, else by number."""
    if names is not None and block.names is not None and block.names != names:
        missing, unexpected = set(names) - set(block.names), set(block.names) - set(names)
        if missing or unexpected:
            raise ValueError(
                f"party {block.party!r}: expected {len(names)} features, got {block.n_features}; "
                f"missing columns {sorted(missing)}, unexpected columns {sorted(unexpected)}"
            )
        order = [block.names.index(name) for name in names]
        return replace(block, values=block.values[:, order], names=names)
    if block.shape != shape:
        if len(shape) == len(block.shape) == 1:
            raise ValueError(f"party {block.party!r}: expected {shape[0]} features, got {block.n_features}")
        raise ValueError(f"party {block.party!r}: expected samples of shape {shape}, got {block.shape}")
    return block


def check_label_order(y: Any, active: Block) -> None:
    """Labels with an index of the same IDs in another order would be paired with the wrong rows."""
    if isinstance(y, pd.Series | pd.DataFrame) and active.ids is not None and len(y) == active.n_rows:
        index = y.index.to_numpy()
        if not np.array_equal(index, active.ids) and set(index) == set(active.ids):
            raise ValueError(
                f"y holds the row IDs of party {active.party!r} in another order; y.loc[X.index] aligns it"
            )


def _frame_block(party: str, frame: pd.DataFrame) -> Block:
    names = tuple(map(str, frame.columns))
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"party {party!r}: column names occur twice: {twice}")
    if n_duplicated := int(frame.index.duplicated().sum()):
        raise ValueError(
            f"party {party!r}: {n_duplicated} row IDs (of the index) are duplicated; IDs must be unique"
        )
    for name, dtype in zip(names, frame.dtypes, strict=True):
        if not pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_object_dtype(dtype):
            raise TypeError(
                f"column {name!r} of party {party!r} is of dtype {dtype}; encode it (one-hot, say) before training"
            )
    values = frame.to_numpy()
    return Block(
        party, _numbers(party, values, names).reshape(len(frame), len(names)), names, frame.index.to_numpy()
    )


def _numbers(party: str, values: np.ndarray, names: tuple[str, ...] | None = None) -> np.ndarray:
    """Integers as they are, anything else as finite float32."""
    if values.dtype.kind in "iu":
        return values
    if values.dtype.kind == "O":
        values = np.where(pd.isna(values), np.nan, values)
    elif values.dtype.kind not in "fb":
        raise TypeError(f"party {party!r}: features are not numbers: dtype {values.dtype}")
    try:
        with np.errstate(over="ignore"):  # infinite, and said so below
            values = values.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise TypeError(f"party {party!r}: features are not numbers: {error}") from None
    _check_finite(party, values, names)
    return values


def _check_finite(party: str, values: np.ndarray, names: tuple[str, ...] | None = None) -> None:
    wrong = ~np.isfinite(values)
    if not wrong.any():
        return
    where = ""
    if values.ndim == 2:
        column = int(wrong.any(axis=0).argmax())
        where = f", the first in column {column if names is None else repr(names[column])}"
    raise ValueError(
        f"party {party!r}: {int(wrong.sum())} values are NaN, infinite or too large for float32{where}; networks need "
        "finite numbers: impute or drop them first"
    )


def _aligned(block: Block, active: Block) -> Block:
    if block.n_rows != active.n_rows:
        raise ValueError(
            f"party {active.party!r} has {active.n_rows} rows, party {block.party!r} has {block.n_rows}"
        )
    if block.ids is None or active.ids is None or np.array_equal(block.ids, active.ids):
        return replace(block, ids=active.ids)
    own = {active.party: active.ids, block.party: block.ids}
    return block.take(align(own, how="exact").indices[block.party])
