"""Nobody receives what they must not, and every test of it fails when the violation is planted."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tests.secureboost.small import some_data
from tests.secureboost.test_privacy import passive_view, same_view
from tests.secureboost.views import (
    crossed,
    fields_of_real_numbers,
    predicted_jacobi_share,
    replies_betray_rows,
    train,
    values_of,
)
from vfltree.forest import ForestActive, ForestPassive, ForestSettings
from vfltree.forest.messages import GrowTrees, SumSlots, TargetsOfForest
from vfltree.forest.nodes import ForestRound

pytestmark = pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning")

grow = partial(train, protocol=(ForestActive, ForestPassive, ForestSettings))


@pytest.fixture(scope="module")
def data():
    X, y = some_data("binary", n_rows=160, missing=True)
    return X[:, :4], X[:, 4:], y


class TestNonInterference:
    def test_labels_turned_over_leave_the_passive_view_unchanged(self, data, monkeypatch):
        XA, XP, y = data
        assert same_view(*(passive_view(grow(XA, XP, labels, monkeypatch)) for labels in (y, 1 - y)))

    def test_a_planted_label_in_a_message_is_noticed(self, data, monkeypatch):
        """The targets in the clear are such a message."""
        XA, XP, y = data
        views = []
        for labels in (y, 1 - y):
            run = grow(XA, XP, labels, monkeypatch, encryption="none")
            sent = [m for m in run.messages_to("shop") if isinstance(m, TargetsOfForest)]
            views.append([(type(m).__name__, {"targets": m.targets}) for m in sent])
        assert not same_view(*views)

    @pytest.mark.parametrize("parameters", [{}, {"balanced_subsample": True}])
    def test_draws_do_not_depend_on_labels_or_weights_of_classes(self, data, parameters, monkeypatch):
        XA, XP, y = data
        rare = (np.arange(len(y)) % 20 == 0).astype(int)
        runs = [grow(XA, XP, y, monkeypatch), grow(XA, XP, rare, monkeypatch, **parameters)]
        draws = [[m.times for m in run.messages_to("shop") if isinstance(m, GrowTrees)] for run in runs]
        assert np.array_equal(*draws)

    def test_draws_by_weight_are_noticed(self, data, monkeypatch):
        """As scikit-learn 1.9 draws: rows of a rare class so often that how often a row is drawn tells its label."""
        XA, XP, _ = data
        rare = (np.arange(160) % 20 == 0).astype(int)
        weighted = np.where(rare, 10.0, 0.5)

        def by_weight(seed, tree, n_rows, n_draws):
            rng = np.random.default_rng([seed, tree])
            drawn = rng.choice(n_rows, n_draws, p=weighted / weighted.sum())
            return np.bincount(drawn, minlength=n_rows).astype(np.uint16)

        def told(run):
            (sent,) = [m.times for m in run.messages_to("shop") if isinstance(m, GrowTrees)]
            times = sent.reshape(-1, len(rare)).mean(axis=0)
            return times[rare == 1].mean() / times[rare == 0].mean()

        assert told(grow(XA, XP, rare, monkeypatch, balanced_subsample=True, n_estimators=8)) < 2
        with monkeypatch.context() as patch:
            patch.setattr("vfltree.forest.active.draw_rows", by_weight)
            assert told(grow(XA, XP, rare, monkeypatch, n_estimators=8)) > 5

    def test_the_active_view_does_not_depend_on_foreign_values(self, data, monkeypatch):
        XA, XP, y = data
        runs = [grow(XA, block, y, monkeypatch) for block in (XP, np.exp(XP) - 7.0)]
        assert np.array_equal(*(np.concatenate(run.opened) for run in runs))
        assert runs[0].result == runs[1].result

    def test_permuted_columns_show_the_same_root_sums_in_another_order(self, data, monkeypatch):
        XA, XP, y = data
        shuffled = XP[:, np.random.default_rng(3).permutation(XP.shape[1])]
        runs = [
            grow(XA, block, y, monkeypatch, max_features=None, bootstrap=False, n_estimators=1)
            for block in (XP, shuffled)
        ]
        opened = [np.sort(run.opened[0][:, :, 0], axis=0) for run in runs]
        assert np.array_equal(*opened)


class TestReplies:
    def test_the_noise_of_a_reply_says_nothing_of_the_rows_in_it(self, data, monkeypatch):
        run = grow(*data, monkeypatch)
        assert len(run.replies) >= 2  # one a level at which something is summed: all trees answer together
        assert not replies_betray_rows(run)
        assert set(run.noises) == {"wide"}
        assert {reply.freshness for reply in run.replies} == {"wide"}

    def test_replies_that_were_not_blinded_cannot_leave(self, data, monkeypatch):
        with pytest.raises(Exception, match=r"NotFresh|not freshly blinded"):
            grow(*data, monkeypatch, blind=lambda array: array)

    def test_unblinded_replies_forced_out_are_noticed(self, data, monkeypatch):
        def pretend(array):
            return array._replace(freshness="wide")

        assert replies_betray_rows(grow(*data, monkeypatch, blind=pretend))

    def test_the_jacobi_symbol_of_a_reply_is_a_coin(self, data, monkeypatch):
        run = grow(*data, monkeypatch, n_estimators=20, max_features=None)
        n_replies = sum(reply.size for reply in run.replies)
        # Six standard deviations: wrong once in half a billion runs.
        assert abs(predicted_jacobi_share(run) - 0.5) < 3 / np.sqrt(n_replies)

    def test_targets_are_encrypted_once_for_all_trees(self, data, monkeypatch):
        runs = [grow(*data, monkeypatch, n_estimators=n) for n in (1, 6)]
        assert [len(run.rows) for run in runs] == [1, 1]
        assert [run.rows[0].size for run in runs] == [len(data[2])] * 2
        assert {run.rows[0].freshness for run in runs} == {None}  # received

    def test_every_ciphertext_that_leaves_is_new(self, data, monkeypatch):
        run = grow(*data, monkeypatch)
        seen = [c for arrays in (run.rows, run.replies) for array in arrays for c in values_of(array)]
        assert len(set(seen)) == len(seen)


class TestWhatIsSummed:
    def test_a_passive_party_is_asked_for_drawn_slots_only(self, data, monkeypatch):
        run = grow(*data, monkeypatch, n_estimators=4, max_features=1)
        asked = [m for m in run.messages_to("shop") if isinstance(m, SumSlots)]
        roots = np.diff(asked[0].bounds)
        assert (roots == 1).all() and len(roots) <= 4  # where the one slot is the shop's
        drawn = [len(m.slots) / len(m.nodes) for m in asked[1:]]
        assert max(drawn) <= 2  # its own, and one that its sibling needs

    def test_without_a_draw_it_is_asked_for_all_of_them(self, data, monkeypatch):
        run = grow(*data, monkeypatch, n_estimators=4, max_features=None)
        asked = [m for m in run.messages_to("shop") if isinstance(m, SumSlots)]
        assert (np.diff(asked[0].bounds) == data[1].shape[1]).all()

    def test_passive_parties_own_splits_below_the_root(self, data, monkeypatch):
        XA, XP, y = data
        depths = []
        real = ForestRound.divide

        def noted(self, split, left):
            if split.party:
                depths.append(int(split.node.record & 0xFFFFFFFF).bit_length() - 1)
            return real(self, split, left)

        monkeypatch.setattr(ForestRound, "divide", noted)
        grow(XA, XP, y, monkeypatch, n_estimators=8)
        assert set(depths) == {0, 1, 2}

    def test_no_sum_is_over_few_rows(self, data, monkeypatch):
        """Neither of those that travel nor of those that follow for a sibling; with the policy off there are such."""
        XA, XP, y = data
        parts = []
        real = ForestRound.choose_splits

        def noted(self, nodes):
            parts.extend(sums.sum(axis=2).ravel() for node in nodes for sums in node.histograms[1:])
            return real(self, nodes)

        def fewest(min_rows):
            parts.clear()
            with monkeypatch.context() as patch:
                patch.setattr(ForestRound, "choose_splits", noted)
                patch.setattr("vfltree.growing.follower.check_min_rows", lambda _: min_rows)
                grow(XA, XP, y, monkeypatch, bootstrap=False)  # draws are rows
            counts = np.concatenate(parts)
            return counts[counts > 0].min()

        assert fewest(10) >= 10
        assert fewest(1) < 10


class TestMessages:
    def test_no_kind_that_a_passive_party_receives_can_hold_a_real_number(self):
        assert fields_of_real_numbers(ForestPassive.messages) == []

    def test_no_message_holds_key_bytes(self, data, monkeypatch):
        run = grow(*data, monkeypatch)
        assert not any(crossed(run, prime) for prime in run.key._primes)

    def test_two_fits_with_the_same_seed_share_no_ciphertext(self, data, monkeypatch):
        first, second = (grow(*data, monkeypatch, seed=5) for _ in range(2))
        assert first.result == second.result
        assert not {c for a in first.rows for c in values_of(a)} & {
            c for a in second.rows for c in values_of(a)
        }
