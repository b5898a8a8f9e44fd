"""The categories of one party's columns: which values they take, and the small numbers (codes) that stand for them.

A code is the place of a value in its column's list, so it means nothing without the list, and a list never leaves the
party whose column it is. Another table of the same columns may number its values otherwise: `recode` matches values,
never codes. Values are kept as text that says whether they were text or numbers ("sred", "n7", "n0.5"), so 7 and 7.0
are one category, and 7 and "7" are two.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_CATEGORIES = 255  # bins of a categorical column, missing values not counted
TEXT, NUMBER = "s", "n"  # first letter of a key


def category_key(value: Any) -> str:
    """The value as text, told apart by kind; TypeError where it is neither text nor a number."""
    if isinstance(value, str):
        value.encode()  # UnicodeEncodeError is a ValueError: half a character cannot be kept
        return TEXT + value
    if isinstance(value, (bool, np.bool_, numbers.Integral)):
        return f"{NUMBER}{int(value)}"
    if isinstance(value, numbers.Real):
        number = float(value)
        whole = math.isfinite(number) and number.is_integer()
        return f"{NUMBER}{int(number) if whole else repr(number)}"
    raise TypeError(f"a category must be text or a number, got {value!r} of type {type(value).__name__}")


def category_value(key: str) -> str | int | float:
    """The value a key stands for; booleans have become 0 and 1."""
    text = key[1:]
    if key.startswith(TEXT):
        return text
    return int(text) if text.lstrip("-").isdigit() else float(text)


def key_order(key: str) -> tuple[bool, float, str]:
    """To sort by: numbers first, ascending, then text."""
    return (True, 0.0, key) if key.startswith(TEXT) else (False, float(category_value(key)), key)


@dataclass(frozen=True)
class Categories:
    """Lists of categories, by column.

    Attributes
    ----------
    lists : dict from column number to keys
        Columns ascending; a column that is not there holds numbers.
    """

    lists: Mapping[int, tuple[str, ...]]

    @classmethod
    def none(cls) -> Categories:
        """All columns hold numbers."""
        return cls({})

    @classmethod
    def from_arrays(cls, columns: Sequence[int], sizes: Sequence[int], keys: Sequence[str]) -> Categories:
        """The inverse of `to_arrays`; ValueError where lengths contradict each other."""
        bounds = np.cumsum([0, *sizes]).tolist()
        if len(columns) != len(sizes) or bounds[-1] != len(keys) or min(sizes, default=0) < 0:
            raise ValueError(
                f"{len(keys)} categories do not fall into {len(columns)} columns of {list(sizes)}"
            )
        parts = (tuple(keys[start:stop]) for start, stop in pairwise(bounds))
        return cls(dict(zip(map(int, columns), parts, strict=True)))

    def to_arrays(self) -> tuple[NDArray[np.int32], NDArray[np.int32], tuple[str, ...]]:
        """Columns, sizes of their lists, and all keys one list after another."""
        columns = np.array(list(self.lists), dtype=np.int32)
        sizes = np.array([len(keys) for keys in self.lists.values()], dtype=np.int32)
        return columns, sizes, tuple(key for keys in self.lists.values() for key in keys)

    def sizes(self, n_features: int) -> NDArray[np.int64]:
        """Categories per column, int64 (n_features,), 0 for columns of numbers."""
        sizes = np.zeros(n_features, dtype=np.int64)
        for column, keys in self.lists.items():
            sizes[column] = len(keys)
        return sizes

    def take(self, columns: Sequence[int]) -> Categories:
        """Of these columns, numbered anew in this order."""
        return Categories({new: self.lists[old] for new, old in enumerate(columns) if old in self.lists})

    def used(self, features: NDArray[np.float64]) -> tuple[Categories, NDArray[np.float64]]:
        """Lists without categories that no row has, and the rows in codes of these; a column of none keeps its first.

        ValueError where a column has more than 255 categories.
        """
        kept: dict[int, tuple[str, ...]] = {}
        for column, keys in self.lists.items():
            codes = features[:, column]
            present = np.unique(codes[~np.isnan(codes)]).astype(np.int64).tolist()
            if len(present) > MAX_CATEGORIES:
                raise ValueError(
                    f"column {column} has {len(present)} categories, at most {MAX_CATEGORIES} are possible"
                )
            kept[column] = tuple(keys[code] for code in present) or keys[:1]
        shorter = Categories(kept)
        return shorter, shorter.recode(features, self)

    def recode(self, features: NDArray[np.float64], given: Categories) -> NDArray[np.float64]:
        """Rows whose codes are those of `given`, in codes of these lists; a value that is in no list becomes missing.

        features : float64 (n_rows, n_features). Returns a copy where anything changes.
        """
        changes = {column: keys for column, keys in self.lists.items() if given.lists[column] != keys}
        if not changes:
            return features
        recoded = features.copy()
        for column, keys in changes.items():
            places = {key: float(place) for place, key in enumerate(keys)}
            translation = np.array([places.get(key, np.nan) for key in given.lists[column]] + [np.nan])
            codes = features[:, column]
            recoded[:, column] = translation[np.where(np.isnan(codes), -1, codes).astype(np.int64)]
        return recoded
