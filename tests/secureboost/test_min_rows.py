"""A passive party sends no sum over fewer than `min_rows_per_sum` rows, and none follows from what it sends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.leakage import views
from tests.secureboost.small import WEAK, assert_same_model, blocks, some_data, thirds
from tests.secureboost.test_categories import PARTIES, some_frame
from vflparty import InProcessNetwork, RemoteProtocolError, codec
from vfltree import SecureBoostClassifier, SecureBoostRegressor
from vfltree.bin_groups import MIN_ROWS, BinGroups
from vfltree.growing import follower, grouping
from vfltree.growing.models import record_table
from vfltree.secureboost import ActiveParty, BoostSettings, PassiveParty
from vfltree.secureboost.messages import Histograms
from vfltree.secureboost.nodes import BoostRound

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]
OBJECTIVES: dict[str, dict[str, Any]] = {
    "binary": {"objective": "binary:logistic"},
    "five": {"objective": "multi:softprob", "n_classes": 5},
    "regression": {"objective": "reg:squarederror", "n_classes": 1},
}


def recorded(task: str = "binary", k: int = 10, missing: bool = True, **settings: Any) -> views.Training:
    X, y = some_data(task, n_rows=300, missing=missing)
    halves = [X[:, :3], X[:, 3:]]
    settings = {"n_estimators": 3, "max_depth": 4, **OBJECTIVES[task], **settings}
    return views.train(halves, y.astype(float), halves, min_rows_per_sum=k, **settings)


def rows_of_sums(training: views.Training):
    """For every sum that the active party has or derives: its node, and the rows that truly are in it.

    A feature whose bins are all one group is passed over: its sum is the node's total, which is no secret.
    """
    for round_ in training.active.rounds:
        bins = training.judge.bins[:, training.judge.orders[round_.number]]
        for node in round_.nodes:
            for place, (slot, borders) in enumerate(zip(node.slots, node.borders, strict=True)):
                ends = np.flatnonzero(borders[:-1])
                joined = ends[np.searchsorted(ends, np.minimum(bins[node.rows, slot], ends[-1]))]
                missing = (bins[node.rows, slot] == len(borders) - 1) & borders[-1]
                names = np.where(missing, len(borders) - 1, joined)
                if borders.sum() > 1:
                    for name in set(names.tolist()):
                        yield round_, node, place, name, node.rows[names == name]


def fewest_rows(training: views.Training) -> int:
    return min(len(rows) for *_, rows in rows_of_sums(training))


GROWTH: dict[str, dict[str, Any]] = {
    "all": {},
    "rows": {"subsample": 0.6},
    "columns": {"colsample_bytree": 0.7, "colsample_bylevel": 0.6},
    "goss": {"sampling_method": "goss"},
    "leaf-wise": {"grow_policy": "lossguide", "max_leaves": 9, "max_depth": 7},
}


@pytest.mark.parametrize("growth", GROWTH.values(), ids=GROWTH)
@pytest.mark.parametrize("missing", [False, True], ids=["whole", "missing"])
@pytest.mark.parametrize("task", ["binary", "five", "regression"])
def test_every_sum_that_is_sent_or_follows_is_over_k_rows_at_least(task, missing, growth):
    training = recorded(task, missing=missing, **growth)
    checked = 0
    for round_, node, place, name, rows in rows_of_sums(training):
        assert len(rows) >= 10
        # The rows are the true ones: their gradients make the sum.
        assert np.array_equal(round_.gradients[rows, :, node.output].sum(axis=0), node.sums[place, name])
        checked += 1
    assert checked > 200


def test_without_the_policy_single_rows_are_seen():
    assert fewest_rows(recorded(k=1)) == 1


def test_a_planted_violation_is_noticed(monkeypatch):
    """Groups of the root that are kept all the way down."""

    def keep(parent, smaller, k):
        small = smaller.astype(np.int32)
        return BinGroups(small, parent.group), BinGroups(parent.counts - small, parent.group)

    monkeypatch.setattr(grouping, "child_groups", keep)
    assert fewest_rows(recorded()) < 10


def test_rows_that_were_not_drawn_do_not_count():
    """Each sum holds k drawn rows, however many more lie in its bins."""
    training = recorded(subsample=0.3, k=20)
    assert fewest_rows(training) >= 20


@pytest.mark.parametrize("task", ["binary", "five", "regression"])
@pytest.mark.parametrize("k", [3, 10, 40])
def test_encrypted_training_equals_plain(task, k):
    X, y = some_data(task, missing=True)
    kind = SecureBoostRegressor if task == "regression" else SecureBoostClassifier
    models = [
        kind(
            2, max_depth=3, random_state=seed, min_rows_per_sum=k, partition=thirds(X.shape[1], 3), **more
        ).fit(X, y)
        for seed, more in ((1, {"encryption": "none"}), (2, WEAK))
    ]
    assert_same_model(*models, X)


def test_a_process_network_gives_the_same_model():
    X, y = some_data("binary", missing=True)
    models = [
        SecureBoostClassifier(
            2, max_depth=3, random_state=1, min_rows_per_sum=15, encryption="none", network=network
        ).fit(X, y)
        for network in ("inprocess", "process")
    ]
    assert_same_model(*models, X)


def test_ten_rows_are_the_default_of_estimators_and_parties(sums_of_any_rows):
    assert sums_of_any_rows == {MIN_ROWS} == {10}


def test_one_changes_nothing_and_sends_no_groups():
    training = recorded(k=1)
    assert all(node.borders.all() for round_ in training.active.rounds for node in round_.nodes)


def test_a_party_of_few_rows_is_not_asked_in_vain():
    """19 rows: no sum may be sent, so the active party splits alone, and nothing of the other party travels."""
    rng = np.random.default_rng(0)
    XA, XP = rng.normal(size=(2, 19, 1))
    y = (XP[:, 0] > 0).astype(int)
    model = SecureBoostClassifier(2, min_child_weight=0, encryption="none", min_rows_per_sum=10).fit(
        blocks(XA, XP), y
    )
    assert (model._active_model.owner != 1).all()
    exact = SecureBoostClassifier(2, min_child_weight=0, encryption="none", min_rows_per_sum=1).fit(
        blocks(XA, XP), y
    )
    assert (exact._active_model.owner == 1).any()


def test_few_missing_values_go_right_with_the_highest_group():
    rng = np.random.default_rng(0)
    XA, XP = np.zeros((100, 1)), rng.normal(size=(100, 1))
    XP[:4] = np.nan
    y = (np.nan_to_num(XP[:, 0], nan=-1.0) > 0).astype(int)  # missing values would go left
    model = SecureBoostClassifier(
        1, max_depth=1, min_child_weight=0, encryption="none", min_rows_per_sum=10
    ).fit(blocks(XA, XP), y)
    (table,) = model._passive_models.values()
    assert table.missing_left.tolist() == [False]
    leaves = model.apply(blocks(XA, XP))[:, 0]
    assert set(leaves[:4]) == set(leaves[XP[:, 0] == np.nanmax(XP)])


@pytest.mark.parametrize("value", [0, -3])
def test_less_than_one_row_is_refused(value):
    X, y = some_data("binary")
    with pytest.raises(ValueError, match=f"min_rows_per_sum must be at least 1.*got {value}"):
        SecureBoostClassifier(1, min_rows_per_sum=value).fit(X, y)
    with pytest.raises(ValueError, match="min_rows_per_sum"):
        PassiveParty(X, min_rows_per_sum=value)


@pytest.mark.parametrize("value", [2.5, "10", None, True])
def test_only_integers_are_taken(value):
    X, y = some_data("binary")
    with pytest.raises(TypeError, match="min_rows_per_sum must be an integer"):
        SecureBoostClassifier(1, min_rows_per_sum=value).fit(X, y)


class TestCategories:
    """Columns of categories are grouped by the order of their codes, and split by sets of whole groups."""

    def settings(self, k: int = 10, **parameters: Any) -> dict[str, Any]:
        return {
            "max_depth": 4,
            "min_rows_per_sum": k,
            "partition": PARTIES[3],
            "random_state": 1,
            **parameters,
        }

    @pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
    @pytest.mark.parametrize("k", [10, 25])
    def test_groups_of_categories_hold_k_rows_at_least(self, k, strategy, monkeypatch):
        """Counted from what is about to be added."""
        fewest, true_plan = [], follower.plan_sums

        def plan(binned, rows, counts, trees, positions, groups):
            for of_node, group in zip(rows, groups, strict=True):
                for column in range(binned.shape[1]):
                    held = np.bincount(group[column][binned[of_node, column]])
                    fewest.extend(held[(held > 0) & (held < len(of_node))].tolist())
            return true_plan(binned, rows, counts, trees, positions, groups)

        monkeypatch.setattr(follower, "plan_sums", plan)
        X, y = some_frame("five", n_rows=500)
        chosen = self.settings(k, encryption="none", multi_strategy=strategy)
        SecureBoostClassifier(3, **chosen).fit(X, y)
        assert len(fewest) > 10
        assert min(fewest) >= k

    @pytest.mark.parametrize("task", ["binary", "five"])
    def test_encrypted_training_equals_plain(self, task):
        X, y = some_frame(task)
        models = [
            SecureBoostClassifier(2, **self.settings(**how)).fit(X, y)
            for how in ({"encryption": "none"}, WEAK)
        ]
        assert_same_model(*models, X)
        tables = [record_table(table) for table in models[0]._passive_models.values()]
        assert any(np.isnan(table.thresholds).any() for table in tables)


@pytest.mark.parametrize("k", [1, 10, 30])
@pytest.mark.parametrize("kind", ["numbers", "categories"])
def test_owners_divide_rows_as_the_sums_say(kind, k, monkeypatch):
    """The gain that the active party computed from sums is that of the children it gets."""
    gains, true_divide = [], BoostRound.divide

    def divide(self, split, left):
        division = true_divide(self, split, left)
        units = np.array(self._units(split.node.output))
        before, *after = (node.total * units for node in (split.node, *division.children))
        score = [g * g / (h + 1.0) for g, h in (before, *after)]
        if split.party:
            gains.append((split.gain, score[1] + score[2] - score[0]))
        return division

    monkeypatch.setattr(BoostRound, "divide", divide)
    X, y = (
        some_frame("five", n_rows=600)
        if kind == "categories"
        else some_data("five", n_rows=600, missing=True)
    )
    partition = PARTIES[3] if kind == "categories" else thirds(9, 3)
    SecureBoostClassifier(
        2, max_depth=5, min_rows_per_sum=k, partition=partition, encryption="none", random_state=0
    ).fit(X, y)
    assert len(gains) > 20
    np.testing.assert_allclose(*np.array(gains).T, rtol=1e-3, atol=1e-5)


class TestHostilePeers:
    def run(self, forge) -> None:
        """A training in which the groups of the passive party's answers below the root are forged."""

        def tamper(sender: str, receiver: str, frame: bytes) -> bytes:
            if b"Histograms" not in frame[:64]:
                return frame
            message = codec.decode(frame, (Histograms,))
            return codec.encode(replace(message, groups=forge(message))) if message.level else frame

        X, y = some_data("binary")
        passive = PassiveParty(X[:, 3:], name="shop", min_rows_per_sum=5)
        active = ActiveParty(
            X[:, :3], y, passive_parties=["shop"], settings=BoostSettings(encryption="none", n_estimators=1)
        )
        with InProcessNetwork({"shop": passive}, tamper=tamper) as network:
            network.run(active)

    def test_groups_as_sent_are_taken(self):
        self.run(lambda message: message.groups)

    @pytest.mark.parametrize(
        ("forge", "match"),
        [
            (lambda message: message.groups[:-1], "groups of .* bins were expected"),
            (lambda message: np.zeros_like(message.groups), "belongs to no group|within a group"),
            (lambda message: message.groups[:0], "sums of a child exceed its parent's"),
        ],
        ids=["short", "none", "all"],
    )
    def test_groups_that_cannot_be_are_the_peers_error(self, forge, match):
        with pytest.raises(
            RemoteProtocolError, match=rf"'shop'.*histograms of round 0, level 1: .*({match})"
        ):
            self.run(forge)
