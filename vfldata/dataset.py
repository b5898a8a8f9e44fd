"""A data set whose columns belong to several parties, already split into training and test rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from vfldata.partition import columns_by_party

Part = Literal["train", "test"]
Task = Literal["binary", "multiclass", "regression"]


@dataclass(frozen=True, eq=False)
class VerticalDataset:
    """What the loaders return.

    Attributes
    ----------
    name : str
    X_train, X_test : DataFrame, shape (n_samples, n_features), float64 unless the loader says otherwise
        All columns of all parties, in party order. The index is the sample ID.
    y_train, y_test : Series of int64 (class numbers) or float64 (regression)
        Same index as the frames. Only the active party knows them.
    partition : dict from party name to list of column names
        The first party is the active one. Ready for the `partition` parameter of every estimator.
    task : "binary", "multiclass" or "regression"
    class_names : tuple of str
        ``class_names[k]`` is what class k is called; empty for regression.
    one_hot_groups : tuple of tuples of column names
        Columns that were one attribute before; a group never cuts across parties.
    source : str
        Where the data came from, in words.
    """

    name: str
    X_train: pd.DataFrame
    X_test: pd.DataFrame
    y_train: pd.Series
    y_test: pd.Series
    partition: dict[str, list[str]]
    task: Task
    class_names: tuple[str, ...] = ()
    one_hot_groups: tuple[tuple[str, ...], ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        columns_by_party(self.partition, feature_names=list(self.X_train.columns))
        if list(self.X_test.columns) != list(self.X_train.columns):
            raise ValueError(
                f"{self.name}: training and test rows must have the same columns in the same order"
            )
        for part in ("train", "test"):
            X, y = getattr(self, f"X_{part}"), getattr(self, f"y_{part}")
            if not X.index.equals(y.index):
                raise ValueError(
                    f"{self.name}: {len(X)} {part} rows and {len(y)} labels must have the same index"
                )
        self._check_groups()

    @property
    def active_party(self) -> str:
        """The party that holds the label."""
        return next(iter(self.partition))

    @property
    def passive_parties(self) -> tuple[str, ...]:
        """The parties that hold columns only."""
        return tuple(self.partition)[1:]

    def blocks(self, part: Part) -> dict[str, pd.DataFrame]:
        """What every party holds: its own columns of the "train" or "test" rows, as frames of its own."""
        if part not in ("train", "test"):
            raise ValueError(f'part is "train" or "test", got {part!r}')
        X = self.X_train if part == "train" else self.X_test
        return {party: X[columns].copy() for party, columns in self.partition.items()}

    def __repr__(self) -> str:
        owned = ", ".join(f"{party}: {len(columns)}" for party, columns in self.partition.items())
        rows = f"{len(self.X_train):,} + {len(self.X_test):,} rows"
        return f"VerticalDataset({self.name}, {rows}, columns {{{owned}}}, {self.task})"

    def _check_groups(self) -> None:
        owner = {column: party for party, columns in self.partition.items() for column in columns}
        for group in self.one_hot_groups:
            owners = sorted({owner[column] for column in group})
            if len(owners) > 1:
                raise ValueError(f"{self.name}: one-hot group {group[0]!r}.. is cut across parties {owners}")


def split_rows(n_samples: int, n_test: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A random split: sorted row numbers of the training and of the test part.

    Not stratified: a class with two members (Nursery has one) cannot be spread over parts in proportion. The
    legacy generator is used because NumPy promises that its stream never changes, so a figure can be checked
    years later.
    """
    order = np.random.RandomState(seed).permutation(n_samples)
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def from_table(
    name: str,
    X: pd.DataFrame,
    y: pd.Series,
    partition: Mapping[str, list[str]],
    *,
    n_test: int,
    random_state: int,
    task: Task,
    class_names: tuple[str, ...],
    one_hot_groups: tuple[tuple[str, ...], ...] = (),
    source: str,
) -> VerticalDataset:
    """Put the columns in party order, split the rows, and wrap both up."""
    X = X[[column for columns in partition.values() for column in columns]]
    train, test = split_rows(len(X), n_test, random_state)
    return VerticalDataset(
        name,
        X.iloc[train],
        X.iloc[test],
        y.iloc[train],
        y.iloc[test],
        {party: list(columns) for party, columns in partition.items()},
        task,
        class_names,
        one_hot_groups,
        source,
    )
