"""What files of boosted trees hold, see `vfltree.halves`."""

from ..growing.checks import check_halves
from ..growing.messages import ActiveResult, Records
from ..halves import FileKind

FILE_KIND = FileKind(
    "secureboost",
    ActiveResult,
    Records,
    module="secureboost.estimator",
    estimators=("SecureBoostClassifier", "SecureBoostRegressor"),
    kept=("encryption_", "n_rows_", "best_iteration_", "best_score_"),
    check=check_halves,
)
