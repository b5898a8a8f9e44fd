"""Monotone constraints: how users write them, and that predictions follow them whoever owns the column."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.secureboost.small import WEAK, some_data, thirds
from vflparty import InProcessNetwork, RemoteProtocolError
from vfltree import SecureBoostClassifier, SecureBoostRegressor
from vfltree.growing.messages import Histograms, Joined, SplitsRecorded
from vfltree.growing.models import result_trees
from vfltree.secureboost import ActiveParty, BoostSettings, PassiveParty
from vfltree.secureboost.monotone import PartyColumns, constraint_signs

pytestmark = pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning")

NAMED = {
    "bank": PartyColumns(("age", "debt"), (2, 0)),
    "shop": PartyColumns(("visits", "age", "spent"), (1, 3, 4)),
}
NUMBERED = {"bank": PartyColumns(None, (2, 0)), "shop": PartyColumns(None, (1, 3, 4))}


@pytest.mark.parametrize(
    ("parties", "written", "bank", "shop"),
    [
        (NAMED, None, [0, 0], [0, 0, 0]),
        (NAMED, {"debt": -1, "spent": 1}, [0, -1], [0, 0, 1]),
        (NAMED, {"shop": {"age": 1}, "bank": [0, -1]}, [0, -1], [0, 1, 0]),
        (NAMED, (1, -1, 0, 0, 1), [0, 1], [-1, 0, 1]),
        (NUMBERED, {0: 1, 3: -1}, [0, 1], [0, -1, 0]),
        (NUMBERED, {"shop": {2: 1}}, [0, 0], [0, 0, 1]),
        (NUMBERED, [0, 1, 1.0, 0, -1], [1, 0], [1, 0, -1]),
    ],
)
def test_constraints_can_be_written_by_column_by_party_and_in_order(parties, written, bank, shop):
    signs = constraint_signs(written, parties, 5)
    assert {party: own.tolist() for party, own in signs.items()} == {"bank": bank, "shop": shop}


@pytest.mark.parametrize(
    ("parties", "written", "kind", "message"),
    [
        (
            NAMED,
            {"height": 1},
            ValueError,
            "names column 'height', which no party has: party 'bank' has ['age', 'd",
        ),
        (NAMED, {"age": 1}, ValueError, "names column 'age', which parties ['bank', 'shop'] have"),
        (NAMED, {0: 1}, ValueError, "names column 0, which no party has"),
        (NAMED, {"debt": 2}, ValueError, "column 'debt' of party 'bank' must be -1, 0 or 1, got 2"),
        (NAMED, {"debt": True}, ValueError, "column 'debt' of party 'bank' must be -1, 0 or 1, got True"),
        (NAMED, {"debt": "up"}, ValueError, "column 'debt' of party 'bank' must be -1, 0 or 1, got 'up'"),
        (NAMED, {"mill": {"debt": 1}}, ValueError, "names party 'mill'; the parties are ['bank', 'shop']"),
        (
            NAMED,
            {"bank": {"spent": 1}},
            ValueError,
            "of party 'bank' names column 'spent'; the party has ['age'",
        ),
        (NAMED, {"bank": [1, 0, 0]}, ValueError, "of party 'bank' has 3 signs, the party has 2 columns"),
        (NAMED, {"bank": [1, 0], "debt": 1}, TypeError, "mixes signs of columns with constraints of parties"),
        (NUMBERED, [1, 0], ValueError, "has 2 signs, X has 5 columns"),
        (NUMBERED, [0, 0, 0, 0.5, 0], ValueError, "column 1 of party 'shop' must be -1, 0 or 1, got 0.5"),
        (NUMBERED, {5: 1}, ValueError, "names column 5, which no party has"),
        (NUMBERED, {"age": 1}, ValueError, "names column 'age', which no party has"),
        (NUMBERED, "(1,0,0,0,0)", TypeError, "a dict of columns or parties, or a sequence"),
        (NUMBERED, 1, TypeError, "a dict of columns or parties, or a sequence"),
    ],
)
def test_what_cannot_be_meant_is_refused_naming_party_and_column(parties, written, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        constraint_signs(written, parties, 5)


# ---- what comes of it


def steps(model, X, column: int) -> np.ndarray:
    """How raw scores change from value to value of a column, other columns as they are: (n_rows, n_values - 1)."""
    grid = np.unique(X[:, column])[::4]
    rows = np.repeat(X[:40], len(grid), axis=0)
    rows[:, column] = np.tile(grid, 40)
    scores = model.predict(rows) if isinstance(model, SecureBoostRegressor) else model.decision_function(rows)
    return np.diff(scores.reshape(40, len(grid)), axis=1)


@pytest.mark.parametrize("kind", [SecureBoostClassifier, SecureBoostRegressor])
@pytest.mark.parametrize("column", [0, 5], ids=["active", "passive"])
@pytest.mark.parametrize("sign", [1, -1])
def test_predictions_follow_the_constraint_whoever_owns_the_column(kind, column, sign):
    X, _ = some_data("binary", n_rows=300)
    rng = np.random.default_rng(1)
    signal = X[:, 0] + X[:, 5] + np.sin(3 * X[:, 0]) + np.sin(3 * X[:, 5]) + rng.normal(size=300)
    y = signal if kind is SecureBoostRegressor else (signal > 0).astype(int)
    free = kind(8, max_depth=4, partition=thirds(9, 3), encryption="none", random_state=0)
    held = kind(**free.get_params()).set_params(monotone_constraints={column: sign})
    changes, held_changes = (steps(model.fit(X, y), X, column) * sign for model in (free, held))
    assert changes.min() < 0  # otherwise this would say nothing
    assert held_changes.min() >= 0
    if sign > 0:
        assert held_changes.max() > 0


def test_large_targets_in_double_precision_are_held_too():
    """Raw scores are in double precision where targets are far from zero."""
    X, y = some_data("regression", n_rows=200)
    model = SecureBoostRegressor(
        4, max_depth=4, encryption="none", random_state=0, monotone_constraints={5: 1, 0: 1}
    ).fit(X, y + 1e9)
    assert model.base_score_.dtype == np.float64
    assert min(steps(model, X, column).min() for column in (0, 5)) >= 0


def test_all_ways_of_writing_give_one_model():
    X, y = some_data("binary")
    names = [f"c{i}" for i in range(9)]
    frame, partition = pd.DataFrame(X, columns=names), {"a": names[:4], "b": names[4:]}
    blocks = {party: frame[columns] for party, columns in partition.items()}
    signs = {"c1": 1, "c6": -1}
    line = [signs.get(name, 0) for name in names]
    parameters = {"n_estimators": 2, "max_depth": 3, "encryption": "none", "random_state": 0}
    scores = [
        SecureBoostClassifier(**parameters, partition=partition, monotone_constraints=written)
        .fit(data, y)
        .decision_function(data)
        for data in (frame, blocks)
        for written in (
            signs,
            line,
            tuple(line),
            {"a": {"c1": 1}, "b": line[4:]},
            {"b": {"c6": -1}, "a": line[:4]},
        )
    ]
    for other in scores[1:]:
        assert (other == scores[0]).all()


def test_a_wrong_constraint_is_refused_before_a_key_is_made(monkeypatch):
    X, y = some_data("binary")
    monkeypatch.setattr("vfltree.growing.leader.obtain_keypair", None)
    with pytest.raises(ValueError, match="names column 9, which no party has"):
        SecureBoostClassifier(1, monotone_constraints={9: 1}, **WEAK).fit(X, y)
    with pytest.raises(ValueError, match="reg:absoluteerror finds the values of leaves anew"):
        SecureBoostRegressor(1, objective="reg:absoluteerror", monotone_constraints={0: 1}, **WEAK).fit(X, y)


def test_categories_have_no_order_to_be_monotone_in():
    X, y = some_data("binary")
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(9)])
    frame["c5"] = pd.Categorical(np.digitize(X[:, 5], [-1, 0, 1]))
    model = SecureBoostClassifier(1, max_depth=2, encryption="none", monotone_constraints={"c5": 1})
    with pytest.raises(ValueError, match="column 'c5' of party 'passive': the column holds categories"):
        model.fit(frame, y)
    model.set_params(monotone_constraints={"c6": 1, "c0": -1}).fit(frame, y)


def test_missing_values_alone_may_go_left():
    """Where a feature must not fall, rows that miss it and score low stand left of all others."""
    x = np.array([np.nan] * 40 + [0.0] * 20 + [1.0] * 20)
    y = np.array([0.0] * 40 + [1.0] * 40)
    X = np.stack([np.zeros(80), x], axis=1)
    model = SecureBoostRegressor(1, max_depth=1, encryption="none", monotone_constraints={1: 1}).fit(X, y)
    (split,) = np.concatenate([table.thresholds for table in model._passive_models.values()])
    assert split == -np.inf
    scores = model.predict(np.array([[0, np.nan], [0, -5.0], [0, 9.0], [0, -np.inf]]))
    assert scores[0] < scores[1] == scores[2] == scores[3]


# ---- what crosses


class Teller(PassiveParty):
    """A passive party whose answers a test may change, and that keeps them."""

    lie, kind = staticmethod(lambda answer: answer), None

    def receive(self, message):
        answer = super().receive(message)
        if self.kind is not None and isinstance(answer, self.kind):
            answer = self.lie(answer)
        self.told.append(answer)
        return answer


def train(signs, kind=None, lie=None):
    X, y = some_data("binary", n_rows=120)
    shop = Teller(X[:, 2:], name="shop", random_seed=0, signs=signs)
    shop.told, shop.kind, shop.lie = [], kind, lie
    settings = BoostSettings(n_estimators=2, max_depth=3, encryption="none")
    active = ActiveParty(X[:, :2], y, passive_parties=["shop"], settings=settings, random_seed=0)
    with InProcessNetwork({"shop": shop}) as network:
        return shop, network.run(active)


def test_a_party_without_constraints_tells_no_signs():
    shop, _ = train(None)
    assert not shop.told[0].constrained
    assert {answer.signs for answer in shop.told if hasattr(answer, "signs")} == {None}


def test_signs_are_told_once_a_round_and_for_chosen_splits_without_names():
    shop, result = train([1, 0, 0, -1, 0, 0, 0])
    assert shop.told[0].constrained
    roots = [answer.signs for answer in shop.told if isinstance(answer, Histograms) and answer.level == 0]
    below = [answer.signs for answer in shop.told if isinstance(answer, Histograms) and answer.level > 0]
    assert [sorted(signs.tolist()) for signs in roots] == [[-1, 0, 0, 0, 0, 0, 1]] * 2
    assert len({tuple(signs) for signs in roots}) == 2  # in the secret order of the round
    assert set(below) == {None}
    assert sum(tree.n_leaves for tree in result_trees(result)) > 4


@pytest.mark.parametrize(
    ("kind", "lie"),
    [
        (Histograms, lambda answer: replace(answer, signs=None)),
        (Histograms, lambda answer: replace(answer, signs=np.ones(6, np.int8))),
        (Histograms, lambda answer: replace(answer, signs=np.full(7, 2, np.int8))),
        (SplitsRecorded, lambda answer: replace(answer, signs=None)),
        (SplitsRecorded, lambda answer: replace(answer, signs=np.full(99, 1, np.int8))),
        (SplitsRecorded, lambda answer: replace(answer, signs=answer.signs + np.int8(3))),
        (SplitsRecorded, lambda answer: replace(answer, signs=answer.signs[:, None])),
    ],
)
def test_signs_that_cannot_be_are_the_peers_error(kind, lie):
    with pytest.raises(RemoteProtocolError, match=r"'shop'.*signs of -1, 0 or 1 were due"):
        train([1, 0, 0, -1, 0, 0, 1], kind, lie)


def test_a_sign_that_no_candidate_has_is_the_peers_error():
    with pytest.raises(
        RemoteProtocolError, match=r"'shop'.*a feature of sign -1 was not among those asked for"
    ):
        train([1] * 7, SplitsRecorded, lambda answer: replace(answer, signs=-answer.signs))


def test_a_party_that_denied_constraints_cannot_bring_some_later():
    _, plain = train(None)
    _, denied = train([1] * 7, Joined, lambda answer: replace(answer, constrained=False))
    assert (plain.gain == denied.gain).all()


@pytest.mark.parametrize("signs", [[1], [2] + [0] * 6, np.zeros((7, 1))])
def test_signs_of_a_party_by_hand_fit_its_features(signs):
    with pytest.raises(ValueError, match="7 features need as many signs"):
        PassiveParty(np.zeros((3, 7)), signs=signs)
