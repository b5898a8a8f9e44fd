"""One repeat of one run: its data, its plan, its training, and the figures that are kept of it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from vfldata import DATASETS, VFLAIR, VerticalDataset
from vflparty.party import ProgressHook

from ..messages import TrainingSettings
from ..models import BOTTOM_MODELS, make_top
from ..protocols.registry import protocol_entry
from ..recipes import model_recipe, to_json
from ..seating import PartyPlan, Trained, TrainingPlan, train
from .config import DataConfig, ModelConfig, RunConfig, TrainingConfig, compressors

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
    n_outputs = 1 if data.task == "regression" else len(data.class_names)
    width = run.model.cut_width or n_outputs
    limit = run.data.limit or len(data.y_train)
    test_limit = run.data.test_limit or len(data.y_test)
    train_blocks, test_blocks = data.blocks("train"), data.blocks("test")
    seeds = np.random.SeedSequence(seed).generate_state(len(data.parties) + 2)
    plans = {
        party: PartyPlan(
            _bottom(run.model, data, party, int(seeds[i])),
            width,
            _float32(train_blocks[party])[:limit],
            _float32(test_blocks[party])[:test_limit],
            data.graphs.get(party),
            data.graphs.get(party),
        )
        for i, party in enumerate(data.parties)
    }
    own = plans.pop(data.active_party)
    labels = _labels(data.y_train, data.task)[:limit]
    evaluation_labels = _labels(data.y_test, data.task)[:test_limit]
    return TrainingPlan(
        settings=_settings(run.training, len(labels), len(evaluation_labels), int(seeds[-2]) % 2**31),
        active=data.active_party,
        own=own,
        passive=plans,
        top=model_recipe(run.model.top, run.model.top_options, int(seeds[-1])),
        labels=labels,
        n_outputs=n_outputs,
        loss=run.training.loss or _loss(run.model, data, [width] * len(data.parties), n_outputs),
        evaluation_labels=evaluation_labels,
        device=run.training.device,
    )


def auc(data: VerticalDataset, trained: Trained) -> float:
    """Area under the ROC curve of the test rows; nan unless there are two classes."""
    if data.task != "binary":
        return float("nan")
    scores = trained.result.scores
    return float(roc_auc_score(data.y_test[: len(scores)], scores[:, 1] - scores[:, 0]))


def _settings(training: TrainingConfig, n_samples: int, n_evaluation: int, seed: int) -> TrainingSettings:
    entry = protocol_entry(training.protocol)
    compressor, options = next(iter(compressors(training)), ("", {}))
    return TrainingSettings(
        protocol=entry.protocol,
        protocol_options=to_json({} if entry.compressor else training.protocol_options, "protocol_options"),
        compressor=compressor,
        compressor_options=to_json(options, "compressor_options"),
        optimizer=training.optimizer,
        optimizer_options=to_json(training.optimizer_options, "optimizer_options"),
        learning_rate=training.lr,
        scheduler=training.scheduler,
        scheduler_options=to_json(training.scheduler_options, "scheduler_options"),
        n_samples=n_samples,
        n_evaluation=n_evaluation,
        epochs=training.epochs,
        first_epoch=0,
        batch_size=training.batch_size or None,
        shuffle=training.shuffle,
        seed=seed,
    )


def _bottom(model: ModelConfig, data: VerticalDataset, party: str, seed: int) -> Any:
    name = model.bottom if isinstance(model.bottom, str) else model.bottom.get(party)
    if name is None:
        raise ValueError(
            f"model.bottom names no model for party {party!r}; the data's parties are {data.parties}"
        )
    options = model.bottom_options
    if any(party in options for party in data.parties):
        options = options.get(party, {})
    if party in data.n_buckets and "buckets" in getattr(BOTTOM_MODELS.get(name), "options", {}):
        options = {"buckets": data.n_buckets[party], **options}
    return model_recipe(name, options, seed)


def _loss(model: ModelConfig, data: VerticalDataset, widths: list[int], n_outputs: int) -> str:
    if data.task == "regression":
        return "squared_error"
    if ":" in model.top:
        return "cross_entropy"
    return (
        "nll"
        if make_top(model.top, widths, n_outputs, **model.top_options).log_probabilities
        else "cross_entropy"
    )


def _labels(y: Any, task: str) -> NDArray[Any]:
    values = np.asarray(y)
    return values.astype(np.float32)[:, None] if task == "regression" else values.astype(np.int64)


def _float32(block: Any) -> Any:
    """Tables are frames of float64; networks take float32."""
    return np.asarray(block, dtype=np.float32) if hasattr(block, "columns") else block


def epoch_line(text: str) -> str:
    """A progress report of the active party, for people."""
    figures = json.loads(text)
    shown = {"loss": "loss", "accuracy": "train", "evaluation_score": "test"}
    return ", ".join(f"{label} {figures[name]:.4f}" for name, label in shown.items() if name in figures)
