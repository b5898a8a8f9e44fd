"""Which rows of the passive party are alike? What the active party computes from scores that it is shown.

With residual="exact" it sees u_t = X w_t of every step, and knows the residuals d_t that made the next ones. Under
descent u_(t+1) = (1 - rate l2) u_t - rate X X^T d_t / n, so every step gives a product of the Gram matrix X X^T, which
is symmetric and has as few dimensions as X columns. Whatever the optimizer, scores of different steps span the columns
of X, so the projection X (X^T X)^+ X^T follows, which says the same with all combinations of columns on one scale.

Input: an `ActiveLinearView`, nothing else.
"""

from __future__ import annotations

import numpy as np

from .linear_views import ActiveLinearView

_FAINT = 1e-11  # of the largest residuals: what is smaller drowns in the rounding of scores


def gram(view: ActiveLinearView) -> np.ndarray | None:
    """X X^T, float64 (n_rows, n_rows), from a training by descent at a constant rate; None without scores."""
    if len(view.scores) < 2:
        return None
    basis, rate = _span(view), view.shared.learning_rate
    known, n_rows = len(view.scores) - 1, view.scores.shape[1]
    # X X^T d_t of every step, and d_t, on the basis. G is `core` there.
    moved = (1.0 - rate * view.shared.l2) * view.scores[:-1] - view.scores[1:]
    V = basis.T @ moved.T * n_rows / rate
    D = basis.T @ view.residuals[:known].T
    # The symmetric matrix that comes closest to core D = V; where two directions are both faint, nothing is known.
    left, sizes, right = np.linalg.svd(D, full_matrices=False)
    seen = left.T @ V @ right.T * sizes
    weights = sizes[:, None] ** 2 + sizes**2
    weights[weights < (_FAINT * sizes[0]) ** 2] = np.inf
    core = left @ ((seen + seen.T) / weights) @ left.T
    return np.asarray(basis @ core @ basis.T)


def projection(view: ActiveLinearView) -> np.ndarray | None:
    """X (X^T X)^+ X^T, float64 (n_rows, n_rows), from any training; None without scores."""
    if len(view.scores) < 2:
        return None
    basis = _span(view)
    return np.asarray(basis @ basis.T)


def _span(view: ActiveLinearView) -> np.ndarray:
    """An orthonormal basis of the columns of X, as far as scores show them: (n_rows, at most n_hidden)."""
    return np.linalg.svd(view.scores.T, full_matrices=False)[0][:, : view.n_hidden]


def error(found: np.ndarray, truth: np.ndarray) -> float:
    """Relative, in the Frobenius norm."""
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def neighbours_right(found: np.ndarray, truth: np.ndarray) -> float:
    """Share of rows whose nearest other row is the true one."""
    return float((_nearest(found) == _nearest(truth)).mean())


def _nearest(gram_matrix: np.ndarray) -> np.ndarray:
    squares = np.diag(gram_matrix)
    distances = squares[:, None] + squares - 2.0 * gram_matrix
    np.fill_diagonal(distances, np.inf)
    return distances.argmin(axis=1)
