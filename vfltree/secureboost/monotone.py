"""Monotone constraints as a user writes them, turned into one sign per column of each party.

What users write depends on what they pass as X:

    one matrix or frame      {"age": 1, "debt": -1}, or a sequence with a sign for every column of X; column numbers
                             in place of names where X has none
    also, and for a dict     {"bank": {"age": 1}, "shop": [0, -1, 0]}: per party, by name or for every column;
    of blocks                names alone where no two parties share them, or a sequence over all parties' columns
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..blocks import Block
from ..losses import LeafLoss
from .objectives import make_loss
from .settings import BoostSettings

Signs = NDArray[np.int8]


@dataclass(frozen=True)
class PartyColumns:
    """A party's columns: their names (None: it has none) and their places in X, numbered over all columns."""

    names: tuple[str, ...] | None
    places: tuple[int, ...]

    def name(self, i: int) -> str | int:
        """Of the i-th column; its number where it has none."""
        return i if self.names is None else self.names[i]


def constraint_signs(
    constraints: Any, parties: Mapping[str, PartyColumns], n_columns: int
) -> dict[str, Signs]:
    """One sign a column: int8 (n_features,) of each party; zeros where nothing is constrained.

    constraints : see above; None constrains nothing.  n_columns : of X, those that no party has included.

    Raises TypeError and ValueError naming party and column.
    """
    signs = {party: np.zeros(len(columns.places), dtype=np.int8) for party, columns in parties.items()}
    if constraints is None:
        return signs
    if isinstance(constraints, Mapping):
        per_party = [isinstance(value, Mapping) or _is_sequence(value) for value in constraints.values()]
        if any(per_party):
            if not all(per_party):
                raise TypeError("monotone_constraints mixes signs of columns with constraints of parties")
            _by_party(constraints, parties, signs)
        else:
            _by_column(constraints, parties, signs)
    elif _is_sequence(constraints):
        _all_columns(list(constraints), parties, signs, n_columns)
    else:
        raise TypeError(
            "monotone_constraints must be a dict of columns or parties, or a sequence with one sign a column, got "
            f"{constraints!r}"
        )
    return signs


def signs_of_blocks(model: Any, settings: BoostSettings, blocks: Mapping[str, Block]) -> dict[str, Signs]:
    """`monotone_constraints` of an estimator that has seen X, whose parties' blocks these are."""
    names = getattr(model, "feature_names_in_", None)
    columns, start = {}, 0
    for party, block in blocks.items():
        if model._columns is None:
            columns[party] = PartyColumns(block.names, tuple(range(start, start + block.n_features)))
            start += block.n_features
        else:
            own = model._columns[party].tolist()
            columns[party] = PartyColumns(None if names is None else tuple(names[own]), tuple(own))
    signs = constraint_signs(model.monotone_constraints, columns, model.n_features_in_)
    for party, block in blocks.items():
        for column in block.categories.lists:
            if signs[party][column]:
                raise ValueError(
                    f"monotone_constraints of column {columns[party].name(column)!r} of party {party!r}: "
                    "the column holds categories, which have no order"
                )
    if any(of.any() for of in signs.values()) and isinstance(make_loss(settings), LeafLoss):
        raise ValueError(
            f"monotone_constraints would not hold: {settings.objective} finds the values of leaves anew"
        )
    if any(of.any() for of in signs.values()) and settings.vector_leaves:
        raise ValueError(
            'monotone_constraints are for trees of one output, got multi_strategy="multi_output_tree"'
        )
    return signs


def _by_party(
    constraints: Mapping[Any, Any], parties: Mapping[str, PartyColumns], signs: dict[str, Signs]
) -> None:
    for party, own in constraints.items():
        if party not in parties:
            raise ValueError(f"monotone_constraints names party {party!r}; the parties are {list(parties)}")
        columns = parties[party]
        if not isinstance(own, Mapping):
            if len(own) != len(columns.places):
                raise ValueError(
                    f"monotone_constraints of party {party!r} has {len(own)} signs, the party has "
                    f"{len(columns.places)} columns"
                )
            own = dict(enumerate(own))
            signs[party][:] = [_sign(sign, party, columns.name(i)) for i, sign in own.items()]
            continue
        for name, sign in own.items():
            place = _place(columns, name, numbered=range(len(columns.places)))
            if place is None:
                raise ValueError(
                    f"monotone_constraints of party {party!r} names column {name!r}; the party has "
                    f"{_listed(columns)}"
                )
            signs[party][place] = _sign(sign, party, name)


def _by_column(
    constraints: Mapping[Any, Any], parties: Mapping[str, PartyColumns], signs: dict[str, Signs]
) -> None:
    for name, sign in constraints.items():
        owners = {
            party: place
            for party, columns in parties.items()
            if (place := _place(columns, name, columns.places)) is not None
        }
        if not owners:
            raise ValueError(
                f"monotone_constraints names column {name!r}, which no party has: "
                + "; ".join(f"party {party!r} has {_listed(columns)}" for party, columns in parties.items())
            )
        if len(owners) > 1:
            raise ValueError(
                f"monotone_constraints names column {name!r}, which parties {list(owners)} have: write "
                f"{{party: {{{name!r}: sign}}}}"
            )
        ((party, place),) = owners.items()
        signs[party][place] = _sign(sign, party, name)


def _all_columns(
    given: Sequence[Any], parties: Mapping[str, PartyColumns], signs: dict[str, Signs], n_columns: int
) -> None:
    if len(given) != n_columns:
        raise ValueError(f"monotone_constraints has {len(given)} signs, X has {n_columns} columns")
    for party, columns in parties.items():
        signs[party][:] = [
            _sign(given[place], party, columns.name(i)) for i, place in enumerate(columns.places)
        ]


def _place(columns: PartyColumns, name: Any, numbered: Sequence[int]) -> int | None:
    """Where the party has this column: by name, or by its number where columns have no names."""
    if columns.names is not None:
        return columns.names.index(name) if name in columns.names else None
    known = isinstance(name, numbers.Integral) and not isinstance(name, bool) and name in numbered
    return list(numbered).index(int(name)) if known else None


def _sign(value: Any, party: str, column: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real) or value not in (-1, 0, 1):
        raise ValueError(
            f"monotone_constraints of column {column!r} of party {party!r} must be -1, 0 or 1, got {value!r}"
        )
    return int(float(value))


def _listed(columns: PartyColumns) -> str:
    return str(list(columns.places if columns.names is None else columns.names))


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, (str, bytes))
