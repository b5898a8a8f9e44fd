"""Rows matched by explicit IDs: every row finds its own parts, whatever order the parties hold them in."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from tests.secureboost.small import CONST4, PROBA4, XA4, Y4, blocks, boost1, positive
from vflparty import InProcessNetwork
from vfltree import RowsLeftOutWarning, SecureBoostClassifier, SecureBoostRegressor, load_active
from vfltree.growing.prediction import ActivePredictor
from vfltree.secureboost import PassiveParty

pytestmark = pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning")

ZEROS4 = np.zeros((4, 1))
SAME = [[1, 2, 3, 4], [1, 2, 3, 4]]


def joined_by_hand(n_rows=60, seed=0):
    """Two parties with 10 rows of their own each and the rest in common, in different orders; labels by the bank's."""
    rng = np.random.default_rng(seed)
    whole = rng.normal(size=(n_rows, 4))
    y = (whole[:, 0] + whole[:, 2] > 0).astype(int)
    names = np.array([f"id{i:03d}" for i in rng.permutation(n_rows)])
    bank, shop = rng.permutation(n_rows)[10:], rng.permutation(n_rows)[10:]
    common = [i for i in bank if i in set(shop)]
    X = {"bank": whole[bank, :2], "shop": whole[shop, 2:]}
    return X, y[bank], {"bank": names[bank], "shop": names[shop]}, (whole[common], y[common], common, bank)


class TestTraining:
    def test_every_row_is_matched_by_its_id(self):
        shop = np.array([[3.0], [2.0], [1.0], [0.0]])
        ids = [[1, 2, 3, 4], [4, 3, 2, 1]]
        model = boost1().fit(blocks(ZEROS4, shop), Y4, ids=ids)
        proba = model.predict_proba(blocks(ZEROS4, shop), ids=ids)[:, 1]
        np.testing.assert_allclose(proba, PROBA4, atol=1e-6)

    def test_common_rows_are_trained_on_and_the_counts_are_told_once(self):
        first, second = np.zeros((5, 1)), np.array([[9.0], [5.0], [4.0], [2.0]])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = boost1().fit(blocks(first, second), [0, 0, 1, 1, 1], ids=[[1, 2, 3, 4, 5], [9, 5, 4, 2]])
        told = [w for w in caught if issubclass(w.category, RowsLeftOutWarning)]
        assert len(told) == 1
        assert "5 rows of party 'a', 4 rows of party 'b'; 3 common" in str(told[0].message)
        assert told[0].filename == __file__
        assert model.n_rows_ == 3
        # Labels follow the IDs: 2 is a 0, 4 and 5 are 1, and so b splits below 4.
        proba = model.predict_proba(blocks(np.zeros((3, 1)), second[1:]), ids=[[2, 4, 5], [5, 4, 2]])[:, 1]
        assert proba[0] < 0.5 < proba[1] == proba[2]

    def test_a_join_equals_training_on_rows_joined_by_hand(self):
        X, y, ids, (whole, labels, common, bank) = joined_by_hand()
        weights = np.linspace(1, 2, len(y))
        with pytest.warns(RowsLeftOutWarning):
            model = SecureBoostClassifier(3, encryption="none").fit(X, y, sample_weight=weights, ids=ids)
        place = {row: at for at, row in enumerate(bank)}
        by_hand = SecureBoostClassifier(3, encryption="none").fit(
            {"bank": whole[:, :2], "shop": whole[:, 2:]},
            labels,
            sample_weight=weights[[place[i] for i in common]],
        )
        rows = {"bank": whole[:, :2], "shop": whole[:, 2:]}
        assert model.n_rows_ == len(common)
        assert (model.predict_proba(rows) == by_hand.predict_proba(rows)).all()

    def test_evaluation_sets_are_matched_by_ids_and_by_an_index(self):
        X, y, ids, (whole, labels, _, _) = joined_by_hand()
        rows = {"bank": whole[:, :2], "shop": whole[:, 2:]}
        names, other = np.arange(len(labels)), np.random.default_rng(1).permutation(len(labels))
        shuffled = {"bank": rows["bank"], "shop": rows["shop"][other]}
        frames = {
            "bank": pd.DataFrame(rows["bank"], index=names),
            "shop": pd.DataFrame(shuffled["shop"], index=names[other]),
        }
        given = {"bank": names, "shop": names[other]}

        def losses(eval_set, ids_eval_set=None):
            with pytest.warns(RowsLeftOutWarning):
                model = SecureBoostClassifier(3, encryption="none").fit(
                    X, y, ids=ids, eval_set=eval_set, ids_eval_set=ids_eval_set
                )
            return [of_set["logloss"] for of_set in model.evals_result_.values()]

        (right,) = losses((rows, labels))
        assert losses((shuffled, labels)) != [right]
        assert losses((shuffled, labels), given) == [right]
        assert losses((shuffled, labels), list(given.values())) == [right]
        assert losses([(frames, labels), (shuffled, labels)], [None, given]) == [right, right]

    @pytest.mark.parametrize(
        ("eval_set", "ids", "message"),
        [
            (None, [SAME], "ids_eval_set needs eval_set"),
            ([(blocks(XA4, CONST4), Y4)], SAME, "holds 2 sets, eval_set has 1"),
            ([(blocks(XA4, CONST4), Y4)], {"a": [1], "b": [1]}, "holds a dict"),
            (
                [(blocks(XA4, CONST4), Y4)],
                [[[1, 2, 3, 4], [1, 2, 3, 9]]],
                "eval_set 0: .*'b' lacks 1 of the 4",
            ),
            ([(blocks(XA4, CONST4), Y4)], [[[1, 2, 3], [1, 2, 3, 4]]], "eval_set 0: .*3 row IDs for 4 rows"),
        ],
    )
    def test_ids_of_evaluation_sets_that_cannot_be_are_refused(self, eval_set, ids, message):
        with pytest.raises(ValueError, match=message):
            boost1().fit(blocks(XA4, CONST4), Y4, eval_set=eval_set, ids_eval_set=ids)

    def test_the_same_ids_in_any_order_warn_about_nothing(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RowsLeftOutWarning)
            model = boost1().fit(blocks(XA4, CONST4), Y4, ids={"b": [4, 3, 2, 1], "a": [1, 2, 3, 4]})
        assert model.n_rows_ == 4

    def test_without_ids_all_rows_are_counted(self):
        assert boost1().fit(blocks(XA4, CONST4), Y4).n_rows_ == 4

    def test_partition_says_who_is_active_and_in_which_order_lists_come(self):
        # By the lists, row i of "b" is row 4 - i of "a", whose values fall: labels rise with them again.
        model = boost1(partition={"b": [0], "a": [0]}).fit(
            blocks(XA4[::-1], ZEROS4), Y4, ids=[SAME[0], [4, 3, 2, 1]]
        )
        assert model.parties_ == ("b", "a")
        rows = {"b": ZEROS4, "a": XA4}
        np.testing.assert_allclose(model.predict_proba(rows)[:, 1], PROBA4, atol=1e-6)

    def test_ids_replace_an_index(self):
        first = pd.DataFrame(XA4, columns=["x"], index=[7, 7, 7, 7])
        second = pd.DataFrame(CONST4, columns=["z"], index=list("abcd"))
        model = boost1().fit(blocks(first, second), pd.Series(Y4), ids=SAME)
        proba = model.predict_proba(blocks(first.iloc[[2, 0, 3, 1]], second), ids=[[3, 1, 4, 2], SAME[1]])[
            :, 1
        ]
        np.testing.assert_allclose(proba, PROBA4[[2, 0, 3, 1]], atol=1e-6)

    def test_ids_of_tuples_text_and_large_integers_work(self):
        for make in (lambda i: ("clinic", i), str, lambda i: 2**70 + i):
            ids = [[make(i) for i in order] for order in SAME]
            model = boost1().fit(blocks(XA4, CONST4), Y4, ids=ids)
            np.testing.assert_allclose(
                model.predict_proba(blocks(XA4, CONST4), ids=ids)[:, 1], PROBA4, atol=1e-6
            )


class TestRefusals:
    def test_duplicates_are_refused_with_party_and_number_and_no_id(self):
        with pytest.raises(ValueError, match=r"party 'b': 1 of 3 IDs appear more than once") as caught:
            boost1().fit(blocks(XA4, XA4), Y4, ids=[[101, 102, 103, 104], [101, 101, 102, 103]])
        assert "10" not in str(caught.value).replace("1 of 3", "")
        model = boost1().fit(blocks(XA4, CONST4), Y4)
        with pytest.raises(ValueError, match=r"party 'a': 1 of 3 IDs"):
            model.predict(blocks(XA4, CONST4), ids=[[1, 1, 2, 3], SAME[1]])

    def test_nothing_in_common_is_refused_with_the_kinds_of_ids(self):
        with pytest.raises(ValueError, match=r"no common IDs.*'a': int, 'b': str"):
            boost1().fit(blocks(XA4, XA4), Y4, ids=[[1, 2, 3, 4], ["1", "2", "3", "4"]])

    @pytest.mark.parametrize(
        ("ids", "words"),
        [
            ([[1, 2, 3], [1, 2, 3, 4]], "party 'a': 3 row IDs for 4 rows"),
            ([[1, 2, 3, 4]], "1 lists for the 2 parties"),
            ({"a": [1, 2, 3, 4]}, r"nothing about parties \['b'\]"),
            ({"a": [1, 2, 3, 4], "c": [1, 2, 3, 4]}, r"names parties \['c'\]"),
            ([[1, 2, None, 4], [1, 2, 3, 4]], "party 'a', row 2 has no ID"),
        ],
    )
    def test_ids_that_do_not_fit_are_named(self, ids, words):
        with pytest.raises(ValueError, match=words):
            boost1().fit(blocks(XA4, CONST4), Y4, ids=ids)

    def test_labels_and_weights_must_be_the_active_partys(self):
        with pytest.raises(ValueError, match="y has 3 values, party 'a' has 4 rows"):
            boost1().fit(blocks(XA4, CONST4), Y4[:3], ids=SAME)
        with pytest.raises(ValueError, match="sample_weight has 3 values"):
            boost1().fit(blocks(XA4, CONST4), Y4, sample_weight=[1, 1, 1], ids=SAME)

    def test_labels_indexed_in_another_order_are_refused(self):
        with pytest.raises(ValueError, match="another order"):
            boost1().fit(
                blocks(pd.DataFrame(XA4), pd.DataFrame(CONST4)), pd.Series(Y4, index=[4, 3, 2, 1]), ids=SAME
            )

    def test_one_matrix_has_no_ids(self):
        X = np.hstack([XA4, CONST4])
        with pytest.raises(ValueError, match="one matrix"):
            boost1().fit(X, Y4, ids=SAME)
        with pytest.raises(ValueError, match="one matrix"):
            boost1().fit(X, Y4).predict(X, ids=SAME)


class TestPrediction:
    def test_a_result_belongs_to_the_active_partys_row(self):
        model = boost1().fit(blocks(XA4, CONST4), Y4)
        order = [2, 0, 3, 1]
        plain = positive(model, blocks(XA4, CONST4))
        moved = model.predict_proba(blocks(XA4[order], CONST4), ids=[[3, 1, 4, 2], [1, 2, 3, 4]])[:, 1]
        assert (moved == plain[order]).all()

    def test_every_kind_of_prediction_takes_ids(self):
        X, y, ids, _ = joined_by_hand()
        with pytest.warns(RowsLeftOutWarning):
            model = SecureBoostClassifier(3, encryption="none").fit(X, y, ids=ids)
        keep = [i for i, name in enumerate(ids["bank"]) if name in set(ids["shop"])]
        rows = {"bank": X["bank"][keep], "shop": X["shop"]}
        row_ids = {"bank": ids["bank"][keep], "shop": ids["shop"]}
        shop = [list(ids["shop"]).index(name) for name in row_ids["bank"]]
        aligned = {"bank": rows["bank"], "shop": X["shop"][shop]}
        for method in ("predict", "predict_proba", "decision_function", "apply"):
            assert (getattr(model, method)(rows, ids=row_ids) == getattr(model, method)(aligned)).all(), (
                method
            )
        assert model.prediction_traffic(rows, ids=row_ids)["bytes"].sum() > 0
        regressor = SecureBoostRegressor(1, encryption="none").fit(aligned, y[keep])
        assert (regressor.predict(rows, ids=row_ids) == regressor.predict(aligned)).all()

    def test_an_id_unknown_to_a_party_is_an_error_with_party_and_count(self):
        model = boost1().fit(blocks(ZEROS4, XA4), Y4, ids=SAME)
        with pytest.raises(ValueError, match=r"party 'b' lacks 2 of the 4 row IDs"):
            model.predict(blocks(ZEROS4, XA4), ids=[[1, 2, 8, 9], [1, 2, 3, 4]])

    def test_rows_that_only_a_passive_party_has_are_not_predicted(self):
        model = boost1().fit(blocks(ZEROS4, XA4), Y4)
        proba = model.predict_proba(blocks(ZEROS4[:2], XA4), ids=[[4, 1], SAME[1]])[:, 1]
        np.testing.assert_allclose(proba, PROBA4[[3, 0]], atol=1e-6)

    def test_an_absent_party_that_is_not_needed_needs_no_ids(self):
        model = boost1().fit(blocks(XA4, CONST4), Y4)
        np.testing.assert_allclose(
            model.predict_proba({"a": XA4}, ids={"a": SAME[0]})[:, 1], PROBA4, atol=1e-6
        )
        model = boost1().fit(blocks(CONST4, XA4), Y4)
        with pytest.raises(ValueError, match=r"party 1 \(b\) is needed"):
            model.predict({"a": CONST4}, ids={"a": SAME[0]})

    def test_an_active_party_without_features_gives_the_order(self):
        model = boost1().fit({"a": None, "b": XA4}, Y4, ids=[SAME[0], SAME[1]])
        proba = model.predict_proba({"b": XA4}, ids={"a": [3, 1], "b": SAME[1]})[:, 1]
        np.testing.assert_allclose(proba, PROBA4[[2, 0]], atol=1e-6)

    def test_the_active_party_alone_sends_the_digest_of_its_ids(self, tmp_path):
        X = blocks(ZEROS4, XA4)
        model = boost1().fit(X, Y4)
        paths = model.save(tmp_path)
        names = [f"person {i}" for i in range(4)]

        def ask(setup):
            shop = PassiveParty.from_file(paths["b"], XA4, ids=names)
            return InProcessNetwork({"b": shop}, leader="a").run(ActivePredictor.from_setup(setup))

        alone = load_active(paths["a"], ask)
        assert (alone.predict_proba(ZEROS4, ids=names) == model.predict_proba(X)).all()
