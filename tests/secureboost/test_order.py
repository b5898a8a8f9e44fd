"""Leaf-wise growth in batches of certain splits is leaf-wise growth; passive parties hold it to its limits."""

from __future__ import annotations

import heapq
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.secureboost.small import some_data
from tests.secureboost.test_protocol import N_ROWS, ROOT, gradients, half_split, joined, record
from vflparty import RemoteProtocolError
from vfltree import SecureBoostClassifier
from vfltree.growing.masks import pack_masks
from vfltree.growing.messages import SumChildren
from vfltree.growing.nodes import Node, Split
from vfltree.growing.numbering import child_ids
from vfltree.secureboost.order import LeafOrder, LevelOrder
from vfltree.tree import TreeBuilder, record_id, record_parts

pytestmark = pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning")


class Forest:
    """Trees whose nodes have gains given by a seed; few different ones, so that many are equal."""

    def __init__(self, seed: int, n_trees: int, max_depth: int) -> None:
        self.seed, self.n_trees, self.max_depth = seed, n_trees, max_depth

    def gain(self, node: int) -> float | None:
        """None: no split."""
        rng = np.random.default_rng([self.seed, node])
        depth = int(record_parts(node)[1]).bit_length() - 1
        return float(rng.integers(1, 6)) if depth < self.max_depth and rng.random() < 0.8 else None

    def most_splits(self, node: Node) -> int:
        depth = int(record_parts(node.record)[1]).bit_length() - 1
        return (1 << (self.max_depth - depth)) - 1

    def roots(self) -> list[int]:
        return [int(record_id(tree, 1)) for tree in range(self.n_trees)]

    def splits(self, nodes: list[int]) -> list[Split]:
        none = np.zeros(0, dtype=np.int64)
        return [
            Split(Node(node, 0, TreeBuilder(), 0, none, 0, none), 0, gain, none, none, none)
            for node in nodes
            if (gain := self.gain(node)) is not None
        ]

    def one_by_one(self, max_leaves: int) -> set[int]:
        """Nodes that leaf-wise growth splits."""
        done = set()
        for root in self.roots():
            queue, n_made, n_leaves = [], 0, 1
            for node in [root]:
                if (gain := self.gain(node)) is not None:
                    heapq.heappush(queue, (-gain, n_made, node))
            while queue and (not max_leaves or n_leaves < max_leaves):
                _, _, node = heapq.heappop(queue)
                done.add(node)
                n_leaves += 1
                for child in child_ids(node):
                    n_made += 1
                    if (gain := self.gain(child)) is not None:
                        heapq.heappush(queue, (-gain, n_made, child))
        return done

    def in_batches(self, max_leaves: int) -> tuple[set[int], list[int], int]:
        """The same by `LeafOrder`; also the nodes that became leaves after all, and how many batches it took."""
        order = LeafOrder(max_leaves, self.most_splits)
        done: set[int] = set()
        leaves: list[int] = []
        found, n_batches = self.splits(self.roots()), 0
        while found or order.waiting:
            now, over = order.choose(found)
            leaves += [node.record for node in over]
            done |= {split.node.record for split in now}
            children = [
                child
                for split in now
                for child in child_ids(split.node.record)
                if not order.is_full(split.node)
            ]
            found, n_batches = self.splits(children), n_batches + bool(now)
        return done, leaves, n_batches


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 6), st.integers(0, 40))
def test_batches_split_the_nodes_that_one_after_the_other_would(seed, n_trees, max_depth, max_leaves):
    forest = Forest(seed, n_trees, max_depth)
    expected = forest.one_by_one(max_leaves)
    done, leaves, n_batches = forest.in_batches(max_leaves)
    assert done == expected
    assert not done & set(leaves)
    assert n_batches <= max(len(expected), 1)
    if max_leaves == 0 or max_leaves >= 1 << max_depth:
        assert n_batches <= max_depth  # everything is certain, so growth goes level by level


def test_the_last_levels_are_asked_for_together():
    forest = Forest(3, 1, 6)
    done, _, n_batches = forest.in_batches(20)
    assert len(done) == 19
    assert n_batches < 14


def test_levels_are_filled_from_left_to_right():
    forest, order = Forest(0, 2, 6), LevelOrder(3)
    splits = forest.splits([int(record_id(0, n)) for n in range(1, 30)])
    now, leaves = order.choose(splits)
    assert now == splits[:2]
    assert leaves == [split.node for split in splits[2:]]
    assert order.is_full(splits[0].node)
    assert not order.is_full(forest.splits([int(record_id(1, n)) for n in range(1, 30)])[0].node)


def test_leaf_wise_growth_without_a_limit_takes_the_exchanges_of_levels():
    X, y = some_data("five")
    models = [
        SecureBoostClassifier(2, max_depth=4, encryption="none", random_state=0, grow_policy=policy).fit(X, y)
        for policy in ("depthwise", "lossguide")
    ]
    assert models[0].traffic_.equals(models[1].traffic_)
    assert (models[0].predict_proba(X) == models[1].predict_proba(X)).all()


# ---- what a passive party refuses


def leafwise(max_leaves: int = 3, max_depth: int = 3):
    party, _ = joined(max_leaves=max_leaves, max_depth=max_depth)
    party.receive(gradients())
    return party


def split_of(node: int, level: int, n_rows: int) -> SumChildren:
    left = np.arange(n_rows) < n_rows // 2
    return SumChildren(0, level, np.array([node]), pack_masks([left]))


LEFT, RIGHT = child_ids(ROOT)


def test_nodes_stay_open_until_they_are_split():
    party = leafwise(max_leaves=4)
    party.receive(half_split())
    party.receive(split_of(RIGHT, 2, N_ROWS // 2))
    party.receive(split_of(LEFT, 3, N_ROWS // 2))
    assert set(party._round.open_nodes) == {*child_ids(LEFT), *child_ids(RIGHT)}
    levelwise, _ = joined()
    levelwise.receive(gradients())
    levelwise.receive(half_split())
    levelwise.receive(split_of(RIGHT, 2, N_ROWS // 2))
    with pytest.raises(RemoteProtocolError, match=r"level 3 was asked|not open"):
        levelwise.receive(split_of(LEFT, 3, N_ROWS // 2))


def test_a_node_is_not_split_again():
    party = leafwise(max_leaves=9)
    party.receive(half_split())
    with pytest.raises(RemoteProtocolError, match="is not open"):
        party.receive(half_split(level=2))
    party = leafwise(max_leaves=9)
    party.receive(record())
    with pytest.raises(RemoteProtocolError, match="split twice"):
        party.receive(record())


@pytest.mark.parametrize(
    "second", [split_of(LEFT, 2, N_ROWS // 2), record(node=RIGHT, slot=0, level=1)], ids=["sums", "records"]
)
def test_more_splits_than_leaves_allow_are_refused(second):
    party = leafwise(max_leaves=2)
    party.receive(half_split())
    with pytest.raises(RemoteProtocolError, match="2 splits of tree 0 were asked, 2 leaves were agreed"):
        party.receive(second)


def test_depth_is_bounded_by_the_node_not_by_the_step():
    party = leafwise(max_leaves=20, max_depth=2)
    party.receive(half_split())
    with pytest.raises(RemoteProtocolError, match="level 2 was asked, depth 2 was agreed"):
        party.receive(split_of(LEFT, 2, N_ROWS // 2))


def test_steps_without_a_node_are_refused():
    party = leafwise()
    with pytest.raises(RemoteProtocolError, match="no split node is named"):
        party.receive(SumChildren(0, 1, np.zeros(0, np.int64), np.zeros(0, np.uint8)))


def test_a_number_of_leaves_that_cannot_be_is_refused():
    with pytest.raises(RemoteProtocolError, match="max_leaves must be at least 0"):
        joined(max_leaves=-1)


def test_children_partition_their_parent_in_any_order():
    party = leafwise(max_leaves=5)
    party.receive(half_split())
    for message in (
        replace(split_of(LEFT, 2, N_ROWS // 2), left=pack_masks([np.ones(N_ROWS // 2, bool)])),
        replace(split_of(LEFT, 2, N_ROWS // 2), left=np.zeros(2, np.uint8)),
    ):
        with pytest.raises(RemoteProtocolError, match=r"child without rows|masks of 1 bytes"):
            party.receive(message)
