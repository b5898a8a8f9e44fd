"""From columns as a user passes them to float64: numbers as they are, categories as codes. Complaints name columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vfldata import column_positions

from .categories import Categories, category_key, key_order


def coded_frame(
    frame: pd.DataFrame, party: str | None = None, categorical: Any = ()
) -> tuple[pd.DataFrame, Categories]:
    """The frame in float64, and the lists behind its codes.

    Columns of the pandas dtype "category" and those named in `categorical` become codes; of the others, nullable and
    object columns of numbers are included, and TypeError names a column of text. ValueError where two columns share a
    name: nobody could say which of them is meant.
    """
    if not frame.columns.is_unique:
        twice = sorted({repr(name) for name in frame.columns[frame.columns.duplicated()]})
        raise ValueError(_at(party, f"column names occur twice: {', '.join(twice)}"))
    named = column_positions(categorical, frame.shape[1], list(frame.columns), owner=_owner(party))
    columns, lists = np.empty(frame.shape), {}
    for i in range(frame.shape[1]):
        column = frame.iloc[:, i]
        if i in named or isinstance(column.dtype, pd.CategoricalDtype):
            columns[:, i], lists[i] = _encoded(column, repr(column.name), party)
        else:
            columns[:, i] = _numeric_column(column, party)
    return pd.DataFrame(columns, index=frame.index, columns=frame.columns), Categories(lists)


def coded_array(data: Any, party: str | None = None, categorical: Any = ()) -> tuple[Any, Categories]:
    """An array whose `categorical` columns have become codes, and the lists behind them; without any, the array."""
    if _is_empty(categorical):
        return data, Categories.none()
    table = np.asarray(data) if not isinstance(data, list) else np.array(data, dtype=object)
    if table.ndim != 2:
        raise ValueError(_at(party, f"categorical columns need data of two dimensions, got {table.ndim}"))
    positions = column_positions(categorical, table.shape[1], owner=_owner(party))
    coded = table.astype(np.float64 if table.dtype.kind in "fiub" else object)
    lists = {}
    for i in sorted(positions.tolist()):
        coded[:, i], lists[i] = _encoded(table[:, i], str(i), party)
    return coded, Categories(lists)


def coded_matrix(X: Any, categorical: Any) -> tuple[Any, Categories]:
    """All columns in one: `coded_frame` or `coded_array`. categorical : also a dict party -> columns of X."""
    is_frame = isinstance(X, pd.DataFrame)
    if isinstance(categorical, Mapping):
        n_features = X.shape[1] if is_frame else np.asarray(X).shape[-1]
        categorical = np.concatenate(
            [
                column_positions(
                    wanted, n_features, list(X.columns) if is_frame else None, owner=_owner(party)
                )
                for party, wanted in categorical.items()
            ]
            or [np.zeros(0, np.int64)]
        )
    return coded_frame(X, None, categorical) if is_frame else coded_array(X, None, categorical)


def columns_there(data: Any, columns: list[int], names: Sequence[str] | None) -> list[int]:
    """Where the training columns of these numbers stand in new data: by name where both have names, else as they are.

    Those that are missing are left out; whoever matches all columns complains of them.
    """
    if isinstance(data, pd.DataFrame) and names is not None:
        here = list(map(str, data.columns))
        return [here.index(names[j]) for j in columns if names[j] in here]
    n_features = np.shape(data)[-1] if columns and np.ndim(data) == 2 else 0
    return [j for j in columns if j < n_features]


def _is_empty(categorical: Any) -> bool:
    return not isinstance(categorical, (int, str, np.integer, slice)) and len(categorical) == 0


def _encoded(column: Any, name: str, party: str | None) -> tuple[np.ndarray, tuple[str, ...]]:
    try:
        return encode_column(column)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{_where(name, party)}: {error}") from None


def _owner(party: str | None) -> str:
    return "categorical_features" if party is None else f"party {party!r}, categorical_features"


def _where(name: str, party: str | None) -> str:
    return f"column {name}" + (f" of party {party!r}" if party else "")


def _at(party: str | None, text: str) -> str:
    return text if party is None else f"party {party!r}: {text}"


def _numeric_column(column: pd.Series, party: str | None) -> np.ndarray:
    where = _where(repr(column.name), party)
    if column.dtype.kind in "mM":
        raise TypeError(f"{where} holds dates or durations; turn it into numbers before training")
    try:
        if column.dtype == object:
            column = pd.to_numeric(column)
        if column.dtype.kind == "c":
            raise TypeError("complex numbers")
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{where} holds values that are not numbers: {error}; "
            "categories have the pandas dtype 'category', or are named in categorical_features"
        ) from None


def encode_column(values: pd.Series | np.ndarray) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Codes of a column, NaN where a value is missing, and the keys of the categories that occur.

    Categories stand in the order of the pandas dtype where the column has one; else numbers come first, ascending, then
    text in alphabetical order.
    """
    if isinstance(values, pd.Series) and isinstance(values.dtype, pd.CategoricalDtype):
        codes = values.cat.codes.to_numpy()
        occurring = np.unique(codes[codes >= 0])
        keys = [category_key(values.cat.categories[code]) for code in occurring]
        places = np.searchsorted(occurring, codes)
    else:
        codes, distinct = pd.factorize(values)
        given = [category_key(value) for value in distinct]
        keys = sorted(set(given), key=key_order)
        place_of = {key: place for place, key in enumerate(keys)}
        places = np.array([place_of[key] for key in given] + [0])[codes]
    return np.where(codes < 0, np.nan, places).astype(np.float64), tuple(keys)
