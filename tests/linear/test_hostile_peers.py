"""What no honest party does is refused, and the party at fault is named."""

from __future__ import annotations

import numpy as np
import pytest

from tests.linear.small import some_data
from vflcrypto import generate_keypair
from vflcrypto.pairwise import PairwiseKey
from vflparty import InProcessNetwork, RemoteProtocolError, RowsDisagreeError
from vflparty.coordinator import Coordinator
from vfltree.linear import LinearActiveParty, LinearPassiveParty, LinearSettings
from vfltree.linear.exact.messages import NextExactStep, OfferMaskKey, TakeMaskKeys
from vfltree.linear.messages import FinishTraining, JoinLinear, SendLinearScores
from vfltree.linear.powers.messages import NextPowers
from vfltree.linear.rows.messages import HalfSums, ShareRows
from vfltree.linear.scores.messages import MaskedSums, NextStep, SealedResiduals, SealedScores
from vfltree.linear.shared import SharedSettings
from vfltree.rows import rows_digest

pytestmark = pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning")
ALL = np.zeros(0, dtype=np.int32)
N_ROWS = 130


@pytest.fixture(scope="module")
def key():
    return generate_keypair(512, allow_weak_key=True)[1]


@pytest.fixture
def shop():
    X, _ = some_data("binary", n_rows=N_ROWS)
    return LinearPassiveParty(X[:, :1], name="shop", allow_weak_key=True)


def join(key, **settings):
    shared = SharedSettings(optimizer="sgd", **settings)
    return JoinLinear(rows_digest(None, N_ROWS), N_ROWS, shared.to_json(), key.public_key.to_bytes())


def residuals(key, n=N_ROWS):
    return SealedResiduals(0, key.public_key.encrypt(np.ones((n, 1), dtype=np.int64)).to_bytes())


def test_training_is_joined_once_and_with_the_same_rows(shop, key):
    with pytest.raises(RowsDisagreeError, match="131 rows are announced, 130 are here"):
        shop.receive(JoinLinear(rows_digest(None, 131), 131, "{}", b""))
    with pytest.raises(RowsDisagreeError, match="row IDs"):
        shop.receive(JoinLinear(b"other", N_ROWS, "{}", b""))
    shop.receive(join(key))
    with pytest.raises(RemoteProtocolError, match="joined already"):
        shop.receive(join(key))


@pytest.mark.parametrize("text", ["[]", "{", '{"tol": "small"}', '{"unknown": 1}', '{"max_iter": 2.5}'])
def test_settings_are_checked(shop, text):
    with pytest.raises(RemoteProtocolError, match="settings of the active party"):
        shop.receive(JoinLinear(rows_digest(None, N_ROWS), N_ROWS, text, b""))


def test_a_weak_key_is_refused_unless_agreed(key):
    X, _ = some_data("binary", n_rows=N_ROWS)
    with pytest.raises(RemoteProtocolError, match="key of the coordinator"):
        LinearPassiveParty(X).receive(join(key))


def test_steps_come_one_by_one(shop, key):
    with pytest.raises(RemoteProtocolError, match="no training"):
        shop.receive(NextStep(0, b"", 1.0, ALL))
    shop.receive(join(key))
    with pytest.raises(RemoteProtocolError, match="step 1 was announced, step 0 is next"):
        shop.receive(NextStep(1, b"", 1.0, ALL))
    with pytest.raises(RemoteProtocolError, match="residuals of step 0 are not awaited"):
        shop.receive(residuals(key))
    shop.receive(NextStep(0, b"", 1.0, ALL))
    with pytest.raises(RemoteProtocolError, match="step 1 was announced"):
        shop.receive(NextStep(1, b"", 1.0, ALL))
    shop.receive(residuals(key))
    with pytest.raises(RemoteProtocolError, match="not awaited"):
        shop.receive(residuals(key))
    with pytest.raises(RemoteProtocolError, match="opened sums are missing"):
        shop.receive(NextStep(1, b"", 1.0, ALL))
    with pytest.raises(RemoteProtocolError, match="bytes each"):
        shop.receive(NextStep(1, b"123", 1.0, ALL))


def test_what_was_not_masked_here_cannot_be_opened(shop, key):
    shop.receive(join(key))
    with pytest.raises(RemoteProtocolError, match="nothing to open"):
        shop.receive(NextStep(0, bytes(64), 1.0, ALL))
    shop.receive(NextStep(0, b"", 1.0, ALL))
    shop.receive(residuals(key))
    with pytest.raises(RemoteProtocolError, match="not the decryption"):
        shop.receive(FinishTraining(bytes(64), 1.0))


@pytest.mark.parametrize("curvature", [0.0, -1.0, np.nan, np.inf])
def test_a_curvature_is_a_positive_number(shop, key, curvature):
    shop.receive(join(key))
    shop.receive(NextStep(0, b"", 1.0, ALL))
    shop.receive(residuals(key))
    with pytest.raises(RemoteProtocolError, match="a curvature of"):
        shop.receive(NextStep(1, bytes(64), curvature, ALL))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (np.arange(5), "a batch of 5 rows; this party answers from 128 on"),
        (np.arange(129) + 2, "ascend and exist"),
        (np.arange(128)[::-1], "ascend and exist"),
        (np.zeros(128), "ascend and exist"),
        (np.arange(128).reshape(2, 64), "must be a vector"),
    ],
)
def test_batches_are_large_enough_and_of_rows_that_exist(shop, key, rows, words):
    shop.receive(join(key))
    with pytest.raises(RemoteProtocolError, match=words):
        shop.receive(NextStep(0, b"", 1.0, rows.astype(np.int32)))


def test_ciphertexts_have_the_shape_of_the_batch(shop, key):
    shop.receive(join(key))
    shop.receive(NextStep(0, b"", 1.0, ALL))
    with pytest.raises(RemoteProtocolError, match="expected ciphertexts of shape"):
        shop.receive(residuals(key, 3))
    with pytest.raises(RemoteProtocolError, match="encrypted values"):
        shop.receive(SealedResiduals(0, b"nothing"))


def test_messages_of_another_exchange_are_refused(shop, key):
    shop.receive(join(key))
    for message in (
        NextExactStep(0, b"", 1.0, ALL),
        NextPowers(0, b"", 1.0, ALL, b""),
        ShareRows(1, False, b""),
        HalfSums(0, b"", 1.0, ALL, b""),
    ):
        with pytest.raises(RemoteProtocolError, match="no training of this kind"):
            shop.receive(message)


def test_scores_are_not_shown_without_masks_where_others_are_there(shop, key):
    shop.receive(join(key, residual="exact", n_parties=3))
    with pytest.raises(RemoteProtocolError, match="under masks only"):
        shop.receive(NextExactStep(0, b"", 1.0, ALL))


def test_mask_keys_are_exchanged_once(shop):
    with pytest.raises(RemoteProtocolError, match="after one's own was offered"):
        shop.receive(TakeMaskKeys("shop", ("phone",), (PairwiseKey().public,)))
    shop.receive(OfferMaskKey())
    with pytest.raises(RemoteProtocolError, match="offered once"):
        shop.receive(OfferMaskKey())
    for parties, publics, words in (
        ((), (), "0 mask keys"),
        (("phone", "phone"), (PairwiseKey().public,) * 2, "2 mask keys"),
        (("phone",), (b"",), "outside its group"),
        (("shop",), (PairwiseKey().public,), "with itself"),
    ):
        with pytest.raises(RemoteProtocolError, match=words):
            shop.receive(TakeMaskKeys("shop", parties, publics))


def test_rows_are_shared_once_and_before_their_sums(shop, key):
    shop.receive(join(key, exchange="rows"))
    with pytest.raises(RemoteProtocolError, match="have not been shared"):
        shop.receive(HalfSums(0, b"", 1.0, ALL, b""))
    rows = key.public_key.encrypt(np.ones((N_ROWS, 1), dtype=np.int64)).to_bytes()
    shop.receive(ShareRows(1, False, rows))
    with pytest.raises(RemoteProtocolError, match="shared already"):
        shop.receive(ShareRows(1, False, rows))


def test_nothing_is_answered_after_the_end(shop, key):
    shop.receive(join(key))
    shop.receive(FinishTraining(b"", 1.0))
    for message in (NextStep(0, b"", 1.0, ALL), FinishTraining(b"", 1.0), residuals(key)):
        with pytest.raises(RemoteProtocolError, match="no training"):
            shop.receive(message)


def test_a_party_without_a_model_predicts_nothing(shop):
    with pytest.raises(RemoteProtocolError, match="neither trained nor been given a model"):
        shop.receive(SendLinearScores(rows_digest(None, N_ROWS), N_ROWS))


class LateShop(LinearPassiveParty):
    """Answers with another step, or with something that is no ciphertext."""

    wrong = ""

    def on_next_step(self, msg):
        answer = super().on_next_step(msg)
        if self.wrong == "late":
            return SealedScores(answer.step + 1, answer.settled, answer.scores)
        return SealedScores(answer.step, answer.settled, b"garbage") if self.wrong == "garbage" else answer

    def on_sealed_residuals(self, msg):
        answer = super().on_sealed_residuals(msg)
        return MaskedSums(answer.step, b"garbage", b"") if self.wrong == "sums" else answer


@pytest.mark.parametrize(
    ("wrong", "party", "words"),
    [
        ("late", "shop", "of step 0 is due"),
        ("garbage", "shop", "encrypted values"),
        ("sums", None, "masked values of 'shop'"),
    ],
)
def test_the_active_party_names_who_is_at_fault(wrong, party, words, key):
    X, y = some_data("binary", n_rows=20)
    shop = LateShop(X[:, :3], name="shop", allow_weak_key=True)
    shop.wrong = wrong
    settings = LinearSettings(max_iter=2, key_bits=512, allow_weak_key=True)
    coordinator = Coordinator({"bank": 5, "shop": 3}, max_steps=2, private_key=key, allow_weak_key=True)
    bank = LinearActiveParty(
        X[:, 3:],
        y[:, None],
        name="bank",
        passive_parties=["shop"],
        coordinator="coordinator",
        settings=settings,
    )
    network = InProcessNetwork({"shop": shop, "coordinator": coordinator}, leader="bank")
    with pytest.raises(RemoteProtocolError, match=words) as caught:
        network.run(bank)
    assert party is None or caught.value.party == party


def test_parties_by_hand_train_the_estimators_model(key):
    """As docs/linear.md has it."""
    from tests.linear.small import WEAK, estimator
    from vflcrypto import reuse_keys

    X, y = some_data("binary", n_rows=40)
    settings = LinearSettings(l2_sum=1.0, max_iter=4, **WEAK)
    parties = {
        "shop": LinearPassiveParty(X[:, 1::2], name="shop", allow_weak_key=True),
        "coordinator": Coordinator({"bank": 5, "shop": 3}, max_steps=4, private_key=key, allow_weak_key=True),
    }
    bank = LinearActiveParty(
        X[:, ::2],
        y[:, None],
        name="bank",
        passive_parties=["shop"],
        coordinator="coordinator",
        settings=settings,
    )
    with InProcessNetwork(parties, leader="bank") as network:
        result, own = network.run(bank), network.collect("shop")
    with reuse_keys(key), pytest.warns(Warning):
        model = estimator("binary", max_iter=4, **WEAK).fit(X, y)
    assert model._halves() == {"active": result, "p1": own}
