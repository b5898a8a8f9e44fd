"""Losses of the active party: one value per sample, of its scores and labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
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
OF_FLOATS = ("cross_entropy", "nll", "squared_error")  # take targets (n, n_outputs)


def checked_labels(labels: NDArray[Any], loss: str, n_rows: int, n_outputs: int) -> NDArray[Any]:
    """Labels as this loss takes them, class numbers as int64; ValueError says what is wrong with them."""
    labels = np.asarray(labels)
    if loss not in LOSSES:
        raise ValueError(f"loss {loss!r} is unknown; known: {', '.join(LOSSES)}")
    if len(labels) != n_rows:
        raise ValueError(f"{len(labels)} labels for {n_rows} rows")
    if labels.dtype.kind in "iu" and labels.ndim == 1 and loss != "squared_error":
        wrong = labels[(labels < UNLABELLED) | (labels >= n_outputs)]
        if wrong.size:
            raise ValueError(
                f"{wrong.size} of {n_rows} labels, the first {wrong[0]}, are neither class numbers from 0 to "
                f"{n_outputs - 1} nor {UNLABELLED} for a row without label"
            )
        return labels.astype(np.int64, copy=False)
    if labels.dtype.kind == "f" and labels.shape == (n_rows, n_outputs) and loss in OF_FLOATS:
        if not np.isfinite(labels).all():
            raise ValueError(f"{int((~np.isfinite(labels)).sum())} of {labels.size} targets are not finite")
        return labels
    classes = "" if loss == "squared_error" else f"class numbers of shape ({n_rows},)"
    floats = f"floats of shape ({n_rows}, {n_outputs})" if loss in OF_FLOATS else ""
    raise ValueError(
        f"loss {loss!r} takes {' or '.join(filter(None, (classes, floats)))}, got labels of {labels.dtype} and shape "
        f"{labels.shape}"
    )


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
