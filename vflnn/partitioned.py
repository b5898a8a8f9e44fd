"""What the estimators do with X and y: blocks, one per party, as at the first time; targets without gaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import column_or_1d
from sklearn.utils.validation import _num_samples, validate_data

from vfldata import columns_by_party

from .inputs import Block, blocks_from_mapping, check_label_order, like_training


class PartitionedEstimator(BaseEstimator):
    """An estimator whose columns belong to parties; `partition` is one of its parameters."""

    partition: Mapping[str, Any] | None
    parties_: tuple[str, ...]
    n_features_in_: int
    _columns: dict[str, np.ndarray] | None  # party -> columns of X; None where it was given as blocks

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _training_blocks(self, X: Any, y: Any) -> tuple[dict[str, Block], np.ndarray]:
        """One block per party, and the attributes scikit-learn expects of an estimator that has seen X."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        blocks, y = self._blocks_given(X, y) if _is_blocks(X) else self._blocks_cut(X, y)
        self.parties_ = tuple(blocks)
        active, *passive = blocks.values()
        for block in passive:
            if not block.n_features:
                raise ValueError(f"party {block.party!r} has no features: a passive party needs one at least")
        if active.n_rows == 0:
            raise ValueError("0 rows to train on")
        self.n_features_in_per_party_ = {party: block.n_features for party, block in blocks.items()}
        self._shapes = {party: block.shape for party, block in blocks.items()}
        self._names = {party: block.names for party, block in blocks.items()}
        return blocks, self._checked_y(y, active.n_rows)

    def _blocks_given(self, X: Mapping[str, Any], y: Any) -> tuple[dict[str, Block], Any]:
        """X is a dict of blocks; `partition` may give their order."""
        if self.partition is not None and set(self.partition) != set(X):
            raise ValueError(f"partition names parties {list(self.partition)}, X has {list(X)}")
        blocks = blocks_from_mapping({party: X[party] for party in self.partition or X}, _num_samples(y))
        check_label_order(y, next(iter(blocks.values())))
        self._columns = None
        self.n_features_in_ = sum(block.n_features for block in blocks.values())
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return blocks, y

    def _blocks_cut(self, X: Any, y: Any) -> tuple[dict[str, Block], Any]:
        """X holds all columns; `partition` says whose they are."""
        X, y = validate_data(
            self, X, y, dtype=np.float32, accept_sparse="csr", y_numeric=False, multi_output=True
        )
        self._columns = columns_by_party(self.partition, X.shape[1], getattr(self, "feature_names_in_", None))
        return self._cut(X), y

    def _cut(self, X: Any) -> dict[str, Block]:
        assert self._columns is not None
        names = getattr(self, "feature_names_in_", None)
        return {
            party: Block(party, X[:, columns], None if names is None else tuple(names[columns]))
            for party, columns in self._columns.items()
        }

    def _later_blocks(self, X: Any) -> dict[str, Block]:
        """Blocks as in training: of every party that has columns."""
        if not _is_blocks(X):
            if self._columns is None:
                raise ValueError(
                    f"this model was trained on a dict of blocks; pass a dict with {list(self.parties_)}"
                )
            return self._cut(validate_data(self, X, reset=False, dtype=np.float32, accept_sparse="csr"))
        unknown = [party for party in X if party not in self.parties_]
        if unknown:
            raise ValueError(f"unknown parties {unknown}; the model has {list(self.parties_)}")
        for party, n_features in self.n_features_in_per_party_.items():
            if n_features and X.get(party) is None:
                raise ValueError(f"X has no rows of party {party!r}, which has {n_features} features")
        n_rows = next(_num_samples(data) for data in X.values() if data is not None)
        blocks = blocks_from_mapping({party: X.get(party) for party in self.parties_}, n_rows)
        return {
            party: like_training(block, self._names[party], self._shapes[party])
            for party, block in blocks.items()
        }

    def _checked_y(self, y: Any, n_rows: int) -> np.ndarray:
        """One target per row, without missing values."""
        if isinstance(y, pd.Series | pd.DataFrame):
            y = y.to_numpy()
        y = column_or_1d(y, warn=True)
        if len(y) != n_rows:
            raise ValueError(f"y has {len(y)} labels, the parties have {n_rows} rows")
        if n_missing := int(pd.isna(y).sum()):
            raise ValueError(f"y contains {n_missing} missing values (NaN)")
        return y


def _is_blocks(X: Any) -> bool:
    """One block per party? Some sparse matrices are dicts too."""
    return isinstance(X, Mapping) and not hasattr(X, "tocsr")
