"""The rows exchange: the same model as the scores exchange, for far less work; two parties, no weights."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from tests.linear.small import PLAIN, WEAK, dealt, estimator, some_data
from vflcrypto import words as wide
from vfltree.linear.rows.layout import plan_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
TASKS = ["binary", "three", "linear", "poisson"]


@pytest.mark.parametrize("task", TASKS)
def test_encrypted_training_gives_the_plain_model(task):
    X, y = some_data(task)
    plain, encrypted = (
        estimator(task, exchange="rows", max_iter=3, **kind).fit(X, y) for kind in (PLAIN, WEAK)
    )
    assert plain._halves() == encrypted._halves()
    assert encrypted.costs_["decryptions"] == sum(encrypted.coordinator_log_.opened)


@pytest.mark.parametrize("task", TASKS)
def test_both_exchanges_give_the_same_model(task):
    """Within the coarser rounding of scores."""
    X, y = some_data(task)
    rows, scores = (
        estimator(task, exchange=exchange, max_iter=15, tol=0, **PLAIN).fit(X, y)
        for exchange in ("rows", "scores")
    )
    assert np.abs(rows.coef_ - scores.coef_).max() < 1e-5


def test_batches_and_processes():
    X, y = some_data("binary", n_rows=60)
    how = {
        "exchange": "rows",
        "optimizer": "adam",
        "batch_size": 20,
        "allow_small_batches": True,
        "max_iter": 2,
    }
    models = [
        estimator("binary", **how, **kind).fit(X, y) for kind in (PLAIN, WEAK, {"network": "process", **WEAK})
    ]
    assert models[0]._halves() == models[1]._halves() == models[2]._halves()


def test_rows_are_encrypted_once():
    X, y = some_data("binary")
    short, long = (
        estimator("binary", exchange="rows", max_iter=n, tol=0, **WEAK).fit(X, y).costs_ for n in (1, 4)
    )
    assert short["encryptions"] == long["encryptions"] <= 4 * len(y)
    assert long["multiplications"] > 3 * short["multiplications"]


@pytest.mark.parametrize("n_columns", [1, 3, 8])
@pytest.mark.parametrize("key_bits", [0, 256, 1024])
def test_packed_rows_come_back(n_columns, key_bits):
    rng = np.random.default_rng(0)
    layout = plan_rows(n_columns, 50, 2, key_bits)
    values = rng.integers(-(2**23) + 1, 2**23, size=(50, n_columns)).astype(np.int32)
    values[0], values[1] = 2**23 - 1, -(2**23) + 1
    words = layout.pack(values)
    factors = rng.integers(-(2**40), 2**40, size=(50, 2))
    packed = np.array(wide.to_ints(words.reshape(-1, words.shape[-1])), dtype=object).reshape(
        50, layout.per_row
    )
    sums = factors.T.astype(object) @ packed
    assert (layout.unpack(sums) == values.T.astype(object) @ factors.astype(object)).all()
    if key_bits:
        assert abs(packed).max() < 2**layout.bits
        assert abs(sums).max() < 2 ** (key_bits - 2)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"partition": dealt(7, 3)}, "two parties, there are 3"),
        ({"class_weight": "balanced"}, "no sample or class weights"),
        ({"residual": "exact"}, "polynomials of order 1"),
    ],
)
def test_what_it_cannot_do_is_refused_before_a_key_is_made(how, words):
    X, y = some_data("binary")
    with pytest.raises(ValueError, match=words):
        estimator("binary", **{"exchange": "rows", **how}).fit(X, y)


def test_sparse_features_are_refused():
    X, y = some_data("binary")
    with pytest.raises(ValueError, match="packs dense rows"):
        estimator("binary", exchange="rows").fit(sparse.csr_array(X), y)


def test_a_key_too_short_for_a_slot_is_refused():
    with pytest.raises(ValueError, match="does not fit a key of 64 bits"):
        plan_rows(3, 1000, 1, 64)
