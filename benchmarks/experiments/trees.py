"""VFLAIR's table of trees: forest and boosting on Credit and Nursery, plain and encrypted, five seeds.

    make experiments ARGS="trees"                          everything; docs/results/trees.md
    .venv/bin/python benchmarks/experiments/trees.py --seeds 1 --bits 0 512 --data nursery

A seed draws the training and test rows, the bootstrap samples and the columns. The clock runs over `fit` alone.
"""

from __future__ import annotations

import argparse
import datetime
import warnings
from typing import Any

import numpy as np
from runs import (
    Result,
    Settings,
    Stopwatch,
    cipher,
    cipher_name,
    machine,
    made_runs,
    make_runs,
    mean_and_deviation,
    table,
    warm_up,
    write_page,
)
from sklearn.ensemble import RandomForestClassifier

from vflcrypto import InsecureKeyWarning, reuse_keys
from vfldata import load_credit, load_nursery
from vfltree import NotEncryptedWarning, SecureBoostClassifier, SecureForestClassifier

LOADERS = {"credit": load_credit, "nursery": load_nursery}
TREES, DEPTH, BINS = 5, 6, 32
# The paper's figures: accuracy, seconds plain and encrypted with 512 bits, on one Xeon E5-2650 v2.
PAPER = {
    ("forest", "credit"): ("0.816 ± 0.005", "138 ± 4", "410 ± 10"),
    ("forest", "nursery"): ("0.884 ± 0.010", "29 ± 2", "243 ± 5"),
    ("boosting", "credit"): ("0.816 ± 0.004", "366 ± 16", "881 ± 6"),
    ("boosting", "nursery"): ("0.890 ± 0.011", "69 ± 4", "1194 ± 21"),
}
ENCRYPTED = ("forest", "boosting")  # the other rows are there for their accuracy
MODELS = (*ENCRYPTED, "boosting, rate 0.003", "scikit-learn forest")


def build(settings: Settings, partition: dict[str, list[str]]) -> Any:
    """The estimator of a run."""
    model, seed = settings["model"], settings["seed"]
    if model == "scikit-learn forest":
        return RandomForestClassifier(TREES, max_depth=DEPTH, random_state=seed)
    shared = {"max_depth": DEPTH, "max_bin": BINS, "partition": partition, "n_jobs": -1, "random_state": seed}
    shared |= cipher(settings["bits"])
    if model == "forest":
        return SecureForestClassifier(TREES, **shared)
    # The paper's learning rate moves scores by less than the classes' shares do: all classes start alike.
    slow = {"learning_rate": 0.003, "base_score": 0.5} if model.endswith("0.003") else {}
    return SecureBoostClassifier(TREES, **shared, **slow)


def make(settings: Settings) -> Result:
    data = LOADERS[settings["data"]](random_state=settings["seed"])
    warm_up(settings["bits"])
    model = build(settings, data.partition)
    with Stopwatch() as watch:
        model.fit(data.X_train, data.y_train)
    predicted = model.predict(data.X_test)
    costs = getattr(model, "costs_", {})
    return {
        "accuracy": float(np.mean(predicted == data.y_test)),
        "seconds": watch.wall,
        "cpu_seconds": watch.cpu,
        "encryptions": costs.get("encryptions", 0),
        "products": costs.get("additions", 0) + costs.get("squarings", 0),
        "decryptions": costs.get("decryptions", 0),
        "megabytes": costs.get("bytes", 0) / 1e6,
    }


def page(results: list[Result]) -> str:
    groups: dict[tuple[str, str, int], list[Result]] = {}
    for result in results:
        groups.setdefault((result["data"], result["model"], result["bits"]), []).append(result)
    rows = [_row(*key, group) for key, group in groups.items()]
    columns = [
        "data", "model", "key", "seeds", "accuracy", "seconds", "CPU seconds", "encryptions", "products", "decryptions",
        "MB sent", "paper: accuracy", "paper: seconds plain", "paper: seconds at 512 bits",
    ]  # fmt: skip
    return f"""# Trees on Credit and Nursery: plain and encrypted

Written by `make experiments` on {datetime.date.today()}: {machine()}.

{TREES} trees (for boosting rounds; on Nursery a round is one tree per class) of depth {DEPTH}, {BINS} bins,
mean ± standard deviation over the seeds. Seconds are wall-clock of `fit`, key made before; two parties in one
process. Nursery
one-hot in full. Encrypted and plain runs of a seed give the same model, so their accuracies are the same. 512-bit keys
protect nothing: those rows stand here because the paper used them.

{table(columns, rows)}
Seconds are wall-clock and grow with whatever else the machine does meanwhile; CPU seconds hardly do.

The paper (VFLAIR) measured on one Intel Xeon E5-2650 v2 with learning rate 0.003. Boosting here uses 0.3, the usual
rate, unless the row says 0.003. The scikit-learn forest is trained on pooled data with the same number and depth of
trees, for comparison.
"""


def in_order(results: list[Result]) -> list[Result]:
    """Rows of a data set and a model together, keys from none to the longest."""
    return sorted(results, key=lambda r: (r["data"], MODELS.index(r["model"]), r["bits"], r["seed"]))


def _row(data: str, model: str, bits: int, group: list[Result]) -> list[object]:
    paper = PAPER.get((model.split(",")[0], data), ("", "", ""))
    plain = model.startswith("scikit")
    return [
        data, model, "pooled data" if plain else cipher_name(bits), len(group),
        mean_and_deviation((r["accuracy"] for r in group), 4),
        mean_and_deviation((r["seconds"] for r in group), 2),
        mean_and_deviation((r["cpu_seconds"] for r in group), 2),
        *(f"{np.mean([r[name] for r in group]):,.0f}" for name in ("encryptions", "products", "decryptions")),
        f"{np.mean([r['megabytes'] for r in group]):,.1f}",
        *paper,
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=LOADERS, default=list(LOADERS))
    parser.add_argument("--model", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--bits", type=int, nargs="+", default=[0, 512, 2048], help="0: no encryption")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--made", action="store_true", help="write the page from runs made before, and make none"
    )
    arguments = parser.parse_args()
    if arguments.made:
        write_page("trees", in_order(made_runs("trees")), page)
        return
    warnings.simplefilter("ignore", NotEncryptedWarning)  # the plain runs are here for comparison
    warnings.simplefilter("ignore", InsecureKeyWarning)  # the page says so
    runs = [
        {"data": data, "model": model, "bits": bits, "seed": seed}
        for data in arguments.data
        for model in arguments.model
        for bits in (arguments.bits if model in ENCRYPTED else [0])
        for seed in range(arguments.seeds)
    ]
    with reuse_keys():
        write_page("trees", make_runs("trees", runs, make), page)


if __name__ == "__main__":
    main()
