"""The estimators: what they accept, what they leave, and that networks, pauses and bystanders change no weight."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from tests.nn import small
from tests.nn.tables import FAST, classifier, halves, same, table
from vflnn import VFLClassifier, VFLRegressor, fitting
from vflnn.seating import seats, train

# ---------------------------------------------------------------- learning


def test_binary_labels_of_text_are_learnt():
    X, y = load_breast_cancer(return_X_y=True)
    labels = np.array(["malignant", "benign"])[y]
    model = make_pipeline(StandardScaler(), classifier(epochs=5)).fit(X, labels)
    assert model.score(X, labels) > 0.95
    assert list(model.classes_) == ["benign", "malignant"] and set(model.predict(X)) == set(labels)
    assert model.decision_function(X).shape == (len(X),)
    assert np.array_equal(model.decision_function(X) > 0, model.predict(X) == "malignant")


@pytest.mark.parametrize("top", ["sum", "linear", "sum_log_softmax", "mlp2"])
def test_three_classes_are_learnt_whatever_joins_the_outputs(top):
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = classifier(epochs=25, top=top, cut_width=None if top.startswith("sum") else 5).fit(X, y)
    assert model.score(X, y) > 0.9
    proba = model.predict_proba(X)
    assert proba.shape == (150, 3) and np.allclose(proba.sum(axis=1), 1, atol=1e-6)
    assert np.allclose(np.exp(model.predict_log_proba(X)), proba, atol=1e-6)
    assert np.array_equal(model.classes_[model.decision_function(X).argmax(axis=1)], model.predict(X))


def test_regression_learns_targets_of_any_unit():
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    scores = [VFLRegressor(epochs=10, **FAST).fit(X, unit).score(X, unit) for unit in (y, 1e6 * y + 1e9)]
    assert scores[0] > 0.4 and scores[1] == pytest.approx(scores[0], abs=1e-3)


def test_predictions_are_those_of_the_network_in_one_piece():
    X, y = table()
    model = classifier(top="linear", cut_width=4).fit(X, y)
    blocks = [torch.from_numpy(X[:, columns].astype(np.float32)) for columns in (slice(0, 3), slice(3, 6))]
    with torch.no_grad():
        scores = model.joined()(*blocks).numpy()
    assert np.array_equal(scores, model.decision_function(X))


def test_the_history_tells_every_epoch_and_the_steps_every_batch():
    X, y = table()
    seen = []
    model = classifier(callbacks=[seen.append]).fit(X, y, eval_set=(X[:20], y[:20]))
    assert list(model.history_["epoch"]) == [0, 1, 2, 3] and len(model.steps_) == 4 * 3
    assert {"loss", "accuracy", "evaluation_loss", "evaluation_score", "seconds"} <= set(model.history_)
    assert model.history_["evaluation_score"].iloc[-1] == model.score(X[:20], y[:20])
    assert model.history_["loss"].iloc[1] == model.steps_["loss"][3:6].mean()
    assert [record.epoch for record in seen] == [0, 1, 2, 3] and seen[-1].total == 4
    assert [record.loss for record in seen] == pytest.approx(list(model.history_["loss"]))
    assert [r.evaluation_score for r in seen] == list(model.history_["evaluation_score"])


def test_a_regressor_has_no_accuracy():
    X, y = table()
    seen = []
    model = VFLRegressor(epochs=2, callbacks=[seen.append], **FAST).fit(X, y, eval_set=[(X, y)])
    assert "accuracy" not in model.history_ and seen[0].accuracy is None
    assert model.history_["evaluation_score"].iloc[-1] == pytest.approx(model.score(X, y), abs=1e-5)


def test_learning_curves_are_the_history():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, y = table()
    model = classifier(epochs=3).fit(X, y, eval_set=(X, y))
    loss, accuracy = model.plot_learning_curves()
    drawn = [list(line.get_ydata()) for ax in (loss, accuracy) for line in ax.lines]
    names = ["loss", "evaluation_loss", "accuracy", "evaluation_score"]
    assert drawn == [list(model.history_[name]) for name in names]
    _, score = VFLRegressor(epochs=1, **FAST).fit(X, y).plot_learning_curves()
    assert score.get_ylabel() == "R2" and not score.lines


def test_what_a_callback_raises_arrives_as_it_is():
    class Stop(Exception):
        pass

    def stop(record):
        raise Stop(record.epoch)

    X, y = table()
    with pytest.raises(Stop):
        classifier(callbacks=[stop]).fit(X, y)


# ---------------------------------------------------------------- repeatability


def test_the_same_seed_trains_the_same_weights_whoever_else_draws():
    X, y = table()
    one = classifier(bottom=("MLP2_scalable", {"hidden": 16})).fit(X, y)
    torch.manual_seed(5)
    noise = {"callbacks": [lambda record: torch.rand(7)]}
    other = classifier(bottom=("MLP2_scalable", {"hidden": 16}), **noise).fit(X, y)
    assert same(one, other)
    assert not same(one, classifier(bottom=("MLP2_scalable", {"hidden": 16}), random_state=4).fit(X, y))


@pytest.mark.slow
def test_parties_in_processes_of_their_own_train_and_predict_the_same():
    bottom = ("MLP2_scalable", {"hidden": 8})  # with dropout: each party draws from its own stream
    X, y = table()
    one, other = (
        classifier(epochs=2, bottom=bottom, network=network).fit(X, y) for network in ("inprocess", "process")
    )
    assert same(one, other)
    assert np.array_equal(one.decision_function(X), other.decision_function(X))
    assert one.traffic_.equals(other.traffic_)
    seen = []
    other.set_params(callbacks=[seen.append]).partial_fit(X, y, epochs=2)
    assert same(other, one.partial_fit(X, y, epochs=2))
    assert [record.epoch for record in seen] == [2, 3]


@pytest.mark.parametrize("bottom", ["MLP2", ("MLP2_scalable", {"hidden": 16}), small.tanh_net])
@pytest.mark.parametrize("scheduler", ["inverse_sqrt", "constant", ("ExponentialLR", {"gamma": 0.5})])
def test_going_on_equals_training_in_one_go(bottom, scheduler):
    X, y = table()
    settings = {"bottom": bottom, "scheduler": scheduler, "top": "linear"}
    whole = classifier(epochs=5, **settings).fit(X, y)
    parts = classifier(epochs=2, **settings).fit(X, y)
    parts.partial_fit(X, y, epochs=3)
    assert same(whole, parts) and parts.n_epochs_ == 5
    figures = ["epoch", "loss", "accuracy"]
    assert whole.history_[figures].equals(parts.history_[figures])
    assert whole.steps_[["step", *figures]].equals(parts.steps_[["step", *figures]])
    crossed = (m.traffic_.query("kind == 'CutGradient'")["bytes"].sum() for m in (whole, parts))
    assert len(set(crossed)) == 1


def test_a_model_that_was_pickled_goes_on_as_if_it_had_not_been():
    X, y = table()
    model = classifier(epochs=2, bottom=small.tanh_net).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))  # as scikit-learn's users do
    assert same(model.partial_fit(X, y, epochs=2), copy.partial_fit(X, y, epochs=2))
    assert np.array_equal(model.predict_proba(X), copy.predict_proba(X))


def test_partial_fit_begins_with_classes_that_come_later():
    X, y = table()
    model = classifier().partial_fit(X[y != 2], y[y != 2], classes=[0, 1, 2])
    assert model.partial_fit(X, y).n_epochs_ == 2 and list(model.classes_) == [0, 1, 2]
    with pytest.raises(ValueError, match=r"labels that training did not see, \[7\]"):
        model.partial_fit(X, np.where(y == 2, 7, y))
    assert model.n_epochs_ == 2 and model.score(X, y) > 0.4  # as it was


# ---------------------------------------------------------------- what parties hold


def test_frames_are_matched_by_their_index_and_columns_by_name():
    X, y = table()
    ids = [f"p{i}" for i in range(len(X))]
    blocks = halves(X, ids)
    expected = classifier().fit(X, y)
    shuffled = {"active": blocks["active"], "passive": blocks["passive"].sample(frac=1, random_state=0)}
    model = classifier().fit(shuffled, pd.Series(y, index=ids))
    assert same(model, expected)
    turned = {"active": blocks["active"].iloc[:, ::-1], "passive": shuffled["passive"]}
    assert np.array_equal(model.predict_proba(turned), expected.predict_proba(X))
    assert model.n_features_in_per_party_ == {"active": 3, "passive": 3} and model.n_features_in_ == 6


def test_a_passive_partys_seat_holds_no_label_and_no_column_of_another(monkeypatch):
    seen = []
    monkeypatch.setattr(fitting, "train", lambda plan, *rest, **more: seen.append(plan) or train(plan))
    X, y = table()
    classifier(epochs=1).fit(X, y, eval_set=(X[:40], y[:40]))
    active, passive = seats(seen[0])
    own, foreign = (X[:, half].astype(np.float32) for half in (slice(0, 3), slice(3, 6)))
    labels = y.astype(np.int64).tobytes()
    assert labels in active.setup and own.tobytes() in active.setup and foreign.tobytes() in passive.setup
    assert foreign[:40].tobytes() not in active.setup
    for held in (labels[: 8 * 40], own[:40].tobytes(), own.T[0].tobytes()):
        assert held not in passive.setup


def test_sparse_tables_train_as_dense_ones_do():
    X, y = table()
    X[X < 0.3] = 0
    dense = classifier().fit(X, y)
    assert same(classifier().fit(sparse.csr_matrix(X), y), dense)
    blocks = {"active": sparse.csr_array(X[:, :3]), "passive": sparse.csc_matrix(X[:, 3:])}
    model = classifier().fit(blocks, y, eval_set=(blocks, y))
    assert same(model, dense) and np.array_equal(model.predict(blocks), dense.predict(X))


def test_images_train_convolutions():
    random = np.random.default_rng(0)
    y = random.integers(2, size=40)
    upper, lower = (random.integers(60, size=(40, 1, 8, 8)).astype(np.uint8) for _ in range(2))
    upper[y == 1, :, :, 4:] += 190
    blocks = {"a": upper, "b": lower}
    model = VFLClassifier(
        {"a": small_convolution, "b": "MLP2"}, epochs=6, lr=0.01, batch_size=10, random_state=0
    )
    assert model.fit(blocks, y).score(blocks, y) > 0.9
    assert model.n_features_in_per_party_ == {"a": 64, "b": 64}
    with pytest.raises(
        ValueError, match=r"party 'b': expected samples of shape \(1, 8, 8\), got \(1, 4, 8\)"
    ):
        model.predict({"a": upper, "b": lower[:, :, :4]})


def small_convolution(in_shape, width):
    """Pixels of 0 to 255 scaled first."""
    layers = [nn.Conv2d(in_shape[0], 3, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(width)]
    model = nn.Sequential(nn.BatchNorm2d(in_shape[0]), *layers)
    model(torch.zeros(2, *in_shape))
    return model


def test_numbers_of_embedding_rows_stay_whole():
    random = np.random.default_rng(0)
    words = random.integers(20, size=(30, 5))
    y = (words[:, 0] > 9).astype(int)
    model = classifier(
        bottom={"a": ("LSTM", {"vocab_size": 20, "embedding": 4, "hidden": 4}), "b": "MLP2"}, batch_size=10
    )
    assert model.fit({"a": words, "b": random.normal(size=(30, 2))}, y).n_epochs_ == 4


def test_an_active_party_may_hold_labels_only():
    X, y = table()
    model = classifier().fit({"bank": None, "shop": X}, y)
    assert list(model.bottoms_) == ["shop"] and model.score({"shop": X}, y) > 0.6
    assert classifier(partition={"bank": [], "shop": range(6)}).fit(X, y).bottoms_.keys() == {"shop"}


def test_modules_are_trained_as_copies_and_from_their_own_weights():
    X, y = table()
    torch.manual_seed(0)
    given = {"active": nn.Linear(3, 3), "passive": nn.Linear(3, 3)}
    before = {party: module.weight.detach().clone() for party, module in given.items()}
    model = classifier(epochs=1, lr=1e-6, bottom=given).fit(X, y)
    for party, module in given.items():
        assert torch.equal(module.weight, before[party])
        trained = model.bottoms_[party].weight
        assert torch.allclose(trained, before[party], atol=1e-3) and not torch.equal(trained, before[party])
    assert same(clone(model).fit(X, y), model)
    local = classifier(bottom=lambda shape, width: nn.Linear(shape[0], width)).fit(X, y)
    assert isinstance(local.bottoms_["active"], nn.Linear)
    for bottom in (given, lambda shape, width: nn.Linear(shape[0], width)):
        with pytest.raises(
            ValueError, match=r'bottom of party .*cannot cross to a process.*"module:function"'
        ):
            classifier(bottom=bottom, network="process").fit(X, y)


# ---------------------------------------------------------------- scikit-learn's tools


def test_grid_search_and_cross_validation_run():
    X, y = table()
    assert cross_val_score(classifier(epochs=2), X, y, cv=2).shape == (2,)
    search = GridSearchCV(classifier(epochs=1), {"bottom": ["MLP2", "LogisticRegression"], "lr": [0.1]}, cv=2)
    assert search.fit(X, y).best_estimator_.n_epochs_ == 1


def test_costs_and_traffic_say_what_crossed():
    X, y = table()
    model = classifier(epochs=2, protocol="fedbcd-p", protocol_options={"local_steps": 2}).fit(X, y)
    gradients = model.traffic_.set_index(["party", "kind"]).loc["passive", "CutGradient"]
    assert gradients["messages"].sum() == 2 * 3 and gradients["bytes"].sum() > 2 * 90 * 3 * 4
    assert model.costs_["steps"] == 6 and model.costs_["bytes"] == model.traffic_["bytes"].sum()
    assert model.costs_["protocol"] == "fedbcd-p" and model.costs_["seconds"]["training"] > 0
    asked = model.prediction_traffic(X)
    assert set(asked["kind"]) >= {"AskScoring", "ScoredOutputs"} and "CutGradient" not in set(asked["kind"])
