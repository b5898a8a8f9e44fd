"""Boosting on pooled data in one process, from the plain pieces alone: what federated trees must equal."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from vfltree.binning import BinMapper
from vfltree.category_splits import CategoryRules, best_mixed_splits
from vfltree.histogram import build_histograms
from vfltree.losses import Loss, Quantized, quantize
from vfltree.splitting import SplitRules, choose, leaf_values
from vfltree.tree import RecordTable, Tree, TreeBuilder, record_id


@dataclass(frozen=True)
class Settings:
    n_rounds: int = 100
    max_depth: int = 6
    learning_rate: float = 0.3
    rules: SplitRules = field(default_factory=SplitRules)
    base_score: float | None = None
    n_jobs: int = 1
    categories: CategoryRules = field(default_factory=CategoryRules)
    drawn: Callable[[int, int], np.ndarray] | None = None  # tree, depth -> columns that may split nodes there


@dataclass(frozen=True)
class Model:
    trees: list[Tree]
    outputs: list[int]
    table: RecordTable
    base: np.ndarray
    raw: np.ndarray


def node_totals(rows, indptr, g, h):
    """Sums of g and of h per node, each int64 (n_nodes, n_outputs). rows, indptr : as in `build_histograms`."""
    return tuple(
        np.stack([x[rows[start:stop]].sum(axis=0) for start, stop in itertools.pairwise(indptr)])
        for x in (g, h)
    )


def partition_rows(rows, indptr, goes_left):
    """Rows grouped by children: left of node 0, right of node 0, left of node 1, ... and where these groups begin."""
    child = 2 * np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)) + ~goes_left
    sizes = np.bincount(child, minlength=2 * (len(indptr) - 1))
    return rows[np.argsort(child, kind="stable")], np.concatenate([[0], np.cumsum(sizes)])


def grow(binned, mapper, q: Quantized, k: int, number: int, settings: Settings, records, dtype):
    """One tree for output k; returns it and the leaf of every row."""
    g, h, g_unit, h_unit = q.g[:, [k]], q.h[:, [k]], q.g_unit[k], q.h_unit[k]
    builder, rules = TreeBuilder(), settings.rules
    nodes, rows, indptr = [0], np.arange(len(g)), np.array([0, len(g)])
    leaf = np.zeros(len(g), dtype=np.int64)
    hist = build_histograms(binned, rows, indptr, g, h, mapper.n_bins, settings.n_jobs)
    for depth in range(settings.max_depth + 1):
        total_g, total_h = (t[:, 0] for t in node_totals(rows, indptr, g, h))
        for node, cover in zip(nodes, total_h * h_unit, strict=True):
            builder.set_cover(node, float(cover))
        if depth < settings.max_depth:
            best = best_mixed_splits(
                hist[..., 0], hist[..., 1], total_g, total_h, g_unit, h_unit, rules,
                mapper.n_categories, settings.categories,
            )  # fmt: skip
            if settings.drawn is not None:
                best.gain[:, np.setdiff1d(np.arange(hist.shape[1]), settings.drawn(number, depth))] = 0
            choice = choose([best], rules)
            split = np.flatnonzero(choice.party >= 0)
        else:
            split = np.empty(0, dtype=np.int64)
        values = leaf_values(total_g, total_h, g_unit, h_unit, rules, settings.learning_rate, dtype)
        children, kept, left_of = [], [], []
        for i, node in enumerate(nodes):
            mine = rows[indptr[i] : indptr[i + 1]]
            if i not in split:
                builder.set_leaf(node, float(values[i]))
                leaf[mine] = node
                continue
            f = int(choice.slots[i][0])
            b, m = int(best.bin[i, f]), bool(best.missing_left[i, f])
            record = record_id(number, builder.nodes[node])
            children += builder.split(node, 0, choice.gain[i])
            column = binned[mine, f]
            kept.append(mine)
            if mapper.n_categories[f]:
                right = best.right[i, f, : mapper.n_categories[f]]
                records.append((record, f, np.nan, m, right))
                left_of.append(mapper.outside_goes_left(column, right, m))
            else:
                records.append((record, f, mapper.threshold(f, b), m, None))
                left_of.append(np.where(column == mapper.missing_bin, m, column <= b))
        if not children:
            break
        parents = hist[split]
        rows, indptr = partition_rows(
            np.concatenate(kept),
            np.concatenate([[0], np.cumsum([len(x) for x in kept])]),
            np.concatenate(left_of),
        )
        nodes = children
        sizes = np.diff(indptr).reshape(-1, 2)
        small = 2 * np.arange(len(sizes)) + (
            sizes[:, 1] < sizes[:, 0]
        )  # of every pair, the left one of equals
        some = np.concatenate([rows[indptr[c] : indptr[c + 1]] for c in small])
        sizes = sizes.ravel()[small]
        part = build_histograms(
            binned, some, np.concatenate([[0], np.cumsum(sizes)]), g, h, mapper.n_bins, settings.n_jobs
        )
        hist = np.empty((len(nodes), *part.shape[1:]), dtype=np.int64)
        hist[small] = part
        hist[small ^ 1] = parents - part
    return builder.freeze(), leaf


def boost(X, y, loss: Loss, mapper: BinMapper, settings: Settings, weights=None) -> Model:
    """Rounds of one tree per output on the gradients at the start of the round."""
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    binned = mapper.transform(X)
    base = loss.start(y, weights, settings.base_score)
    raw = np.tile(base, (len(y), 1))
    trees, outputs, records = [], [], []
    for _ in range(settings.n_rounds):
        q = quantize(*loss.gradients(y, raw, weights))
        for k in range(loss.n_outputs):
            tree, leaf = grow(binned, mapper, q, k, len(trees), settings, records, base.dtype)
            raw[:, k] += tree.value[leaf, 0]
            trees.append(tree)
            outputs.append(k)
    table = RecordTable.empty()
    if records:
        table = table.append(*zip(*records, strict=True))
    return Model(trees, outputs, table, base, raw)
