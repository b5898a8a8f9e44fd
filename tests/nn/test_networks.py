"""The same weights in one process and in several; and a seat holds its own party's data only."""

import dataclasses

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import nn

from tests.nn import small
from vflnn.recipes import model_recipe
from vflnn.seating import PartyPlan, TrainingPlan, seats, train
from vflparty import codec


def plan(n_parties=2, bottom="tanh_net", options=None, to=np.asarray, **changes):
    X, y = small.blocks(n_parties)
    T, z = small.blocks(n_parties, n=9, seed=3)
    parts = {
        name: PartyPlan(model_recipe(f"{small.HERE}:{bottom}", options, seed=20 + k), 3, to(X[k]), to(T[k]))
        for k, name in enumerate(small.PARTIES[:n_parties])
    }
    own = parts.pop("active")
    agreed = small.settings(n_evaluation=9, **changes)
    return TrainingPlan(
        agreed, "active", own, parts, model_recipe(f"{small.HERE}:linear_top"), y, 3, evaluation_labels=z
    )


def weights(trained):
    return {
        f"{party}.{name}": array
        for party, state in trained.states.items()
        for name, array in zip(state.names, state.arrays, strict=True)
    }


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "compressor"), [("celu", "quantize"), ("fedbcd-s", "topk")])
def test_parties_in_processes_train_the_same_weights_with_dropout_too(protocol, compressor):
    planned = plan(3, options={"dropout": 0.3}, protocol=protocol, compressor=compressor)
    one, other = (train(planned, kind) for kind in ("inprocess", "process"))
    assert small.same(weights(one), weights(other))
    assert np.array_equal(one.result.scores, other.result.scores)
    assert one.ledger.summary().equals(other.ledger.summary())


def in_double(values):
    return values.astype(np.float64)


@pytest.mark.parametrize(
    "to", [sparse.csr_matrix, in_double, lambda values: sparse.coo_array(in_double(values))]
)
def test_samples_of_any_kind_train_the_same_weights(to):
    assert small.same(weights(train(plan(to=to))), weights(train(plan())))


def test_counts_in_a_sparse_matrix_are_features():
    def counts(values):
        return np.rint(values * 2)

    dense = train(plan(to=counts))
    sparse_integers = train(plan(to=lambda values: sparse.csr_matrix(counts(values).astype(int))))
    assert small.same(weights(sparse_integers), weights(dense))


def test_training_draws_nothing_from_the_random_numbers_of_others():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    train(plan(options={"dropout": 0.5}))
    assert torch.equal(torch.rand(3), expected)


def test_a_passive_seat_holds_no_label_and_no_column_of_another():
    made = plan()
    active, passive = seats(made)
    labels, own, theirs = (
        np.ascontiguousarray(a).tobytes()
        for a in (made.labels, made.own.samples, made.passive["one"].samples)
    )
    assert labels in active.setup and own in active.setup and theirs not in active.setup
    assert theirs in passive.setup and labels not in passive.setup and own not in passive.setup


def test_evaluated_scores_and_figures_are_those_of_the_trained_network():
    trained = train(plan())
    result = trained.result
    assert result.scores.shape == (9, 3) and len(result.epoch_score) == 3 and len(result.step_loss) == 12
    labels = plan().evaluation_labels
    assert result.epoch_score[-1] == pytest.approx((result.scores.argmax(axis=1) == labels).mean())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"protocol": "fedbcd-p", "compressor": "quantize"},
        # Moves Adam's momentum too.
        {"scheduler": "OneCycleLR", "scheduler_options": {"max_lr": 0.1, "total_steps": 9}},
    ],
)  # fmt: skip
def test_going_on_from_saved_states_is_training_in_one_go(changes):
    whole = train(plan(epochs=5, options={"dropout": 0.3}, **changes))
    first = plan(epochs=2, options={"dropout": 0.3}, **changes)
    half = train(first)
    later = plan(epochs=3, first_epoch=2, options={"dropout": 0.3}, **changes)
    passive = {
        party: dataclasses.replace(part, state=half.states[party]) for party, part in later.passive.items()
    }
    later = dataclasses.replace(later, passive=passive, active_state=half.states["active"])
    assert small.same(weights(train(later)), weights(whole))


def test_a_state_crosses_the_codec_whole():
    state = train(plan()).states["one"]
    assert codec.decode(codec.encode(state), (type(state),)) == state


def test_modules_are_refused_in_other_processes():
    made = plan()
    own = dataclasses.replace(made.own, model=nn.Linear(4, 3))
    with pytest.raises(ValueError, match="builds every model in its party's process"):
        train(dataclasses.replace(made, own=own), "process")
