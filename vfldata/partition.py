"""Vertical partitions: which party owns which columns.

A partition is a dict from party name to columns; the first party is the active one, the label holder. Columns
may be written in every way pandas and NumPy users write them, and come out in one: an array of positions per
party.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

ACTIVE, PASSIVE = "active", "passive"  # the two parties when nobody names any
SHOWN = 6  # error messages list that many columns, then count the rest


def columns_by_party(
    partition: Mapping[str, Any] | None,
    n_features: int | None = None,
    feature_names: Sequence[Any] | None = None,
) -> dict[str, NDArray[np.int64]]:
    """Positions of the columns of every party, each column with exactly one owner.

    Parameters
    ----------
    partition : dict from party name to columns, or None
        The first party is the active one, and the only one that may own nothing. Columns are one of, or a
        list that mixes the first two: a name, a position (negative: from the end), a range, a slice, a
        boolean mask over all columns. The order given is kept; it decides which of two equally good columns
        wins a split. None: two parties, "active" with the first ``n_features // 2`` columns and "passive"
        with the others, so that a single column goes to the passive party.
    n_features : int, optional
        Number of columns of the data; may be left out where `feature_names` is given.
    feature_names : sequence, optional
        Column names. Names that are not text are not used: a number always means a position.

    Returns
    -------
    dict from party name to ndarray of int64
        Same parties, same order.

    Raises
    ------
    ValueError
        Naming party and columns: owned twice or by nobody, out of range, unknown, a mask of the wrong length,
        a passive party without columns, fewer than two parties.
    TypeError
        For anything that is no partition or no column.
    """
    names = _text_names(feature_names)
    n_features = _n_features(n_features, feature_names)
    if partition is None:
        half = n_features // 2
        return {ACTIVE: np.arange(half), PASSIVE: np.arange(half, n_features)}
    check_parties(partition)
    resolver = _Resolver(n_features, names)
    columns = {party: resolver.positions(f"party {party!r}", wanted) for party, wanted in partition.items()}
    _check_each_column_has_one_owner(columns, resolver)
    return columns


def column_positions(
    wanted: Any, n_features: int, feature_names: Sequence[Any] | None = None, *, owner: str
) -> NDArray[np.int64]:
    """Positions of columns written in any of the ways of `columns_by_party`, in the order given.

    owner : whose they are, first words of an error message.
    """
    return _Resolver(n_features, _text_names(feature_names)).positions(owner, wanted)


class _Resolver:
    """Turns what a person wrote into positions, and positions back into words for error messages."""

    def __init__(self, n_features: int, names: Sequence[str] | None) -> None:
        self.n_features = n_features
        self._names = names
        self._position = {name: i for i, name in enumerate(names or ())}

    def positions(self, owner: str, wanted: Any) -> NDArray[np.int64]:
        """All columns that `wanted` means, in the order given."""
        if isinstance(wanted, slice):
            return np.arange(self.n_features)[self._checked_slice(owner, wanted)]
        if _is_scalar(wanted):
            wanted = [wanted]
        elif not isinstance(wanted, Iterable) or isinstance(wanted, bytes | Mapping | Set):
            # A set has no order, and the order of columns decides ties.
            raise TypeError(
                f"{owner}: columns are a list of names or positions, a range, a slice or a mask, "
                f"got {type(wanted).__name__}"
            )
        items = list(wanted)
        if items and all(isinstance(item, bool | np.bool_) for item in items):
            return self._masked(owner, items)
        return np.array([self._position_of(owner, item) for item in items], dtype=np.int64)

    def words(self, positions: Iterable[int]) -> str:
        """Columns for an error message: 'age', 'income' (columns 3, 7). Many are counted, not listed."""
        wanted = [int(p) for p in positions]
        shown, more = wanted[:SHOWN], len(wanted) - SHOWN
        numbers = ", ".join(map(str, shown)) + (f" and {more} more" if more > 0 else "")
        numbers = ("columns " if len(wanted) > 1 else "column ") + numbers
        if self._names is None:
            return numbers
        return ", ".join(repr(self._names[p]) for p in shown) + f" ({numbers})"

    def _position_of(self, owner: str, item: Any) -> int:
        if isinstance(item, str):
            return self._position_of_name(owner, item)
        if isinstance(item, bool | np.bool_) or not isinstance(item, int | np.integer):
            raise TypeError(
                f"{owner}: a column is a name or a position, got {item!r} ({type(item).__name__})"
            )
        position = int(item)
        if not -self.n_features <= position < self.n_features:
            raise ValueError(f"{owner}: column {position} is out of range for {self.n_features} columns")
        return position % self.n_features

    def _position_of_name(self, owner: str, name: str) -> int:
        if self._names is None:
            raise ValueError(f"{owner}: column {name!r} is given by name, but the data has no column names")
        if name not in self._position:
            raise ValueError(f"{owner}: unknown column {name!r}; the data has {len(self._names)} other names")
        return self._position[name]

    def _masked(self, owner: str, mask: list[Any]) -> NDArray[np.int64]:
        if len(mask) != self.n_features:
            raise ValueError(
                f"{owner}: the boolean mask has {len(mask)} entries, the data has {self.n_features} columns"
            )
        return np.flatnonzero(np.array(mask, dtype=bool))

    def _checked_slice(self, owner: str, wanted: slice) -> slice:
        """NumPy clips a slice that reaches too far, which would hide a wrong column count."""
        for end in (wanted.start, wanted.stop, wanted.step):
            if end is not None and (isinstance(end, bool) or not isinstance(end, int | np.integer)):
                raise TypeError(f"{owner}: a slice of columns takes positions, got {end!r}")
        for end in (wanted.start, wanted.stop):
            if end is not None and not -self.n_features <= end <= self.n_features:
                raise ValueError(f"{owner}: slice end {end} is out of range for {self.n_features} columns")
        return wanted


def _is_scalar(wanted: Any) -> bool:
    return isinstance(wanted, str | int | np.integer) and not isinstance(wanted, bool | np.bool_)


def _text_names(feature_names: Sequence[Any] | None) -> list[str] | None:
    """The names, where every one of them is text (the rule of scikit-learn); duplicates are an error."""
    if feature_names is None:
        return None
    names = list(feature_names)
    if not all(isinstance(name, str) for name in names):
        return None
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"column names must differ; more than one column is called {twice[0]!r}")
    return names


def _n_features(n_features: int | None, feature_names: Sequence[Any] | None) -> int:
    if n_features is None:
        if feature_names is None:
            raise TypeError("columns_by_party needs n_features or feature_names")
        n_features = len(feature_names)
    elif feature_names is not None and len(feature_names) != n_features:
        raise ValueError(f"got {len(feature_names)} feature names for n_features={n_features}")
    if n_features < 1:
        raise ValueError(f"a vertical partition needs at least one column, got n_features={n_features}")
    return int(n_features)


def check_parties(partition: Any) -> None:
    """A dict of two or more parties with names."""
    if not isinstance(partition, Mapping):
        raise TypeError(f"partition is a dict from party name to columns, got {type(partition).__name__}")
    for party in partition:
        if not isinstance(party, str) or not party:
            raise TypeError(f"a party's name is text that is not empty, got {party!r}")
    if len(partition) < 2:
        raise ValueError(
            f"a vertical partition needs at least two parties, got {len(partition)}: {list(partition)}"
        )


def _check_each_column_has_one_owner(columns: dict[str, NDArray[np.int64]], resolver: _Resolver) -> None:
    owner: dict[int, str] = {}
    for party, positions in columns.items():
        for position in positions.tolist():
            if owner.get(position) == party:
                raise ValueError(f"party {party!r} lists {resolver.words([position])} twice")
            if position in owner:
                both = np.intersect1d(positions, columns[owner[position]])
                raise ValueError(
                    f"parties {owner[position]!r} and {party!r} both own {resolver.words(both)}; "
                    "every column has exactly one owner"
                )
            owner[position] = party
    for party in list(columns)[1:]:
        if columns[party].size == 0:
            raise ValueError(f"party {party!r} owns no column; only the active party, the first one, may")
    unowned = sorted(set(range(resolver.n_features)) - set(owner))
    if unowned:
        raise ValueError(f"no party owns {resolver.words(unowned)}; every column has exactly one owner")
