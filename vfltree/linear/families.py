"""What each family of models asks of a row: the mean as a function of the score, its slope, the loss, and a start.

The gradient of every loss here by the score is mean(z) - y (canonical links), so a family is its mean function.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

LARGEST_LOG = 700.0  # exp() of more is no double


class Family(Protocol):
    """Scores z and targets y are float64 (n_rows, n_outputs); the outputs of a row belong together."""

    @property
    def curvature(self) -> float:
        """Upper bound of the mean's slope; 0 where there is none."""

    def mean(self, z: np.ndarray) -> np.ndarray: ...

    def losses(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Per row, (n_rows,)."""

    def start(self, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Intercepts of an untrained model, (n_outputs,)."""


def weighted_mean(y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Per output, exactly rounded, so that it does not depend on the order of rows."""
    total = math.fsum(weights)
    return np.array([math.fsum(y[:, k] * weights) / total for k in range(y.shape[1])])


class Gaussian:
    """Squared error (z - y)^2 / 2; the mean is the score."""

    curvature = 1.0

    def mean(self, z: np.ndarray) -> np.ndarray:
        return z

    def losses(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(((z - y) ** 2 / 2).sum(axis=1))

    def start(self, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return weighted_mean(y, weights)


class Binomial:
    """Logistic loss of every output for itself: y is 0 or 1."""

    curvature = 0.25

    def mean(self, z: np.ndarray) -> np.ndarray:
        decay = np.exp(-np.abs(z))
        return np.where(z >= 0, 1.0, decay) / (1.0 + decay)

    def losses(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray((np.logaddexp(0.0, z) - y * z).sum(axis=1))

    def start(self, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return np.zeros(y.shape[1])


class Multinomial:
    """Softmax loss over the outputs: y is 1 at the row's class."""

    curvature = 0.5  # Boehning 1992

    def mean(self, z: np.ndarray) -> np.ndarray:
        powers = np.exp(z - z.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def losses(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        highest = z.max(axis=1)
        return np.asarray(np.log(np.exp(z - highest[:, None]).sum(axis=1)) + highest - (y * z).sum(axis=1))

    def start(self, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return np.zeros(y.shape[1])


class Poisson:
    """Poisson loss exp(z) - y z, with the logarithm as link; y is not negative."""

    curvature = 0.0  # the slope is the mean itself

    def mean(self, z: np.ndarray) -> np.ndarray:
        return np.exp(np.minimum(z, LARGEST_LOG))

    def losses(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray((self.mean(z) - y * z).sum(axis=1))

    def start(self, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return np.log(weighted_mean(y, weights))


FAMILIES: dict[str, Family] = {
    "gaussian": Gaussian(),
    "binomial": Binomial(),
    "multinomial": Multinomial(),
    "poisson": Poisson(),
}
