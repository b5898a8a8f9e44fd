"""What a passive party and an active party refuse of a peer that does not keep to the protocol."""

import numpy as np
import pytest

from tests.nn import small
from vflnn.messages import AskOutputs, AskScoring, CutGradient, CutOutputs
from vflnn.passive import PassiveParty
from vflnn.recipes import model_recipe
from vflnn.samples import Samples
from vflparty import InProcessNetwork, RemoteProtocolError, codec

X, Y = small.blocks()


def passive_party(**changes):
    """A party that waits for settings, or has joined by the ones changed so."""
    recipe = model_recipe(f"{small.HERE}:tanh_net", seed=3)
    party = PassiveParty(recipe, Samples(X[1]), width=3, name="one", evaluation=Samples(X[1][:5]))
    if changes:
        party.on_training_settings(small.settings(n_evaluation=5, **changes))
    return party


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"first_epoch": 10**30}, "1000000 epochs at most"),
        ({"learning_rate": float("nan"), "optimizer": "sgd"}, "learning rate must be a finite number"),
        ({"learning_rate": float("inf"), "optimizer": "sgd"}, "learning rate must be a finite number"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"optimizer": "lbfgs"}, "LBFGS asks for the loss"),
        ({"optimizer": "sparseadam"}, "SparseAdam takes sparse gradients"),
        ({"optimizer": "os:system"}, "optimizer 'os:system' is unknown"),
        ({"scheduler": "os:system"}, "scheduler 'os:system' is unknown"),
        ({"compressor": "os:system"}, "compressor 'os:system' is unknown"),
        ({"protocol": "os:system"}, "protocol 'os:system' is unknown"),
        ({"protocol_options": "[" * 10**5 + "]" * 10**5}, "nested too deeply"),
        ({"optimizer_options": "{" * 10**5}, "options|JSON|double quotes"),
    ],
)  # fmt: skip
def test_a_passive_party_refuses_settings_that_no_training_has(changes, text):
    with pytest.raises(ValueError, match=text):
        passive_party(**changes)


def test_settings_that_were_refused_leave_nothing_behind():
    after, fresh = passive_party(), passive_party(epochs=9)
    with pytest.raises(ValueError, match="unknown"):
        after.on_training_settings(small.settings(n_evaluation=5, first_epoch=50, protocol="none such"))
    with pytest.raises(ValueError, match="unknown"):
        after.on_training_settings(small.settings(n_evaluation=5, first_epoch=50, scheduler="none such"))
    after.on_training_settings(small.settings(n_evaluation=5, epochs=9))
    for party in (after, fresh):
        for step in range(12):  # three epochs, each with another learning rate
            output = party.on_ask_outputs(AskOutputs(step)).outputs
            party.on_cut_gradient(CutGradient(step, np.ones_like(output)))
    states = [party.export_state().arrays for party in (after, fresh)]
    assert all(map(np.array_equal, *states))


def test_nothing_is_scored_before_the_parties_have_agreed():
    with pytest.raises(RemoteProtocolError, match="nothing has been agreed on"):
        passive_party().on_ask_scoring(AskScoring(0, 5))


def test_a_gradient_that_is_infinite_in_the_precision_of_the_weights_is_refused():
    party = passive_party(epochs=1)
    output = party.on_ask_outputs(AskOutputs(0)).outputs
    with pytest.raises(RemoteProtocolError, match="not finite"):
        party.on_cut_gradient(CutGradient(0, np.full(output.shape, 1e300)))
    assert all(np.isfinite(array).all() for array in party.export_state().arrays)


def test_an_output_that_is_infinite_in_the_precision_of_the_weights_names_its_sender():
    training = small.Training(X, Y, small.settings())

    def enlarge(sender, receiver, frame):
        if sender == "active" or b"CutOutputs" not in frame[:64]:
            return frame
        outputs = codec.decode(frame, (CutOutputs,)).outputs
        return codec.encode(CutOutputs(np.full(outputs.shape, 1e300)))

    network = InProcessNetwork(training.passive, leader="active", tamper=enlarge)
    with pytest.raises(RemoteProtocolError, match="party 'one': 30 of 30 outputs are not finite"):
        network.run(training.active)
