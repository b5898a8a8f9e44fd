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
from vfltree import SecureLogisticRegression

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


def test_what_cannot_be_is_refused(tmp_path):
    X, y = some_data("binary", n_rows=40)
    with pytest.raises(ValueError, match="names parties"):
        estimator("binary", vertical_transformer={"nobody": StandardScaler()}, **PLAIN).fit(X, y)
    model = estimator("binary", vertical_transformer=StandardScaler(), max_iter=2, **PLAIN).fit(X, y)
    with pytest.raises(ValueError, match="files hold coefficients"):
        model.save(tmp_path)
