"""The plain factors that a party multiplies encrypted residuals by: the Jacobian of its outputs, or what it is made of.

A linear bottom model needs its inputs only, since dH_ic/dW_cj = x_ij for every class c: n_rows * n_features *
n_classes products. Any other takes the whole Jacobian, (n_rows * n_classes, n_parameters): exact, and that many
products, which small networks can afford. It is taken row by row, so a row must not depend on others of its batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from ..models.linear_mlp import RowNetwork

_ENTRIES_AT_ONCE = 1 << 22  # of a Jacobian: bounds the memory of the differentiation
_AGREE = 1e-3  # outputs of rows alone with those of the batch: sums in another order

Gradients = list[tuple[Tensor, NDArray[np.float64]]]


class Factors(ABC):
    """What residuals are combined with, and how the sums are read.

    n_values : parameters, counted singly, that are trained: values to open per step
    n_vectors : of residuals, once they are shaped as terms
    constant : whether factors of the same rows stay the same while the model learns
    """

    n_values: int
    n_vectors: int
    constant: bool

    @abstractmethod
    def of(self, inputs: tuple[Tensor, ...], outputs: Tensor) -> NDArray[Any]:
        """Floats (n_terms, n_sums): of inputs of the model, which gave these outputs (n_rows, n_classes)."""

    def terms(self, residuals: Any) -> Any:
        """Residuals (n_rows, n_classes) as what factors are combined with, (n_terms, n_vectors)."""
        return residuals.reshape(-1, self.n_vectors)

    @abstractmethod
    def gradients(self, sums: NDArray[np.float64]) -> Gradients:
        """factors^T terms, (n_sums, n_vectors), as gradients of the parameters."""

    @abstractmethod
    def count_products(self, n_rows: int) -> int:
        """Products of a factor and a ciphertext in a step."""


def make_factors(model: nn.Module, n_classes: int) -> Factors:
    """The cheapest that is exact for this model."""
    layer = single_layer(model)
    return JacobianFactors(model, n_classes) if layer is None else LinearFactors(layer)


def single_layer(model: nn.Module) -> nn.Linear | None:
    """The layer of a model that is one linear layer, perhaps with inputs flattened before."""
    if type(model) is nn.Linear:
        return model
    if not isinstance(model, nn.Sequential) or type(model) not in (nn.Sequential, RowNetwork):
        return None
    layers = [layer for layer in model if type(layer) not in (nn.Flatten, nn.Identity)]
    return layers[0] if len(layers) == 1 and type(layers[0]) is nn.Linear else None


class LinearFactors(Factors):
    """Inputs, and a column of ones for the bias."""

    constant = True

    def __init__(self, layer: nn.Linear) -> None:
        self._weight = layer.weight if layer.weight.requires_grad else None
        self._bias = layer.bias if layer.bias is not None and layer.bias.requires_grad else None
        self.n_vectors = layer.out_features
        self.n_values = sum(p.numel() for p in (self._weight, self._bias) if p is not None)

    def of(self, inputs: tuple[Tensor, ...], outputs: Tensor) -> NDArray[Any]:
        rows = inputs[0].flatten(1)
        parts = [rows] if self._weight is not None else []
        if self._bias is not None:
            parts.append(rows.new_ones(len(rows), 1))
        return torch.cat(parts, dim=1).cpu().numpy()

    def gradients(self, sums: NDArray[np.float64]) -> Gradients:
        found: Gradients = []
        if self._weight is not None:
            found.append((self._weight, sums[: self._weight.shape[1]].T))
        if self._bias is not None:
            found.append((self._bias, sums[-1]))
        return found

    def count_products(self, n_rows: int) -> int:
        return n_rows * self.n_values


class JacobianFactors(Factors):
    """dH_ic/dtheta, row by row of the batch."""

    constant = False
    n_vectors = 1

    def __init__(self, model: nn.Module, n_classes: int) -> None:
        self._model, self._n_classes = model, n_classes
        self._trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.n_values = sum(p.numel() for p in self._trained.values())

    def of(self, inputs: tuple[Tensor, ...], outputs: Tensor) -> NDArray[Any]:
        if len(inputs) > 1:
            raise ValueError(
                "nodes of a graph depend on each other, and encrypted training differentiates row by row"
            )
        # functional_call puts such a parameter back in one of its places only.
        if len(list(self._model.named_parameters(remove_duplicate=False))) > len(
            list(self._model.parameters())
        ):
            raise ValueError("its bottom model has a parameter in two places; here each must have one")
        at_once = max(1, _ENTRIES_AT_ONCE // (self._n_classes * self.n_values))
        by_rows = vmap(
            jacrev(self._row, has_aux=True), in_dims=(None, 0), randomness="different", chunk_size=at_once
        )
        values = {name: parameter.detach() for name, parameter in self._trained.items()}
        try:
            jacobian, alone = by_rows(values, inputs[0])
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"{_DEPENDENT}: {str(error).splitlines()[0][:100]}") from error
        if not torch.allclose(alone, outputs, rtol=_AGREE, atol=_AGREE, equal_nan=True):
            raise ValueError(_DEPENDENT)
        n_terms = outputs.numel()
        return torch.cat([jacobian[name].reshape(n_terms, -1) for name in values], dim=1).cpu().numpy()

    def gradients(self, sums: NDArray[np.float64]) -> Gradients:
        parameters = list(self._trained.values())
        ends = np.cumsum([parameter.numel() for parameter in parameters])
        parts = np.split(sums[:, 0], ends[:-1])
        return [(p, part.reshape(p.shape)) for p, part in zip(parameters, parts, strict=True)]

    def count_products(self, n_rows: int) -> int:
        return n_rows * self._n_classes * self.n_values

    def _row(self, values: dict[str, Tensor], row: Tensor) -> tuple[Tensor, Tensor]:
        """The output of one row, to differentiate, and again to look at."""
        output = functional_call(self._model, values, (row.unsqueeze(0),)).squeeze(0)
        return output, output


_DEPENDENT = (
    "its bottom model gives a row alone another output than within its batch, or none (batch normalisation and dropout "
    "do that), and encrypted training differentiates row by row"
)
