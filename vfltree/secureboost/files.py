"""What files of boosted trees hold, see `vfltree.halves`."""

from __future__ import annotations

from collections.abc import Sequence

from ..growing.checks import check_halves, count_outputs
from ..growing.messages import ActiveResult, Records
from ..halves import FileKind
from .objectives import OBJECTIVES


def check_boosted(active: ActiveResult, parties: Sequence[tuple[Records | None, int]]) -> None:
    """As `check_halves`; ValueError also where the objective is unknown or has another number of outputs."""
    check_halves(active, parties)
    n_outputs = len(active.base_score)
    if active.objective not in OBJECTIVES or (active.objective == "binary:logistic" and n_outputs > 1):
        raise ValueError(f"there is no objective {active.objective!r} of {n_outputs} outputs")


FILE_KIND = FileKind(
    "secureboost",
    ActiveResult,
    Records,
    module="secureboost.estimator",
    estimators=("SecureBoostClassifier", "SecureBoostRegressor"),
    kept=("encryption_", "n_rows_", "best_iteration_", "best_score_"),
    check=check_boosted,
    n_outputs=count_outputs,
)
