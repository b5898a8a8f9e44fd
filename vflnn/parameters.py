"""The estimators' parameters, checked before anything is built; every error names the parameter and the way out."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from vflparty.network import check_timeout

from .messages import TrainingSettings
from .protocols.registry import make_compressor, make_protocol, protocol_entry
from .recipes import make_optimizer, make_scheduler, to_json

NETWORKS = ("inprocess", "process")


def check_parameters(estimator: Any) -> None:
    """ValueError or TypeError names a wrong one of the parameters that can be checked without data."""
    if estimator.network not in NETWORKS:
        raise ValueError(f"network must be one of {NETWORKS}, got {estimator.network!r}")
    check_timeout(estimator.timeout)
    if not isinstance(estimator.verbose, numbers.Integral):
        raise TypeError(f"verbose must be an integer, got {estimator.verbose!r}")
    if not isinstance(estimator.shuffle, bool | np.bool_):
        raise TypeError(f"shuffle must be True or False, got {estimator.shuffle!r}")
    check_count("epochs", estimator.epochs)
    if estimator.batch_size is not None:
        check_count("batch_size", estimator.batch_size, "; None takes all rows at once")
    checked_device(estimator.device)
    n_threads(estimator.n_jobs)
    checked_callbacks(estimator.callbacks)
    estimator_settings(estimator, n_samples=0, n_evaluation=0, epochs=0, first_epoch=0, seed=0)


def check_count(name: str, value: Any, more: str = "") -> None:
    """TypeError or ValueError unless it is an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r} of type {type(value).__name__}{more}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}{more}")


def checked_device(device: Any) -> str:
    """A device of PyTorch that is there; "auto" is a GPU where there is one."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        found = torch.device("meta")
    if found.type not in ("cpu", "cuda"):
        raise ValueError(f'device must be "cpu", "cuda", "cuda:0" (a number) or "auto", got {device!r}')
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device={str(device)!r}: PyTorch sees {torch.cuda.device_count()} CUDA devices here; "
            'device="auto" takes one where there is one'
        )
    return str(found)


def n_threads(n_jobs: Any) -> int:
    """Of one party's work."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer):
        raise TypeError(f"n_jobs must be an integer or None, got {n_jobs!r} of type {type(n_jobs).__name__}")
    if n_jobs < 1 and n_jobs != -1:
        raise ValueError(f"n_jobs must be at least 1, or -1 for all cores, got {n_jobs}")
    return int(n_jobs) if n_jobs > 0 else os.cpu_count() or 1


def checked_callbacks(callbacks: Any) -> list[Callable[..., object]]:
    found: list[Any] = [None]
    if callbacks is None or isinstance(callbacks, Iterable):
        found = list(callbacks or ())
    if not all(map(callable, found)):
        raise TypeError(f"callbacks must be a list of functions of an EpochRecord, got {callbacks!r}")
    return found


def estimator_settings(estimator: Any, **sizes: Any) -> TrainingSettings:
    """What the parties of an estimator agree on; see `training_settings`."""
    return training_settings(
        protocol=estimator.protocol,
        protocol_options=estimator.protocol_options,
        compressor=estimator.compressor,
        optimizer=estimator.optimizer,
        scheduler=estimator.scheduler,
        lr=estimator.lr,
        batch_size=None if estimator.batch_size is None else int(estimator.batch_size),
        shuffle=bool(estimator.shuffle),
        **sizes,
    )


def training_settings(
    *,
    protocol: Any,
    protocol_options: Any,
    compressor: Any,
    optimizer: Any,
    scheduler: Any,
    lr: Any,
    **rest: Any,
) -> TrainingSettings:
    """What the parties agree on, tried out: ValueError or TypeError names what is wrong.

    compressor, optimizer, scheduler : a name, or (name, options); compressor None: what the protocol brings
    rest : the other fields of TrainingSettings
    """
    schedule, own, written, how = _protocol(protocol, protocol_options, compressor)
    optimizer, optimizer_options = named("optimizer", optimizer)
    scheduler, scheduler_options = named("scheduler", scheduler)
    rate = lr
    if isinstance(rate, bool) or not isinstance(rate, int | float | np.integer | np.floating):
        raise TypeError(f"lr must be a number, got {rate!r} of type {type(rate).__name__}")
    if not (math.isfinite(rate) and rate > 0):
        raise ValueError(f"lr must be a positive number, got {rate!r}")
    parameters = [torch.nn.Parameter(torch.zeros(1))]
    try:
        tried = make_optimizer(optimizer, optimizer_options, float(rate), parameters)
        assert tried is not None
        schedule_tried = make_scheduler(scheduler, scheduler_options, tried)
        tried.step()
        schedule_tried.step()
    except TypeError as error:
        raise TypeError(f"optimizer {optimizer!r} or scheduler {scheduler!r}: {error}") from error
    except ArithmeticError as error:
        raise ValueError(f"scheduler {scheduler!r} with {scheduler_options}: {error}") from error
    return TrainingSettings(
        protocol=schedule,
        protocol_options=to_json(own, "protocol_options"),
        compressor=written,
        compressor_options=to_json(how, "options of compressor"),
        optimizer=optimizer,
        optimizer_options=to_json(optimizer_options, "options of optimizer"),
        learning_rate=float(rate),
        scheduler=scheduler,
        scheduler_options=to_json(scheduler_options, "options of scheduler"),
        **rest,
    )


def for_prediction(settings: TrainingSettings, n_rows: int) -> TrainingSettings:
    """Settings of parties that only score these many rows."""
    return replace(
        settings, protocol="fedsgd", protocol_options="", compressor="", compressor_options="", optimizer="sgd",
        optimizer_options="", scheduler="constant", scheduler_options="", n_samples=0, n_evaluation=n_rows, epochs=0,
        first_epoch=0,
    )  # fmt: skip


def named(what: str, value: Any) -> tuple[str, dict[str, Any]]:
    """Name and options of a parameter that is a name or (name, options)."""
    if isinstance(value, str):
        return value, {}
    if isinstance(value, tuple | list) and len(value) == 2:
        name, options = value
        if isinstance(name, str) and isinstance(options, Mapping):
            return name, dict(options)
    raise TypeError(f"{what} must be a name or (name, dict of options), got {value!r}")


def _protocol(
    protocol: Any, protocol_options: Any, compressor: Any
) -> tuple[str, dict[str, Any], str, dict[str, Any]]:
    """Schedule and compressor, each with its options. Options of a protocol that is a compressor go there."""
    if not isinstance(protocol, str):
        raise TypeError(f"protocol must be a name, got {protocol!r}")
    options = {} if protocol_options is None else protocol_options
    if not isinstance(options, Mapping):
        raise TypeError(f"protocol_options must be a dict, got {options!r}")
    entry = protocol_entry(protocol)
    own, written, how = dict(options), entry.compressor, dict[str, Any]()
    if written:
        own, how = {}, own
        if compressor is not None:
            raise ValueError(
                f"protocol {entry.name!r} compresses already: leave compressor out, got {compressor!r}"
            )
    elif compressor is not None:
        written, how = named("compressor", compressor)
    make_protocol(entry.protocol, own, seed=0)
    make_compressor(written, how, seed=0, party="")
    return entry.protocol, own, written, how
