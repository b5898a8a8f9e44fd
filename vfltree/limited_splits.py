"""The split search where leaf weights are limited: `max_delta_step` and monotone constraints, as XGBoost has them.

A child's weight is  w = -T(G) / (H + lambda),  at most `max_delta_step` in size and between the bounds of its node, and
its score is what that weight gains:

    score = -(2 G w + (H + lambda) w^2)          (T(G)^2 / (H + lambda) where nothing limits w)

A feature with sign +1 (-1) may split a node only where the left weight is not above (below) the right one. The middle
of both weights then bounds everything below: the left subtree on one side, the right subtree on the other. So a
constraint holds in the whole tree, also below splits by other features. Rounding is XGBoost's, see `splitting`: weights
in double precision, then in single, scores in single precision step by step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vfltree._jit import jit
from vfltree.binning import NONE_LEFT

Array = NDArray[np.float64]
Signs = NDArray[np.int8]


@dataclass(frozen=True)
class Limits:
    """Monotone constraints at some nodes.

    Attributes
    ----------
    signs : ndarray of int8, shape (n_features,)
        1: predictions may not fall as the feature grows; -1: they may not rise; 0: free.
    lower, upper : ndarray of float64, shape (n_nodes,)
        Between these lies every leaf weight below a node; infinite where nothing is constrained yet.
    """

    signs: Signs
    lower: Array
    upper: Array


def checked_signs(signs: ArrayLike | None, n_features: int) -> Signs:
    """Monotone constraints as int8 (n_features,); None: all 0. ValueError for other numbers or another length."""
    checked = np.zeros(n_features) if signs is None else np.asarray(signs)
    if checked.shape != (n_features,) or not np.isin(checked, (-1, 0, 1)).all():
        raise ValueError(f"{n_features} features need as many signs of -1, 0 or 1, got {signs!r}")
    return checked.astype(np.int8)


def check_ordered(signs: Signs, n_categories: NDArray[np.integer]) -> None:
    """ValueError where a column of categories has a sign. n_categories : (n_features,), 0 for numbers."""
    wrong = np.flatnonzero((signs != 0) & (n_categories > 0))
    if len(wrong):
        raise ValueError(f"column {wrong[0]} holds categories, which have no order: its sign must be 0")


def child_bounds(
    lower: float, upper: float, sign: int, left: float, right: float, single: bool
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Bounds (lower, upper) of the left and of the right child of a split.

    lower, upper : of the node.  sign : of the feature it is split by.  left, right : weights of its children.  single :
    the raw scores are in single precision, and so is the middle of both weights.
    """
    if sign == 0:
        return (lower, upper), (lower, upper)
    dtype = np.float32 if single else np.float64
    middle = float((dtype(left) + dtype(right)) / dtype(2))
    below, above = (lower, middle), (middle, upper)
    return (below, above) if sign > 0 else (above, below)


@jit
def _weight(G, H, reg_lambda, reg_alpha, max_step, lower, upper):  # type: ignore[no-untyped-def]
    """The limited weight of a child, in single precision."""
    g = G
    if g > reg_alpha:
        g -= reg_alpha
    elif g < -reg_alpha:
        g += reg_alpha
    else:
        g = 0.0
    w = -g / (H + reg_lambda)
    if max_step > 0 and abs(w) > max_step:
        w = max_step if w > 0 else -max_step
    w = np.float32(w)
    if w < lower:
        return lower
    if w > upper:
        return upper
    return w


@jit
def _score(G, H, w, reg_lambda):  # type: ignore[no-untyped-def]
    """What a weight gains, every step in single precision."""
    slope = np.float32(np.float32(np.float32(2.0) * np.float32(G)) * w)
    curve = np.float32(np.float32(np.float32(H) + np.float32(reg_lambda)) * np.float32(w * w))
    return -np.float32(slope + curve)


@jit
def scan_limited(  # type: ignore[no-untyped-def]
    G, H, total_g, total_h, unit, reg_lambda, reg_alpha, min_weight, max_step, signs, lower, upper,
    gain, bins, missing_left, left_g, left_h,
):  # fmt: skip
    """Fill the last five arrays, as `splitting._scan`; all rules and bounds on the scale of the integers times unit."""
    last = G.shape[2] - 1  # the bin of missing values
    for k in range(G.shape[0]):
        low, high = lower[k], upper[k]
        node = np.float32(0.0)
        if total_h[k] > 0 and total_h[k] * unit >= min_weight:
            w = _weight(total_g[k] * unit, total_h[k] * unit, reg_lambda, reg_alpha, max_step, low, high)
            node = _score(total_g[k] * unit, total_h[k] * unit, w, reg_lambda)
        for f in range(G.shape[1]):
            for backward in range(2):
                if backward and H[k, f, last] == 0 and G[k, f, last] == 0:
                    continue
                g = total_g[k] if backward else 0
                h = total_h[k] if backward else 0
                # Backward ends with the missing values alone on the left: no mirror image of a forward split where
                # weights must not fall from left to right.
                for step in range(last):
                    b = step
                    if backward:
                        b = last - 2 - step
                        g -= G[k, f, b + 1]
                        h -= H[k, f, b + 1]
                    else:
                        g += G[k, f, b]
                        h += H[k, f, b]
                    # Real sums of both children; a child without rows has hessian 0.
                    gl, hl = g * unit, h * unit
                    gr, hr = (total_g[k] - g) * unit, (total_h[k] - h) * unit
                    if hl <= 0 or hr <= 0 or hl < min_weight or hr < min_weight:
                        continue
                    left = _weight(gl, hl, reg_lambda, reg_alpha, max_step, low, high)
                    right = _weight(gr, hr, reg_lambda, reg_alpha, max_step, low, high)
                    if (signs[f] > 0 and left > right) or (signs[f] < 0 and left < right):
                        continue
                    both = np.float32(_score(gl, hl, left, reg_lambda) + _score(gr, hr, right, reg_lambda))
                    new = np.float32(both - node)
                    if new > gain[k, f] and not np.isinf(new):
                        gain[k, f] = new
                        bins[k, f] = b if b >= 0 else NONE_LEFT
                        missing_left[k, f] = backward == 1
                        left_g[k, f] = g
                        left_h[k, f] = h


@jit
def limited_partition_gains(  # type: ignore[no-untyped-def]
    left_g, left_h, total_g, total_h, unit, reg_lambda, reg_alpha, min_weight, max_step, lower, upper, gain
):
    """Fill `gain` (n_nodes, n_candidates) for left children that are given; otherwise as `scan_limited`."""
    for k in range(left_g.shape[0]):
        low, high = lower[k], upper[k]
        node = np.float32(0.0)
        if total_h[k] > 0 and total_h[k] * unit >= min_weight:
            w = _weight(total_g[k] * unit, total_h[k] * unit, reg_lambda, reg_alpha, max_step, low, high)
            node = _score(total_g[k] * unit, total_h[k] * unit, w, reg_lambda)
        for i in range(left_g.shape[1]):
            gl, hl = left_g[k, i] * unit, left_h[k, i] * unit
            gr, hr = (total_g[k] - left_g[k, i]) * unit, (total_h[k] - left_h[k, i]) * unit
            if hl <= 0 or hr <= 0 or hl < min_weight or hr < min_weight:
                continue
            left = _weight(gl, hl, reg_lambda, reg_alpha, max_step, low, high)
            right = _weight(gr, hr, reg_lambda, reg_alpha, max_step, low, high)
            both = np.float32(_score(gl, hl, left, reg_lambda) + _score(gr, hr, right, reg_lambda))
            new = np.float32(both - node)
            if new > 0 and not np.isinf(new):
                gain[k, i] = new
