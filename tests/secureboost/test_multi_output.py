"""Several outputs: one tree a round for all of them or one tree each, as XGBoost grows them, and what that spares."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

from tests.secureboost.small import CONST4, WEAK, XA4, Y4, blocks, some_data, thirds
from tests.secureboost.test_categories import PARTIES, some_frame
from tests.secureboost.test_xgboost_parity import CutClassifier, CutRegressor, as_singles, whole_table
from tests.tree.pooled import node_totals
from tests.tree.xgboost_judge import tree_differences
from vflparty import RemoteProtocolError
from vfltree import SecureBoostClassifier, SecureBoostRegressor
from vfltree.binning import BinMapper
from vfltree.category_splits import CategoryRules, best_mixed_splits
from vfltree.growing.models import result_trees
from vfltree.histogram import build_histograms
from vfltree.losses import PerTarget, PseudoHuber, SquaredError
from vfltree.multi_output import Outputs, best_multi_output_splits
from vfltree.saving import load
from vfltree.secureboost import PassiveParty
from vfltree.secureboost.messages import JoinTraining
from vfltree.splitting import SplitRules
from vfltree.tree import record_id

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]

STRATEGIES = ("one_output_per_tree", "multi_output_tree")
PLAIN = {"encryption": "none", "random_state": 1}
ENCRYPTION = {"encryption": "none"}


@cache
def data(task: str, missing: bool = True, n_rows: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Numbers in single precision; five classes, or three targets of different size."""
    X, y = some_data("five" if task == "five" else "regression", n_rows, missing=missing)
    X = as_singles(X)
    if task == "five":
        return X, y
    filled = np.nan_to_num(X)
    targets = np.stack([y, filled[:, 0] - filled[:, 3] ** 2, 100 * filled[:, 6] + filled[:, 2]], axis=1)
    return X, as_singles(targets)


def estimator(task: str, rounds: int = 2, **parameters: Any):
    kind = SecureBoostClassifier if task == "five" else SecureBoostRegressor
    return kind(
        rounds, **{"max_depth": 3, "multi_strategy": "multi_output_tree", "random_state": 1, **parameters}
    )


def vector_differences(model: Any, booster: xgb.Booster, ends: np.ndarray) -> list[str]:
    """The first difference of every tree with vector leaves."""
    theirs = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]
    mine, table = result_trees(model._active_model), whole_table(model)
    assert len(mine) == len(theirs)
    return [d for t, tree in enumerate(theirs) if (d := _difference(mine[t], t, table, tree, ends))]


def _difference(mine, number, table, theirs, ends) -> str | None:
    if mine.n_nodes != len(theirs["left_children"]):
        return f"tree {number}: {mine.n_nodes} nodes, {len(theirs['left_children'])} there"
    records = table.find(record_id(number, mine.node))
    for at in range(mine.n_nodes):
        here: tuple[Any, ...] = (int(mine.left[at]),)
        there: tuple[Any, ...] = (theirs["left_children"][at],)
        if mine.owner[at] >= 0:
            r = records[at]
            column, threshold = int(table.columns[r]), float(table.thresholds[r])
            here += (
                column,
                float(ends[column]) if np.isinf(threshold) else threshold,
                bool(table.missing_left[r]),
            )
        if there[0] >= 0:
            there += (
                theirs["split_indices"][at], float(np.float32(theirs["split_conditions"][at])),
                bool(theirs["default_left"][at]),
            )  # fmt: skip
        if here != there:
            return f"tree {number}, node {at}: ours {here} gain {mine.gain[at]:.9g}, XGBoost {there}"
    return None


@pytest.mark.parametrize("missing", [False, True], ids=["whole", "missing"])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("task", "parameters"),
    [
        ("five", {}),
        ("targets", {}),
        ("five", {"min_child_weight": 6.0, "reg_alpha": 0.4, "max_depth": 5}),
        ("targets", {"gamma": 30.0, "reg_lambda": 0.0, "max_delta_step": 2.0}),
    ],
    ids=["five", "targets", "five, rules", "targets, rules"],
)
def test_every_tree_is_xgboosts(task, parameters, strategy, missing):
    X, y = data(task, missing)
    objective = (
        {"objective": "multi:softprob", "num_class": 5}
        if task == "five"
        else {"objective": "reg:squarederror"}
    )
    settings = {"max_depth": 4, "max_bin": 32, **parameters}
    matrix = xgb.QuantileDMatrix(X, label=y, max_bin=32)
    booster = xgb.train(
        {"tree_method": "hist", "multi_strategy": strategy, **objective, **settings},
        matrix,
        num_boost_round=6,
    )
    kind = CutClassifier if task == "five" else CutRegressor
    partition = {f"p{i}": part for i, part in enumerate(np.array_split(np.arange(X.shape[1]), 3))}
    model = kind(6, partition=partition, multi_strategy=strategy, **PLAIN, **settings)
    bounds, stored = matrix.get_quantile_cut()
    model.all_cuts = BinMapper.from_xgboost_cuts(bounds, stored).cuts
    model.fit(X, y)
    if strategy == "multi_output_tree":
        assert vector_differences(model, booster, stored.astype(float)[bounds.astype(int)[1:] - 1]) == []
        assert model._active_model.value.shape[1] == (5 if task == "five" else 3)
        assert len(model._active_model.sizes) == 6
    else:
        assert tree_differences(
            result_trees(model._active_model), whole_table(model), booster, (bounds, stored)
        ) == []  # fmt: skip
    mine = model.predict_proba(X) if task == "five" else model.predict(X)
    np.testing.assert_allclose(mine, booster.predict(matrix), rtol=1e-5, atol=1e-5)


class TestEncryptedEqualsPlain:
    @staticmethod
    @cache
    def plain(task: str, n_parties: int):
        X, y = data(task)
        return estimator(task, partition=thirds(X.shape[1], n_parties), encryption="none").fit(X, y)

    @pytest.mark.parametrize("network", ["inprocess", "process"])
    @pytest.mark.parametrize(("task", "n_parties"), [("five", 2), ("five", 3), ("targets", 3)])
    def test_bit_for_bit(self, task, n_parties, network):
        X, y = data(task)
        expected = self.plain(task, n_parties)
        assert any(len(table.ids) for table in expected._passive_models.values())
        model = estimator(
            task, partition=thirds(X.shape[1], n_parties), network=network, n_jobs=2, **WEAK
        ).fit(X, y)
        assert model._active_model == expected._active_model
        assert model._passive_models == expected._passive_models
        assert model._predict(X) == expected._predict(X)

    @pytest.mark.parametrize(
        "options",
        [
            {"min_rows_per_sum": 12},
            {"subsample": 0.6, "colsample_bytree": 0.7, "colsample_bylevel": 0.7},
            {"grow_policy": "lossguide", "max_leaves": 5},
            {"sampling_method": "goss"},
        ],
        ids=lambda options: next(iter(options)),
    )
    def test_with_other_options(self, options):
        X, y = data("five")
        fits = [
            estimator("five", 3, max_depth=4, partition=thirds(X.shape[1], 3), **options, **encryption).fit(
                X, y
            )
            for encryption in ({"encryption": "none"}, WEAK)
        ]
        assert fits[0]._active_model == fits[1]._active_model
        assert fits[0]._passive_models == fits[1]._passive_models

    @pytest.mark.parametrize("encryption", [{"encryption": "none"}, WEAK], ids=["none", "paillier"])
    def test_with_categories(self, encryption):
        X, y = some_frame("five")
        model = estimator("five", 4, partition=PARTIES[3], **encryption).fit(X, y)
        tables = [np.isnan(table.thresholds).sum() for table in model._passive_models.values()]
        assert min(tables) > 0
        assert model.score(X, y) > 0.5
        assert (
            model._active_model == estimator("five", 4, partition=PARTIES[3], **PLAIN).fit(X, y)._active_model
        )

    def test_predictions_of_training_rows_are_the_training_scores(self):
        X, _ = data("five")
        model = self.plain("five", 3)
        raw = np.tile(model.base_score_, (len(X), 1))
        starts = np.concatenate([[0], np.cumsum(model._active_model.sizes)])
        for tree, leaves in enumerate(model.apply(X).T):
            raw += model._active_model.value[starts[tree] + leaves]
        assert (model.decision_function(X) == raw).all()

    @pytest.mark.parametrize("task", ["five", "targets"])
    def test_early_stopping_and_warm_start_count_rounds_of_one_tree(self, task):
        X, y = data(task)
        stopped = estimator(task, 12, early_stopping_rounds=2, learning_rate=1.0, **ENCRYPTION)
        stopped.fit(X[:200], y[:200], eval_set=(X[200:], y[200:]))
        assert len(stopped._active_model.sizes) == stopped.best_iteration_ + 1
        whole = estimator(task, 4, **ENCRYPTION).fit(X, y)
        parts = estimator(task, 2, warm_start=True, **ENCRYPTION).fit(X, y)
        parts.set_params(n_estimators=4).fit(X, y)
        assert parts._active_model == whole._active_model
        assert parts._passive_models == whole._passive_models
        with pytest.raises(ValueError, match="multi_strategy"):
            parts.set_params(multi_strategy="one_output_per_tree", n_estimators=20).fit(X, y)

    def test_a_saved_model_predicts_the_same(self, tmp_path):
        X, _ = data("targets")
        model = self.plain("targets", 3)
        again = load(list(model.save(tmp_path).values()))
        assert np.array_equal(again.predict(X), model.predict(X))


class TestWork:
    def test_passive_parties_sum_one_tree_in_place_of_five(self):
        """The gain of the strategy, counted: below the roots a fifth of the sums, if trees are equally large."""
        X, y = data("five", n_rows=600)
        counts = {
            strategy: estimator("five", multi_strategy=strategy, max_depth=5, **WEAK)
            .fit(X, y)
            .costs_["additions"]
            for strategy in STRATEGIES
        }
        assert counts["multi_output_tree"] < 0.5 * counts["one_output_per_tree"]

    @pytest.mark.parametrize("task", ["five", "targets"])
    def test_the_estimate_bounds_what_is_spent(self, task):
        X, y = data(task)
        model = estimator(task, **WEAK)
        before = model.estimate_cost(X, y)
        after = model.fit(X, y).costs_
        for name in ("encryptions", "additions", "squarings", "blindings", "decryptions"):
            assert before[name] >= after[name]
        assert after["additions"] > 0
        per_class = estimator(task, multi_strategy="one_output_per_tree", **WEAK).estimate_cost(X, y)
        assert before["additions"] < per_class["additions"]


class TestKernel:
    def sums(self, n_outputs: int = 1, n_categories: Any = (0, 0, 0, 0), seed: int = 0):
        """Of three nodes of 200 rows: four features of five bins and missing values, none of them in the second."""
        rng = np.random.default_rng(seed)
        sizes = [k or 5 for k in n_categories]
        bins = np.stack([rng.integers(0, size, 600) for size in sizes], axis=1)
        bins[rng.random(bins.shape) < 0.1] = 5
        bins[:, 1] %= sizes[1]
        g, h = rng.normal(size=(600, n_outputs)) + bins[:, [2]] * 0.3, rng.random((600, n_outputs))
        g, h = ((x * 1024).astype(np.int64) << 20 for x in (g, h))
        starts, rows = np.arange(0, 601, 200), np.arange(600)
        sums = build_histograms(bins.astype(np.uint8), rows, starts, g, h, 6)
        return sums, np.concatenate(node_totals(rows, starts, g, h), axis=1)

    @pytest.mark.parametrize("n_categories", [[0, 0, 0, 0], [0, 3, 5, 0]], ids=["numbers", "categories"])
    @pytest.mark.parametrize(
        "rules", [SplitRules(1, 0, 0, 0), SplitRules(0.5, 0.1, 0, 0)], ids=["default", "other"]
    )
    def test_one_output_is_split_as_by_the_other_kernel(self, rules, n_categories):
        n_categories = np.array(n_categories)
        sums, totals = self.sums(1, n_categories)
        unit = np.array([2.0**-30])
        vector = best_multi_output_splits(
            sums, totals, Outputs(unit, unit, rules), n_categories, CategoryRules()
        )
        scalar = best_mixed_splits(
            sums[..., 0], sums[..., 1], totals[:, 0], totals[:, 1], 2.0**-30, 2.0**-30, rules, n_categories,
            CategoryRules(),
        )  # fmt: skip
        np.testing.assert_allclose(vector.gain, scalar.gain, rtol=1e-4, atol=1e-5)
        assert (scalar.gain > 0).sum() > 8
        assert np.array_equal(vector.bin, scalar.bin)
        for node, feature in np.ndindex(scalar.gain.shape):
            sides = [
                (best.missing_left[node, feature],
                 *(~best.right[node, feature, :k] if (k := n_categories[feature]) else ()))
                for best in (vector, scalar)
            ]  # fmt: skip
            # A set of categories may come out on the other side: they are sorted by what the node would like.
            swapped = bool(n_categories[feature]) and sides[0][1] != sides[1][1]
            assert sides[0] == tuple(side != swapped for side in sides[1])

    def test_units_of_outputs_do_not_change_their_worth(self):
        """An output in integers half as large and worth twice as much is the same output."""
        sums, totals = self.sums(3)
        units = np.array([2.0**-30, 2.0**-28, 2.0**-31])
        factors = np.array([2, 1, 4, 2, 1, 4])
        plain, other = (
            best_multi_output_splits(*whole, Outputs(u, u, SplitRules()), np.zeros(4, int), CategoryRules())
            for whole, u in (
                ((sums, totals), units),
                ((sums // factors, totals // factors), units * factors[:3]),
            )
        )
        assert not (sums % factors).any()
        assert np.array_equal(plain.gain, other.gain) and (plain.gain > 0).any()
        assert np.array_equal(plain.bin, other.bin)


class TestTargets:
    @pytest.mark.parametrize("strategy", STRATEGIES)
    def test_two_opposite_targets_by_hand(self, strategy):
        """One split of four rows: leaves -G/(H + 1) = -(2 * 0.5) / 3 and the like, from a mean of 0.5."""
        y = np.stack([Y4, 1 - Y4], axis=1)
        model = SecureBoostRegressor(
            1, max_depth=1, learning_rate=1.0, min_child_weight=0, encryption="none", multi_strategy=strategy
        ).fit(blocks(CONST4, XA4), y)
        expected = np.where(y == 1, 0.5 + 1 / 3, 0.5 - 1 / 3)
        np.testing.assert_allclose(model.predict(blocks(CONST4, XA4)), expected, atol=1e-6)
        assert len(model._active_model.sizes) == (1 if strategy == "multi_output_tree" else 2)

    def test_one_tree_per_target_is_a_model_of_each(self):
        X, y = data("targets")
        together = estimator("targets", multi_strategy="one_output_per_tree", **PLAIN).fit(X, y)
        for k in range(3):
            alone = estimator("targets", **PLAIN).fit(X, y[:, k])
            assert np.array_equal(together.predict(X)[:, k], alone.predict(X))

    @pytest.mark.parametrize("kind", [pd.DataFrame, list, np.asarray])
    def test_however_y_comes(self, kind):
        X, y = data("targets")
        model = estimator("targets", **PLAIN).fit(X, kind(y.tolist()))
        assert model.predict(X).shape == y.shape
        assert model.score(X, y) > 0.2

    def test_one_column_is_one_target(self):
        X, y = data("targets")
        with pytest.warns(UserWarning, match="column-vector"):
            model = estimator("targets", **PLAIN).fit(X, y[:, :1])
        assert model.predict(X).shape == (len(X),)
        assert np.array_equal(model.predict(X), estimator("targets", **PLAIN).fit(X, y[:, 0]).predict(X))

    def test_weights_weigh_every_target(self):
        X, y = data("targets")
        weights = np.arange(len(y)) % 3.0
        fits = [
            estimator("targets", min_child_weight=0, **PLAIN).fit(X, y, sample_weight=weights),
            estimator("targets", min_child_weight=0, **PLAIN).fit(
                np.repeat(X, weights.astype(int), axis=0), np.repeat(y, weights.astype(int), axis=0)
            ),
        ]
        np.testing.assert_allclose(fits[0].base_score_, fits[1].base_score_, rtol=1e-6)

    @pytest.mark.parametrize(
        ("parameters", "y", "message"),
        [
            ({"multi_strategy": "both"}, Y4, "multi_strategy must be one of"),
            (
                {"monotone_constraints": [1, 0], "multi_strategy": "multi_output_tree"},
                np.stack([Y4, Y4], axis=1), "for trees of one output",
            ),
            ({"objective": "count:poisson"}, np.ones((4, 2)), "y of 2 columns suits"),
            (
                {"objective": "reg:quantileerror", "quantile_alpha": [0.2, 0.8], "multi_strategy": "multi_output_tree"},
                Y4, "fits leaves anew",
            ),
            ({}, np.array([[0, 1], [np.nan, 1], [1, 1], [0, 0]]), "NaN"),
            ({}, np.array([[0, 1], [np.inf, 1], [1, 1], [0, 0]]), "infinity"),
            ({}, np.zeros((3, 2)), "3 labels, the parties have 4 rows|3 samples|inconsistent"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_is_refused_before_a_key_is_made(self, parameters, y, message, monkeypatch):
        def refuse(*args, **kwargs):
            raise AssertionError("a key was made before the parameters were checked")

        monkeypatch.setattr("vfltree.growing.leader.obtain_keypair", refuse)
        with pytest.raises(ValueError, match=message):
            SecureBoostRegressor(1, **WEAK, **parameters).fit(np.hstack([XA4, CONST4]), y)

    def test_classes_have_one_column(self):
        with pytest.raises(ValueError, match=r"1d array|multi"):
            SecureBoostClassifier(1).fit(np.hstack([XA4, CONST4]), np.stack([Y4, Y4], axis=1))

    @pytest.mark.parametrize("loss", [SquaredError(), PseudoHuber(1.0)], ids=lambda loss: type(loss).__name__)
    def test_the_loss_of_several_targets_is_that_of_each(self, loss):
        rng = np.random.default_rng(0)
        y, weights = rng.normal(size=(20, 3)), rng.random(20) + 0.1
        many = PerTarget(loss, 3)
        raw = many.start(y, weights) + rng.normal(size=(20, 3)).astype(np.float32)
        g, h = many.gradients(y, raw, weights)
        for k in range(3):
            g_k, h_k = loss.gradients(y[:, k], raw[:, [k]], weights)
            assert np.array_equal(g[:, [k]], g_k) and np.array_equal(h[:, [k]], h_k)
            assert many.start(y, weights)[k] == loss.start(y[:, k], weights)[0]
        assert many.value(y, raw) == pytest.approx(
            np.mean([loss.value(y[:, k], raw[:, [k]]) for k in range(3)])
        )
        assert many.link(raw).shape == (20, 3)


def test_a_round_of_vector_leaves_has_one_tree_for_the_passive_party():
    """So nodes of a second tree of the round are not open."""
    from tests.secureboost.test_protocol import N_ROWS, gradients, half_split

    features = np.stack([np.arange(N_ROWS, dtype=float), np.ones(N_ROWS)], axis=1)
    for vector_leaves in (True, False):
        party = PassiveParty(features, name="shop", random_seed=0, min_rows_per_sum=1)
        party.receive(
            JoinTraining(party._ids_digest, N_ROWS, 2, 2, 3, 30, "none", b"", vector_leaves=vector_leaves)
        )
        message = gradients()
        both = np.frombuffer(message.gradients, "<i8").reshape(N_ROWS, 2, 1).repeat(2, axis=2)
        party.receive(type(message)(0, message.rows, both.astype("<i8").tobytes()))
        second = int(record_id(1, 1))
        if vector_leaves:
            with pytest.raises(RemoteProtocolError, match="not open"):
                party.receive(half_split(second))
        else:
            party.receive(half_split(second))


def test_a_party_whose_sums_are_all_known_has_nothing_to_send():
    X, y = data("targets")
    still = np.column_stack([X[:, :2], np.full((len(X), 2), 7.0)])  # the second party's columns are constant
    models = [
        estimator("targets", max_depth=2, partition={"a": [0, 1], "b": [2, 3]}, **parameters).fit(still, y)
        for parameters in (ENCRYPTION, WEAK)
    ]
    assert set(np.concatenate([tree.owner for tree in result_trees(models[0]._active_model)])) == {-1, 0}
    assert np.array_equal(models[0].predict(still), models[1].predict(still))
