"""Nobody receives what they must not, and every test of it fails when the violation is planted."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tests.secureboost.small import some_data
from tests.secureboost.views import (
    crossed,
    fields_of_real_numbers,
    predicted_jacobi_share,
    replies_betray_rows,
    train,
    values_of,
    without_ciphertexts,
)
from vflcrypto import noise
from vflparty.messages import field_types
from vfltree.secureboost import PassiveParty
from vfltree.secureboost.messages import GradientsForRound, Records

pytestmark = pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning")


@pytest.fixture(scope="module")
def data():
    X, y = some_data("binary", n_rows=160, missing=True)
    return X[:, :4], X[:, 4:], y


def same_view(one, other) -> bool:
    def equal(a, b):
        return a.dtype == b.dtype and np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b

    return len(one) == len(other) and all(
        kind_a == kind_b and a.keys() == b.keys() and all(equal(a[name], b[name]) for name in a)
        for (kind_a, a), (kind_b, b) in zip(one, other, strict=True)
    )


def passive_view(run):
    return [without_ciphertexts(message) for message in run.messages_to("shop")]


GROWTH = {
    "plain": {},
    "columns": {"colsample_bytree": 0.8, "colsample_bylevel": 0.5},
    "leaf-wise": {"grow_policy": "lossguide", "max_leaves": 5},
    "goss": {"sampling_method": "goss", "n_estimators": 1},
}


class TestNonInterference:
    @pytest.mark.parametrize("growth", GROWTH.values(), ids=GROWTH)
    def test_labels_turned_over_leave_the_passive_view_unchanged(self, data, growth, monkeypatch):
        XA, XP, y = data
        views = [
            passive_view(train(XA, XP, labels, monkeypatch, base_score=0.5, **growth))
            for labels in (y, 1 - y)
        ]
        assert same_view(*views)

    def test_a_planted_label_in_a_message_is_noticed(self, data, monkeypatch):
        """The gradients in the clear are such a message."""
        XA, XP, y = data
        views = []
        for labels in (y, 1 - y):
            run = train(XA, XP, labels, monkeypatch, base_score=0.5, encryption="none")
            gradients = [m for m in run.messages_to("shop") if isinstance(m, GradientsForRound)]
            views.append([(type(m).__name__, {"gradients": m.gradients}) for m in gradients])
        assert not same_view(*views)

    @pytest.mark.parametrize("change", ["monotone", "permuted"])
    def test_the_active_view_does_not_depend_on_foreign_values_or_names(self, data, change, monkeypatch):
        XA, XP, y = data
        columns = np.arange(XP.shape[1])
        other = np.exp(XP) - 7.0
        if change == "permuted":
            columns = np.random.default_rng(3).permutation(columns)
            other = XP[:, columns]
        runs = [train(XA, block, y, monkeypatch) for block in (XP, other)]
        opened = [np.concatenate(run.opened) for run in runs]
        if change == "monotone":
            assert np.array_equal(*opened)
            assert runs[0].result == runs[1].result
        else:  # the same sums in another order
            assert np.array_equal(*(np.unique(view[:, 0], return_counts=True) for view in opened))


class TestSampledRows:
    def rows(self, data, monkeypatch, **sampling) -> np.ndarray:
        """The rows of the first round, as the passive party hears of them."""
        XA, XP, _ = data
        run = train(XA, XP, self.rare, monkeypatch, n_estimators=1, **sampling)
        (message,) = [m for m in run.messages_to("shop") if isinstance(m, GradientsForRound)]
        return message.rows

    rare = np.arange(160) % 10 == 0

    def test_goss_tells_a_rare_class_by_its_gradients(self, data, monkeypatch):
        """What the documentation says: rows that were not chosen are of the frequent class, nearly all of them."""
        rows = self.rows(data, monkeypatch, sampling_method="goss")
        assert self.rare[rows].sum() == self.rare.sum()
        assert len(rows) < 160 / 3

    def test_rows_drawn_by_lot_do_not(self, data, monkeypatch):
        rows = self.rows(data, monkeypatch, subsample=0.3)
        assert 0 < self.rare[rows].sum() < self.rare.sum()


class TestReplies:
    def test_the_noise_of_a_reply_says_nothing_of_the_rows_in_it(self, data, monkeypatch):
        run = train(*data, monkeypatch)
        assert len(run.replies) > 4
        assert not replies_betray_rows(run)
        assert set(run.noises) == {"wide"}
        assert {reply.freshness for reply in run.replies} == {"wide"}

    def test_replies_that_were_not_blinded_cannot_leave(self, data, monkeypatch):
        with pytest.raises(Exception, match=r"NotFresh|not freshly blinded"):
            train(*data, monkeypatch, blind=lambda array: array)

    def test_unblinded_replies_forced_out_are_noticed(self, data, monkeypatch):
        def pretend(array):
            return array._replace(freshness="wide")

        assert replies_betray_rows(train(*data, monkeypatch, blind=pretend))

    def test_the_jacobi_symbol_of_a_reply_is_a_coin(self, data, monkeypatch):
        run = train(*data, monkeypatch, n_estimators=6)
        n_replies = sum(reply.size for reply in run.replies)
        # Six standard deviations: wrong once in half a billion runs.
        assert abs(predicted_jacobi_share(run) - 0.5) < 3 / np.sqrt(n_replies)

    def test_noise_without_the_factor_u_is_noticed(self, data, monkeypatch):
        monkeypatch.setattr(noise.randomness, "random_bits", lambda count: np.zeros(count, dtype=np.uint8))
        assert predicted_jacobi_share(train(*data, monkeypatch)) == 1.0

    def test_every_ciphertext_that_leaves_is_new(self, data, monkeypatch):
        run = train(*data, monkeypatch)
        seen = [c for arrays in (run.rows, run.replies) for array in arrays for c in values_of(array)]
        assert len(set(seen)) == len(seen)


class TestMessages:
    def test_no_kind_that_a_passive_party_receives_can_hold_a_real_number(self):
        assert fields_of_real_numbers(PassiveParty.messages) == []

    def test_no_message_holds_key_bytes(self, data, monkeypatch):
        run = train(*data, monkeypatch)
        assert not any(crossed(run, prime) for prime in run.key._primes)
        assert crossed(run, run.key.public_key.n)

    def test_training_never_pickles(self, data, monkeypatch):
        def refuse(*args, **kwargs):
            raise AssertionError("pickle was used")

        for name in ("dumps", "loads", "dump", "load", "Pickler", "Unpickler"):
            monkeypatch.setattr(pickle, name, refuse)
        assert train(*data, monkeypatch).result is not None

    def test_two_fits_with_the_same_seed_share_no_ciphertext(self, data, monkeypatch):
        first, second = (train(*data, monkeypatch, seed=5) for _ in range(2))
        assert first.result == second.result
        assert not {c for a in first.rows for c in values_of(a)} & {
            c for a in second.rows for c in values_of(a)
        }

    def test_each_party_keeps_only_its_own_thresholds(self, monkeypatch):
        rng = np.random.default_rng(0)
        XA = rng.choice([1.25, 2.5], size=(60, 1))
        XP = rng.choice([123.456, 987.654], size=(60, 1))
        y = ((XA[:, 0] > 2) ^ (XP[:, 0] > 500)).astype(int)
        run = train(XA, XP, y, monkeypatch, min_child_weight=0)
        from vflparty import codec

        active = codec.encode(run.result)
        assert np.float64(987.654).tobytes() not in active
        assert np.float32(987.654).tobytes() not in active
        # A passive party's state is a lookup table, what lies below its own thresholds, and the lists of its codes.
        assert [name for name, _ in field_types(Records)] == [
            "ids", "columns", "thresholds", "missing_left", "lower", "right", "categories",
        ]  # fmt: skip
