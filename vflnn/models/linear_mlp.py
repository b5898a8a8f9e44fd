"""Logistic regression and multilayer perceptrons: rows of features in, images flattened first.

The one rule of the plain ones: ReLU between layers, none behind the last. Hidden widths are in `registry.py`.
"""

from collections.abc import Callable
from itertools import pairwise

from torch import nn

from .shapes import Shape, n_features, positive


def perceptron(*sizes: int) -> nn.Sequential:
    """Linear layers sizes[0] -> sizes[1] -> ..., ReLU between them; input (n, ...) is flattened to (n, sizes[0])."""
    layers: list[nn.Module] = [nn.Flatten()]
    for n_in, n_out in pairwise(sizes):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def normalised_layer(n_in: int, n_out: int, dropout: float) -> list[nn.Module]:
    """Linear without bias, ReLU, BatchNorm, Dropout; in that order, as in VFLAIR."""
    return [nn.Linear(n_in, n_out, bias=False), nn.ReLU(), nn.BatchNorm1d(n_out), nn.Dropout(dropout)]


def mlp(*hidden: int) -> Callable[[Shape, int], nn.Module]:
    """The factory of a perceptron with these hidden widths; none at all is logistic regression."""

    def make(in_shape: Shape, out_features: int) -> nn.Module:
        return perceptron(n_features(in_shape), *hidden, out_features)

    return make


def mlp2(in_shape: Shape, out_features: int) -> nn.Module:
    first = nn.Linear(n_features(in_shape), 32)
    nn.init.xavier_uniform_(first.weight)
    nn.init.zeros_(first.bias)
    return nn.Sequential(nn.Flatten(), first, nn.ReLU(), nn.Linear(32, out_features))


def mlp2_relu(in_shape: Shape, out_features: int) -> nn.Module:
    return perceptron(n_features(in_shape), 32, out_features).append(nn.ReLU())


def mlp2_scalable(
    in_shape: Shape, out_features: int, *, hidden: int = 128, dropout: float = 0.2
) -> nn.Module:
    hidden = positive(hidden, "hidden")
    return nn.Sequential(
        nn.Flatten(),
        *normalised_layer(n_features(in_shape), hidden, dropout),
        *normalised_layer(hidden, out_features, dropout),
    )


def mlp4_dropout(in_shape: Shape, out_features: int, *, dropout: float = 0.2) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        *normalised_layer(n_features(in_shape), 256, dropout),
        *normalised_layer(256, 128, dropout),
        *normalised_layer(128, 64, dropout),
        nn.Linear(64, out_features),
    )
