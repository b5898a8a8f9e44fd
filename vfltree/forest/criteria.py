"""Which split of a node is best for a forest: Gini, entropy, squared error, from exact integer sums.

    gain = score(left) + score(right) - score(node)            how much impurity, times weight, the split takes away

    gini, squared error    score = sum of parts^2 / weight                    parts: classes, or the sum of y - mean
    entropy                score = sum of p log2(p) - w log2(w)               p: parts, w: their sum

Impurity times weight is a constant less the score, the same for a node and its children together, so the constant
cancels. Rows are counted as often as they were drawn. Every split is allowed that leaves enough draws on both sides, as
in scikit-learn: also one that gains nothing yet. Equal sums give equal floats, whichever party they come from.
Source: Breiman et al., Classification and Regression Trees (1984).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .values import Array, Ints, RowValues

CRITERIA = ("gini", "entropy", "squared_error")
CELLS_AT_ONCE = 1 << 20  # bounds the work space of a search to some ten times 8 bytes of this
_NO_GAIN = -np.inf


@dataclass(frozen=True)
class PairSplits:
    """The best split of each (node, slot).

    Attributes
    ----------
    gain : ndarray of float64, shape (n_pairs,)
        -inf where no split is allowed. Numbers to be compared as they are.
    bin : ndarray of int32, shape (n_pairs,)
        Present values in this bin or lower go left.
    missing_left : ndarray of bool, shape (n_pairs,)
        Where missing values go.
    """

    gain: Array
    bin: NDArray[np.int32]
    missing_left: NDArray[np.bool_]


@dataclass(frozen=True)
class Least:
    """What each side of a split needs: draws, and weight, float64 (n_pairs,)."""

    samples: int
    weight: Array


def score(criterion: str, parts: Array, weights: Array) -> Array:
    """See above; 0 where there is no weight. parts : float64 (..., n_parts); weights : float64 (...)."""
    total = np.zeros_like(weights)
    for k in range(parts.shape[-1]):  # one after another: equal parts, equal scores, whatever the shape
        total += _xlogx(parts[..., k]) if criterion == "entropy" else parts[..., k] * parts[..., k]
    if criterion == "entropy":
        return np.asarray(total - _xlogx(weights))
    return np.divide(total, weights, out=np.zeros_like(weights), where=weights > 0)


def best_splits(
    criterion: str,
    values: RowValues,
    histograms: Ints,
    totals: Ints,
    class_weights: Array | None,
    least: Least,
) -> PairSplits:
    """Best split per pair of a node and one of its drawn slots.

    Parameters
    ----------
    histograms : ndarray of int64, shape (n_pairs, n_bins, n_kinds)
        Sums per bin, missing values last.
    totals : ndarray of int64, shape (n_pairs, n_kinds)
        Sums of the node.
    class_weights : ndarray of float64, shape (n_pairs, n_classes), or None
    least : Least
        What each side needs; `weight` of shape (n_pairs,).
    """
    n_pairs, n_bins, n_kinds = histograms.shape
    step = max(1, CELLS_AT_ONCE // max(1, n_bins * n_kinds))
    pieces = [
        _best_of(
            criterion,
            values,
            histograms[at : at + step],
            totals[at : at + step],
            None if class_weights is None else class_weights[at : at + step],
            Least(least.samples, least.weight[at : at + step]),
        )
        for at in range(0, n_pairs, step)
    ]
    if not pieces:
        return PairSplits(np.zeros(0), np.zeros(0, np.int32), np.zeros(0, np.bool_))
    return PairSplits(*(np.concatenate(column) for column in zip(*pieces, strict=True)))


def _best_of(
    criterion: str,
    values: RowValues,
    histograms: Ints,
    totals: Ints,
    class_weights: Array | None,
    least: Least,
) -> tuple[Array, NDArray[np.int32], NDArray[np.bool_]]:
    last = histograms.shape[1] - 1  # the bin of missing values
    left = np.cumsum(histograms[:, :last], axis=1)
    missing = histograms[:, last:]
    if missing.any():
        # Forward first: where nothing is missing, or nothing is gained by it, missing values go right.
        left = np.concatenate([left, left[:, :-1] + missing], axis=1)
    right = totals[:, None] - left
    factors = None if class_weights is None else class_weights[:, None]
    left_score, left_weight = _scores(criterion, values, left, factors)
    right_score, right_weight = _scores(criterion, values, right, factors)
    gains = left_score + right_score - _scores(criterion, values, totals[:, None], factors)[0]
    enough = np.minimum(values.counts(left), values.counts(right)) >= least.samples
    enough &= np.minimum(left_weight, right_weight) >= least.weight[:, None]
    gains = np.where(enough, gains, _NO_GAIN)
    best = gains.argmax(axis=1)
    missing_left = best >= last
    bins = np.where(missing_left, best - last, best).astype(np.int32)
    return gains[np.arange(len(best)), best], bins, missing_left


def _scores(
    criterion: str, values: RowValues, sums: Ints, class_weights: Array | None
) -> tuple[Array, Array]:
    """Scores, and weights, of sums (..., n_kinds)."""
    parts = values.parts(sums, class_weights)
    weights = values.weights(sums, parts)
    return score(criterion, parts, weights), weights


def _xlogx(x: Array) -> Array:
    return np.asarray(x * np.log2(np.where(x > 0, x, 1.0)))
