"""Joint cells: the same sums with fewer additions, counted exactly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.secureboost.small import WEAK, some_data
from vflcrypto import SlotOverflowError, generate_keypair, plan_packing
from vflcrypto.layers import sum_in_layers
from vfldata import load_credit, load_nursery
from vfltree import SecureBoostClassifier, joint_cells
from vfltree.bin_sums import count_bins, fullest_bins
from vfltree.growing import follower
from vfltree.joint_cells import (
    MAX_LEAVES,
    MergeTree,
    SumPlan,
    find_trees,
    plan_sums,
    single_features,
    trees_of,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]
PAIR = (MergeTree(np.arange(2), np.array([[0, 1]])),)


def planned(binned: np.ndarray, nodes: list[np.ndarray], trees: Any) -> SumPlan:
    binned = np.asfortranarray(binned)
    n_bins = int(binned.max(initial=0)) + 1
    return plan_sums(binned, nodes, count_bins(binned, nodes, n_bins), trees)


def direct(binned: np.ndarray, nodes: list[np.ndarray], values: np.ndarray) -> list[int]:
    """The sums of every bin that holds rows, but for the first fullest one, in the order node, feature, bin."""
    sums = []
    for rows in nodes:
        for column in binned.T:
            sizes = np.bincount(column[rows])
            sums += [
                int(values[rows[column[rows] == b]].sum())
                for b in np.flatnonzero(sizes)
                if b != sizes.argmax()
            ]
    return sums


def executed(plan: SumPlan, values: np.ndarray) -> list[int]:
    """One addition at a time, so that they can be counted; every value is made once."""
    results: dict[int, int] = {}
    additions = 0
    for batch in plan.batches:
        elements = values.tolist()
        for layer in batch:
            made = []
            for start, stop, place in zip(layer.starts[:-1], layer.starts[1:], layer.places, strict=True):
                chosen = [elements[i] for i in layer.indices[start:stop]]
                total = chosen[0]
                for value in chosen[1:]:
                    total += value
                    additions += 1
                made.append(total)
                if place >= 0:
                    assert int(place) not in results
                    results[int(place)] = total
            elements = made
    assert additions == plan.n_multiplications
    return [results[i] for i in range(plan.n_values)]


@st.composite
def tables(draw: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    """Bins with ties, empty bins and constant features; disjoint nodes, some of one row."""
    n_rows, n_features = draw(st.integers(1, 60)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_bins = rng.integers(1, draw(st.integers(2, 9)), n_features, endpoint=True)
    binned = (rng.integers(0, 100, (n_rows, n_features)) % n_bins).astype(np.uint8)
    for f in range(1, n_features):  # alike features, which is what cells are made of
        same = rng.random(n_rows) < draw(st.sampled_from([0.0, 0.7, 1.0]))
        binned[same, f] = binned[same, f - 1] // 2 * 2
    owner = rng.integers(0, draw(st.integers(1, 5)), n_rows)
    return binned, [rows for k in range(-1, 5) if len(rows := np.flatnonzero(owner == k))]


class TestSums:
    @settings(max_examples=150, deadline=None)
    @given(tables())
    def test_layered_sums_equal_direct_sums_and_never_take_more_additions(self, table):
        binned, nodes = table
        values = np.random.default_rng(0).integers(-(2**40), 2**40, len(binned))
        alone = planned(binned, nodes, single_features(binned.shape[1]))
        joint = planned(binned, nodes, find_trees(binned, int(binned.max()) + 1))
        expected = direct(binned, nodes, values)
        assert executed(alone, values) == executed(joint, values) == expected
        assert joint.n_multiplications <= alone.n_multiplications

    @settings(max_examples=60, deadline=None)
    @given(tables(), st.integers(0, 2**32 - 1))
    def test_some_of_the_columns_in_any_order_keep_their_merges(self, table, seed):
        binned, nodes = table
        rng = np.random.default_rng(seed)
        columns = rng.permutation(binned.shape[1])[: rng.integers(1, binned.shape[1] + 1)]
        trees = find_trees(binned, int(binned.max()) + 1)
        chosen = trees_of(trees, columns)
        assert sorted(np.concatenate([tree.columns for tree in chosen])) == list(range(len(columns)))
        values = np.random.default_rng(0).integers(-(2**40), 2**40, len(binned))
        assert executed(planned(binned[:, columns], nodes, chosen), values) == direct(
            binned[:, columns], nodes, values
        )
        everything = trees_of(trees, np.arange(binned.shape[1]))
        for one, other in zip(everything, trees, strict=True):
            assert one.columns.tolist() == other.columns.tolist()
            assert one.merges.tolist() == other.merges.tolist()

    @pytest.mark.parametrize("n_features", [1, 2, MAX_LEAVES, MAX_LEAVES + 1, 150])
    def test_any_number_of_features(self, n_features):
        rng = np.random.default_rng(n_features)
        base = rng.integers(0, 4, (120, 1 + n_features // 4))
        binned = np.repeat(base, 4, axis=1)[:, :n_features].astype(np.uint16)
        nodes = [np.arange(0, 50), np.arange(50, 51), np.arange(51, 120)]
        values = rng.integers(-1000, 1000, 120)
        trees = find_trees(binned, 4)
        assert sorted(np.concatenate([tree.columns for tree in trees])) == list(range(n_features))
        assert max(len(tree.columns) for tree in trees) <= MAX_LEAVES
        plan = planned(binned, nodes, trees)
        assert executed(plan, values) == direct(binned, nodes, values)
        if n_features > 1:
            alone = planned(binned, nodes, single_features(n_features))
            assert plan.n_multiplications < alone.n_multiplications

    def test_large_nodes_are_searched_by_themselves(self):
        """Two halves of the rows, in which other features go together."""
        rng = np.random.default_rng(0)
        n = 2 * joint_cells.LARGE_NODE
        a, b = rng.integers(0, 30, (2, 2 * n))
        first = np.arange(2 * n) < n
        binned = np.stack([a, b, np.where(first, a, b), np.where(first, b, a)], axis=1).astype(np.uint8)
        half = [np.flatnonzero(first)]
        wrong = [MergeTree(np.arange(4), np.array([[0, 3], [1, 2], [4, 5]]))]
        plan = planned(binned, half, wrong)
        right = [MergeTree(np.arange(4), np.array([[0, 2], [1, 3], [4, 5]]))]
        assert plan.n_multiplications <= 1.02 * planned(binned[:n], half, right).n_multiplications
        assert plan.n_multiplications < 0.8 * planned(binned[:n], half, wrong).n_multiplications
        values = np.arange(2 * n)
        assert executed(plan, values) == direct(binned, half, values)

    def test_rows_are_called_by_their_positions(self):
        binned = np.array([[0], [1], [2], [2]], dtype=np.uint8)
        nodes, positions = [np.array([1, 2, 3])], np.array([-1, 0, 1, 2])
        plan = plan_sums(binned, nodes, count_bins(binned, nodes, 3), single_features(1), positions)
        assert executed(plan, np.array([10, 20, 30])) == [10]

    def test_no_more_cells_are_held_than_the_budget(self, monkeypatch):
        rng = np.random.default_rng(0)
        binned = np.repeat(rng.integers(0, 30, (400, 2)), 2, axis=1).astype(np.uint8)
        nodes, values = [np.arange(400)], np.arange(400)
        for budget in (0, 20, 40, 1000):
            monkeypatch.setattr(joint_cells, "MIN_CELL_BUDGET", budget)
            plan = planned(binned, nodes, find_trees(binned, 30))
            assert executed(plan, values) == direct(binned, nodes, values)
            cells = [int((layer.places < 0).sum()) for batch in plan.batches for layer in batch]
            assert max(cells) <= max(budget, 400 // 8)


class TestCounts:
    def test_one_feature_takes_its_rows_less_the_fullest_bin_and_the_other_bins(self):
        binned = np.array([[0] * 5 + [1] * 3 + [3] * 2], dtype=np.uint8).T
        assert planned(binned, [np.arange(10)], single_features(1)).n_multiplications == 10 - 5 - 2

    def test_two_equal_features_take_what_one_takes(self):
        rng = np.random.default_rng(0)
        column = rng.integers(0, 7, 200).astype(np.uint8)
        alone = planned(column[:, None], [np.arange(200)], single_features(1)).n_multiplications
        assert planned(np.stack([column, column], axis=1), [np.arange(200)], PAIR).n_multiplications == alone

    @pytest.mark.parametrize("n_bins", [2, 3, 5])
    def test_a_merge_takes_the_rows_and_the_cells_less_the_bins(self, n_bins):
        """All b^2 cells occur, m rows each, and one more row in (0, 0), so that bin 0 is the fullest of both."""
        m, b = 4, n_bins
        grid = np.array([(x, y) for x in range(b) for y in range(b)] * m + [(0, 0)], dtype=np.uint8)
        plan = planned(grid, [np.arange(len(grid))], PAIR)
        cells = b * b - 1  # without (0, 0), which neither needs
        rows_to_cells = cells * (m - 1)
        cells_to_bins = 2 * (b - 1) * (b - 1)  # b cells in each of the b - 1 bins of either feature
        assert plan.n_multiplications == rows_to_cells + cells_to_bins
        alone = planned(grid, [np.arange(len(grid))], single_features(2)).n_multiplications
        assert alone == 2 * (b - 1) * (b * m - 1)

    def test_a_merge_that_does_not_pay_is_not_made(self):
        binned = np.stack([np.arange(20), np.arange(20)[::-1] // 2], axis=1).astype(np.uint8)
        plan = planned(binned, [np.arange(20)], PAIR)
        alone = planned(binned, [np.arange(20)], single_features(2))
        assert plan.n_multiplications == alone.n_multiplications
        assert [len(batch) for batch in plan.batches] == [1]

    def test_the_ledger_counts_what_is_multiplied(self, monkeypatch):
        X, y = some_data("five", n_rows=300)
        plans = []

        def noted(*args: Any) -> SumPlan:
            plans.append(plan_sums(*args))
            return plans[-1]

        multiplied = []
        monkeypatch.setattr(follower, "plan_sums", noted)
        from vflcrypto.kernels import Ring

        units = Ring._units

        def counted(self: Any, *args: Any) -> Any:
            length = args[-2]
            multiplied.append(int((length - 1).clip(0).sum()))
            return units(self, *args)

        def spied(*args: Any, **kwargs: Any) -> Any:
            with monkeypatch.context() as patch:
                patch.setattr(Ring, "_units", counted)
                return sum_in_layers(*args, **kwargs)

        monkeypatch.setattr("vfltree.sealing.sum_in_layers", spied)
        model = SecureBoostClassifier(
            1, max_depth=3, partition={"a": [0, 1], "b": range(2, 9)}, random_state=0, **WEAK
        )
        model.fit(X, y)
        per_row = plan_packing(300, 5, key_bits=512).ciphertexts_per_row
        assert model.costs_["additions"] == sum(multiplied) > 0
        assert model.costs_["additions"] == per_row * sum(plan.n_multiplications for plan in plans)


@pytest.fixture(scope="module")
def key() -> Any:
    return generate_keypair(512, allow_weak_key=True)[1]


class TestEncryptedLayers:
    def sealed(self, key: Any, n_rows: int, planned_rows: int) -> tuple[Any, np.ndarray]:
        g = np.arange(n_rows) - 3
        plan = plan_packing(planned_rows, key_bits=512)
        return plan.encrypt(key, g[:, None], np.abs(g)[:, None]), g

    def test_every_row_of_a_value_counts_through_all_layers_and_only_once(self, key):
        """Six rows in the fullest value; the longest segments multiplied would say more."""
        binned = np.stack([np.arange(12) // 6, np.arange(12) // 3, np.arange(12) // 6], axis=1).astype(
            np.uint8
        )
        plan = planned(binned, [np.arange(12)], [MergeTree(np.arange(3), np.array([[0, 1], [2, 3]]))])
        assert max(len(batch) for batch in plan.batches) > 1
        rows, g = self.sealed(key, 12, 12)
        sums = sum_in_layers(rows, plan.n_values, plan.batches)
        assert sums.terms == 6
        assert sums.encoding.unpack_values(key.decrypt_words(sums.reshape(-1)).reshape(plan.n_values, 1, -1))[
            0
        ].ravel().tolist() == direct(binned, [np.arange(12)], g)

    def test_more_rows_than_planned_overflow(self, key):
        rows, _ = self.sealed(key, 4, 4)
        first = joint_cells.SumLayer(np.array([0, 2, 4]), np.arange(4), np.array([-1, -1]))
        twice = joint_cells.SumLayer(np.array([0, 3]), np.array([0, 1, 1]), np.array([0]))
        once = replace(twice, starts=np.array([0, 2]), indices=np.arange(2))
        assert sum_in_layers(rows, 1, [(first, once)]).terms == 4
        with pytest.raises(SlotOverflowError, match="6"):
            sum_in_layers(rows, 1, [(first, twice)])

    @pytest.mark.parametrize("places", [[0, -1], [0, 0], [1, -1]])
    def test_a_value_that_is_not_made_once_is_refused(self, key, places):
        rows, _ = self.sealed(key, 4, 4)
        layer = joint_cells.SumLayer(np.array([0, 2, 4]), np.arange(4), np.array(places))
        with pytest.raises(ValueError, match="times by the layers"):
            sum_in_layers(rows, 2, [(layer,)])


def multiplications(data: Any, monkeypatch: Any, **parameters: Any) -> tuple[float, float]:
    """Per row, passive feature and tree: single features, and joint cells. Trained in the clear: the same trees."""
    counts = [0, 0]

    def noted(binned: Any, nodes: Any, sizes: Any, trees: Any, positions: Any, groups: Any) -> SumPlan:
        alone = plan_sums(binned, nodes, sizes, single_features(binned.shape[1]), positions, groups)
        joint = plan_sums(binned, nodes, sizes, trees, positions, groups)
        counts[0] += alone.n_multiplications
        counts[1] += joint.n_multiplications
        return joint

    monkeypatch.setattr(follower, "plan_sums", noted)
    monkeypatch.setattr(
        follower.TreeFollower, "_find_trees", lambda self, _: find_trees(self._binned, self._mapper.n_bins)
    )
    model = SecureBoostClassifier(
        5, max_depth=6, partition=data.partition, encryption="none", random_state=0, **parameters
    ).fit(data.X_train, data.y_train)
    n_classes = len(model.classes_)
    n_passive = len(list(data.partition.values())[1])
    per = len(data.X_train) * n_passive * 5 * (1 if n_classes == 2 else n_classes)
    return counts[0] / per, counts[1] / per


@pytest.mark.slow
def test_nursery_takes_at_most_018_multiplications_per_row_feature_and_tree(monkeypatch):
    alone, joint = multiplications(load_nursery(one_hot="full"), monkeypatch, learning_rate=0.3)
    assert joint <= 0.18 < 0.25 < alone


@pytest.mark.slow
def test_credit_takes_at_most_088_multiplications_per_row_feature_and_tree(monkeypatch, data_home):
    alone, joint = multiplications(load_credit(data_home=data_home), monkeypatch)
    assert joint <= 0.88 < 1.5 < alone


def test_the_fullest_bin_is_the_first_of_equals():
    counts = np.array([[[0, 2, 2], [1, 0, 3]]])
    assert fullest_bins(counts).tolist() == [[1, 2]]
