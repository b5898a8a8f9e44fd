"""What the rows of a forest add up: the one-hot label, or [y - mean, count], as integers, encrypted once for all trees.

    classification                 a count per class                     slots of bit_length(n) bits
    with sample_weight             a weight per class, and a count       weights of B fraction bits on a private scale
    regression                     y - mean, and a count                 y - mean of B fraction bits on a private scale
    with sample_weight             w (y - mean), w, and a count

The sum of y^2 is not needed: it cancels in the gain. Class weights are no part of a row: they multiply whole slots, so
the active party applies them to sums that it has opened.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..losses import fraction_bits_for, quantize
from ..sealing import SlotLayout

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class RowValues:
    """Integers of all rows, and what they are worth.

    Attributes
    ----------
    rows : ndarray of int64, shape (n_rows, n_kinds)
    layout : SlotLayout
        Kinds in this order: signed, weights, counts.
    signed_unit, weight_unit : float
        Powers of two that one unit of a signed number and of a weight is worth; they stay with the active party.
    centre : float
        What was taken off the targets; 0 for classes.
    """

    rows: Ints
    layout: SlotLayout
    signed_unit: float = 1.0
    weight_unit: float = 1.0
    centre: float = 0.0

    @property
    def n_parts(self) -> int:
        """Numbers that a criterion looks at: classes, or 1 for a regression."""
        layout = self.layout
        return layout.n_signed or layout.n_weights or layout.n_counts

    @property
    def largest(self) -> int:
        """No kind of a sum over the draws of a tree is larger in magnitude."""
        return self.layout.n_rows << self.layout.fraction_bits

    @property
    def never_negative(self) -> tuple[int, ...]:
        """Kinds that are sums of numbers >= 0."""
        return tuple(range(self.layout.n_signed, self.rows.shape[1]))

    def counts(self, sums: Ints) -> Ints:
        """How many draws are in sums (..., n_kinds): int64 (...)."""
        layout = self.layout
        only_counts = not (layout.n_signed or layout.n_weights)
        return np.asarray(sums.sum(axis=-1) if only_counts else sums[..., -1], dtype=np.int64)

    def parts(self, sums: Ints, class_weights: Array | None = None) -> Array:
        """Sums by class, weighted, or the sum of deviations: float64 (..., n_parts).

        The numbers of a regression are left on their scale, at most one a row, so that their squares are finite.
        class_weights : float64 that broadcasts to (..., n_parts); None: all one.
        """
        layout = self.layout
        parts = sums[..., : self.n_parts].astype(np.float64)
        if layout.n_signed:
            return parts * 2.0**-layout.fraction_bits
        if layout.n_weights:
            parts *= self.weight_unit
        return parts if class_weights is None else parts * class_weights

    def weights(self, sums: Ints, parts: Array) -> Array:
        """Sums of weights, float64 (...); parts : of the same sums."""
        layout = self.layout
        if not layout.n_signed:
            total = parts[..., 0].copy()
            for k in range(
                1, parts.shape[-1]
            ):  # one after another: equal parts, equal sums, whatever the shape
                total += parts[..., k]
            return np.asarray(total)
        if layout.n_weights:
            return np.asarray(sums[..., 1] * self.weight_unit)
        return np.asarray(sums[..., -1].astype(np.float64))

    @property
    def gain_unit(self) -> float:
        """What one unit of a criterion's gain is worth: squares of the scale that `parts` left out."""
        scale = self.signed_unit * 2.0**self.layout.fraction_bits
        return scale * scale if self.layout.n_signed else 1.0


def class_values(labels: Ints, n_classes: int, weights: Array | None) -> RowValues:
    """labels : (n_rows,) class numbers.  weights : positive, or None."""
    n_rows = len(labels)
    one_hot = np.zeros((n_rows, n_classes), dtype=np.int64)
    one_hot[np.arange(n_rows), labels] = 1
    if weights is None:
        return RowValues(one_hot, SlotLayout(n_rows, n_counts=n_classes))
    bits = fraction_bits_for(n_rows)
    quantized = quantize(np.zeros((n_rows, 1)), weights[:, None], bits)
    rows = np.concatenate([one_hot * quantized.h, np.ones((n_rows, 1), dtype=np.int64)], axis=1)
    layout = SlotLayout(n_rows, n_weights=n_classes, n_counts=1, fraction_bits=bits)
    return RowValues(rows, layout, weight_unit=float(quantized.h_unit[0]))


def deviations(targets: Array, weights: Array | None) -> RowValues:
    """targets : (n_rows,), finite.  weights : positive, or None."""
    n_rows = len(targets)
    w = np.ones(n_rows) if weights is None else weights
    first = float(targets[0])  # sums around it lose no digits to the size of the targets
    centre = first + math.fsum(w * (targets - first)) / math.fsum(w)
    bits = fraction_bits_for(n_rows)
    quantized = quantize((w * (targets - centre))[:, None], w[:, None], bits)
    kinds = [quantized.g, *([] if weights is None else [quantized.h]), np.ones((n_rows, 1), dtype=np.int64)]
    layout = SlotLayout(
        n_rows, n_signed=1, n_weights=0 if weights is None else 1, n_counts=1, fraction_bits=bits
    )
    return RowValues(
        np.concatenate(kinds, axis=1),
        layout,
        float(quantized.g_unit[0]),
        float(quantized.h_unit[0]),
        centre,
    )
