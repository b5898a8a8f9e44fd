"""What processes of the tests run; they import it by this name."""

from __future__ import annotations

import warnings
from typing import Any

from tests.secureboost.small import CONST4, WEAK, XA4, Y4, blocks, boost1, positive


def fit_with_threads() -> list[float]:
    """Probabilities of a small encrypted model that was trained in four threads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = boost1(encryption="paillier", n_jobs=4, min_rows_per_sum=1, **WEAK).fit(
            blocks(CONST4, XA4), Y4
        )
    return positive(model, blocks(CONST4, XA4)).tolist()


def fit_in_a_child(connection: Any) -> None:
    connection.send(fit_with_threads())
    connection.close()
