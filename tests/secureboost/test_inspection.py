"""Which columns matter, and what each party may see of that."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from tests.secureboost.small import CONST4, XA4, Y4, blocks, boost1, some_data, thirds
from vfltree import SecureBoostClassifier, load_active
from vfltree.inspection import ModelView

pytestmark = pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning")


@pytest.fixture(scope="module")
def model():
    X, y = some_data("five", n_rows=150)
    bank = pd.DataFrame(X[:, :4], columns=["income", "age", "debt", "rent"])
    shop = pd.DataFrame(X[:, 4:], columns=[f"shop secret {i}" for i in range(5)])
    with pytest.warns(UserWarning):
        return SecureBoostClassifier(3, max_depth=3, encryption="none").fit({"bank": bank, "shop": shop}, y)


class TestImportances:
    def test_a_hand_computed_tree_has_its_gain_cover_and_number(self):
        model = boost1().fit(blocks(XA4, CONST4), Y4)
        # g = 1/2, 1/2, -1/2, -1/2 and h = 1/4: each child has G = +-1, H = 1/2, so the gain is 2 / (1/2 + 1) - 0.
        for kind, value in (
            ("weight", 1),
            ("gain", 4 / 3),
            ("cover", 1),
            ("total_gain", 4 / 3),
            ("total_cover", 1),
        ):
            found = model.importances(kind)
            assert found["a"].to_list() == pytest.approx([value], rel=1e-6), kind
            assert found["b"].to_list() == [0.0]
        assert model.feature_importances_.tolist() == [1.0, 0.0]

    def test_totals_are_sums_over_all_trees(self, model):
        view = ModelView.of(model)
        gain = sum(tree.gain[tree.owner >= 0].sum() for tree in view.trees)
        n_splits = sum((tree.owner >= 0).sum() for tree in view.trees)
        assert sum(s.sum() for s in model.importances("total_gain").values()) == pytest.approx(gain)
        assert sum(s.sum() for s in model.importances("weight").values()) == n_splits
        mean = model.importances("gain")["shop"] * model.importances("weight")["shop"]
        np.testing.assert_allclose(mean, model.importances("total_gain")["shop"])

    def test_the_array_follows_the_columns_of_one_matrix(self):
        X, y = some_data("binary", n_rows=100)
        model = SecureBoostClassifier(
            3, encryption="none", partition={"a": [6, 0], "b": [8, 7, 1, 2, 5, 3, 4]}
        )
        model.fit(X, y)
        found, per_party = model.feature_importances_, model.importances()
        assert found.sum() == pytest.approx(1)
        assert found[[6, 0]] / found[4] == pytest.approx(per_party["a"].to_numpy() / per_party["b"].iloc[-1])

    def test_a_model_without_splits_has_zeros(self):
        model = boost1(gamma=1e6).fit(blocks(XA4, CONST4), Y4)
        assert model.feature_importances_.tolist() == [0.0, 0.0]

    def test_the_active_party_sees_one_figure_for_all_foreign_columns(self, model):
        for kind in ("weight", "total_gain", "total_cover"):
            whole, seen = model.importances(kind), model.importances(kind, viewer="bank")
            pd.testing.assert_series_equal(seen["bank"], whole["bank"])
            assert list(seen["shop"].index) == ["all columns"]
            assert seen["shop"].iloc[0] == pytest.approx(whole["shop"].sum())
        assert "secret" not in repr(model.importances("gain", viewer="bank"))

    def test_a_passive_party_can_only_count_its_own_splits(self, model):
        seen = model.importances("weight", viewer="shop")
        assert list(seen) == ["shop"]
        pd.testing.assert_series_equal(seen["shop"], model.importances("weight")["shop"])
        with pytest.raises(ValueError, match="active party's"):
            model.importances("gain", viewer="shop")

    def test_the_active_partys_file_gives_the_active_partys_view(self, model, tmp_path):
        alone = load_active(model.save(tmp_path)["bank"], ask=print)
        for kind in ("weight", "gain", "cover"):
            expected, found = model.importances(kind, viewer="bank"), alone.importances(kind)
            for party in ("bank", "shop"):
                pd.testing.assert_series_equal(found[party], expected[party])
        assert not hasattr(alone, "feature_importances_")

    def test_wrong_kinds_viewers_and_times_are_named(self, model):
        with pytest.raises(ValueError, match=r"kind must be one of 'gain'.*'shap'"):
            model.importances("shap")
        with pytest.raises(ValueError, match=r"'mall'.*\['bank', 'shop'\]"):
            model.importances(viewer="mall")
        with pytest.raises(NotFittedError):
            SecureBoostClassifier().importances()
        with pytest.raises(NotFittedError):
            _ = SecureBoostClassifier().feature_importances_

    def test_columns_without_names_are_numbered(self):
        X, y = some_data("binary", n_rows=60)
        model = SecureBoostClassifier(1, encryption="none", partition=thirds(9, 3)).fit(X, y)
        assert list(model.importances()["p1"].index) == ["column 0", "column 1", "column 2"]


class TestView:
    def test_every_split_is_known_where_all_halves_are_at_hand(self, model):
        view = ModelView.of(model)
        splits = [
            view.split(t, at) for t, tree in enumerate(view.trees) for at in np.flatnonzero(tree.owner >= 0)
        ]
        assert all(split.known and split.name and split.threshold is not None for split in splits)
        assert {split.party for split in splits} == {"bank", "shop"}

    def test_foreign_splits_are_an_owner_and_a_number(self, model):
        view = ModelView.of(model, viewer="bank")
        splits = [view.split(t, at) for t, tree in enumerate(view.trees) for at in range(tree.n_nodes)]
        foreign = [split for split in splits if split is not None and split.party == "shop"]
        assert foreign
        for split in foreign:
            assert (split.column, split.name, split.threshold, split.missing_left) == (None,) * 4
        own = [split for split in splits if split is not None and split.party == "bank"]
        assert all(split.known for split in own)
