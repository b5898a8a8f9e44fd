"""What files of linear models hold, see `vfltree.halves`: every party's own coefficients, and nobody else's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..halves import FileKind
from .messages import LinearResult, PassiveCoefficients


def check_halves(active: LinearResult, parties: Sequence[tuple[PassiveCoefficients | None, int]]) -> None:
    """ValueError where coefficients have other shapes than the model's columns and outputs, or are no numbers."""
    n_outputs = len(active.intercept)
    for half, n_columns in parties:
        if half is None:
            continue
        if half.coefficients.shape != (n_columns, n_outputs):
            raise ValueError(
                f"coefficients of shape {half.coefficients.shape}, expected {(n_columns, n_outputs)}"
            )
        if not np.isfinite(half.coefficients).all():
            raise ValueError("coefficients that are not finite")
    if not n_outputs or not np.isfinite(active.intercept).all():
        raise ValueError("intercepts that are not finite, or none")


FILE_KIND = FileKind(
    "linear",
    LinearResult,
    PassiveCoefficients,
    module="linear.models",
    estimators=("SecureLogisticRegression", "SecureLinearRegression", "SecurePoissonRegression"),
    kept=("encryption_", "n_iter_"),
    check=check_halves,
)
