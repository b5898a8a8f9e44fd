"""What no honest party does is refused and what cannot be trained is said so, with the party at fault named."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from tests.crypto.insecure_keys import insecure_key
from tests.nn import small
from tests.nn.under_encryption import HERE, PLAIN, WEAK, plan
from vflnn.encrypted import EncryptedActiveParty, EncryptedPassiveParty, Terms
from vflnn.encrypted.factors import JacobianFactors
from vflnn.encrypted.messages import (
    AskEncryptedOutputs,
    EncryptedOutputs,
    EncryptedResiduals,
    JoinEncrypted,
    MaskedGradient,
    OpenedGradient,
)
from vflnn.encrypted.seating import coordinator_setup, train_encrypted
from vflnn.messages import AskOutputs, AskScoring
from vflnn.recipes import model_recipe
from vflnn.samples import Samples
from vflparty import InProcessNetwork, RemoteProtocolError, codec
from vflparty.coordinator import Coordinator

pytestmark = pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning")
N, C = 12, 3


def passive(terms=WEAK, model=None, cls=EncryptedPassiveParty, **more):
    X, _ = small.blocks(2, n=N)
    return cls(
        model or model_recipe(f"{HERE}:linear"), Samples(X[1]), width=C, terms=terms, name="one", **more
    )


def public_key(name="INSECURE_TEST_KEY_512"):
    return insecure_key(name).public_key


def join(key=None, watch_loss=False, **changes):
    agreed = small.settings(**{"n_samples": N, "epochs": 2, "batch_size": None, **changes})
    return JoinEncrypted(codec.encode(agreed), public_key().to_bytes() if key is None else key, watch_loss)


def residuals(step=0, n=N, key=None):
    return EncryptedResiduals(step, (key or public_key()).encrypt(np.ones((n, C), dtype=np.int64)).to_bytes())


def opened(answer, step=0):
    """What the coordinator makes of a masked gradient."""
    from vflcrypto import CiphertextArray

    key = insecure_key("INSECURE_TEST_KEY_512")
    words = key.decrypt_words(CiphertextArray.from_bytes(answer.gradient, key.public_key))
    return OpenedGradient(step, words.astype("<u8").tobytes())


# ---------------------------------------------------------------- a passive party


def test_training_is_joined_once_and_before_anything_else():
    party = passive()
    for message in (AskEncryptedOutputs(0), residuals(), OpenedGradient(0, b"")):
        with pytest.raises(RemoteProtocolError, match="nothing has been agreed"):
            party.receive(message)
    party.receive(join())
    with pytest.raises(RemoteProtocolError, match="already"):
        party.receive(join())


def test_outputs_in_the_clear_are_not_to_be_had():
    party = passive()
    party.receive(join())
    with pytest.raises(RemoteProtocolError, match="no on_ask_outputs"):
        party.receive(AskOutputs(0))


def test_a_party_that_wants_encryption_refuses_to_train_without_and_the_other_way_round():
    with pytest.raises(RemoteProtocolError, match="no key came"):
        passive().receive(join(key=b""))
    with pytest.raises(RemoteProtocolError, match="a key came"):
        passive(PLAIN).receive(join())


def test_a_weak_or_damaged_key_is_refused():
    strict = Terms(allow_small_batches=True)
    with pytest.raises(RemoteProtocolError, match="key of the coordinator"):
        passive(strict).receive(join())
    with pytest.raises(RemoteProtocolError, match="key of the coordinator"):
        passive().receive(join(key=public_key().to_bytes()[:-1]))


def test_steps_come_one_by_one_and_nothing_is_answered_twice():
    party = passive()
    party.receive(join())
    with pytest.raises(
        RemoteProtocolError, match=r"AskEncryptedOutputs of step 1, while .* of step 0 is next"
    ):
        party.receive(AskEncryptedOutputs(1))
    with pytest.raises(RemoteProtocolError, match="AskEncryptedOutputs of step 0 is next"):
        party.receive(residuals())
    party.receive(AskEncryptedOutputs(0))
    with pytest.raises(RemoteProtocolError, match="EncryptedResiduals of step 0 is next"):
        party.receive(AskEncryptedOutputs(0))
    answer = party.receive(residuals())
    with pytest.raises(RemoteProtocolError, match="OpenedGradient of step 0 is next"):
        party.receive(residuals())
    party.receive(opened(answer))
    with pytest.raises(RemoteProtocolError, match="AskEncryptedOutputs of step 1 is next"):
        party.receive(opened(answer))
    party.receive(AskEncryptedOutputs(1))
    party.receive(opened(party.receive(residuals(1)), 1))
    with pytest.raises(RemoteProtocolError, match="training is over"):
        party.receive(AskEncryptedOutputs(2))


def test_values_under_another_key_are_refused():
    party = passive()
    party.receive(join())
    party.receive(AskEncryptedOutputs(0))
    with pytest.raises(RemoteProtocolError, match="encrypted values"):
        party.receive(residuals(key=public_key("INSECURE_OTHER_KEY_512")))


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (residuals(n=N - 1), r"expected ciphertexts of shape \(12, 3\), got \(11, 3\)"),
        (EncryptedResiduals(0, b"nothing"), "encrypted values"),
    ],
)
def test_values_of_a_wrong_size_are_refused(message, words):
    party = passive()
    party.receive(join())
    party.receive(AskEncryptedOutputs(0))
    with pytest.raises(RemoteProtocolError, match=words):
        party.receive(message)


def test_what_was_opened_must_be_what_was_masked():
    for change, words in (
        (lambda values: values[:-1], "bytes each"),
        (lambda values: values[: len(values) // 2 // 64 * 64], "were masked"),
        (lambda values: bytes(len(values)), "not the decryption"),
    ):
        party = passive()
        party.receive(join())
        party.receive(AskEncryptedOutputs(0))
        answer = opened(party.receive(residuals()))
        with pytest.raises(RemoteProtocolError, match=words):
            party.receive(OpenedGradient(0, change(answer.values)))


def test_rows_are_evaluated_after_training_and_each_once():
    X, _ = small.blocks(2, n=5)
    party = passive(evaluation=Samples(X[1]))
    with pytest.raises(RemoteProtocolError, match="when training is over"):
        party.receive(AskScoring(0, 5))
    party.receive(join(n_evaluation=5, epochs=1))
    with pytest.raises(RemoteProtocolError, match="when training is over"):
        party.receive(AskScoring(0, 5))
    party.receive(AskEncryptedOutputs(0))
    party.receive(opened(party.receive(residuals())))
    assert party.receive(AskScoring(0, 3)).outputs.shape == (3, C)
    for start, stop in ((0, 3), (3, 3), (3, 6), (4, 5)):
        with pytest.raises(RemoteProtocolError, match="3 of 5 have been"):
            party.receive(AskScoring(start, stop))
    party.receive(AskScoring(3, 5))


@pytest.mark.parametrize("damaged", [b"", b"nothing", codec.encode(AskScoring(0, 1))])
def test_settings_are_checked(damaged):
    with pytest.raises(RemoteProtocolError):
        passive().receive(JoinEncrypted(damaged, public_key().to_bytes(), False))


# ---------------------------------------------------------------- the active party and the coordinator


class Lying(EncryptedPassiveParty):
    outputs = products = None

    def on_ask_encrypted_outputs(self, msg):
        true = super().on_ask_encrypted_outputs(msg)
        return true if self.outputs is None else EncryptedOutputs(self.outputs)

    def on_encrypted_residuals(self, msg):
        true = super().on_encrypted_residuals(msg)
        return true if self.products is None else MaskedGradient(true.gradient, self.products)


def led(party, terms=WEAK, key="INSECURE_TEST_KEY_512", **quota):
    """Two steps with this passive party."""
    X, y = small.blocks(2, n=N)
    values = {"one": 15, "active": 15 + terms.watch_loss, **quota}
    coordinator = Coordinator(values, max_steps=values.pop("steps", 2), private_key=insecure_key(key))
    active = EncryptedActiveParty(
        small.settings(n_samples=N, epochs=2, batch_size=None), y, ["one"], coordinator="coordinator",
        n_classes=C, terms=terms, bottom=model_recipe(f"{HERE}:linear"), samples=Samples(X[0]),
    )  # fmt: skip
    network = InProcessNetwork({"one": party, "coordinator": coordinator}, leader="active")
    return network.run(active)


def test_an_honest_party_passes_where_liars_are_caught():
    led(passive(cls=Lying))


@pytest.mark.parametrize(
    "lie",
    [
        b"nothing",
        public_key().encrypt(np.ones((N, C + 1), dtype=np.int64)).to_bytes(),
        public_key("INSECURE_OTHER_KEY_512").encrypt(np.ones((N, C), dtype=np.int64)).to_bytes(),
    ],
    ids=["damaged", "wrong shape", "other key"],
)
def test_wrong_outputs_are_refused_and_their_sender_named(lie):
    party = passive(cls=Lying)
    party.outputs = lie
    with pytest.raises(RemoteProtocolError, match="encrypted values") as caught:
        led(party)
    assert caught.value.party == "one"


def test_wrong_products_are_refused_and_their_sender_named():
    terms = dataclasses.replace(WEAK, watch_loss=True)
    party = passive(terms, cls=Lying)
    party.products = public_key().encrypt(np.ones(2, dtype=np.int64)).to_bytes()
    with pytest.raises(RemoteProtocolError, match="expected ciphertexts of shape") as caught:
        led(party, terms)
    assert caught.value.party == "one"


@pytest.mark.parametrize(
    ("quota", "words"),
    [
        ({"one": 14}, "a step has exactly 14 masked ones"),
        ({"active": 16}, "a step has exactly 16 masked ones"),
        ({"steps": 1}, "1 steps were agreed"),
    ],
)
def test_the_coordinator_opens_its_quota_and_no_more(quota, words):
    quota = dict(quota)
    with pytest.raises(RemoteProtocolError, match=words):
        led(passive(), **quota)


def test_outputs_of_another_width_are_refused():
    X, _ = small.blocks(2, n=N)
    party = EncryptedPassiveParty(
        model_recipe(f"{HERE}:linear"), Samples(X[1]), width=2, terms=WEAK, name="one"
    )
    with pytest.raises(RemoteProtocolError, match="2 columns, there are 3 classes"):
        led(party)


# ---------------------------------------------------------------- what cannot be trained


def changed(chosen, party="one", **changes):
    return dataclasses.replace(
        chosen, passive=chosen.passive | {party: dataclasses.replace(chosen.passive[party], **changes)}
    )


@pytest.mark.parametrize(
    ("scale", "bottom", "words"),
    [
        (1e6, "linear", r"party 'one': columns, .* reach [\d.e+]+, .* less than 2\*\*14: scale the columns"),
        (np.nan, "linear", "party 'one': columns, .* reach nan"),
        (np.nan, "tanh_net", "party 'one': columns, .* reach nan"),
    ],
)
def test_columns_that_do_not_fit_the_scale_overflow_before_they_are_encrypted(scale, bottom, words):
    chosen = plan(bottom=bottom)
    wide = changed(chosen, samples=(chosen.passive["one"].samples * scale).astype(np.float32))
    with pytest.raises(OverflowError, match=words):
        train_encrypted(wide, PLAIN)


def test_outputs_that_do_not_fit_the_scale_overflow():
    chosen = plan(optimizer="SGD", learning_rate=1e8)
    for terms in (PLAIN, WEAK):
        with pytest.raises(OverflowError, match=r"party '\w+': outputs reach .* lower the learning rate"):
            train_encrypted(chosen, terms)


@pytest.mark.parametrize("bottom", ["normalised", "with_dropout"])
def test_bottoms_whose_rows_depend_on_each_other_are_refused(bottom):
    with pytest.raises(ValueError, match=r"party '\w+': its bottom model gives a row alone .* row by row"):
        train_encrypted(plan(bottom=bottom), PLAIN)


def test_jacobians_beyond_the_limit_are_refused_with_their_cost():
    terms = dataclasses.replace(PLAIN, most_products=4000)
    with pytest.raises(
        ValueError, match=r"43 parameters, which takes 4773 products .* 37 rows and 3 classes"
    ):
        train_encrypted(plan(bottom="tanh_net", batch_size=None), terms)
    train_encrypted(plan(bottom="tanh_net", batch_size=20, epochs=1), terms)


def test_small_batches_are_refused_unless_allowed():
    strict = dataclasses.replace(PLAIN, allow_small_batches=False)
    for chosen, words in (
        (plan(n=319, batch_size=None), "a batch of 319 rows for party 'one', .* at least 320"),
        (plan(n=700, batch_size=350), None),
        (plan(n=699, batch_size=380), "a batch of 319 rows"),
    ):
        if words is None:
            train_encrypted(chosen, strict)
            continue
        with pytest.raises(ValueError, match=words):
            train_encrypted(chosen, strict)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (np.full(37, -1), "37 of 37 labels are not in 0..2"),
        (np.full(37, 3), "labels are not in 0..2"),
        (np.zeros(36, dtype=int), r"shape \(36,\) for 37 rows"),
        (np.zeros((37, 3)), r"shape \(37, 3\)"),
        (np.zeros(37), "labels of float64"),
    ],
)
def test_labels_are_class_numbers_of_all_rows(labels, words):
    with pytest.raises(ValueError, match=words):
        train_encrypted(dataclasses.replace(plan(), labels=labels), PLAIN)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"top": model_recipe(f"{HERE}:linear_top")}, "sum of all outputs .* got Joined"),
        ({"top": small.Sum()}, "name the models"),
        ({"loss": "cross_entropy"}, "minimises 'taylor_logit'"),
        ({"passive": {}}, "needs a passive party"),
    ],
)
def test_plans_that_are_not_for_encryption_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        train_encrypted(dataclasses.replace(plan(), **changes), PLAIN)


def test_other_protocols_and_compressors_are_refused():
    for changes in ({"protocol": "fedbcd"}, {"compressor": "quantize"}):
        with pytest.raises(ValueError, match="without a compressor"):
            train_encrypted(plan(**changes), PLAIN)


def test_a_bottom_without_anything_to_train_is_refused():
    with pytest.raises(ValueError, match="party 'one': its bottom model has nothing to train"):
        train_encrypted(changed(plan(), model=model_recipe(f"{HERE}:frozen")), PLAIN)


def test_outputs_must_be_one_per_class():
    chosen = changed(plan(), model=model_recipe(f"{HERE}:too_wide"))
    with pytest.raises(ValueError, match=r"party 'one': .*\(2, 4\), expected \(2, 3\)"):
        train_encrypted(chosen, PLAIN)


@pytest.mark.parametrize(
    ("terms", "error", "words"),
    [
        ({"encryption": "rsa"}, ValueError, "encryption must be one of"),
        ({"key_bits": 512}, ValueError, "key_bits must be one of"),
        ({"key_bits": 2048.0}, TypeError, "key_bits must be an integer"),
        ({"allow_small_batches": "no"}, TypeError, "must be True or False"),
        ({"most_products": 0}, ValueError, "must be positive"),
        ({"n_jobs": "two"}, TypeError, "n_jobs must be an integer"),
    ],
)
def test_terms_are_checked(terms, error, words):
    with pytest.raises(error, match=words):
        Terms(**terms)


def test_quotas_are_the_parameters_that_are_trained():
    setup = coordinator_setup(plan(3, bottom="tanh_net"), dataclasses.replace(WEAK, watch_loss=True))
    count = sum(p.numel() for p in small.tanh_net((4,), 3).parameters())
    assert dict(zip(setup.parties, setup.values_per_step, strict=True)) == {
        "one": count, "two": count, "active": count + 1,
    }  # fmt: skip
    assert setup.max_steps == 3 * 4


def test_nodes_of_a_graph_are_refused():
    inputs = (torch.zeros(4, 2), torch.eye(4))
    with pytest.raises(ValueError, match="nodes of a graph depend on each other"):
        JacobianFactors(nn.Linear(2, 3), 3).of(inputs, torch.zeros(4, 3))


def test_columns_without_a_bottom_model_are_refused():
    X, y = small.blocks(2, n=N)
    for part in ({"samples": Samples(X[0])}, {"bottom": model_recipe(f"{HERE}:linear")}):
        with pytest.raises(ValueError, match="a bottom model needs samples"):
            EncryptedActiveParty(
                small.settings(n_samples=N), y, ["one"], coordinator="", n_classes=C, terms=PLAIN, **part
            )
