"""Rows that parties hold in orders of their own, matched by explicit IDs before anything else sees them.

For whoever may see all IDs: a simulation on one host. Organisations of their own agree on their common rows first (by a
private set intersection, say) and then hold the same rows in the same order.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from vflcrypto.callers import outside_level
from vflparty import align
from vflparty.alignment import id_keys

from .exceptions import RowsLeftOutWarning


def join_training(
    X: Any, y: Any, sample_weight: Any, ids: Any, order: Iterable[str] | None = None
) -> tuple[dict[str, Any], Any, Any]:
    """The rows that all parties have, in the active (first) party's order.

    Parameters
    ----------
    X : dict party -> rows, in an order of the party's own; None for an active party without features
    y, sample_weight : one per row of the active party, or None
    ids : dict party -> row IDs, or a list of them in the order of the parties
    order : party names, the active one first; None: as in X

    Returns
    -------
    X, y, sample_weight : of the common rows; an index, where there is one, holds their IDs

    Raises
    ------
    ValueError : IDs that are duplicated or missing, or not as many as rows; no common row. Names the party, not the IDs

    A `RowsLeftOutWarning` tells the counts where a party has rows that another lacks.
    """
    parties = list(order or X)
    by_party = _complete(_named(X, ids, parties), parties)
    for party, data in X.items():
        if party in by_party:
            _check_length(party, data, by_party[party])
    active = next(iter(by_party))
    n_active = len(by_party[active])
    for name, values in (("y", y), ("sample_weight", sample_weight)):
        if values is not None and np.ndim(values) and _num_samples(values) != n_active:
            raise ValueError(
                f"{name} has {_num_samples(values)} values, party {active!r} has {n_active} rows"
            )
    alignment = align(by_party)
    if not alignment.complete:
        warnings.warn(
            f"{alignment}; the other rows are left out", RowsLeftOutWarning, stacklevel=outside_level()
        )
    rows = alignment.indices[active]
    common = _index(by_party[active], rows)
    joined = {party: _taken(X[party], alignment.indices[party], common) for party in by_party if party in X}
    if sample_weight is not None and np.ndim(sample_weight):
        sample_weight = _safe_indexing(sample_weight, rows)
    return joined, _labels(y, rows, common), sample_weight


def join_prediction(X: Any, ids: Any, order: Sequence[str]) -> dict[str, Any]:
    """X with every party's rows in the order of the active party's, all of which the others must have.

    ValueError names a party that lacks some, and how many. Parties that are not there are left out.
    """
    given = _named(X, ids, order)
    there = [party for party in order if X.get(party) is not None or party == order[0]]
    by_party = _complete(given, there)
    for party in by_party:
        _check_length(party, X.get(party), by_party[party])
    first, *others = by_party
    wanted = id_keys(by_party[first], first)
    rows = np.arange(len(wanted))
    common = _index(by_party[first], rows)
    joined = {first: _taken(X.get(first), rows, common)}
    align({first: by_party[first]})  # duplicates
    for party in others:
        place = {key: at for at, key in enumerate(id_keys(by_party[party], party))}
        align({party: by_party[party]})
        lacking = sum(key not in place for key in wanted)
        if lacking:
            raise ValueError(
                f"party {party!r} lacks {lacking} of the {len(wanted)} row IDs to predict: without its columns these "
                "rows have no prediction"
            )
        joined[party] = _taken(X[party], np.array([place[key] for key in wanted], dtype=np.int64), common)
    return joined


def _named(X: Any, ids: Any, parties: Sequence[str]) -> dict[str, Any]:
    """IDs by party, of which some may be missing."""
    if not isinstance(X, Mapping):
        raise ValueError(
            "ids are for a dict of blocks, one per party: in one matrix the parts of a row belong together already"
        )
    if isinstance(ids, Mapping):
        unknown = [party for party in ids if party not in parties]
        if unknown:
            raise ValueError(f"ids names parties {unknown}; there are {list(parties)}")
        return dict(ids)
    lists = list(ids)
    if len(lists) != len(parties):
        raise ValueError(f"ids holds {len(lists)} lists for the {len(parties)} parties {list(parties)}")
    return dict(zip(parties, lists, strict=True))


def _complete(given: Mapping[str, Any], parties: Sequence[str]) -> dict[str, Any]:
    missing = [party for party in parties if given.get(party) is None]
    if missing:
        raise ValueError(f"ids says nothing about parties {missing}; give row IDs for all of {list(parties)}")
    return {party: given[party] for party in parties}


def _check_length(party: str, data: Any, ids: Any) -> None:
    if data is not None and _num_samples(data) != len(ids):
        raise ValueError(f"party {party!r}: {len(ids)} row IDs for {_num_samples(data)} rows")


def _index(ids: Any, rows: np.ndarray) -> pd.Index:
    values = list(ids)
    return pd.Index([values[row] for row in rows], tupleize_cols=False)


def _taken(data: Any, rows: np.ndarray, common: pd.Index) -> Any:
    """These rows, under the common IDs where the data have an index."""
    if data is None:
        return None
    if isinstance(data, pd.DataFrame | pd.Series):
        return data.iloc[rows].set_axis(common, axis=0)
    return _safe_indexing(data, rows)


def _labels(y: Any, rows: np.ndarray, common: pd.Index) -> Any:
    """Labels of these rows. An index other than 0, 1, 2, ... stays, so that labels in another order are noticed."""
    if not isinstance(y, pd.Series | pd.DataFrame):
        return None if y is None else _safe_indexing(y, rows)
    counted = y.index.equals(pd.RangeIndex(len(y)))
    return y.iloc[rows].set_axis(common, axis=0) if counted else y.iloc[rows]
