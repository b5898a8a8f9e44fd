"""A model as XGBoost's: same predictions, nothing without consent, nothing that single precision would change."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.secureboost.small import CONST4, WEAK, XA4, Y4, blocks, boost1, some_data, thirds
from vflparty import WrongFileError, codec
from vfltree import SecureBoostClassifier, SecureBoostRegressor, load, load_active
from vfltree.growing.messages import Records
from vfltree.secureboost import export

xgboost = pytest.importorskip("xgboost")

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]
EVERYBODY = ["active", "p1", "p2"]


def singles(X):
    """X rounded to single precision, as float64."""
    return X.astype(np.float32).astype(np.float64)


def trained(task, n_rows=200, n_estimators=5, **parameters):
    """A model of three parties, its rows, and other rows, all float32 numbers."""
    X, y = some_data(task, n_rows=n_rows, missing=True)
    kind = SecureBoostClassifier if task in ("binary", "five") else SecureBoostRegressor
    partition = {"active": [8, 0, 3], "p1": [1, 2, 4], "p2": [7, 5, 6]}
    settings = {"max_depth": 4, "encryption": "none", "partition": partition, **parameters}
    model = kind(n_estimators, **settings).fit(singles(X), y)
    others, _ = some_data(task, n_rows=300, missing=True, seed=1)
    return model, singles(X), singles(others)


def raw_scores(booster, X):
    margin = booster.predict(xgboost.DMatrix(X), output_margin=True)
    return margin[:, None] if margin.ndim == 1 else margin


def predictions(model, X):
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)


class TestAgreement:
    @pytest.mark.parametrize("task", ["binary", "five", "regression"])
    def test_predictions_agree_on_single_precision_rows(self, task):
        model, X, others = trained(task)
        booster = model.to_xgboost(EVERYBODY)
        for rows in (X, others):
            expected = predictions(model, rows)
            found = booster.predict(xgboost.DMatrix(rows))
            np.testing.assert_allclose(
                found, expected[:, 1] if task == "binary" else expected, rtol=1e-6, atol=1e-6
            )
            np.testing.assert_allclose(raw_scores(booster, rows), model._predict(rows).raw_scores, rtol=1e-6)
        stumps = task == "five" and export._version(xgboost) < (
            3,
            1,
        )  # a round of start values, see docs/models.md
        assert booster.num_boosted_rounds() == 5 + stumps

    @pytest.mark.parametrize(
        "objective",
        ["reg:absoluteerror", "reg:pseudohubererror", "count:poisson", ("reg:quantileerror", [0.5]),
         ("reg:quantileerror", [0.2, 0.5, 0.9])],
    )  # fmt: skip
    @pytest.mark.parametrize("version", [(3, 2), (2, 1)])
    def test_every_objective_of_values_agrees(self, objective, version, monkeypatch):
        if version < (3, 1):
            monkeypatch.setattr(export, "_version", lambda xgboost: version)
        name, levels = objective if isinstance(objective, tuple) else (objective, [0.5])
        X, y = some_data("regression", n_rows=150, missing=True)
        y = np.abs(np.round(y)) if name == "count:poisson" else y
        model = SecureBoostRegressor(
            4, max_depth=3, encryption="none", objective=name, quantile_alpha=levels, partition=thirds(9, 3)
        ).fit(singles(X), y)
        booster = model.to_xgboost(EVERYBODY)
        expected, found = model.predict(singles(X)), booster.predict(xgboost.DMatrix(singles(X)))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)

    @pytest.mark.parametrize("task", ["binary", "five"])
    def test_a_model_trained_under_encryption_is_exported_the_same(self, task):
        plain, X, _ = trained(task, n_rows=80, n_estimators=2)
        sealed, _, _ = trained(task, n_rows=80, n_estimators=2, encryption="paillier", **WEAK)
        raws = [raw_scores(model.to_xgboost(EVERYBODY), X) for model in (plain, sealed)]
        assert (raws[0] == raws[1]).all()

    def test_a_model_that_was_stopped_early_has_only_the_rounds_it_predicts_with(self):
        X, y = some_data("binary", n_rows=200)
        X = singles(X)
        model = SecureBoostClassifier(40, early_stopping_rounds=3, encryption="none", learning_rate=1.0)
        model.fit(X[:120], y[:120], eval_set=(X[120:], y[120:]))
        booster = model.to_xgboost(["active", "passive"])
        assert booster.num_boosted_rounds() == model.n_rounds_ < 40
        assert (raw_scores(booster, X) == model._predict(X).raw_scores).all()

    def test_training_rows_in_double_precision_keep_their_sides(self):
        X, y = some_data("binary", n_rows=200)
        model = SecureBoostClassifier(4, max_bin=64, encryption="none", partition=thirds(9, 3)).fit(X, y)
        rounded = raw_scores(
            model.to_xgboost(EVERYBODY), X
        )  # XGBoost rounds the rows as it rounds thresholds
        assert (rounded == model._predict(X).raw_scores).all()

    @pytest.mark.parametrize("task", ["binary", "five", "regression"])
    def test_models_for_versions_with_one_base_score_agree_too(self, task, monkeypatch):
        model, X, _ = trained(task)
        monkeypatch.setattr(export, "_version", lambda xgboost: (2, 1))
        old = model.to_xgboost(EVERYBODY)
        np.testing.assert_allclose(raw_scores(old, X), model._predict(X).raw_scores, rtol=1e-6)

    def test_the_booster_survives_both_of_xgboosts_formats(self, tmp_path):
        model, X, _ = trained("five")
        booster = model.to_xgboost(EVERYBODY)
        for name in ("model.json", "model.ubj"):
            booster.save_model(tmp_path / name)
            again = xgboost.Booster(model_file=tmp_path / name)
            assert (again.predict(xgboost.DMatrix(X)) == booster.predict(xgboost.DMatrix(X))).all()

    def test_infinite_thresholds_and_missing_values_go_their_way(self):
        X = np.array([[0.0], [1.0], [np.nan], [np.nan]])
        for pair in (blocks(X, CONST4), blocks(CONST4, X)):
            model = boost1().fit(pair, Y4)
            found = model.to_xgboost(["a", "b"]).predict(xgboost.DMatrix(np.hstack(list(pair.values()))))
            np.testing.assert_allclose(found, model.predict_proba(pair)[:, 1], atol=1e-6)

    def test_gains_and_covers_are_where_xgboost_looks_for_them(self):
        model, _, _ = trained("five")
        booster = model.to_xgboost(EVERYBODY)
        for kind in ("weight", "gain", "cover", "total_gain", "total_cover"):
            scores = booster.get_score(importance_type=kind)
            ours = {party: list(series) for party, series in model.importances(kind).items()}
            for party, columns in model.partition.items():
                for column, value in zip(columns, ours[party], strict=True):
                    assert scores.get(f"f{column}", 0.0) == pytest.approx(value, rel=1e-5), (kind, column)

    def test_importances_equal_those_of_xgboost(self):
        model, X, _ = trained("binary")
        wrapped = xgboost.XGBClassifier()
        wrapped.load_model(bytearray(model.to_xgboost(EVERYBODY).save_raw("json")))
        np.testing.assert_allclose(model.feature_importances_, wrapped.feature_importances_, rtol=1e-5)
        assert model.feature_importances_.shape == (X.shape[1],)


class TestCategories:
    def frames(self, n_rows=200):
        rng = np.random.default_rng(0)
        colours, sizes = rng.choice(list("uvwxyz"), n_rows), rng.integers(0, 3, n_rows).astype(float)
        bank = pd.DataFrame({"income": singles(rng.normal(size=n_rows)), "colour": pd.Categorical(colours)})
        shop = pd.DataFrame({"size": pd.Categorical(sizes), "visits": singles(rng.normal(size=n_rows))})
        bank.loc[:9, "colour"] = np.nan
        score = (
            np.isin(colours, ["v", "y"]) * 2.0 + (sizes == 1) + bank["income"] * 0.3 + shop["visits"] * 0.2
        )
        return {"bank": bank, "shop": shop}, (score > 1).astype(int)

    @pytest.mark.parametrize("version", [(3, 2), (2, 1)])
    def test_sets_of_categories_agree_on_codes_of_the_lists_in_the_booster(self, version, monkeypatch):
        if version < (3, 1):
            monkeypatch.setattr(export, "_version", lambda xgboost: version)
        X, y = self.frames()
        model = SecureBoostClassifier(5, max_depth=3, max_cat_to_onehot=4, encryption="none").fit(X, y)
        booster = model.to_xgboost(["bank", "shop"])
        assert booster.feature_types == ["float", "c", "c", "float"]
        lists = json.loads(booster.attr("categories"))
        assert lists == {"colour": list("uvwxyz"), "size": [0, 1, 2]}
        unseen = {"bank": X["bank"].assign(colour=pd.Categorical(["q"] * len(y))), "shop": X["shop"]}
        for rows in (X, unseen):
            whole = pd.concat(rows.values(), axis=1)
            codes = whole.copy()
            for name, values in lists.items():
                places = pd.Index(values).get_indexer(whole[name].astype(object)).astype(float)
                codes[name] = np.where(places < 0, np.nan, places)
            types = booster.feature_types
            matrix = xgboost.DMatrix(codes, feature_types=types, enable_categorical=True)
            raw = booster.predict(matrix, output_margin=True)
            assert (raw == model._predict(rows).raw_scores[:, 0]).all()
        document = json.loads(bytes(booster.save_raw("json")))
        sets = [sum(tree["split_type"]) for tree in document["learner"]["gradient_booster"]["model"]["trees"]]
        assert sum(sets) > 0


class TestNames:
    def frame(self):
        X, y = some_data("binary", n_rows=100)
        return pd.DataFrame(singles(X)[:, :4], columns=["age", "income", "visits", "basket"]), y

    def test_names_of_one_frame_are_kept_in_its_order(self):
        X, y = self.frame()
        model = SecureBoostClassifier(
            2, encryption="none", partition={"bank": ["visits", "age"], "shop": ["basket", "income"]}
        ).fit(X, y)
        booster = model.to_xgboost(["bank", "shop"])
        assert booster.feature_names == list(X.columns)
        np.testing.assert_allclose(
            booster.predict(xgboost.DMatrix(X)), model.predict_proba(X)[:, 1], rtol=1e-6, atol=1e-6
        )

    def test_names_that_two_parties_share_get_the_partys(self):
        X, y = self.frame()
        pair = {"bank": X[["age", "income"]], "shop": X[["visits", "basket"]].set_axis(["age", "x"], axis=1)}
        booster = SecureBoostClassifier(1, encryption="none").fit(pair, y).to_xgboost(["bank", "shop"])
        assert booster.feature_names == ["bank.age", "income", "shop.age", "x"]

    @pytest.mark.parametrize("name", ["a[1]", "a<b"])
    def test_names_that_xgboost_forbids_are_left_out(self, name):
        X, y = self.frame()
        model = SecureBoostClassifier(1, encryption="none").fit(X.rename(columns={"age": name}), y)
        assert model.to_xgboost(["active", "passive"]).feature_names is None


class TestConsent:
    @pytest.mark.parametrize("consent", [[], ["active"], ["active", "p2"], {"active": None}])
    def test_a_party_that_is_not_named_has_not_agreed(self, consent):
        model, _, _ = trained("binary", n_estimators=1)
        with pytest.raises(ValueError, match=r"not agreed: .*'p1'"):
            model.to_xgboost(consent)

    def test_consent_is_a_list_of_names(self):
        model, _, _ = trained("binary", n_estimators=1)
        with pytest.raises(TypeError, match="list of party names"):
            model.to_xgboost("active")
        with pytest.raises(ValueError, match="consent names"):
            model.to_xgboost([*EVERYBODY, "p3"])
        with pytest.raises(TypeError):
            model.to_xgboost()

    def test_the_active_party_alone_needs_the_files_of_the_others(self, tmp_path):
        model, X, _ = trained("binary", n_estimators=2)
        paths = model.save(tmp_path)
        alone = load_active(paths["active"], ask=print)
        with pytest.raises(ValueError, match=r"half of party 'p1' is not here"):
            alone.to_xgboost(EVERYBODY)
        booster = alone.to_xgboost({"active": None, "p1": paths["p1"], "p2": paths["p2"]})
        # Columns come party after party where the active party alone does not know their places.
        order = np.concatenate(list(model.partition.values()))
        whole = model.to_xgboost(EVERYBODY)
        assert (raw_scores(booster, X[:, order]) == raw_scores(whole, X)).all()
        with pytest.raises(WrongFileError, match="expected party 'p1'"):
            alone.to_xgboost({"active": None, "p1": paths["p2"], "p2": paths["p2"]})

    def test_a_file_of_another_training_is_not_taken(self, tmp_path):
        paths = [trained("binary", n_estimators=1)[0].save(tmp_path / name) for name in ("one", "two")]
        alone = load_active(paths[0]["active"], ask=print)
        with pytest.raises(WrongFileError, match="another training"):
            alone.to_xgboost({"active": None, "p1": paths[1]["p1"], "p2": paths[0]["p2"]})

    def test_a_loaded_model_is_exported_like_the_trained_one(self, tmp_path):
        model, *_ = trained("five", n_estimators=2)
        model.save(tmp_path)
        first, second = (m.to_xgboost(EVERYBODY) for m in (model, load(tmp_path)))
        assert bytes(first.save_raw("json")) == bytes(second.save_raw("json"))


class TestRefusals:
    @pytest.mark.parametrize("swap", [False, True])
    def test_rows_that_single_precision_would_move_are_refused_with_owner_and_column(self, swap):
        X = pd.DataFrame({"amount": [16777216.0, 16777217.0, 16777218.0, 16777219.0]})
        pair = blocks(CONST4, X) if swap else blocks(X, CONST4)
        model = SecureBoostClassifier(5, max_depth=3, min_child_weight=0, encryption="none").fit(
            pair, [0, 1, 0, 1]
        )
        with pytest.raises(
            ValueError, match=rf"'amount' of party '{'b' if swap else 'a'}'.*single precision"
        ):
            model.to_xgboost(["a", "b"])
        half = model._passive_models["b"] if swap else codec.decode(model._active_model.records, (Records,))
        unchecked = replace(half, lower=np.full(len(half.ids), -np.inf))  # planted: as if nothing lay below
        if swap:
            model._passive_models["b"] = unchecked
        else:
            model._active_model = replace(model._active_model, records=codec.encode(unchecked))
        rows = np.hstack([np.asarray(block, dtype=float) for block in pair.values()])
        assert (raw_scores(model.to_xgboost(["a", "b"]), rows) != model._predict(pair).raw_scores).any()

    def test_infinite_training_values_beyond_the_largest_single_are_refused(self):
        X = np.array([[1.0], [2.0], [1e300], [2e300]])
        model = boost1(max_depth=2).fit(blocks(X, CONST4), [0, 0, 0, 1])
        with pytest.raises(ValueError, match="single precision"):
            model.to_xgboost(["a", "b"])

    def test_targets_beyond_single_precision_are_refused(self):
        model = SecureBoostRegressor(1, encryption="none").fit(
            blocks(XA4, CONST4), [1e9, 1e9, 1e9 + 4, 1e9 + 4]
        )
        with pytest.raises(ValueError, match="double precision"):
            model.to_xgboost(["a", "b"])

    def test_trees_with_a_value_for_every_output_are_refused_and_a_tree_for_each_is_not(self):
        X = singles(np.random.default_rng(0).normal(size=(60, 4)))
        Y = np.column_stack([X[:, 0], X[:, 3], X[:, 1]])
        models = [
            SecureBoostRegressor(2, max_depth=2, encryption="none", multi_strategy=strategy).fit(X, Y)
            for strategy in ("multi_output_tree", "one_output_per_tree")
        ]
        with pytest.raises(ValueError, match="3 values in a leaf"):
            models[0].to_xgboost(["active", "passive"])
        booster = models[1].to_xgboost(["active", "passive"])
        assert (raw_scores(booster, X) == models[1]._predict(X).raw_scores).all()

    def test_without_xgboost_the_error_says_what_to_install(self, monkeypatch):
        def missing(name):
            raise ImportError(name)

        monkeypatch.setattr(export, "import_module", missing)
        with pytest.raises(ImportError, match="pip install xgboost"):
            boost1().fit(blocks(XA4, CONST4), Y4).to_xgboost(["a", "b"])


def test_the_document_is_plain_json_of_xgboosts_schema():
    model, _, _ = trained("five", n_estimators=1)
    shares = export._shares(model, dict.fromkeys(EVERYBODY))
    document = export._document(model, shares, (3, 1))
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    for tree in document["learner"]["gradient_booster"]["model"]["trees"]:
        left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
        assert (right[left >= 0] == left[left >= 0] + 1).all()  # XGBoost's prediction relies on it


def test_a_loaded_model_of_several_quantiles_keeps_its_levels(tmp_path):
    X, y = some_data("regression", n_rows=80)
    model = SecureBoostRegressor(
        2, encryption="none", objective="reg:quantileerror", quantile_alpha=[0.1, 0.9]
    )
    model.fit(singles(X), y).save(tmp_path)
    again = load(tmp_path)
    assert again.quantile_alpha == [0.1, 0.9]
    booster = again.to_xgboost(["active", "passive"])
    np.testing.assert_allclose(
        booster.predict(xgboost.DMatrix(singles(X))), model.predict(singles(X)), rtol=1e-6, atol=1e-6
    )
