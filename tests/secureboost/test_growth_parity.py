"""Options of growth give XGBoost's trees; where XGBoost draws by lot, the trees of pooled data with the same draws."""

from __future__ import annotations

import numpy as np
import pytest
import xgboost as xgb

from tests.secureboost.small import some_data
from tests.secureboost.test_xgboost_parity import (
    MAX_BIN,
    as_singles,
    assert_same_trees,
    train_both,
    whole_table,
)
from tests.tree.pooled import Settings, boost
from vfltree.base import party_seeds
from vfltree.binning import BinMapper
from vfltree.growing.models import result_trees
from vfltree.losses import Logistic
from vfltree.secureboost.sampling import draw_columns, n_drawn

pytestmark = pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning")
BINARY = {"objective": "binary:logistic"}


def data(missing: bool = True, n_rows: int = 500, task: str = "binary"):
    X, y = some_data(task, n_rows=n_rows, missing=missing)
    return as_singles(X), y


def drawn_columns(model, round_: int, depth: int) -> np.ndarray:
    """Columns of X that may split nodes of this depth: what only all parties together know."""
    seeds = party_seeds(model.random_state, len(model.parties_))
    n_features = list(model.n_features_in_per_party_.values())
    sample = draw_columns(model._default_settings(), seeds[0], round_, n_features)
    columns = []
    for number, (party, slots) in enumerate(zip(model.parties_, sample.at(depth), strict=True)):
        order = np.arange(n_features[number])
        if number:
            order = np.random.default_rng([seeds[number], round_]).permutation(n_features[number])
        columns.append(model._columns[party][order[slots]])
    return np.sort(np.concatenate(columns))


def test_colsample_bytree_is_xgboosts_on_the_columns_that_were_drawn():
    X, y = data()
    share, rounds = 0.4, 12
    _, matrix, model = train_both(X, y, BINARY, rounds=rounds, colsample_bytree=share)
    booster = xgb.Booster(
        {
            "tree_method": "hist",
            "nthread": 1,
            "max_bin": MAX_BIN,
            "eta": 0.3,
            "colsample_bytree": share,
            **BINARY,
        },
        [matrix],
    )
    for round_ in range(rounds):
        columns = drawn_columns(model, round_, 0)
        assert len(columns) == n_drawn(share, X.shape[1])
        # A column of weight 0 is never drawn, so XGBoost draws ours.
        matrix.set_info(feature_weights=np.isin(np.arange(X.shape[1]), columns).astype(float))
        booster.update(matrix, round_)
    assert_same_trees(model, booster, matrix)


@pytest.mark.parametrize("shares", [(1.0, 0.5), (0.7, 0.4)], ids=str)
def test_levels_split_by_the_columns_drawn_for_them_as_on_pooled_data(shares):
    X, y = data()
    parameters = {"colsample_bytree": shares[0], "colsample_bylevel": shares[1]}
    _, matrix, model = train_both(X, y, BINARY, rounds=6, **parameters)
    mapper = BinMapper.from_xgboost_cuts(*matrix.get_quantile_cut())
    pooled = boost(
        X, y, Logistic(), mapper, Settings(6, drawn=lambda tree, depth: drawn_columns(model, tree, depth))
    )
    for mine, theirs in zip(result_trees(model._active_model), pooled.trees, strict=True):
        assert mine.node.tolist() == theirs.node.tolist()
        assert (mine.value == theirs.value).all()
        assert (mine.gain == theirs.gain).all()
    table = whole_table(model)
    assert table.columns.tolist() == pooled.table.columns.tolist()
    assert table.thresholds.tolist() == pooled.table.thresholds.tolist()
    assert len(set(table.columns.tolist())) > 4


@pytest.mark.parametrize(
    "parameters",
    [
        {"grow_policy": "lossguide", "max_leaves": 2},
        {"grow_policy": "lossguide", "max_leaves": 7},
        {"grow_policy": "lossguide", "max_leaves": 20, "max_depth": 4},
        {"grow_policy": "lossguide", "max_leaves": 25, "max_depth": 12, "min_child_weight": 0.2},
        {"grow_policy": "lossguide", "max_leaves": 12, "gamma": 0.4, "max_delta_step": 0.5},
        {"grow_policy": "lossguide", "max_leaves": 0, "max_depth": 4},
        {"grow_policy": "lossguide", "max_leaves": 1},
        {"max_leaves": 11},
        {"max_leaves": 8, "max_depth": 3},
    ],
    ids=lambda parameters: "-".join(map(str, parameters.values())),
)  # fmt: skip
def test_leaf_wise_and_limited_trees_are_xgboosts(parameters):
    X, y = data()
    booster, matrix, model = train_both(X, y, BINARY, rounds=10, **parameters)
    assert_same_trees(model, booster, matrix)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], booster.predict(matrix), atol=1e-5)


def test_of_equal_gains_the_node_made_first_is_split_first():
    """One half of the rows has the labels of the other turned over: every gain occurs in both branches of the root."""
    X, _ = data(missing=False, n_rows=150)
    y = (X[:, 0] + X[:, 4] * X[:, 5] > -1).astype(float)
    X, y = np.vstack([X, X]), np.concatenate([y, 1 - y])
    X[150:, 2] += 100
    for max_leaves in (2, 3, 4, 5, 8, 11):
        booster, matrix, model = train_both(
            X, y, BINARY, rounds=2, grow_policy="lossguide", max_leaves=max_leaves, base_score=0.5
        )
        assert_same_trees(model, booster, matrix)
    gains = result_trees(model._active_model)[0].gain
    gains = gains[gains > 0]
    assert len(np.unique(gains)) <= (len(gains) + 1) // 2 + 1


def test_trees_of_several_classes_grow_by_gain_side_by_side():
    X, y = data(task="five")
    objective = {"objective": "multi:softprob", "num_class": 5}
    booster, matrix, model = train_both(X, y, objective, rounds=4, grow_policy="lossguide", max_leaves=9)
    assert_same_trees(model, booster, matrix)


def xgboosts(signs) -> str:
    return "(" + ",".join(map(str, signs)) + ")"


@pytest.mark.parametrize("missing", [False, True], ids=["whole", "missing"])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"max_delta_step": 0.4, "reg_alpha": 0.3},
        {"grow_policy": "lossguide", "max_leaves": 9, "min_child_weight": 0.1},
        {"max_depth": 10, "reg_lambda": 0.1, "gamma": 0.01},
    ],
    ids=["plain", "limited", "lossguide", "deep"],
)
def test_monotone_trees_are_xgboosts(parameters, missing):
    X, y = data(missing=missing)
    signs = [1, 1, -1, 0, -1, 1, -1, 0, 1]
    booster, matrix, model = train_both(
        X, y, BINARY, rounds=15, theirs={"monotone_constraints": xgboosts(signs)}, monotone_constraints=signs,
        **parameters,
    )  # fmt: skip
    assert_same_trees(model, booster, matrix)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], booster.predict(matrix), atol=1e-5)


def test_equal_features_of_other_signs_are_told_apart_by_their_owner():
    """Columns 0 and 8 are the same; here one party owns both, and one may rise and the other fall."""
    X, y = data(missing=False)
    X[:, 7] = X[:, 8]
    for signs in ([0, 0, 0, 0, 0, 0, 0, -1, 1], [0, 0, 0, 0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 0, 0, 0, 1]):
        booster, matrix, model = train_both(
            X[:, 1:], y, BINARY, rounds=8, n_parties=2, theirs={"monotone_constraints": xgboosts(signs[1:])},
            monotone_constraints=signs[1:],
        )  # fmt: skip
        assert_same_trees(model, booster, matrix)


def test_monotone_regression_and_classes_are_xgboosts():
    signs = [1, 0, -1, 0, 1, 0, -1, 0, 0]
    for task, objective in (
        ("regression", {"objective": "reg:squarederror"}),
        ("five", {"objective": "multi:softprob", "num_class": 5}),
    ):
        X, y = data(task=task, n_rows=300)
        booster, matrix, model = train_both(
            X,
            y,
            objective,
            rounds=5,
            theirs={"monotone_constraints": xgboosts(signs)},
            monotone_constraints=signs,
        )
        assert_same_trees(model, booster, matrix)
