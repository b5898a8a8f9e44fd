"""How the cost of encrypted boosting grows with rows, passive features and trees, on Census-Income (199,523 rows).

    make experiments ARGS="scale"

Every run has a process of its own, so that the largest resident size is that of the run. Needs the Census-Income
files in VFL_DATA_HOME/census_income_kdd.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import warnings

import numpy as np
from runs import Result, Settings, Stopwatch, machine, make_runs, peak_bytes, table, warm_up, write_page
from sklearn.metrics import roc_auc_score

from vflcrypto import reuse_keys
from vfldata import load_census_income
from vfldata.census_income import N_ROWS
from vfltree import SecureBoostClassifier

BITS, DEPTH, BINS = 2048, 6, 32
ROWS = (25_000, 50_000, 100_000)
FEATURES = (4, 16)
TREES = (2, 4)


def child(settings: Settings) -> Result:
    """Train and predict in this process."""
    warnings.simplefilter("ignore")
    data = load_census_income()
    passive = data.partition["tax_office"][: settings["features"]]
    partition = {"registry": data.partition["registry"], "tax_office": passive}
    columns = [name for names in partition.values() for name in names]
    rows = np.random.RandomState(0).permutation(len(data.X_train))[: settings["rows"]]
    X, y = data.X_train[columns].iloc[rows], data.y_train.iloc[rows]
    model = SecureBoostClassifier(
        settings["trees"],
        max_depth=DEPTH,
        max_bin=BINS,
        partition=partition,
        key_bits=BITS,
        n_jobs=-1,
        random_state=0,
    )
    warm_up(BITS)
    model.set_params(n_estimators=1).fit(X[:500], y[:500])  # compiles, makes the key's tables
    before = peak_bytes()
    model.set_params(n_estimators=settings["trees"])
    with Stopwatch() as watch:
        model.fit(X, y)
    trained = peak_bytes()
    proba = model.predict_proba(data.X_test[columns])[:, 1]
    costs = model.costs_
    return {
        "seconds": watch.wall,
        "cpu_seconds": watch.cpu,
        "peak_before": before,
        "peak": trained,
        "encryptions": costs["encryptions"],
        "additions": costs["additions"],
        "decryptions": costs["decryptions"],
        "auc": float(roc_auc_score(data.y_test, proba)),
    }


def make(settings: Settings) -> Result:
    done = subprocess.run(
        [sys.executable, __file__, "--child", json.dumps(settings)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "FileNotFoundError" in done.stderr:
        raise FileNotFoundError(done.stderr.splitlines()[-1])
    if done.returncode:
        raise RuntimeError(f"the run {settings} failed:\n{done.stderr}")
    result: Result = json.loads(done.stdout.splitlines()[-1])
    return result


def all_runs() -> list[Settings]:
    """One axis grows at a time, from the smallest run; the largest has all rows and features."""
    by_rows = [{"rows": rows, "features": 8, "trees": 1} for rows in ROWS]
    by_features = [{"rows": ROWS[0], "features": features, "trees": 1} for features in FEATURES]
    by_trees = [{"rows": ROWS[0], "features": 8, "trees": trees} for trees in TREES]
    return [*by_rows, *by_features, *by_trees, {"rows": N_ROWS["train"], "features": 16, "trees": 1}]


def page(results: list[Result]) -> str:
    rows = [
        [f"{r['rows']:,}", r["features"], r["trees"], f"{r['seconds']:.1f}", f"{r['cpu_seconds']:.1f}",
         f"{1e6 * r['cpu_seconds'] / (r['rows'] * r['trees']):.1f}", f"{r['encryptions']:,}", f"{r['additions']:,}",
         f"{r['additions'] / (r['rows'] * r['trees'] * r['features']):.2f}", f"{r['decryptions']:,}",
         f"{r['peak'] / 2**30:.2f}", f"{r['auc']:.4f}"]
        for r in results
    ]  # fmt: skip
    columns = [
        "rows", "passive features", "trees", "seconds of fit", "CPU seconds", "CPU us per row and tree", "encryptions",
        "additions", "additions per row, feature, tree", "decryptions", "largest GiB", "test AUC",
    ]  # fmt: skip
    return f"""# How the cost grows: Census-Income (KDD)

Written by `make experiments` on {datetime.date.today()}: {machine()}.

Encrypted boosting, {BITS}-bit key, depth {DEPTH}, {BINS} bins, all defaults otherwise; both parties in one process, so
the largest resident size holds both (and the whole table of 299,285 people). Key and compiled code are made before the
clock starts. Additions are products of ciphertexts in bin sums. Seconds of fit are wall-clock and grow with whatever
else the machine does meanwhile; CPU seconds hardly do.

{table(columns, rows)}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        with reuse_keys():
            print(json.dumps(child(json.loads(arguments.child))))
        return
    write_page("scale", make_runs("scale", all_runs(), make), page)


if __name__ == "__main__":
    main()
