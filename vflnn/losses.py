"""Losses of the active party: one value per sample, of its scores and labels."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

UNLABELLED = -1  # such a row takes no part in loss or score

Loss = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    """-sum_c Y_c log softmax(Z)_c; labels are class numbers, or shares of classes (n, C)."""
    return F.cross_entropy(scores, labels, reduction="none", ignore_index=UNLABELLED)


def negative_log_likelihood(scores: Tensor, labels: Tensor) -> Tensor:
    """The same for a top model that returns log-probabilities."""
    if labels.dtype.is_floating_point:
        return -(labels * scores).sum(dim=1)
    return F.nll_loss(scores, labels, reduction="none", ignore_index=UNLABELLED)


def squared_error(scores: Tensor, labels: Tensor) -> Tensor:
    """Mean over outputs of (z - y)^2; labels (n, n_outputs)."""
    return ((scores - labels) ** 2).mean(dim=1)


def one_vs_rest_logit(scores: Tensor, labels: Tensor) -> Tensor:
    """Sum over classes of log(1 + exp(-y z)), y = +1 for the sample's class, else -1 (VFLAIR's HE runs)."""
    return F.softplus(-_signs(scores, labels) * scores).sum(dim=1)


def taylor_logit(scores: Tensor, labels: Tensor) -> Tensor:
    """The same to second order at 0: log 2 - yz/2 + z^2/8. What encrypted training minimises."""
    signs = _signs(scores, labels)
    return (scores**2 / 8 - signs * scores / 2 + torch.log(scores.new_tensor(2.0))).sum(dim=1)


LOSSES: dict[str, Loss] = {
    "cross_entropy": cross_entropy,
    "nll": negative_log_likelihood,
    "squared_error": squared_error,
    "logit": one_vs_rest_logit,
    "taylor_logit": taylor_logit,
}


def labelled(labels: Tensor) -> Tensor:
    """Which rows have a label, bool (n,)."""
    if labels.dtype.is_floating_point:
        return torch.ones(len(labels), dtype=torch.bool, device=labels.device)
    return labels != UNLABELLED


def mean_loss(per_sample: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean over the labelled rows; `weights` scale single samples without changing what is divided by."""
    known = labelled(labels)
    if weights is not None:
        per_sample = per_sample * weights
    return per_sample[known].sum() / known.sum()


def _signs(scores: Tensor, labels: Tensor) -> Tensor:
    return 2.0 * F.one_hot(labels.clamp(min=0), scores.shape[1]).to(scores.dtype) - 1.0
