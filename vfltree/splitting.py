"""Which split is best: XGBoost's gain, its order of search and its ties, from exact integer sums.

    gain = T(G_L)^2/(H_L + lambda) + T(G_R)^2/(H_R + lambda) - T(G)^2/(H + lambda),   T: soft threshold alpha

Sums are exact; from there on the arithmetic is XGBoost 3's, in single precision (each square and each H +
lambda is rounded to float32, then everything else is float32). The rounding is not an accident to be
repaired: it decides which candidates count as equal, and equal candidates are decided by their order.
Within a feature: splits with missing values on the right from the lowest bin up, then, where the node
misses values of the feature, splits with missing values on the left from the highest bin down; only a
larger gain replaces an earlier one. Between features the lower index wins, which between parties means the
earlier party. Where leaf weights are limited (`max_delta_step`, monotone constraints) the score of a child is
another one, see `limited_splits`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike, NDArray

from vfltree._jit import jit
from vfltree.limited_splits import Limits, limited_partition_gains, scan_limited

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

MIN_GAIN = float(np.float32(1e-6))  # XGBoost splits only above this, whatever gamma
UNIT = 2.0**-30  # the kernel's integers times this; any power of two would do, float32 has the range


@dataclass(frozen=True)
class SplitRules:
    """What makes a split and a leaf; names and defaults as in XGBoost."""

    reg_lambda: float = 1.0
    reg_alpha: float = 0.0
    gamma: float = 0.0
    min_child_weight: float = 1.0
    max_delta_step: float = 0.0  # a leaf weighs at most so much before the learning rate; 0: no limit

    def __post_init__(self) -> None:
        for name in ("reg_lambda", "reg_alpha", "gamma", "min_child_weight", "max_delta_step"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be 0 or more, got {getattr(self, name)}")

    @property
    def min_gain(self) -> float:
        """A node is split only when its best gain is larger than this."""
        return max(self.gamma, MIN_GAIN)


@dataclass(frozen=True)
class BestSplits:
    """The best split of every node by every feature.

    Attributes
    ----------
    gain : ndarray of float64, shape (n_nodes, n_features)
        Holds numbers with at most 24 significant bits, to be compared as they are; 0 where there is no split.
    bin : ndarray of int32, shape (n_nodes, n_features)
        Present values in this bin or lower go left; -1 where there is no split, `binning.NONE_LEFT` where only
        missing values go left.
    missing_left : ndarray of bool, shape (n_nodes, n_features)
        Where missing values go.
    left_g, left_h : ndarray of int64, shape (n_nodes, n_features)
        Sums of the left child.
    right : ndarray of bool, shape (n_nodes, n_features, n_categories), or None
        Categories that go right at a split of a categorical feature, whose `bin` is -1; None where no feature is
        categorical. See `category_splits`.
    """

    gain: Array
    bin: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    left_g: Ints
    left_h: Ints
    right: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Choice:
    """The winner of every node.

    Attributes
    ----------
    party : ndarray of int32, shape (n_nodes,)
        Position of the winning party; -1 where the node stays a leaf.
    gain : ndarray of float64, shape (n_nodes,)
    slots : tuple of ndarray of int64
        Per node all feature slots of the winner that reach this gain, ascending. The owner takes the slot
        that holds its lowest column, so the order in which it showed its features does not matter.
    """

    party: NDArray[np.int32]
    gain: Array
    slots: tuple[Ints, ...]


def best_splits(
    G: Ints,
    H: Ints,
    total_g: Ints,
    total_h: Ints,
    g_unit: float,
    h_unit: float,
    rules: SplitRules,
    limits: Limits | None = None,
) -> BestSplits:
    """Best split per node and feature.

    Parameters
    ----------
    G, H : ndarray of int64, shape (n_nodes, n_features, n_bins)
        Sums per bin, missing values last. Bins a feature does not use are 0.
    total_g, total_h : ndarray of int64, shape (n_nodes,)
        Sums of the node.
    g_unit, h_unit : float
        Powers of two: what one unit of G and of H is worth, see `losses.Quantized`.
    rules : SplitRules
    limits : Limits or None
        Monotone constraints of these nodes and features; None where no party has any.
    """
    if G.shape != H.shape or G.ndim != 3:
        raise ValueError(f"G and H must have the shape (nodes, features, bins), got {G.shape} and {H.shape}")
    if total_g.shape != G.shape[:1] or total_h.shape != G.shape[:1]:
        raise ValueError(f"{G.shape[0]} nodes need as many totals, got {total_g.shape} and {total_h.shape}")
    # Powers of two pass through every rounding unchanged. So the kernel works on numbers of moderate size,
    # where float32 neither overflows nor vanishes, whatever the size of targets and weights.
    g_scale, h_scale = g_unit / UNIT, h_unit / UNIT
    shape = G.shape[:2]
    gain, bins = np.zeros(shape, dtype=np.float32), np.full(shape, -1, dtype=np.int32)
    missing_left = np.zeros(shape, dtype=np.bool_)
    left_g, left_h = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    sums = [np.ascontiguousarray(x, dtype=np.int64) for x in (G, H, total_g, total_h)]
    scaled_rules = (
        float(np.float32(rules.reg_lambda)) / h_scale,
        float(np.float32(rules.reg_alpha)) / g_scale,
        rules.min_child_weight / h_scale,
    )
    found = (gain, bins, missing_left, left_g, left_h)
    if limits is None and not rules.max_delta_step:
        _scan(*sums, *scaled_rules, *found)
    else:
        scan_limited(
            *sums, UNIT, *scaled_rules, *_scaled_limits(shape, rules, limits, h_scale / g_scale), *found
        )
    return BestSplits(
        gain.astype(np.float64) * (g_scale / h_scale * g_scale), bins, missing_left, left_g, left_h
    )


def _scaled_limits(
    shape: tuple[int, int], rules: SplitRules, limits: Limits | None, scale: float
) -> tuple[float, NDArray[np.int8], NDArray[np.float32], NDArray[np.float32]]:
    """Largest step, signs and bounds for `scan_limited`. scale : a real weight times this is one of the kernel."""
    if limits is None:
        free = np.full(shape[0], np.inf)
        limits = Limits(np.zeros(shape[1], dtype=np.int8), -free, free)
    if limits.signs.shape != shape[1:] or limits.lower.shape != shape[:1] or limits.upper.shape != shape[:1]:
        raise ValueError(
            f"{shape[0]} nodes of {shape[1]} features need as many bounds and signs, got {limits.lower.shape}, "
            f"{limits.upper.shape} and {limits.signs.shape}"
        )
    step = float(np.float32(rules.max_delta_step)) * scale
    lower, upper = ((bounds * scale).astype(np.float32) for bounds in (limits.lower, limits.upper))
    return step, limits.signs.astype(np.int8), lower, upper


def partition_gains(
    left_g: Ints,
    left_h: Ints,
    total_g: Ints,
    total_h: Ints,
    g_unit: float,
    h_unit: float,
    rules: SplitRules,
    limits: Limits | None = None,
) -> Array:
    """Gains of two-way partitions that are given, as those of `best_splits`; 0 where a child is too light.

    Parameters
    ----------
    left_g, left_h : ndarray of int64, shape (n_nodes, n_candidates)
    total_g, total_h : ndarray of int64, shape (n_nodes,)
    limits : Limits or None
        Bounds of these nodes; no sign applies here.
    """
    g_scale, h_scale = g_unit / UNIT, h_unit / UNIT
    gain = np.zeros(left_g.shape, dtype=np.float32)
    sums = [np.ascontiguousarray(x, dtype=np.int64) for x in (left_g, left_h, total_g, total_h)]
    scaled_rules = (
        float(np.float32(rules.reg_lambda)) / h_scale,
        float(np.float32(rules.reg_alpha)) / g_scale,
        rules.min_child_weight / h_scale,
    )
    if limits is None and not rules.max_delta_step:
        _partition_gains(*sums, *scaled_rules, gain)
    else:
        bounds = None if limits is None else replace(limits, signs=np.zeros(left_g.shape[1], np.int8))
        step, _, lower, upper = _scaled_limits(
            (len(total_g), left_g.shape[1]), rules, bounds, h_scale / g_scale
        )
        limited_partition_gains(*sums, UNIT, *scaled_rules, step, lower, upper, gain)
    return gain.astype(np.float64) * (g_scale / h_scale * g_scale)


def choose(bests: Sequence[BestSplits], rules: SplitRules) -> Choice:
    """Winner of every node over all parties, in their order; parties without features may show 0 of them."""
    if not bests:
        raise ValueError("there must be at least one party")
    n_nodes = bests[0].gain.shape[0]
    # Column k: the best of party k. argmax takes the first of equals, so the earlier party.
    by_party = np.column_stack([best.gain.max(axis=1, initial=0.0) for best in bests])
    winner = by_party.argmax(axis=1).astype(np.int32)
    gain = by_party[np.arange(n_nodes), winner]
    party = np.where(gain > rules.min_gain, winner, np.int32(-1)).astype(np.int32)
    none = np.empty(0, dtype=np.int64)
    slots = tuple(
        np.flatnonzero(bests[p].gain[node] == gain[node]) if p >= 0 else none for node, p in enumerate(party)
    )
    return Choice(party, gain, slots)


def leaf_values(
    total_g: Ints,
    total_h: Ints,
    g_unit: float,
    h_unit: float,
    rules: SplitRules,
    learning_rate: float = 1.0,
    dtype: DTypeLike = np.float64,
    bounds: tuple[float, float] | None = None,
) -> Array:
    """-T(G) / (H + lambda) within its limits, times the learning rate; 0 where H is 0 or below `min_child_weight`.

    Parameters
    ----------
    total_g, total_h : ndarray of int64, any one shape
    g_unit, h_unit : float
    dtype : float32 or float64
        That of the raw scores. With float32 the quotient, the learning rate and their product are rounded
        to it, as XGBoost does.
    bounds : (float, float) or None
        Lower and upper bound of the weights before the learning rate, see `Limits`.

    Returns
    -------
    ndarray of float64, same shape
    """
    g, h = total_g * g_unit, total_h * h_unit
    shrunk = np.sign(g) * np.maximum(np.abs(g) - rules.reg_alpha, 0.0)
    divisor = h + rules.reg_lambda
    heavy = (h > 0) & (h >= rules.min_child_weight)
    weight = np.divide(-shrunk, divisor, out=np.zeros_like(divisor), where=heavy)
    if rules.max_delta_step:
        step = float(np.float32(rules.max_delta_step))
        weight = np.clip(weight, -step, step)
    rounded = weight.astype(dtype)
    if bounds is not None:
        rounded = np.clip(rounded, *np.asarray(bounds, dtype=dtype))
    rounded = rounded * np.asarray(learning_rate, dtype=dtype)
    return rounded.astype(np.float64)


@jit
def _score(G, H, reg_lambda, reg_alpha):  # type: ignore[no-untyped-def]
    """T(G)^2 / (H + lambda) as XGBoost rounds it, for sums given as integers."""
    if H <= 0:
        return np.float32(0.0)
    g = G * UNIT
    if g > reg_alpha:
        g -= reg_alpha
    elif g < -reg_alpha:
        g += reg_alpha
    else:
        g = 0.0
    return np.float32(g * g) / np.float32(H * UNIT + reg_lambda)


@jit
def _gain(left_g, left_h, right_g, right_h, node, reg_lambda, reg_alpha):  # type: ignore[no-untyped-def]
    left = _score(left_g, left_h, reg_lambda, reg_alpha)
    right = _score(right_g, right_h, reg_lambda, reg_alpha)
    return np.float32(np.float32(left + right) - node)


@jit
def _scan(  # type: ignore[no-untyped-def]
    G, H, total_g, total_h, reg_lambda, reg_alpha, min_weight, gain, bins, missing_left, left_g, left_h
):
    """Fill the last five arrays. `reg_*` and `min_weight` are on the scale of the integers times UNIT."""
    last = G.shape[2] - 1  # the bin of missing values
    for k in range(G.shape[0]):
        node = _score(total_g[k], total_h[k], reg_lambda, reg_alpha)
        for f in range(G.shape[1]):
            for backward in range(2):
                if backward and H[k, f, last] == 0 and G[k, f, last] == 0:
                    continue
                # Forward: the left child holds bins 0..b. Backward: it holds 0..b and the missing ones.
                g = total_g[k] if backward else 0
                h = total_h[k] if backward else 0
                for step in range(last):
                    b = step
                    if backward:
                        b = last - 2 - step
                        if b < 0:
                            break  # all present against all missing: the forward scan had it
                        g -= G[k, f, b + 1]
                        h -= H[k, f, b + 1]
                    else:
                        g += G[k, f, b]
                        h += H[k, f, b]
                    other_h = total_h[k] - h
                    # A child without rows has hessian 0, and no child may be empty.
                    if h <= 0 or other_h <= 0 or h * UNIT < min_weight or other_h * UNIT < min_weight:
                        continue
                    new = _gain(g, h, total_g[k] - g, other_h, node, reg_lambda, reg_alpha)
                    if new > gain[k, f] and not np.isinf(new):
                        gain[k, f] = new
                        bins[k, f] = b
                        missing_left[k, f] = backward == 1
                        left_g[k, f] = g
                        left_h[k, f] = h


@jit
def _partition_gains(  # type: ignore[no-untyped-def]
    left_g, left_h, total_g, total_h, reg_lambda, reg_alpha, min_weight, gain
):
    """Fill `gain`; see `_scan`."""
    for k in range(left_g.shape[0]):
        node = _score(total_g[k], total_h[k], reg_lambda, reg_alpha)
        for i in range(left_g.shape[1]):
            g, h = left_g[k, i], left_h[k, i]
            other_h = total_h[k] - h
            if h <= 0 or other_h <= 0 or h * UNIT < min_weight or other_h * UNIT < min_weight:
                continue
            new = _gain(g, h, total_g[k] - g, other_h, node, reg_lambda, reg_alpha)
            if new > 0 and not np.isinf(new):
                gain[k, i] = new
