"""Small cut networks for tests: seats of parties, modules built here, and data that any test can make."""

import numpy as np
import torch
from torch import nn

from vflnn.active import ActiveParty
from vflnn.messages import TrainingSettings
from vflnn.passive import PassiveParty
from vflnn.recipes import model_recipe, to_json
from vflnn.samples import Samples
from vflparty import InProcessNetwork

HERE = "tests.nn.small"


def linear(in_shape, width):
    return nn.Linear(in_shape[0], width)


def half_frozen(in_shape, width):
    layer = nn.Linear(in_shape[0], width)
    layer.weight.requires_grad_(False)
    return layer


def frozen(in_shape, width):
    return nn.Linear(in_shape[0], width).requires_grad_(False)


def too_wide(in_shape, width):
    return nn.Linear(in_shape[0], width + 1)


def normalised(in_shape, width):
    return nn.Sequential(nn.Linear(in_shape[0], width), nn.BatchNorm1d(width))


def with_dropout(in_shape, width):
    return tanh_net(in_shape, width, dropout=0.5)


def tanh_net(in_shape, width, hidden=5, dropout=0.0):
    return nn.Sequential(
        nn.Linear(in_shape[0], hidden), nn.Tanh(), nn.Dropout(dropout), nn.Linear(hidden, width)
    )


class Sum(nn.Module):
    def forward(self, outputs):
        total = outputs[0]
        for output in outputs[1:]:
            total = total + output
        return total


class Joined(nn.Module):
    def __init__(self, width, n_outputs):
        super().__init__()
        self.linear = nn.Linear(width, n_outputs)

    def forward(self, outputs):
        return self.linear(torch.cat(list(outputs), dim=1))


def sum_top(widths, n_outputs):
    return Sum()


def linear_top(widths, n_outputs):
    return Joined(sum(widths), n_outputs)


def settings(**changes):
    """Training settings; options may be given as dicts."""
    given = {
        "protocol": "fedsgd", "protocol_options": {}, "compressor": "", "compressor_options": {},
        "optimizer": "adam", "optimizer_options": {}, "learning_rate": 0.05, "scheduler": "inverse_sqrt",
        "scheduler_options": {}, "n_samples": 37, "n_evaluation": 0, "epochs": 3, "first_epoch": 0,
        "batch_size": 10, "shuffle": True, "seed": 5,
    } | changes  # fmt: skip
    return TrainingSettings(
        **{name: to_json(v, name) if isinstance(v, dict) else v for name, v in given.items()}
    )


def blocks(n_parties=2, n=37, n_features=4, seed=0):
    """Float32 columns of each party, and labels of three classes that depend on all of them."""
    random = np.random.default_rng(seed)
    X = [random.normal(size=(n, n_features)).astype(np.float32) for _ in range(n_parties)]
    y = np.digitize(sum(x[:, 0] for x in X), [-0.7, 0.7]).astype(np.int64)
    return X, y


PARTIES = ("active", "one", "two", "three")


class Training:
    """Parties that train on `blocks`, in this process; the first party leads."""

    def __init__(
        self, X, y, agreed, *, bottom="tanh_net", top="sum_top", bottom_options=None, evaluation=None, **more
    ):
        names = PARTIES[: len(X)]
        recipes = [model_recipe(f"{HERE}:{bottom}", bottom_options, seed=10 + k) for k in range(len(X))]
        test = evaluation if evaluation is not None else [None] * len(X)
        samples = [None if x is None else Samples(x) for x in test]
        self.passive = {
            name: PassiveParty(recipes[k], Samples(X[k]), width=3, name=name, evaluation=samples[k])
            for k, name in enumerate(names)
            if k > 0
        }
        self.active = ActiveParty(
            agreed, y, dict.fromkeys(self.passive, 3), model_recipe(f"{HERE}:{top}", seed=99), n_outputs=3,
            bottom=recipes[0], own_width=3, samples=Samples(X[0]), evaluation=samples[0], **more,
        )  # fmt: skip
        self.network = InProcessNetwork(self.passive, leader="active", record=True)

    def run(self):
        self.result = self.network.run(self.active)
        return self

    @property
    def weights(self):
        """All weights of all parties, by name."""
        states = {"active": self.active.export_state()}
        states |= {name: party.export_state() for name, party in self.passive.items()}
        return {
            f"{party}.{name}": array
            for party, state in states.items()
            for name, array in zip(state.names, state.arrays, strict=True)
        }


def same(one, other):
    """Bit for bit."""
    assert one.keys() == other.keys()
    return all(np.array_equal(one[name], other[name]) for name in one)
