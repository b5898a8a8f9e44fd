"""A training in two goes is the training in one: warm starts and checkpoints, whatever happens in between."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import vfltree
from tests.secureboost.functions import squared
from tests.secureboost.small import WEAK, some_data, thirds
from vflparty import ModelFile, PeerGoneError, ProcessNetwork
from vfltree import SecureBoostClassifier, SecureBoostRegressor
from vfltree.secureboost.messages import Records, TrainingState

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]
PARTITION = thirds(9, 3)
PLAIN: dict[str, Any] = {"encryption": "none"}
KINDS = [
    pytest.param(PLAIN, id="plain"),
    pytest.param(WEAK, id="encrypted"),
    pytest.param({"network": "process", **WEAK}, id="process"),
]


class Stop(Exception):
    """What ends a training from outside."""


class Raise:
    """A callback that raises after some rounds."""

    def __init__(self, after: int, error: BaseException) -> None:
        self.after, self.error = after, error

    def after_iteration(self, model, epoch, evals_log):
        if epoch + 1 == self.after:
            raise self.error
        return False


def estimator(task: str = "binary", rounds: int = 5, **parameters: Any):
    kind = SecureBoostRegressor if task == "regression" else SecureBoostClassifier
    settings: dict[str, Any] = {
        "max_depth": 2, "partition": PARTITION, "random_state": 4, "subsample": 0.7, "colsample_bytree": 0.6,
    }  # fmt: skip
    return kind(rounds, **{**settings, **parameters})


def data(task: str = "binary", n_rows: int = 100):
    return some_data(task, n_rows=n_rows, missing=True)


def assert_same_model(one, other):
    assert one._active_model == other._active_model
    assert one._passive_models == other._passive_models


# ---- warm start


@pytest.mark.parametrize("kind", KINDS[:2])
def test_continuing_is_training_in_one_go(kind):
    X, y = data()
    whole = estimator(rounds=4, **PLAIN).fit(X, y)
    model = estimator(rounds=1, warm_start=True, **kind).fit(X, y)
    first = model.training_id_
    model.set_params(n_estimators=4).fit(X, y)
    assert_same_model(model, whole)
    assert model.n_rounds_ == 4
    assert model.training_id_ != first


@pytest.mark.parametrize("task", ["five", "regression"])
def test_continuing_of_several_outputs_and_values(task):
    X, y = data(task)
    whole = estimator(task, rounds=4, **PLAIN).fit(X, y)
    model = estimator(task, rounds=1, warm_start=True, **PLAIN).fit(X, y)
    for rounds in (3, 4, 4):
        model.set_params(n_estimators=rounds).fit(X, y)
    assert_same_model(model, whole)
    assert (model.predict(X) == whole.predict(X)).all()


@pytest.mark.parametrize("random_state", [None, "generator"])
def test_seeds_are_kept_where_none_was_given(random_state):
    X, y = data()
    state = np.random.RandomState(1) if random_state else None
    model = estimator(rounds=2, warm_start=True, random_state=state, **PLAIN).fit(X, y)
    seeds = model._seeds
    model.set_params(n_estimators=4).fit(X, y)
    assert model._seeds == seeds
    whole = estimator(rounds=4, random_state=0, **PLAIN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vfltree.secureboost.fitting.party_seeds", lambda *_: list(seeds.values()))
        whole.fit(X, y)
    assert_same_model(model, whole)


def test_evaluation_goes_on_where_the_model_stands():
    X, y = data(n_rows=160)
    train, valid = (X[:100], y[:100]), (X[100:], y[100:])
    whole = estimator(rounds=4, **PLAIN).fit(*train, eval_set=valid)
    model = estimator(rounds=2, warm_start=True, **PLAIN).fit(*train, eval_set=valid)
    before = model.evals_result_["validation_0"]["logloss"]
    model.set_params(n_estimators=4).fit(*train, eval_set=valid)
    scores = model.evals_result_["validation_0"]["logloss"]
    assert before + scores == whole.evals_result_["validation_0"]["logloss"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_estimators": 1}, "n_estimators=1 is less than the 2 rounds"),
        ({"objective": "multi:softprob"}, "binary:logistic with 1 outputs, now it is multi:softprob with 2"),
        ({"partition": thirds(9, 2)}, "the model has features"),
        ({"label_privacy_epsilon": 1.0}, "spend it twice"),
    ],
)
def test_what_cannot_be_continued_is_refused_and_the_model_stays(change, words):
    X, y = data()
    model = estimator(rounds=2, warm_start=True, **PLAIN).fit(X, y)
    before = model.predict_proba(X)
    own = {name: getattr(model, name) for name in change}
    with pytest.raises(ValueError, match=words):
        model.set_params(**change).fit(X, y)
    assert (model.set_params(**own).predict_proba(X) == before).all()
    with pytest.raises(ValueError, match=r"the model has classes \[0 1\]"):
        model.fit(X, y + 1)


# ---- checkpoints


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_stopped_goes_on_to_the_same_model(kind, tmp_path):
    X, y = data(n_rows=160)
    train, valid = (X[:100], y[:100]), (X[100:], y[100:])
    whole = estimator(**PLAIN).fit(*train, eval_set=valid)
    with pytest.raises(Stop):
        estimator(checkpoint=tmp_path, callbacks=[Raise(3, Stop())], **kind).fit(*train, eval_set=valid)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "active.checkpoint", "p1.checkpoint", "p2.checkpoint",
    ]  # fmt: skip
    seen = []

    class Look:
        def after_iteration(self, model, epoch, evals_log):
            seen.append(epoch)
            return False

    model = estimator(checkpoint=tmp_path, callbacks=[Look()], **kind).fit(*train, eval_set=valid)
    assert seen == [3, 4]  # rounds 0 to 2 were there
    assert_same_model(model, whole)
    assert model.evals_result_ == whole.evals_result_
    if "network" in kind:
        return
    again = estimator(checkpoint=tmp_path, callbacks=[Look()], **kind).fit(*train, eval_set=valid)
    assert_same_model(again, whole)  # nothing is left to do
    assert again.costs_["encryptions"] == 0
    more = estimator(rounds=7, checkpoint=tmp_path, **kind).fit(*train, eval_set=valid)
    assert_same_model(more, estimator(rounds=7, **PLAIN).fit(*train, eval_set=valid))


def test_system_seeds_are_in_the_files(tmp_path):
    """Without random_state the rows and columns of the rounds still to come are those that would have come."""
    X, y = data()
    with pytest.raises(Stop):
        estimator(random_state=None, checkpoint=tmp_path, callbacks=[Raise(2, Stop())], **PLAIN).fit(X, y)
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    models = []
    for _ in range(2):
        for name, content in kept.items():
            (tmp_path / name).write_bytes(content)
        models.append(estimator(random_state=None, checkpoint=tmp_path, **PLAIN).fit(X, y))
    assert_same_model(*models)


def test_early_stopping_goes_on_too(tmp_path):
    X, y = data(n_rows=160)
    sets = {"eval_set": (X[100:], 1 - y[100:])}
    early: dict[str, Any] = {"early_stopping_rounds": 3, "rounds": 20}
    whole = estimator(**early, **PLAIN).fit(X[:100], y[:100], **sets)
    assert len(whole.evals_result_["validation_0"]["logloss"]) < 20
    with pytest.raises(Stop):
        stop = [Raise(2, Stop())]
        estimator(checkpoint=tmp_path, callbacks=stop, **early, **PLAIN).fit(X[:100], y[:100], **sets)
    for _ in range(2):  # the second finds the training ended
        model = estimator(checkpoint=tmp_path, **early, **PLAIN).fit(X[:100], y[:100], **sets)
        assert_same_model(model, whole)
        assert model.evals_result_ == whole.evals_result_
        assert model.best_iteration_ == whole.best_iteration_


def test_files_are_written_every_so_many_rounds(tmp_path):
    X, y = data()
    with pytest.raises(Stop):
        estimator(checkpoint=tmp_path, checkpoint_every=2, callbacks=[Raise(3, Stop())], **PLAIN).fit(X, y)
    assert {ModelFile.read(path).metadata["n_rounds"] for path in tmp_path.iterdir()} == {2}
    model = estimator(checkpoint=tmp_path, checkpoint_every=2, **PLAIN).fit(X, y)
    assert_same_model(model, estimator(**PLAIN).fit(X, y))
    assert {ModelFile.read(path).metadata["n_rounds"] for path in tmp_path.iterdir()} == {5}


def test_randomised_labels_are_drawn_once(tmp_path):
    X, y = data()
    private: dict[str, Any] = {"label_privacy_epsilon": 1.0, **PLAIN}
    with pytest.raises(Stop):
        estimator(checkpoint=tmp_path, callbacks=[Raise(2, Stop())], **private).fit(X, y)
    (state,) = ModelFile.read(tmp_path / "active.checkpoint").messages(TrainingState)
    first = estimator(checkpoint=tmp_path, **private).fit(X, y)
    (after,) = ModelFile.read(tmp_path / "active.checkpoint").messages(TrainingState)
    assert (state.private_targets != y).any()
    assert (state.private_targets == after.private_targets).all()
    assert first.n_rounds_ == 5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"learning_rate": 0.1}, "learning_rate was 0.3 and is 0.1"),
        ({"max_depth": 3}, "max_depth was 2 and is 3"),
        ({"max_bin": 16}, "max_bin was 32 and is 16"),
        ({"min_rows_per_sum": 7}, "min_rows_per_sum was 1 and is 7"),
        ({"monotone_constraints": {"p1": [1, 0, 0]}}, r"monotone_constraints was \[0, 0, 0\] and is"),
        ({"random_state": 5}, "another random_state"),
        (
            {"partition": {**PARTITION, "p1": PARTITION["p2"], "p2": PARTITION["p1"]}},
            "features of party 'p1'",
        ),
        ({"objective": squared}, "custom_objective was '' and is '.*squared'"),
        ({"n_estimators": 1}, "2 rounds are finished already, n_estimators=1 is less"),
    ],
)
def test_a_checkpoint_of_other_settings_is_refused_by_name(change, words, tmp_path, monkeypatch):
    X, y = data()
    model = estimator(rounds=2, checkpoint=tmp_path, **PLAIN).fit(X, y)
    monkeypatch.setattr("vfltree.growing.leader.obtain_keypair", None)  # calling it fails
    with pytest.raises(ValueError, match=words):
        clone(model).set_params(**change).fit(X, y)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: (X * np.r_[2.0, np.ones(8)], y), "the features of party 'active' differ"),
        (lambda X, y: (X * np.r_[np.ones(8), 2.0], y), "the features of party 'p2' differ"),
        (lambda X, y: (X, 1 - y), "the targets differ"),
        (lambda X, y: (X, y, np.arange(1.0, 101)), "the sample weights differ"),
    ],
)
def test_a_checkpoint_of_other_data_is_refused_by_name(change, words, tmp_path):
    X, y = data()
    estimator(rounds=2, checkpoint=tmp_path, **PLAIN).fit(X, y)
    with pytest.raises(ValueError, match=words):
        estimator(checkpoint=tmp_path, **PLAIN).fit(*change(X, y))


def without_last_row(scores: np.ndarray) -> np.ndarray:
    return scores[:-1]


@pytest.mark.parametrize(
    ("party", "change", "words"),
    [
        ("active", {"seed": -1}, "no 'seed'"),
        ("active", {"settings": []}, "no 'settings'"),
        ("p1", {"seed": None}, "no 'seed'"),
        ("p1", {"n_rounds": "x"}, "no 'n_rounds'"),
        (
            "active",
            {"raw_scores": without_last_row},
            r"raw scores are float32 \(99, 1\), \(100, 1\) were due",
        ),
        ("active", {"raw_scores": lambda scores: scores * np.nan}, "infinite or missing"),
        ("active", {"evaluation_scores": lambda _: np.ones((2, 1), np.float32)}, "evaluation scores"),
        ("active", {"n_rounds": lambda _: 1}, "1 rounds come with 2 trees"),
        ("active", {"history": lambda _: "paillier"}, "line 1"),
        ("active", {"history": lambda _: '{"log": [], "waited": "x"}'}, "history"),
        ("active", {"private_targets": lambda _: np.ones(100)}, "private labels"),
        ("p1", {"columns": lambda columns: columns + np.int32(99)}, "outside the 3"),
        ("p1", {"ids": lambda ids: ids[::-1].copy()}, "increasing"),
    ],
)
def test_a_checkpoint_that_cannot_be_is_refused_with_its_file(party, change, words, tmp_path):
    X, y = data()
    estimator(rounds=2, checkpoint=tmp_path, **PLAIN).fit(X, y)
    path = tmp_path / f"{party}.checkpoint"
    file = ModelFile.read(path)
    (state,) = file.messages(TrainingState if party == "active" else Records)
    forged = {name: edit(getattr(state, name)) for name, edit in change.items() if callable(edit)}
    facts = {name: value for name, value in change.items() if name not in forged}
    state = replace(state, **forged)
    ModelFile.of(file.kind, party, file.training, [state], {**file.metadata, **facts}).write(path)
    with pytest.raises(ValueError, match=rf"{party}\.checkpoint: .*{words}"):
        estimator(checkpoint=tmp_path, **PLAIN).fit(X, y)


def test_files_of_different_trainings_do_not_go_together(tmp_path):
    X, y = data()
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder, rate in zip(folders, (0.3, 0.1), strict=True):
        estimator(rounds=2, checkpoint=folder, learning_rate=rate, **PLAIN).fit(X, y)
    own = (folders[0] / "p1.checkpoint").read_bytes()
    (folders[0] / "p1.checkpoint").write_bytes((folders[1] / "p1.checkpoint").read_bytes())
    with pytest.raises(
        ValueError, match=r"party 'p1'.*the active party's checkpoint holds 2 rounds of training"
    ):
        estimator(checkpoint=folders[0], **PLAIN).fit(X, y)
    (folders[0] / "p1.checkpoint").unlink()
    with pytest.raises(ValueError, match=r"party 'p1'.*2 rounds are finished, this party has no checkpoint"):
        estimator(checkpoint=folders[0], **PLAIN).fit(X, y)
    (folders[0] / "p1.checkpoint").write_bytes(own)
    (folders[0] / "p2.checkpoint").write_bytes(own)
    with pytest.raises(ValueError, match=r"p2\.checkpoint: it belongs to party 'p1', expected party 'p2'"):
        estimator(checkpoint=folders[0], **PLAIN).fit(X, y)


def test_a_file_that_was_written_ahead_of_the_active_partys_is_cut_back(tmp_path):
    """Killed between the files of two parties: the passive ones hold a round more."""
    X, y = data()
    estimator(rounds=2, checkpoint=tmp_path, **PLAIN).fit(X, y)
    behind = (tmp_path / "active.checkpoint").read_bytes()
    estimator(rounds=3, checkpoint=tmp_path, **PLAIN).fit(X, y)
    (tmp_path / "active.checkpoint").write_bytes(behind)
    model = estimator(checkpoint=tmp_path, **PLAIN).fit(X, y)
    assert_same_model(model, estimator(**PLAIN).fit(X, y))


def test_files_hold_no_key_and_nothing_of_others(tmp_path, monkeypatch):
    X, y = data()
    keys = []
    from vfltree.growing import leader

    true = leader.obtain_keypair

    def keep(*args, **kwargs):
        keys.append(true(*args, **kwargs)[1])
        return keys[-1].public_key, keys[-1]

    monkeypatch.setattr(leader, "obtain_keypair", keep)
    estimator(rounds=2, checkpoint=tmp_path, **WEAK).fit(X, y)
    content = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def betrayed(files):
        for number in (*keys[0]._primes, keys[0].public_key.n):
            raw = int(number).to_bytes((int(number).bit_length() + 7) // 8, "big")
            pieces = (raw[8:24], raw[::-1][8:24], str(number).encode())
            if any(piece in file for piece in pieces for file in files):
                return True
        return False

    assert not betrayed(content.values())
    planted = (int(keys[0]._primes[0]).to_bytes(32, order) for order in ("big", "little"))
    assert all(betrayed([content["active.checkpoint"] + prime]) for prime in planted)
    # A passive party's file holds its table; thresholds of the others are in none but their own.
    for name in ("p1", "p2"):
        (records,) = ModelFile.read(tmp_path / f"{name}.checkpoint").messages(Records)
        for threshold in records.thresholds[np.isfinite(records.thresholds)]:
            others = [file for other, file in content.items() if not other.startswith(name)]
            assert not any(np.float64(threshold).tobytes() in file for file in others)
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.iterdir())


# ---- a party dies


def test_a_party_that_dies_is_named_and_the_checkpoint_goes_on(tmp_path):
    X, y = data()

    class Kill:
        def after_iteration(self, model, epoch, evals_log):
            if epoch == 1:
                os.kill(pids["p1"], signal.SIGKILL)
            return False

    pids: dict[str, int] = {}
    true = ProcessNetwork._spawn

    def spawn(self):
        true(self)
        pids.update({party: self.process_id(party) for party in self.parties})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProcessNetwork, "_spawn", spawn)
        with pytest.raises(PeerGoneError, match="party 'p1'") as raised:
            estimator(network="process", checkpoint=tmp_path, callbacks=[Kill()], **PLAIN).fit(X, y)
    assert f"fit again with checkpoint={str(tmp_path)!r}" in raised.value.__notes__[0]
    model = estimator(checkpoint=Path(tmp_path), **PLAIN).fit(X, y)
    assert_same_model(model, estimator(**PLAIN).fit(X, y))


# ---- beside other options


def categorical_data():
    """Two parties, a column of text at each; rows to evaluate show a category that training has not."""
    rng = np.random.default_rng(0)
    frames = []
    for n_rows, colours in ((120, ["red", "green", "blue"]), (60, ["blue", "red", "pink"])):
        bank = pd.DataFrame({"income": rng.normal(size=n_rows), "colour": rng.choice(colours, n_rows)})
        shop = pd.DataFrame(
            {"visits": rng.normal(size=n_rows), "day": rng.choice(["mo", "tu", "we"], n_rows)}
        )
        signal = bank["income"] + 2 * (shop["day"] == "tu") - (bank["colour"] == "red") + shop["visits"]
        frames.append(({"bank": bank, "shop": shop}, (signal > 0.5).astype(int).to_numpy()))
    return frames


OPTIONS = [
    pytest.param({"categorical_features": {"bank": ["colour"], "shop": ["day"]}}, id="categories"),
    pytest.param({"first_tree": "active"}, id="first tree"),
    pytest.param({"grow_policy": "lossguide", "max_leaves": 4}, id="leaf-wise"),
    pytest.param({"min_rows_per_sum": 8}, id="groups of rows"),
    pytest.param({"sampling_method": "goss"}, id="goss"),
    pytest.param({"objective": "multi:softprob", "class_weight": "balanced"}, id="softmax"),
]


@pytest.mark.parametrize("options", OPTIONS)
def test_evaluation_and_going_on_with_other_options(options, tmp_path):
    (X, y), (Xv, yv) = categorical_data()
    if "categorical_features" not in options:
        X, Xv = (
            {
                party: frame.select_dtypes("number").assign(one=np.arange(len(frame)) % 7.0)
                for party, frame in Z.items()
            }
            for Z in (X, Xv)
        )
    settings: dict[str, Any] = {"max_depth": 3, "random_state": 0, **options}
    whole = SecureBoostClassifier(4, **settings, **PLAIN).fit(X, y, eval_set=(Xv, yv))
    assert sum(len(table.ids) for table in whole._passive_models.values()) > 0
    (metric,) = whole.evals_result_["validation_0"]
    proba = list(whole.staged_predict_proba(Xv))
    losses = [-np.log(p[np.arange(len(yv)), yv]).mean() for p in proba]
    assert whole.evals_result_["validation_0"][metric] == pytest.approx(losses, rel=1e-5)

    warm = SecureBoostClassifier(1, warm_start=True, **settings, **WEAK).fit(X, y)
    assert_same_model(warm.set_params(n_estimators=4).fit(X, y), whole)

    stopped = SecureBoostClassifier(4, checkpoint=tmp_path, callbacks=[Raise(1, Stop())], **settings, **PLAIN)
    with pytest.raises(Stop):
        stopped.fit(X, y, eval_set=(Xv, yv))
    model = stopped.set_params(callbacks=None).fit(X, y, eval_set=(Xv, yv))
    assert_same_model(model, whole)
    assert model.evals_result_ == whole.evals_result_


def test_other_categories_cannot_be_gone_on_with(monkeypatch):
    (X, y), _ = categorical_data()
    named = {"bank": ["colour"], "shop": ["day"]}
    model = SecureBoostClassifier(1, warm_start=True, categorical_features=named, **WEAK).fit(X, y)
    before = model.predict_proba(X)
    monkeypatch.setattr("vfltree.growing.leader.obtain_keypair", None)  # calling it fails
    other = {**X, "shop": X["shop"].assign(day="sunday")}
    words = r"column 'day' of party 'shop' holds 1 categories, other ones than the \d+ .*warm_start=False"
    with pytest.raises(ValueError, match=words):
        model.set_params(n_estimators=2).fit(other, y)
    assert np.array_equal(model.predict_proba(X), before)


def test_a_model_out_of_files_keeps_its_best_round_and_can_be_continued(tmp_path):
    X, y = data(n_rows=160)
    model = estimator(rounds=30, early_stopping_rounds=2, **PLAIN)
    model.fit(X[:100], y[:100], eval_set=(X[100:], y[100:]))
    assert model.n_rounds_ < 30
    model.save(tmp_path)
    again = vfltree.load(tmp_path)
    assert (again.best_iteration_, again.n_rounds_) == (model.best_iteration_, model.n_rounds_)
    assert again.best_score_ == model.best_score_
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    assert len(list(again.staged_predict(X))) == model.best_iteration_ + 1
    again.set_params(warm_start=True, n_estimators=model.n_rounds_ + 1, early_stopping_rounds=None)
    longer = again.fit(X[:100], y[:100])
    assert longer.n_rounds_ == model.n_rounds_ + 1
    assert (next(longer.staged_predict_proba(X)) == next(model.staged_predict_proba(X))).all()
