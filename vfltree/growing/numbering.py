"""Numbers that both sides of the protocol agree on: of parties, trees and nodes."""

from __future__ import annotations

from ..tree import NODE_BITS, TREE_BITS, record_id, record_parts

MAX_DEPTH = NODE_BITS - 2  # a node's heap number, its children's too, fits a record id
MAX_TREES = 1 << TREE_BITS
OWN = 0  # the active party's number as the owner of a split; passive parties count from 1


def round_trees(round_: int, n_outputs: int) -> range:
    """Tree numbers of a round: one tree per output."""
    return range(round_ * n_outputs, (round_ + 1) * n_outputs)


def child_ids(node: int) -> tuple[int, int]:
    """Record ids of the left and the right child."""
    tree, number = record_parts(node)
    left, right = record_id(tree, [2 * number, 2 * number + 1]).tolist()
    return left, right


def parent_and_sibling(node: int) -> tuple[int, int]:
    """Record ids of a child's parent and of the parent's other child."""
    tree, number = record_parts(node)
    return int(record_id(tree, number // 2)), int(record_id(tree, number ^ 1))


def smaller_child(n_left: int, n_right: int) -> int:
    """Which child is summed, by sampled rows: 0 is the left one, also if equal; the other follows by subtraction."""
    return 0 if n_left <= n_right else 1
