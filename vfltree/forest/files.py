"""What files of forests hold, see `vfltree.halves`."""

from ..growing.checks import check_halves, count_outputs
from ..growing.messages import ActiveResult, Records
from ..halves import FileKind

FILE_KIND = FileKind(
    "forest",
    ActiveResult,
    Records,
    module="forest.estimator",
    estimators=("SecureForestClassifier", "SecureForestRegressor"),
    kept=("encryption_", "n_rows_", "oob_score_"),
    check=check_halves,
    n_outputs=count_outputs,
)
