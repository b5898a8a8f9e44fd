"""The split search where a leaf holds a value for every output: XGBoost's ``multi_strategy="multi_output_tree"``.

One tree serves all outputs: a split is worth what it gains for all of them together,

    gain = sum_k s(G_L[k], H_L[k]) + s(G_R[k], H_R[k]) - s(G[k], H[k]),    s(G, H) = -w T(G),   w = -T(G) / (H + lambda)

with weights in single precision and everything else in double, as XGBoost computes it. A child too light for
`min_child_weight` in one output weighs 0 there and gains nothing by it; no split is refused for that alone. Sums stand
as  all outputs' g, then all outputs' h.  Order of search and ties are those of `splitting` and `category_splits`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .category_splits import CategoryRules
from .splitting import UNIT, BestSplits, SplitRules

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Outputs:
    """What sums of all outputs are worth. g_units, h_units : float64 (n_outputs,), powers of two."""

    g_units: Array
    h_units: Array
    rules: SplitRules

    @property
    def n_outputs(self) -> int:
        return len(self.g_units)

    @property
    def scales(self) -> tuple[float, float]:
        """Powers of two that bring gradients and hessians to moderate size, where single precision has room."""
        return float(self.g_units.max()) / UNIT, float(self.h_units.max()) / UNIT

    def weights(self, sums: Ints) -> NDArray[np.float32]:
        """Leaf weights of sums (..., 2 n_outputs): float32 (..., n_outputs), on the scale of the gains."""
        (g_scale, h_scale), rules = self.scales, self.rules
        g, h = self._scaled(sums)
        divisor = h + float(np.float32(rules.reg_lambda)) / h_scale
        heavy = (h > 0) & (h >= rules.min_child_weight / h_scale)
        weights = np.divide(-self._shrunk(g), divisor, out=np.zeros_like(divisor), where=heavy)
        if rules.max_delta_step:
            step = float(np.float32(rules.max_delta_step)) * (h_scale / g_scale)
            weights = np.clip(weights, -step, step)
        return weights.astype(np.float32)

    def scores(self, sums: Ints) -> Array:
        """s of sums (..., 2 n_outputs), over all outputs: float64 (...)."""
        shrunk, weights = self._shrunk(self._scaled(sums)[0]), self.weights(sums)
        total = np.zeros(sums.shape[:-1])
        for k in range(self.n_outputs):  # one after the other, so that rounding does not depend on the shape
            total -= weights[..., k] * shrunk[..., k]
        return total

    def _scaled(self, sums: Ints) -> tuple[Array, Array]:
        g_scale, h_scale = self.scales
        n = self.n_outputs
        return sums[..., :n] * (self.g_units / g_scale), sums[..., n:] * (self.h_units / h_scale)

    def _shrunk(self, g: Array) -> Array:
        """The soft threshold by alpha."""
        alpha = float(np.float32(self.rules.reg_alpha)) / self.scales[0]
        return np.sign(g) * np.maximum(np.abs(g) - alpha, 0.0)


def best_multi_output_splits(
    sums: Ints,
    totals: Ints,
    outputs: Outputs,
    n_categories: NDArray[np.integer],
    category_rules: CategoryRules,
) -> BestSplits:
    """Best split per node and feature, as `category_splits.best_mixed_splits`.

    sums : int64 (n_nodes, n_features, n_bins, 2 n_outputs), missing values last.  totals : int64 (n_nodes,
    2 n_outputs).  n_categories : integers (n_features,), 0 for numbers. `left_g` and `left_h` of the result are 0.
    """
    n_nodes, n_features = sums.shape[:2]
    gain, bins = np.zeros((n_nodes, n_features)), np.full((n_nodes, n_features), -1, dtype=np.int32)
    missing_left = np.zeros((n_nodes, n_features), dtype=np.bool_)
    widest = int(n_categories.max(initial=0))
    right = np.zeros((n_nodes, n_features, widest), dtype=np.bool_)
    g_scale, h_scale = outputs.scales
    numbers = np.flatnonzero(n_categories == 0)
    for node in range(n_nodes):
        parent = outputs.scores(totals[node])
        if len(numbers):
            found = _by_order(sums[node, numbers], totals[node], parent, outputs)
            gain[node, numbers], bins[node, numbers], missing_left[node, numbers] = found
        for f in np.flatnonzero(n_categories).tolist():
            k = int(n_categories[f])
            own = sums[node, f, :k].copy()
            own[-1] += sums[node, f, k:-1].sum(axis=0)  # see `category_splits`: merged bins
            gain[node, f], missing_left[node, f], right[node, f, :k] = _by_set(
                own, totals[node], parent, outputs, category_rules
            )
    nothing = np.zeros((n_nodes, n_features), dtype=np.int64)
    return BestSplits(
        gain * (g_scale / h_scale * g_scale), bins, missing_left, nothing, nothing, right if widest else None
    )


def _gains(left: Ints, total: Ints, parent: Array, outputs: Outputs) -> NDArray[np.float32]:
    """Gains of left children (..., 2 n_outputs), in single precision; 0 where there is none."""
    gains = (outputs.scores(left) + outputs.scores(total - left) - parent).astype(np.float32)
    n = outputs.n_outputs
    # A child without rows has hessians of 0, and no child may be empty.
    empty = ~(left[..., n:].any(axis=-1) & (total - left)[..., n:].any(axis=-1))
    return np.where(empty | ~(gains > 0) | np.isinf(gains), np.float32(0), gains)


def _by_order(
    sums: Ints, total: Ints, parent: Array, outputs: Outputs
) -> tuple[NDArray[np.float32], NDArray[np.int32], Bools]:
    """Gain, bin and direction of missing values, each (n_features,), of the best split by order of one node."""
    last = sums.shape[1] - 1
    forward = np.cumsum(sums[:, :last], axis=1)
    backward = forward[:, : last - 1][:, ::-1] + sums[:, last:]
    gains = _gains(np.concatenate([forward, backward], axis=1), total, parent, outputs)
    gains[~sums[:, last].any(axis=1), last:] = 0  # without missing values there is nothing to send elsewhere
    best = gains.argmax(axis=1)  # the first of equals
    found = gains[np.arange(len(gains)), best]
    bins = np.where(best < last, best, 2 * last - 2 - best)
    return found, np.where(found > 0, bins, -1).astype(np.int32), (best >= last) & (found > 0)


def _by_set(
    own: Ints, total: Ints, parent: Array, outputs: Outputs, rules: CategoryRules
) -> tuple[np.float32, bool, Bools]:
    """Gain, direction of missing values and categories that go right, of the best set of one node and feature."""
    k, missing = len(own), total - own.sum(axis=0)
    if k < rules.max_cat_to_onehot:
        order, stops = np.arange(k), np.repeat(np.arange(1, k + 1), 2)
        starts, to_left = stops - 1, np.tile([True, False], k)
        right = own[starts]
    else:
        # What each category would like, measured along what the whole node would like.
        likes = (outputs.weights(own).astype(np.float64) * outputs.weights(total)).sum(axis=1)
        order, n_tried = np.argsort(likes, kind="stable"), min(k, rules.max_cat_threshold) - 1
        stops = np.concatenate([np.arange(1, n_tried + 1), np.arange(k - 1, k - 1 - n_tried, -1)])
        starts, to_left = np.zeros_like(stops), np.repeat([True, False], n_tried)
        right = np.cumsum(own[order], axis=0)[stops - 1]
    mask = np.zeros(k, dtype=np.bool_)
    if not len(stops):
        return np.float32(0), False, mask
    gains = _gains(total - right - np.where(to_left[:, None], 0, missing), total, parent, outputs)
    best = int(gains.argmax())
    mask[order[starts[best] : stops[best]]] = gains[best] > 0
    return gains[best], bool(to_left[best] and gains[best] > 0), mask
