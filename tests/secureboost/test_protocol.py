"""The conversation: what is sent, in which order, and what a passive party refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.secureboost.small import WEAK, some_data
from vflparty import (
    DamagedFrameError,
    InProcessNetwork,
    RemoteProtocolError,
    RowsDisagreeError,
    codec,
)
from vfltree import SecureBoostClassifier
from vfltree.growing.masks import pack_masks
from vfltree.growing.models import decode_records
from vfltree.growing.numbering import child_ids
from vfltree.secureboost import ActiveParty, BoostSettings, PassiveParty
from vfltree.secureboost.messages import (
    GradientsForRound,
    JoinPrediction,
    JoinTraining,
    RecordSplits,
    RouteRows,
    SumChildren,
)
from vfltree.tree import record_id

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]

N_ROWS = 12
ROOT = int(record_id(0, 1))


def joined(**changes) -> tuple[PassiveParty, JoinTraining]:
    """A passive party with one column 0..11 and a constant one, and the message it has joined by."""
    features = np.stack([np.arange(N_ROWS, dtype=float), np.ones(N_ROWS)], axis=1)
    party = PassiveParty(features, name="shop", random_seed=0)
    message = JoinTraining(party._ids_digest, N_ROWS, 2, 1, 3, 30, "none", b"")
    party.receive(replace(message, **changes))
    return party, message


def gradients(number: int = 0, n_rows: int = N_ROWS) -> GradientsForRound:
    values = np.stack([np.arange(n_rows) - 5, np.full(n_rows, 4)], axis=1).astype("<i8")
    return GradientsForRound(number, np.zeros(0, np.int32), values.tobytes())


def started() -> PassiveParty:
    party, _ = joined()
    party.receive(gradients())
    return party


def half_split(node: int = ROOT, level: int = 1, n_rows: int = N_ROWS) -> SumChildren:
    left = np.arange(n_rows) < n_rows // 2
    return SumChildren(0, level, np.array([node]), pack_masks([left]))


def record(node: int = ROOT, slot: int | None = None, bin_: int = 3, level: int = 0) -> RecordSplits:
    return RecordSplits(
        0, level, np.array([node]), np.array([0, 1], np.int32),
        np.array([0 if slot is None else slot], np.int32), np.array([bin_], np.int32), np.array([False]),
    )  # fmt: skip


class TestWhatAPassivePartyRefuses:
    def test_other_rows(self):
        party = PassiveParty(np.zeros((3, 1)), ids=["x", "y", "z"], name="shop")
        other = PassiveParty(np.zeros((3, 1)), ids=["x", "z", "y"])
        with pytest.raises(RowsDisagreeError, match="IDs"):
            party.receive(JoinTraining(other._ids_digest, 3, 1, 1, 1, 30, "none", b""))
        with pytest.raises(RowsDisagreeError, match=r"4 rows.*'shop' holds 3"):
            party.receive(JoinTraining(party._ids_digest, 4, 1, 1, 1, 30, "none", b""))

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("n_rounds", 0),
            ("n_outputs", 0),
            ("max_depth", 0),
            ("encryption", "rot13"),
            ("encryption", "paillier"),
        ],
    )
    def test_settings_that_cannot_be(self, field, value):
        with pytest.raises(RemoteProtocolError):
            joined(**{field: value})

    def test_joining_twice(self):
        party, message = joined()
        with pytest.raises(RemoteProtocolError, match="joined already"):
            party.receive(message)

    def test_gradients_out_of_turn(self):
        party, _ = joined()
        with pytest.raises(RemoteProtocolError, match="round 1, expected round 0"):
            party.receive(gradients(1))
        party.receive(gradients(0))
        with pytest.raises(RemoteProtocolError, match="round 0, expected round 1"):
            party.receive(gradients(0))

    def test_more_rounds_than_agreed(self):
        party, _ = joined(n_rounds=1)
        party.receive(gradients(0))
        with pytest.raises(RemoteProtocolError, match="of 1"):
            party.receive(gradients(1))

    def test_gradients_of_another_size(self):
        party, _ = joined()
        with pytest.raises(RemoteProtocolError, match="192 bytes"):
            party.receive(gradients(n_rows=N_ROWS - 1))

    @pytest.mark.parametrize("rows", [[0, 0], [1, 0], [-1, 2], [0, N_ROWS]])
    def test_samples_that_are_no_subset(self, rows):
        party, _ = joined()
        with pytest.raises(RemoteProtocolError, match="sampled rows"):
            party.receive(replace(gradients(), rows=np.array(rows, np.int32)))

    def test_levels_out_of_order(self):
        party = started()
        with pytest.raises(RemoteProtocolError, match="level 1 was asked, in progress is round 0, level 0"):
            party.receive(half_split(level=2))

    def test_levels_beyond_the_agreed_depth(self):
        party, _ = joined(max_depth=1)
        party.receive(gradients())
        with pytest.raises(RemoteProtocolError, match="depth 1 was agreed"):
            party.receive(half_split())

    def test_nodes_that_are_not_open(self):
        party = started()
        with pytest.raises(RemoteProtocolError, match="is not open at level 0"):
            party.receive(half_split(node=child_ids(ROOT)[0]))
        party.receive(half_split())
        with pytest.raises(RemoteProtocolError):
            party.receive(half_split(node=ROOT, level=2))

    def test_a_node_named_twice(self):
        party, left = started(), np.arange(N_ROWS) < 3
        with pytest.raises(RemoteProtocolError, match="named twice"):
            party.receive(SumChildren(0, 1, np.array([ROOT, ROOT]), pack_masks([left, left])))

    def test_masks_of_another_length(self):
        with pytest.raises(RemoteProtocolError, match="masks of 2 bytes were expected, got 1"):
            started().receive(SumChildren(0, 1, np.array([ROOT]), np.zeros(1, np.uint8)))

    def test_a_child_without_rows(self):
        for left in (np.zeros(N_ROWS, bool), np.ones(N_ROWS, bool)):
            with pytest.raises(RemoteProtocolError, match="child without rows"):
                started().receive(SumChildren(0, 1, np.array([ROOT]), pack_masks([left])))

    def test_a_split_of_its_own_that_falls_apart_otherwise(self):
        party = started()
        slot = int(np.flatnonzero(party._round.feature_order == 0)[0])
        party.receive(record(slot=slot, bin_=3))
        with pytest.raises(RemoteProtocolError, match="otherwise than its owner"):
            party.receive(half_split())

    def test_slots_bins_and_candidates_that_do_not_exist(self):
        for message in (record(slot=2), record(slot=-1), record(bin_=-1), record(bin_=99)):
            with pytest.raises(RemoteProtocolError):
                started().receive(message)
        with pytest.raises(RemoteProtocolError, match="candidates"):
            started().receive(replace(record(), candidates=np.array([0, 2], np.int32)))

    @pytest.mark.parametrize("slots", [[1, 0], [0, 0], [2], [-1]])
    def test_slots_to_be_summed_that_do_not_exist_or_come_twice(self, slots):
        message = replace(gradients(), slots=np.array(slots, np.int32))
        with pytest.raises(RemoteProtocolError, match="ascending, and summed so far"):
            joined()[0].receive(message)

    def test_slots_that_were_let_go_before(self):
        party, _ = joined()
        party.receive(replace(gradients(), slots=np.array([1], np.int32)))
        with pytest.raises(RemoteProtocolError, match="ascending, and summed so far"):
            party.receive(replace(half_split(), slots=np.array([0], np.int32)))
        with pytest.raises(RemoteProtocolError, match="none of the 1 that are summed"):
            party.receive(record(slot=0))

    def test_nothing_more_in_a_round_without_features(self):
        party, _ = joined()
        answer = party.receive(replace(gradients(), slots=np.zeros(0, np.int32), gradients=b""))
        assert (answer.n_values, answer.sums, answer.present.size) == (0, b"", 0)
        for message in (half_split(), record(), gradients(0)):
            with pytest.raises(RemoteProtocolError):
                party.receive(message)
        party.receive(gradients(1))

    def test_a_node_recorded_twice(self):
        party = started()
        party.receive(record())
        with pytest.raises(RemoteProtocolError, match="split twice"):
            party.receive(record())

    def test_a_public_key_that_is_none(self):
        for key in (b"", b"\0" * 64, b"\xff" * 300):
            with pytest.raises(RemoteProtocolError, match="key"):
                joined(encryption="paillier", public_key=key)


class TestPrediction:
    def predictor(self) -> tuple[PassiveParty, np.ndarray]:
        """A party that owns the root and its left child (of three levels), and rows to predict."""
        X, y = some_data("binary", n_rows=60)
        model = SecureBoostClassifier(
            2, max_depth=3, partition={"a": [0], "b": range(1, 9)}, encryption="none", random_state=0
        ).fit(X, y)
        setup = model._passive_setup(model._cut(X)["b"], 1, table=model._passive_models["b"])
        party = PassiveParty.from_setup(setup)
        party.receive(JoinPrediction(setup.ids_digest, len(X)))
        return party, decode_records(setup.records).ids

    def ask(self, party, records, rows):
        return party.receive(RouteRows(np.array(records, np.int64), np.array(rows, np.int32)))

    def test_answers_before_rows_are_agreed_are_refused(self):
        party, _ = joined()
        with pytest.raises(RemoteProtocolError, match="have not been agreed"):
            self.ask(party, [ROOT], [0])

    def test_a_record_is_answered_once_per_row(self):
        party, records = self.predictor()
        top = next(r for r, a in zip(records, party._answers._ancestors, strict=True) if a < 0)
        self.ask(party, [top], [0])
        with pytest.raises(RemoteProtocolError, match="twice"):
            self.ask(party, [top], [0])
        with pytest.raises(RemoteProtocolError, match="twice"):
            self.ask(party, [top, top], [1, 1])

    def test_records_off_the_path_are_refused(self):
        party, records = self.predictor()
        below = int(np.flatnonzero(party._answers._ancestors >= 0)[0])
        above = int(party._answers._ancestors[below])
        with pytest.raises(RemoteProtocolError, match="off a row's path"):
            self.ask(party, [records[below]], [0])  # its ancestor has not been asked
        rows = np.arange(60)
        left = np.unpackbits(self.ask(party, [records[above]] * 60, rows).left, count=60)
        wrong = rows[left != party._answers._turns[below]]
        with pytest.raises(RemoteProtocolError, match="off a row's path"):
            self.ask(party, [records[below]], wrong[:1])
        right = rows[left == party._answers._turns[below]]
        self.ask(party, [records[below]], right[:1])

    def test_unknown_records_and_rows_are_refused(self):
        party, records = self.predictor()
        with pytest.raises(RemoteProtocolError, match="unknown record"):
            self.ask(party, [12345], [0])
        for row in (-1, 60):
            with pytest.raises(RemoteProtocolError, match="60 agreed rows"):
                self.ask(party, [records[0]], [row])
        with pytest.raises(RemoteProtocolError, match="do not make pairs"):
            self.ask(party, records[:2], [0])

    def test_prediction_takes_at_most_depth_steps_for_all_rows_and_trees(self):
        X, y = some_data("five")
        model = SecureBoostClassifier(4, max_depth=3, encryption="none", random_state=0).fit(X, y)
        traffic = model.prediction_traffic(X).set_index("kind")
        assert 1 <= traffic.loc["RouteRows", "messages"] <= 3


class TestPartiesByHand:
    def network(
        self, settings: BoostSettings, allow_weak_key: bool = True, **options
    ) -> tuple[InProcessNetwork, ActiveParty]:
        X, y = some_data("binary", n_rows=80)
        ids = [f"person {i}" for i in range(80)]
        passive = {
            "shop": PassiveParty(X[:, 3:6], ids=ids, name="shop", allow_weak_key=allow_weak_key),
            "bank": PassiveParty(X[:, 6:], ids=ids, name="bank", allow_weak_key=True),
        }
        active = ActiveParty(X[:, :3], y, ids=ids, passive_parties=list(passive), settings=settings)
        return InProcessNetwork(passive, **options), active

    def test_parties_built_by_hand_train_the_estimators_model(self):
        settings = BoostSettings(n_estimators=2, max_depth=3, **WEAK)
        network, active = self.network(settings)
        with network:
            result = network.run(active)
        X, y = some_data("binary", n_rows=80)
        model = SecureBoostClassifier(
            2,
            max_depth=3,
            partition={"active": range(3), "shop": range(3, 6), "bank": range(6, 9)},
            encryption="none",
        ).fit(X, y)
        assert result == model._active_model

    def test_a_passive_party_takes_no_weak_key_unless_it_says_so_itself(self):
        network, active = self.network(BoostSettings(n_estimators=1, **WEAK), allow_weak_key=False)
        with network, pytest.raises(RemoteProtocolError, match="got 512"):
            network.run(active)

    @pytest.mark.parametrize("kind", ["Histograms", "GradientsForRound", "SplitsRecorded"])
    def test_a_byte_flipped_on_the_way_is_the_peers_error_and_names_it(self, kind):
        at_fault = []

        def flip(sender: str, receiver: str, frame: bytes) -> bytes:
            if kind.encode() not in frame[:64] or at_fault:
                return frame
            at_fault.append(sender)
            return frame[:-5] + bytes([frame[-5] ^ 1]) + frame[-4:]

        network, active = self.network(BoostSettings(n_estimators=1, max_depth=2, **WEAK), tamper=flip)
        with network, pytest.raises(DamagedFrameError) as caught:
            network.run(active)
        assert [caught.value.party] == at_fault

    def test_a_forged_reply_names_party_round_and_level(self):
        """A well-formed frame with other ciphertexts inside."""

        def forge(sender: str, receiver: str, frame: bytes) -> bytes:
            if sender != "shop" or b"Histograms" not in frame[:64]:
                return frame
            from vfltree.secureboost.messages import Histograms

            message = codec.decode(frame, (Histograms,))
            sums = bytearray(message.sums)
            sums[-40] ^= 1
            return codec.encode(replace(message, sums=bytes(sums)))

        network, active = self.network(BoostSettings(n_estimators=1, max_depth=2, **WEAK), tamper=forge)
        with network, pytest.raises(RemoteProtocolError, match=r"'shop'.*histograms of round 0, level 0"):
            network.run(active)
