"""VFLAIR's table of logistic regression on Credit and Nursery, plain and encrypted, and what approximations cost.

    make experiments ARGS="linear"                          everything; docs/results/linear.md
    .venv/bin/python benchmarks/experiments/linear.py --data nursery --bits 0 512 --exchange rows

The scores exchange encrypts and blinds one value per row and epoch: 1.92 million operations for Credit. A run that one
and two epochs foretell to take longer than `--max-minutes` (10) makes as many epochs as fit, two at least, and is
scaled to all of them; the page says so. `--max-minutes inf` makes every run whole.
"""

from __future__ import annotations

import argparse
import datetime
import math
import os
import time
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
    make_runs,
    mean_and_deviation,
    table,
    warm_up,
    write_page,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler

from vflcrypto import InsecureKeyWarning, obtain_keypair, reuse_keys
from vflcrypto.masking import hide
from vfldata import VerticalDataset, load_adult, load_breast_cancer_vertical, load_credit, load_nursery
from vfltree import NotEncryptedWarning, SecureLogisticRegression

EPOCHS = 40
# The paper's figures: accuracy and seconds plain, accuracy and seconds with Taylor's residuals and 512 bits.
PAPER = {
    "credit": ("0.821 ± 0.000", "3 ± 0", "0.805 ± 0.002", "11149 ± 357"),
    "nursery": ("0.918 ± 0.001", "1 ± 0", "0.912 ± 0.001", "2971 ± 57"),
}
EXCHANGES: dict[str, dict[str, Any]] = {
    "scores": {"exchange": "scores"},
    "rows": {"exchange": "rows"},
    "exact": {"residual": "exact"},
}
COUNTED = (
    "encryptions",
    "blindings",
    "additions",
    "exponent_bits",
    "multiplications",
    "masks",
    "decryptions",
)
BUSY = 1.5  # processes that want to run, per core: beyond it others had a share of the machine
TIMED = 2048  # values, where an operation's price is measured

# Kind of residuals, order of the polynomial, and the interval that it is fitted on; "pooled" is scikit-learn's.
APPROXIMATIONS = (
    ("taylor", 1, 0.0), ("least_squares", 1, 6.0), ("minimax", 1, 6.0), ("taylor", 3, 0.0), ("least_squares", 3, 6.0),
    ("minimax", 3, 6.0), ("least_squares", 3, 20.0), ("minimax", 3, 20.0), ("exact", 1, 0.0), ("pooled", 1, 0.0),
)  # fmt: skip
MOST_EPOCHS = 500
TASKS = ("credit", "breast cancer", "adult", "nursery, softmax", "nursery, one against the rest")


def load(name: str, seed: int) -> VerticalDataset:
    """Columns as linear models want them: one-hot without the first value."""
    if name.startswith("nursery"):
        return load_nursery(one_hot="drop_first", random_state=seed)
    if name == "adult":
        return load_adult(one_hot="drop_first", random_state=seed)
    return {"credit": load_credit, "breast cancer": load_breast_cancer_vertical}[name](random_state=seed)


def scaler(data: VerticalDataset) -> Any:
    """Every party standardises its own columns; Nursery's are zeros and ones, which are cheap as they are."""
    return None if data.name == "nursery" else StandardScaler()


# ---- the paper's table


def build(data: VerticalDataset, settings: Settings, epochs: int, bits: int) -> SecureLogisticRegression:
    return SecureLogisticRegression(
        max_iter=epochs, tol=0.0, partition=data.partition, vertical_transformer=scaler(data), n_jobs=-1,
        random_state=0, **EXCHANGES[settings["exchange"]], **cipher(bits),
    )  # fmt: skip


def make_paper_run(settings: Settings) -> Result:
    data, bits = load(settings["data"], settings["seed"]), settings["bits"]
    warm_up(bits)
    if not bits:
        model, figures = fitted(data, settings, EPOCHS, 0)
        return {**figures, "accuracy": accuracy(model, data), "epochs": EPOCHS, "same": True}
    before = prices(bits)
    _, one = fitted(data, settings, 1, bits)
    _, two = fitted(data, settings, 2, bits)
    epochs = affordable(one["seconds"], two["seconds"], 60.0 * settings["max_minutes"])
    model, figures = fitted(data, settings, epochs, bits)
    plain, _ = fitted(data, settings, epochs, 0)
    price = {name: (before[name] + after) / 2 for name, after in prices(bits).items()}
    for taken in (one, figures):
        taken["counted_seconds"] = sum(taken[name] * price[name] for name in COUNTED)
    if epochs < EPOCHS:
        whole = {name: scaled(one[name], value, epochs) for name, value in figures.items()}
        figures = whole | {"load": figures["load"]}
    judged_model = fitted(data, settings, EPOCHS, 0)[0] if epochs < EPOCHS else model
    return {
        **figures,
        "accuracy": accuracy(judged_model, data),
        "epochs": epochs,
        "same": same_model(model, plain),
        "price": price,
    }


def fitted(
    data: VerticalDataset, settings: Settings, epochs: int, bits: int
) -> tuple[SecureLogisticRegression, dict[str, float]]:
    """The model, and what it took."""
    model = build(data, settings, epochs, bits)
    with Stopwatch() as watch:
        model.fit(data.X_train, data.y_train)
    costs = model.costs_
    counted = {name: costs[name] for name in COUNTED}
    megabytes = costs["bytes"] / 1e6
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    seconds = {"seconds": watch.wall, "cpu_seconds": watch.cpu, "load": load}
    return model, {**seconds, "megabytes": megabytes, **counted}


def affordable(one: float, two: float, limit: float) -> int:
    """Epochs that fit: all, or at least two. one, two : seconds of trainings of one and of two epochs."""
    each = max(two - one, 1e-9)
    fits = math.inf if math.isinf(limit) else 1 + (limit - one) / each
    return EPOCHS if fits >= EPOCHS else max(2, int(fits))


def scaled(one: float, some: float, epochs: int) -> float:
    """What all epochs take: a figure grows by the same amount with each after the first."""
    return one + (some - one) * (EPOCHS - 1) / (epochs - 1)


def same_model(one: SecureLogisticRegression, other: SecureLogisticRegression) -> bool:
    return one.intercept_.tolist() == other.intercept_.tolist() and all(
        one.coefficients(party).tolist() == other.coefficients(party).tolist() for party in one.parties_
    )


def accuracy(model: Any, data: VerticalDataset) -> float:
    return float(np.mean(model.predict(data.X_test) == data.y_test))


def prices(bits: int) -> dict[str, float]:
    """CPU seconds of one operation of every counted kind, on one thread, at this moment."""
    public, private = obtain_keypair(bits, allow_weak_key=bits < 2048)
    values = np.arange(1, TIMED + 1) << 40
    some = public.encrypt(values)
    masked, _ = hide(some[: TIMED // 8])
    ring, elements = public.ring, some.elements
    runs = {
        "encryptions": (TIMED, lambda: public.encrypt(values)),
        "blindings": (TIMED, lambda: some.rerandomize("half")),
        "additions": (TIMED, lambda: some.add(values)),
        "exponent_bits": (32 * TIMED // 8, lambda: some[: TIMED // 8].multiply(0xA5A5A5A5)),
        "multiplications": (8 * TIMED, lambda: [ring.mul(elements, elements) for _ in range(8)]),
        "masks": (TIMED // 8, lambda: hide(some[: TIMED // 8])),
        "decryptions": (TIMED // 8, lambda: private.decrypt_words(masked)),
    }
    found = {}
    for name, (count, run) in runs.items():
        run()
        start = time.process_time()
        run()
        found[name] = (time.process_time() - start) / count
    return found


# ---- approximations


def make_approximation_run(settings: Settings) -> Result:
    data = load(settings["data"], settings["seed"])
    one_against_rest = settings["data"].endswith("rest")
    if settings["residual"] == "pooled":
        train, test = pooled_columns(data)
        model: Any = LogisticRegression(max_iter=5000)
        model = (OneVsRestClassifier(model) if one_against_rest else model).fit(train, data.y_train)
        return judged(model, test, data)
    model = SecureLogisticRegression(
        residual=settings["residual"], order=settings["order"], interval=settings["interval"] or 6.0,
        max_iter=MOST_EPOCHS,
        multi_class="ovr" if one_against_rest else "softmax", vertical_transformer=scaler(data),
        partition=data.partition, encryption="none",
    )  # fmt: skip
    try:
        model.fit(data.X_train, data.y_train)
    except OverflowError:
        return {"accuracy": math.nan, "log_loss": math.nan, "epochs": 0}
    return {**judged(model, data.X_test, data), "epochs": model.n_iter_}


def pooled_columns(data: VerticalDataset) -> tuple[Any, Any]:
    """Training and test columns of all parties, scaled as the parties do."""
    own = scaler(data)
    if own is None:
        return data.X_train, data.X_test
    return own.fit_transform(data.X_train), own.transform(data.X_test)


def judged(model: Any, X: Any, data: VerticalDataset) -> Result:
    proba = model.predict_proba(X)
    right = model.classes_[proba.argmax(axis=1)] == data.y_test
    return {
        "accuracy": float(np.mean(right)),
        "log_loss": float(log_loss(data.y_test, proba, labels=model.classes_)),
    }


# ---- the page


def page(results: list[Result]) -> str:
    paper_runs = [r for r in results if r["table"] == "paper"]
    approximations = [r for r in results if r["table"] == "approximations"]
    return f"""# Logistic regression: Credit and Nursery, and what approximations cost

Written by `make experiments` on {datetime.date.today()}: {machine()}.

## Plain and encrypted

{EPOCHS} epochs of full batches, `optimizer="newton"`, C = 1, other settings by default; both parties and the
coordinator in one process. Credit (two classes) standardised by each party; Nursery one-hot without first values,
softmax over five classes. `scores` and `rows` use Taylor's residuals of order 1, `exact` the logistic function itself.
Seconds are those of `fit`, key made before; in brackets where the machine had other work (CPU seconds hardly mind).
`equal`: encrypted and plain training gave the same coefficients, bit for bit. 512-bit keys protect nothing: those rows
stand here because the paper used them.

{_paper_table(paper_runs)}
Where `epochs` says "of {EPOCHS}", so many were made and figures scaled (an epoch after the first costs the same);
`equal` is about the epochs made, accuracy that of the whole plain run. `counted` is operations of each kind times their
prices, in CPU seconds; prices are measured in the same run, one thread, {TIMED:,} values or fewer. `ratio` is CPU
seconds over it: what planning, checking, coding and the plain part take on top.

The paper (VFLAIR) reports CPU seconds on one Intel Xeon E5-2650 v2; its encrypted runs use Taylor's residuals, its
plain ones the logistic function.

| data | paper, plain | seconds | paper, 512 bits | seconds |
| --- | --- | --- | --- | --- |
{chr(10).join("| " + " | ".join((name, *figures)) + " |" for name, figures in PAPER.items())}

## Approximations of the logistic function

The same model with other residuals, `newton` until `tol=1e-4` ({MOST_EPOCHS} epochs at most), trained with
encryption="none", which is the encrypted model bit for bit. `pooled` is scikit-learn's LogisticRegression on all
columns in one place, C = 1. Fitted polynomials are fitted on [-`interval`, `interval`]; those of order 3 turn away from
the logistic function beyond it, and training diverges where scores leave it (a blank: it said so). Differences are
those of accuracies to `pooled`, seed by seed.

{_approximations_table(approximations)}
Probabilities are always computed by the logistic function itself, after training.
"""


def _paper_table(results: list[Result]) -> str:
    groups: dict[tuple[str, str, int], list[Result]] = {}
    for result in results:
        groups.setdefault((result["data"], result["exchange"], result["bits"]), []).append(result)
    columns = [
        "data", "exchange", "key", "seeds", "epochs", "accuracy", "equal", "seconds", "CPU seconds", "counted", "ratio",
        "encryptions and blindings", "products", "decryptions", "MB sent",
    ]  # fmt: skip
    return table(columns, (_paper_row(*key, group) for key, group in groups.items()))


def _paper_row(data: str, exchange: str, bits: int, group: list[Result]) -> list[object]:
    def mean(*names: str) -> float:
        return float(np.mean([sum(r[name] for name in names) for r in group]))

    counted = mean("counted_seconds") if bits else 0.0
    epochs = sorted({r["epochs"] for r in group})
    return [
        data, exchange, cipher_name(bits), len(group),
        "".join(f"{e}" if e == EPOCHS else f"**{e} of {EPOCHS}**" for e in epochs),
        over_seeds([r["accuracy"] for r in group]),
        ("yes" if all(r["same"] for r in group) else "**no**") if bits else "",
        f"({mean('seconds'):,.1f})" if max(r["load"] for r in group) > BUSY else f"{mean('seconds'):,.1f}",
        f"{mean('cpu_seconds'):,.1f}",
        *((f"{counted:,.1f}", f"{mean('cpu_seconds') / counted:.2f}") if bits else ("", "")),
        f"{mean('encryptions', 'blindings', 'masks'):,.0f}",
        f"{mean('multiplications', 'additions', 'exponent_bits'):,.0f}",
        f"{mean('decryptions'):,.0f}", f"{mean('megabytes'):,.1f}",
    ]  # fmt: skip


def over_seeds(values: list[float]) -> str:
    """One value as it is, several with their spread."""
    return mean_and_deviation(values, 4) if len(values) > 1 else f"{values[0]:.4f}"


def _approximations_table(results: list[Result]) -> str:
    pooled = {(r["data"], r["seed"]): r for r in results if r["residual"] == "pooled"}
    groups: dict[tuple[str, str, int, float], list[Result]] = {}
    for result in results:
        key = result["data"], result["residual"], result["order"], result["interval"]
        groups.setdefault(key, []).append(result)
    rows = []
    for (data, residual, order, interval), group in groups.items():
        name = [
            data,
            residual,
            "" if residual in ("exact", "pooled") else order,
            f"{interval:g}" if interval else "",
        ]
        if any(math.isnan(r["accuracy"]) for r in group):
            rows.append([*name, "", "", "", ""])
            continue
        judges = [pooled.get((data, r["seed"])) for r in group]
        differences = [r["accuracy"] - j["accuracy"] for r, j in zip(group, judges, strict=True) if j]
        rows.append([
            *name,
            over_seeds([r["accuracy"] for r in group]),
            f"{np.mean(differences):+.4f}" if differences and residual != "pooled" else "",
            f"{np.mean([r['log_loss'] for r in group]):.4f}",
            f"{np.mean([r['epochs'] for r in group]):.0f}" if "epochs" in group[0] else "",
        ])  # fmt: skip
    columns = ["data", "residuals", "order", "interval", "accuracy", "difference", "log loss", "epochs"]
    return table(columns, rows)


def paper_runs(arguments: argparse.Namespace) -> list[Settings]:
    return [
        {"table": "paper", "data": data, "exchange": exchange, "bits": bits, "seed": seed,
         **({"max_minutes": arguments.max_minutes} if bits else {})}
        for data in PAPER if data in arguments.data
        for exchange in arguments.exchange
        for bits in arguments.bits
        for seed in range(arguments.encrypted_seeds if bits else arguments.seeds)
    ]  # fmt: skip


def approximation_runs(arguments: argparse.Namespace) -> list[Settings]:
    return [
        {"table": "approximations", "data": data, "residual": residual, "order": order, "interval": interval,
         "seed": seed}
        for data in TASKS if data.split(",")[0] in arguments.data
        for residual, order, interval in APPROXIMATIONS
        # Fitted polynomials stand for the logistic function, of which softmax is made of several.
        if not data.endswith("softmax") or residual in ("exact", "pooled") or (residual, order) == ("taylor", 1)
        for seed in range(arguments.seeds)
    ]  # fmt: skip


def main() -> None:
    names = [*PAPER, "breast cancer", "adult"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=names, default=names)
    parser.add_argument("--exchange", nargs="+", choices=EXCHANGES, default=list(EXCHANGES))
    parser.add_argument("--bits", type=int, nargs="*", default=[0, 512, 2048], help="0: no encryption")
    parser.add_argument(
        "--seeds", type=int, default=5, help="draws of training rows, of runs without encryption"
    )
    parser.add_argument("--encrypted-seeds", type=int, default=1, help="the same of encrypted runs")
    parser.add_argument(
        "--max-minutes", type=float, default=10.0, help="of one run, beyond which it is scaled"
    )
    parser.add_argument("--skip-approximations", action="store_true", help="the paper's table only")
    arguments = parser.parse_args()
    for category in (NotEncryptedWarning, InsecureKeyWarning, ConvergenceWarning):
        warnings.simplefilter("ignore", category)  # the page says so
    with reuse_keys():
        results = make_runs("linear", paper_runs(arguments), make_paper_run)
        if not arguments.skip_approximations:
            results += make_runs("linear", approximation_runs(arguments), make_approximation_run)
        write_page("linear", results, page)


if __name__ == "__main__":
    main()
