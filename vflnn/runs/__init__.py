"""Experiments from a file: ``python -m vflnn run config.toml``, validated, repeated, resumable.

A config names data, models and training once, and lists runs that change some of it::

    results = "results/main"                # the folder that results.csv and results.jsonl go into
    seeds = [0, 1, 2, 3, 4]

    [data]
    name = "mnist"

    [model]
    bottom = "MLP2"

    [training]
    epochs = 30

    [[run]]
    name = "aggVFL"

    [[run]]
    name = "splitVFL"
    model.top = "linear"
"""

from .config import Config, ConfigError, RunConfig, load_config
from .running import run_config

__all__ = ["Config", "ConfigError", "RunConfig", "load_config", "run_config"]
