"""Top models: the active party's half. The outputs of all parties, in their order, become scores per row.

`log_probabilities` says what the scores are: false for logits (loss: cross-entropy), true for log-probabilities (loss:
NLL; cross-entropy would apply log-softmax twice).
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .graph import GraphConvolution


class TopModel(nn.Module):
    """What all tops share: the widths they were made for, and a check that outputs have them.

    Without it, a missing or misshapen output could broadcast into a sum and go unnoticed.
    """

    log_probabilities = False
    takes_graph = False

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__()
        self.widths = tuple(widths)

    def _check(self, outputs: Sequence[Tensor]) -> None:
        if len(outputs) != len(self.widths):
            raise ValueError(f"this top model joins {len(self.widths)} outputs, got {len(outputs)}")
        for number, (output, width) in enumerate(zip(outputs, self.widths, strict=True)):
            expected = (len(outputs[0]), width)
            if tuple(output.shape) != expected:
                raise ValueError(f"output {number} must have shape {expected}, got {tuple(output.shape)}")


class SumTop(TopModel):
    """H_1 + H_2 + ... from left to right: aggVFL. No parameters; the softmax sits in the loss."""

    def forward(self, outputs: Sequence[Tensor]) -> Tensor:
        self._check(outputs)
        scores = outputs[0]
        for output in outputs[1:]:
            scores = scores + output
        return scores


class SumLogSoftmaxTop(SumTop):
    """The same sum, as log-probabilities."""

    log_probabilities = True

    def forward(self, outputs: Sequence[Tensor]) -> Tensor:
        return torch.log_softmax(super().forward(outputs), dim=1)


class ConcatTop(TopModel):
    """Layers on the outputs side by side, shape (n, sum of widths): splitVFL."""

    def __init__(self, widths: Sequence[int], layers: nn.Module, *, log_probabilities: bool = False) -> None:
        super().__init__(widths)
        self.layers = layers
        self.log_probabilities = log_probabilities

    def forward(self, outputs: Sequence[Tensor]) -> Tensor:
        self._check(outputs)
        return self.layers(torch.cat(list(outputs), dim=1))


class GraphTop(TopModel):
    """One graph convolution on the outputs side by side, over the active party's graph."""

    takes_graph = True

    def __init__(self, widths: Sequence[int], n_outputs: int) -> None:
        super().__init__(widths)
        self.convolution = GraphConvolution(sum(self.widths), n_outputs)

    def forward(self, outputs: Sequence[Tensor], adjacency: Tensor) -> Tensor:
        self._check(outputs)
        return self.convolution(torch.cat(list(outputs), dim=1), adjacency)


def sum_top(widths: Sequence[int], n_outputs: int) -> TopModel:
    _check_widths(widths, n_outputs)
    return SumTop(widths)


def sum_log_softmax_top(widths: Sequence[int], n_outputs: int) -> TopModel:
    _check_widths(widths, n_outputs)
    return SumLogSoftmaxTop(widths)


def linear_top(widths: Sequence[int], n_outputs: int) -> TopModel:
    return ConcatTop(widths, nn.Linear(sum(widths), n_outputs))


def mlp2_top(widths: Sequence[int], n_outputs: int) -> TopModel:
    """No ReLU behind the last layer: on scores it would stop the gradient of every class below zero."""
    total, half = _sizes(widths)
    return ConcatTop(widths, nn.Sequential(nn.Linear(total, half), nn.ReLU(), nn.Linear(half, n_outputs)))


def mlp3_top(widths: Sequence[int], n_outputs: int) -> TopModel:
    total, half = _sizes(widths)
    layers = nn.Sequential(
        nn.ReLU(),
        nn.Linear(total, total),
        nn.ReLU(),
        nn.Linear(total, half),
        nn.ReLU(),
        nn.Linear(half, n_outputs),
    )
    return ConcatTop(widths, layers)


def model_completion_top(widths: Sequence[int], n_outputs: int) -> TopModel:
    """The four-layer top of Fu et al., *Label Inference Attacks Against Vertical Federated Learning* (2022)."""
    total = sum(widths)
    layers: list[nn.Module] = []
    for n_in, n_out in [(total, total), (total, n_outputs), (n_outputs, n_outputs), (n_outputs, n_outputs)]:
        linear = nn.Linear(n_in, n_out)
        nn.init.kaiming_normal_(linear.weight)
        layers += [nn.BatchNorm1d(n_in), nn.ReLU(), linear]
    return ConcatTop(widths, nn.Sequential(*layers, nn.LogSoftmax(dim=1)), log_probabilities=True)


def graph_top(widths: Sequence[int], n_outputs: int) -> TopModel:
    return GraphTop(widths, n_outputs)


def _check_widths(widths: Sequence[int], n_outputs: int) -> None:
    for number, width in enumerate(widths):
        if width != n_outputs:
            raise ValueError(
                f"a sum needs outputs as wide as the scores: output {number} has {width}, the scores {n_outputs};"
                f' make that bottom model {n_outputs} wide, or take the top "linear"'
            )


def _sizes(widths: Sequence[int]) -> tuple[int, int]:
    """D, the sum of the widths, and D/2: rounded down, but never 0."""
    total = sum(widths)
    return total, max(1, total // 2)
