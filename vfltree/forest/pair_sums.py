"""Sums for pairs of a node and one of its drawn features, and which features can split a node: both sides, no cipher.

What is not asked for costs nothing: a feature that was not drawn at a node adds no row there, though features that were
drawn still share the sums of rows that agree in them (`vfltree.joint_cells`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vfltree._jit import jit

from ..bin_sums import fullest_bins
from ..joint_cells import MergeTree, SumPlan, plan_sums

Ints = NDArray[np.int64]

CELLS_AT_ONCE = 1 << 22  # counts held while sums are planned: 32 MB


def varied_features(binned: np.ndarray, rows: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Which features have rows in two bins at least, bool (n_features,). rows : at least one."""
    columns = np.ascontiguousarray(binned.T) if not binned.flags.f_contiguous else binned.T
    varied = np.zeros(columns.shape[0], dtype=np.bool_)
    _find_varied(columns, rows.astype(np.int64), varied)
    return varied


def pair_histograms(
    binned: np.ndarray,
    rows_by_node: Sequence[NDArray[np.integer]],
    columns_by_node: Sequence[Ints],
    values: Ints,
    n_bins: int,
) -> list[Ints]:
    """Per node int64 (n_columns, n_bins, n_kinds), of rows as often as they count. values : (n_rows, n_kinds)."""
    columns = binned.T
    sums = []
    for rows, chosen in zip(rows_by_node, columns_by_node, strict=True):
        histogram = np.zeros((len(chosen), n_bins, values.shape[1]), dtype=np.int64)
        if len(chosen):
            _add_pairs(columns, rows.astype(np.int64), chosen, values, histogram)
        sums.append(histogram)
    return sums


def plan_pairs(
    binned: np.ndarray,
    rows_by_node: Sequence[NDArray[np.integer]],
    columns_by_node: Sequence[Ints],
    trees: Sequence[MergeTree],
    n_bins: int,
    groups_by_node: Sequence[NDArray[np.integer]] | None = None,
) -> tuple[SumPlan, Ints]:
    """How to sum the asked features of some nodes.

    Parameters
    ----------
    binned : unsigned integers (n_rows, n_features), Fortran order
    rows_by_node : row numbers of each node, as often as they count; at least one
    columns_by_node : the features asked of each node, in the order in which they are answered
    trees : see `plan_sums`
    groups_by_node : of each node (n_features, n_bins), the bin that each bin's group goes by; None: no groups

    Returns
    -------
    plan : SumPlan
        Its values stand in the order node, asked feature, bin.
    counts : ndarray of int64, shape (n_pairs, n_bins)
        Rows of each bin or group, draws counted, in the same order.
    """
    plans, counts, n_values = [], [np.zeros((0, n_bins), dtype=np.int64)], 0
    for nodes in _chunks(len(rows_by_node), binned.shape[1] * n_bins):
        rows, columns = rows_by_node[nodes], columns_by_node[nodes]
        dense = _count_asked(binned, rows, columns, n_bins)
        groups = None if groups_by_node is None else np.stack(groups_by_node[nodes])
        if groups is not None:
            dense = _grouped(dense, groups)
        plan = plan_sums(binned, rows, dense, trees, groups=groups)
        of_pairs = np.concatenate([dense[i, chosen] for i, chosen in enumerate(columns)])
        plans.append(_in_asked_order(plan, dense, columns, n_values))
        counts.append(of_pairs)
        n_values += plan.n_values
    batches = tuple(batch for plan in plans for batch in plan.batches)
    return SumPlan(n_values, batches), np.concatenate(counts)


def fullest_of_pairs(counts: Ints) -> NDArray[np.int16]:
    """The fullest bin of each pair, int16 (n_pairs, 1)."""
    return fullest_bins(counts[:, None, :])


def _chunks(n_nodes: int, cells_per_node: int) -> Iterator[slice]:
    step = max(1, CELLS_AT_ONCE // max(1, cells_per_node))
    for start in range(0, n_nodes, step):
        yield slice(start, min(start + step, n_nodes))


def _count_asked(
    binned: np.ndarray,
    rows_by_node: Sequence[NDArray[np.integer]],
    columns_by_node: Sequence[Ints],
    n_bins: int,
) -> Ints:
    """Rows in each bin of the asked features, int64 (n_nodes, n_features, n_bins); zeros for the others."""
    counts = np.zeros((len(rows_by_node), binned.shape[1], n_bins), dtype=np.int64)
    columns = binned.T
    for node, (rows, chosen) in enumerate(zip(rows_by_node, columns_by_node, strict=True)):
        _count_pairs(columns, rows.astype(np.int64), chosen, counts[node])
    return counts


def _grouped(counts: Ints, groups: NDArray[np.integer]) -> Ints:
    """Counts of groups, each in the bin it goes by. groups : (n_nodes, n_features, n_bins)."""
    sums = np.zeros_like(counts)
    nodes, features = np.ogrid[: counts.shape[0], : counts.shape[1]]
    np.add.at(sums, (nodes[..., None], features[..., None], groups), counts)
    return sums


def _in_asked_order(plan: SumPlan, counts: Ints, columns_by_node: Sequence[Ints], first: int) -> SumPlan:
    """The plan with its values by node and asked feature, not by column, and numbered from `first`."""
    sizes = np.maximum((counts > 0).sum(axis=2) - 1, 0)  # the fullest bin is left out
    starts = (np.cumsum(sizes.ravel()) - sizes.ravel()).reshape(sizes.shape)
    order = [
        np.arange(starts[node, column], starts[node, column] + sizes[node, column])
        for node, chosen in enumerate(columns_by_node)
        for column in chosen.tolist()
    ]
    place = np.empty(plan.n_values, dtype=np.int64)
    place[np.concatenate([np.zeros(0, np.int64), *order])] = first + np.arange(plan.n_values)
    batches = tuple(
        tuple(
            replace(
                layer,
                places=np.where(layer.places >= 0, place[layer.places], -1) if len(place) else layer.places,
            )
            for layer in batch
        )
        for batch in plan.batches
    )
    return SumPlan(plan.n_values, batches)


@jit
def _find_varied(columns, rows, varied):  # type: ignore[no-untyped-def]
    """varied[f]: some row's bin differs from the first row's."""
    for f in range(len(columns)):
        first = columns[f, rows[0]]
        for i in range(1, len(rows)):
            if columns[f, rows[i]] != first:
                varied[f] = True
                break


@jit
def _count_pairs(columns, rows, chosen, counts):  # type: ignore[no-untyped-def]
    """counts[f, columns[f, row]] += 1 for the chosen features f"""
    for k in range(len(chosen)):
        f = chosen[k]
        for i in range(len(rows)):
            counts[f, columns[f, rows[i]]] += 1


@jit
def _add_pairs(columns, rows, chosen, values, sums):  # type: ignore[no-untyped-def]
    """sums[k, columns[chosen[k], row]] += values[row]"""
    for k in range(len(chosen)):
        f = chosen[k]
        for i in range(len(rows)):
            b = columns[f, rows[i]]
            for c in range(values.shape[1]):
                sums[k, b, c] += values[rows[i], c]
