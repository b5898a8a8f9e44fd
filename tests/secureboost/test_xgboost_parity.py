"""On the same cuts the federated model is XGBoost's ``tree_method="hist"``: every tree, every probability."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from sklearn.datasets import load_breast_cancer, load_diabetes

from tests.secureboost.small import some_data
from tests.tree.xgboost_judge import tree_differences
from vfldata import load_credit, load_nursery
from vfltree import SecureBoostClassifier, SecureBoostRegressor
from vfltree.binning import BinMapper
from vfltree.growing.models import decode_records, record_table, result_trees
from vfltree.tree import RecordTable

pytestmark = pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning")

ROUNDS, MAX_BIN = 100, 32


class _GivenCuts:
    """An estimator whose parties bin by cuts that were given."""

    all_cuts: tuple[np.ndarray, ...]

    def _cuts_of(self, block):
        return tuple(self.all_cuts[i] for i in self._columns[block.party])


class CutClassifier(_GivenCuts, SecureBoostClassifier):
    pass


class CutRegressor(_GivenCuts, SecureBoostRegressor):
    pass


def train_both(
    X, y, objective: dict[str, Any], weights=None, n_parties: int = 3, rounds: int = ROUNDS,
    theirs: dict[str, Any] | None = None, **parameters,
):  # fmt: skip
    """XGBoost and the federated estimator on XGBoost's cuts, columns in party order. X holds float32 numbers.

    theirs : parameters that XGBoost writes otherwise.
    """
    matrix = xgb.QuantileDMatrix(X, label=y, weight=weights, max_bin=MAX_BIN)
    booster = xgb.train(
        {
            "tree_method": "hist",
            "nthread": 1,  # its threads spin, which on a busy machine takes many times the work
            "max_bin": MAX_BIN,
            "max_depth": 6,
            "eta": 0.3,
            **objective,
            **parameters,
            **(theirs or {}),
        },
        matrix,
        num_boost_round=rounds,
    )
    kind = CutRegressor if "squarederror" in objective["objective"] else CutClassifier
    partition = {f"p{i}": part for i, part in enumerate(np.array_split(np.arange(X.shape[1]), n_parties))}
    model = kind(rounds, partition=partition, encryption="none", random_state=0, **parameters)
    model.all_cuts = BinMapper.from_xgboost_cuts(*matrix.get_quantile_cut()).cuts
    return booster, matrix, model.fit(X, y, sample_weight=weights)


def whole_table(model) -> RecordTable:
    """The splits of all parties in one table, columns counted in X."""
    tables = [decode_records(model._active_model.records)]
    tables += [record_table(model._passive_models[party]) for party in model.parties_[1:]]
    whole = RecordTable.empty()
    for party, table in zip(model.parties_, tables, strict=True):
        columns = model._columns[party][table.columns]
        sets = [np.unpackbits(bits).astype(bool) if bits.any() else None for bits in table.right]
        whole = whole.append(table.ids, columns, table.thresholds, table.missing_left, sets)
    return whole


def assert_same_trees(model, booster, matrix) -> None:
    differences = tree_differences(
        result_trees(model._active_model), whole_table(model), booster, matrix.get_quantile_cut()
    )
    assert differences == []


def as_singles(X) -> np.ndarray:
    return np.asarray(X, dtype=np.float32).astype(np.float64)


@pytest.mark.parametrize("missing", [False, True], ids=["whole", "missing"])
def test_breast_cancer_binary(missing):
    X, y = load_breast_cancer(return_X_y=True)
    X = as_singles(X)
    if missing:
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    booster, matrix, model = train_both(X, y, {"objective": "binary:logistic"})
    assert_same_trees(model, booster, matrix)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], booster.predict(matrix), atol=1e-5)


def test_diabetes_regression():
    X, y = load_diabetes(return_X_y=True)
    X = as_singles(X)
    booster, matrix, model = train_both(X, y, {"objective": "reg:squarederror"})
    assert_same_trees(model, booster, matrix)
    np.testing.assert_allclose(model.predict(X), booster.predict(matrix), rtol=1e-5)


@pytest.mark.slow
def test_nursery_five_classes():
    data = load_nursery(one_hot="full")
    X, y = data.X_train.to_numpy(), data.y_train.to_numpy()
    _, y = np.unique(y, return_inverse=True)
    booster, matrix, model = train_both(
        X, y, {"objective": "multi:softprob", "num_class": int(y.max()) + 1}, n_parties=2
    )
    assert_same_trees(model, booster, matrix)
    np.testing.assert_allclose(model.predict_proba(X), booster.predict(matrix), atol=1e-5)


@pytest.mark.slow
def test_credit_binary(data_home):
    data = load_credit(data_home=data_home)
    X, y = as_singles(data.X_train), data.y_train.to_numpy()
    booster, matrix, model = train_both(X, y, {"objective": "binary:logistic"}, n_parties=2)
    assert_same_trees(model, booster, matrix)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], booster.predict(matrix), atol=1e-5)


@pytest.mark.parametrize(
    "parameters",
    [
        {"reg_alpha": 0.5},
        {"gamma": 0.3},
        {"min_child_weight": 5.0},
        {"reg_lambda": 0.1},
        {"scale_pos_weight": 3.0},
        {"max_delta_step": 0.2},
    ],
    ids=lambda p: next(iter(p)),
)
def test_parameters_mean_what_they_mean_there(parameters):
    X, y = some_data("binary", n_rows=500, missing=True)
    X = as_singles(X)
    booster, matrix, model = train_both(X, y, {"objective": "binary:logistic"}, rounds=20, **parameters)
    assert_same_trees(model, booster, matrix)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], booster.predict(matrix), atol=1e-5)


def test_sample_weights_mean_what_they_mean_there():
    X, y = some_data("binary", n_rows=500)
    X = as_singles(X)
    weights = np.random.default_rng(0).integers(1, 5, size=len(y)).astype(float)
    booster, matrix, model = train_both(X, y, {"objective": "binary:logistic"}, weights=weights, rounds=20)
    assert_same_trees(model, booster, matrix)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], booster.predict(matrix), atol=1e-5)
