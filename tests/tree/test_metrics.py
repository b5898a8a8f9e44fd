"""Metrics: XGBoost's numbers on the same predictions, and by hand."""

import math

import numpy as np
import pytest
import sklearn.metrics
import xgboost

from vfltree.losses import Logistic, Poisson, PseudoHuber, QuantileError, Softmax, SquaredError
from vfltree.metrics import METRICS, metric_by_name, metric_of_function

RNG = np.random.default_rng(0)
N = 200
TWO, FIVE, COUNTS = RNG.integers(0, 2, N), RNG.integers(0, 5, N), RNG.poisson(2, N)
VALUES = RNG.normal(size=N).astype(np.float32)
CASES = [
    *(("binary:logistic", Logistic(), TWO, name, {}) for name in ("logloss", "auc", "error")),
    *(("multi:softprob", Softmax(5), FIVE, name, {"num_class": 5}) for name in ("mlogloss", "auc", "merror")),
    *(("reg:squarederror", SquaredError(), VALUES, name, {}) for name in ("rmse", "mae")),
    ("count:poisson", Poisson(), COUNTS, "poisson-nloglik", {}),
    ("reg:pseudohubererror", PseudoHuber(1.5), VALUES, "mphe", {"huber_slope": 1.5}),
    (
        "reg:quantileerror",
        QuantileError((0.2, 0.7)),
        VALUES,
        "quantile",
        {"quantile_alpha": [0.2, 0.7]},
    ),
]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    ("objective", "loss", "y", "name", "extra"), CASES, ids=[f"{c[0]}-{c[3]}" for c in CASES]
)
def test_a_metric_is_xgboosts(objective, loss, y, name, extra, weighted):
    """XGBoost evaluates margins that we give it; a third of them are tied."""
    weights = RNG.integers(1, 4, N).astype(np.float64) if weighted else None
    raw = RNG.normal(size=(N, loss.n_outputs)).astype(np.float32)
    raw[: N // 3] = raw[0]
    X = np.zeros((N, 1), dtype=np.float32)
    data = xgboost.DMatrix(X, y, weight=weights, base_margin=raw)
    evals: dict[str, dict[str, list[float]]] = {}
    xgboost.train(
        {"objective": objective, "eta": 0.0, "eval_metric": name, "nthread": 1, **extra},
        data,
        1,
        evals=[(data, "d")],
        evals_result=evals,
        verbose_eval=False,
    )
    n_classes = {"binary:logistic": 2, "multi:softprob": 5}.get(objective, 1)
    metric = metric_by_name(name, n_classes, getattr(loss, "alphas", (0.5,)), getattr(loss, "slope", 1.0))
    mine = metric.measure(y.astype(np.float64), loss.link(raw), np.ones(N) if weights is None else weights)
    assert mine == pytest.approx(evals["d"][name][0], rel=2e-6)
    assert metric.maximize == (name == "auc")


def test_auc_is_scikit_learns_with_ties_and_weights():
    scores, weights = RNG.integers(0, 9, N) / 10, RNG.random(N)
    mine = metric_by_name("auc", 2, (0.5,), 1.0).measure(TWO, np.column_stack([1 - scores, scores]), weights)
    assert mine == pytest.approx(sklearn.metrics.roc_auc_score(TWO, scores, sample_weight=weights))


def test_auc_of_one_class_is_not_a_number():
    assert math.isnan(metric_by_name("auc", 2, (0.5,), 1.0).measure(np.ones(3), np.ones((3, 2)), np.ones(3)))


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_metrics_that_do_not_suit_are_refused_with_those_that_do(n_classes):
    for name in METRICS:
        try:
            assert metric_by_name(name, n_classes, (0.5,), 1.0).name == name
        except ValueError as error:
            assert repr(name) in str(error) and "must be one of" in str(error)
    suits = {1: "mphe", 2: "merror", 3: "mlogloss"}
    assert metric_by_name(suits[n_classes], n_classes, (0.5,), 1.0).name == suits[n_classes]
    with pytest.raises(ValueError, match="'ndcg'"):
        metric_by_name("ndcg", n_classes, (0.5,), 1.0)


def test_functions_are_metrics_scikit_learns_too():
    p = RNG.random(N)
    both = np.column_stack([1 - p, p])
    weights = RNG.random(N)
    metric = metric_of_function(sklearn.metrics.log_loss)
    assert metric.name == "log_loss"
    assert metric.measure(TWO, both, weights) == sklearn.metrics.log_loss(TWO, p, sample_weight=weights)
    assert metric_of_function(lambda y, p: (y - p).sum()).measure(VALUES, VALUES, weights) == pytest.approx(0)
    with pytest.raises(ValueError, match="one number, got ndarray"):
        metric_of_function(lambda y, p: y - p).measure(VALUES, VALUES, weights)


def test_a_function_that_writes_into_what_it_is_given_changes_nothing():
    def careless(y, predictions, sample_weight=None):
        for array in (y, predictions, sample_weight):
            array[:] = 0
        return 1.0

    given = [VALUES.copy(), VALUES.copy(), np.ones(N)]
    assert metric_of_function(careless).measure(*given) == 1
    assert all(array.any() for array in given)
