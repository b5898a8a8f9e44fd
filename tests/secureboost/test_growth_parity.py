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
    sample = draw_columns(model._settings(**model._objective_defaults()), seeds[0], round_, n_features)
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
        {"tree_method": "hist", "max_bin": MAX_BIN, "eta": 0.3, "colsample_bytree": share, **BINARY}, [matrix]
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
