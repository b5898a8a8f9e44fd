"""Trees and lookup tables: numbers that carry their path, rules that agree with bins, rows that find their
leaf."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vfltree.binning import BinMapper
from vfltree.tree import (
    RecordTable,
    Router,
    TreeBuilder,
    apply_trees,
    goes_left,
    heap_depth,
    record_id,
    record_parts,
    sum_leaves,
)

NAN, INF = np.nan, np.inf


def table(*records):
    made = RecordTable.empty()
    for record in records:
        made = made.append(*record)
    return made


def two_party_tree():
    """Root: party 0, x < 5. Its left child: party 1, x < 2, missing left. Leaves 10, 20, 30 from the left."""
    builder = TreeBuilder()
    left, right = builder.split(0, owner=0, gain=3.0)
    low, high = builder.split(left, owner=1, gain=1.0)
    for at, value in ((low, 10.0), (high, 20.0), (right, 30.0)):
        builder.set_leaf(at, value)
    tables = {0: table((record_id(0, 1), 0, 5.0, False)), 1: table((record_id(0, 2), 1, 2.0, True))}
    return builder.freeze(), tables


@given(st.integers(0, 2**31 - 1), st.integers(1, 2**32 - 1))
def test_a_record_id_carries_tree_and_node(tree, node):
    record = record_id(tree, node)
    assert record >= 0
    assert record_parts(record) == (tree, node)


def test_record_ids_of_arrays_and_their_order():
    ids = record_id([0, 0, 1], [1, 3, 1])
    assert (np.diff(ids) > 0).all()
    assert record_parts(ids)[1].tolist() == [1, 3, 1]


@pytest.mark.parametrize(("tree", "node"), [(-1, 1), (2**31, 1), (0, 0), (0, 2**32)])
def test_numbers_that_do_not_fit_a_record_id_are_refused(tree, node):
    with pytest.raises(ValueError, match="fit a record id"):
        record_id(tree, node)


def test_the_depth_of_a_node_is_in_its_number():
    assert heap_depth([1, 2, 3, 4, 7, 8, 2**32 - 1]).tolist() == [0, 1, 1, 2, 2, 3, 31]
    with pytest.raises(ValueError, match="start at 1"):
        heap_depth(0)


def test_a_value_equal_to_the_threshold_goes_right_and_missing_ones_as_told():
    values, thresholds = np.array([1.0, 2.0, NAN, NAN]), np.full(4, 2.0)
    answers = goes_left(values, thresholds, np.array([False, False, False, True]))
    assert answers.tolist() == [True, False, False, True]


def test_an_infinite_threshold_sends_every_present_value_left():
    values = np.array([-INF, 0.0, INF, NAN])
    assert goes_left(values, np.full(4, INF), np.zeros(4, bool)).tolist() == [True, True, True, False]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from([-INF, -1.0, 0.0, 0.5, 1.0, INF, NAN]), min_size=1, max_size=12),
    st.integers(0, 6),
    st.booleans(),
)
def test_threshold_and_bin_send_every_value_the_same_way(values, bin_, missing_left):
    X = np.array(values)[:, None]
    mapper = BinMapper.from_data(X)
    bin_ = min(bin_, len(mapper.cuts[0]))
    binned = mapper.transform(X)[:, 0]
    by_bin = np.where(binned == mapper.missing_bin, missing_left, binned <= bin_)
    threshold = mapper.threshold(0, bin_)
    assert (goes_left(X[:, 0], np.full(len(X), threshold), np.full(len(X), missing_left)) == by_bin).all()


def test_records_are_found_whatever_their_order_of_arrival():
    records = table((50, 1, 0.5, True), (20, 0, 1.5, False), (70, 2, 2.5, False))
    assert records.ids.tolist() == [20, 50, 70]
    assert records.find(np.array([70, 20, 60, 99, 50])).tolist() == [2, 0, -1, -1, 1]
    assert records.columns[records.find(np.array([50]))] == 1
    assert RecordTable.empty().find(np.array([5])).tolist() == [-1]


def test_a_record_stands_in_a_table_once():
    with pytest.raises(ValueError, match="record 50 exists already"):
        table((50, 1, 0.5, True), (50, 1, 0.5, True))


@pytest.mark.parametrize(
    ("ids", "threshold"), [([2, 1], 0.0), ([1, 1], 0.0), ([1, 2], NAN)], ids=["order", "twice", "NaN"]
)
def test_a_table_that_cannot_be_is_refused(ids, threshold):
    with pytest.raises(ValueError, match=r"increasing|either a threshold or a set"):
        RecordTable(
            np.array(ids),
            np.zeros(2, np.int32),
            np.full(2, threshold),
            np.zeros(2, bool),
            np.zeros((2, 0), np.uint8),
        )


def test_tables_and_trees_are_read_only():
    tree, tables = two_party_tree()
    for holder, name in ((tree, "value"), (tables[0], "thresholds")):
        with pytest.raises(ValueError, match="read-only"):
            getattr(holder, name)[0] = 1.0


def test_the_nearest_ancestor_skips_nodes_of_others_and_names_the_turn():
    # Tree 0: 1 is ours, 2 and 3 are not, 4 and 5 are under 2, 7 is under 3. Tree 1 has only node 2.
    ids = np.sort(np.concatenate([record_id(0, [1, 4, 5, 7, 15]), record_id(1, [2])]))
    n = len(ids)
    ancestors, turns = RecordTable(
        ids, np.zeros(n, np.int32), np.zeros(n), np.zeros(n, bool), np.zeros((n, 0), np.uint8)
    ).nearest_ancestors()
    assert ancestors.tolist() == [-1, 0, 0, 0, 3, -1]
    assert turns[1:5].tolist() == [1, 1, 0, 0]


def test_rows_pass_through_the_nodes_of_both_parties():
    tree, tables = two_party_tree()
    blocks = {
        0: np.array([[4.0], [4.0], [5.0], [NAN], [4.0]]),
        1: np.array([[0, 1.0], [0, 2.0], [0, 1.0], [0, 1.0], [0, NAN]]),
    }
    leaves = apply_trees([tree, tree], {k: merged(tables[k]) for k in tables}, blocks, 5)
    assert tree.value[leaves[:, 0], 0].tolist() == [10, 20, 30, 30, 10]
    assert (leaves[:, 1] == leaves[:, 0]).all()
    raw = sum_leaves([tree, tree], leaves, [0, 1], np.array([1.0, 2.0]))
    assert raw[:, 1].tolist() == [12, 22, 32, 32, 12]


def merged(records):
    """The same records for trees 0 and 1."""
    again = record_id(1, record_parts(records.ids)[1])
    return RecordTable(
        np.concatenate([records.ids, again]),
        np.tile(records.columns, 2),
        np.tile(records.thresholds, 2),
        np.tile(records.missing_left, 2),
        np.tile(records.right, (2, 1)),
    )


def test_only_rows_that_stand_at_a_node_of_its_own_are_asked_of_a_party():
    tree, _ = two_party_tree()
    router = Router([tree], 3)
    assert router.owners_waiting() == [0]
    ask = router.waiting(0)
    assert (ask.rows.tolist(), ask.ids.tolist()) == ([0, 1, 2], [record_id(0, 1)] * 3)
    router.advance(ask, np.array([True, False, True]))
    ask = router.waiting(1)
    assert (ask.rows.tolist(), ask.ids.tolist()) == ([0, 2], [record_id(0, 2)] * 2)
    router.advance(ask, np.array([True, False]))
    assert router.owners_waiting() == []
    assert tree.value[router.leaves()[:, 0], 0].tolist() == [10, 30, 20]


def test_a_missing_answer_is_noticed():
    tree, _ = two_party_tree()
    router = Router([tree], 3)
    with pytest.raises(ValueError, match="3 answers were due, 2 came"):
        router.advance(router.waiting(0), np.array([True, False]))


def test_no_trees_and_no_rows_end_at_once():
    tree, _ = two_party_tree()
    assert Router([], 3).leaves().shape == (3, 0)
    assert Router([], 3).owners_waiting() == []
    assert Router([tree], 0).leaves().shape == (0, 1)
    assert sum_leaves([], np.empty((3, 0), np.int32), [], np.array([0.5])).tolist() == [[0.5]] * 3


def test_a_tree_knows_its_shape():
    tree, _ = two_party_tree()
    assert (tree.n_nodes, tree.n_leaves, tree.depth) == (5, 3, 2)
    assert tree.node.tolist() == [1, 2, 3, 4, 5]


def test_a_tree_is_finished_only_when_no_node_is_open():
    builder = TreeBuilder()
    left, right = builder.split(0, owner=0)
    builder.set_leaf(left, 1.0)
    with pytest.raises(ValueError, match="1 of 3 nodes are still open"):
        builder.freeze()
    for act in (
        lambda: builder.split(left, 0),
        lambda: builder.set_leaf(0, 1.0),
        lambda: builder.split(9, 0),
    ):
        with pytest.raises(ValueError, match="no open node"):
            act()
    builder.set_leaf(right, 2.0)
    assert builder.freeze().n_leaves == 2


def test_scores_are_added_in_the_precision_they_start_in():
    tree, _ = two_party_tree()
    leaves = np.full((1, 1), 2, dtype=np.int32)
    for dtype in (np.float32, np.float64):
        assert sum_leaves([tree], leaves, [0], np.zeros(1, dtype)).dtype == dtype


def test_leaves_may_hold_a_value_per_output():
    builder = TreeBuilder()
    left, right = builder.split(0, owner=0)
    builder.set_leaf(left, [0.25, 0.75])
    builder.set_leaf(right, np.array([1.0, 0.0]))
    tree = builder.freeze()
    assert tree.value.tolist() == [[0, 0], [0.25, 0.75], [1, 0]]
    leaves = np.array([[1, 2], [2, 2]], dtype=np.int32)
    raw = sum_leaves([tree, tree], leaves, [0, 0], np.zeros(2))
    assert raw.tolist() == [[1.25, 0.75], [2, 0]]  # every tree adds to every output


def test_leaves_of_different_lengths_are_refused():
    builder = TreeBuilder()
    left, right = builder.split(0, owner=0)
    builder.set_leaf(left, [1.0, 2.0])
    builder.set_leaf(right, 1.0)
    with pytest.raises(ValueError, match="one length"):
        builder.freeze()
