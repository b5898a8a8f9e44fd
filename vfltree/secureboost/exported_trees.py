"""Trees as XGBoost writes them: what every party hands over, put together node by node.

XGBoost compares single precision: a threshold must be a float32 that leaves every training row on its side. The owner's
half knows the largest training value below each threshold, so this is checked without training data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..growing.messages import Records
from ..growing.models import record_table
from ..tree import LEAF, Tree, TreeBuilder, record_id

_NO_PARENT = 2147483647  # XGBoost's mark of a root
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Share:
    """What one party hands over. places : its columns in the Booster's matrix."""

    party: str
    records: Records
    names: tuple[str, ...] | None
    places: np.ndarray

    @property
    def categories(self) -> Mapping[int, tuple[str, ...]]:
        """Keys of the values of its columns of categories, by column of its own."""
        return record_table(self.records).categories.lists


def tree_document(tree: Tree, number: int, shares: list[Share], n_features: int) -> dict[str, Any]:
    order = _breadth_first(tree)
    place = np.empty(tree.n_nodes, dtype=np.int64)
    place[order] = np.arange(tree.n_nodes)
    inner = tree.owner != LEAF
    conditions = tree.value[:, 0].astype(np.float32)
    sets: dict[int, list[int]] = {}  # place -> codes that go right
    columns, default_left = np.zeros(tree.n_nodes, np.int64), np.zeros(tree.n_nodes, np.int64)
    for owner, share in enumerate(shares):
        at = np.flatnonzero(tree.owner == owner)
        rows = np.searchsorted(share.records.ids, record_id(number, tree.node[at]))
        columns[at] = share.places[share.records.columns[rows]]
        default_left[at] = share.records.missing_left[rows]
        conditions[at] = _thresholds(share, rows)
        sets |= {
            int(p): codes for p, codes in zip(place[at], _right_codes(share, rows), strict=True) if codes
        }
    parents = np.full(tree.n_nodes, _NO_PARENT, dtype=np.int64)
    for side in (tree.left, tree.right):
        parents[side[inner]] = place[inner]
    return {
        "base_weights": _singles(tree.value[:, 0][order]),
        **_category_arrays(sets),
        "default_left": default_left[order].tolist(),
        "left_children": np.where(inner, place[tree.left], -1)[order].tolist(),
        "loss_changes": _singles(tree.gain[order]),
        "parents": parents[order].tolist(),
        "right_children": np.where(inner, place[tree.right], -1)[order].tolist(),
        "split_conditions": _singles(conditions[order]),
        "split_indices": columns[order].tolist(),
        "split_type": [int(at in sets) for at in range(tree.n_nodes)],
        "sum_hessian": _singles(tree.cover[order]),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(n_features),
            "num_nodes": str(tree.n_nodes),
            "size_leaf_vector": "1",
        },
    }


def _breadth_first(tree: Tree) -> np.ndarray:
    """Positions level by level, so that the right child follows the left, which XGBoost's prediction relies on."""
    order = [0]
    for at in order:
        if tree.owner[at] != LEAF:
            order += [int(tree.left[at]), int(tree.right[at])]
    return np.array(order)


def _thresholds(share: Share, rows: np.ndarray) -> np.ndarray:
    """Thresholds of these records in single precision, every training row on its side; float32, shape of rows.

    0 for splits of categories.
    """
    records = share.records
    if len(records.lower) != len(records.ids):
        raise ValueError(f"the half of party {share.party!r} does not say which values its thresholds divide")
    exact = records.thresholds[rows]
    of_numbers = ~np.isnan(exact)
    singles = np.clip(exact, -_LARGEST, _LARGEST).astype(np.float32)
    with np.errstate(over="ignore"):
        lower = records.lower[rows].astype(np.float32)
    wrong = of_numbers & ~(lower < singles)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"{_place(share, int(records.columns[rows][at]))} is split between training values that are one number in "
            "single precision, which XGBoost compares in: train on float32 values to export"
        )
    return np.where(of_numbers, singles, np.float32(0))


def _right_codes(share: Share, rows: np.ndarray) -> list[list[int]]:
    """Per record the codes of categories that go right; none where it has a threshold."""
    if not share.records.right.size:
        return [[] for _ in rows]
    return [np.flatnonzero(np.unpackbits(share.records.right[row])).tolist() for row in rows]


def _category_arrays(sets: dict[int, list[int]]) -> dict[str, list[int]]:
    """Sets one after another, by node, with where each begins and how many codes it has."""
    nodes = sorted(sets)
    sizes = [len(sets[node]) for node in nodes]
    return {
        "categories": [code for node in nodes for code in sets[node]],
        "categories_nodes": nodes,
        "categories_segments": [sum(sizes[:i]) for i in range(len(sizes))],
        "categories_sizes": sizes,
    }


def _place(share: Share, column: int) -> str:
    return f"column {column if share.names is None else share.names[column]!r} of party {share.party!r}"


def stump(value: np.float32, output: int, n_features: int) -> dict[str, Any]:
    """A tree of one leaf."""
    builder = TreeBuilder()
    builder.set_leaf(0, float(value))
    leaf = builder.freeze()
    return tree_document(leaf, output, [], n_features)


def _singles(values: np.ndarray) -> list[float]:
    return values.astype(np.float32).astype(np.float64).tolist()
