"""The cut changes nothing: the parties' weights are those of the network in one piece, bit for bit."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tests.nn import small
from vflnn.agreement import Agreement
from vflnn.recipes import make_optimizer, make_scheduler
from vflnn.split import JoinedNetwork
from vflnn.working import RandomStream


def uncut(X, y, agreed, bottom, top):
    """The same network trained in one process by plain PyTorch."""

    def build(seed, make):
        with RandomStream(seed).working():
            return make()

    stream = RandomStream(10)
    with stream.working():
        first = bottom((X[0].shape[1],), 3)
        head = top((3,) * len(X), 3)
    bottoms = [first] + [build(10 + k, lambda k=k: bottom((X[k].shape[1],), 3)) for k in range(1, len(X))]
    network = JoinedNetwork(bottoms, head)
    optimizer = make_optimizer(agreed.optimizer, {}, agreed.learning_rate, network.parameters())
    schedule = make_scheduler(agreed.scheduler, {}, optimizer)
    order = Agreement(agreed).order
    for epoch in range(agreed.epochs):
        if epoch:
            schedule.step()
        for step in order.steps(epoch):
            rows = torch.from_numpy(order.rows(step))
            optimizer.zero_grad()
            scores = network(*(torch.from_numpy(x)[rows] for x in X))
            F.cross_entropy(scores, torch.from_numpy(y)[rows], reduction="none").sum().div(
                len(rows)
            ).backward()
            optimizer.step()
    return network


@pytest.mark.parametrize("n_parties", [1, 2, 4])
@pytest.mark.parametrize("top", ["sum_top", "linear_top"])
@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "rmsprop"])
def test_cut_network_equals_the_uncut_network_bit_for_bit(n_parties, top, optimizer):
    X, y = small.blocks(n_parties)
    agreed = small.settings(optimizer=optimizer)
    trained = small.Training(X, y, agreed, top=top).run()
    network = uncut(X, y, agreed, small.tanh_net, getattr(small, top))
    expected = {f"top.{k}": v for k, v in network.top.state_dict().items()}
    expected = {f"active.{name}": value for name, value in expected.items()}
    for k, party in enumerate(small.PARTIES[:n_parties]):
        prefix = "active.bottom" if k == 0 else party
        expected |= {f"{prefix}.{name}": v for name, v in network.bottoms[k].state_dict().items()}
    expected = {name: value.numpy() for name, value in expected.items()}
    assert small.same(trained.weights, expected)


@pytest.mark.parametrize("top", ["sum_top", "linear_top"])
@pytest.mark.parametrize("compressor", ["", "quantize", "topk"])
def test_parties_may_compute_in_different_precision(top, compressor):
    X, y = small.blocks(3)
    X[1] = X[1].astype(np.float64)
    agreed = small.settings(compressor=compressor, n_evaluation=37)
    training = small.Training(X, y, agreed, top=top, evaluation=X)
    training.passive["one"]._half.model.double()
    training.run()
    assert {name.split(".")[0]: a.dtype for name, a in training.weights.items()} == {
        "active": np.float32, "one": np.float64, "two": np.float32
    }  # fmt: skip
    assert training.result.scores.dtype == np.float32
