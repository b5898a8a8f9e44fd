"""FATE's example sets: federated boosting beside XGBoost on pooled data, same settings.

    make experiments ARGS="fate"

Needs FATE's example files in VFL_DATA_HOME/fate.
"""

from __future__ import annotations

import argparse
import datetime
import warnings
from typing import Any

import numpy as np
import xgboost
from runs import (
    Result,
    Settings,
    Stopwatch,
    cipher,
    cipher_name,
    machine,
    make_runs,
    table,
    warm_up,
    write_page,
)
from sklearn.metrics import accuracy_score, mean_squared_error, roc_auc_score

from vflcrypto import InsecureKeyWarning, reuse_keys
from vfldata import FATE_EXAMPLES, VerticalDataset, load_fate_example
from vfltree import NotEncryptedWarning, SecureBoostClassifier, SecureBoostRegressor

ROUNDS, DEPTH, BINS, RATE = 50, 3, 32, 0.3
OBJECTIVES = {"dvisits": "count:poisson"}  # a count


def make(settings: Settings) -> Result:
    data = load_fate_example(settings["data"])
    warm_up(settings["bits"])
    extra = {"objective": OBJECTIVES[settings["data"]]} if settings["data"] in OBJECTIVES else {}
    shared = {"max_depth": DEPTH, "max_bin": BINS, "learning_rate": RATE, **extra}
    kind = SecureBoostRegressor if data.task == "regression" else SecureBoostClassifier
    ours = kind(
        ROUNDS, partition=data.partition, n_jobs=-1, random_state=0, min_rows_per_sum=settings["k"], **shared,
        **cipher(settings["bits"]),
    )  # fmt: skip
    with Stopwatch() as watch:
        ours.fit(data.X_train, data.y_train)
    peer_kind = xgboost.XGBRegressor if data.task == "regression" else xgboost.XGBClassifier
    peer = peer_kind(n_estimators=ROUNDS, tree_method="hist", **shared).fit(data.X_train, data.y_train)
    alone = data.partition[data.active_party]
    guest = peer_kind(n_estimators=ROUNDS, tree_method="hist", **shared).fit(
        data.X_train[alone], data.y_train
    )
    return {
        "metric": metric_name(data),
        "ours": metric(ours, data, data.X_test),
        "xgboost": metric(peer, data, data.X_test),
        "alone": metric(guest, data, data.X_test[alone]),
        "seconds": watch.wall,
    }


def metric_name(data: VerticalDataset) -> str:
    return {"binary": "AUC", "multiclass": "accuracy", "regression": "RMSE"}[data.task]


def metric(model: Any, data: VerticalDataset, X: Any) -> float:
    if data.task == "binary":
        return float(roc_auc_score(data.y_test, model.predict_proba(X)[:, 1]))
    if data.task == "multiclass":
        return float(accuracy_score(data.y_test, model.predict(X)))
    return float(np.sqrt(mean_squared_error(data.y_test, model.predict(X))))


def page(results: list[Result]) -> str:
    rows = [
        [r["data"], cipher_name(r["bits"]), r["k"], r["metric"], f"{r['ours']:.4f}", f"{r['xgboost']:.4f}",
         f"{r['alone']:.4f}", f"{r['seconds']:.2f}"]
        for r in results
    ]  # fmt: skip
    columns = ["data", "key", "k", "measure", "vfltree", "XGBoost", "guest alone", "seconds of fit"]
    return f"""# FATE's example sets

Written by `make experiments` on {datetime.date.today()}: {machine()}; XGBoost {xgboost.__version__}.

{ROUNDS} rounds of depth {DEPTH}, learning rate {RATE}, {BINS} bins, FATE's own split of columns, a quarter of the rows
held out (one draw). `XGBoost` is trained on pooled data, `guest alone` is XGBoost on the label holder's columns only.
Each party cuts its bins itself, so figures differ a little from XGBoost's. k is `min_rows_per_sum`, the passive party's
protection (1: none).

{table(columns, rows)}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=FATE_EXAMPLES, default=list(FATE_EXAMPLES))
    parser.add_argument("--bits", type=int, nargs="+", default=[0, 2048], help="0: no encryption")
    parser.add_argument("--k", type=int, nargs="+", default=[1, 10])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", NotEncryptedWarning)
    warnings.simplefilter("ignore", InsecureKeyWarning)
    runs = [
        {"data": data, "bits": bits, "k": k}
        for data in arguments.data
        for bits in arguments.bits
        for k in arguments.k
    ]
    with reuse_keys():
        write_page("fate", make_runs("fate", runs, make), page)


if __name__ == "__main__":
    main()
