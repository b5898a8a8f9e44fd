"""One column of 0.0 and 1.0 per value of a text column; the columns of one attribute are a group."""

from collections.abc import Mapping, Sequence
from typing import Literal

import pandas as pd

OneHot = Literal["full", "drop_first"]


def check_one_hot(one_hot: object) -> None:
    if one_hot not in ("full", "drop_first", None):
        raise ValueError(f'one_hot is "full", "drop_first" or None, got {one_hot!r}')


def group_columns(name: str, values: Sequence[str], one_hot: OneHot | None) -> tuple[str, ...]:
    """The columns that attribute `name` becomes, named like ``"form=foster"``."""
    if one_hot is None:
        return (name,)
    return tuple(f"{name}={value}" for value in (values[1:] if one_hot == "drop_first" else values))


def indicators(table: pd.DataFrame, groups: Mapping[str, tuple[str, ...]]) -> pd.DataFrame:
    """The columns of all groups, in their order, float64."""
    columns = {
        column: (table[name] == column.partition("=")[2]).astype("float64")
        for name, group in groups.items()
        for column in group
    }
    return pd.DataFrame(columns, index=table.index)
