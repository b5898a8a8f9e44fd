"""Prediction over the parties, their files, and whose coefficients are whose."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tests.linear.small import PLAIN, WEAK, estimator, some_data
from vflparty import DamagedFileError, InProcessNetwork, WrongFileError
from vflparty.modelfile import ModelFile
from vfltree import SecureLogisticRegression, load, load_active
from vfltree.linear.messages import HiddenScores, LinearScores
from vfltree.linear.passive import LinearPassiveParty, decode_model
from vfltree.linear.prediction import LinearPredictor

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
TASKS = ["binary", "three", "linear", "poisson"]


def small_fit(task="binary", n_parties=2, **parameters):
    X, y = some_data(task, n_rows=60)
    return estimator(task, n_parties, max_iter=5, **{**PLAIN, **parameters}).fit(X, y), X


@pytest.mark.parametrize("n_parties", [2, 3])
@pytest.mark.parametrize("task", TASKS)
def test_predictions_are_those_of_the_coefficients(task, n_parties):
    model, X = small_fit(task, n_parties)
    scores = X @ np.atleast_2d(model.coef_).T + model.intercept_
    assert np.abs(model._scores(X) - scores).max() < 1e-9 * max(1.0, np.abs(scores).max())


@pytest.mark.parametrize("n_parties", [2, 3])
def test_probabilities_are_probabilities(n_parties):
    for task, options in (("binary", {}), ("three", {}), ("three", {"multi_class": "ovr"})):
        model, X = small_fit(task, n_parties, **options)
        P = model.predict_proba(X)
        assert P.shape == (60, len(model.classes_)) and np.isfinite(P).all()
        assert np.abs(P.sum(axis=1) - 1).max() < 1e-12
        assert (model.classes_[P.argmax(axis=1)] == model.predict(X)).all()
        assert np.allclose(np.exp(model.predict_log_proba(X)), P)


def test_scores_of_several_passive_parties_show_as_a_sum_only():
    model, X = small_fit("binary", 3)
    kinds = model.prediction_traffic(X)["kind"]
    assert {"OfferMaskKey", "TakeMaskKeys", "HiddenScores"} <= set(kinds)
    assert LinearScores.__name__ not in set(kinds)
    two, X = small_fit("binary", 2)
    assert set(two.prediction_traffic(X)["kind"]) == {"SendLinearScores", "LinearScores"}


def test_hidden_scores_are_uniform_one_by_one():
    model, X = small_fit("binary", 3)
    seen = []
    parties = {
        party: LinearPassiveParty(X[:, model._columns[party]], model=half, name=party)
        for party, half in model._passive_models.items()
    }
    predictor = LinearPredictor(
        X[:, model._columns["active"]], model._active_model, passive_parties=tuple(parties),
        ids_digest=next(iter(parties.values()))._ids_digest,
    )  # fmt: skip
    true_answer = LinearPassiveParty.on_send_linear_scores

    def watched(self, msg):
        seen.append(true_answer(self, msg))
        return seen[-1]

    for party in parties.values():
        party.on_send_linear_scores = watched.__get__(party)
    with InProcessNetwork(parties) as network:
        assert (network.run(predictor).scores == model._scores(X)).all()
    assert all(isinstance(answer, HiddenScores) for answer in seen)
    assert min(np.abs(answer.scores.astype(float)).mean() for answer in seen) > 2.0**60


def test_a_row_is_predicted_as_itself_whatever_the_others():
    model, X = small_fit("three", 3)
    assert (model.decision_function(X)[10:20] == model.decision_function(X[10:20])).all()


@pytest.mark.parametrize("n_parties", [2, 3])
@pytest.mark.parametrize("task", TASKS)
def test_saved_models_predict_bit_for_bit(task, n_parties, tmp_path):
    model, X = small_fit(task, n_parties)
    paths = model.save(tmp_path)
    again = load(tmp_path)
    assert type(again) is type(model)
    assert (again._scores(X) == model._scores(X)).all()
    assert (again.predict(X) == model.predict(X)).all()
    assert set(paths) == set(model.parties_)


def test_a_file_holds_its_own_partys_coefficients_only(tmp_path):
    model, _X = small_fit("binary", 2, encryption="paillier", **WEAK)
    paths = model.save(tmp_path)
    bytes_of = {party: path.read_bytes() for party, path in paths.items()}
    for party, other in (("active", "p1"), ("p1", "active")):
        for value in model.coefficients(other).ravel():
            assert np.float64(value).tobytes() not in bytes_of[party]
        for value in model.coefficients(party).ravel():
            assert np.float64(value).tobytes() in bytes_of[party]
    assert np.float64(model.intercept_[0]).tobytes() not in bytes_of["p1"]
    assert b"classes" not in bytes_of["p1"]


def test_the_active_party_predicts_with_its_own_file_over_a_network(tmp_path):
    model, X = small_fit("binary", 3)
    paths = model.save(tmp_path)
    passive = {
        party: LinearPassiveParty(X[:, model._columns[party]], model=model._passive_models[party])
        for party in model.parties_[1:]
    }

    def ask(setup):
        with InProcessNetwork(passive, leader="active") as network:
            return network.run(LinearPredictor.from_setup(setup))

    alone = load_active(paths["active"], ask)
    assert (alone.predict_proba(X[:, model._columns["active"]]) == model.predict_proba(X)).all()
    with pytest.raises(ValueError, match="no half of party 'p1' is here"):
        alone.coefficients("p1")


def test_files_of_other_trainings_or_shapes_are_refused(tmp_path):
    one, _X = small_fit()
    two, _ = small_fit()
    one.save(tmp_path / "one")
    paths = two.save(tmp_path / "two")
    with pytest.raises(WrongFileError, match="different trainings"):
        load([tmp_path / "one" / "active.model", paths["p1"]])
    file = ModelFile.read(paths["p1"])
    short = type(two._passive_models["p1"])(np.zeros((1, 1)))
    ModelFile.of(file.kind, file.party, file.training, [short], file.metadata).write(paths["p1"])
    with pytest.raises(DamagedFileError, match="coefficients of shape"):
        load(tmp_path / "two")


def test_coefficients_belong_to_the_parties():
    model, _X = small_fit(share_coef=False)
    with pytest.raises(AttributeError, match="belong to the parties"):
        _ = model.coef_
    with pytest.raises(AttributeError, match="if all consent"):
        _ = model.set_params(share_coef="no").coef_
    with pytest.raises(TypeError, match="share_coef must be True or False, got 'no'"):
        small_fit(share_coef="no")
    shared = model.set_params(share_coef=True).coef_
    assert (shared[:, model._columns["p1"]] == model.coefficients("p1")).all()
    with pytest.raises(ValueError, match="no half of party 'nobody'"):
        model.coefficients("nobody")


def test_nothing_is_predicted_before_fit(tmp_path):
    X, _ = some_data("binary")
    for call in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(SecureLogisticRegression(), call)(X)
    with pytest.raises(NotFittedError):
        SecureLogisticRegression().save(tmp_path)


def test_estimators_clone_and_pickle():
    model, X = small_fit()
    assert clone(model).get_params() == model.get_params()
    assert (pickle.loads(pickle.dumps(model)).predict_proba(X) == model.predict_proba(X)).all()


def test_blocks_by_party_are_matched_by_index():
    X, y = some_data("binary", n_rows=60)
    ids = [f"id{i}" for i in range(60)]
    bank = pd.DataFrame(X[:, :3], index=ids, columns=list("abc"))
    shop = pd.DataFrame(X[:, 3:], index=ids, columns=list("defg"))
    how = {"partition": None, "max_iter": 5, **PLAIN}
    one = estimator("binary", **how).fit({"bank": bank, "shop": shop}, y)
    two = estimator("binary", **how).fit({"bank": bank, "shop": shop.iloc[::-1]}, y)
    assert one._halves() == two._halves()
    assert (
        one.predict_proba({"bank": bank, "shop": shop.iloc[::-1]})
        == one.predict_proba({"bank": bank, "shop": shop})
    ).all()
    with pytest.raises(ValueError, match="party 1 \\(shop\\) is needed"):
        one.predict({"bank": bank})
    by_ids = estimator("binary", **how).fit(
        {"bank": X[:, :3], "shop": X[::-1, 3:]}, y, ids={"bank": ids, "shop": ids[::-1]}
    )
    assert np.abs(by_ids.coef_ - one.coef_).max() == 0


def test_columns_are_matched_by_name_and_missing_or_extra_ones_are_named():
    X, y = some_data("binary", n_rows=40)
    bank, shop = pd.DataFrame(X[:, :3], columns=list("abc")), pd.DataFrame(X[:, 3:], columns=list("defg"))
    model = estimator("binary", partition=None, max_iter=5, **PLAIN).fit({"bank": bank, "shop": shop}, y)
    given = model.predict_proba({"bank": bank, "shop": shop})
    assert (model.predict_proba({"bank": bank[["c", "a", "b"]], "shop": shop}) == given).all()
    with pytest.raises(ValueError, match=r"'shop': expected 4 features, got 3; missing columns \['g'\]"):
        model.predict({"bank": bank, "shop": shop[["d", "e", "f"]]})
    with pytest.raises(ValueError, match="'bank': expected 3 features, got 4"):
        model.predict({"bank": X[:, :4], "shop": X[:, 3:]})


def test_a_model_out_of_nothing_is_none():
    assert decode_model(b"") is None
