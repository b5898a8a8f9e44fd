"""Preprocessing at the parties: each one's own transformer, fitted on its own raw columns and nothing else.

Standardising, one-hot encoding, imputing: whatever scikit-learn's transformers do with one party's block. Nothing of it
crosses; the others see at most how many columns a party has afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, validate_data

from vfldata import columns_by_party
from vflparty import align

from ..base import PartitionedEstimator
from ..blocks import Block


class VerticallyTransformed(PartitionedEstimator):
    """Mixin of estimators with a parameter `vertical_transformer`: a transformer, of which every party fits its own
    copy, or a dict party -> transformer for some parties.

    Attributes of a fitted estimator: transformers_, dict party -> its fitted transformer.
    """

    vertical_transformer: Any
    transformers_: dict[str, Any]
    _raw_columns: dict[str, Any] | None  # party -> its raw columns of X; None where X was given as blocks
    _transformer_names: Mapping[str, str]  # party -> class of its transformer, for files

    def _training_blocks(self, X: Any, y: Any) -> tuple[dict[str, Block], Any]:
        if self.vertical_transformer is None:
            self.transformers_, self._raw_columns, self._transformer_names = {}, None, {}
            return super()._training_blocks(X, y)
        raw = self._raw_blocks(X, reset=True)
        self.transformers_ = {
            party: clone(transformer).fit(raw[party])
            for party, transformer in self._own_transformers(list(raw)).items()
        }
        self._transformer_names = {party: type(own).__name__ for party, own in self.transformers_.items()}
        n_raw = sum(np.shape(block)[1] for block in raw.values())
        names = getattr(self, "feature_names_in_", None)
        blocks, y = super()._training_blocks(self._transformed(raw), y)
        self.n_features_in_ = n_raw
        if names is not None:
            self.feature_names_in_ = names
        return blocks, y

    def _prediction_blocks(self, X: Any) -> dict[str, Block]:
        if not getattr(self, "transformers_", None):  # a model out of files has none
            return super()._prediction_blocks(X)
        return super()._prediction_blocks(self._transformed(self._raw_blocks(X, reset=False)))

    def _own_transformers(self, parties: list[str]) -> dict[str, Any]:
        """party -> its unfitted transformer."""
        wanted = self.vertical_transformer
        if not isinstance(wanted, Mapping):
            return dict.fromkeys(parties, wanted)
        unknown = [party for party in wanted if party not in parties]
        if unknown:
            raise ValueError(f"vertical_transformer names parties {unknown}; there are {parties}")
        return {party: transformer for party, transformer in wanted.items() if transformer is not None}

    def _raw_blocks(self, X: Any, *, reset: bool) -> dict[str, Any]:
        """party -> its raw columns, rows in the active party's order."""
        if isinstance(X, Mapping) and not hasattr(X, "tocsr"):
            if reset:
                self._raw_columns = None
            return _in_one_order({party: X[party] for party in (self.partition or X) if party in X})
        X = validate_data(self, X, reset=reset, skip_check_array=True)
        if reset:
            names = getattr(self, "feature_names_in_", None)
            self._raw_columns = columns_by_party(self.partition, np.shape(X)[1], names)
        if self._raw_columns is None:
            raise ValueError(
                f"this model was trained on a dict of blocks; pass a dict with {list(self.parties_)}"
            )
        return {party: _safe_indexing(X, columns, axis=1) for party, columns in self._raw_columns.items()}

    def _transformed(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        out = {}
        for party, block in raw.items():
            if party in self.transformers_ and np.shape(block)[1]:
                block = self.transformers_[party].transform(block)
            # Rows are in one order by now; an index would be matched again.
            out[party] = block.to_numpy() if isinstance(block, pd.DataFrame) else block
        return out


def _in_one_order(blocks: dict[str, Any]) -> dict[str, Any]:
    """Frames brought into the order of the first one, by their index; other blocks are taken row by row."""
    first = next(iter(blocks))
    if not isinstance(blocks[first], pd.DataFrame):
        return blocks
    ids = blocks[first].index.to_numpy()
    out = {}
    for party, block in blocks.items():
        if isinstance(block, pd.DataFrame) and not np.array_equal(block.index.to_numpy(), ids):
            if _num_samples(block) != len(ids):
                raise ValueError(f"party {first!r} has {len(ids)} rows, party {party!r} has {len(block)}")
            found = align({first: ids, party: block.index.to_numpy()}, how="exact")
            block = block.iloc[found.indices[party]]
        out[party] = block
    return out
