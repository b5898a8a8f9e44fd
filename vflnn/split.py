"""The cut: each party's half of a network that no party holds whole.

::

    X_1 -> bottom_1 -> H_1 ┐
    X_2 -> bottom_2 -> H_2 ┼ top -> Z, loss        up: outputs H_k; down: gradients g_k = dL/dH_k
    X_3 -> bottom_3 -> H_3 ┘

A `BottomHalf` is a passive party's: its model, its optimiser, its random numbers. A `TopHalf` is the active party's:
the same around its own bottom model, the top model, the labels and the loss. Neither holds the other. Together they
take the very steps of `JoinedNetwork`, the same network in one piece (VFLAIR, section 3; nothing is approximated).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .losses import LOSSES, labelled, mean_loss
from .messages import HalfState, TrainingSettings
from .recipes import from_json, make_optimizer, make_scheduler
from .samples import Samples
from .state import export_state, restore_state
from .working import RandomStream

Rows = NDArray[np.int64]
Weigh = Callable[[Mapping[str, Tensor]], Tensor]


class JoinedNetwork(nn.Module):
    """The network uncut, for whoever may see all of it.

    bottoms : one module per party, in the parties' order
    top : called with the list of their outputs
    """

    def __init__(self, bottoms: Sequence[nn.Module], top: nn.Module) -> None:
        super().__init__()
        self.bottoms = nn.ModuleList(bottoms)
        self.top = top

    def forward(self, *blocks: Tensor) -> Tensor:
        """Scores (n, n_outputs) of each party's block of the same rows."""
        return self.top([bottom(block) for bottom, block in zip(self.bottoms, blocks, strict=True)])


class Half:
    """A module with its optimiser, schedule and random numbers."""

    def __init__(self, model: nn.Module, stream: RandomStream, device: str = "cpu") -> None:
        self.model = model.to(device)
        self.stream = stream
        self.device = torch.device(device)
        self._optimizer: torch.optim.Optimizer | None = None
        self._epoch = 0

    def prepare(self, settings: TrainingSettings, state: HalfState | None = None) -> None:
        """Take the optimiser that was agreed on; go on from `state` where there is one."""
        options = from_json(settings.optimizer_options)
        self._optimizer = make_optimizer(
            settings.optimizer, options, settings.learning_rate, self.model.parameters()
        )
        self._scheduler = None
        if self._optimizer is not None:
            options = from_json(settings.scheduler_options)
            self._scheduler = make_scheduler(settings.scheduler, options, self._optimizer)
        self._epoch = 0
        self.start_epoch(settings.first_epoch)
        if state is not None:
            restore_state(state, self.model, self._optimizer, self.stream)

    def start_epoch(self, epoch: int) -> None:
        """Move the learning rate on to this epoch."""
        with warnings.catch_warnings():
            # It warns where no optimiser's step came between; so it is when the schedule is caught up with.
            warnings.filterwarnings("ignore", message=".*lr_scheduler.step.*before.*optimizer.step")
            while self._epoch < epoch:
                self._epoch += 1
                if self._scheduler is not None:
                    self._scheduler.step()

    def zero_grad(self) -> None:
        self.model.zero_grad(set_to_none=True)

    def step(self) -> None:
        """One step of the optimiser on the gradients at hand."""
        if self._optimizer is not None:
            self._optimizer.step()

    def export_state(self) -> HalfState:
        return export_state(self.model, self._optimizer, self.stream)


class BottomHalf(Half):
    """A passive party's half.

    Parameters
    ----------
    model : module from a batch of its samples to its output, shape (n_rows, width)
    samples : its training rows
    stream : its random numbers
    """

    def __init__(self, model: nn.Module, samples: Samples, stream: RandomStream, device: str = "cpu") -> None:
        super().__init__(model, stream, device)
        self.samples = samples

    def output(self, rows: Rows) -> Tensor:
        """H_k of these rows at the current weights, with its graph."""
        with self.stream.working():
            self.model.train()
            return self.model(*self.samples.inputs(rows, self.model))

    def descend(self, output: Tensor, gradient: Tensor) -> None:
        """One step along `gradient`, the loss's by `output`: theta_k -= rate * (dH_k/dtheta_k)^T g_k."""
        with self.stream.working():
            self.zero_grad()
            output.backward(gradient)
            self.step()

    def evaluate(self, samples: Samples, start: int, stop: int) -> Tensor:
        """Outputs of rows in evaluation mode, without graph."""
        with self.stream.working(), torch.no_grad():
            self.model.eval()
            return self.model(*samples.inputs(np.arange(start, stop), self.model))


@dataclass(frozen=True)
class Exchange:
    """What the active party has worked out for one batch, all at the same weights."""

    loss: float  # nan where no row of the batch has a label
    scores: Tensor  # (n, n_outputs), detached
    gradients: dict[str, Tensor]  # by passive party, of the mean loss
    weights: Tensor | None = (
        None  # of the samples in the loss that own gradients are of; None: all count in full
    )


class TopHalf(Half):
    """The active party's half.

    Parameters
    ----------
    bottom : its own bottom model; None where it has no columns
    top : module called with the list of outputs, its own first
    samples : its own training rows; None where it has no columns
    labels : int64 class numbers (n_samples,), -1 for none; or float targets (n_samples, n_outputs)
    loss : a name of LOSSES
    stream : its random numbers
    """

    def __init__(
        self,
        bottom: nn.Module | None,
        top: nn.Module,
        samples: Samples | None,
        labels: NDArray[np.generic],
        loss: str,
        stream: RandomStream,
        device: str = "cpu",
    ) -> None:
        own = nn.ModuleDict({"top": top})
        if bottom is not None:
            own["bottom"] = bottom
        super().__init__(own, stream, device)
        self.bottom, self.top = bottom, top
        self.samples = samples
        self.labels = torch.from_numpy(np.array(labels)).to(self.device)
        self.loss = LOSSES[loss]

    def received(self, outputs: NDArray[np.floating[Any]]) -> Tensor:
        """What a passive party has sent, on this half's device and in the precision of its weights."""
        weight = next(self.model.parameters(), None)
        return torch.from_numpy(outputs).to(self.device, None if weight is None else weight.dtype)

    def exchange(self, rows: Rows, outputs: Mapping[str, Tensor], weigh: Weigh | None = None) -> Exchange:
        """Loss, scores, and gradients for every passive party; own gradients wait for `step`.

        outputs : by passive party, in the parties' order, (n_rows, width)
        weigh : from the gradients for the passive parties to a weight of each sample (n_rows,), with which it counts
            in the loss of the step, and in nothing else
        """
        labels = self.labels[torch.from_numpy(rows).to(self.device)]
        leaves = {party: output.detach().requires_grad_() for party, output in outputs.items()}
        with self.stream.working():
            self.model.train()
            self.zero_grad()
            scores = self._scores(self.samples, rows, list(leaves.values()))
            losses = self.loss(scores, labels)
            loss, weights = mean_loss(losses, labels), None
            loss.backward(retain_graph=weigh is not None)
            gradients = {party: _gradient_of(leaf) for party, leaf in leaves.items()}
            if weigh is not None:
                weights = weigh(gradients)
                self.zero_grad()
                for leaf in leaves.values():
                    leaf.grad = None  # or the next ones would be added to those above
                mean_loss(losses, labels, weights).backward()
        return Exchange(float(loss.detach()), scores.detach(), gradients, weights)

    def evaluate(self, samples: Samples | None, start: int, stop: int, outputs: Sequence[Tensor]) -> Tensor:
        """Scores of rows in evaluation mode; `outputs` are the passive parties' of the same rows."""
        with self.stream.working(), torch.no_grad():
            self.model.eval()
            return self._scores(samples, np.arange(start, stop), outputs)

    def n_labelled(self, rows: Rows) -> int:
        return int(labelled(self.labels[torch.from_numpy(rows).to(self.device)]).sum())

    def accuracy(self, rows: Rows, scores: Tensor) -> float:
        """Share of labelled rows whose class has the largest score; nan for regression and without labelled rows."""
        labels = self.labels[torch.from_numpy(rows).to(self.device)]
        return float("nan") if labels.dtype.is_floating_point else _share_correct(scores, labels)

    def figures(self, scores: NDArray[Any], labels: NDArray[Any]) -> tuple[float, float]:
        """Mean loss, and accuracy (R2 for regression), of scores with these labels; rows without label left out."""
        z, y = torch.from_numpy(scores), torch.from_numpy(np.array(labels))
        loss = float(mean_loss(self.loss(z, y), y))
        if y.dtype.is_floating_point:
            spread = float(((y - y.mean(dim=0)) ** 2).sum())
            return loss, 1.0 - float(((z - y) ** 2).sum()) / spread if spread else float("nan")
        return loss, _share_correct(z, y)

    def _scores(self, samples: Samples | None, rows: Rows, outputs: Sequence[Tensor]) -> Tensor:
        joined: list[Tensor] = list(outputs)
        context: tuple[Tensor, ...] = ()
        if self.bottom is not None:
            assert samples is not None
            joined.insert(0, self.bottom(*samples.inputs(rows, self.bottom)))
            context = samples.context(self.top)
        return self.top(joined, *context)


def _share_correct(scores: Tensor, labels: Tensor) -> float:
    return float((scores.argmax(dim=1) == labels)[labelled(labels)].double().mean())


def _gradient_of(leaf: Tensor) -> Tensor:
    """Its gradient; zeros where the loss does not depend on it."""
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
