"""Categorical columns: values matched and never codes, XGBoost's trees, and lists that stay with their party."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from sklearn.base import clone

from tests.secureboost.small import CONST4, WEAK, XA4, Y4, assert_same_model, blocks, boost1
from tests.secureboost.test_protocol import N_ROWS, ROOT, gradients, record
from tests.secureboost.test_xgboost_parity import whole_table
from tests.tree.xgboost_judge import tree_differences
from vflparty import InProcessNetwork, RemoteProtocolError, codec
from vfltree import SecureBoostClassifier, SecureBoostRegressor
from vfltree.bin_groups import child_groups, regroup, root_groups
from vfltree.categories import Categories, category_key, category_value
from vfltree.category_splits import _of_categories
from vfltree.coding import encode_column
from vfltree.growing.checks import check_table
from vfltree.growing.masks import pack_masks
from vfltree.growing.messages import CategoryLists, Records
from vfltree.growing.models import record_table, records_message, result_trees
from vfltree.growing.prediction import ActivePredictor
from vfltree.saving import load, load_active
from vfltree.secureboost import ActiveParty, BoostSettings, PassiveParty
from vfltree.secureboost.messages import (
    Histograms,
    JoinPrediction,
    JoinTraining,
    RouteRows,
    SumChildren,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]

TOWNS = [f"town {letter}" for letter in "QWERTYUIOPASDFGHJKLZ"]
COLOURS = ["red", "green", "blue"]
PLAIN = {"encryption": "none", "random_state": 1}


@cache
def some_frame(task: str = "binary", missing: bool = True, n_rows: int = 240) -> tuple[pd.DataFrame, Any]:
    """Columns of categories and of numbers, two of them at each of three parties, and targets they move."""
    rng = np.random.default_rng(0)
    codes = {"town": rng.integers(0, 20, n_rows), "colour": rng.integers(0, 3, n_rows),
             "grade": rng.integers(0, 6, n_rows)}  # fmt: skip
    frame = pd.DataFrame(
        {
            "age": rng.normal(size=n_rows).round(1),
            "colour": pd.Categorical.from_codes(codes["colour"], COLOURS),
            "town": pd.Categorical.from_codes(codes["town"], TOWNS),
            "pay": rng.normal(size=n_rows),
            "grade": pd.Categorical.from_codes(codes["grade"], [3, 1, 4, 15, 92, 6]),
            "debt": rng.normal(size=n_rows).round(1),
        }
    )
    score = frame["age"] + rng.normal(size=20)[codes["town"]] + rng.normal(size=3)[codes["colour"]]
    score = score + rng.normal(size=6)[codes["grade"]] - frame["debt"] + 0.3 * rng.normal(size=n_rows)
    if missing:
        frame = frame.mask(rng.random(frame.shape) < 0.1)
    if task == "regression":
        return frame, score.to_numpy() * 10
    edges = [0] if task == "binary" else [-2, -0.7, 0.7, 2]
    return frame, np.digitize(score, edges)


PARTIES = {
    2: {"a": ["age", "colour"], "p1": ["town", "pay", "grade", "debt"]},
    3: {"a": ["age", "colour"], "p1": ["town", "pay"], "p2": ["grade", "debt"]},
}


def estimator(task: str, rounds: int = 2, **parameters: Any):
    kind = SecureBoostRegressor if task == "regression" else SecureBoostClassifier
    return kind(rounds, max_depth=3, **{"random_state": 1, **parameters})


@cache
def plain(task: str, n_parties: int, missing: bool = True):
    X, y = some_frame(task, missing)
    return estimator(task, partition=PARTIES[n_parties], encryption="none").fit(X, y)


class TestEncryptedEqualsPlain:
    @pytest.mark.parametrize("network", ["inprocess", "process"])
    @pytest.mark.parametrize(
        ("task", "n_parties", "missing"),
        [("binary", 2, False), ("binary", 3, True), ("five", 2, True), ("regression", 3, True)],
    )
    def test_bit_for_bit(self, task, n_parties, missing, network):
        X, y = some_frame(task, missing)
        expected = plain(task, n_parties, missing)
        tables = [record_table(table) for table in expected._passive_models.values()]
        assert all(np.isnan(table.thresholds).any() for table in tables)
        model = estimator(task, partition=PARTIES[n_parties], network=network, **WEAK).fit(X, y)
        assert_same_model(model, expected, X)
        assert model.costs_["decryptions"] > 0

    def test_the_secret_feature_order_changes_nothing(self):
        X, y = some_frame()
        for seed in (2, 3):
            model = estimator("binary", partition=PARTIES[2], encryption="none", random_state=seed).fit(X, y)
            assert_same_model(model, plain("binary", 2), X)

    def test_predictions_of_training_rows_are_the_training_scores(self):
        X, _ = some_frame("five")
        model = plain("five", 3)
        raw = np.tile(model.base_score_, (len(X), 1))
        starts = np.concatenate([[0], np.cumsum(model._active_model.sizes)])
        for tree, leaves in enumerate(model.apply(X).T):
            raw[:, tree % 5] += model._active_model.value[starts[tree] + leaves, 0]
        assert (model.decision_function(X) == raw).all()


class TestWaysToSaySo:
    """The same columns, said in other ways: the same model."""

    def test_one_frame_a_dict_of_frames_and_arrays_agree(self):
        X, y = some_frame()
        expected = plain("binary", 3)
        as_blocks = {party: X[columns] for party, columns in PARTIES[3].items()}
        assert_same_model(estimator("binary", encryption="none").fit(as_blocks, y), expected, as_blocks)
        # An array has no dtype to say another order than that of the values, and order decides ties.
        ordered = X.assign(**{name: X[name].cat.reorder_categories(sorted(X[name].cat.categories))
                              for name in ("town", "colour", "grade")})  # fmt: skip
        expected = estimator("binary", partition=PARTIES[3], encryption="none").fit(ordered, y)
        table = X.astype(object).to_numpy()
        partition = {"a": [0, 1], "p1": [2, 3], "p2": [4, 5]}
        models = [
            estimator("binary", partition=partition, encryption="none", categorical_features=named).fit(
                table, y
            )
            for named in ([1, 2, 4], [False, True, True, False, True, False], {"a": [1], "p1": 2, "p2": [4]})
        ]
        for model in models:
            assert model._active_model == expected._active_model
            assert model._passive_models == expected._passive_models

    def test_a_party_names_its_own_columns_by_name_or_number(self):
        X, y = some_frame()
        texts = X.astype({"town": object, "colour": object, "grade": object})
        as_blocks = {party: texts[columns] for party, columns in PARTIES[3].items()}
        models = [
            estimator("binary", encryption="none", categorical_features=named).fit(as_blocks, y)
            for named in (
                {"a": ["colour"], "p1": ["town"], "p2": ["grade"]},
                {"a": 1, "p1": [0], "p2": [True, False]},
            )
        ]
        assert_same_model(models[0], models[1], as_blocks)
        by_name = estimator(
            "binary",
            partition=PARTIES[3],
            encryption="none",
            categorical_features=["town", "colour", "grade"],
        ).fit(texts, y)
        assert_same_model(models[0], by_name, as_blocks)

    def test_the_estimator_clones_and_keeps_the_parameter_as_given(self):
        named = {"a": ["colour"]}
        assert clone(SecureBoostClassifier(categorical_features=named)).categorical_features == named


class TestValuesNotCodes:
    """Other codes in the frame to predict, categories not seen before, and columns of another kind."""

    B = pd.DataFrame({"c": pd.Categorical(["x", "x", "y", "y"])})

    def test_only_the_last_category_is_there_to_predict(self):
        later = pd.DataFrame({"c": pd.Categorical(["y", "y", "y", "y"])})
        for first, second in ((CONST4, self.B), (self.B, CONST4)):
            model = boost1().fit(blocks(first, second), Y4)
            new = blocks(CONST4, later) if second is self.B else blocks(later, CONST4)
            assert model.predict(new).tolist() == [1, 1, 1, 1]
            assert model.predict(blocks(first, second)).tolist() == Y4.tolist()

    @pytest.mark.parametrize(
        "column",
        [
            pd.Categorical(["y", "x", "y", "x"], categories=["y", "z", "x"]),
            pd.Categorical(["y", "x", "y", "x"], ordered=True),
            ["y", "x", "y", "x"],
            pd.array(["y", "x", "y", "x"], dtype="string"),
        ],
        ids=["other codes", "ordered", "objects", "string dtype"],
    )
    def test_however_the_values_come(self, column):
        model = boost1().fit(blocks(CONST4, self.B), Y4)
        new = pd.DataFrame({"c": column})
        assert model.predict(blocks(CONST4, new)).tolist() == [1, 0, 1, 0]
        whole = pd.DataFrame({"k": 5.0, "c": self.B["c"]})
        assert boost1().fit(whole, Y4).predict(whole.assign(c=new["c"])).tolist() == [1, 0, 1, 0]

    def test_numbers_are_one_category_whatever_their_type(self):
        given = pd.DataFrame({"c": pd.Categorical([7, 7, 9, 9])})
        model = boost1().fit(blocks(CONST4, given), Y4)
        for new in ([9.0, 7.0], [np.int8(9), np.int8(7)]):
            assert model.predict(blocks(CONST4[:2], pd.DataFrame({"c": new}))).tolist() == [1, 0]
            assert model.predict(blocks(CONST4[:2], np.array(new)[:, None])).tolist() == [1, 0]
        text = pd.DataFrame({"c": ["9", "7"]})  # other values, both unseen
        assert len(set(model.decision_function(blocks(CONST4[:2], text)))) == 1

    def test_an_unseen_category_counts_as_missing(self):
        given = pd.DataFrame({"c": pd.Categorical(["x", "x", "y", None])})
        model = boost1().fit(blocks(CONST4, given), Y4)
        new = pd.DataFrame({"c": pd.Categorical(["z", None])})
        scores = model.decision_function(blocks(CONST4[:2], new))
        assert scores[0] == scores[1] == model.decision_function(blocks(CONST4, given))[3]

    def test_where_training_saw_none_missing_goes_left_with_the_many(self):
        given = pd.DataFrame({"c": pd.Categorical(["x", "x", "y", "z"])})
        model = boost1().fit(blocks(CONST4, given), [0, 0, 1, 0])
        scores = model.decision_function(blocks(CONST4[:2], pd.DataFrame({"c": ["w", "x"]})))
        assert scores[0] == scores[1]

    def test_a_column_of_numbers_does_not_become_categorical_at_prediction(self):
        model = boost1().fit(blocks(CONST4, pd.DataFrame({"c": [0, 0, 1, 1]})), Y4)
        with pytest.raises(TypeError, match=r"'c' of party 'b' is categorical, in training it held numbers"):
            model.predict(blocks(CONST4, self.B))
        whole = pd.DataFrame({"k": 5.0, "c": [0, 0, 1, 1]})
        with pytest.raises(TypeError, match=r"'c' .*in training it held numbers"):
            boost1().fit(whole, Y4).predict(whole.assign(c=self.B["c"]))

    def test_columns_in_another_order_are_matched_by_name(self):
        X, _ = some_frame()
        as_blocks = {party: X[columns[::-1]] for party, columns in PARTIES[3].items()}
        assert np.array_equal(
            plain("binary", 3).decision_function(X), plain("binary", 3).decision_function(as_blocks)
        )


class TestFiles:
    """A model on disk: each party's list is in its own file, and values are matched there too."""

    @pytest.mark.parametrize("form", ["frame", "blocks"])
    def test_a_loaded_model_predicts_the_same(self, form, tmp_path):
        X, y = some_frame()
        as_blocks = {party: X[columns] for party, columns in PARTIES[3].items()}
        model = (
            plain("binary", 3)
            if form == "frame"
            else estimator("binary", encryption="none").fit(as_blocks, y)
        )
        again = load(list(model.save(tmp_path).values()))
        new = X if form == "frame" else {party: X[columns[::-1]] for party, columns in PARTIES[3].items()}
        assert np.array_equal(again.decision_function(new), model.decision_function(new))
        texts = X.astype({name: object for name in ("town", "colour", "grade")})
        texts = texts if form == "frame" else {party: texts[columns] for party, columns in PARTIES[3].items()}
        assert np.array_equal(again.decision_function(texts), model.decision_function(new))

    def test_parties_predict_out_of_their_own_files(self, tmp_path):
        X, _ = some_frame()
        model = plain("binary", 3)
        paths = model.save(tmp_path)
        passive = {
            party: PassiveParty.from_file(paths[party], X[PARTIES[3][party]]) for party in ("p1", "p2")
        }

        def ask(setup):
            with InProcessNetwork(passive) as network:
                return network.run(ActivePredictor.from_setup(setup))

        alone = load_active(paths["a"], ask)
        assert np.array_equal(alone.decision_function(X[PARTIES[3]["a"]]), model.decision_function(X))

    def test_each_file_holds_its_own_names_only(self, tmp_path):
        X, y = some_frame()
        texts = X.astype({name: object for name in ("town", "colour", "grade")})
        named = {"a": ["colour"], "p1": ["town"], "p2": ["grade"]}
        fitted = estimator("binary", partition=PARTIES[3], encryption="none", categorical_features=named).fit(
            texts, y
        )
        files = {party: path.read_bytes() for party, path in fitted.save(tmp_path).items()}
        holds = {
            party: [word in data for word in (b"town Q", b"green", b"colour", b"grade")]
            for party, data in files.items()
        }
        assert holds == {
            "a": [False, True, True, False],
            "p1": [True, False, False, False],
            "p2": [False, False, False, True],
        }

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda t: replace(t, categories=Categories({0: t.categories.lists[0][:2]})), "does not list"),
            (
                lambda t: replace(t, categories=Categories.none()),
                "by a threshold, or one of numbers by a set",
            ),
            (
                lambda t: replace(t, categories=Categories({0: t.categories.lists[0], 7: ("sx",)})),
                "outside the 2",
            ),
        ],
        ids=["list too short", "no list", "list of another column"],
    )
    def test_tables_that_contradict_their_lists_are_refused(self, change, message):
        table = record_table(plain("binary", 3)._passive_models["p1"])
        check_table(table, 2)
        with pytest.raises(ValueError, match=message):
            check_table(change(table), 2)


class TestKeys:
    @pytest.mark.parametrize(
        ("value", "key"),
        [("red", "sred"), ("", "s"), (7, "n7"), (7.0, "n7"), (True, "n1"), (np.int64(-3), "n-3"), (0.5, "n0.5"),
         (2**70, f"n{2**70}"), (np.inf, "ninf"), (-1e-300, "n-1e-300")],
    )  # fmt: skip
    def test_text_and_numbers_are_told_apart(self, value, key):
        assert category_key(value) == key
        assert category_value(category_key(value)) == value

    @pytest.mark.parametrize("value", [None, (1, 2), pd.Timestamp("2020-01-01"), 1j, b"x"])
    def test_other_values_are_refused(self, value):
        with pytest.raises(TypeError, match="must be text or a number"):
            category_key(value)

    def test_order_is_the_dtypes_else_numbers_then_text(self):
        dtype = pd.CategoricalDtype(["b", "a", "c"])
        codes, keys = encode_column(pd.Series(["a", "c", None, "a"], dtype=dtype))
        assert keys == ("sa", "sc")
        np.testing.assert_array_equal(codes, [0, 1, np.nan, 0])
        codes, keys = encode_column(np.array(["b", 10, 9, None, "a", np.nan], dtype=object))
        assert keys == ("n9", "n10", "sa", "sb")
        np.testing.assert_array_equal(codes, [3, 1, 0, np.nan, 2, np.nan])

    def test_lists_survive_their_message(self):
        lists = Categories({1: ("sa", "n1"), 4: ("sé",)})
        assert Categories.from_arrays(*lists.to_arrays()) == lists
        with pytest.raises(ValueError, match="3 categories do not fall into 2 columns"):
            Categories.from_arrays([1, 4], [2, 2], ["sa", "n1", "sé"])


class TestRefusals:
    @pytest.fixture(autouse=True)
    def no_key(self, monkeypatch):
        def refuse(*args, **kwargs):
            raise AssertionError("a key was made before the parameters were checked")

        monkeypatch.setattr("vfltree.growing.leader.obtain_keypair", refuse)

    @pytest.mark.parametrize("swap", [False, True])
    def test_more_categories_than_bins_name_party_column_and_both_numbers(self, swap):
        many = pd.DataFrame({"id": pd.Categorical([f"c{i}" for i in range(256)])})
        other = np.zeros((256, 1))
        pair = blocks(many, other) if swap else blocks(other, many)
        party = "a" if swap else "b"
        with pytest.raises(ValueError, match=rf"'id' of party '{party}' has 256 categories, at most 255"):
            SecureBoostClassifier(**WEAK).fit(pair, np.arange(256) % 2)
        whole = many.assign(x=0.0)
        with pytest.raises(ValueError, match="'id' of party 'active' has 256 categories, at most 255"):
            SecureBoostClassifier(**WEAK).fit(whole, np.arange(256) % 2)

    @pytest.mark.parametrize(
        ("named", "message"),
        [
            (["c"], "must be a dict from some of"),
            ({"b": ["x"]}, r"party 'b', categorical_features: unknown column 'x'"),
            ({"b": [3]}, r"party 'b', categorical_features: column 3 is out of range for 1"),
            ({"z": ["c"]}, "must be a dict from some of"),
        ],
    )
    def test_columns_that_a_party_does_not_have(self, named, message):
        model = SecureBoostClassifier(categorical_features=named, **WEAK)
        with pytest.raises(ValueError, match=message):
            model.fit(blocks(CONST4, pd.DataFrame({"c": ["x", "x", "y", "y"]})), Y4)

    @pytest.mark.parametrize(
        ("named", "message"),
        [
            (["x"], "categorical_features: unknown column 'x'"),
            ([5], "categorical_features: column 5 is out of range"),
            ({"a": ["d"]}, r"party 'a', categorical_features: columns \[1\] belong to others"),
            ({"z": ["c"]}, r"names parties \['z'\]"),
        ],
    )
    def test_columns_that_are_not_there_in_one_frame(self, named, message):
        frame = pd.DataFrame({"c": ["x", "x", "y", "y"], "d": ["x", "x", "y", "y"]})
        model = SecureBoostClassifier(categorical_features=named, partition={"a": ["c"], "b": ["d"]}, **WEAK)
        with pytest.raises((ValueError, TypeError), match=message):
            model.fit(frame.assign(c=XA4, d=XA4), Y4)

    def test_values_that_are_neither_text_nor_numbers_name_party_and_column(self):
        dates = pd.DataFrame({"c": pd.Categorical(pd.date_range("2020", periods=4))})
        with pytest.raises(TypeError, match=r"column 'c' of party 'b': a category must be text or a number"):
            SecureBoostClassifier(**WEAK).fit(blocks(CONST4, dates), Y4)

    @pytest.mark.parametrize("name", ["max_cat_to_onehot", "max_cat_threshold"])
    @pytest.mark.parametrize(("value", "error"), [(0, ValueError), (1.5, TypeError)])
    def test_numbers_of_categories_out_of_range(self, name, value, error):
        with pytest.raises(error, match=name):
            SecureBoostClassifier(**{name: value}).fit(blocks(CONST4, XA4), Y4)


class _XGBoostCuts:
    all_cuts: tuple[np.ndarray, ...]

    def _cuts_of(self, block):
        return tuple(self.all_cuts[i] for i in self._columns[block.party])


class CutClassifier(_XGBoostCuts, SecureBoostClassifier):
    pass


class CutRegressor(_XGBoostCuts, SecureBoostRegressor):
    pass


@pytest.mark.parametrize(
    "parameters",
    [{}, {"max_cat_to_onehot": 10, "max_cat_threshold": 5}, {"max_delta_step": 0.5}],
    ids=["plain", "one-hot, threshold", "max_delta_step"],
)
@pytest.mark.parametrize("task", ["binary", "five", "regression"])
def test_the_federated_model_is_xgboosts(task, parameters):
    X, y = some_frame(task, n_rows=400)
    X = X.astype({"age": np.float32, "pay": np.float32, "debt": np.float32})
    settings = {"max_bin": 32, "max_depth": 5, **parameters}
    objective = {"binary": "binary:logistic", "five": "multi:softprob", "regression": "reg:squarederror"}[
        task
    ]
    matrix = xgb.QuantileDMatrix(X, y, enable_categorical=True, max_bin=32)
    more = {"num_class": 5} if task == "five" else {}
    booster = xgb.train({"objective": objective, "tree_method": "hist", **settings, **more}, matrix, 12)
    bounds, cuts = matrix.get_quantile_cut()
    kind = CutRegressor if task == "regression" else CutClassifier
    model = kind(12, partition=PARTIES[3], **PLAIN, **settings)
    model.all_cuts = tuple(np.asarray(cuts[start + 1 : stop - 1], float) for start, stop in pairwise(bounds))
    model.fit(X, y)
    differences = tree_differences(
        result_trees(model._active_model), whole_table(model), booster, (bounds, cuts)
    )
    assert differences == []
    assert sum(np.isnan(record_table(t).thresholds).sum() for t in model._passive_models.values()) > 10
    mine = model.predict(X) if task == "regression" else model.predict_proba(X)
    mine = mine[:, 1] if task == "binary" else mine
    np.testing.assert_allclose(mine, booster.predict(matrix), rtol=1e-5, atol=1e-5)


# ---- what crosses


def coded_party(**changes: Any) -> PassiveParty:
    """Twelve rows: a column of numbers, one of four categories, and the gradients of a first round."""
    features = np.stack([np.arange(N_ROWS, dtype=float), np.arange(N_ROWS) % 4.0], axis=1)
    lists = Categories({1: ("sNorth", "sEast", "sSouth", "sWest")})
    party = PassiveParty(features, name="shop", random_seed=0, categories=lists, **changes)
    party.receive(JoinTraining(party._ids_digest, N_ROWS, 2, 1, 3, 30, "none", b""))
    return party


def slots_of(answer: Histograms) -> tuple[int, int]:
    """Slot of the numbers, slot of the categories."""
    assert sorted(answer.n_categories) == [0, 4]
    return int(answer.n_categories.argmin()), int(answer.n_categories.argmax())


def by_set(slot: int, mask: list[bool]):
    return replace(record(slot=slot, bin_=-1), sets=pack_masks([np.array(mask)]))


class TestTheConversation:
    def test_a_set_splits_the_rows_and_stays_in_the_owners_table(self):
        party = coded_party()
        _, slot = slots_of(party.receive(gradients()))
        answer = party.receive(by_set(slot, [True, False, True, False]))
        left = np.unpackbits(answer.left)[:N_ROWS].astype(bool)
        assert (left == (np.arange(N_ROWS) % 2 == 1)).all()
        table = party.records
        assert np.unpackbits(table.right[0])[:4].tolist() == [1, 0, 1, 0]
        assert np.isnan(table.thresholds[0])
        again = record_table(codec.decode(codec.encode(records_message(table)), (Records,)))
        assert again.categories == table.categories == Categories({1: ("sNorth", "sEast", "sSouth", "sWest")})

    def test_numbers_of_categories_are_told_at_the_root_only(self):
        party = coded_party()
        _, slot = slots_of(party.receive(gradients()))
        party.receive(by_set(slot, [True, False, True, False]))
        odd = np.arange(N_ROWS) % 2 == 1
        answer = party.receive(SumChildren(0, 1, np.array([ROOT]), pack_masks([odd])))
        assert answer.n_categories.size == 0

    @pytest.mark.parametrize(
        ("which", "change", "message"),
        [
            ("categories", {"bins": [2], "sets": []}, r"holds categories, it cannot be split at bin 2"),
            ("numbers", {"bins": [-1], "sets": [0b10100000]}, r"holds numbers, it cannot be split at bin -1"),
            ("categories", {"bins": [-1], "sets": [0b10100100]}, "beyond its last"),
            ("categories", {"bins": [-1], "sets": []}, "masks of 1 bytes were expected"),
            ("categories", {"bins": [-1], "sets": [128, 0]}, "masks of 1 bytes were expected"),
            ("categories", {"bins": [-1], "sets": [0]}, "empty set"),
            ("numbers", {"bins": [3], "sets": [128]}, "masks of 0 bytes were expected"),
            ("categories", {"bins": [-2], "sets": [128]}, "holds categories"),
            ("numbers", {"bins": [-2], "sets": []}, "names bin -2"),
        ],
    )
    def test_a_passive_party_refuses_splits_of_the_wrong_kind(self, which, change, message):
        party = coded_party()
        numbers, categories = slots_of(party.receive(gradients()))
        forged = record(slot=numbers if which == "numbers" else categories)
        forged = replace(
            forged, bins=np.array(change["bins"], np.int32), sets=np.array(change["sets"], np.uint8)
        )
        with pytest.raises(RemoteProtocolError, match=message):
            party.receive(forged)

    @pytest.mark.parametrize(
        "lie",
        [
            np.array([4], np.uint8),
            np.array([4, 0, 0], np.uint8),
            np.array([[4, 0]], np.uint8),
            np.array([255, 0], np.uint8),
        ],
        ids=["too few", "too many", "two dimensions", "more than bins"],
    )
    def test_an_active_party_refuses_numbers_of_categories_that_cannot_be(self, lie):
        class Liar(PassiveParty):
            def _sum_nodes(self, *asked):
                return replace(super()._sum_nodes(*asked), n_categories=lie)

        with pytest.raises(RemoteProtocolError, match=r"'shop'.*numbers of categories do not fit"):
            conversation(Liar)

    def test_prediction_answers_by_value_through_the_wire(self):
        trained = coded_party()
        _, slot = slots_of(trained.receive(gradients()))
        trained.receive(by_set(slot, [True, False, True, False]))
        new = Categories({1: ("sWest", "sNorth", "sAtlantis")})
        features = np.array([[0, 0.0], [0, 1], [0, 2], [0, np.nan]])
        party = PassiveParty(features, name="shop", records=trained.records, categories=new)
        party.receive(JoinPrediction(party._ids_digest, 4))
        answer = party.receive(RouteRows(np.full(4, ROOT), np.arange(4, dtype=np.int32)))
        assert np.unpackbits(answer.left)[:4].tolist() == [
            1,
            0,
            0,
            0,
        ]  # West left; North right; others missing


def conversation(kind: type[PassiveParty] = PassiveParty, words: tuple[str, ...] = ("sx", "sy", "sz", "sw")):
    """Everything that crossed while two parties of a categorical column each trained, and both halves."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (60, 2)).astype(float)
    y = (np.array([0, 3, 1, 2])[codes[:, 1].astype(int)] + codes[:, 0] > 2.5).astype(float)
    active = ActiveParty(
        codes[:, :1], y, passive_parties=["shop"], random_seed=0,
        settings=BoostSettings(n_estimators=2, max_depth=3, encryption="none"),
        categories=Categories({0: tuple(f"sactive{i}" for i in range(4))}),
    )  # fmt: skip
    features = np.column_stack([codes[:, 1], rng.normal(size=60).round(1)])
    passive = kind(features, name="shop", random_seed=0, categories=Categories({0: words}))
    with InProcessNetwork({"shop": passive}, record=True) as network:
        result = network.run(active)
        return [sent.frame for sent in network.transcript], result, passive.export_state()


class TestWhatStaysAtHome:
    NAMES = ("sZanzibar", "sYerevan", "sXanthi", "sWarsaw")

    @staticmethod
    def seen(frames: list[bytes], names: tuple[str, ...]) -> bool:
        return any(name[1:].encode() in frame for frame in frames for name in names)

    def test_names_of_categories_never_cross(self):
        frames, result, kept = conversation(words=self.NAMES)
        own = tuple(f"sactive{i}" for i in range(4))
        assert not self.seen(frames, self.NAMES + own)
        assert not self.seen([codec.encode(result)], self.NAMES)
        assert not self.seen([codec.encode(kept)], own)
        assert self.seen([codec.encode(kept)], self.NAMES)
        assert self.seen([codec.encode(result)], own)

    def test_a_list_that_crossed_would_be_seen(self):
        arrays = Categories({0: self.NAMES}).to_arrays()
        assert self.seen([codec.encode(CategoryLists(*arrays))], self.NAMES)

    def test_other_names_leave_every_frame_unchanged(self):
        assert conversation(words=self.NAMES)[0] == conversation()[0]

    def test_how_many_categories_there_are_is_seen(self):
        """The leak that the documentation admits: a category more, and the active party sees it."""
        frames = [conversation(words=(*names, "sextra"))[0] for names in (self.NAMES, self.NAMES)]
        assert frames[0] == frames[1]  # a category that no row has is not told
        shown = [
            codec.decode(frame, (Histograms,)) for frame in conversation()[0] if b"Histograms" in frame[:64]
        ]
        told = [sorted(answer.n_categories.tolist()) for answer in shown if answer.level == 0]
        assert told == [[0, 4], [0, 4]]


class TestMergedBins:
    """`min_rows_per_sum`: neighbouring categories share a sum, and go the same way where they do."""

    @pytest.mark.parametrize("seed", range(4))
    def test_a_set_snapped_to_groups_splits_the_sums_that_were_shown(self, seed):
        rng = np.random.default_rng(seed)
        sizes = np.array([7, 12, 3])  # of 12 bins and one for missing values
        counts = np.zeros((3, 13), dtype=np.int64)
        for feature, size in enumerate(sizes):
            counts[feature, :size] = rng.integers(0, 9, size)
            counts[feature, -1] = rng.integers(0, 12)
        groups, _ = child_groups(root_groups(counts, 8), counts // 2, 8)
        rows = (counts // 2)[..., None]
        shown = regroup(rows, groups.borders)[..., 0]
        for feature, size in enumerate(sizes):
            own = _of_categories(shown[feature][None], size)[0]
            missing = rows[feature].sum() - own.sum()
            for _ in range(20):
                right, missing_left = rng.random(size) < 0.5, bool(rng.random() < 0.5)
                snapped, snapped_left = groups.snap_set(feature, right, missing_left)
                went = rows[feature, :size, 0][snapped].sum() + (not snapped_left) * rows[feature, -1, 0]
                assert went == own[right].sum() + (not missing_left) * missing

    @pytest.mark.parametrize("network", ["inprocess", "process"])
    def test_encrypted_training_equals_plain(self, network):
        X, y = some_frame("five")
        settings = {"partition": PARTIES[3], "min_rows_per_sum": 12}
        expected = estimator("five", encryption="none", **settings).fit(X, y)
        model = estimator("five", network=network, **settings, **WEAK).fit(X, y)
        assert_same_model(model, expected, X)
        assert any(np.isnan(record_table(t).thresholds).any() for t in expected._passive_models.values())

    def test_a_set_without_sums_is_refused(self):
        party = coded_party(min_rows_per_sum=6)
        _, slot = slots_of(party.receive(gradients()))
        with pytest.raises(RemoteProtocolError, match="without sums"):
            party.receive(by_set(slot, [True, False, False, False]))
