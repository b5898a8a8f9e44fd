"""Which categories to split from which: XGBoost's two ways, its order of search and its ties, from exact integer sums.

    fewer than max_cat_to_onehot categories   one category goes right, all others left
    more                                      categories in ascending order of their own leaf value -T(G)/(H + lambda);
                                              a first part of that order goes right, the rest left

Fisher 1958 shows that for a sum of squares the best two-way partition of categories is one of the k - 1 that are
contiguous in this order. Missing values are tried on both sides; where the node misses none, XGBoost says left (a
column of numbers says right), and so do we. A set names the categories that go right, as in XGBoost's model files.

The gain of a partition is `splitting.partition_gains`, the same arithmetic as for numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .limited_splits import Limits
from .splitting import BestSplits, SplitRules, best_splits, leaf_values, partition_gains

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class CategoryRules:
    """How categorical columns are split; names and defaults as in XGBoost.

    max_cat_to_onehot : a column of fewer categories than this is split one category against the rest.
    max_cat_threshold : of the sorted order, parts of fewer categories than this are tried from either end.
    """

    max_cat_to_onehot: int = 4
    max_cat_threshold: int = 64


def best_mixed_splits(
    G: Ints,
    H: Ints,
    total_g: Ints,
    total_h: Ints,
    g_unit: float,
    h_unit: float,
    rules: SplitRules,
    n_categories: NDArray[np.integer],
    category_rules: CategoryRules,
    limits: Limits | None = None,
) -> BestSplits:
    """`best_splits` for columns of numbers and of categories side by side.

    n_categories : integers (n_features,), 0 for a column of numbers; the first that many bins of a categorical feature
    are its categories.  The others as in `best_splits`; a sign of a categorical feature means nothing.
    """
    if not n_categories.any():
        return best_splits(G, H, total_g, total_h, g_unit, h_unit, rules, limits)
    numbers = np.flatnonzero(n_categories == 0)
    of_numbers = None if limits is None else replace(limits, signs=limits.signs[numbers])
    alone = best_splits(G[:, numbers], H[:, numbers], total_g, total_h, g_unit, h_unit, rules, of_numbers)
    n_nodes, n_features = G.shape[:2]
    whole = BestSplits(
        gain=_spread(alone.gain, numbers, n_features),
        bin=_spread(alone.bin, numbers, n_features),
        missing_left=_spread(alone.missing_left, numbers, n_features),
        left_g=_spread(alone.left_g, numbers, n_features),
        left_h=_spread(alone.left_h, numbers, n_features),
        right=np.zeros((n_nodes, n_features, int(n_categories.max())), dtype=np.bool_),
    )
    sums = _NodeSums(total_g, total_h, g_unit, h_unit, rules, limits)
    for f in np.flatnonzero(n_categories).tolist():
        k = int(n_categories[f])
        own = _of_categories(G[:, f], k), _of_categories(H[:, f], k)
        if k < category_rules.max_cat_to_onehot:
            tried = _one_against_rest(*own, sums)
        else:
            tried = _sorted_parts(*own, sums, category_rules.max_cat_threshold)
        _keep_best(whole, f, tried, sums)
    return whole


def _of_categories(sums: Ints, k: int) -> Ints:
    """(n_nodes, k) of (n_nodes, n_bins). Where bins were merged, the highest group may stand beyond the categories."""
    own = sums[:, :k].copy()
    own[:, -1] += sums[:, k:-1].sum(axis=1)
    return own


@dataclass(frozen=True)
class _NodeSums:
    """Sums of the nodes, and what the integers are worth."""

    total_g: Ints
    total_h: Ints
    g_unit: float
    h_unit: float
    rules: SplitRules
    limits: Limits | None


@dataclass(frozen=True)
class _Tried:
    """Candidates of one feature in the order in which an earlier one wins, for every node.

    right_g, right_h : int64 (n_nodes, n_candidates), sums of the right child.
    missing_left : bool (n_candidates,).
    order : int64 (n_nodes, n_categories), categories in the order of the search.
    starts, stops : int64 (n_candidates,): categories order[start:stop] go right.
    """

    right_g: Ints
    right_h: Ints
    missing_left: Bools
    order: Ints
    starts: Ints
    stops: Ints


def _one_against_rest(G: Ints, H: Ints, sums: _NodeSums) -> _Tried:
    """Category after category, with missing values left, then right."""
    n_nodes, k = G.shape
    missing = sums.total_g - G.sum(axis=1), sums.total_h - H.sum(axis=1)
    right_g, right_h = (
        np.stack([own, own + rest[:, None]], axis=2).reshape(n_nodes, 2 * k)
        for own, rest in zip((G, H), missing, strict=True)
    )
    which = np.repeat(np.arange(k), 2)
    order = np.tile(np.arange(k), (n_nodes, 1))
    return _Tried(right_g, right_h, np.tile([True, False], k), order, which, which + 1)


def _sorted_parts(G: Ints, H: Ints, sums: _NodeSums, max_cat_threshold: int) -> _Tried:
    """First parts of the order, shortest first, missing left; then first parts, longest first, missing right.

    sorted   A B C D E        right of the split, in the order tried:
             missing left     A, AB, ABC, ABCD
             missing right    ABCD, ABC, AB, A
    """
    k = G.shape[1]
    # Single precision, as in XGBoost: what it cannot tell apart keeps the order of the codes.
    weights = leaf_values(G, H, sums.g_unit, sums.h_unit, sums.rules).astype(np.float32)
    order = np.argsort(weights, axis=1, kind="stable")
    parts_g, parts_h = (np.cumsum(np.take_along_axis(own, order, axis=1), axis=1) for own in (G, H))
    n_tried = min(k, max_cat_threshold) - 1
    first, last = np.arange(1, n_tried + 1), np.arange(k - 1, k - 1 - n_tried, -1)
    missing = sums.total_g - parts_g[:, -1], sums.total_h - parts_h[:, -1]
    right_g, right_h = (
        np.concatenate([parts[:, first - 1], parts[:, last - 1] + rest[:, None]], axis=1)
        for parts, rest in zip((parts_g, parts_h), missing, strict=True)
    )
    stops = np.concatenate([first, last])
    return _Tried(right_g, right_h, np.repeat([True, False], n_tried), order, np.zeros_like(stops), stops)


def _keep_best(best: BestSplits, f: int, tried: _Tried, sums: _NodeSums) -> None:
    """Write the first best candidate of every node into the arrays of `best`, feature f."""
    if not tried.stops.size:
        return
    left_g, left_h = sums.total_g[:, None] - tried.right_g, sums.total_h[:, None] - tried.right_h
    gains = partition_gains(left_g, left_h, sums.total_g, sums.total_h, sums.g_unit, sums.h_unit, sums.rules)
    winner = gains.argmax(axis=1)  # the first of equals
    nodes = np.arange(len(gains))
    found = gains[nodes, winner] > 0
    best.gain[:, f] = gains[nodes, winner]
    best.missing_left[:, f] = found & tried.missing_left[winner]
    best.left_g[:, f], best.left_h[:, f] = (
        np.where(found, side[nodes, winner], 0) for side in (left_g, left_h)
    )
    assert best.right is not None
    place = np.argsort(tried.order, axis=1)  # of each category in the order
    inside = (place >= tried.starts[winner, None]) & (place < tried.stops[winner, None])
    best.right[:, f, : inside.shape[1]] = inside & found[:, None]


def _spread(of_numbers: np.ndarray, numbers: Ints, n_features: int) -> np.ndarray:
    """(n_nodes, n_features) with the columns of numbers in place; elsewhere what stands for no split."""
    empty = -1 if of_numbers.dtype == np.int32 else 0
    spread = np.full((len(of_numbers), n_features), empty, dtype=of_numbers.dtype)
    spread[:, numbers] = of_numbers
    return spread
