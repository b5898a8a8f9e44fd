"""New data sets from old ones: scaled, dealt to other parties, or with a part of the training rows held out.

Scaling is fitted on the training part alone, so nothing of the test part is in it.
"""

import dataclasses
import operator
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from vfldata.dataset import VerticalDataset, split_rows
from vfldata.partition import check_parties, columns_by_party

Limits = tuple[float, float] | None
# Shift and scale of every name along axis 1, from the training values of shape (n_samples, n_names, ...).
Fit = Callable[[NDArray[Any]], tuple[NDArray[np.float64], NDArray[np.float64]]]


def with_partition(dataset: VerticalDataset, partition: Mapping[str, Sequence[str]]) -> VerticalDataset:
    """The same table with other parties or other owners of the columns; the first party is active.

    Every column has exactly one owner, and a one-hot group is not cut; ValueError says which is.
    """
    if not dataset.is_table:
        raise TypeError(f"{dataset.name} holds a block per party, no table whose columns could change hands")
    check_parties(partition)
    names = list(dataset.X_train.columns)
    positions = columns_by_party(partition, feature_names=names)
    columns = {party: [names[i] for i in owned] for party, owned in positions.items()}
    order = [column for owned in columns.values() for column in owned]
    return dataclasses.replace(
        dataset, X_train=dataset.X_train[order], X_test=dataset.X_test[order], partition=columns
    )


def repartition(
    dataset: VerticalDataset,
    n_parties: int | None = None,
    *,
    shares: Sequence[float] | Mapping[str, float] | None = None,
    random_state: int | None = None,
) -> VerticalDataset:
    """The same table dealt to another number of parties, in equal or in unequal shares of the columns.

    Parameters
    ----------
    n_parties : int
        So many equal shares; or else `shares`.
    shares : sequence of numbers, or dict from party name to number
        How large the parties' parts are, the active one first; only their proportions matter. Parties without names are
        called "active", "passive_1", "passive_2", ...
    random_state : int, optional
        Deal the columns in a random order; None: in the order of the table, so that neighbours stay together.

    One-hot groups are dealt whole, hence shares are met as nearly as groups allow. Every party gets something.
    """
    wanted = _named_shares(dataset.name, n_parties, shares)
    units = _units(dataset)
    if len(units) < len(wanted):
        raise ValueError(
            f"{dataset.name}: {len(units)} columns or one-hot groups cannot be dealt to {len(wanted)} parties"
        )
    if random_state is not None:
        units = [units[i] for i in np.random.RandomState(random_state).permutation(len(units))]
    # cuts[k] units are dealt when party k has got its own: where the running count of columns is nearest to its share.
    ends = np.cumsum([len(unit) for unit in units])
    targets = np.cumsum(list(wanted.values())) / sum(wanted.values()) * ends[-1]
    cuts = [0]
    for k, target in enumerate(targets):
        nearest = int(np.argmin(np.abs(ends - target))) + 1
        cuts.append(min(max(nearest, cuts[-1] + 1), len(units) - (len(wanted) - 1 - k)))
    cuts[-1] = len(units)
    dealt = {
        party: [column for unit in units[start:end] for column in unit]
        for party, start, end in zip(wanted, cuts[:-1], cuts[1:], strict=True)
    }
    return with_partition(dataset, dealt)


def held_out(dataset: VerticalDataset, n_samples: int, *, random_state: int = 0) -> VerticalDataset:
    """The training part alone, `n_samples` of it, drawn at random, as the new test part: for choosing parameters."""
    n_train = len(dataset.y_train)
    if not 0 < n_samples < n_train:
        raise ValueError(
            f"{dataset.name}: 1 to {n_train - 1} training samples can be held out, got {n_samples}"
        )
    if dataset.graphs:
        raise TypeError(
            f"{dataset.name}: samples of a graph cannot be held out, they stay in it; use labels of -1"
        )
    rows = split_rows(n_train, n_samples, random_state)
    if dataset.is_table:
        parts = [dataset.X_train.iloc[chosen] for chosen in rows]
    else:
        parts = [{party: block[chosen] for party, block in dataset.X_train.items()} for chosen in rows]
    labels = [dataset.y_train.iloc[chosen] for chosen in rows]
    return dataclasses.replace(
        dataset, X_train=parts[0], X_test=parts[1], y_train=labels[0], y_test=labels[1]
    )


def _named_shares(
    name: str, n_parties: int | None, shares: Sequence[float] | Mapping[str, float] | None
) -> dict[str, float]:
    if (n_parties is None) == (shares is None):
        raise TypeError(f"{name}: give n_parties or shares, one of the two")
    if isinstance(shares, Mapping):
        wanted = dict(shares)
    else:
        sizes = list(shares) if shares is not None else [1.0] * operator.index(n_parties or 0)
        parties = ["active", *(f"passive_{k}" for k in range(1, len(sizes)))]
        wanted = dict(zip(parties, sizes, strict=False))
    positive = [isinstance(share, Real) and np.isfinite(share) and share > 0 for share in wanted.values()]
    if len(wanted) < 2 or not all(positive):
        raise ValueError(f"{name}: two or more parties with shares above 0, got {wanted}")
    return wanted


def _units(dataset: VerticalDataset) -> list[tuple[str, ...]]:
    """What is dealt as one: one-hot groups and single columns, in the order of the table."""
    if not dataset.is_table:
        raise TypeError(f"{dataset.name} holds a block per party, no table whose columns could be dealt")
    group_of = {column: group for group in dataset.one_hot_groups for column in group}
    units = [group_of.get(column, (column,)) for column in dataset.X_train.columns]
    return list(dict.fromkeys(units))


def standardised(dataset: VerticalDataset) -> VerticalDataset:
    """Mean 0 and standard deviation 1 over the training samples, for every column (of images: every channel).

    One-hot columns and hashed categories stay as they are. A column that is constant in training becomes 0 there.
    Missing values (NaN) stay missing. Raises TypeError for text columns and sparse blocks.
    """
    return _scaled(dataset, _mean_and_deviation)


def scaled_to_unit(dataset: VerticalDataset, *, clip: bool = False) -> VerticalDataset:
    """The training samples between 0 and 1, for every column (of images: every channel).

    Otherwise as `standardised`. Test values can lie outside where they exceed those of training; `clip` cuts them.
    """
    return _scaled(dataset, _low_and_span, (0.0, 1.0) if clip else None)


def _mean_and_deviation(values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    axes = (0, *range(2, values.ndim))
    return np.nanmean(values, axes, dtype=np.float64), np.nanstd(values, axes, dtype=np.float64)


def _low_and_span(values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    axes = (0, *range(2, values.ndim))
    low, high = np.nanmin(values, axes), np.nanmax(values, axes)
    return low.astype(np.float64), high.astype(np.float64) - low


def _scaled(dataset: VerticalDataset, fit: Fit, limits: Limits = None) -> VerticalDataset:
    if dataset.is_table:
        X_train, X_test = _scaled_frames(dataset, fit, limits)
        return dataclasses.replace(dataset, X_train=X_train, X_test=X_test)
    train, test = dict(dataset.X_train), dict(dataset.X_test)
    for party in dataset.partition:
        if party not in dataset.n_buckets:
            where = f"{dataset.name}: the block of party {party!r}"
            train[party], test[party] = _scaled_blocks(where, train[party], test[party], fit, limits)
    return dataclasses.replace(dataset, X_train=train, X_test=test)


def _scaled_frames(dataset: VerticalDataset, fit: Fit, limits: Limits) -> tuple[pd.DataFrame, pd.DataFrame]:
    one_hot = {column for group in dataset.one_hot_groups for column in group}
    columns = [column for column in dataset.X_train.columns if column not in one_hot]
    for column in columns:
        if not pd.api.types.is_numeric_dtype(dataset.X_train[column].dtype):
            raise TypeError(
                f"{dataset.name}: column {column!r} holds {dataset.X_train[column].dtype}, no numbers; "
                "one-hot columns are what scaling leaves alone"
            )
    train, test = (X[columns].to_numpy(np.float64) for X in (dataset.X_train, dataset.X_test))
    scaled = _scaled_blocks(dataset.name, train, test, fit, limits)
    frames = []
    for X, values in zip((dataset.X_train, dataset.X_test), scaled, strict=True):
        new = pd.DataFrame(values, index=X.index, columns=columns)
        frames.append(pd.concat([new, X[[c for c in X.columns if c in one_hot]]], axis=1)[list(X.columns)])
    return frames[0], frames[1]


def _scaled_blocks(
    where: str, train: Any, test: Any, fit: Fit, limits: Limits
) -> tuple[NDArray[Any], NDArray[Any]]:
    if sparse.issparse(train):
        raise TypeError(f"{where} is sparse, and shifting its zeros would fill it; take it as it is")
    shift, scale = fit(train)
    low, span = _low_and_span(train)
    constant = span == 0  # where a computed deviation may be a rounding error instead of 0
    shift, scale = np.where(constant, low, shift), np.where(constant, 1.0, scale)
    shape = (1, -1, *(1,) * (train.ndim - 2))
    scaled = [
        (block - shift.reshape(shape).astype(block.dtype)) / scale.reshape(shape).astype(block.dtype)
        for block in (train, test)
    ]
    if limits is not None:
        scaled = [np.clip(block, *limits) for block in scaled]
    return scaled[0], scaled[1]
