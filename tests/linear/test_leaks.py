"""Attacks as regression tests: the leaks that the documents describe exist with the options, and not by default."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.leakage import gradient_labels, gram_matrix, linear_views
from tests.linear.small import WEAK, estimator

pytestmark = [
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SMALL_BATCHES = {"optimizer": "sgd", "learning_rate": 0.01, "max_iter": 1, "allow_small_batches": True}


def data(n_rows=96, n_passive=5):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n_rows, 3 + n_passive))
    y = (X[:, 0] + X[:, 4] + 0.5 * rng.normal(size=n_rows) > 0).astype(int)
    return [X[:, :3], X[:, 3:]], y


@pytest.mark.parametrize("seed", range(3))
def test_two_columns_of_32_rows_give_every_label_of_the_first_batch(seed):
    blocks, y = data(n_passive=2)
    view = linear_views.train(blocks, y, seed=seed, batch_size=32, **SMALL_BATCHES).passive
    rows, found = view.steps[0].rows, gradient_labels.recover(view)
    assert len(rows) == 32
    assert (found[rows] == y[rows]).all()


def test_batches_of_fewer_rows_than_columns_give_labels_at_every_step():
    blocks, y = data()
    view = linear_views.train(blocks, y, batch_size=4, **SMALL_BATCHES).passive
    assert len(view.steps) == 24
    assert (gradient_labels.recover(view) == y).all()


def test_full_batches_give_no_label_but_a_regression_on_own_columns():
    blocks, y = data()
    view = linear_views.train(blocks, y, max_iter=3).passive
    assert (gradient_labels.recover(view) == gradient_labels.UNKNOWN).all()
    own = blocks[1] @ np.linalg.lstsq(blocks[1], y - 0.5, rcond=None)[0]
    assert np.corrcoef(gradient_labels.guess(view), own)[0, 1] > 0.9999


def test_batches_that_small_are_refused_without_the_option():
    blocks, y = data()
    X = dict(zip(("bank", "shop"), blocks, strict=True))
    with pytest.raises(ValueError, match="least 384, or pass allow_small_batches=True"):
        estimator("binary", optimizer="sgd", batch_size=32, partition=None, **WEAK).fit(X, y)


@pytest.mark.parametrize("how", [{}, {"optimizer": "adam", "learning_rate": 0.1}])
def test_exact_residuals_show_which_rows_are_alike(how):
    blocks, y = data()
    view = linear_views.train(blocks, y, residual="exact", max_iter=60, **how).active
    basis = np.linalg.qr(blocks[1])[0]
    found = gram_matrix.projection(view)
    assert found is not None and gram_matrix.error(found, basis @ basis.T) < 1e-3
    assert gram_matrix.neighbours_right(found, basis @ basis.T) > 0.98


def test_exact_residuals_and_plain_descent_give_the_gram_matrix():
    blocks, y = data()
    view = linear_views.train(
        blocks, y, residual="exact", optimizer="sgd", learning_rate=0.5, max_iter=60
    ).active
    found, truth = gram_matrix.gram(view), blocks[1] @ blocks[1].T
    assert found is not None and gram_matrix.error(found, truth) < 1e-2
    assert gram_matrix.neighbours_right(found, truth) > 0.98


def test_by_default_the_active_party_is_shown_no_scores():
    blocks, y = data()
    view = linear_views.train(blocks, y, max_iter=60).active
    assert view.scores.shape == view.residuals.shape == (0, len(y))
    assert gram_matrix.gram(view) is None and gram_matrix.projection(view) is None
