"""Encrypted training takes the steps of plain training on the Taylor loss, and the same ones with and without keys."""

import dataclasses

import numpy as np
import pytest
import torch
from scipy import sparse

from tests.nn import small
from tests.nn.under_encryption import PLAIN, WEAK, plan, weights
from vflcrypto import kernels
from vflnn.agreement import Agreement
from vflnn.encrypted.seating import train_encrypted
from vflnn.losses import mean_loss, taylor_logit
from vflnn.recipes import build_bottom, model_recipe
from vflnn.seating import train
from vflnn.working import RandomStream

pytestmark = pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning")
CLOSE = 2.0**-18


def one_plain_step(chosen):
    """Weights after one step of descent at rate 1 on the Taylor loss, by autograd through the whole network."""
    parts = {"active": chosen.own, **chosen.passive}
    models = {}
    for party, part in parts.items():
        with RandomStream(part.model.seed).working():
            models[party] = build_bottom(part.model, part.samples.shape[1:], part.width)
    rows = Agreement(chosen.settings).order.rows(0)
    scores = sum(models[party](torch.from_numpy(part.samples[rows])) for party, part in parts.items())
    labels = torch.from_numpy(chosen.labels[rows])
    mean_loss(taylor_logit(scores, labels), labels).backward()
    return {
        f"{'active.bottom' if party == 'active' else party}.{name}": (p.detach() - p.grad).numpy()
        for party, model in models.items()
        for name, p in model.named_parameters()
    }


@pytest.mark.parametrize("n_parties", [2, 3])
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("bottom", ["linear", "tanh_net"])
def test_one_encrypted_step_is_the_plain_taylor_step(n_parties, n_classes, bottom):
    chosen = plan(
        n_parties, n_classes, bottom, optimizer="SGD", learning_rate=1.0, epochs=1, batch_size=None, n=24
    )
    expected, found = one_plain_step(chosen), weights(train_encrypted(chosen, WEAK))
    assert expected.keys() == found.keys()
    for name, values in expected.items():
        assert np.abs(found[name] - values).max() <= CLOSE, name


@pytest.mark.parametrize("bottom", ["linear", "tanh_net"])
def test_many_encrypted_steps_follow_plain_training(bottom):
    chosen = plan(3, 5, bottom, n=200, batch_size=50, n_evaluation=40, epochs=6, learning_rate=0.02)
    encrypted, plain = train_encrypted(chosen, PLAIN), train(chosen)
    expected, found = weights(plain), weights(encrypted)
    for name, values in found.items():
        assert np.abs(expected[name] - values).max() < 2e-3, name
    assert np.abs(encrypted.result.scores - plain.result.scores).max() < 2e-2
    assert encrypted.result.epoch_loss[-1] == pytest.approx(plain.result.epoch_loss[-1], abs=1e-2)


@pytest.mark.parametrize("backend", kernels.backends())
@pytest.mark.parametrize("n_parties", [2, 3])
@pytest.mark.parametrize("bottom", ["linear", "tanh_net"])
def test_with_and_without_encryption_the_weights_are_the_same_bit_for_bit(
    bottom, n_parties, backend, monkeypatch
):
    monkeypatch.setenv("VFL_BACKEND", backend)
    chosen = plan(n_parties, bottom=bottom, n=20, n_evaluation=5, epochs=2, batch_size=10)
    one, other = train_encrypted(chosen, PLAIN), train_encrypted(chosen, WEAK)
    assert small.same(weights(one), weights(other))
    assert np.array_equal(one.result.scores, other.result.scores)
    assert other.ledger.counts["decryptions"] == sum(other.coordinator.opened) > 0
    assert other.coordinator.refused == 0 and one.coordinator is None


@pytest.mark.slow
def test_parties_in_processes_train_the_same_weights():
    chosen = plan(3, bottom="tanh_net", n=20, n_evaluation=5, epochs=1, batch_size=None)
    one, other = (train_encrypted(chosen, WEAK, kind) for kind in ("inprocess", "process"))
    assert small.same(weights(one), weights(other))
    traffic = [trained.ledger.summary()[["party", "sender", "kind", "messages"]] for trained in (one, other)]
    assert traffic[0].equals(traffic[1])


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "adagrad", "rmsprop"])
def test_every_optimizer_steps_on_the_opened_gradient(optimizer):
    chosen = plan(optimizer=optimizer, epochs=2, learning_rate=0.01)
    found, expected = weights(train_encrypted(chosen, PLAIN)), weights(train(chosen))
    for name, values in found.items():
        assert np.abs(expected[name] - values).max() < 5e-3, name


def test_threads_do_not_change_the_weights():
    chosen = plan(epochs=1)
    one, other = (train_encrypted(chosen, dataclasses.replace(WEAK, n_jobs=jobs)) for jobs in (1, 2))
    assert small.same(weights(one), weights(other))


@pytest.mark.parametrize("bottom", ["LogisticRegression", "MLP2"])
def test_sparse_tables_train_as_dense_ones_do(bottom):
    chosen = plan(n=24, batch_size=12, epochs=2)
    own = dataclasses.replace(chosen.own, model=model_recipe(bottom, seed=1))
    thin = dataclasses.replace(own, samples=sparse.csr_matrix(own.samples))
    dense, thin = (dataclasses.replace(chosen, own=part) for part in (own, thin))
    expected, found = (weights(train_encrypted(trained, PLAIN)) for trained in (dense, thin))
    assert expected.keys() == found.keys()
    assert all(np.array_equal(expected[name], found[name]) for name in expected)


@pytest.mark.parametrize("terms", [PLAIN, WEAK], ids=["none", "paillier"])
def test_the_watched_loss_is_that_of_the_batch_before_its_step(terms):
    chosen = plan(3, epochs=1, batch_size=None, n=24)
    seen = train_encrypted(chosen, dataclasses.replace(terms, watch_loss=True)).result.step_loss
    plain = train(chosen).result.step_loss
    assert seen == pytest.approx(plain, abs=1e-4)
    assert np.isnan(train_encrypted(chosen, PLAIN).result.step_loss).all()


def test_the_active_party_may_have_labels_only():
    chosen = dataclasses.replace(plan(3, n_evaluation=6), own=None)
    one, other = train_encrypted(chosen, PLAIN), train_encrypted(chosen, WEAK)
    assert small.same(weights(one), weights(other))
    assert other.coordinator.parties == ("one", "two")
    watched = train_encrypted(chosen, dataclasses.replace(WEAK, watch_loss=True))
    assert watched.coordinator.parties == ("one", "two", "active")
    assert small.same(weights(other), weights(watched))


def test_training_goes_on_where_it_stopped():
    whole = weights(train_encrypted(plan(epochs=3), PLAIN))
    first = plan(epochs=2)
    begun = train_encrypted(first, PLAIN)
    rest = dataclasses.replace(
        plan(epochs=1, first_epoch=2),
        active_state=begun.states["active"],
        passive={
            party: dataclasses.replace(part, state=begun.states[party])
            for party, part in first.passive.items()
        },
    )
    assert small.same(whole, weights(train_encrypted(rest, WEAK)))


def test_rows_are_evaluated_once_after_the_last_epoch():
    trained = train_encrypted(plan(epochs=3, n_evaluation=8), PLAIN)
    table = trained.ledger.summary()
    assert table[table.kind == "ScoredOutputs"].messages.tolist() == [1]
    assert np.isfinite(trained.result.epoch_loss).tolist() == [False, False, True]
    assert trained.result.scores.shape == (8, 3)


def test_frozen_parameters_stay_and_are_not_opened():
    X, _ = small.blocks()
    chosen = plan(epochs=2, bottom="half_frozen")
    before = chosen.own.model
    with RandomStream(before.seed).working():
        start = build_bottom(before, X[0].shape[1:], 3)
    for terms in (PLAIN, WEAK):
        trained = train_encrypted(chosen, terms)
        found = weights(trained)
        assert np.array_equal(found["active.bottom.weight"], start.weight.detach().numpy())
        assert not np.array_equal(found["active.bottom.bias"], start.bias.detach().numpy())
    assert trained.coordinator.opened == (3 * 8, 3 * 8)
