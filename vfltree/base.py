"""What every estimator does around its protocol: blocks of X, one per party, targets, and seeds."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, validate_data

from vfldata import column_positions, columns_by_party

from .blocks import Block, blocks_from_mapping, check_categories, check_kinds, match_columns
from .categories import Categories
from .coding import coded_matrix, columns_there

LARGEST_TARGET = 1e150  # its square is a double, and so are sums of squares


class PartitionedEstimator(BaseEstimator):
    """An estimator whose columns belong to parties; `partition` is one of its parameters."""

    partition: Mapping[str, Any] | None
    categorical_features: Any = None  # a parameter of estimators that split categories
    _splits_categories = False
    _several_targets = False  # whether y may have several columns
    n_features_in_: int
    # Party -> its columns of categories, where it has any.
    _categorical: Mapping[str, list[int]] = MappingProxyType({})
    _columns: dict[str, np.ndarray] | None  # party -> columns of X; None where it was given as blocks
    _accept_sparse: bool = False  # SciPy matrices, kept as CSR

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _training_blocks(self, X: Any, y: Any) -> tuple[dict[str, Block], Any]:
        """One block per party, and the attributes scikit-learn expects of an estimator that has seen X."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        blocks, y = self._blocks_given(X, y) if _is_blocks(X) else self._blocks_cut(X, y)
        self.parties_ = tuple(blocks)
        self.n_features_in_per_party_ = {party: block.n_features for party, block in blocks.items()}
        self._names = {party: block.names for party, block in blocks.items()}
        self._categorical = {party: list(block.categories.lists) for party, block in blocks.items()}
        for party in self.parties_[1:]:
            if not blocks[party].n_features:
                raise ValueError(f"party {party!r} has no features: a passive party needs one at least")
        for block in blocks.values():
            self._check_categorical(block)
        return blocks, y

    def _check_categorical(self, block: Block) -> None:
        if block.categories.lists and not self._splits_categories:
            column = block.column_name(min(block.categories.lists))
            raise TypeError(
                f"column {column} of party {block.party!r} is categorical; encode it (one-hot, say) before training"
            )
        check_categories(block)

    def _blocks_given(self, X: Mapping[str, Any], y: Any) -> tuple[dict[str, Block], Any]:
        """X is a dict of blocks; `partition` may give their order."""
        if self.partition is not None and set(self.partition) != set(X):
            raise ValueError(f"partition names parties {list(self.partition)}, X has {list(X)}")
        named = self.categorical_features
        if named is not None and not (isinstance(named, Mapping) and set(named) <= set(X)):
            raise ValueError(
                f"X is a dict of blocks: categorical_features must be a dict from some of {list(X)} to columns, "
                f"got {named!r}"
            )
        blocks = blocks_from_mapping(
            {party: X[party] for party in self.partition or X},
            n_rows=_num_samples(y),
            categorical=named,
            accept_sparse=self._accept_sparse,
        )
        _check_label_order(y, next(iter(blocks.values())))
        self._columns = None
        self.n_features_in_ = sum(block.n_features for block in blocks.values())
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return blocks, y

    def _blocks_cut(self, X: Any, y: Any) -> tuple[dict[str, Block], Any]:
        """X holds all columns; `partition` says whose they are."""
        named = self.categorical_features
        X, categories = coded_matrix(X, () if named is None else named)
        X, y = validate_data(self, X, y, y_numeric=False, multi_output=True, **self._checks())
        names = getattr(self, "feature_names_in_", None)
        self._columns = columns_by_party(self.partition, X.shape[1], names)
        if isinstance(named, Mapping):
            self._check_owners(named, names)
        return self._cut(X, categories), y

    def _checks(self) -> dict[str, Any]:
        """How scikit-learn checks X."""
        sparse = "csr" if self._accept_sparse else False
        return {"dtype": np.float64, "ensure_all_finite": False, "accept_sparse": sparse}

    def _check_owners(self, named: Mapping[str, Any], names: Any) -> None:
        """A party names categorical columns of its own only."""
        assert self._columns is not None
        if unknown := set(named) - set(self._columns):
            raise ValueError(
                f"categorical_features names parties {sorted(unknown)}; there are {list(self._columns)}"
            )
        for party, wanted in named.items():
            columns = column_positions(wanted, self.n_features_in_, names, owner=f"party {party!r}")
            foreign = sorted(set(columns.tolist()) - set(self._columns[party].tolist()))
            if foreign:
                raise ValueError(f"party {party!r}, categorical_features: columns {foreign} belong to others")

    def _cut(self, X: np.ndarray, categories: Categories | None = None) -> dict[str, Block]:
        assert self._columns is not None
        categories = Categories.none() if categories is None else categories
        names = getattr(self, "feature_names_in_", None)
        return {
            party: Block(
                party,
                X[:, columns],
                None if names is None else tuple(names[columns]),
                categories=categories.take(columns.tolist()),
            )
            for party, columns in self._columns.items()
        }

    def _prediction_blocks(self, X: Any) -> dict[str, Block]:
        """One block per party that is there, columns as in training."""
        if not _is_blocks(X):
            if self._columns is None:
                raise ValueError(
                    f"this model was trained on a dict of blocks; pass a dict with {list(self.parties_)}"
                )
            blocks = self._cut(*self._coded_like_training(X))
            for block in blocks.values():
                check_kinds(block, self._categorical.get(block.party, ()))
            return blocks
        unknown = [party for party in X if party not in self.parties_]
        if unknown:
            raise ValueError(f"unknown parties {unknown}; the model has {list(self.parties_)}")
        present = {party: X[party] for party in self.parties_ if X.get(party) is not None}
        for party in self.parties_:
            self._check_present(party, present)
        n_rows = _num_samples(next(iter(present.values())))
        if self.parties_[0] not in present:
            present = {self.parties_[0]: None, **present}
        categorical = {
            party: columns_there(data, self._categorical.get(party, []), self._names[party])
            for party, data in present.items()
        }
        blocks = blocks_from_mapping(
            present, n_rows=n_rows, least=1, categorical=categorical, accept_sparse=self._accept_sparse
        )
        matched = {
            party: match_columns(block, self._names[party], self.n_features_in_per_party_[party])
            if self.n_features_in_per_party_[party] or block.n_features
            else block
            for party, block in blocks.items()
        }
        for block in matched.values():
            check_kinds(block, self._categorical.get(block.party, ()))
        return matched

    def _coded_like_training(self, X: Any) -> tuple[np.ndarray, Categories]:
        """All columns in one: float64 with codes in the columns that held categories in training."""
        assert self._columns is not None
        columns = [int(self._columns[party][j]) for party, own in self._categorical.items() for j in own]
        there = columns_there(X, columns, getattr(self, "feature_names_in_", None))
        X, categories = coded_matrix(X, there)
        return validate_data(self, X, reset=False, **self._checks()), categories

    def _splits_owned(self, number: int) -> int:
        """How often the model asks the party of this number."""
        raise NotImplementedError

    def _check_present(self, party: str, present: Mapping[str, Any]) -> None:
        """A party that owns no split may stay away."""
        if party in present or not self.n_features_in_per_party_[party]:
            return
        number = self.parties_.index(party)
        n_splits = self._splits_owned(number)
        if n_splits or number == 0:
            raise ValueError(
                f"party {number} ({party}) is needed: its features are used in {n_splits} splits"
            )


def _is_blocks(X: Any) -> bool:
    """One block per party? Some sparse matrices are dicts too; scikit-learn's check refuses them in its own words."""
    return isinstance(X, Mapping) and not hasattr(X, "tocsr")


def party_seeds(random_state: Any, n: int) -> list[int]:
    """One seed a party; from the system when no random_state is given."""
    if random_state is None:
        return [secrets.randbits(31) for _ in range(n)]
    if isinstance(random_state, np.random.Generator):
        return random_state.integers(1 << 31, size=n).tolist()
    return check_random_state(random_state).randint(1 << 31, size=n, dtype=np.int64).tolist()


def check_targets(y: Any, n_rows: int, several: bool = False) -> np.ndarray:
    """y in one dimension, as long as the blocks, without missing values.

    several : a matrix of two columns or more stays one, (n_rows, n_targets).
    """
    if isinstance(y, pd.Series | pd.DataFrame):
        y = y.to_numpy()
    if several and np.ndim(y) == 2 and np.shape(y)[1] > 1:
        y = np.asarray(y)
    else:
        y = column_or_1d(y, warn=True)
    if len(y) != n_rows:
        raise ValueError(f"y has {len(y)} labels, the parties have {n_rows} rows")
    if pd.isna(y).any():
        raise ValueError(f"y contains {int(pd.isna(y).sum())} missing values (NaN)")
    return y


def found_classes(y: np.ndarray) -> np.ndarray:
    """The labels that y holds, sorted; ValueError where they are no classes, or fewer than two."""
    check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError(f"y holds 1 class ({classes[0]}); two at least are needed")
    return np.asarray(classes)


def finite_targets(y: np.ndarray) -> np.ndarray:
    """Values to predict in float64, of y's shape; ValueError where one is none, infinite or too large to be squared."""
    try:
        targets = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y holds values that are not numbers: {error}; classes are for a classifier"
        ) from error
    if not np.isfinite(targets).all():
        raise ValueError("y contains infinity or NaN")
    if (largest := np.abs(targets).max()) > LARGEST_TARGET:
        raise ValueError(
            f"y holds values up to {largest:g}, their squared errors overflow beyond {LARGEST_TARGET:g}: scale y"
        )
    return targets


def _check_label_order(y: Any, active: Block) -> None:
    """Labels with an index of the same IDs in another order would be paired with the wrong rows."""
    if isinstance(y, pd.Series | pd.DataFrame) and active.ids is not None and len(y) == active.n_rows:
        index = y.index.to_numpy()
        if not np.array_equal(index, active.ids) and set(index) == set(active.ids):
            raise ValueError(
                f"y holds the row IDs of party {active.party!r} in another order; y.loc[X.index] aligns it"
            )
