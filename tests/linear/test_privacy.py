"""Nobody receives what the tables say they do not learn; every such test also fails with the protection taken away."""

from __future__ import annotations

import numpy as np
import pytest

from tests.linear.small import some_data
from tests.linear.views import train
from tests.planted import (
    SameMask,
    differences_are_small,
    masked_in_the_clear,
    masked_with_half,
    noise_is_kept,
    uniform,
    values_of,
)
from vflparty.coordinator import OpenMasked
from vfltree.linear.columns import SCORE_BITS
from vfltree.linear.exact.messages import ClearScores
from vfltree.linear.rows.messages import HalfSums
from vfltree.linear.scores.messages import MaskedSums, NextStep, SealedResiduals, SealedScores

pytestmark = pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning")
EXCHANGES = [{"exchange": "scores"}, {"exchange": "rows"}, {"residual": "exact"}]


def small(n_parties=2, n_rows=12):
    X, y = some_data("binary", n_rows=n_rows)
    names = ["bank", "shop", "phone"][:n_parties]
    return {name: X[:, i::n_parties] for i, name in enumerate(names)}, y


@pytest.mark.parametrize("how", EXCHANGES)
def test_masks_come_with_fresh_noise(how, monkeypatch):
    blocks, y = small()
    assert not noise_is_kept(train(blocks, y, monkeypatch, **how).hidden)
    assert noise_is_kept(train(blocks, y, monkeypatch, hide=masked_in_the_clear, **how).hidden)


@pytest.mark.parametrize("how", EXCHANGES)
def test_what_the_key_owner_receives_is_wide(how, monkeypatch):
    blocks, y = small()
    run = train(blocks, y, monkeypatch, **how)
    assert set(run.noises) == {"wide"} and len(run.noises) >= 2
    assert set(train(blocks, y, monkeypatch, hide=masked_with_half, **how).noises) == {"half"}


@pytest.mark.parametrize("how", EXCHANGES)
def test_masks_are_not_reused(how, monkeypatch):
    blocks, y = small()
    run = train(blocks, y, monkeypatch, max_iter=4, **how)
    assert not differences_are_small(run.opened(), run.key.public_key.n)
    planted = train(blocks, y, monkeypatch, max_iter=4, hide=SameMask(), **how)
    assert differences_are_small(planted.opened(), planted.key.public_key.n)
    assert planted.result.coefficients == pytest.approx(
        run.result.coefficients
    )  # and nothing else would tell


def rest_of_residuals(run):
    """What the passive party reads when it divides [[d]] by its own [[u]]: d - u where the noise cancels, else None."""
    n = run.key.public_key.n
    scores = run.array(run.messages("bank", SealedScores)[0].scores)
    residuals = run.array(run.messages("shop", SealedResiduals)[0].residuals)
    ratios = [
        d * pow(u, -1, n * n) % (n * n) for u, d in zip(values_of(scores), values_of(residuals), strict=True)
    ]
    return [(ratio - 1) // n if ratio % n == 1 else None for ratio in ratios]


def test_residuals_are_blinded_before_they_leave(monkeypatch):
    """Unblinded, one division gives the passive party the rest of every residual, and so every label."""
    blocks, y = small()
    assert rest_of_residuals(train(blocks, y, monkeypatch)) == [None] * len(y)
    planted = train(blocks, y, monkeypatch, send=lambda values: values._replace(freshness="half").to_bytes())
    n = planted.key.public_key.n
    read = [(value + n // 2) % n - n // 2 for value in rest_of_residuals(planted)]
    assert [value < 0 for value in read] == list(y == 1)


@pytest.mark.parametrize("how", EXCHANGES)
def test_what_leaves_for_another_party_is_blinded(how, monkeypatch):
    blocks, y = small()
    run = train(blocks, y, monkeypatch, **how)
    assert not noise_is_kept(run.sent)
    assert run.sent or how == {"residual": "exact"}  # where residuals are encrypted afresh


@pytest.mark.parametrize("how", [{"exchange": "scores"}, {"exchange": "rows"}])
def test_the_coordinator_sees_uniform_numbers(how, monkeypatch):
    """45 at 15 degrees of freedom is beyond one in 10,000; one retry."""
    blocks, y = small(n_rows=8)
    blocks["bank"] = blocks["bank"][:, :1]

    def seen(**planted):
        run = train(
            blocks, y, monkeypatch, max_iter=40, optimizer="adam", learning_rate=0.01, **how, **planted
        )
        return [value for step in run.opened() for value in step], run.key.public_key.n

    assert uniform(*seen()) or uniform(*seen())
    assert not uniform(*seen(hide=SameMask()))


@pytest.mark.parametrize("how", EXCHANGES)
def test_the_coordinator_cannot_tell_what_is_trained(how, monkeypatch):
    """Other labels, other features: the same messages, of the same sizes, with the same headers."""
    blocks, y = small()
    others = {party: np.round(1000 * X[::-1]) for party, X in blocks.items()}
    views = []
    for features, labels in ((blocks, y), (others, 1 - y)):
        run = train(features, labels, monkeypatch, optimizer="adam", learning_rate=1e-3, **how)
        to_coordinator = [sent.frame for sent in run.frames if sent.receiver == "coordinator"]
        arrays = [
            payload for message in run.messages("coordinator", OpenMasked) for payload in message.masked
        ]
        headers = [
            (run.array(a).shape, run.array(a).bound.bit_length(), run.array(a).encoding) for a in arrays
        ]
        views.append(([len(frame) for frame in to_coordinator], headers))
        assert run.coordinator.refused == 0
    assert views[0] == views[1]


@pytest.mark.parametrize("how", EXCHANGES[:2])
def test_without_the_key_a_passive_party_cannot_tell_labels(how, monkeypatch):
    """Its plaintext view of the first step is the same for opposite labels."""
    blocks, y = small()
    views = []
    for labels in (y, 1 - y):
        run = train(blocks, labels, monkeypatch, max_iter=1, **how)
        views.append([
            (type(m).__name__, *((k, v if not isinstance(v, bytes) else len(v)) for k, v in vars(m).items()))
            for m in run.messages("shop")
        ])  # fmt: skip
    assert str(views[0]) == str(views[1])


def test_the_active_party_receives_ciphertexts_and_one_bit(monkeypatch):
    blocks, y = small(3)
    run = train(blocks, y, monkeypatch)
    received = run.messages("bank")
    for message in received:
        for name, value in vars(message).items():
            allowed = isinstance(value, bytes | int) or name == "values"
            assert allowed, f"{type(message).__name__}.{name}"
    for message in [m for m in received if isinstance(m, SealedScores)]:
        scores = run.key.decrypt(run.array(message.scores))
        for value in scores.ravel():
            if value:
                assert int(value).to_bytes(8, "little", signed=True) not in message.scores


def test_everybody_is_given_their_own_opened_values_only(monkeypatch):
    blocks, y = small(3)
    run = train(blocks, y, monkeypatch)
    opened = run.messages("bank")
    values = [m.values for m in opened if type(m).__name__ == "Opened"]
    assert len(values) == 2
    for receiver, place in (("shop", 0), ("phone", 1)):
        given = [m.opened for m in run.messages(receiver) if isinstance(m, NextStep)][1:]
        assert given[0] == values[0][place].astype("<u8").tobytes()
        for other in {0, 1, 2} - {place}:
            assert all(values[0][other].astype("<u8").tobytes() not in m for m in given)


def test_scores_show_only_as_a_sum_where_there_are_several_passive_parties(monkeypatch):
    blocks, y = small(3, n_rows=40)
    run = train(blocks, y, monkeypatch, residual="exact", max_iter=3)
    shown = [m.scores.ravel() for m in run.messages("bank", ClearScores)]
    last = shown[-2:]
    sizes = [np.abs(scores.astype(float)).mean() for scores in last]
    assert min(sizes) > 2.0**60  # uniform modulo 2**64
    with np.errstate(over="ignore"):
        assert np.abs((last[0] + last[1]).astype(float)).max() < 2.0 ** (SCORE_BITS + 4)
    alone = train(
        *small(2), monkeypatch, residual="exact", max_iter=3
    )  # two parties have nobody to hide among
    assert np.abs(alone.messages("bank", ClearScores)[-1].scores.astype(float)).max() < 2.0 ** (
        SCORE_BITS + 4
    )


def test_small_batches_give_labels_away(monkeypatch):
    """The leak behind the least batch size: with as many rows as columns, a linear system has one solution."""
    rng = np.random.default_rng(0)
    blocks = {"bank": rng.normal(size=(6, 2)), "shop": rng.normal(size=(6, 6))}
    y = np.array([0, 1, 1, 0, 1, 0])
    run = train(blocks, y, monkeypatch, max_iter=1)
    gradient = next(g[0] for g in run.gradients.values() if len(g[0]) == 6)
    residuals = np.linalg.solve(blocks["shop"].T, gradient[:, 0])
    assert ((residuals < 0) == (y == 1)).all()


@pytest.mark.parametrize("how", [{"exchange": "scores"}, {"exchange": "rows"}])
def test_sums_leave_masked(how, monkeypatch):
    """What a passive party hands to the leader for the coordinator does not decrypt to its gradient."""
    blocks, y = small()
    run = train(blocks, y, monkeypatch, **how)
    kind = MaskedSums if how["exchange"] == "scores" else None
    payloads = (
        [m.sums for m in run.messages("bank", kind)]
        if kind
        else [m.masked for m in run.messages("bank") if hasattr(m, "masked")]
    )
    assert payloads
    n = run.key.public_key.n
    for payload in payloads:
        values = np.atleast_1d(run.key.decrypt(run.array(payload))).ravel()
        assert all(min(int(v) % n, -int(v) % n) > n >> 64 for v in values)
    assert how["exchange"] == "scores" or run.messages("shop", HalfSums)
