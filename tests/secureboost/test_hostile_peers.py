"""Forged and damaged messages: each is the peer's error, named, and never a crash, a hang or another model."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from tests.secureboost.small import WEAK
from tests.secureboost.test_protocol import N_ROWS, ROOT, gradients, half_split, joined, record, started
from vflcrypto import CiphertextArray, PrivateKey, generate_keypair
from vflparty import InProcessNetwork, Ledger, RemoteProtocolError, codec
from vfltree.sealing import PairLayout, make_summer
from vfltree.secureboost import ActiveParty, BoostSettings, PassiveParty
from vfltree.secureboost.messages import (
    GradientsForRound,
    Histograms,
    Joined,
    JoinPrediction,
    RouteRows,
    SplitsRecorded,
    SumChildren,
    TrainingEnded,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
    pytest.mark.filterwarnings("error::RuntimeWarning"),
]


# ---- a hostile active party


def predictor() -> PassiveParty:
    trained = started()
    trained.receive(record())
    party = PassiveParty(trained._features, name="shop", records=trained.records)
    party.receive(JoinPrediction(party._ids_digest, N_ROWS))
    return party


ROUTE = RouteRows(np.array([ROOT]), np.array([0], np.int32))
SAMPLED = replace(gradients(), rows=np.arange(2, dtype=np.int32), gradients=bytes(32))
CONVERSATIONS = [
    (lambda: joined()[0], SAMPLED),
    (started, half_split()),
    (started, record()),
    (predictor, ROUTE),
]


class TestAHostileActiveParty:
    @pytest.mark.parametrize("shape", ["scalar", "row", "column"])
    @pytest.mark.parametrize(
        ("seated", "message", "name"),
        [
            pytest.param(seated, message, f.name, id=f"{type(message).__name__}.{f.name}")
            for seated, message in CONVERSATIONS
            for f in fields(message)
            if isinstance(getattr(message, f.name), np.ndarray)
        ],
    )
    def test_arrays_of_other_dimensions_are_refused(self, seated, message, name, shape):
        array = getattr(message, name)
        forged = {"scalar": np.resize(array, 1).reshape(()), "row": array[None], "column": array[:, None]}[
            shape
        ]
        seated().receive(message)
        with pytest.raises(RemoteProtocolError, match=rf"{name} must be a vector"):
            seated().receive(replace(message, **{name: forged}))

    @pytest.mark.parametrize("encryption", ["none", "paillier"])
    @pytest.mark.parametrize(
        ("field", "value"),
        [("max_depth", 31), ("max_depth", 1 << 60), ("n_rounds", (1 << 31) + 1), ("n_outputs", 1 << 40),
         ("n_rows", 1 << 60)],
    )  # fmt: skip
    def test_numbers_beyond_the_record_ids_are_refused_before_anything_starts(self, field, value, encryption):
        with pytest.raises(RemoteProtocolError, match=r"record ids hold|holds 12"):
            joined(encryption=encryption, **{field: value})

    @pytest.mark.parametrize("bits", [62, 1 << 40, 10**20])
    def test_absurd_fraction_bits_cost_no_memory(self, bits):
        key = key_pair().public_key.to_bytes()
        with pytest.raises(RemoteProtocolError, match="61 are offered"):
            make_summer(
                "paillier", key, PairLayout(12, 1, bits), allow_weak_key=True, n_jobs=1, ledger=Ledger()
            )

    def test_nothing_follows_the_end_of_training(self):
        party = started()
        with pytest.raises(RemoteProtocolError, match="2 rounds were finished, 1 were begun"):
            party.receive(TrainingEnded(2))
        party.receive(TrainingEnded(1))
        for message in (gradients(1), half_split(), record()):
            with pytest.raises(RemoteProtocolError):
                party.receive(message)

    def test_masks_with_bits_beyond_the_last_row_are_refused(self):
        message = half_split()
        with pytest.raises(RemoteProtocolError, match="beyond its last row"):
            started().receive(replace(message, left=message.left | np.array([0, 1], np.uint8)))

    def test_an_int_is_never_too_long_to_be_named_in_an_error(self):
        longest = (1 << (8 * codec.MAX_INT_BYTES - 1)) - 1
        assert len(str(longest)) <= sys.int_info.default_max_str_digits
        with pytest.raises(RemoteProtocolError, match="expected round 0"):
            joined()[0].receive(gradients(longest))


# ---- a hostile passive party


def key_pair() -> PrivateKey:
    return generate_keypair(WEAK["key_bits"], allow_weak_key=True)[1]


@pytest.fixture(scope="module")
def private_key() -> PrivateKey:
    return key_pair()


class Liar(PassiveParty):
    """Answers as it should, then changes the answers of one kind."""

    kind: Any = None

    def receive(self, message: Any) -> Any:
        answer = super().receive(message)
        return self.lie(answer) if isinstance(answer, self.kind) else answer


def train_with(liar_kind: Any, lie: Any, key: PrivateKey | None = None, **changes: Any) -> Any:
    rng = np.random.default_rng(0)
    mine, theirs = rng.normal(size=(50, 1)), rng.normal(size=(50, 3))
    labels = (theirs[:, 0] + mine[:, 0] / 3 > 0).astype(float)
    liar = Liar(theirs, name="shop", allow_weak_key=True, random_seed=0)
    liar.kind, liar.lie = liar_kind, lie
    encryption = "none" if key is None else "paillier"
    settings = BoostSettings(n_estimators=2, max_depth=3, encryption=encryption, **WEAK, **changes)
    active = ActiveParty(
        mine, labels, passive_parties=["shop"], settings=settings, random_seed=0, private_key=key
    )
    with InProcessNetwork({"shop": liar}) as network:
        return network.run(active)


def with_last_ciphertext(value: int, key: PrivateKey) -> Any:
    width = key.public_key.ring.row_bytes

    def lie(answer: Histograms) -> Histograms:
        return replace(answer, sums=answer.sums[:-width] + value.to_bytes(width, "little"))

    return lie


def with_plain_sum(column: int, value: int) -> Any:
    def lie(answer: Histograms) -> Histograms:
        values = np.frombuffer(answer.sums, "<i8").reshape(-1, 2).copy()
        values[:, column] = value
        return replace(answer, sums=values.tobytes())

    return lie


def encrypted_again(values: Any, key: PrivateKey) -> Any:
    """As many ciphertexts as were due, of other plaintexts or in another shape."""

    def lie(answer: Histograms) -> Histograms:
        size = CiphertextArray.from_bytes(answer.sums, key.public_key).size
        return replace(answer, sums=values(key.public_key, size).to_bytes())

    return lie


class TestAHostilePassiveParty:
    @pytest.mark.parametrize(
        ("n_features", "n_bins"),
        [(0, 3), (-1, 3), (3, 1), (3, 258), (3, 1 << 16), (10**9, 33), (10**400, 3), (3, 10**400), (4, 33)],
    )
    def test_shapes_that_cannot_be_or_are_not_kept(self, n_features, n_bins, private_key):
        with pytest.raises(RemoteProtocolError, match="'shop'"):
            train_with(Joined, lambda a: replace(a, n_features=n_features, n_bins=n_bins), private_key)

    def test_more_cells_than_memory_should_hold_are_refused_before_any_histogram(self, private_key):
        with pytest.raises(RemoteProtocolError, match=r"'shop'.*100000 features of 257 bins.*cells"):
            train_with(Joined, lambda a: replace(a, n_features=100_000, n_bins=257), private_key)

    @pytest.mark.parametrize(
        "settings",
        [
            {"objective": "reg:absoluteerror", "n_classes": 1},
            {"objective": "multi:softprob", "multi_strategy": "multi_output_tree"},
        ],
    )
    def test_constraints_that_the_trees_cannot_keep(self, settings):
        with pytest.raises(RemoteProtocolError, match=r"'shop'.*monotone constraints"):
            train_with(Joined, lambda a: replace(a, constrained=True), **settings)

    @pytest.mark.parametrize("kind", [Histograms, SplitsRecorded])
    @pytest.mark.parametrize("change", [{"round": 9}, {"level": 9}, {"level": -1}, {"round": 10**400}])
    def test_answers_about_another_round_or_level(self, kind, change, private_key):
        with pytest.raises(RemoteProtocolError, match=r"'shop'.*asked was round 0, level 0"):
            train_with(kind, lambda a: replace(a, **change), private_key)

    @pytest.mark.parametrize("encrypted", [True, False])
    @pytest.mark.parametrize(
        "lie",
        [
            lambda a: replace(a, present=np.zeros_like(a.present)),
            lambda a: replace(a, present=np.full_like(a.present, 255)),
            lambda a: replace(a, present=np.zeros(10**6, np.uint8)),
            lambda a: replace(a, present=np.array(1, np.uint8)),
            lambda a: replace(a, fullest=a.fullest - 100),
            lambda a: replace(a, fullest=a.fullest + 32000),
            lambda a: replace(a, fullest=a.fullest.T.copy()),
            lambda a: replace(a, n_values=a.n_values + 1),
            lambda a: replace(a, n_values=-1),
            lambda a: replace(a, n_values=10**400),
            lambda a: replace(a, sums=b""),
            lambda a: replace(a, sums=a.sums[:-1]),
            lambda a: replace(a, sums=a.sums + bytes(16)),
        ],
    )
    def test_histograms_that_contradict_themselves(self, lie, encrypted, private_key):
        with pytest.raises(RemoteProtocolError, match=r"'shop'.*histograms of round 0, level 0"):
            train_with(Histograms, lie, private_key if encrypted else None)

    @pytest.mark.parametrize("forged", ["0", "1", "n", "p", "n^2 - 1", "n^2", "2^k - 1", "half"])
    def test_ciphertexts_that_are_none_or_hold_no_sums(self, forged, private_key):
        n, p = private_key.public_key.n, private_key.unsafe_primes()[0]
        largest = (1 << (8 * private_key.public_key.ring.row_bytes)) - 1
        values = {"0": 0, "1": 1, "n": n, "p": p, "n^2 - 1": n * n - 1, "n^2": n * n, "2^k - 1": largest,
                  "half": 1 + n // 2 * n}  # fmt: skip
        with pytest.raises(RemoteProtocolError, match=r"'shop'.*histograms of round 0"):
            train_with(Histograms, with_last_ciphertext(values[forged], private_key), private_key)

    @pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
    def test_one_byte_that_flips_on_its_way_ends_the_training_and_becomes_no_zero(self, place, private_key):
        def flip(answer: Histograms) -> Histograms:
            sums = bytearray(answer.sums)
            sums[int(place * len(sums))] ^= 0x10
            return replace(answer, sums=bytes(sums))

        with pytest.raises(RemoteProtocolError, match=r"'shop'.*histograms of round 0, level 0"):
            train_with(Histograms, flip, private_key)

    @pytest.mark.parametrize(
        "values",
        [
            lambda key, size: key.encrypt(np.full(size, -1)),
            lambda key, size: key.encrypt(np.full(size, 1 << 62)),
            lambda key, size: key.encrypt(np.full(size, 1.5)),
            lambda key, size: key.encrypt(np.zeros((size, 1), int)),
            lambda key, size: key.encrypt(np.zeros((1, size), int)),
            lambda key, size: generate_keypair(512, allow_weak_key=True)[0].encrypt(np.zeros(size, int)),
        ],
    )
    def test_ciphertexts_of_something_else(self, values, private_key):
        with pytest.raises(RemoteProtocolError, match=r"'shop'.*histograms of round 0"):
            train_with(Histograms, encrypted_again(values, private_key), private_key)

    @pytest.mark.parametrize("column", [0, 1])
    @pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 2**62, 2**37, -(2**37)])
    def test_sums_in_the_clear_that_no_rows_can_have(self, column, value):
        with pytest.raises(RemoteProtocolError, match=r"'shop'.*histograms of round 0, level 0"):
            train_with(Histograms, with_plain_sum(column, value))

    @pytest.mark.parametrize(
        "lie",
        [
            lambda a: replace(a, left=np.zeros(0, np.uint8)),
            lambda a: replace(a, left=np.zeros(10**6, np.uint8)),
            lambda a: replace(a, left=np.zeros_like(a.left)),
            lambda a: replace(a, left=np.full_like(a.left, 255)),
            lambda a: replace(a, left=a.left[None]),
            lambda a: replace(a, left=np.array(3, np.uint8)),
            lambda a: replace(a, left=a.left ^ 255),
        ],
    )
    def test_masks_that_split_no_node(self, lie, private_key):
        with pytest.raises(RemoteProtocolError, match="'shop'"):
            train_with(SplitsRecorded, lie, private_key)

    @pytest.mark.parametrize("kind", [GradientsForRound, SumChildren])
    def test_an_answer_of_another_kind(self, kind):
        assert kind in PassiveParty.messages
        with pytest.raises(RemoteProtocolError, match=r"'shop'.*expected one of"):
            train_with(Histograms, lambda a: Joined(1, 2))
