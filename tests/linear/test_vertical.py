"""Transformers at the parties, each fitted on its own columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tests.linear.small import PLAIN, WEAK, estimator, some_data
from vfltree import SecureLogisticRegression, load, load_active

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def test_standardising_at_the_parties_equals_standardising_before():
    X, y = some_data("binary")
    how = {"max_iter": 5, **PLAIN}
    inside = estimator("binary", vertical_transformer=StandardScaler(), **how).fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    before = estimator("binary", **how).fit(scaled, y)
    assert np.abs(inside.predict_proba(X) - before.predict_proba(scaled)).max() < 1e-12
    assert np.abs(inside.coefficients("p1") - before.coefficients("p1")).max() < 1e-12
    assert inside.n_features_in_ == 7
    assert set(inside.transformers_) == {"active", "p1"}
    assert inside.transformers_["p1"].n_features_in_ == 3


def people(n_rows=60):
    rng = np.random.default_rng(0)
    bank = pd.DataFrame({"income": rng.normal(3000, 800, n_rows), "debt": rng.normal(0, 1, n_rows)})
    shop = pd.DataFrame(
        {"town": rng.choice(["A", "B", "C"], n_rows), "visits": rng.integers(0, 9, n_rows) * 1.0}
    )
    shop.loc[3, "visits"] = np.nan
    y = ((bank["income"] > 3000) ^ (shop["town"] == "B")).astype(int).to_numpy()
    at_shop = make_column_transformer(
        (OneHotEncoder(sparse_output=True), ["town"]),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["visits"]),
    )
    return bank, shop, y, {"bank": StandardScaler(), "shop": at_shop}


def test_text_and_gaps_are_each_partys_own_business():
    bank, shop, y, transformers = people()
    how = {"vertical_transformer": transformers, "max_iter": 5}
    X = {"bank": bank, "shop": shop}
    plain, encrypted = (SecureLogisticRegression(**how, **kind).fit(X, y) for kind in (PLAIN, WEAK))
    assert plain._halves() == encrypted._halves()
    assert plain.n_features_in_per_party_ == {"bank": 2, "shop": 4}
    assert plain.coefficients("shop").shape == (1, 4)
    shuffled = {"bank": bank, "shop": shop.iloc[::-1]}
    assert (plain.predict_proba(X) == plain.predict_proba(shuffled)).all()


def test_one_frame_of_all_columns_is_cut_before_anything_is_fitted():
    bank, shop, y, transformers = people()
    X = pd.concat([bank, shop], axis=1)
    partition = {"bank": ["income", "debt"], "shop": ["town", "visits"]}
    how = {"vertical_transformer": transformers, "max_iter": 5, **PLAIN}
    whole = SecureLogisticRegression(partition=partition, **how).fit(X, y)
    parts = SecureLogisticRegression(**how).fit({"bank": bank, "shop": shop}, y)
    assert whole._halves() == parts._halves()
    assert whole.feature_names_in_.tolist() == list(X.columns) and whole.n_features_in_ == 4
    assert (whole.predict(X) == parts.predict({"bank": bank, "shop": shop})).all()


def test_transformers_of_parties_that_are_not_there_are_refused():
    X, y = some_data("binary", n_rows=40)
    with pytest.raises(ValueError, match="names parties"):
        estimator("binary", vertical_transformer={"nobody": StandardScaler()}, **PLAIN).fit(X, y)


@pytest.fixture
def saved(tmp_path):
    """A model of scaled columns, as many as raw ones, and its raw and its transformed columns."""
    X, y = some_data("binary", n_rows=40)
    raw = {"bank": X[:, :4], "shop": X[:, 4:]}
    model = SecureLogisticRegression(vertical_transformer=StandardScaler(), max_iter=2, **PLAIN).fit(raw, y)
    given = {party: model.transformers_[party].transform(block) for party, block in raw.items()}
    return model, model.save(tmp_path), raw, given


def test_files_say_that_columns_were_transformed_and_load_wants_to_be_told(saved):
    model, paths, raw, given = saved
    with pytest.raises(ValueError, match=r"'bank' with StandardScaler.*'shop' with.*transformed=True"):
        load(paths.values())
    again = load(paths.values(), transformed=True)
    assert (again.predict_proba(given) == model.predict_proba(raw)).all()


def test_a_file_names_the_transformer_of_its_own_party_alone(tmp_path):
    bank, shop, y, transformers = people()
    how = {"max_iter": 2, "partition": {"bank": ["income", "debt"], "shop": ["town", "visits"]}, **PLAIN}
    model = SecureLogisticRegression(vertical_transformer={"shop": transformers["shop"]}, **how)
    paths = model.fit({"bank": bank, "shop": shop}, y).save(tmp_path)
    assert b"ColumnTransformer" in paths["shop"].read_bytes()
    assert b"Transformer" not in paths["bank"].read_bytes()
    with pytest.raises(ValueError, match="by party 'shop' with ColumnTransformer"):
        load(tmp_path)


def test_a_loaded_model_saved_again_still_says_so(saved, tmp_path):
    _, paths, _, _ = saved
    load(paths.values(), transformed=True).save(tmp_path / "again")
    with pytest.raises(ValueError, match="StandardScaler"):
        load(tmp_path / "again")
    with pytest.raises(ValueError, match="party 'bank' with StandardScaler, and"):
        load_active(tmp_path / "again" / "bank.model", lambda setup: None)


def test_a_model_fitted_anew_without_transformers_loads_as_ever(saved, tmp_path):
    model, _, raw, _ = saved
    model.set_params(vertical_transformer=None).fit(raw, [0, 1] * 20).save(tmp_path / "anew")
    assert (load(tmp_path / "anew").predict_proba(raw) == model.predict_proba(raw)).all()
