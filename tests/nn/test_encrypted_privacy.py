"""Nobody receives what `vflnn.encrypted` says they do not learn; each test fails without the protection."""

import dataclasses

import numpy as np
import pytest

from tests.nn import small
from tests.nn.under_encryption import PLAIN, WEAK, plan, watched, weights
from tests.planted import (
    SameMask,
    differences_are_small,
    masked_in_the_clear,
    masked_with_half,
    noise_is_kept,
    uniform,
    values_of,
)
from vflcrypto.masking import hide
from vflnn.encrypted.messages import EncryptedOutputs, EncryptedResiduals, MaskedGradient, OpenedGradient
from vflnn.encrypted.numbers import OUTPUT_BITS
from vflnn.encrypted.seating import train_encrypted
from vflparty.arithmetic import PaillierArithmetic
from vflparty.coordinator import Opened, OpenMasked

pytestmark = pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning")


def tiny(n_parties=2, bottom="linear", **changes):
    return plan(n_parties, 2, bottom, **{"n": 6, "n_features": 2, "epochs": 2, "batch_size": None, **changes})


# ---------------------------------------------------------------- what the coordinator sees


@pytest.mark.parametrize("bottom", ["linear", "tanh_net"])
def test_masks_come_with_fresh_wide_noise(bottom, monkeypatch):
    run = watched(tiny(bottom=bottom, epochs=1), monkeypatch)
    assert not noise_is_kept(run.hidden)
    assert {masked.freshness for _, masked in run.hidden} == {"wide"} and len(run.hidden) == 2
    assert noise_is_kept(watched(tiny(bottom=bottom, epochs=1), monkeypatch, hide=masked_in_the_clear).hidden)
    half = watched(tiny(bottom=bottom, epochs=1), monkeypatch, hide=masked_with_half)
    assert {masked.freshness for _, masked in half.hidden} == {"half"}


def test_masks_change_every_message_and_not_the_result(monkeypatch):
    one, other = (watched(tiny(), monkeypatch) for _ in range(2))
    assert small.same(weights(one.trained), weights(other.trained))
    for kind in (OpenMasked, Opened, MaskedGradient, OpenedGradient, EncryptedOutputs, EncryptedResiduals):
        pairs = list(zip(one.messages(kind=kind), other.messages(kind=kind), strict=True))
        assert pairs and all(str(vars(a)) != str(vars(b)) for a, b in pairs), kind
    seen = [{value for step in run.opened() for value in step} for run in (one, other)]
    assert not seen[0] & seen[1]


def test_masks_are_not_reused(monkeypatch):
    run = watched(tiny(epochs=3), monkeypatch)
    assert not differences_are_small(run.opened(), run.key.public_key.n)
    planted = watched(tiny(epochs=3), monkeypatch, hide=SameMask())
    assert differences_are_small(planted.opened(), planted.key.public_key.n)
    assert small.same(weights(planted.trained), weights(run.trained))  # and nothing else would tell


def test_the_coordinator_sees_uniform_numbers(monkeypatch):
    """One retry: the check alone fails one time in some thousand."""

    def seen(**planted):
        run = watched(tiny(epochs=25, n=4), monkeypatch, **planted)
        return [value for step in run.opened() for value in step], run.key.public_key.n

    assert uniform(*seen()) or uniform(*seen())
    assert not uniform(*seen(hide=SameMask()))


def unmasked(array, n_jobs=1):
    """Fresh noise, and the plaintext as it was."""
    _, mask = hide(array, n_jobs)
    mask._values = [0] * array.size
    return array._replace(bound=array.public_key.capacity).rerandomize("wide"), mask


def near_zero(run):
    """Opened values that a mask has not spread over the ring."""
    n = run.key.public_key.n
    return [value for step in run.opened() for value in step if min(value, n - value) < n >> 64]


def test_no_gradient_is_opened_unmasked(monkeypatch):
    chosen = dataclasses.replace(WEAK, watch_loss=True)
    assert near_zero(watched(tiny(), monkeypatch, chosen)) == []
    planted = watched(tiny(), monkeypatch, chosen, hide=unmasked)
    assert len(near_zero(planted)) == sum(planted.trained.coordinator.opened)


def test_the_coordinator_cannot_tell_what_is_trained(monkeypatch):
    """Other labels, other columns: the same messages, of the same sizes."""
    views = []
    for change in (1, -1):
        chosen = tiny(3)
        parts = {
            p: dataclasses.replace(part, samples=change * part.samples) for p, part in chosen.passive.items()
        }
        labels = chosen.labels if change == 1 else 1 - chosen.labels
        run = watched(dataclasses.replace(chosen, passive=parts, labels=labels), monkeypatch)
        frames = [sent.frame for sent in run.trained.transcript if sent.receiver == "coordinator"]
        views.append([(frame[32 : 32 + frame[5]], len(frame)) for frame in frames])
    assert views[0] == views[1]
    assert {name for name, _ in views[0]} == {b"AskKey", b"OpenMasked"}


# ---------------------------------------------------------------- what passive parties see


def rest_of_residuals(run):
    """What a passive party reads when it divides [[D]] by its own [[H]]: D - H where the noise cancels, else None."""
    n = run.key.public_key.n
    outputs = run.array(run.messages("active", EncryptedOutputs)[0].outputs)
    residuals = run.array(run.messages("one", EncryptedResiduals)[0].residuals)
    ratios = [
        d * pow(h, -1, n * n) % (n * n) for h, d in zip(values_of(outputs), values_of(residuals), strict=True)
    ]
    return [(ratio - 1) // n if ratio % n == 1 else None for ratio in ratios]


def test_residuals_are_blinded_before_they_leave(monkeypatch):
    """Unblinded, one division gives the passive party the rest of every residual, and so every label."""
    run = watched(tiny(epochs=1), monkeypatch)
    assert rest_of_residuals(run) == [None] * (6 * 2)
    assert not noise_is_kept(run.blinded) and len(run.blinded) == 1
    planted = watched(
        tiny(epochs=1), monkeypatch, send=lambda values: values._replace(freshness="half").to_bytes()
    )
    assert noise_is_kept(planted.blinded)
    n = planted.key.public_key.n
    read = np.array([(value + n // 2) % n - n // 2 for value in rest_of_residuals(planted)], dtype=float)
    rest = (read / 2**OUTPUT_BITS).reshape(6, 2)  # H of the active party - 2 y
    assert (rest.argmin(axis=1) == tiny().labels).all()


def test_sums_for_the_loss_are_blinded_too(monkeypatch):
    run = watched(tiny(epochs=1), monkeypatch, dataclasses.replace(WEAK, watch_loss=True))
    assert len(run.blinded) == 2 and not noise_is_kept(run.blinded)


def test_a_passive_party_cannot_tell_labels_without_the_key(monkeypatch):
    """What it receives in the first step is the same for opposite labels, ciphertexts and masked values apart."""

    def view(labels):
        run = watched(dataclasses.replace(tiny(epochs=1), labels=labels), monkeypatch)
        received = [m for m in run.messages("one") if not isinstance(m, OpenedGradient)]
        return [
            (type(m).__name__, {k: len(v) if k == "residuals" else v for k, v in vars(m).items()})
            for m in received
        ]

    labels = tiny().labels
    assert str(view(labels)) == str(view(1 - labels))


def test_everybody_is_given_their_own_opened_values_only(monkeypatch):
    run = watched(tiny(3, epochs=1), monkeypatch)
    (opened,) = run.messages(kind=Opened)
    assert run.messages(kind=OpenMasked)[0].parties == ("one", "two", "active")
    for place, party in enumerate(("one", "two")):
        (given,) = run.messages(party, OpenedGradient)
        assert given.values == opened.values[place].astype("<u8").tobytes()


def passed_on(run, receiver, sender_place):
    """Does something reach this party that another one has sent to the active party?"""
    others = [m.outputs for m in run.messages("active", EncryptedOutputs)][sender_place::2]
    return any(
        other in sent.frame
        for other in others
        for sent in run.trained.transcript
        if sent.receiver == receiver
    )


def test_outputs_are_not_passed_on(monkeypatch):
    assert not passed_on(watched(tiny(3), monkeypatch), "one", 1)
    received = []
    true_read = PaillierArithmetic.read

    def read(self, payload, shape):
        received.append(payload)
        return true_read(self, payload, shape)

    monkeypatch.setattr(PaillierArithmetic, "read", read)
    planted = watched(tiny(3), monkeypatch, send=lambda values: received[-1])
    assert passed_on(planted, "one", 1)


# ---------------------------------------------------------------- what the active party sees


def readable_outputs(trained, outputs):
    """Encoded outputs of passive parties that stand as they are in what the active party received."""
    frames = [sent.frame for sent in trained.transcript if sent.receiver == "active"]
    values = [
        int(value) for party, steps in outputs.items() if party != "active" for value in np.ravel(steps)
    ]
    return [v for v in values if any(v.to_bytes(8, "little", signed=True) in frame for frame in frames)]


def test_the_active_party_receives_no_output_in_training(monkeypatch):
    run = watched(tiny(3), monkeypatch)
    assert readable_outputs(run.trained, run.outputs) == []
    clear = watched(tiny(3), monkeypatch, PLAIN)
    assert len(readable_outputs(clear.trained, clear.outputs)) == 2 * 2 * 6 * 2


def test_the_active_party_receives_these_kinds_only(monkeypatch):
    run = watched(tiny(3, n_evaluation=2), monkeypatch)
    kinds = {type(message).__name__ for message in run.messages("active")}
    assert kinds == {
        "RowsDigest", "KeyMade", "JoinedEncrypted", "EncryptedOutputs", "MaskedGradient", "Opened", "ScoredOutputs",
    }  # fmt: skip
    kinds = {type(message).__name__ for message in run.messages("one")}
    assert kinds == {
        "RowsDigest", "JoinEncrypted", "AskEncryptedOutputs", "EncryptedResiduals", "OpenedGradient", "AskScoring",
    }  # fmt: skip


# ---------------------------------------------------------------- what a gradient gives away


def test_gradients_of_small_batches_give_labels_away(monkeypatch):
    """The leak behind the least batch size: with a parameter per row and class, a linear system has one solution."""
    chosen = tiny(n=4, n_features=4, epochs=1)
    run = watched(chosen, monkeypatch)
    sums = run.sums["one"][0].reshape(5, 2)[:4].astype(float) / 2**36
    residuals = np.linalg.solve(chosen.passive["one"].samples.astype(float).T, sums)
    assert (residuals.argmin(axis=1) == chosen.labels).all()
    with pytest.raises(ValueError, match="labels can be solved for"):
        train_encrypted(chosen, dataclasses.replace(WEAK, allow_small_batches=False))
