"""Evaluation sets: XGBoost's best iteration, scores that the finished model reproduces, and what crosses for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

from tests.secureboost.functions import worst_error
from tests.secureboost.small import WEAK, boost1, some_data, thirds
from tests.secureboost.test_xgboost_parity import CutClassifier, CutRegressor, as_singles
from vflparty import InProcessNetwork, RemoteProtocolError, RowsDisagreeError
from vfltree import SecureBoostClassifier, SecureBoostRegressor
from vfltree.binning import BinMapper
from vfltree.metrics import metric_by_name
from vfltree.secureboost import PassiveParty
from vfltree.secureboost.evaluation import Evaluation
from vfltree.secureboost.messages import (
    EvaluationRows,
    GradientsForRound,
    JoinPrediction,
    JoinTraining,
    KeepRounds,
    RecordSplits,
    RouteRows,
    TrainingEnded,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]
OBJECTIVES = {
    "binary": ("binary:logistic", {}),
    "five": ("multi:softprob", {"num_class": 5}),
    "regression": ("reg:squarederror", {}),
}


def halves(task: str, n_rows: int = 300, **parameters: Any):
    X, y = some_data(task, n_rows=n_rows, **parameters)
    half = n_rows // 2
    return as_singles(X[:half]), y[:half], as_singles(X[half:]), y[half:]


def xgboost_stops(task, metric, patience, train, evals, rounds=60):
    """XGBoost's booster and evaluation log on its own cuts."""
    objective, extra = OBJECTIVES[task]
    matrix = xgb.QuantileDMatrix(train[0], label=train[1], max_bin=32)
    sets = [(xgb.DMatrix(X, label=y), f"validation_{i}") for i, (X, y) in enumerate(evals)]
    log: dict[str, dict[str, list[float]]] = {}
    booster = xgb.train(
        {
            "objective": objective,
            "eval_metric": metric,
            "max_depth": 3,
            "eta": 0.5,
            "max_bin": 32,
            "nthread": 1,
            **extra,
        },
        matrix,
        rounds,
        evals=sets,
        evals_result=log,
        early_stopping_rounds=patience,
        verbose_eval=False,
    )
    return booster, matrix, log


@pytest.mark.parametrize(
    ("task", "metrics"),
    [
        ("binary", ["logloss"]),
        ("binary", ["logloss", "auc"]),
        ("binary", ["error"]),
        ("five", ["mlogloss"]),
        ("five", ["mlogloss", "merror"]),
        ("regression", ["rmse"]),
        ("regression", ["rmse", "mae"]),
    ],
)
def test_training_stops_where_xgboost_stops(task, metrics):
    X, y, Xv, yv = halves(task)
    evals = [(X, y), (Xv, yv)]
    booster, matrix, log = xgboost_stops(task, metrics, 4, (X, y), evals)
    kind = CutRegressor if task == "regression" else CutClassifier
    model = kind(
        60, max_depth=3, learning_rate=0.5, encryption="none", eval_metric=metrics, early_stopping_rounds=4
    )
    model.all_cuts = BinMapper.from_xgboost_cuts(*matrix.get_quantile_cut()).cuts
    model.fit(X, y, eval_set=evals)
    assert model.best_iteration_ == booster.best_iteration < 55
    assert model.best_score_ == pytest.approx(booster.best_score, rel=1e-5)
    assert model.n_rounds_ == model.best_iteration_ + 1  # later rounds are gone
    for name, of_set in log.items():
        for metric, values in of_set.items():
            assert model.evals_result_[name][metric] == pytest.approx(values, rel=1e-5)
    ours = model.predict_proba(Xv) if task != "regression" else model.predict(Xv)
    theirs = booster.predict(xgb.DMatrix(Xv), iteration_range=(0, booster.best_iteration + 1))
    np.testing.assert_allclose(ours[:, 1] if task == "binary" else ours, theirs, rtol=1e-4, atol=1e-5)


def test_one_tree_stays_where_nothing_improves_after_it():
    X, y, Xv, _ = halves("binary")
    model = SecureBoostClassifier(50, max_depth=2, encryption="none", early_stopping_rounds=5)
    model.fit(X, y, eval_set=[(X, y), (X, 1 - y)])  # on the last set every tree makes it worse
    assert (model.best_iteration_, model.n_rounds_) == (0, 1)
    assert len(model.evals_result_["validation_0"]["logloss"]) == 6
    assert len(list(model.staged_predict(Xv))) == 1
    assert model.apply(Xv).shape == (len(Xv), 1)
    one = SecureBoostClassifier(1, max_depth=2, encryption="none").fit(X, y)
    assert (one.predict_proba(Xv) == model.predict_proba(Xv)).all()
    assert one._passive_models == model._passive_models


@pytest.mark.parametrize("task", ["binary", "five", "regression"])
def test_scores_are_those_of_the_finished_model(task):
    """What training measured round by round is what staged predictions give afterwards, bit for bit."""
    X, y, Xv, yv = halves(task, missing=True)
    kind, metric, n_classes = {
        "binary": (SecureBoostClassifier, "logloss", 2),
        "five": (SecureBoostClassifier, "mlogloss", 5),
        "regression": (SecureBoostRegressor, "rmse", 1),
    }[task]
    weights = np.random.default_rng(0).random(len(yv))
    model = kind(4, max_depth=3, encryption="none", partition=thirds(9, 3)).fit(
        X, y, eval_set=(Xv, yv), sample_weight_eval_set=weights
    )
    staged = model.staged_predict_proba(Xv) if task != "regression" else model.staged_predict(Xv)
    measure = metric_by_name(metric, n_classes, (0.5,), 1.0).measure
    found = [measure(yv, predictions, weights) for predictions in staged]
    assert model.evals_result_["validation_0"][metric] == pytest.approx(found, rel=1e-6)
    assert len(found) == 4
    assert not hasattr(model, "best_iteration_")


def test_staged_predictions_end_with_the_prediction():
    X, y, Xv, _ = halves("five")
    model = SecureBoostClassifier(3, max_depth=3, encryption="none").fit(X, y)
    assert (list(model.staged_predict_proba(Xv))[-1] == model.predict_proba(Xv)).all()
    assert (list(model.staged_decision_function(Xv))[-1] == model.decision_function(Xv)).all()
    assert (list(model.staged_predict(Xv))[-1] == model.predict(Xv)).all()
    first = SecureBoostClassifier(1, max_depth=3, encryption="none").fit(X, y)
    assert (next(model.staged_predict_proba(Xv)) == first.predict_proba(Xv)).all()


def test_encrypted_and_process_evaluate_as_the_plain_one_does():
    X, y, Xv, yv = halves("binary", n_rows=120)
    settings: dict[str, Any] = {
        "max_depth": 2, "random_state": 0, "subsample": 0.8, "early_stopping_rounds": 2,
        "eval_metric": ["auc", worst_error], "partition": thirds(9, 3),
    }  # fmt: skip
    models = [
        SecureBoostClassifier(4, **settings, **kind).fit(X, y, eval_set=(Xv, yv))
        for kind in ({"encryption": "none"}, WEAK, {"network": "process", **WEAK})
    ]
    for model in models[1:]:
        assert model._active_model == models[0]._active_model
        assert model._passive_models == models[0]._passive_models
        assert model.evals_result_ == models[0].evals_result_
        assert model.best_iteration_ == models[0].best_iteration_
    assert models[1].traffic_.equals(models[2].traffic_)
    assert "worst_error" in models[0].evals_result_["validation_0"]


def test_a_round_asks_at_most_depth_steps_for_all_sets_together():
    X, y, Xv, yv = halves("five")
    settings: dict[str, Any] = {"max_depth": 3, "encryption": "none", "random_state": 0}
    without = SecureBoostClassifier(3, **settings).fit(X, y)
    model = SecureBoostClassifier(3, **settings).fit(X, y, eval_set=[(X, y), (Xv, yv), (Xv[:7], yv[:7])])
    assert model._active_model == without._active_model  # evaluation changes no tree
    assert 0 < model.costs_["rounds"] - without.costs_["rounds"] <= 3 * 3
    asked = model.traffic_[model.traffic_["kind"] == "RouteRows"]
    assert asked["messages"].sum() <= 3 * 3


# ---- what is refused


@pytest.mark.parametrize(
    ("parameters", "fit", "words"),
    [
        ({"early_stopping_rounds": 3}, {}, "early_stopping_rounds needs an eval_set"),
        ({"early_stopping_rounds": 0}, {}, "early_stopping_rounds"),
        ({"eval_metric": "ndcg"}, {}, "'ndcg'"),
        ({"eval_metric": "rmse"}, {}, "eval_metric of 2 classes must be one of 'auc'"),
        ({"eval_metric": []}, {}, "one metric at least"),
        ({"eval_metric": ["auc", "auc"]}, {}, "twice"),
        ({}, {"eval_set": [np.zeros((3, 1))]}, "eval_set 0 must be a pair"),
        ({}, {"eval_set": [([[1.0, 2.0]], [7])]}, "eval_set 0: its y holds the label 7"),
        ({}, {"eval_set": [([[1.0]], [0])]}, "eval_set 0: .*1 features"),
        ({}, {"eval_set": [([[1.0, 2.0]], [0, 1])]}, "eval_set 0: y has 2 labels"),
        ({}, {"sample_weight_eval_set": [[1.0]]}, "needs eval_set"),
        ({}, {"eval_set": [([[1.0, 2.0]], [0])], "sample_weight_eval_set": [[1.0], [1.0]]}, "2 sets"),
    ],
)
def test_wrong_evaluation_is_refused_before_a_key_is_made(parameters, fit, words, monkeypatch):
    monkeypatch.setattr("vfltree.growing.leader.obtain_keypair", None)  # calling it fails
    X = np.column_stack([np.arange(8.0), np.ones(8)])
    with pytest.raises(ValueError, match=words):
        SecureBoostClassifier(1, **parameters).fit(X, [0, 1] * 4, **fit)


def test_every_party_is_needed_to_evaluate():
    X = np.arange(8.0)[:, None]
    with pytest.raises(ValueError, match="eval_set 0 has no rows of party 'b'"):
        boost1().fit({"a": X, "b": X}, [0, 1] * 4, eval_set=({"a": X}, [0, 1] * 4))


class _Joined:
    """A passive party that has split the root of round 0, with three rows to evaluate."""

    def __init__(self, evaluation: bool = True) -> None:
        self.party = PassiveParty(np.arange(8.0)[:, None], name="shop", random_seed=0)
        self.party._evaluation = EvaluationRows(np.array([[0.0], [3.0], [7.0]]), b"e") if evaluation else None

    def join(self, n_rows=3, digest=b"e"):
        own = self.party._ids_digest
        agreed = JoinTraining(own, 8, 3, 1, 2, 30, "none", b"")
        return self.party.receive(replace(agreed, evaluation_digest=digest, n_evaluation_rows=n_rows))

    def round(self, number):
        rows = np.zeros(0, dtype=np.int32)
        self.party.receive(GradientsForRound(number, rows, np.ones((8, 2, 1), dtype="<i8").tobytes()))

    def split(self, number):
        one = np.array([3], dtype=np.int32)
        node = np.array([(number << 32) + 1])
        return self.party.receive(
            RecordSplits(number, 0, node, np.array([0, 1], np.int32), one * 0, one, np.array([False]))
        )

    def ask(self, number, rows=(0,)):
        records = np.full(len(rows), (number << 32) + 1)
        return self.party.receive(RouteRows(records, np.array(rows, dtype=np.int32)))


def test_a_passive_party_answers_for_the_trees_of_the_last_round_and_closes_it():
    shop = _Joined()
    shop.join()
    shop.round(0)
    shop.split(0)
    answer = shop.ask(0, (0, 2))
    assert np.unpackbits(answer.left)[:2].tolist() == [1, 0]
    with pytest.raises(RemoteProtocolError, match="asked twice"):
        shop.ask(0)
    with pytest.raises(RemoteProtocolError, match="in progress is none"):
        shop.split(0)
    with pytest.raises(RemoteProtocolError, match="outside the 3 agreed rows"):
        shop.ask(0, (3,))
    shop.round(1)
    shop.split(1)
    with pytest.raises(RemoteProtocolError, match="unknown record"):
        shop.ask(0, (1,))
    shop.ask(1, (1,))
    shop.party.receive(TrainingEnded(2))
    with pytest.raises(RemoteProtocolError, match="no round has trees for them"):
        shop.ask(1, (2,))


def test_rows_to_evaluate_must_be_agreed():
    for shop, arguments in ((_Joined(), (4, b"e")), (_Joined(), (3, b"f")), (_Joined(False), (3, b"e"))):
        with pytest.raises(RowsDisagreeError, match="rows to evaluate"):
            shop.join(*arguments)
    shop = _Joined(False)
    shop.join(0, b"")
    shop.round(0)
    shop.split(0)
    with pytest.raises(RemoteProtocolError, match="no round has trees for them"):
        shop.ask(0)


def test_a_passive_party_forgets_the_rounds_that_are_not_kept():
    shop = _Joined()
    shop.join()
    for number in range(2):
        shop.round(number)
        shop.split(number)
    assert len(shop.party.records) == 2
    shop.party.receive(TrainingEnded(1))
    assert shop.party.records.ids.tolist() == [1]


def test_nothing_but_questions_and_bits_crosses_for_evaluation(monkeypatch):
    """Labels, weights and scores of the evaluation rows stay with the active party."""
    X, y, Xv, yv = halves("binary", n_rows=100)
    frames = []
    true = InProcessNetwork._deliver

    def deliver(self, frames_):
        frames.extend(frames_.values())
        return true(self, frames_)

    monkeypatch.setattr(InProcessNetwork, "_deliver", deliver)
    rows = np.random.default_rng(0).random(len(yv)) + 1.0
    settings: dict[str, Any] = {"max_depth": 2, "encryption": "none", "random_state": 0}
    SecureBoostClassifier(2, **settings).fit(X, y, eval_set=(Xv, yv), sample_weight_eval_set=rows)
    with_set, frames = frames, []
    SecureBoostClassifier(2, **settings).fit(X, y)
    kinds = {frame[32:41] for frame in with_set} - {frame[32:41] for frame in frames}
    assert kinds == {b"RouteRows"}
    secret = [yv.astype(np.float64).tobytes(), rows.tobytes(), rows[:4].tobytes()]

    def betrayed(frames_):
        return any(piece in frame for piece in secret for frame in frames_)

    assert not betrayed(with_set)
    # With a planted violation, the labels among the questions, the same look finds them.
    frames.clear()

    def planted(self, *arguments):
        yield {"passive": JoinPrediction(self._setup.targets.tobytes(), self.n_rows)}

    monkeypatch.setattr(Evaluation, "take_round", planted)
    with pytest.raises(RowsDisagreeError):
        SecureBoostClassifier(2, **settings).fit(X, y, eval_set=(Xv, yv))
    assert betrayed(frames)


def test_what_no_honest_active_party_says_about_finished_rounds_is_refused():
    shop = _Joined()
    with pytest.raises(RemoteProtocolError, match="training has not been joined"):
        shop.party.receive(KeepRounds(1))
    shop.join()
    shop.round(0)
    for wrong in (0, 2, -1):
        with pytest.raises(
            RemoteProtocolError, match=f"{wrong} finished rounds are to be kept, 1 were begun"
        ):
            shop.party.receive(KeepRounds(wrong))
    own = shop.party._ids_digest
    for finished in (-1, 3, 7):
        late = JoinTraining(own, 8, 3, 1, 2, 30, "none", b"", n_finished=finished)
        with pytest.raises(RemoteProtocolError, match="rounds are said to be finished"):
            _Joined(False).party.receive(late)
    with pytest.raises(ValueError, match="2 rounds are finished, this party has no checkpoint"):
        _Joined(False).party.receive(JoinTraining(own, 8, 3, 1, 2, 30, "none", b"", n_finished=2))
