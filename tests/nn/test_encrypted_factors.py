"""Factors times residuals are the gradients that autograd finds, whatever the bottom model is made of."""

import numpy as np
import pytest
import torch
from torch import nn

from vflnn.encrypted.factors import JacobianFactors, LinearFactors, make_factors
from vflnn.models import make_bottom

N, C = 7, 3


def factors_and_autograd(model, inputs):
    """Gradients by either way, for residuals drawn at random."""
    residuals = np.random.default_rng(0).normal(size=(len(inputs), C)).astype(np.float32)
    outputs = model(inputs)
    factors = make_factors(model, C)
    sums = factors.of((inputs,), outputs.detach()).T @ factors.terms(residuals)
    outputs.backward(torch.from_numpy(residuals))
    found = factors.gradients(sums)
    trained = [p for p in model.parameters() if p.requires_grad]
    assert {id(p) for p, _ in found} == {id(p) for p in trained}
    assert factors.n_values == sum(p.numel() for p in trained) == sum(g.size for _, g in found)
    return factors, [(gradient, parameter.grad.numpy()) for parameter, gradient in found]


@pytest.mark.parametrize(
    ("name", "shape", "kind"),
    [
        ("LogisticRegression", (5,), LinearFactors),
        ("LogisticRegression", (1, 3, 4), LinearFactors),
        ("MLP2", (5,), JacobianFactors),
        ("MLP2_ReLU", (5,), JacobianFactors),
        ("SimpleCNN", (3, 32, 16), JacobianFactors),
        ("LeNet", (3, 32, 16), JacobianFactors),
    ],
)
def test_models_by_name(name, shape, kind):
    torch.manual_seed(0)
    factors, pairs = factors_and_autograd(make_bottom(name, shape, C), torch.rand(N, *shape))
    assert type(factors) is kind
    for found, expected in pairs:
        assert found.shape == expected.shape and np.abs(found - expected).max() < 1e-5


@pytest.mark.parametrize(
    "model",
    [
        nn.Linear(C, C, bias=False),
        nn.Sequential(nn.Identity(), nn.Linear(C, C)),
        nn.Sequential(nn.Linear(C, C), nn.Linear(C, C).requires_grad_(False)),
        nn.Sequential(nn.Linear(C, C), nn.Dropout(0.0)),
        nn.Sequential(nn.Linear(C, C), nn.LayerNorm(C)),
    ],
    ids=["no bias", "identity", "half frozen", "no dropout", "layer norm"],
)
def test_modules_of_ones_own(model):
    torch.manual_seed(0)
    _, pairs = factors_and_autograd(model, torch.rand(N, C))
    for found, expected in pairs:
        assert np.abs(found - expected).max() < 1e-5


def test_a_layer_used_twice_is_refused_and_left_as_it_was():
    layer = nn.Linear(C, C)
    model, before = nn.Sequential(layer, nn.Tanh(), layer), layer.weight
    with pytest.raises(ValueError, match="a parameter in two places"):
        factors_and_autograd(model, torch.rand(N, C))
    assert layer.weight is before


def test_codes_for_an_embedding_are_taken():
    model = nn.Sequential(nn.Embedding(11, 2), nn.Flatten(), nn.Linear(8, C))
    _, pairs = factors_and_autograd(model, torch.randint(0, 11, (N, 4)))
    for found, expected in pairs:
        assert np.abs(found - expected).max() < 1e-5


def test_a_jacobian_taken_in_pieces_is_the_same(monkeypatch):
    model = make_bottom("MLP2", (5,), C)
    inputs = torch.rand(N, 5)
    factors = make_factors(model, C)
    with torch.no_grad():
        outputs = model(inputs)
    whole = factors.of((inputs,), outputs)
    monkeypatch.setattr("vflnn.encrypted.factors._ENTRIES_AT_ONCE", 2 * C * factors.n_values)
    assert np.abs(factors.of((inputs,), outputs) - whole).max() < 1e-6
