"""FedBCD against its two update rules written out by hand."""

import numpy as np
import pytest

from tests.nn import small
from tests.nn.by_hand import ByHand


def trained(protocol, X, y, top="sum_top", bottom="tanh_net", local_steps=None, **changes):
    options = {} if local_steps is None else {"local_steps": local_steps}
    agreed = small.settings(protocol=protocol, protocol_options=options, **changes)
    return small.Training(X, y, agreed, top=top, bottom=bottom).run()


@pytest.mark.parametrize("n_parties", [1, 2, 4])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_one_local_step_in_parallel_is_fedsgd_bit_for_bit(n_parties, optimizer):
    X, y = small.blocks(n_parties)
    one = trained("fedbcd-p", X, y, "linear_top", local_steps=1, optimizer=optimizer)
    sgd = trained("fedsgd", X, y, "linear_top", optimizer=optimizer)
    assert small.same(one.weights, sgd.weights)


@pytest.mark.parametrize("n_parties", [2, 3])
@pytest.mark.parametrize("top", ["sum_top", "linear_top"])
def test_parallel_steps_equal_the_rule_by_hand_bit_for_bit(n_parties, top):
    """The active party's local steps take its own fresh output; received outputs and g_k stay those of the exchange."""
    X, y = small.blocks(n_parties)
    agreed = small.settings(protocol="fedbcd-p", protocol_options={"local_steps": 3})
    hand = ByHand(X, y, agreed, top=top)
    for rows in hand.batches():
        received = hand.outputs(rows)
        gradients = hand.gradients(rows, received)
        for _ in range(3):
            hand.active_step(rows, received)
            for k, gradient in enumerate(gradients, start=1):
                hand.passive_step(k, rows, gradient)
    assert small.same(small.Training(X, y, agreed, top=top).run().weights, hand.weights)


@pytest.mark.parametrize("n_parties", [2, 3])
@pytest.mark.parametrize("local_steps", [1, 3])
def test_steps_in_sequence_equal_the_rule_by_hand_bit_for_bit(n_parties, local_steps):
    """The active party first; g_k at its new weights; then the passive parties. Q = 1 is Gauss-Seidel."""
    X, y = small.blocks(n_parties)
    agreed = small.settings(protocol="fedbcd-s", protocol_options={"local_steps": local_steps})
    hand = ByHand(X, y, agreed, top="linear_top")
    for rows in hand.batches():
        received = hand.outputs(rows)
        for _ in range(local_steps):
            hand.active_step(rows, received)
        gradients = hand.gradients(rows, received)
        for _ in range(local_steps):
            for k, gradient in enumerate(gradients, start=1):
                hand.passive_step(k, rows, gradient)
    assert small.same(small.Training(X, y, agreed, top="linear_top").run().weights, hand.weights)


def test_one_local_step_in_sequence_is_not_fedsgd():
    X, y = small.blocks()
    sequence = trained("fedbcd-s", X, y, local_steps=1, epochs=1, batch_size=None)
    sgd = trained("fedsgd", X, y, epochs=1, batch_size=None)
    own = [name for name in sgd.weights if name.startswith("active.")]
    passive = [name for name in sgd.weights if name.startswith("one.")]
    assert all(np.array_equal(sequence.weights[name], sgd.weights[name]) for name in own)
    assert not any(np.array_equal(sequence.weights[name], sgd.weights[name]) for name in passive)


def test_a_linear_passive_party_moves_local_steps_times_as_far():
    """Plain SGD and a linear bottom model: its Jacobian does not change, so Q steps are Q times one."""
    X, y = small.blocks()

    def moved(epochs, local_steps):
        run = trained("fedbcd-p", X, y, bottom="linear", local_steps=local_steps, epochs=epochs,
                      batch_size=None, optimizer="sgd", scheduler="constant", learning_rate=0.1)  # fmt: skip
        return run.weights["one.weight"].astype(np.float64)

    start = moved(0, 1)
    once, five_times = moved(1, 1) - start, moved(1, 5) - start
    assert np.abs(once).max() > 1e-3
    np.testing.assert_allclose(five_times, 5 * once, atol=1e-6)


@pytest.mark.parametrize("protocol", ["fedbcd-p", "fedbcd-s"])
def test_bytes_and_rounds_do_not_depend_on_local_steps(protocol):
    X, y = small.blocks(3)

    def traffic(*args, **options):
        table = trained(*args, X, y, **options).network.ledger.summary()
        return table[table.kind.isin(["AskOutputs", "CutOutputs", "CutGradient"])].reset_index(drop=True)

    sgd = traffic("fedsgd")
    assert sgd.bytes.sum() > 0
    assert traffic(protocol, local_steps=1).equals(sgd)
    assert traffic(protocol, local_steps=7).equals(sgd)


def test_figures_of_a_batch_are_those_of_the_exchange():
    X, y = small.blocks()
    runs = [trained(name, X, y, epochs=1, batch_size=None) for name in ("fedsgd", "fedbcd-p", "fedbcd-s")]
    assert len({run.result.step_loss[0] for run in runs}) == 1
    assert len({run.result.step_accuracy[0] for run in runs}) == 1


@pytest.mark.parametrize("protocol", ["fedbcd-p", "fedbcd-s"])
@pytest.mark.parametrize("wrong", [0, -1, 1001, 2.5, True, "5", None])
def test_local_steps_out_of_range_are_refused_with_both_numbers(protocol, wrong):
    X, y = small.blocks()
    with pytest.raises(ValueError, match=r"local_steps must be a whole number from 1 to 1000, got"):
        small.Training(X, y, small.settings(protocol=protocol, protocol_options={"local_steps": wrong}))


def test_a_passive_party_refuses_options_by_itself():
    X, y = small.blocks()
    training = small.Training(X, y, small.settings())
    demand = small.settings(protocol="fedbcd-p", protocol_options={"local_steps": 10**9})
    with pytest.raises(
        ValueError, match=r"local_steps must be a whole number from 1 to 1000, got 1000000000"
    ):
        training.passive["one"].on_training_settings(demand)


@pytest.mark.parametrize(("name", "hint"), [("fedbdc-p", "did you mean 'fedbcd-p'"), ("x", "known: ")])
def test_an_unknown_protocol_is_refused_by_either_side_with_what_there_is(name, hint):
    X, y = small.blocks()
    with pytest.raises(ValueError, match=hint):
        small.Training(X, y, small.settings(protocol=name))
    training = small.Training(X, y, small.settings())
    with pytest.raises(ValueError, match=hint):
        training.passive["one"].on_training_settings(small.settings(protocol=name))
