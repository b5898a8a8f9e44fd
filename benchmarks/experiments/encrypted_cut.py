"""Split training of logistic regression on Credit under encryption: what an epoch costs, counted too, and accuracy.

make experiments ARGS="encrypted_cut"                   docs/results/encrypted_cut.md
.venv/bin/python benchmarks/experiments/encrypted_cut.py --bits 0 512
"""

from __future__ import annotations

import argparse
import datetime
import warnings
from typing import Any

import numpy as np
from linear import COUNTED, prices
from runs import Result, Settings, Stopwatch, cipher_name, machine, make_runs, table, warm_up, write_page
from sklearn.preprocessing import StandardScaler

from vflcrypto import InsecureKeyWarning, reuse_keys
from vfldata import VerticalDataset, load_credit
from vflnn.encrypted import Terms
from vflnn.encrypted.seating import train_encrypted
from vflnn.messages import TrainingSettings
from vflnn.recipes import model_recipe
from vflnn.seating import PartyPlan, Trained, TrainingPlan, train

EPOCHS = 40  # of the accuracies; of the costs, one
LOSSES = ("taylor_logit", "logit", "cross_entropy")


def plan(data: VerticalDataset, epochs: int, loss: str = "taylor_logit") -> TrainingPlan:
    """Full batches; every party standardises its own columns."""
    parts = {}
    for number, (party, columns) in enumerate(data.partition.items()):
        scaler = StandardScaler().fit(data.X_train[columns])
        train_block, test_block = (
            scaler.transform(block[columns]).astype(np.float32) for block in (data.X_train, data.X_test)
        )
        parts[party] = PartyPlan(model_recipe("LogisticRegression", seed=number), 2, train_block, test_block)
    active = next(iter(parts))
    labels, evaluation_labels = (np.asarray(y).astype(np.int64) for y in (data.y_train, data.y_test))
    settings = TrainingSettings(
        protocol="fedsgd", protocol_options="", compressor="", compressor_options="", optimizer="adam",
        optimizer_options="", learning_rate=0.05, scheduler="constant", scheduler_options="",
        n_samples=len(labels), n_evaluation=len(evaluation_labels), epochs=epochs, first_epoch=0, batch_size=None,
        shuffle=True, seed=0,
    )  # fmt: skip
    return TrainingPlan(
        settings, active, parts.pop(active), parts, model_recipe("sum"), labels, 2, loss=loss,
        evaluation_labels=evaluation_labels,
    )  # fmt: skip


def make_cost_run(settings: Settings) -> Result:
    """One epoch, and what was counted times its price."""
    bits = settings["bits"]
    chosen = plan(load_credit(random_state=settings["seed"]), 1)
    timed(chosen, Terms(encryption="none"))  # whatever is loaded at first use
    plain, figures = timed(chosen, Terms(encryption="none"))
    if not bits:
        return figures
    warm_up(bits)
    before = prices(bits)
    trained, figures = timed(chosen, Terms(key_bits=bits, allow_weak_key=bits < 2048))
    price = {name: (before[name] + after) / 2 for name, after in prices(bits).items()}
    counted = sum(figures[name] * price[name] for name in COUNTED)
    return {**figures, "counted_seconds": counted, "same": same_weights(plain, trained), "price": price}


def timed(chosen: TrainingPlan, terms: Terms) -> tuple[Trained, dict[str, Any]]:
    """The training, and what it took."""
    with Stopwatch() as watch:
        trained = train_encrypted(chosen, terms)
    counts = {name: trained.ledger.counts.get(name, 0) for name in COUNTED}
    megabytes = trained.ledger.bytes_sent / 1e6
    return trained, {"seconds": watch.wall, "cpu_seconds": watch.cpu, "megabytes": megabytes, **counts}


def same_weights(one: Trained, other: Trained) -> bool:
    return all(
        np.array_equal(a, b)
        for party in one.states
        for a, b in zip(one.states[party].arrays, other.states[party].arrays, strict=True)
    )


def make_accuracy_run(settings: Settings) -> Result:
    """Test accuracy after EPOCHS; what encryption gives is what the same integers give in the clear."""
    data, loss = load_credit(random_state=settings["seed"]), settings["loss"]
    if loss == "encrypted":
        trained: Trained = train_encrypted(plan(data, EPOCHS), Terms(encryption="none"))
    else:
        trained = train(plan(data, EPOCHS, loss))
    return {"accuracy": float(trained.result.epoch_score[-1])}


def page(results: list[Result]) -> str:
    costs = [r for r in results if r["table"] == "cost"]
    accuracies = [r for r in results if r["table"] == "accuracy"]
    return f"""# Split training under encryption: logistic regression on Credit

Written by `make experiments` on {datetime.date.today()}: {machine()}.

Two parties (11 and 12 columns, standardised by each), two classes, linear bottom models, full batches of 24,000 rows,
one thread, parties and coordinator in one process, the key made before. 512-bit keys protect nothing: that row stands
here because the paper used them.

## One epoch

{_cost_table(costs)}
`counted` is operations of each kind times their prices, in CPU seconds, measured in the same run. `ratio` is CPU
seconds over it: what planning, checking, coding and the plain part take on top. `equal`: the same weights as without
encryption, bit for bit. An evaluation of 6,000 rows is included.

Prices, in microseconds:

{_price_table(costs)}
## Accuracy after {EPOCHS} epochs

Adam, learning rate 0.05, mean over {len({r["seed"] for r in accuracies})} draws of the test rows.

{_accuracy_table(accuracies)}
"""


def _cost_table(results: list[Result]) -> str:
    rows = []
    for r in results:
        counted = r.get("counted_seconds", 0.0)
        rows.append([
            cipher_name(r["bits"]), f"{r['cpu_seconds']:,.1f}",
            *((f"{counted:,.1f}", f"{r['cpu_seconds'] / counted:.2f}") if counted else ("", "")),
            {True: "yes", False: "**no**", None: ""}[r.get("same")],
            f"{r['encryptions']:,}", f"{r['blindings']:,}", f"{r['additions']:,}", f"{r['multiplications']:,}",
            f"{r['masks']:,}", f"{r['decryptions']:,}", f"{r['megabytes']:,.1f}",
        ])  # fmt: skip
    columns = [
        "key", "CPU seconds", "counted", "ratio", "equal", "encryptions", "blindings", "additions", "products in sums",
        "masks", "decryptions", "MB sent",
    ]  # fmt: skip
    return table(columns, rows)


def _price_table(results: list[Result]) -> str:
    kinds = [name for name in COUNTED if name != "exponent_bits"]
    priced = [r for r in results if r["bits"]]
    return table(
        ["key", *kinds],
        ([cipher_name(r["bits"]), *(f"{1e6 * r['price'][kind]:,.1f}" for kind in kinds)] for r in priced),
    )


def _accuracy_table(results: list[Result]) -> str:
    names = {
        "encrypted": "under encryption (Taylor, fixed point)",
        "taylor_logit": "the same loss in floats",
        "logit": "one-vs-rest logistic loss",
        "cross_entropy": "softmax cross-entropy",
    }
    rows = [
        [words, f"{np.mean([r['accuracy'] for r in results if r['loss'] == loss]):.4f}"]
        for loss, words in names.items()
    ]
    return table(["loss", "accuracy"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bits", type=int, nargs="*", default=[0, 512, 2048], help="0: no encryption")
    parser.add_argument("--seeds", type=int, default=5, help="of accuracies")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", InsecureKeyWarning)  # the page says so
    costs: list[Settings] = [{"table": "cost", "bits": bits, "seed": 0} for bits in arguments.bits]
    accuracies: list[Settings] = [
        {"table": "accuracy", "loss": loss, "seed": seed}
        for loss in ("encrypted", *LOSSES)
        for seed in range(arguments.seeds)
    ]
    with reuse_keys():
        results = make_runs("encrypted_cut", costs, make_cost_run)
        results += make_runs("encrypted_cut", accuracies, make_accuracy_run)
        write_page("encrypted_cut", results, page)


if __name__ == "__main__":
    main()
