"""Whether the halves of a model fit together, so that a false file is refused when it is read, not when it predicts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..tree import LEAF, RecordTable, Tree, record_id
from .messages import ActiveResult, Records
from .models import decode_records, record_table, result_trees


def check_halves(active: ActiveResult, parties: Sequence[tuple[Records | None, int]]) -> None:
    """ValueError unless trees are trees and every split is in its owner's table.

    parties : a table and a number of features per party in order; the first table is not looked at (the active party's
    message has it), and None is a table that is elsewhere.
    """
    _check_sizes(active)
    trees = result_trees(active)
    for tree in trees:
        _check_tree(tree, len(parties))
    owned = [_owned_records(trees, owner) for owner in range(len(parties))]
    tables = [
        decode_records(active.records),
        *(None if t is None else record_table(t) for t, _ in parties[1:]),
    ]
    for owner, (table, (_, n_features)) in enumerate(zip(tables, parties, strict=True)):
        if table is not None:
            check_table(table, n_features)
            if (table.find(owned[owner]) < 0).any():
                raise ValueError(f"a split of party {owner} is not in its table")


def count_outputs(active: ActiveResult) -> int:
    """Raw scores of a row."""
    return len(active.base_score)


def check_table(table: RecordTable, n_features: int) -> None:
    """ValueError unless every split is on one of the party's own columns."""
    if ((table.columns < 0) | (table.columns >= n_features)).any():
        raise ValueError(f"a split lies on a column outside the {n_features} of its party")
    if any(not 0 <= column < n_features for column in table.categories.lists):
        raise ValueError(f"categories are listed for a column outside the {n_features} of their party")
    sizes = table.categories.sizes(n_features)[table.columns]
    if ((sizes > 0) != np.isnan(table.thresholds)).any():
        raise ValueError("a column of categories is split by a threshold, or one of numbers by a set")
    beyond = np.arange(8 * table.right.shape[1]) >= sizes[:, None]
    if (np.unpackbits(table.right, axis=1).astype(bool) & beyond).any():
        raise ValueError("a split names a category that its column does not list")


def _check_sizes(active: ActiveResult) -> None:
    lengths = {
        name: len(getattr(active, name)) for name in ("node", "owner", "left", "right", "gain", "cover")
    }
    total = int(active.sizes.sum())
    if (active.sizes < 1).any() or set(lengths.values()) != {total}:
        raise ValueError(f"trees of {total} nodes together come with arrays of {lengths}")
    if active.value.ndim != 2 or len(active.value) != total:
        raise ValueError(f"leaf values of {total} nodes have the shape {active.value.shape}")
    if active.base_score.ndim != 1 or not len(active.base_score) or active.base_score.dtype.kind != "f":
        raise ValueError(f"the base score is {active.base_score.dtype} {active.base_score.shape}")
    n_outputs, n_values = len(active.base_score), active.value.shape[1]
    if n_values not in (1, n_outputs) or (n_values == 1 and len(active.sizes) % n_outputs):
        raise ValueError(
            f"{len(active.sizes)} trees of leaves with {n_values} values come with {n_outputs} base scores"
        )
    if not (np.isfinite(active.base_score).all() and np.isfinite(active.value).all()):
        raise ValueError("leaf values or base scores are infinite or missing")


def _check_tree(tree: Tree, n_parties: int) -> None:
    """Owners exist; children come after their parent, each has one, and their numbers are its double."""
    leaf = tree.owner == LEAF
    if ((tree.owner < LEAF) | (tree.owner >= n_parties)).any():
        raise ValueError(f"a split is owned by a party outside the {n_parties} there are")
    parents = np.flatnonzero(~leaf)
    children = np.concatenate([tree.left[parents], tree.right[parents]])
    if (
        not np.array_equal(np.sort(children), np.arange(1, tree.n_nodes))
        or (children <= np.concatenate([parents, parents])).any()
    ):
        raise ValueError("children and parents do not make a tree")
    twice = np.concatenate([2 * tree.node[parents], 2 * tree.node[parents] + 1])
    if tree.node[0] != 1 or not np.array_equal(tree.node[children], twice):
        raise ValueError("the nodes of a tree are misnumbered")


def _owned_records(trees: Sequence[Tree], owner: int) -> np.ndarray:
    """Record ids of all splits of an owner."""
    ids = [record_id(number, tree.node[tree.owner == owner]) for number, tree in enumerate(trees)]
    return np.concatenate([np.zeros(0, np.int64), *ids])
