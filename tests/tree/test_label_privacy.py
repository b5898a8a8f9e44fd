"""Randomised response: how often labels are kept, and losses that are right on average."""

from __future__ import annotations

import numpy as np
import pytest

from vfltree import label_privacy
from vfltree.label_privacy import UnbiasedLoss, keep_probability, randomize_labels
from vfltree.losses import Logistic, Softmax

N = 40_000


@pytest.mark.parametrize(("n_classes", "epsilon", "keep"), [(2, np.log(3), 0.75), (5, np.log(4), 0.5)])
def test_known_probabilities(n_classes, epsilon, keep):
    assert keep_probability(n_classes, epsilon) == pytest.approx(keep, rel=1e-12)


def deviations(n_classes: int, epsilon: float, true: int) -> np.ndarray:
    """How many standard deviations the count of each class is off, when all labels are `true`."""
    drawn = randomize_labels(np.full(N, true), n_classes, epsilon)
    assert drawn.min() >= 0
    assert drawn.max() < n_classes
    keep = keep_probability(n_classes, epsilon)
    p = np.full(n_classes, (1 - keep) / (n_classes - 1))
    p[true] = keep
    return (np.bincount(drawn, minlength=n_classes) - N * p) / np.sqrt(N * p * (1 - p))


def counts_fit(n_classes: int, epsilon: float, true: int) -> bool:
    """At 4.5 standard deviations one class is off once in 150,000 draws; one retry makes that never."""
    return any(np.abs(deviations(n_classes, epsilon, true)).max() < 4.5 for _ in range(2))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_labels_are_kept_as_often_as_epsilon_says_and_else_uniform(n_classes, epsilon):
    assert all(counts_fit(n_classes, epsilon, true) for true in (0, n_classes - 1))


def test_another_epsilon_is_noticed(monkeypatch):
    monkeypatch.setattr(label_privacy, "keep_probability", lambda n_classes, epsilon: 0.7)
    drawn = randomize_labels(np.zeros(N, int), 2, 1.0)
    assert abs((drawn == 0).mean() - 0.731) > 0.02  # e / (e + 1)


def test_large_epsilons_keep_every_label():
    y = np.arange(1000) % 3
    assert np.array_equal(randomize_labels(y, 3, 60.0), y)


def test_numpys_seed_does_not_reach_the_noise():
    drawn = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        drawn.append(randomize_labels(np.zeros(200, int), 2, 0.1))
    assert not np.array_equal(*drawn)


@pytest.mark.parametrize(
    ("loss", "n_classes"),
    [(Logistic(), 2), (Logistic(scale_pos_weight=3.0), 2), (Softmax(4), 4)],
    ids=["two", "weighted", "four"],
)
def test_the_expectation_over_the_noise_is_the_loss_of_the_true_label(loss, n_classes):
    """Exactly: the weighted mean over all outcomes of the noise."""
    epsilon, true = 0.7, 1
    rng = np.random.default_rng(0)
    raw = rng.normal(size=(1, loss.n_outputs))
    weights = np.array([2.5])
    unbiased = UnbiasedLoss(loss, n_classes, epsilon)
    keep = keep_probability(n_classes, epsilon)
    expected = sum(
        (keep if label == true else (1 - keep) / (n_classes - 1))
        * unbiased.gradients(np.array([float(label)]), raw, weights)[0]
        for label in range(n_classes)
    )
    gradients, _ = loss.gradients(np.array([float(true)]), raw, weights)
    np.testing.assert_allclose(expected, gradients, rtol=1e-12)


def test_the_unbiased_value_is_the_true_loss_on_average():
    """Labels that follow the scores, so that noise makes the plain loss worse; the estimate stays near."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=N).astype(float)
    raw = 3.0 * np.eye(3)[y.astype(int)]
    noisy = randomize_labels(y.astype(int), 3, 1.0).astype(float)
    true = Softmax(3).value(y, raw)
    assert abs(UnbiasedLoss(Softmax(3), 3, 1.0).value(noisy, raw) - true) < 0.2
    assert abs(Softmax(3).value(noisy, raw) - true) > 0.5
