"""What an encrypted forest will cost at most, before a key is made: counted operations times a measured price."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..prices import carried_bins_at_most, priced
from ..sealing import COUNTERS, SlotLayout
from .groups import group_trees
from .settings import ForestSettings


def estimate(
    settings: ForestSettings, layout: SlotLayout, blocks: Mapping[str, np.ndarray], n_own: int
) -> dict[str, Any]:
    """Upper bounds of what `costs_` will say, and seconds on this machine and one thread.

    layout : what a row holds.  blocks : passive party -> its features, float64 (n_rows, n_features).  n_own : features
    of the active party.

    Trees are taken to be full, and every feature that is drawn to be drawn from the party in question, those of most
    bins; what siblings share is not taken off.
    """
    n_rows, plan = layout.n_rows, layout.plan(settings.key_bits)
    n_draws = settings.n_draws(n_rows)
    n_features = n_own + sum(features.shape[1] for features in blocks.values())
    n_drawn = settings.n_drawn_features(n_features)
    n_groups = len(group_trees(settings, n_rows, n_drawn, layout.row_shape[0]))
    per_row = plan.ciphertexts_per_row
    counts = dict.fromkeys(COUNTERS, 0)
    counts["encryptions"] = n_rows * per_row
    most_nodes = max(1, n_draws // max(1, settings.least_to_split(n_draws) // 2))
    for features in blocks.values():
        carried = carried_bins_at_most(features, settings.max_bin, n_drawn)
        for level in range(settings.max_depth):
            nodes = min(1 << level, most_nodes)
            # Each drawn slot of a node takes its rows once at most, and as many values as it has rows or bins.
            additions = n_draws * len(carried) * per_row
            values = min(nodes * sum(carried), n_draws * len(carried)) * per_row * settings.n_estimators
            replies = values // plan.values_per_reply + n_groups
            counts["additions"] += additions * settings.n_estimators
            counts["squarings"] += values * plan.value_bits
            counts["blindings"] += replies
            counts["decryptions"] += replies
    return priced(counts, len(blocks), settings.key_bits)
