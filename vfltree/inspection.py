"""A model as somebody sees it who has the halves of some parties: what splits are on, and what is kept from the viewer.

In a simulation all halves are at hand, and so they are after `vfltree.load`. The active party alone has the trees, the
gains and its own splits: of a foreign split it knows the owner and a number. A passive party alone has its own splits
and no tree at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from .growing.models import decode_records, record_table, result_trees
from .tree import LEAF, RecordTable, Tree, record_id, record_parts

KINDS = ("gain", "cover", "weight", "total_gain", "total_cover")
ALL_COLUMNS = "all columns"  # in place of the names of columns that the viewer may not know


@dataclass(frozen=True)
class Split:
    """The split of one node, as far as the viewer knows it.

    number : of the node, as in a heap.  column : among the owner's own; it and what follows are None where the split is
    kept from the viewer.  right : codes of the categories that go right, and no threshold, of a split of categories.
    """

    party: str
    number: int
    column: int | None = None
    name: str | None = None
    threshold: float | None = None
    missing_left: bool | None = None
    right: tuple[int, ...] | None = None

    @property
    def known(self) -> bool:
        return self.column is not None


@dataclass(frozen=True)
class ModelView:
    """Trees, and the tables of those parties that the viewer may look into.

    tables : party -> its splits.  names : party -> names of its columns, None where it has none.
    """

    parties: tuple[str, ...]
    trees: tuple[Tree, ...]
    tables: Mapping[str, RecordTable]
    names: Mapping[str, tuple[str, ...] | None]
    n_features: Mapping[str, int]

    @classmethod
    def of(cls, model: Any, viewer: str | None = None) -> ModelView:
        """A trained estimator as `viewer` sees it; None: with all halves that are at hand.

        Raises NotFittedError, or ValueError where nobody is called so.
        """
        check_is_fitted(model, "_active_model")
        tables = {model.parties_[0]: decode_records(model._active_model.records)}
        tables |= {party: record_table(half) for party, half in model._passive_models.items()}
        trees = tuple(result_trees(model._active_model))
        if viewer is not None:
            if viewer not in tables:
                raise ValueError(f"nobody is called {viewer!r} here; there are {list(tables)}")
            tables = {viewer: tables[viewer]}
            trees = trees if viewer == model.parties_[0] else ()
        names = {party: own_names(model, party) for party in tables}
        return cls(
            tuple(model.parties_),
            trees,
            tables,
            names,
            {p: model.n_features_in_per_party_[p] for p in tables},
        )

    def split(self, tree: int, at: int) -> Split | None:
        """The split at a position of a tree; None for a leaf."""
        owner = int(self.trees[tree].owner[at])
        if owner == LEAF:
            return None
        party, node = self.parties[owner], int(self.trees[tree].node[at])
        if party not in self.tables:
            return Split(party, node)
        place = int(self.tables[party].find(np.atleast_1d(record_id(tree, node)))[0])
        return self._known_split(party, node, place)

    def _known_split(self, party: str, node: int, place: int) -> Split:
        table, column = self.tables[party], int(self.tables[party].columns[place])
        threshold = float(table.thresholds[place])
        right = tuple(np.flatnonzero(np.unpackbits(table.right[place])).tolist())
        return Split(
            party,
            node,
            column,
            self.column_name(party, column),
            None if np.isnan(threshold) else threshold,
            bool(table.missing_left[place]),
            right or None,
        )

    def column_name(self, party: str, column: int) -> str:
        """The name of a column, or its number where the party has no names."""
        names = self.names[party]
        return f"column {column}" if names is None else names[column]

    def importances(self, kind: str) -> dict[str, pd.Series]:
        """See `Inspected.importances`."""
        owned = {party: _nodes_owned(self.trees, owner) for owner, party in enumerate(self.parties)}
        found = {}
        for party in self.parties if self.trees else self.tables:
            if party in self.tables:
                found[party] = self._own_importances(party, owned[party], kind)
            else:
                trees, places = owned[party]
                groups = np.zeros(len(places), dtype=np.int64)
                found[party] = pd.Series(_summed(self.trees, trees, places, groups, 1, kind), [ALL_COLUMNS])
        return found

    def tree_shares(self) -> np.ndarray:
        """Per column, party after party, the sum over trees of its share of the tree's gain."""
        shares = np.zeros(sum(self.n_features.values()))
        for number, tree in enumerate(self.trees):
            alone = ModelView(self.parties, (tree,), self._tables_of(number), self.names, self.n_features)
            gains = np.concatenate(list(alone.importances("total_gain").values()))
            if gains.sum() > 0:
                shares += gains / gains.sum()
        return shares

    def _tables_of(self, number: int) -> dict[str, RecordTable]:
        """The splits of one tree, renumbered as those of tree 0."""
        found = {}
        for party, table in self.tables.items():
            trees, nodes = record_parts(table.ids)
            mine = trees == number
            rest = (getattr(table, name)[mine] for name in ("columns", "thresholds", "missing_left", "right"))
            found[party] = RecordTable(record_id(0, nodes[mine]), *rest)
        return found

    def _own_importances(self, party: str, owned: tuple[np.ndarray, np.ndarray], kind: str) -> pd.Series:
        table, n = self.tables[party], self.n_features[party]
        names = [self.column_name(party, column) for column in range(n)]
        if not self.trees:  # a passive party alone
            if kind != "weight":
                raise ValueError(
                    f"gains and covers are the active party's: party {party!r} alone can count splits"
                )
            return pd.Series(np.bincount(table.columns, minlength=n).astype(np.float64), names)
        trees, places = owned
        ids = record_id(trees, [self.trees[t].node[at] for t, at in zip(trees, places, strict=True)])
        columns = table.columns[table.find(ids)] if len(ids) else np.zeros(0, np.int64)
        return pd.Series(_summed(self.trees, trees, places, columns, n, kind), names)


def _nodes_owned(trees: Sequence[Tree], owner: int) -> tuple[np.ndarray, np.ndarray]:
    """Tree numbers and positions of all splits of an owner, in order."""
    found = [(t, at) for t, tree in enumerate(trees) for at in np.flatnonzero(tree.owner == owner)]
    pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _summed(
    trees: Sequence[Tree], numbers: np.ndarray, places: np.ndarray, groups: np.ndarray, n: int, kind: str
) -> np.ndarray:
    """Importance of n groups of splits, float64 (n,)."""
    counts = np.bincount(groups, minlength=n).astype(np.float64)
    if kind == "weight":
        return counts
    what = "gain" if kind.endswith("gain") else "cover"
    values = [getattr(trees[t], what)[at] for t, at in zip(numbers, places, strict=True)]
    totals = np.bincount(groups, weights=np.array(values, dtype=np.float64), minlength=n)
    return totals if kind.startswith("total") else totals / np.maximum(counts, 1)


def own_names(model: Any, party: str) -> tuple[str, ...] | None:
    """Names of a party's columns, of an estimator trained on blocks or on one matrix."""
    if model._columns is None:
        names: tuple[str, ...] | None = model._names[party]
        return names
    known = getattr(model, "feature_names_in_", None)
    return None if known is None else tuple(str(known[i]) for i in model._columns[party])


class Inspected:
    """Mixin of estimators of trees: which columns matter."""

    parties_: tuple[str, ...]
    _shares_per_tree = False  # feature_importances_ as scikit-learn's forests have them
    _passive_models: dict[str, Any]
    _columns: dict[str, np.ndarray] | None

    def importances(self, kind: str = "gain", viewer: str | None = None) -> dict[str, pd.Series]:
        """How much each column matters, per party, under the party's own names.

        Parameters
        ----------
        kind : as in XGBoost: "weight" (number of splits), "gain" and "cover" (mean over the splits), "total_gain",
            "total_cover"
        viewer : a party: what it can compute by itself. The active party sees one figure for all columns of each other
            party; a passive party can count its own splits. None: all halves that are at hand, as in a simulation

        Returns
        -------
        dict party -> Series of float64, indexed by column name; 0 for columns that no split is on
        """
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
        return ModelView.of(self, viewer).importances(kind)

    @property
    def feature_importances_(self) -> np.ndarray:
        """How much each column matters, float64 (n_features_in_,); adds up to 1, or is all 0 where nothing was split.

        Of boosting the mean gain of the column's splits, as in XGBoost; of forests the mean over trees of its share of
        the tree's gain, as in scikit-learn. In the order of the columns of X; party after party where X was a dict of
        blocks. Needs the halves of all parties.
        """
        check_is_fitted(self, "_active_model")
        if len(self._passive_models) + 1 < len(self.parties_):
            raise AttributeError(
                "feature_importances_ needs the halves of all parties; importances() shows what is at hand"
            )
        values = ModelView.of(self).tree_shares() if self._shares_per_tree else self._mean_gains()
        if self._columns is not None:
            order = np.concatenate([self._columns[party] for party in self.parties_])
            values = values[np.argsort(order)]
        total = values.sum()
        return values / total if total > 0 else values

    def _mean_gains(self) -> np.ndarray:
        found = self.importances("gain")
        return np.concatenate([found[party].to_numpy() for party in self.parties_])
