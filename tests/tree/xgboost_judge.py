"""XGBoost as the judge: the same cuts, and then every tree compared, node by node."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xgboost

from tests.tree.pooled import Model, Settings, boost
from vfltree.binning import BinMapper
from vfltree.losses import Logistic, Loss, Softmax, SquaredError
from vfltree.splitting import SplitRules
from vfltree.tree import RecordTable, Tree, record_id

OBJECTIVES = {Logistic: "binary:logistic", Softmax: "multi:softprob", SquaredError: "reg:squarederror"}


@dataclass(frozen=True)
class Comparison:
    """Both models. `differences` names the first difference of every tree that has one.

    `margin_gap` is absolute; `prediction_gap` is relative for values above 1, so absolute for probabilities.
    """

    mine: Model
    theirs: xgboost.Booster
    differences: list[str]
    margin_gap: float
    prediction_gap: float


def compare(X, y, loss: Loss, weights=None, *, n_rounds=100, max_bin=32, max_depth=6, eta=0.3, **rules: Any):
    """Train both on the cuts that XGBoost made, and compare.

    XGBoost is trained on the QuantileDMatrix whose cuts we read, so it uses the very same ones. Values are
    rounded to float32 first: XGBoost does that to them anyway.
    """
    X = np.asarray(X, dtype=np.float32)
    data = xgboost.QuantileDMatrix(X, y, weight=weights, max_bin=max_bin)
    params = {
        "objective": OBJECTIVES[type(loss)],
        "tree_method": "hist",
        "max_bin": max_bin,
        "max_depth": max_depth,
        "eta": eta,
        "nthread": 1,
        **rules,
    }
    if isinstance(loss, Softmax):
        params["num_class"] = loss.n_outputs
    if isinstance(loss, Logistic):
        params["scale_pos_weight"] = loss.scale_pos_weight
    base_score = params.get("base_score")
    theirs = xgboost.train(params, data, n_rounds)
    stored = data.get_quantile_cut()
    known = {name: value for name, value in rules.items() if name != "base_score"}
    settings = Settings(n_rounds, max_depth, eta, SplitRules(**known), base_score)
    mine = boost(X, y, loss, BinMapper.from_xgboost_cuts(*stored), settings, weights)

    differences = tree_differences(mine.trees, mine.table, theirs, stored)
    rows = xgboost.DMatrix(X)
    margins = theirs.predict(rows, output_margin=True).reshape(mine.raw.shape)
    predictions = loss.link(mine.raw)
    if isinstance(loss, Logistic):
        predictions = predictions[:, 1]
    expected = theirs.predict(rows)
    gap = np.abs(expected - predictions) / np.maximum(1, np.abs(expected))
    return Comparison(mine, theirs, differences, float(np.abs(margins - mine.raw).max()), float(gap.max()))


def tree_differences(
    trees: Sequence[Tree], table: RecordTable, theirs: xgboost.Booster, stored_cuts: tuple[Any, Any]
) -> list[str]:
    """The first difference of every tree that has one. stored_cuts : of `QuantileDMatrix.get_quantile_cut`."""
    bounds, values = (np.asarray(part) for part in stored_cuts)
    ends = values.astype(np.float64)[bounds.astype(np.int64)[1:] - 1]
    dumped = json.loads(theirs.save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]
    assert len(dumped) == len(trees)
    found = [first_difference(trees[t], t, table, tree, ends) for t, tree in enumerate(dumped)]
    return [difference for difference in found if difference]


def first_difference(
    mine: Tree, number: int, table: RecordTable, theirs: dict[str, Any], ends: np.ndarray
) -> str | None:
    """Where tree `number` first differs in structure, feature, threshold or default direction; both gains."""
    records = table.find(record_id(number, mine.node))
    for at in range(min(mine.n_nodes, len(theirs["left_children"]))):
        is_leaf = mine.owner[at] < 0
        if is_leaf:
            here: tuple[Any, ...] = (-1, -1)
        else:
            r = records[at]
            feature, threshold = int(table.columns[r]), float(table.thresholds[r])
            # XGBoost has a cut beyond all values where we say +inf.
            threshold = float(ends[feature]) if np.isinf(threshold) else threshold
            here = (int(mine.left[at]), int(mine.right[at]), feature, threshold, bool(table.missing_left[r]))
        there: tuple[Any, ...] = (theirs["left_children"][at], theirs["right_children"][at])
        if there[0] >= 0:
            there += (
                theirs["split_indices"][at],
                float(np.float32(theirs["split_conditions"][at])),
                bool(theirs["default_left"][at]),
            )
        if here != there:
            return (
                f"tree {number}, node {at}: ours {here} gain {mine.gain[at]:.9g}, "
                f"XGBoost {there} gain {theirs['loss_changes'][at]:.9g}"
            )
    return None if mine.n_nodes == len(theirs["left_children"]) else f"tree {number}: another size"
