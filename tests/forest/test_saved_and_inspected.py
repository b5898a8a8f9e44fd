"""Forests on disk, their importances, and rows matched by IDs: as for boosting."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from vflparty import InProcessNetwork, WrongFileError
from vfltree import (
    RowsLeftOutWarning,
    SecureBoostClassifier,
    SecureForestClassifier,
    SecureForestRegressor,
    load,
    load_active,
)
from vfltree.forest.passive import ForestPassive
from vfltree.growing.prediction import ActivePredictor
from vfltree.plotting import tree_to_text

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]
CIPHERS = [{"encryption": "none"}, {"key_bits": 512, "allow_weak_key": True}]


def frames(n_rows=90):
    rng = np.random.default_rng(0)
    bank = pd.DataFrame(rng.normal(size=(n_rows, 2)), columns=["income", "age"])
    shop = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=["visits", "basket", "returns"])
    score = bank["income"] + shop["visits"]
    return {"bank": bank, "shop": shop}, np.digitize(score, [-0.7, 0.7]), score.to_numpy()


@pytest.mark.parametrize("cipher", CIPHERS, ids=["plain", "paillier"])
@pytest.mark.parametrize("kind", [SecureForestClassifier, SecureForestRegressor])
def test_a_loaded_forest_predicts_the_same_bits(kind, cipher, tmp_path):
    X, classes, values = frames()
    y = classes if kind is SecureForestClassifier else values
    model = kind(4, max_depth=4, random_state=0, **cipher).fit(X, y)
    paths = model.save(tmp_path)
    again = load(tmp_path)
    assert type(again) is kind
    assert again.predict(X).tobytes() == model.predict(X).tobytes()
    if kind is SecureForestClassifier:
        assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
        assert list(again.classes_) == [0, 1, 2]
    assert b"visits" not in paths["bank"].read_bytes()
    assert b"income" not in paths["shop"].read_bytes()


def test_each_party_of_a_forest_answers_from_its_own_file(tmp_path):
    X, y, _ = frames()
    model = SecureForestClassifier(3, max_depth=3, encryption="none", random_state=0).fit(X, y)
    paths = model.save(tmp_path)

    def ask(setup):
        shop = ForestPassive.from_file(paths["shop"], X["shop"])
        return InProcessNetwork({"shop": shop}, leader="bank").run(ActivePredictor.from_setup(setup))

    alone = load_active(paths["bank"], ask)
    assert (alone.predict_proba(X["bank"]) == model.predict_proba(X)).all()
    assert "visits" not in tree_to_text(alone, 0)


def test_halves_of_a_forest_and_of_boosting_do_not_mix(tmp_path):
    X, y, _ = frames()
    forest = SecureForestClassifier(1, max_depth=2, encryption="none").fit(X, y).save(tmp_path / "forest")
    boost = SecureBoostClassifier(1, max_depth=2, encryption="none").fit(X, y).save(tmp_path / "boost")
    with pytest.raises(WrongFileError, match="different trainings"):
        load([forest["bank"], boost["shop"]])


def test_an_untrained_forest_has_nothing_to_save_or_show(tmp_path):
    for use in (
        lambda: SecureForestClassifier().save(tmp_path),
        lambda: SecureForestRegressor().importances(),
        lambda: SecureForestClassifier().feature_importances_,
    ):
        with pytest.raises(NotFittedError):
            use()


@pytest.mark.parametrize("task", ["classes", "values"])
def test_importances_of_one_tree_are_those_of_scikit_learn(task):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 5))  # fewer rows than bins: the same candidates
    score = X[:, 0] + X[:, 3] + 0.1 * rng.normal(size=30)
    settings = {
        "max_depth": 3,
        "max_features": None,
        "bootstrap": False,
        "encryption": "none",
        "min_rows_per_sum": 1,
    }
    if task == "classes":
        y = (score > 0).astype(int)
        ours, theirs = (
            SecureForestClassifier(1, **settings),
            DecisionTreeClassifier(max_depth=3, random_state=0),
        )
    else:
        y = score
        settings["max_features"] = 1.0
        ours, theirs = (
            SecureForestRegressor(1, **settings),
            DecisionTreeRegressor(max_depth=3, random_state=0),
        )
    found = ours.fit(X, y).feature_importances_
    np.testing.assert_allclose(found, theirs.fit(X, y).feature_importances_, atol=1e-6)


def test_importances_of_a_forest_are_means_over_its_trees():
    X, y, _ = frames()
    settings = {"max_depth": 3, "encryption": "none", "min_rows_per_sum": 1}
    model = SecureForestClassifier(5, **settings, random_state=0).fit(X, y)
    found = model.feature_importances_
    assert found.sum() == pytest.approx(1)
    assert set(np.argsort(found)[-2:]) == {0, 2}  # income and visits
    seen = model.importances("weight", viewer="bank")
    assert seen["shop"].iloc[0] == model.importances("weight")["shop"].sum()


def test_rows_are_matched_by_ids_in_training_and_prediction():
    X, y, _ = frames()
    order = np.random.default_rng(2).permutation(len(y))
    moved = {"bank": X["bank"], "shop": X["shop"].iloc[order].iloc[5:]}
    ids = {"bank": np.arange(len(y)), "shop": order[5:]}
    settings = {"max_depth": 3, "encryption": "none", "random_state": 0}
    with pytest.warns(RowsLeftOutWarning):
        model = SecureForestClassifier(3, **settings).fit(moved, y, ids=ids)
    kept = np.setdiff1d(np.arange(len(y)), order[:5])
    rows = {party: block.iloc[kept] for party, block in X.items()}
    by_hand = SecureForestClassifier(3, **settings).fit(rows, y[kept])
    assert model.n_rows_ == len(y) - 5
    assert (model.predict_proba(rows) == by_hand.predict_proba(rows)).all()
    asked = {"bank": X["bank"].iloc[kept], "shop": moved["shop"]}
    for method in ("predict", "predict_proba", "predict_log_proba", "apply"):
        found = getattr(model, method)(asked, ids={"bank": kept, "shop": order[5:]})
        assert (found == getattr(model, method)(rows)).all()
