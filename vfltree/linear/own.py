"""A party's own share of a linear model: its columns, its coefficients, and the steps it takes on its own gradient."""

from __future__ import annotations

import numpy as np

from .columns import FixedColumns
from .optimisers import make_optimiser
from .shared import SharedSettings


class OwnModel:
    """What a party, active or passive, keeps to itself.

    coefficients : float64 (n_coefficients, n_outputs); the last row is the intercept where columns have one.
    settled : whether the last gradient was within `tol`: the party would stop here.
    """

    def __init__(self, columns: FixedColumns, settings: SharedSettings, start: np.ndarray) -> None:
        self.columns, self._settings = columns, settings
        self.coefficients = start.copy()
        self.settled = False
        self._penalised = np.ones((columns.n_coefficients, 1))
        self._penalised[columns.n_columns :] = 0.0
        self._optimiser = make_optimiser(settings, columns, self._proximal)

    def scores(self, rows: np.ndarray | None = None) -> np.ndarray:
        """int64 (n_rows, n_outputs), in units of settings.unit * 2**-SCORE_BITS."""
        return self.columns.scores(self.coefficients / self._settings.unit, rows)

    def take_step(self, sums: np.ndarray, n_batch: int, curvature: float) -> None:
        """One step on X^T d as opened.

        sums : Python integers (n_coefficients, n_outputs)
        n_batch : rows that were summed; 0: all
        """
        settings = self._settings
        share = self.columns.n_rows / n_batch if n_batch else 1.0
        gradient = self.columns.gradients(sums, settings.factor * share)
        gradient += settings.l2 * self._penalised * self.coefficients
        self.settled = self._slope(gradient) <= settings.tol * settings.unit
        self.coefficients = self._optimiser.step(self.coefficients, gradient, curvature)

    def _slope(self, gradient: np.ndarray) -> float:
        """Largest partial derivative; under an L1 penalty, the largest move of a proximal step of length 1."""
        if self._settings.l1:
            gradient = self.coefficients - self._proximal(self.coefficients - gradient, 1.0)
        return float(np.abs(gradient).max(initial=0.0))

    def _proximal(self, coefficients: np.ndarray, step: np.ndarray | float) -> np.ndarray:
        """Soft threshold by l1 times the step size; intercepts are not penalised."""
        if not self._settings.l1:
            return coefficients
        shrunk = np.maximum(np.abs(coefficients) - self._settings.l1 * step * self._penalised, 0.0)
        return np.copysign(shrunk, coefficients)
