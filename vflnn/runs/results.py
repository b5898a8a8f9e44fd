"""Results on disk: a line of JSON per finished repeat, from which runs go on, and a CSV of the same for people."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from .config import RunConfig

Record = dict[str, Any]


def repeat_key(run: RunConfig, seed: int) -> str:
    """Names a repeat by all that decides its result: settings, seed, version of the library."""
    told = json.dumps([run.settings(), seed, version("vfltree")], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def environment() -> Record:
    """Where results come from."""
    return {
        "vfltree": version("vfltree"),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
    }


class Results:
    """The folder of one config's results.

    results.jsonl : a record per finished repeat, appended
    results.csv : the same as a table, written anew after every repeat
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._lines, self._table = folder / "results.jsonl", folder / "results.csv"
        self.records = list(self._read())

    def __contains__(self, key: str) -> bool:
        return any(record["key"] == key for record in self.records)

    def add(self, run: RunConfig, seed: int, figures: Record) -> None:
        """Keep the figures of a repeat, with every setting."""
        record = {
            "key": repeat_key(run, seed), "run": run.name, "seed": seed, **figures, **run.settings(), **environment(),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        }  # fmt: skip
        with self._lines.open("a", encoding="utf-8") as file:
            file.write(f"{'' if self._ends_whole() else chr(10)}{json.dumps(record)}\n")
        self.records.append(record)
        self._write_table()

    def of(self, run: RunConfig, seeds: Iterable[int]) -> list[Record]:
        """The records of these repeats that are finished, in the order of the seeds."""
        by_key = {record["key"]: record for record in self.records}
        keys = (repeat_key(run, seed) for seed in seeds)
        return [by_key[key] for key in keys if key in by_key]

    def _ends_whole(self) -> bool:
        """Whether the last line is finished; an interrupt may have cut it off."""
        return not self._lines.exists() or self._lines.read_bytes()[-1:] in (b"", b"\n")

    def _read(self) -> Iterable[Record]:
        if not self._lines.exists():
            return
        for line in self._lines.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue  # the end of a line that an interrupt cut off: that repeat is made again

    def _write_table(self) -> None:
        names = list(dict.fromkeys(name for record in self.records for name in record))
        with self._table.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            for record in self.records:
                writer.writerow([_cell(record.get(name)) for name in names])


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value
