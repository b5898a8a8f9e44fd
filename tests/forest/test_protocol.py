"""The conversation of a forest, message by message: what a passive party refuses, and what an active one does."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from tests.secureboost.small import WEAK, some_data
from vflcrypto import generate_keypair, plan_slots
from vflparty import InProcessNetwork, RemoteProtocolError, RowsDisagreeError
from vfltree.forest import ForestActive, ForestPassive, ForestSettings
from vfltree.forest.messages import (
    DivideNodes,
    GrowTrees,
    Histograms,
    JoinForest,
    OpenSlots,
    RecordSplits,
    SplitsRecorded,
    SumSlots,
    TargetsOfForest,
    TrainingEnded,
)
from vfltree.growing.masks import pack_masks
from vfltree.growing.numbering import child_ids
from vfltree.tree import record_id

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
    pytest.mark.filterwarnings("error::RuntimeWarning"),
]

N_ROWS = 12
ROOT = int(record_id(0, 1))
COUNTS = np.stack([np.arange(N_ROWS) % 2 == 0, np.arange(N_ROWS) % 2 == 1], axis=1).astype("<i8")


def joined(**changes: Any) -> tuple[ForestPassive, JoinForest]:
    """A passive party with one column 0..11 and a constant one, and the message it has joined by: 2 trees, depth 3."""
    features = np.stack([np.arange(N_ROWS, dtype=float), np.ones(N_ROWS)], axis=1)
    party = ForestPassive(features, name="shop", random_seed=0, min_rows_per_sum=1)
    message = JoinForest(party._ids_digest, N_ROWS, 2, 3, False, 0, 0, 2, 0, "none", b"")
    party.receive(replace(message, **changes))
    return party, message


TARGETS = TargetsOfForest(COUNTS.tobytes())
GROW = GrowTrees(0, 1, np.zeros(0, np.uint16))


def started(grow: GrowTrees = GROW, **changes: Any) -> ForestPassive:
    party, _ = joined(**changes)
    party.receive(TARGETS)
    party.receive(grow)
    return party


def varying_slot(party: ForestPassive) -> int:
    return int(np.flatnonzero(party._round.orders[0] == 0)[0])


def ask(slots: list[int], node: int = ROOT, level: int = 0) -> SumSlots:
    return SumSlots(
        0, level, np.array([node]), np.array([0, len(slots)], np.int32), np.array(slots, np.int32)
    )


def halves(node: int = ROOT, level: int = 1, n_rows: int = N_ROWS) -> DivideNodes:
    return DivideNodes(0, level, np.array([node]), pack_masks([np.arange(n_rows) < n_rows // 2]))


def record(slot: int, bin_: int = 3, node: int = ROOT) -> RecordSplits:
    return RecordSplits(
        0, 0, np.array([node]), np.array([0, 1], np.int32), np.array([slot], np.int32),
        np.array([bin_], np.int32), np.array([False]),
    )  # fmt: skip


class TestAConversationByHand:
    def test_the_root_says_which_slots_vary(self):
        party, _ = joined()
        party.receive(TARGETS)
        answer = party.receive(GROW)
        assert isinstance(answer, OpenSlots)
        assert np.unpackbits(answer.varied, count=2).sum() == 1
        assert np.unpackbits(answer.varied, count=2)[varying_slot(party)] == 1

    def test_sums_count_a_row_as_often_as_it_was_drawn(self):
        times = np.zeros(N_ROWS, np.uint16)
        times[0], times[3] = 3, 2  # rows of classes 0 and 1
        party = started(replace(GROW, times=times))
        answer = party.receive(ask([varying_slot(party)]))
        assert isinstance(answer, Histograms)
        assert answer.n_values == 1  # the fullest bin, of row 0, is left out
        assert np.frombuffer(answer.sums, "<i8").tolist() == [0, 2]

    def test_a_slot_that_does_not_vary_sends_nothing(self):
        party = started()
        answer = party.receive(ask([1 - varying_slot(party)]))
        assert (answer.n_values, answer.sums) == (0, b"")

    def test_children_are_opened_left_and_right_in_turn(self):
        party = started()
        answer = party.receive(halves())
        bits = np.unpackbits(answer.varied, count=4).reshape(2, 2)
        assert (bits[:, varying_slot(party)] == 1).all()
        left = child_ids(ROOT)[0]
        assert party._round.rows(left).tolist() == [0, 1, 2, 3, 4, 5]

    def test_rows_that_were_not_drawn_stay_away_unless_they_are_asked_for(self):
        times = np.zeros(N_ROWS, np.uint16)
        times[:6] = 2
        grow = replace(GROW, times=times)
        assert started(grow)._round.rows(ROOT).tolist() == list(range(6))
        party = started(grow, out_of_bag=True)
        assert party._round.rows(ROOT).tolist() == list(range(N_ROWS))
        assert party._round.sampled(ROOT, party._round.rows(ROOT)).tolist() == sorted([*range(6)] * 2)

    def test_every_tree_has_an_order_of_its_own(self):
        party = ForestPassive(np.random.default_rng(0).normal(size=(N_ROWS, 30)), name="shop", random_seed=0)
        party.receive(JoinForest(party._ids_digest, N_ROWS, 2, 3, False, 0, 0, 2, 0, "none", b""))
        party.receive(TARGETS)
        party.receive(replace(GROW, n_trees=2))
        assert not np.array_equal(*party._round.orders)


class TestWhatAPassivePartyRefuses:
    def test_other_rows(self):
        party, message = joined()
        with pytest.raises(RowsDisagreeError):
            joined(n_rows=N_ROWS + 1)
        with pytest.raises(RemoteProtocolError, match="joined already"):
            party.receive(message)

    @pytest.mark.parametrize("encryption", ["none", "paillier"])
    @pytest.mark.parametrize(
        ("field", "value"),
        [("n_trees", 0), ("n_trees", (1 << 31) + 1), ("max_depth", 0), ("max_depth", 31), ("n_counts", 0),
         ("n_counts", 1 << 40), ("n_signed", -1), ("n_weights", 1 << 60)],
    )  # fmt: skip
    def test_settings_that_cannot_be(self, field, value, encryption):
        with pytest.raises(RemoteProtocolError):
            joined(**{field: value, "encryption": encryption})

    @pytest.mark.parametrize("encryption", ["rot13", "paillier"])
    def test_encryption_without_a_key_or_of_another_kind(self, encryption):
        with pytest.raises(RemoteProtocolError):
            joined(encryption=encryption)

    def test_targets_twice_or_of_another_size(self):
        party, _ = joined()
        with pytest.raises(RemoteProtocolError, match="192 bytes"):
            party.receive(TargetsOfForest(TARGETS.targets[:-8]))
        party.receive(TARGETS)
        with pytest.raises(RemoteProtocolError, match="already"):
            party.receive(TARGETS)

    def test_trees_before_the_targets(self):
        party, _ = joined()
        with pytest.raises(RemoteProtocolError, match="before the targets"):
            party.receive(GROW)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"round": 1}, "round 1, expected round 0"),
            ({"n_trees": 3}, "3 trees after 0, 2 were agreed"),
            ({"n_trees": 0}, "0 trees"),
            ({"times": np.ones(N_ROWS - 1, np.uint16)}, "11 numbers"),
            ({"times": np.zeros(N_ROWS, np.uint16)}, "between 1 and 12"),
            ({"times": np.full(N_ROWS, 2, np.uint16)}, "got 24"),
        ],
    )
    def test_trees_that_were_not_agreed(self, changes, message):
        party, _ = joined()
        party.receive(TARGETS)
        with pytest.raises(RemoteProtocolError, match=message):
            party.receive(replace(GROW, **changes))

    def test_more_trees_at_once_than_memory_has_room_for(self):
        party, _ = joined(n_trees=1 << 31)
        party.receive(TARGETS)
        with pytest.raises(RemoteProtocolError, match="4096 at once"):
            party.receive(replace(GROW, n_trees=1 << 31))

    @pytest.mark.parametrize(
        ("message", "text"),
        [
            (ask([2]), "outside 0..1"),
            (ask([-1]), "outside"),
            (ask([1, 0]), "ascending"),
            (ask([0, 0]), "ascending"),
            (ask([]), "do not fit"),
            (ask([0], node=child_ids(ROOT)[0]), "not open"),
            (ask([0], level=1), "in progress is round 0, level 0"),
            (replace(ask([0]), nodes=np.array([ROOT, ROOT]), bounds=np.array([0, 1, 2], np.int32),
                     slots=np.array([0, 1], np.int32)), "do not fit"),
            (replace(ask([0]), bounds=np.array([0, 2], np.int32)), "do not fit"),
        ],
    )  # fmt: skip
    def test_sums_of_what_is_not_there(self, message, text):
        with pytest.raises(RemoteProtocolError, match=text):
            started().receive(message)

    def test_the_sums_of_a_level_twice(self):
        party = started()
        party.receive(ask([0]))
        with pytest.raises(RemoteProtocolError, match="given already"):
            party.receive(ask([1]))

    def test_a_split_of_a_slot_or_bin_that_is_not_there(self):
        with pytest.raises(RemoteProtocolError, match="slot"):
            started().receive(record(2))
        with pytest.raises(RemoteProtocolError, match="bin"):
            started().receive(record(0, bin_=99))

    @pytest.mark.parametrize("node", [int(record_id(7, 1)), (1 << 63) - 1, -1, 0])
    def test_a_split_of_a_node_that_is_not_open(self, node):
        with pytest.raises(RemoteProtocolError, match=f"node {node} is not open"):
            started().receive(record(0, node=node))

    def test_children_that_its_own_answer_contradicts(self):
        party = started()
        answer = party.receive(record(varying_slot(party)))
        assert isinstance(answer, SplitsRecorded)
        with pytest.raises(RemoteProtocolError, match="otherwise than its owner"):
            party.receive(halves())

    def test_a_child_without_draws(self):
        times = np.zeros(N_ROWS, np.uint16)
        times[:6] = 2
        party = started(replace(GROW, times=times), out_of_bag=True)
        with pytest.raises(RemoteProtocolError, match="without rows"):
            party.receive(halves())

    def test_more_levels_than_agreed(self):
        party = started(max_depth=1)
        with pytest.raises(RemoteProtocolError, match="depth 1 was agreed"):
            party.receive(halves())

    def test_anything_after_the_end(self):
        party = started()
        with pytest.raises(RemoteProtocolError, match="2 rounds were finished, 1 were begun"):
            party.receive(TrainingEnded(2))
        party.receive(TrainingEnded(1))
        for message in (replace(GROW, round=1), ask([0]), halves(), record(0)):
            with pytest.raises(RemoteProtocolError):
                party.receive(message)

    @pytest.mark.parametrize("message", [GROW, ask([0]), halves(), record(0)], ids=lambda m: type(m).__name__)
    def test_arrays_of_other_dimensions(self, message):
        for field in fields(message):
            array = getattr(message, field.name)
            if isinstance(array, np.ndarray):
                party = joined()[0] if message is GROW else started()
                with pytest.raises(RemoteProtocolError, match=rf"{field.name} must be a vector"):
                    party.receive(replace(message, **{field.name: array[None]}))


class Forger(ForestPassive):
    """A passive party that changes its answers to one kind of message."""

    change: Any = staticmethod(lambda answer: answer)
    kind: Any = OpenSlots

    def receive(self, message):
        answer = super().receive(message)
        return self.change(answer) if isinstance(answer, self.kind) else answer


def forged(kind, change, **settings):
    """The error of a training whose passive party forges its answers of this kind."""
    X, y = some_data("binary", n_rows=80)
    party = Forger(X[:, 4:], name="shop", random_seed=0, allow_weak_key=True, min_rows_per_sum=1)
    party.change, party.kind = change, kind
    active = ForestActive(
        X[:, :4], y, passive_parties=["shop"], random_seed=0,
        settings=ForestSettings(**{"n_estimators": 2, "max_depth": 3, "max_features": None, **settings}),
    )  # fmt: skip
    with (
        InProcessNetwork({"shop": party}) as network,
        pytest.raises(RemoteProtocolError) as caught,
    ):
        network.run(active)
    assert caught.value.party == "shop"
    return str(caught.value)


def bumped(sums: bytes, by: int) -> bytes:
    values = np.frombuffer(sums, "<i8").copy()
    values[0] += by
    return values.tobytes()


class TestWhatAnActivePartyRefuses:
    @pytest.mark.parametrize(
        ("kind", "change", "text"),
        [
            (OpenSlots, lambda a: replace(a, varied=a.varied[:-1]), "bytes, got"),
            (OpenSlots, lambda a: replace(a, level=a.level + 1), "asked was"),
            (Histograms, lambda a: replace(a, round=7), "asked was"),
            (Histograms, lambda a: replace(a, sums=a.sums[:-8]), "bytes"),
            (Histograms, lambda a: replace(a, n_values=a.n_values + 1), "were due"),
            (Histograms, lambda a: replace(a, sums=bumped(a.sums, 1 << 40)), "larger than that of 80 rows"),
            (Histograms, lambda a: replace(a, sums=bumped(a.sums, 70)), "exceed"),
            (Histograms, lambda a: replace(a, fullest=a.fullest[:-1]), "expected"),
            (SplitsRecorded, lambda a: replace(a, left=np.zeros_like(a.left)), "go the same way"),
            (SplitsRecorded, lambda a: replace(a, left=a.left[:-1]), "masks of"),
        ],
    )  # fmt: skip
    def test_answers_that_no_honest_party_gives(self, kind, change, text):
        assert text in forged(kind, change, encryption="none")

    def test_a_child_made_of_rows_that_were_not_drawn(self):
        """Out-of-bag rows are in the mask, but they alone make no child."""

        def out_of_bag_only(answer):
            mask = np.zeros(80, dtype=bool)
            mask[np.flatnonzero(undrawn)] = True
            return replace(answer, left=np.concatenate([np.packbits(mask), answer.left[10:]]))

        from vfltree.forest.draws import draw_rows

        undrawn = draw_rows(0, 0, 80, 80) == 0
        text = forged(
            SplitsRecorded, out_of_bag_only, encryption="none", out_of_bag=True, n_estimators=1, max_depth=1
        )
        assert "all draws of a split node go the same way" in text

    def test_a_forged_ciphertext_is_that_partys_error(self):
        _, other = generate_keypair(WEAK["key_bits"], allow_weak_key=True)
        foreign = plan_slots(80, n_counts=2, key_bits=512).encrypt(other, np.array([[1, 0]])).to_bytes()
        text = forged(Histograms, lambda a: replace(a, sums=foreign), **WEAK)
        assert "belongs to key" in text
