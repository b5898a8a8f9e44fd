"""One repeat of one run: its data, its plan, its training, and the figures that are kept of it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from vfldata import DATASETS, VFLAIR, VerticalDataset
from vflparty.party import ProgressHook

from ..choices import check_loss, choose_bottoms, choose_top, loss_of
from ..models.registry import bottom_entry
from ..parameters import checked_device
from ..seating import PartyPlan, Trained, TrainingPlan, train
from .config import DataConfig, ModelConfig, RunConfig, config_settings

Plain = dict[str, Any]


def train_once(
    run: RunConfig, seed: int, on_progress: ProgressHook | None = None
) -> tuple[VerticalDataset, TrainingPlan, Trained]:
    """Load the data of a run and train on it with this seed."""
    data = load_data(run.data, seed)
    plan = make_plan(run, data, seed)
    return data, plan, train(plan, run.training.network, on_progress=on_progress)


def load_data(config: DataConfig, seed: int) -> VerticalDataset:
    """The data of a run. Where training rows are drawn, the run's seed draws them, unless options say otherwise."""
    entries = VFLAIR if config.vflair else DATASETS
    return entries[config.name](**{"random_state": seed, **config.options})


def make_plan(run: RunConfig, data: VerticalDataset, seed: int) -> TrainingPlan:
    """Who brings what. Weights, batches and everything else that is drawn follow from the seed."""
    training, parties = run.training, data.parties
    classes = data.task != "regression"
    n_outputs = len(data.class_names) if classes else 1
    widths = dict.fromkeys(parties, run.model.cut_width or n_outputs)
    *drawn, order_seed, top_seed = map(int, np.random.SeedSequence(seed).generate_state(len(parties) + 2))
    samples = _first(data.blocks("train"), run.data.limit)
    evaluation = _first(data.blocks("test"), run.data.test_limit)
    bottoms = choose_bottoms(
        {party: _bottom(run.model, data, party) for party in parties},
        {party: block.shape[1:] for party, block in samples.items()},
        widths,
        dict(zip(parties, drawn, strict=True)),
        training.network,
        data.graphs,
    )
    top = choose_top(
        (run.model.top, run.model.top_options),
        tuple(widths.values()),
        n_outputs,
        top_seed,
        training.network,
        graph=data.active_party in data.graphs,
    )
    parts = {
        party: PartyPlan(
            bottoms[party].for_party(),
            widths[party],
            samples[party],
            evaluation[party],
            data.graphs.get(party),
            data.graphs.get(party),
        )
        for party in parties
    }
    labels = _labels(data.y_train, classes, run.data.limit)
    evaluation_labels = _labels(data.y_test, classes, run.data.test_limit)
    return TrainingPlan(
        settings=config_settings(
            training,
            n_samples=len(labels),
            n_evaluation=len(evaluation_labels),
            seed=order_seed % 2**31,
        ),
        active=data.active_party,
        own=parts.pop(data.active_party),
        passive=parts,
        top=top.for_party(),
        labels=labels,
        n_outputs=n_outputs,
        loss=check_loss(training.loss, top) if training.loss else loss_of(top, classes=classes),
        evaluation_labels=evaluation_labels,
        device=checked_device(training.device),
    )


def auc(data: VerticalDataset, trained: Trained) -> float:
    """Area under the ROC curve of the test rows; nan unless there are two classes."""
    if data.task != "binary":
        return float("nan")
    scores = trained.result.scores
    return float(roc_auc_score(data.y_test[: len(scores)], scores[:, 1] - scores[:, 0]))


def _bottom(model: ModelConfig, data: VerticalDataset, party: str) -> tuple[str, Plain]:
    """Name and options of a party's bottom model; of hashed categories the data knows how many there are."""
    name = model.bottom if isinstance(model.bottom, str) else model.bottom.get(party)
    if name is None:
        raise ValueError(
            f"model.bottom names no model for party {party!r}; the data's parties are {data.parties}"
        )
    options = model.bottom_options
    if any(party in options for party in data.parties):
        options = options.get(party, {})
    if party in data.n_buckets and ":" not in name and "buckets" in bottom_entry(name).options:
        options = {"buckets": data.n_buckets[party], **options}
    return name, options


def _first(blocks: Plain, limit: int) -> Plain:
    """So many rows of every block, 0: all; tables, which are frames of float64, as networks take them."""
    arrays = {
        party: np.asarray(block, dtype=np.float32) if hasattr(block, "columns") else block
        for party, block in blocks.items()
    }
    return {party: block[: limit or None] for party, block in arrays.items()}


def _labels(y: Any, classes: bool, limit: int) -> NDArray[Any]:
    values = np.asarray(y)[: limit or None]
    return values.astype(np.int64) if classes else values.astype(np.float32)[:, None]


def epoch_line(text: str) -> str:
    """A progress report of the active party, for people."""
    figures = json.loads(text)
    shown = {"loss": "loss", "accuracy": "train", "evaluation_score": "test"}
    return ", ".join(f"{label} {figures[name]:.4f}" for name, label in shown.items() if name in figures)
