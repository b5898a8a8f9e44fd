"""Runs of an experiment, resumable: every finished run is a line of JSON, and is not made again.

A run is a dict of plain settings; its result is a dict of plain numbers. Lines are kept under `.experiments/` (not in
version control) with the versions they were made with; delete the file to start afresh.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import vfltree
from vflcrypto import kernels, obtain_keypair

REPO = Path(__file__).resolve().parents[2]
RESULTS = REPO / "docs" / "results"

Settings = dict[str, Any]
Result = dict[str, Any]


def make_runs(name: str, runs: Sequence[Settings], make: Callable[[Settings], Result]) -> list[Result]:
    """Results of all runs, in order, settings included; those that were made before are read.

    A run whose data is not there is left out, and said so.
    """
    path = REPO / ".experiments" / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    known = {_name(line["settings"]): line for line in _lines(path)}
    results = []
    for number, settings in enumerate(runs, 1):
        line = known.get(_name(settings))
        if line is None:
            say = " ".join(f"{key}={value}" for key, value in settings.items())
            print(f"== {name} {number}/{len(runs)}: {say}", flush=True)
            try:
                line = {"settings": settings, "result": make(settings), "version": vfltree.__version__}
            except FileNotFoundError as error:
                print(f"   left out: {error}", flush=True)
                continue
            with path.open("a") as file:
                file.write(json.dumps(line) + "\n")
        results.append({**line["settings"], **line["result"]})
    return results


def made_runs(name: str) -> list[Result]:
    """Results of all runs that were made so far, in the order they were made."""
    lines = _lines(REPO / ".experiments" / f"{name}.jsonl")
    return [{**line["settings"], **line["result"]} for line in lines]


def _lines(path: Path) -> Iterable[Result]:
    if path.exists():
        yield from (json.loads(text) for text in path.read_text().splitlines() if text.strip())


def _name(settings: Settings) -> str:
    return json.dumps(settings, sort_keys=True)


class Stopwatch:
    """Wall-clock and CPU seconds of a block, all threads of this process counted."""

    def __enter__(self) -> Stopwatch:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall, self.cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu


def peak_bytes() -> int:
    """The largest resident size of this process so far."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024


def cipher(bits: int) -> dict[str, Any]:
    """Parameters of an estimator for a key of this size; 0 bits: no encryption."""
    if not bits:
        return {"encryption": "none"}
    return {"key_bits": bits, "allow_weak_key": bits < 2048}


def warm_up(bits: int) -> None:
    """Make the key and its tables before the clock starts; inside `reuse_keys()` every fit takes this key."""
    if bits:
        _, key = obtain_keypair(bits, allow_weak_key=bits < 2048)
        key.encrypt(np.arange(64), n_jobs=-1)


def cipher_name(bits: int) -> str:
    if not bits:
        return "none"
    return f"{bits} bits" + (" (for comparison, insecure)" if bits < 2048 else "")


def mean_and_deviation(values: Iterable[float], digits: int) -> str:
    array = np.asarray(list(values), dtype=float)
    spread = array.std(ddof=1) if len(array) > 1 else 0.0
    return f"{array.mean():.{digits}f} ± {spread:.{digits}f}"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def machine() -> str:
    """One sentence."""
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        names = [
            line.split(":", 1)[1]
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ]
        model = names[0].strip() if names else model
    return (
        f"{os.cpu_count()} cores of {model}, Python {platform.python_version()}, vfltree {vfltree.__version__}, "
        f"backend {kernels.backends()[0]}"
    )


def write_page(name: str, results: Sequence[Result], page: Callable[[list[Result]], str]) -> None:
    """Write `page(results)` to docs/results, unless there are none."""
    if not results:
        print(f"== {name}: no data, no page")
        return
    path = RESULTS / f"{name}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(page(list(results)))
    print(f"== Written: {path.relative_to(REPO)}")
