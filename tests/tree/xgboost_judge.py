"""XGBoost as the judge: the same cuts, and then every tree compared, node by node."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xgboost

from tests.tree.pooled import Model, Settings, boost
from vfltree.binning import BinMapper
from vfltree.category_splits import CategoryRules
from vfltree.losses import Logistic, Loss, Softmax, SquaredError
from vfltree.splitting import SplitRules
from vfltree.tree import RecordTable, Tree, record_id

CATEGORY_RULES = CategoryRules()
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


def compare(
    X, y, loss: Loss, weights=None, *, n_rounds=100, max_bin=32, max_depth=6, eta=0.3, categorical=(),
    categories=CATEGORY_RULES, **rules: Any,
):  # fmt: skip
    """Train both on the cuts that XGBoost made, and compare. Columns in `categorical` hold codes.

    XGBoost is trained on the QuantileDMatrix whose cuts we read, so it uses the very same ones. Values are
    rounded to float32 first: XGBoost does that to them anyway.
    """
    X = np.asarray(X, dtype=np.float32)
    types = {
        "feature_types": ["c" if column in categorical else "float" for column in range(X.shape[1])],
        "enable_categorical": True,
    }
    data = xgboost.QuantileDMatrix(X, y, weight=weights, max_bin=max_bin, **types)
    params = {
        "objective": OBJECTIVES[type(loss)],
        "tree_method": "hist",
        "max_bin": max_bin,
        "max_depth": max_depth,
        "eta": eta,
        "nthread": 1,
        **asdict(categories),
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
    settings = Settings(n_rounds, max_depth, eta, SplitRules(**known), base_score, categories=categories)
    n_categories = np.zeros(X.shape[1], dtype=np.int64)
    for column in categorical:
        n_categories[column] = np.nanmax(X[:, column]) + 1
    mapper = BinMapper(BinMapper.from_xgboost_cuts(*stored).cuts, n_categories)
    mine = boost(X, y, loss, mapper, settings, weights)

    differences = tree_differences(mine.trees, mine.table, theirs, stored)
    rows = xgboost.DMatrix(X, **types)
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
    starts = bounds.astype(np.int64)
    ends = values.astype(np.float64)[np.stack([starts[:-1], starts[1:] - 1])]  # below and above all values
    dumped = json.loads(theirs.save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]
    assert len(dumped) == len(trees)
    found = [first_difference(trees[t], t, table, tree, ends) for t, tree in enumerate(dumped)]
    return [difference for difference in found if difference]


def first_difference(
    mine: Tree, number: int, table: RecordTable, theirs: dict[str, Any], ends: np.ndarray
) -> str | None:
    """Where tree `number` first differs in structure, feature, threshold or set, or default direction; both gains."""
    records = table.find(record_id(number, mine.node))
    sets = _category_sets(theirs)
    for at in range(min(mine.n_nodes, len(theirs["left_children"]))):
        is_leaf = mine.owner[at] < 0
        if is_leaf:
            here: tuple[Any, ...] = (-1, -1)
        else:
            r = records[at]
            feature = int(table.columns[r])
            condition: Any = float(table.thresholds[r])
            # XGBoost has a cut beyond all values where we say +inf.
            condition = float(ends[int(condition > 0), feature]) if np.isinf(condition) else condition
            if np.isnan(condition):
                condition = tuple(np.flatnonzero(np.unpackbits(table.right[r])).tolist())
            here = (int(mine.left[at]), int(mine.right[at]), feature, condition, bool(table.missing_left[r]))
        there: tuple[Any, ...] = (theirs["left_children"][at], theirs["right_children"][at])
        if there[0] >= 0:
            there += (
                theirs["split_indices"][at],
                sets.get(at, float(np.float32(theirs["split_conditions"][at]))),
                bool(theirs["default_left"][at]),
            )
        if here != there:
            return (
                f"tree {number}, node {at}: ours {here} gain {mine.gain[at]:.9g}, "
                f"XGBoost {there} gain {theirs['loss_changes'][at]:.9g}"
            )
    return None if mine.n_nodes == len(theirs["left_children"]) else f"tree {number}: another size"


def _category_sets(theirs: dict[str, Any]) -> dict[int, tuple[int, ...]]:
    """Node -> the categories that go right there."""
    bounds = zip(theirs["categories_segments"], theirs["categories_sizes"], strict=True)
    return {
        node: tuple(theirs["categories"][start : start + size])
        for node, (start, size) in zip(theirs["categories_nodes"], bounds, strict=True)
    }
