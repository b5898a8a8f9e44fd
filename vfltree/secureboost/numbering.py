"""Numbers of nodes and trees that both sides of the protocol agree on."""

from __future__ import annotations

from ..tree import record_id, record_parts


def round_trees(round_: int, n_outputs: int) -> range:
    """Tree numbers of a round: one tree per output."""
    return range(round_ * n_outputs, (round_ + 1) * n_outputs)


def child_ids(node: int) -> tuple[int, int]:
    """Record ids of the left and the right child."""
    tree, number = record_parts(node)
    return int(record_id(tree, 2 * number)), int(record_id(tree, 2 * number + 1))
