"""When to stop by the loss, which only the active party sees: it announces nothing but the end."""

from __future__ import annotations

import math


class Patience:
    """Stops once the loss has not fallen by more than tol for n_epochs epochs, as scikit-learn's SGD estimators do."""

    def __init__(self, n_epochs: int, tol: float) -> None:
        self._n_epochs, self._tol = n_epochs, tol
        self._best = math.inf
        self._waited = 0

    def is_over(self, loss: float) -> bool:
        """After every epoch, with its mean loss."""
        self._waited = 0 if loss < self._best - self._tol else self._waited + 1
        self._best = min(self._best, loss)
        return self._waited >= self._n_epochs
