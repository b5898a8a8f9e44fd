"""Logistic regression and multilayer perceptrons: rows of features in, images flattened first.

The one rule of the plain ones: ReLU between layers, none behind the last. Hidden widths are in `registry.py`.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .shapes import Shape, n_features, positive


class RowNetwork(nn.Sequential):
    """Flatten, Linear, and what comes behind them; takes rows as a sparse tensor, too."""

    takes_sparse = True

    def forward(self, x: Tensor) -> Tensor:
        """
        Parameters
        ----------
        x : Tensor of shape (n, ...), or a coalesced sparse COO one of shape (n, n_features)

        Returns
        -------
        Tensor of shape (n, n_out)
        """
        if not x.is_sparse:
            return super().forward(x)
        layers = list(self)
        if [type(layer) for layer in layers[:2]] != [nn.Flatten, nn.Linear]:  # a slice of such a network
            return super().forward(x.to_dense())
        x = linear_of_sparse(x, layers[1])
        for layer in layers[2:]:
            x = layer(x)
        return x


def linear_of_sparse(x: Tensor, layer: Any) -> Tensor:
    """A Linear's output for sparse rows, from the columns that occur in them: a batch of texts has few words."""
    rows, columns = x.indices()
    columns, places = torch.unique(columns, return_inverse=True)
    narrow = x.values().new_zeros(len(x), len(columns))
    narrow[rows, places] = x.values()
    return functional.linear(narrow, layer.weight.index_select(1, columns), layer.bias)


def perceptron(*sizes: int) -> RowNetwork:
    """Linear layers sizes[0] -> sizes[1] -> ..., ReLU between them; input (n, ...) is flattened to (n, sizes[0])."""
    layers: list[nn.Module] = [nn.Flatten()]
    for n_in, n_out in pairwise(sizes):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return RowNetwork(*layers[:-1])


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
    return RowNetwork(nn.Flatten(), first, nn.ReLU(), nn.Linear(32, out_features))


def mlp2_relu(in_shape: Shape, out_features: int) -> nn.Module:
    return perceptron(n_features(in_shape), 32, out_features).append(nn.ReLU())


def mlp2_scalable(
    in_shape: Shape, out_features: int, *, hidden: int = 128, dropout: float = 0.2
) -> nn.Module:
    hidden = positive(hidden, "hidden")
    return RowNetwork(
        nn.Flatten(),
        *normalised_layer(n_features(in_shape), hidden, dropout),
        *normalised_layer(hidden, out_features, dropout),
    )


def mlp4_dropout(in_shape: Shape, out_features: int, *, dropout: float = 0.2) -> nn.Module:
    return RowNetwork(
        nn.Flatten(),
        *normalised_layer(n_features(in_shape), 256, dropout),
        *normalised_layer(256, 128, dropout),
        *normalised_layer(128, 64, dropout),
        nn.Linear(64, out_features),
    )
