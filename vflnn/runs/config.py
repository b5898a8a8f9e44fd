"""A config file, read and checked before anything is trained: unknown keys are refused with the nearest right name."""

from __future__ import annotations

import dataclasses
import json
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vfldata import DATASETS, VFLAIR

from ..losses import LOSSES
from ..messages import TrainingSettings
from ..models.registry import bottom_entry, top_entry
from ..naming import nearest
from ..parameters import NETWORKS, checked_device, training_settings

Plain = dict[str, Any]


class ConfigError(ValueError):
    """What is wrong with a config, with the place."""


@dataclass(frozen=True)
class DataConfig:
    """Which data.

    Attributes
    ----------
    name : one of `vfldata.DATASETS`
    vflair : as VFLAIR's table has it (`vfldata.VFLAIR`): its split, scaling and parties
    options : n_parties, shares, data_home, random_state (the run's seed unless given), and its loader's arguments
    limit, test_limit : only so many rows, the first of the training and of the test part; 0 for all
    """

    name: str
    vflair: bool = False
    options: Plain = field(default_factory=dict)
    limit: int = 0
    test_limit: int = 0


@dataclass(frozen=True)
class ModelConfig:
    """Which network.

    Attributes
    ----------
    bottom : name of a bottom model, for all parties or party by party
    bottom_options : its options, for all parties or (a table of tables) party by party
    top : name of a top model; "sum" is aggVFL, "linear" splitVFL
    top_options : its options
    cut_width : width of each party's output; 0: the number of classes
    """

    bottom: str | Plain
    bottom_options: Plain = field(default_factory=dict)
    top: str = "sum"
    top_options: Plain = field(default_factory=dict)
    cut_width: int = 0


@dataclass(frozen=True)
class TrainingConfig:
    """How it is trained.

    Attributes
    ----------
    protocol, protocol_options : one of `vflnn.protocols.PROTOCOLS`
    compressor, compressor_options : of outputs, beside what the protocol brings
    epochs, lr : int and float
    batch_size : rows, or 0 for all rows at once
    optimizer, scheduler : names, with options
    loss : name of a loss; "" for the task's
    shuffle : bool
    network : "inprocess" or "process"
    device : "cpu", "cuda", "cuda:1", or "auto"
    target : training accuracy of a batch, which #Rounds are counted to; 0 for none
    """

    protocol: str = "fedsgd"
    protocol_options: Plain = field(default_factory=dict)
    compressor: str = ""
    compressor_options: Plain = field(default_factory=dict)
    epochs: int = 30
    lr: float = 0.01
    batch_size: int = 1024
    optimizer: str = "adam"
    optimizer_options: Plain = field(default_factory=dict)
    scheduler: str = "inverse_sqrt"
    scheduler_options: Plain = field(default_factory=dict)
    loss: str = ""
    shuffle: bool = True
    network: str = "inprocess"
    device: str = "cpu"
    target: float = 0.0


@dataclass(frozen=True)
class RunConfig:
    """One run, repeated for every seed."""

    name: str
    data: DataConfig
    model: ModelConfig
    training: TrainingConfig

    def settings(self) -> Plain:
        """Every setting by its full name, such as "training.lr"."""
        return {
            f"{section}.{key}": value
            for section in SECTIONS
            for key, value in dataclasses.asdict(getattr(self, section)).items()
        }


@dataclass(frozen=True)
class Config:
    """A whole file.

    Attributes
    ----------
    path : where it was read
    results : folder that results are written to, relative to the current one
    seeds : of the repeats; a seed decides weights, batches, and rows of training where the loader draws them
    runs : tuple of RunConfig
    """

    path: Path
    results: Path
    seeds: tuple[int, ...]
    runs: tuple[RunConfig, ...]


SECTIONS: dict[str, type] = {"data": DataConfig, "model": ModelConfig, "training": TrainingConfig}
TOP_KEYS = ("results", "seeds", "repeats", "run", *SECTIONS)


def load_config(path: str | Path) -> Config:
    """Read and check a TOML or JSON file; ConfigError says what is wrong and where."""
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8")
        whole = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:  # what both parsers raise, and text that is not UTF-8
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise ConfigError(f"{path} is not {kind}: {error}") from error
    try:
        return parse_config(whole, path)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def parse_config(whole: Any, path: Path) -> Config:
    """A Config from the tables of a file."""
    _check_keys("the file", _table("the file", whole), TOP_KEYS)
    listed = whole.get("run", [{}])
    if not isinstance(listed, list) or not listed:
        raise ConfigError("runs are a list of tables: [[run]]")
    shared = {section: whole.get(section, {}) for section in SECTIONS}
    runs = tuple(_run(shared, entry, i, len(listed)) for i, entry in enumerate(listed))
    names = [run.name for run in runs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"two runs are called {twice!r}")
    for run in runs:
        _check_names(run)
    results = _typed("results", whole.get("results", f"results/{path.stem}"), str)
    return Config(path, Path(results), _seeds(whole), runs)


def _seeds(whole: Plain) -> tuple[int, ...]:
    if "seeds" in whole and "repeats" in whole:
        raise ConfigError("give seeds or repeats, not both")
    if "repeats" in whole:
        seeds = list(range(_typed("repeats", whole["repeats"], int)))
    else:
        seeds = whole.get("seeds", [0])
    if not isinstance(seeds, list) or not seeds or not all(type(s) is int and s >= 0 for s in seeds):
        raise ConfigError(f"seeds are a list of whole numbers from 0 on, got {seeds!r}")
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"every seed once, got {seeds}")
    return tuple(seeds)


def _run(shared: Plain, entry: Any, index: int, n_runs: int) -> RunConfig:
    where = f"run {index + 1}"
    entry = _table(where, entry)
    _check_keys(where, entry, ("name", *SECTIONS))
    name = _typed(f"{where}: name", entry.get("name", "run" if n_runs == 1 else None), str)
    sections = {
        section: _section(
            section,
            cls,
            {
                **_table(f"[{section}]", shared[section]),
                **_table(f"{where}: {section}", entry.get(section, {})),
            },
        )
        for section, cls in SECTIONS.items()
    }
    return RunConfig(name, **sections)


def _section(section: str, cls: type, values: Plain) -> Any:
    fields = {f.name: f for f in dataclasses.fields(cls)}
    hints = typing.get_type_hints(cls)
    _check_keys(f"[{section}]", values, fields)
    missing = [f.name for f in fields.values() if _is_needed(f) and f.name not in values]
    if missing:
        raise ConfigError(f"[{section}] needs {missing[0]!r}")
    return cls(**{key: _typed(f"{section}.{key}", value, hints[key]) for key, value in values.items()})


def _is_needed(f: dataclasses.Field[Any]) -> bool:
    return f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING


def _check_keys(where: str, values: Mapping[str, Any], known: Any) -> None:
    for key in values:
        if key not in known:
            raise ConfigError(f"{where} has no key {key!r}{nearest(key, known)}")


def _table(where: str, value: Any) -> Plain:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be a table, got {type(value).__name__}")
    return value


def _typed(where: str, value: Any, hint: Any) -> Any:
    """The value, if it is of this type; a whole number is a float too."""
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    kinds = tuple(typing.get_origin(kind) or kind for kind in kinds)
    if float in kinds and type(value) is int:
        return float(value)
    if type(value) not in kinds:
        names = " or ".join({"str": "text", "dict": "a table"}.get(k.__name__, k.__name__) for k in kinds)
        raise ConfigError(f"{where} must be {names}, got {value!r}")
    return value


# ---------------------------------------------------------------- names and options, before anything is trained


def _check_names(run: RunConfig) -> None:
    """Every name in a run is known, and options that need no data fit."""
    training, model = run.training, run.model
    known = VFLAIR if run.data.vflair else DATASETS
    if run.data.name not in known:
        raise ConfigError(f"data.name {run.data.name!r} is unknown{nearest(run.data.name, known)}")
    if training.loss and training.loss not in LOSSES:
        raise ConfigError(f"training.loss {training.loss!r} is unknown{nearest(training.loss, LOSSES)}")
    if training.network not in NETWORKS:
        raise ConfigError(f"training.network is one of {NETWORKS}, got {training.network!r}")
    for least, value, name in (
        (1, training.epochs, "training.epochs"),
        (0, training.batch_size, "training.batch_size"),
        (0, training.target, "training.target"),
        (0, run.data.limit, "data.limit"),
        (0, run.data.test_limit, "data.test_limit"),
        (0, model.cut_width, "model.cut_width"),
    ):
        if not value >= least:
            raise ConfigError(f"{name} must be at least {least}, got {value}")
    with _as_config_error():
        checked_device(training.device)
        for name in bottom_names(model):
            if ":" not in name:
                bottom_entry(name)
        if ":" not in model.top:
            top_entry(model.top)
        config_settings(training, n_samples=0, n_evaluation=0, seed=0)


def bottom_names(model: ModelConfig) -> Iterator[str]:
    """Names of all bottom models."""
    if isinstance(model.bottom, str):
        yield model.bottom
        return
    for party, name in model.bottom.items():
        yield _typed(f"model.bottom.{party}", name, str)


def config_settings(training: TrainingConfig, **sizes: int) -> TrainingSettings:
    """What the parties agree on. sizes : n_samples, n_evaluation and seed."""
    if training.compressor_options and not training.compressor:
        raise ConfigError(
            "training.compressor_options are there, and no compressor; those of a protocol that compresses are "
            "protocol_options"
        )
    compressor = (training.compressor, training.compressor_options) if training.compressor else None
    return training_settings(
        protocol=training.protocol,
        protocol_options=training.protocol_options,
        compressor=compressor,
        optimizer=(training.optimizer, training.optimizer_options),
        scheduler=(training.scheduler, training.scheduler_options),
        lr=training.lr,
        epochs=training.epochs,
        first_epoch=0,
        batch_size=training.batch_size or None,
        shuffle=training.shuffle,
        **sizes,
    )


class _as_config_error:
    """A ValueError or TypeError of the block is the config's fault."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ValueError | TypeError) and not isinstance(error, ConfigError):
            raise ConfigError(str(error)) from error
