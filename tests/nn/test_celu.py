"""CELU-VFL: its workset by laws, its updates against the rule written out by hand."""

from collections import Counter

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tests.nn import small
from tests.nn.by_hand import ByHand
from vflnn.protocols.celu import Cached, Workset, similarity
from vflnn.split import TopHalf

NAMES = ("local_updates", "cached_batches", "threshold")


def settings(*options, **changes):
    """R, W and threshold in this order."""
    given = dict(zip(NAMES, options, strict=False))
    return small.settings(protocol="celu", protocol_options=given, **changes)


def batches(workset, lengths):
    """Numbers of the batches drawn after each exchange, where batches of these lengths are put one after the other."""
    drawn = []
    for number, length in enumerate(lengths):
        workset.put(Cached(np.zeros(length), number, number))
        drawn.append([cached.outputs for cached in workset.draws()])
    return drawn


# ---------------------------------------------------------------- the workset


@pytest.mark.parametrize(("updates", "window"), [(4, 5), (1, 3), (7, 2), (3, 1), (2, 5)])
def test_a_batch_is_used_local_updates_times_at_most_and_in_the_long_run_exactly(updates, window):
    drawn = batches(Workset(updates, window, seed=1), [10] * 60)
    uses = Counter(number for draws in drawn for number in draws)
    assert max(uses.values()) == updates
    assert all(uses[number] == updates for number in range(2 * window, 60 - 2 * window))


@pytest.mark.parametrize(("updates", "window"), [(4, 5), (9, 3), (3, 2), (4, 20)])
def test_a_batch_is_not_drawn_again_before_window_less_one_others(updates, window):
    drawn = [n for draws in batches(Workset(updates, window, seed=2), [10] * 60) for n in draws]
    later = drawn[window * updates :]  # past the start, every draw finds a batch
    assert len(later) > 100
    assert all(len(set(later[i : i + window])) == window for i in range(len(later) - window + 1))


def test_only_the_last_batches_exchanged_are_drawn():
    for number, draws in enumerate(batches(Workset(4, 5, seed=3), [10] * 60)):
        assert all(number - 5 < n <= number for n in draws)


def test_draws_are_alike_for_equal_seeds_and_differ_for_others_where_batches_come_late():
    def drawn(seed):
        return batches(Workset(9, 3, seed), ([10] * 4 + [7]) * 4)

    assert drawn(1) == drawn(1)
    assert len({str(drawn(seed)) for seed in range(8)}) > 1


def test_while_the_first_batches_come_each_is_drawn_once_in_window_draws():
    assert batches(Workset(4, 5, seed=4), [10] * 5) == [[0], [1, 0], [2, 1, 0], [3, 2, 1, 0], [4, 3, 2, 1]]


def test_a_batch_shorter_than_the_first_is_not_kept():
    drawn = batches(Workset(2, 1, seed=5), [10, 7, 10, 11])
    assert drawn == [[0, 0], [], [2, 2], [3, 3]]


@pytest.mark.parametrize(("updates", "window"), [(4, 5), (2, 2), (1, 3), (5, 4)])
def test_no_batch_is_older_than_window_times_updates_draws_whichever_come_late(updates, window):
    random = np.random.default_rng(0)
    for seed in range(30):
        lengths = [10, *np.where(random.random(30) < 0.5, 5, 10)]
        uses = Counter()
        for number, draws in enumerate(batches(Workset(updates, window, seed), lengths)):
            uses.update(draws)
            # Draws of an exchange: those of all exchanges since the batch came, this one included.
            assert all((number - n + 1) <= window for n in draws)
        assert max(uses.values()) <= updates


def test_no_local_updates_draw_nothing():
    assert batches(Workset(0, 5, seed=0), [10] * 4) == [[]] * 4


# ---------------------------------------------------------------- weights of samples


def test_similarity_is_the_cosine_and_zero_below_the_threshold():
    now = torch.tensor([[1.0, 0.0], [1.0, 1.0], [3.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
    then = torch.tensor([[2.0, 0.0], [1.0, 0.0], [3.0, 4.0], [1.0, 0.0], [1.0, 0.0]])
    cosines = torch.tensor([1.0, 0.5**0.5, 0.6, -1.0, 0.0])
    torch.testing.assert_close(similarity(now, then, -1.0), cosines)
    torch.testing.assert_close(similarity(now, then, 0.65), cosines * torch.tensor([1.0, 1.0, 0.0, 0.0, 0.0]))
    assert not similarity(now, then, 1.01).any()


def test_similarity_of_tiny_and_of_absurd_rows_is_a_number_from_minus_one_to_one():
    random = np.random.default_rng(0)
    for scale in (1e-44, 1e-30, 1e-6, 1e6, 1e30):
        rows = torch.from_numpy((random.normal(size=(50, 3)) * scale).astype(np.float32))
        cosines = similarity(rows, rows, -1.0)
        assert cosines.isfinite().all() and cosines.abs().max() <= 1.0
    assert similarity(torch.full((1, 7), 0.3), torch.full((1, 7), 0.3), -1.0) <= 1.0


# ---------------------------------------------------------------- identities


@pytest.mark.parametrize("n_parties", [2, 3])
@pytest.mark.parametrize("updates", [0, 4])
def test_one_cached_batch_without_weights_is_fedbcd_bit_for_bit(n_parties, updates):
    """R local updates and the exchange are its Q = R + 1."""
    X, y = small.blocks(n_parties, n=40)
    celu = small.Training(X, y, settings(updates, 1, None, n_samples=40), top="linear_top").run()
    options = {"local_steps": updates + 1}
    bcd = small.settings(protocol="fedbcd-p", protocol_options=options, n_samples=40)
    assert small.same(celu.weights, small.Training(X, y, bcd, top="linear_top").run().weights)


@pytest.mark.parametrize("n_parties", [2, 3])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_above_a_threshold_of_one_local_updates_change_nothing(n_parties, optimizer):
    """Not even by Adam's moments: a batch of which no sample is left is not stepped on."""
    X, y = small.blocks(n_parties)
    celu = small.Training(X, y, settings(4, 5, 1.01, optimizer=optimizer)).run()
    sgd = small.Training(X, y, small.settings(optimizer=optimizer)).run()
    assert small.same(celu.weights, sgd.weights)


def test_bytes_are_those_of_fedsgd():
    X, y = small.blocks(3)

    def traffic(agreed):
        table = small.Training(X, y, agreed).run().network.ledger.summary()
        return table[table.kind != "TrainingSettings"].reset_index(drop=True)

    assert traffic(settings(4, 5, 0.5)).equals(traffic(small.settings()))


# ---------------------------------------------------------------- by hand


@pytest.mark.parametrize("n_parties", [2, 3])
@pytest.mark.parametrize("top", ["sum_top", "linear_top"])
@pytest.mark.parametrize(("window", "threshold"), [(3, 0.9), (3, None), (5, -1.0)])
def test_updates_equal_the_rule_by_hand(n_parties, top, window, threshold):
    """Cached gradients meet the samples of their own batch, which a shuffled order keeps apart; the last is short."""
    X, y = small.blocks(n_parties)
    agreed = settings(4, window, threshold, optimizer="sgd", learning_rate=0.4)
    hand = ByHand(X, y, agreed, top=top)
    workset, dropped = Workset(4, window, agreed.seed), 0

    def weights(now, then):
        if threshold is None:
            return torch.ones(len(now))
        cosine = F.cosine_similarity(now, then, dim=1, eps=1e-12)
        return torch.where(cosine >= threshold, cosine, torch.tensor(0.0))

    for rows in hand.batches():
        received = hand.outputs(rows)
        gradients = hand.gradients(rows, received)
        hand.active_step(rows, received)
        for k, gradient in enumerate(gradients, start=1):
            hand.passive_step(k, rows, gradient)
        workset.put(Cached(rows, received, gradients))
        for cached in workset.draws():
            rows, received, gradients = cached.rows, cached.outputs, cached.gradients
            now = hand.gradients(rows, received)
            trust = weights(torch.cat(now, dim=1), torch.cat(gradients, dim=1))
            dropped += int((trust == 0).sum())
            hand.active_step(rows, received, trust)
            for k, gradient in enumerate(gradients, start=1):
                trust = weights(hand.output(k, rows).detach(), received[k - 1])
                dropped += int((trust == 0).sum())
                hand.passive_step(k, rows, gradient * trust[:, None])
    trained = small.Training(X, y, agreed, top=top).run().weights
    for name, expected in hand.weights.items():
        np.testing.assert_allclose(trained[name], expected, rtol=2e-4, atol=2e-5, err_msg=name)
    assert (dropped > 0) == (threshold == 0.9)


def test_every_weight_makes_a_difference():
    X, y = small.blocks(3)
    runs = [
        small.Training(X, y, settings(*options, optimizer="sgd", learning_rate=0.4)).run().weights
        for options in ((4, 5, 0.9), (4, 5, None), (4, 5, -1.0), (3, 5, 0.9), (4, 4, 0.9))
    ]
    assert not any(small.same(a, b) for i, a in enumerate(runs) for b in runs[:i])


def test_the_default_is_the_paper_tables_five_updates_a_batch():
    X, y = small.blocks()
    agreed = small.settings(protocol="celu", n_samples=37)
    training = small.Training(X, y, agreed)
    assert training.active._protocol._workset._local_updates == 4
    assert training.active._protocol._workset._cached_batches == 5
    assert small.same(training.run().weights, small.Training(X, y, settings(4, 5, 0.5)).run().weights)


def test_a_party_alone_updates_on_its_own_batches():
    X, y = small.blocks(1, n=40)
    celu = small.Training(X, y, settings(4, 1, 0.5, n_samples=40)).run()
    bcd = small.settings(protocol="fedbcd-p", n_samples=40)
    assert small.same(celu.weights, small.Training(X, y, bcd).run().weights)


def test_a_weighted_exchange_leaves_gradients_for_others_unweighted():
    X, y = small.blocks(3)
    half: TopHalf = small.Training(X, y, small.settings()).active.half
    rows, outputs = np.arange(10), {"one": torch.ones(10, 3), "two": torch.zeros(10, 3)}
    plain = half.exchange(rows, outputs)
    weighted = half.exchange(rows, outputs, lambda gradients: torch.arange(10.0))
    assert plain.weights is None and torch.equal(weighted.weights, torch.arange(10.0))
    assert weighted.loss == plain.loss
    assert all(torch.equal(weighted.gradients[party], plain.gradients[party]) for party in outputs)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"local_updates": -1}, "local_updates must be a whole number from 0 to 1000, got -1"),
        ({"local_updates": 4.0}, "local_updates must be a whole number from 0 to 1000, got 4.0"),
        ({"cached_batches": 0}, "cached_batches must be a whole number from 1 to 1000, got 0"),
        ({"cached_batches": 10**6}, "cached_batches must be a whole number from 1 to 1000, got 1000000"),
        ({"threshold": "half"}, "threshold must be a finite number, got 'half'"),
        ({"threshold": True}, "threshold must be a finite number, got True"),
        ({"window": 5}, "protocol 'celu' has no option 'window'"),
    ],
)
def test_wrong_options_are_refused_by_either_side_before_training(options, text):
    X, y = small.blocks()
    training = small.Training(X, y, small.settings())
    agreed = small.settings(protocol="celu", protocol_options=options)
    with pytest.raises(ValueError, match=text):
        small.Training(X, y, agreed)
    with pytest.raises(ValueError, match=text):
        training.passive["one"].on_training_settings(agreed)
