"""The command line of `vflnn`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from vfldata import DATASETS, VFLAIR
from vflparty import ProtocolError

from ..losses import LOSSES
from ..models import BOTTOM_MODELS, REQUIRED, TOP_MODELS
from ..protocols import PROTOCOLS
from .config import load_config
from .running import run_config


def main(arguments: Sequence[str] | None = None) -> int:
    """0: done; 1: something went wrong, and what is said on standard error; 130: interrupted."""
    parser = argparse.ArgumentParser(prog="python -m vflnn", description="Split training from a config file.")
    parser.add_argument("--version", action="version", version=f"vfltree {version('vfltree')}")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="train what a TOML or JSON file says")
    run.add_argument("config")
    run.add_argument(
        "--fresh", action="store_true", help="make repeats again whose results are there already"
    )
    run.add_argument("--check", action="store_true", help="check the file and train nothing")
    listing = commands.add_parser("list", help="data sets, models, protocols and losses by name")
    listing.add_argument("what", nargs="?", choices=list(LISTS), help="only these")
    given = parser.parse_args(arguments)
    if given.command == "list":
        for what in [given.what] if given.what else LISTS:
            _print_list(what)
        return 0
    try:
        return _run(given)
    except (ValueError, TypeError, OSError, OverflowError, ProtocolError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "\ninterrupted; what is finished stays, and the same command goes on from there", file=sys.stderr
        )
        return 130


def _run(given: argparse.Namespace) -> int:
    config = load_config(given.config)
    if given.check:
        names = ", ".join(run.name for run in config.runs)
        print(
            f"{config.path}: {len(config.runs)} runs ({names}) with seeds {', '.join(map(str, config.seeds))}"
        )
        return 0
    run_config(config, fresh=given.fresh)
    print(f"written: {config.results / 'results.csv'}")
    return 0


def _models(entries: Any) -> dict[str, str]:
    return {name: f"{entry.description}{_options(entry.options)}" for name, entry in entries.items()}


def _options(options: dict[str, Any]) -> str:
    told = ", ".join(name if value is REQUIRED else f"{name}={value!r}" for name, value in options.items())
    return f" [{told}]" if told else ""


LISTS: dict[str, dict[str, str]] = {
    "datasets": {
        name: entry.description + (" (also as VFLAIR has it)" if name in VFLAIR else "")
        for name, entry in DATASETS.items()
    },
    "bottoms": _models(BOTTOM_MODELS),
    "tops": _models(TOP_MODELS),
    "protocols": _models(PROTOCOLS),
    "losses": {name: str(loss.__doc__).split("\n")[0] for name, loss in LOSSES.items()},
}


def _print_list(what: str) -> None:
    print(f"{what}:")
    width = max(map(len, LISTS[what]))
    for name, text in LISTS[what].items():
        print(f"  {name:{width}}  {text}")
