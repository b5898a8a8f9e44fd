"""Steps on one party's own coefficients. Every party runs its own copy on its own gradient; nothing here is shared.

Per-coordinate methods (sgd, momentum, adam, adagrad) on the parts are exactly the method on the whole, because no
coordinate looks at another. `newton` looks at the party's own columns: see `BlockNewton`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

from .columns import FixedColumns
from .shared import SharedSettings

OPTIMIZERS = ("newton", "sgd", "momentum", "adam", "adagrad")
_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8  # Kingma and Ba 2015
WIDEST_BLOCK = 512  # columns; beyond it only a diagonal is used
_JITTER = 1e-9  # of the diagonal: columns that depend on others have no part of the gradient there

Proximal = Callable[[np.ndarray, np.ndarray | float], np.ndarray]


class Optimiser(Protocol):
    """The next coefficients, float64 (n_coefficients, n_outputs). `curvature` as in SharedSettings, as it is now."""

    def step(self, coefficients: np.ndarray, gradient: np.ndarray, curvature: float) -> np.ndarray: ...


def make_optimiser(settings: SharedSettings, columns: FixedColumns, proximal: Proximal) -> Optimiser:
    """proximal(coefficients, step size): the L1 penalty's share of a step; identity without one."""
    if settings.optimizer == "newton":
        return BlockNewton(settings, columns, proximal)
    kinds: dict[str, type[_PerCoordinate]] = {
        "sgd": Descent,
        "momentum": Momentum,
        "adam": Adam,
        "adagrad": Adagrad,
    }
    if settings.optimizer not in kinds:
        raise ValueError(f"optimizer must be one of {OPTIMIZERS}, got {settings.optimizer!r}")
    return kinds[settings.optimizer](settings, proximal)


class _PerCoordinate:
    """A learning rate that decays as learning_rate / (1 + learning_rate_decay * step)."""

    def __init__(self, settings: SharedSettings, proximal: Proximal) -> None:
        self._settings, self._proximal = settings, proximal
        self._steps = 0

    def step(self, coefficients: np.ndarray, gradient: np.ndarray, curvature: float) -> np.ndarray:
        settings = self._settings
        rate = settings.learning_rate / (1.0 + settings.learning_rate_decay * self._steps)
        self._steps += 1
        direction, scale = self._direction(gradient)
        return self._proximal(coefficients - rate * direction, rate * scale)

    def _direction(self, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        """Where to go, and the step size of each coordinate per unit of learning rate."""
        raise NotImplementedError


class Descent(_PerCoordinate):
    """w <- w - rate * g"""

    def _direction(self, gradient: np.ndarray) -> tuple[np.ndarray, float]:
        return gradient, 1.0


class Momentum(_PerCoordinate):
    """v <- momentum * v + g;  w <- w - rate * v"""

    _velocity: np.ndarray | float = 0.0

    def _direction(self, gradient: np.ndarray) -> tuple[np.ndarray, float]:
        momentum = self._settings.momentum
        self._velocity = momentum * self._velocity + gradient
        # A gradient that stays counts 1 / (1 - momentum) times, and so must the L1 penalty.
        return self._velocity, 1.0 / (1.0 - momentum)


class Adam(_PerCoordinate):
    """Kingma and Ba 2015, Algorithm 1."""

    _mean: np.ndarray | float = 0.0
    _square: np.ndarray | float = 0.0

    def _direction(self, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self._mean = _BETA1 * self._mean + (1 - _BETA1) * gradient
        self._square = _BETA2 * self._square + (1 - _BETA2) * gradient * gradient
        mean = self._mean / (1 - _BETA1**self._steps)
        scale = 1.0 / (np.sqrt(self._square / (1 - _BETA2**self._steps)) + _EPSILON)
        return mean * scale, scale


class Adagrad(_PerCoordinate):
    """Duchi, Hazan and Singer 2011, the diagonal form."""

    _square: np.ndarray | float = 0.0

    def _direction(self, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self._square = self._square + gradient * gradient
        scale = 1.0 / (np.sqrt(self._square) + _EPSILON)
        return gradient * scale, scale


class BlockNewton:
    """Newton steps within a party's own columns, with Nesterov's momentum between them.

    The loss's second derivative is at most `curvature` per row (1/4 for logistic loss), so curvature X_k^T X_k + l2
    bounds a party's own block of the Hessian, and n_parties times the blocks bound the whole: steps of
    (n_parties * block)^-1 g never overshoot, whatever the scales of columns and however they correlate within a
    party. Only correlation *between* parties slows it down, which the momentum makes up for. Nobody needs an inner
    product over all parties, as L-BFGS would, so no party learns more than with plain descent.

    The momentum starts again when it points uphill here (O'Donoghue and Candes 2015, on a party's own part). Blocks
    wider than WIDEST_BLOCK are bounded by a diagonal.
    Source: Boehning and Lindsay 1988 (the bound); Nesterov 1983.
    """

    def __init__(self, settings: SharedSettings, columns: FixedColumns, proximal: Proximal) -> None:
        if settings.l1:
            raise ValueError(
                "optimizer='newton' takes no L1 penalty: choose 'sgd', 'momentum', 'adam' or 'adagrad'"
            )
        self._settings = settings
        self._rate = settings.learning_rate / settings.n_parties
        narrow = columns.n_coefficients <= WIDEST_BLOCK
        self._square = _gram(columns) if narrow else columns.row_bounds()
        penalised = np.full(columns.n_coefficients, settings.l2)
        penalised[columns.n_columns :] = 0.0  # not the intercept
        self._penalty = np.diag(penalised) if narrow else penalised
        self._curvature = 0.0
        self._inverse = np.zeros(0)
        self._last: np.ndarray | None = None
        self._age = 1.0

    def step(self, coefficients: np.ndarray, gradient: np.ndarray, curvature: float) -> np.ndarray:
        """`coefficients` are where the gradient was taken: the point that momentum looked ahead to."""
        reached = coefficients - self._rate * self._solve(gradient, curvature)
        last = coefficients if self._last is None else self._last
        if (gradient * (reached - last)).sum() > 0:
            self._age = 1.0
        age = (1.0 + math.sqrt(1.0 + 4.0 * self._age * self._age)) / 2.0
        ahead = reached + (self._age - 1.0) / age * (reached - last)
        self._last, self._age = reached, age
        return ahead

    def _solve(self, gradient: np.ndarray, curvature: float) -> np.ndarray:
        if curvature != self._curvature:
            self._curvature = curvature
            bound = curvature * self._square + self._penalty
            self._inverse = inverse(bound) if bound.ndim == 2 else 1.0 / np.where(bound > 0, bound, 1.0)
        if self._inverse.ndim == 1:
            return self._inverse[:, None] * gradient
        # Plain sums, as everywhere here: a BLAS may add in another order in another process.
        columns = [(self._inverse * gradient[:, k]).sum(axis=1) for k in range(gradient.shape[1])]
        return np.stack(columns, axis=1)


def _gram(columns: FixedColumns) -> np.ndarray:
    scale = np.ldexp(1.0, -columns.exponents)
    return columns.gram() * scale[:, None] * scale


def inverse(matrix: np.ndarray) -> np.ndarray:
    """Of a positive semidefinite matrix, a little regularised: by Cholesky, in an order that does not vary."""
    diagonal = np.diag(matrix)
    n = len(diagonal)
    left = matrix + np.diag(np.where(diagonal > 0, _JITTER * diagonal, 1.0))
    factor = np.zeros((n, n))
    for j in range(n):
        column = left[j:, j] - (factor[j:, :j] * factor[j, :j]).sum(axis=1)
        factor[j:, j] = column / math.sqrt(max(column[0], _JITTER * left[j, j]))
    halves = np.zeros((n, n))  # factor^-1
    for j in range(n):
        rest = -(factor[j, :j, None] * halves[:j]).sum(axis=0)
        rest[j] += 1.0
        halves[j] = rest / factor[j, j]
    out = np.zeros((n, n))
    for row in halves:
        out += row[:, None] * row
    return out
