"""Which trees grow together: as many as memory has room for, so that rounds do not grow with the number of trees."""

from __future__ import annotations

from .settings import ForestSettings

SUMS_AT_ONCE = 1 << 18  # of a passive party at one level: 200 MB of ciphertexts under the default key
CELLS_AT_ONCE = 1 << 24  # of histograms that the active party holds: 128 MB
TREES_AT_ONCE = 1 << 12
DRAWS_AT_ONCE = 1 << 26  # rows times trees: two bytes each in a message, and row numbers at both sides


def group_trees(settings: ForestSettings, n_rows: int, max_features: int, n_kinds: int) -> list[range]:
    """Consecutive trees, a range a group.

    max_features : drawn at a node.  n_kinds : numbers that a row holds.
    """
    n_trees, n_bins = settings.n_estimators, settings.max_bin + 1
    nodes = min(1 << (settings.max_depth - 1), max(1, n_rows // 2))  # the widest level that is summed
    sums = min(nodes * n_bins, n_rows) * max_features
    cells = nodes * n_bins * max_features * n_kinds
    together = min(SUMS_AT_ONCE // sums, CELLS_AT_ONCE // cells, DRAWS_AT_ONCE // n_rows, TREES_AT_ONCE)
    step = max(1, min(together, n_trees))
    return [range(start, min(start + step, n_trees)) for start in range(0, n_trees, step)]
