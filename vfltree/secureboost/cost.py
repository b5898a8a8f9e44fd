"""What an encrypted training will cost at most, before a key is made: counted operations times a measured price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vflcrypto import plan_packing

from ..losses import fraction_bits_for
from ..prices import carried_bins_at_most, priced
from ..sealing import COUNTERS
from .sampling import n_drawn, n_sampled_rows
from .settings import BoostSettings


@dataclass(frozen=True)
class _PassiveShape:
    n_features: int
    n_carried: int  # bins that travel, over all features: all but the fullest of each


@dataclass(frozen=True)
class _Sums:
    """What one passive party sums for one tree, at most: rows times features, values, and in how many messages."""

    n_additions: int
    n_values: int
    n_messages: int


def estimate(
    settings: BoostSettings, n_rows: int, blocks: Mapping[str, np.ndarray], n_own: int = 0
) -> dict[str, Any]:
    """Upper bounds of what `costs_` will say, and seconds on this machine and one thread.

    blocks : passive party -> its features, float64 (n_rows, n_features).  n_own : features of the active party.

    Trees are taken to be full, each smaller child to hold half its parent's rows, and every column that can be drawn
    to be drawn from the party in question; real trees cost less.
    """
    plan = plan_packing(n_rows, settings.n_outputs, fraction_bits_for(n_rows), settings.key_bits)
    n_sampled = n_sampled_rows(settings, n_rows)
    n_drawn_at_most = n_drawn(
        settings.colsample_bytree, n_own + sum(features.shape[1] for features in blocks.values())
    )
    counts = dict.fromkeys(COUNTERS, 0)
    counts["encryptions"] = n_sampled * plan.ciphertexts_per_row
    for features in blocks.values():
        shape = _shape(features, settings.max_bin, n_drawn_at_most)
        root = _root_sums(shape, n_sampled)
        below = _sums_below(settings, shape, n_sampled)
        # The root is summed once for all outputs; below it every tree sums its own smaller children.
        for sums, trees in [(root, 1), *((sums, settings.trees_per_round) for sums in below)]:
            values = trees * sums.n_values * plan.ciphertexts_per_row
            replies = -(-values // plan.values_per_reply) + sums.n_messages - 1
            counts["additions"] += trees * sums.n_additions * plan.ciphertexts_per_row
            counts["squarings"] += values * plan.value_bits
            counts["blindings"] += replies
            counts["decryptions"] += replies
    counts = {name: count * settings.n_estimators for name, count in counts.items()}
    return priced(counts, len(blocks), settings.key_bits)


def _shape(features: np.ndarray, max_bin: int, most: int) -> _PassiveShape:
    """The columns that cost most, `most` of them."""
    carried = carried_bins_at_most(features, max_bin, most)
    return _PassiveShape(len(carried), sum(carried))


def _root_sums(shape: _PassiveShape, n_rows: int) -> _Sums:
    additions = n_rows * shape.n_features
    return _Sums(additions, min(shape.n_carried, additions), 1)


def _sums_below(settings: BoostSettings, shape: _PassiveShape, n_rows: int) -> list[_Sums]:
    """Of one tree, level by level; in one where the number of leaves is what bounds it."""
    levels = []
    half = n_rows // 2 * shape.n_features  # smaller children of a level
    for level in range(1, settings.max_depth):
        nodes = min(1 << (level - 1), max(1, n_rows // 2))
        levels.append(_Sums(half, min(nodes * shape.n_carried, half), 1))
    if not settings.max_leaves:
        return levels
    n_splits = settings.max_leaves - 1
    # A tree of L leaves sums at most log2(L) / 2 of its rows: the smaller child has a share p <= 1/2 of its parent's
    # rows, and 2 p is at most the entropy of (p, 1 - p).
    depth = min(settings.max_depth - 1, n_splits.bit_length())
    additions = depth * (n_rows + 1) // 2 * shape.n_features
    n_messages = n_splits if settings.grow_policy == "lossguide" else len(levels)
    if not n_splits or not n_messages:
        return []
    total = min(n_splits * shape.n_carried, additions, sum(level.n_values for level in levels))
    return [_Sums(min(additions, sum(level.n_additions for level in levels)), total, n_messages)]
