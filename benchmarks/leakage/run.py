"""How much leaks: trains under several settings, attacks what each party saw, and writes docs/results/leakage.md.

    make leakage                      breast cancer, and Credit where VFL_DATA_HOME (or its default) has it
    make leakage ARGS="--only credit --out -"
    make leakage ARGS="--models linear --out -"         or "trees" (boosting), or "forests"

Trainings run in the clear, which shows the same integers. Everything is seeded but the noise of label privacy, which is
not by design. To add an attack: a module whose input is what one party saw, and a column here.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO))

from benchmarks.leakage import equations, forest_run, label_inference, linear_run, placements, views  # noqa: E402
from vfldata import VerticalDataset, load_breast_cancer_vertical, load_credit  # noqa: E402

TREES = {"n_estimators": 20, "max_depth": 6}
VARIANTS: dict[str, dict[str, Any]] = {
    "k = 1: every sum is sent": {"min_rows_per_sum": 1},
    "k = 3": {"min_rows_per_sum": 3},
    "k = 10 (default)": {"min_rows_per_sum": 10},
    "k = 20": {"min_rows_per_sum": 20},
    'k = 10, first_tree="active"': {"min_rows_per_sum": 10, "first_tree": "active"},
    "k = 10, label_privacy_epsilon=3": {"min_rows_per_sum": 10, "label_privacy_epsilon": 3.0},
    "k = 10, label_privacy_epsilon=1": {"min_rows_per_sum": 10, "label_privacy_epsilon": 1.0},
}
# Linear algebra takes minutes a feature on many rows, so: the small data set, and some of its features.
EQUATIONS: dict[str, dict[str, Any]] = {
    "20 trees, k = 10": {"min_rows_per_sum": 10},
    "20 trees, k = 50": {"min_rows_per_sum": 50},
    "100 trees, k = 10": {"min_rows_per_sum": 10, "n_estimators": 100},
    "100 trees, k = 10, subsample=0.5": {"min_rows_per_sum": 10, "n_estimators": 100, "subsample": 0.5},
}
ROOTS = {
    "roots of 100 trees, k = 10": 100,
    "roots of 200 trees, k = 10": 200,
    "roots of 300 trees, k = 10": 300,
}
FEATURES = (0, 7)
SMALL = "breast cancer"
OUT = REPO / "docs" / "results" / "leakage.md"


@dataclass(frozen=True)
class Row:
    """One line of the table; shares between 0 and 1."""

    variant: str
    accuracy: float
    auc: float
    one_tree: label_inference.Inferred
    all_trees: label_inference.Inferred
    solved: float
    alone: float


@dataclass(frozen=True)
class Table:
    data: VerticalDataset
    features_alone: label_inference.Inferred
    majority: float
    rows: list[Row]


def measure(data: VerticalDataset) -> Table:
    """Every variant on one data set of two classes."""
    train, test = (_blocks(data, frame) for frame in (data.X_train, data.X_test))
    y, y_test = data.y_train.to_numpy(), data.y_test.to_numpy()
    rows = []
    for variant, settings in VARIANTS.items():
        started = time.process_time()
        training = views.train(train, y.astype(float), test, **TREES, **settings)
        first, every = (label_inference.node_table(training.passive, n_rounds) for n_rounds in (1, None))
        placed = placements.score(placements.solve(training.active), training.judge)
        scores = training.test_scores[:, 0]
        rows.append(
            Row(
                variant, float(((scores > 0) == y_test).mean()), float(roc_auc_score(y_test, scores)),
                label_inference.judge(first, y), label_inference.judge(every, y), placed["solved"], placed["alone"],
            )
        )  # fmt: skip
        print(f"{data.name}: {variant}: {time.process_time() - started:.0f} CPU seconds", file=sys.stderr)
    majority = float(max((y == 0).mean(), (y == 1).mean()))
    alone = label_inference.judge(label_inference.feature_table(training.passive), y)
    return Table(data, alone, majority, rows)


def solve_equations(data: VerticalDataset) -> Iterator[str]:
    """The table of what all sums together say, line by line."""
    train, test = (_blocks(data, frame) for frame in (data.X_train, data.X_test))
    y = data.y_train.to_numpy(dtype=np.float64)
    yield f"## {data.name}: all sums of all trees as linear equations"
    yield ""
    yield (
        f"Rows whose bin is guessed right, of the passive party's features {' and '.join(map(str, FEATURES))}. "
        "Which slots are one feature is given."
    )
    yield ""
    yield "| setting | right |"
    yield "| --- | --- |"
    for place, (variant, settings) in enumerate(EQUATIONS.items()):
        training = views.train(train, y, test, **{**TREES, **settings})
        if place == 0:
            blind = equations.best_guess(training.judge, FEATURES)
            yield f"| the fullest bin, named for all rows | {100 * blind:.1f} % |"
        right = equations.score(training.active, training.judge, FEATURES)
        print(f"{data.name}: equations, {variant}", file=sys.stderr)
        yield f"| {variant} | {100 * right:.1f} % |"
    for variant, n_trees in ROOTS.items():
        settings = {"n_estimators": n_trees, "max_depth": 3, "min_rows_per_sum": 10}
        training = views.train(train, y, test, **settings)
        right = equations.score(training.active, training.judge, FEATURES, roots_only=True)
        yield f"| {variant} | {100 * right:.1f} % |"


def report(tables: list[Table], others: list[str], skipped: list[str]) -> str:
    """The page. others : lines of `forest_run` and `linear_run`"""
    lines = [
        "# How much leaks, measured",
        "",
        f"Written by `make leakage`; trees: {TREES['n_estimators']} of depth {TREES['max_depth']}, other settings by "
        "default. What the columns mean and what follows: [leakage](../leakage.md).",
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}.",
    ]
    for table in tables:
        lines += ["", *_section(table)]
        if table.data.name == SMALL:
            lines += ["", *solve_equations(table.data)]
    lines += others
    lines += [line for reason in skipped for line in ("", f"Not measured: {reason}")]
    return "\n".join(lines) + "\n"


def _section(table: Table) -> Iterator[str]:
    data, alone = table.data, table.features_alone
    parties = ", ".join(f"{party} {len(columns)} columns" for party, columns in data.partition.items())
    yield f"## {data.name}: {len(data.X_train)} + {len(data.X_test)} rows; {parties}"
    yield ""
    yield (
        f"A passive party that knows {label_inference.N_KNOWN} labels guesses the others from its own features with "
        f"accuracy {alone.accuracy:.3f} (AUC {alone.auc:.3f}); the more frequent label alone is right for "
        f"{table.majority:.3f}."
    )
    yield ""
    yield (
        "| setting | model: accuracy | AUC | labels guessed after 1 tree: accuracy | AUC | after all: accuracy | AUC | "
        "placements solved | nodes in one bin |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in table.rows:
        figures = [
            row.accuracy, row.auc, row.one_tree.accuracy, row.one_tree.auc,
            row.all_trees.accuracy, row.all_trees.auc,
        ]  # fmt: skip
        shares = [f"{100 * share:.1f} %" for share in (row.solved, row.alone)]
        yield f"| {row.variant} | " + " | ".join([f"{x:.3f}" for x in figures] + shares) + " |"


def _blocks(data: VerticalDataset, frame: Any) -> list[np.ndarray]:
    return [frame[columns].to_numpy(dtype=np.float64) for columns in data.partition.values()]


def _credit() -> VerticalDataset:
    home = os.environ.get("VFL_DATA_HOME", str(REPO.parent / "shared" / "data"))
    return load_credit(data_home=home, download=False)


DATA: dict[str, Callable[[], VerticalDataset]] = {
    "breast_cancer": load_breast_cancer_vertical,
    "credit": _credit,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=DATA, help="one data set")
    parser.add_argument("--models", choices=("trees", "forests", "linear"), help="one kind of model")
    parser.add_argument("--out", default=str(OUT), help="where the page goes; - prints it")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    tables, forests, linear, skipped = [], [], [], []
    for name in [chosen.only] if chosen.only else DATA:
        try:
            data = DATA[name]()
        except FileNotFoundError as missing:
            skipped.append(f"{name}, {str(missing).splitlines()[0]}")
            continue
        if chosen.models in (None, "trees"):
            tables.append(measure(data))
        if chosen.models in (None, "forests"):
            forests += ["", *forest_run.lines(data)]
        if chosen.models in (None, "linear"):
            linear += ["", *linear_run.lines(data)]
    page = report(tables, forests + linear, skipped)
    if chosen.out == "-":
        print(page)
    else:
        Path(chosen.out).write_text(page, encoding="utf-8")
        print(f"wrote {chosen.out}")


if __name__ == "__main__":
    main()
