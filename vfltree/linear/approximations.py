"""Polynomials in place of the logistic function, which no sum of ciphertexts can compute.

All are 1/2 plus odd powers, as the function itself. Coefficients are floats here; `scores.residuals` rounds them to
fixed point.
"""

from __future__ import annotations

from functools import cache

import numpy as np

APPROXIMATIONS = ("taylor", "least_squares", "minimax")
HIGHEST_ORDER = 3
_GRID = 2001
_DIGITS = 9


def logistic_polynomial(kind: str, order: int, interval: float) -> tuple[float, ...]:
    """c_0 ... c_order with sum c_i z^i close to 1 / (1 + exp(-z)).

    kind : "taylor" at 0 (1/2 + z/4 - z^3/48); "least_squares" or "minimax" over [-interval, interval]
    order : 1, or 3; an even order is the odd one below, since even powers vanish
    """
    odd = [1] if order < 3 else [1, 3]
    if kind == "taylor":
        slopes = [0.25, -1 / 48][: len(odd)]
    else:
        slopes = list(_fitted(kind, len(odd), float(interval)))
    coefficients = [0.5] + [0.0] * odd[-1]
    for power, slope in zip(odd, slopes, strict=True):
        coefficients[power] = slope
    return tuple(coefficients)


def largest_error(coefficients: tuple[float, ...], interval: float) -> float:
    """The largest distance from the logistic function over [-interval, interval]."""
    z = np.linspace(-interval, interval, _GRID)
    return float(np.abs(np.polynomial.polynomial.polyval(z, coefficients) - _logistic(z)).max())


def _logistic(z: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-z))


@cache
def _fitted(kind: str, n_terms: int, interval: float) -> tuple[float, ...]:
    t = np.linspace(
        0.0, 1.0, _GRID
    )  # by symmetry the right half is enough; z = t * interval keeps powers small
    powers = np.stack([t ** (2 * k + 1) for k in range(n_terms)], axis=1)
    wanted = _logistic(t * interval) - 0.5
    weights = np.ones(_GRID)
    fitted = np.linalg.lstsq(powers, wanted, rcond=None)[0]
    if kind == "minimax":
        # Lawson 1961: least squares whose weights grow where the error is large tends to the smallest maximum.
        for _ in range(400):
            root = np.sqrt(weights)
            fitted = np.linalg.lstsq(powers * root[:, None], wanted * root, rcond=None)[0]
            weights *= np.abs(powers @ fitted - wanted) + 1e-300
            weights /= weights.sum()
    # Rounded, so that another order of additions in another process gives the same coefficients.
    return tuple(round(float(c) / interval ** (2 * k + 1), _DIGITS) for k, c in enumerate(fitted))
