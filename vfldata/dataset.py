"""A data set whose features belong to several parties, already split into training and test samples."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from vfldata.blocks import check_blocks, check_buckets, check_graphs
from vfldata.partition import columns_by_party

Part = Literal["train", "test"]
Task = Literal["binary", "multiclass", "regression"]
UNLABELLED = -1  # the label of a sample that takes no part in loss or score


@dataclass(frozen=True, eq=False)
class VerticalDataset:
    """What the loaders return: a table, or one block per party where a table would not do.

    `X_train` and `X_test` come in the two forms that estimators take. A table is one DataFrame of all columns of all
    parties. Images, texts and hashed categories are a dict from party to block; `vfldata.blocks` lists the kinds.

    Attributes
    ----------
    name : str
    X_train, X_test : DataFrame, shape (n_samples, n_features), float64 unless the loader says otherwise
        All columns of all parties, in party order. The index is the sample ID.
        Or a dict from party to block (float32 or int64 array, or CSR array of float32), a row per sample.
    y_train, y_test : Series of int64 (class numbers) or float64 (regression)
        Same index as the frames; same order as the rows of blocks. Only the active party knows them. Class -1 says
        "not labelled": the sample is there, but takes no part in loss or score.
    partition : dict from party name to list of names
        The first party is the active one. Names of columns (ready for the `partition` parameter of every estimator), or
        of what runs along axis 1 of the party's block: features, words, channels.
    task : "binary", "multiclass" or "regression"
    class_names : tuple of str
        ``class_names[k]`` is what class k is called; empty for regression.
    one_hot_groups : tuple of tuples of column names
        Columns that were one attribute before; a group never cuts across parties.
    source : str
        Where the data came from, in words.
    graphs : dict from party name to CSR array of float32, shape (n_samples, n_samples)
        Edges that each party knows between the samples, as a normalised adjacency with self-loops. Training and test
        blocks then hold the same samples, the labels are -1 where the other part has them. Empty without a graph.
    n_buckets : dict from party name to int
        For every party with hashed categories (an int64 block): how many buckets a column has.
    """

    name: str
    X_train: Any
    X_test: Any
    y_train: pd.Series
    y_test: pd.Series
    partition: dict[str, list[str]]
    task: Task
    class_names: tuple[str, ...] = ()
    one_hot_groups: tuple[tuple[str, ...], ...] = ()
    source: str = ""
    graphs: dict[str, Any] = field(default_factory=dict)
    n_buckets: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.task not in get_args(Task):
            raise ValueError(f"{self.name}: task is one of {', '.join(get_args(Task))}, got {self.task!r}")
        if self.is_table:
            self._check_table()
        else:
            check_blocks(self.name, self.X_train, self.X_test, self.partition)
            check_buckets(self.name, self.n_buckets, (self.X_train, self.X_test))
        self._check_labels()
        self._check_groups()
        if self.graphs:
            for n_samples in (len(self.y_train), len(self.y_test)):
                check_graphs(self.name, self.graphs, n_samples, self.parties)

    @property
    def is_table(self) -> bool:
        """Whether `X_train` and `X_test` are frames."""
        return isinstance(self.X_train, pd.DataFrame)

    @property
    def parties(self) -> tuple[str, ...]:
        """All parties, the active one first."""
        return tuple(self.partition)

    @property
    def active_party(self) -> str:
        """The party that holds the label."""
        return next(iter(self.partition))

    @property
    def passive_parties(self) -> tuple[str, ...]:
        """The parties that hold features only."""
        return tuple(self.partition)[1:]

    def blocks(self, part: Part) -> dict[str, Any]:
        """What every party holds of the "train" or "test" samples, in party order.

        Of a table: the party's own columns, as a frame of its own. Else its block as it is, not copied: do not write
        into it.
        """
        if part not in ("train", "test"):
            raise ValueError(f'part is "train" or "test", got {part!r}')
        X = self.X_train if part == "train" else self.X_test
        if self.is_table:
            return {party: X[columns].copy() for party, columns in self.partition.items()}
        return {party: X[party] for party in self.partition}

    def __repr__(self) -> str:
        rows = f"{len(self.y_train):,} + {len(self.y_test):,} rows"
        if self.is_table:
            owned = ", ".join(f"{party}: {len(columns)}" for party, columns in self.partition.items())
            return f"VerticalDataset({self.name}, {rows}, columns {{{owned}}}, {self.task})"
        forms = {party: "x".join(map(str, self.X_train[party].shape[1:])) for party in self.partition}
        owned = ", ".join(f"{party}: {form}" for party, form in forms.items())
        return f"VerticalDataset({self.name}, {rows}, blocks {{{owned}}}, {self.task})"

    def _check_table(self) -> None:
        columns_by_party(self.partition, feature_names=list(self.X_train.columns))
        if not isinstance(self.X_test, pd.DataFrame) or list(self.X_test.columns) != list(
            self.X_train.columns
        ):
            raise ValueError(
                f"{self.name}: training and test rows must have the same columns in the same order"
            )
        if self.n_buckets:
            raise ValueError(f"{self.name}: n_buckets is for int64 blocks, and this is a table")

    def _check_labels(self) -> None:
        for part in ("train", "test"):
            X, y = getattr(self, f"X_{part}"), getattr(self, f"y_{part}")
            if not isinstance(y, pd.Series):
                raise TypeError(
                    f"{self.name}: y_{part} is a Series (pandas.Series(y, index=...)), got {type(y).__name__}"
                )
            if self.is_table and not X.index.equals(y.index):
                raise ValueError(
                    f"{self.name}: {len(X)} {part} rows and {len(y)} labels must have the same index"
                )
            n_rows = len(X) if self.is_table else X[self.active_party].shape[0]
            if n_rows != len(y):
                raise ValueError(f"{self.name}: {n_rows} {part} samples and {len(y)} labels")
            if self.task != "regression":
                self._check_classes(part, y)

    def _check_classes(self, part: str, y: pd.Series) -> None:
        if not pd.api.types.is_integer_dtype(y.dtype):
            raise TypeError(f"{self.name}: labels of classes are integers, got {y.dtype} in y_{part}")
        highest = len(self.class_names) - 1 if self.class_names else np.inf
        if len(y) and not (y.min() >= UNLABELLED and y.max() <= highest):
            raise ValueError(
                f"{self.name}: y_{part} holds {y.min()}..{y.max()}, expected {UNLABELLED} (not labelled) or a class "
                f"0..{highest}"
            )

    def _check_groups(self) -> None:
        owner = {column: party for party, columns in self.partition.items() for column in columns}
        for group in self.one_hot_groups:
            unknown = [column for column in group if column not in owner]
            if unknown:
                raise ValueError(
                    f"{self.name}: one-hot group {group[0]!r}.. has an unknown column {unknown[0]!r}"
                )
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


def stratified_rows(labels: Any, n_test: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """As `split_rows`, with every class in both parts in proportion; a class needs two members for that."""
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(
        np.arange(len(labels)), test_size=n_test, stratify=labels, random_state=seed
    )
    return np.sort(train), np.sort(test)


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
    stratified: bool = False,
) -> VerticalDataset:
    """Put the columns in party order, split the rows, and wrap both up."""
    X = X[[column for columns in partition.values() for column in columns]]
    rows = (
        stratified_rows(y, n_test, random_state) if stratified else split_rows(len(X), n_test, random_state)
    )
    train, test = rows
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
