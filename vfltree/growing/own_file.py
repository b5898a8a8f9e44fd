"""A party that takes its seat out of its own file, to answer or to lead predictions; nobody else's file is read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from vflparty import DamagedFileError, codec
from vflparty.modelfile import FilePath

from ..blocks import Block, check_kinds, make_block, match_columns
from ..coding import columns_there
from ..halves import Half, checked_list
from .checks import check_table
from .messages import ActiveResult, PassiveSetup, PredictionSetup, Records
from .models import decode_records, encode_categories, record_table


def passive_setup(file: FilePath, X: Any, ids: Collection[Any] | None = None) -> PassiveSetup:
    """What a passive party answers predictions with: its file, and its rows.

    Parameters
    ----------
    file : the party's own
    X : DataFrame or array of its columns; a DataFrame's columns are matched by name, its index is the row ID
    ids : row IDs in order, in place of an index
    """
    half = Half.read(file, active=False)
    assert isinstance(half.message, Records)
    try:
        table = record_table(half.message)
        check_table(table, half.n_features)
    except ValueError as error:
        raise DamagedFileError(str(error), file) from error
    block = own_block(half.party, X, half.names, half.n_features, ids, list(table.categories.lists))
    return PassiveSetup(
        party=half.party,
        features=block.values,
        ids_digest=block.ids_digest,
        max_bin=2,
        allow_weak_key=False,
        cuts=None,
        random_seed=0,
        n_jobs=1,
        records=codec.encode(half.message),
        categories=encode_categories(block.categories),
    )


def prediction_setup(file: FilePath, X: Any, ids: Collection[Any] | None = None) -> PredictionSetup:
    """What the active party leads predictions with: its file, and its rows; parameters as `passive_setup`.

    X may be None for an active party without features; `ids` then says how many rows there are.
    """
    half = Half.read(file, active=True)
    assert isinstance(half.message, ActiveResult) and half.extra is not None
    categorical = list(decode_records(half.message.records).categories.lists)
    block = own_block(half.party, X, half.names, half.n_features, ids, categorical)
    passive = (checked_list(half.extra, "parties", str, None) or ("",))[1:]
    return PredictionSetup(
        party=half.party,
        features=block.values,
        ids_digest=block.ids_digest,
        passive_parties=passive,
        present_parties=passive,
        model=codec.encode(half.message),
        categories=encode_categories(block.categories),
    )


def own_block(
    party: str,
    X: Any,
    names: tuple[str, ...] | None,
    n_features: int,
    ids: Collection[Any] | None = None,
    categorical: Collection[int] = (),
) -> Block:
    """A party's rows, columns as in training. categorical : columns that held categories there."""
    there = columns_there(X, list(categorical), names)
    block = make_block(party, X, None if ids is None else len(ids), there)
    if ids is not None:
        if len(ids) != block.n_rows:
            raise ValueError(f"party {party!r}: {len(ids)} row IDs for {block.n_rows} rows")
        block = replace(block, ids=_vector(ids))
    matched = match_columns(block, names, n_features)
    check_kinds(matched, categorical)
    return matched


def _vector(ids: Collection[Any]) -> np.ndarray:
    """IDs as one vector, whatever they are: NumPy would make a matrix of tuples."""
    if hasattr(ids, "dtype"):
        return np.asarray(ids)
    vector = np.empty(len(ids), dtype=object)
    vector[:] = list(ids)
    return vector
