"""Five small data sets that the FATE project ships as examples of vertical federated learning, already split.

`*_hetero_guest.csv` holds the label and one part of the columns (the active party), `*_hetero_host.csv` the rest; rows
are joined on the first column. FATE's own words, guest and host, name the parties here.
"""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from vfldata.dataset import Task, VerticalDataset, from_table
from vfldata.home import Folder, need_file


@dataclass(frozen=True)
class _Set:
    prefix: str
    label: str
    task: Task
    n_rows: int
    class_names: tuple[str, ...] = ()


_SETS = {
    "breast": _Set("breast_hetero", "y", "binary", 569, ("malignant", "benign")),
    "vehicle": _Set("vehicle_scale_hetero", "y", "multiclass", 846, ("0", "1", "2", "3")),
    "motor": _Set("motor_hetero", "motor_speed", "regression", 800),
    "student": _Set("student_hetero", "y", "regression", 395),
    "dvisits": _Set("dvisits_hetero", "doctorco", "regression", 5190),
}
FATE_EXAMPLES = tuple(_SETS)


def load_fate_example(name: str, *, data_home: Folder = None, random_state: int = 0) -> VerticalDataset:
    """One of FATE's example sets, for the parties "guest" (active) and "host".

    ======== ===== ============== ==========================================================
    name     rows  columns        label
    ======== ===== ============== ==========================================================
    breast   569   10 + 20        benign (1) or malignant (0); columns are standardised
    vehicle  846   9 + 9          four kinds of vehicle, 0..3
    motor    800   4 + 7          speed of a motor, standardised
    student  395   6 + 7          a grade, 0..20
    dvisits  5,190 3 + 9          visits to a doctor in two weeks, a count
    ======== ===== ============== ==========================================================

    A quarter of the rows, drawn with `random_state`, is the test part. Column names are prefixed by the party's, since
    both sides count theirs from x0. Files are looked for in the folder "fate" of `data_home` (or of VFL_DATA_HOME).
    Raises FileNotFoundError saying what to get, ValueError for another name or other files.
    """
    if name not in _SETS:
        raise ValueError(f"name must be one of {', '.join(FATE_EXAMPLES)}, got {name!r}")
    kind = _SETS[name]
    guest, host = (_read(kind, side, data_home) for side in ("guest", "host"))
    if set(guest.index) != set(host.index):
        raise ValueError(f"{name}: guest and host hold different IDs ({len(guest)} and {len(host)} rows)")
    y = guest.pop(kind.label)
    blocks = {"guest": guest, "host": host.loc[guest.index]}
    named = {party: block.add_prefix(f"{party}_") for party, block in blocks.items()}
    return from_table(
        f"fate_{name}",
        pd.concat(list(named.values()), axis=1).astype("float64"),
        y.astype("float64" if kind.task == "regression" else "int64"),
        {party: [str(name) for name in block] for party, block in named.items()},
        n_test=round(len(y) / 4),
        random_state=random_state,
        task=kind.task,
        class_names=kind.class_names,
        source=str(_path(kind, "guest", data_home).parent),
    )


def _path(kind: _Set, side: str, data_home: Folder) -> Path:
    name = f"fate/{kind.prefix}_{side}.csv"
    return need_file((name, f"{name}.gz"), data_home, f"FATE's example file {name}", "examples/data of FATE")


def _read(kind: _Set, side: str, data_home: Folder) -> pd.DataFrame:
    path = _path(kind, side, data_home)
    table = pd.read_csv(path, index_col=0)
    if len(table) != kind.n_rows or (kind.label in table) != (side == "guest"):
        raise ValueError(
            f"{path} is not FATE's file: {len(table)} rows, columns {list(table)}; expected {kind.n_rows} rows "
            f"{'with' if side == 'guest' else 'without'} a column {kind.label!r}"
        )
    return table
