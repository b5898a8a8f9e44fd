"""`first_tree="active"` and `label_privacy_epsilon`: what reaches passive parties, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.secureboost.small import WEAK, assert_same_model, some_data, thirds
from tests.secureboost.views import train
from vfltree import SecureBoostClassifier, SecureBoostRegressor
from vfltree.growing.models import result_trees
from vfltree.secureboost import active
from vfltree.secureboost.messages import GradientsForRound, JoinTraining

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]


class TestFirstTree:
    def test_nothing_is_sent_for_the_first_round(self, monkeypatch):
        X, y = some_data("binary", n_rows=160)
        run = train(X[:, :4], X[:, 4:], y, monkeypatch, n_estimators=3, first_tree="active")
        received = run.messages_to("shop")
        assert isinstance(received[0], JoinTraining)
        assert next(m.round for m in received if hasattr(m, "round")) == 1
        assert [m.round for m in received if isinstance(m, GradientsForRound)] == [1, 2]
        assert len(run.rows) == 2

    def test_without_the_option_the_first_round_is_sent(self, monkeypatch):
        X, y = some_data("binary", n_rows=160)
        run = train(X[:, :4], X[:, 4:], y, monkeypatch, n_estimators=3)
        assert [m.round for m in run.messages_to("shop") if isinstance(m, GradientsForRound)] == [0, 1, 2]

    @pytest.mark.parametrize("task", ["binary", "five", "regression"])
    @pytest.mark.parametrize(
        "more", [{}, {"colsample_bytree": 0.5}, {"grow_policy": "lossguide", "max_leaves": 5}]
    )
    def test_the_first_trees_are_the_active_partys_and_later_ones_are_not(self, task, more):
        X, y = some_data(task)
        kind = SecureBoostRegressor if task == "regression" else SecureBoostClassifier
        model = kind(
            3,
            max_depth=3,
            first_tree="active",
            partition=thirds(9, 3),
            encryption="none",
            random_state=0,
            **more,
        ).fit(X, y)
        trees = result_trees(model._active_model)
        n_outputs = 5 if task == "five" else 1
        assert all((tree.owner <= 0).all() for tree in trees[:n_outputs])
        assert any((tree.owner > 0).any() for tree in trees[n_outputs:])

    def test_the_first_tree_is_that_of_a_training_without_the_others(self):
        """The same rows, an own partition in which the passive party has a constant column."""
        X, y = some_data("binary")
        alone = X[:, [0, 1, 2, 0]].copy()
        alone[:, 3] = 0.0
        settings = {"max_depth": 3, "encryption": "none", "partition": {"a": [0, 1, 2], "b": [3]}}
        first = SecureBoostClassifier(1, **settings).fit(alone, y)
        other = SecureBoostClassifier(1, first_tree="active", **settings).fit(X[:, [0, 1, 2, 4]], y)
        assert first._active_model == other._active_model

    def test_encrypted_training_equals_plain(self):
        X, y = some_data("five", missing=True)
        models = [
            SecureBoostClassifier(
                2, max_depth=3, first_tree="active", random_state=1, partition=thirds(9, 3), **how
            ).fit(X, y)
            for how in ({"encryption": "none"}, WEAK, {"encryption": "none", "network": "process"})
        ]
        assert_same_model(models[0], models[1], X)
        assert_same_model(models[0], models[2], X)

    def test_what_cannot_be_is_refused(self):
        X, y = some_data("binary")
        with pytest.raises(ValueError, match="first_tree must be one of 'all', 'active', got 'passive'"):
            SecureBoostClassifier(1, first_tree="passive").fit(X, y)
        nothing = {"a": [], "b": list(range(9))}
        with pytest.raises(ValueError, match='first_tree="active" needs features of the active party'):
            SecureBoostClassifier(1, first_tree="active", encryption="none", partition=nothing).fit(X, y)


class TestLabelPrivacy:
    def noisy(self, monkeypatch, change) -> None:
        """`change` in place of the noise of the system."""
        monkeypatch.setattr(active, "randomize_labels", lambda labels, n_classes, epsilon: change(labels))

    @pytest.mark.parametrize("task", ["binary", "five"])
    def test_training_sees_randomised_labels_only(self, task, monkeypatch):
        """With a planted noise that names one class for all rows, the true labels change nothing."""
        X, y = some_data(task)
        self.noisy(monkeypatch, lambda labels: (np.arange(len(labels)) // 7) % 2)
        rng = np.random.default_rng(0)
        models = [
            SecureBoostClassifier(
                2, max_depth=3, label_privacy_epsilon=1.0, encryption="none", random_state=0
            ).fit(X, labels)
            for labels in (y, rng.permutation(y))
        ]
        assert_same_model(*models, X)

    def test_without_the_option_true_labels_change_the_model(self):
        X, y = some_data("binary")
        settings = {"max_depth": 3, "encryption": "none", "random_state": 0}
        first, second = (
            SecureBoostClassifier(2, **settings).fit(X, labels)
            for labels in (y, np.random.default_rng(0).permutation(y))
        )
        assert first._active_model != second._active_model

    def test_encrypted_training_equals_plain_under_the_same_noise(self, monkeypatch):
        X, y = some_data("five")
        self.noisy(monkeypatch, lambda labels: np.roll(labels, 1))
        models = [
            SecureBoostClassifier(2, max_depth=3, label_privacy_epsilon=0.5, random_state=1, **how).fit(X, y)
            for how in ({"encryption": "none"}, WEAK)
        ]
        assert_same_model(*models, X)

    def test_a_seed_does_not_repeat_the_noise(self):
        X, y = some_data("binary")
        first, second = (
            SecureBoostClassifier(
                1, max_depth=2, label_privacy_epsilon=0.1, encryption="none", random_state=0
            ).fit(X, y)
            for _ in range(2)
        )
        assert first._active_model != second._active_model

    @pytest.mark.parametrize("task", ["binary", "five"])
    def test_a_large_epsilon_changes_nothing(self, task):
        """Labels are all kept, and the loss is corrected by nothing but rounding."""
        X, y = some_data(task)
        settings = {"max_depth": 3, "encryption": "none", "random_state": 0}
        plain = SecureBoostClassifier(2, **settings).fit(X, y)
        private = SecureBoostClassifier(2, label_privacy_epsilon=80.0, **settings).fit(X, y)
        np.testing.assert_allclose(private.predict_proba(X), plain.predict_proba(X), atol=1e-6)

    def test_what_cannot_be_is_refused(self):
        X, y = some_data("binary")
        for epsilon in (0, -1.0, np.inf):
            with pytest.raises(ValueError, match="label_privacy_epsilon"):
                SecureBoostClassifier(1, label_privacy_epsilon=epsilon).fit(X, y)
        with pytest.raises(TypeError, match="label_privacy_epsilon must be a number"):
            SecureBoostClassifier(1, label_privacy_epsilon="1").fit(X, y)
        with pytest.raises(ValueError, match="class_weight would tell true labels apart"):
            SecureBoostClassifier(1, label_privacy_epsilon=1.0, class_weight="balanced").fit(X, y)
        with pytest.raises(ValueError, match=r"label_privacy_epsilon=1\.0 is for classes"):
            SecureBoostRegressor(1, label_privacy_epsilon=1.0).fit(X, y.astype(float))
