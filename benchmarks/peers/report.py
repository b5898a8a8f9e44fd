"""The table of a comparison, in Markdown."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from protocol import BINS, FEATURES, ROWS, VALUE_BITS

DECRYPTED = 1500  # of the workload
# operation -> (row of the table, values per counted row, operations of peers it is compared with)
ENCRYPT = ("encrypt-half", "encrypt-wide", "encrypt-owner")
ROWS_OF_TABLE = {
    "encrypt-half": ("encrypt, public key, short noise (HALF)", 1, ENCRYPT),
    "encrypt-wide": ("encrypt, public key, full-length noise (WIDE)", 1, ENCRYPT),
    "encrypt-owner": ("encrypt, key owner", 1, ENCRYPT),
    "decrypt": ("decrypt", 1, ("decrypt",)),
    "add": ("add", 1, ("add",)),
    "multiply-20": ("multiply by 20-bit integers", 1, ("multiply-20",)),
    "multiply-62": ("multiply by 62-bit integers", 1, ("multiply-62",)),
    "bin-sum": (f"bin sum, {FEATURES} features, {BINS} bins, per row and feature", FEATURES, ("bin-sum",)),
}


@dataclass(frozen=True)
class Comparison:
    """seconds : library -> operation -> seconds per value; missing : library -> why it was not compared."""

    bits: int
    rounds: int
    load: float
    versions: dict[str, str]
    missing: dict[str, str]
    seconds: dict[str, dict[str, float]]
    counts: dict[str, dict[str, int]]


def write(result: Comparison, path: Path) -> str:
    """The page, also written to `path`."""
    text = "\n".join([*_head(result), *_table(result), *_workload(result), *_notes(result)]) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return text


def cpu_model() -> str:
    """As Linux calls it, else what Python knows."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        fields = dict(
            (line.split(":", 1)[0].strip(), line.split(":", 1)[1].strip())
            for line in reversed(lines)
            if ":" in line
        )
        name = fields["model name"]
        return f"{name}, family {fields['cpu family']}, model {fields['model']}"
    except (OSError, KeyError):
        return platform.processor() or platform.machine()


def _head(result: Comparison) -> list[str]:
    return [
        f"# Paillier libraries side by side, {result.bits}-bit keys",
        "",
        f"Written by `make bench-peers` on {date.today().isoformat()}. One thread of {cpu_model()}; "
        f"load of the machine at the start {result.load:.1f}.",
        "",
        *(f"* {name}: {versions}" for name, versions in result.versions.items()),
        *(f"* not compared: {name} ({reason})" for name, reason in result.missing.items()),
        "",
        f"Values per second of CPU time, median of {result.rounds} rounds in which the libraries take turns. The "
        f"same {VALUE_BITS}-bit plaintexts everywhere; first answers decrypted and found right. A ratio is ours to the "
        "best peer; each of our ways to encrypt is held against the fastest way of any peer.",
        "",
    ]


def _is_ours(name: str) -> bool:
    return name.startswith("ours")


def _table(result: Comparison) -> list[str]:
    names = list(result.versions)
    ours = [name for name in names if _is_ours(name)]
    titles = ["operation", *names, *(f"{name[6:]} to best" for name in ours)]
    lines = [f"| {' | '.join(titles)} |", "| --- " * len(titles) + "|"]
    for operation, (title, per, rivals) in ROWS_OF_TABLE.items():
        rate = {n: per / s[operation] for n, s in result.seconds.items() if operation in s}
        best = max(
            (per / s[o] for n, s in result.seconds.items() if not _is_ours(n) for o in rivals if o in s),
            default=float("nan"),
        )
        cells = [f"{rate[n]:,.0f}" if n in rate else "-" for n in names]
        lines.append(f"| {title} | {' | '.join(cells + [f'{rate[n] / best:.2f}' for n in ours])} |")
    return lines


def _seconds_of_workload(seconds: dict[str, float]) -> float:
    encrypt = min(seconds[o] for o in ENCRYPT if o in seconds)
    return ROWS * encrypt + ROWS * seconds["bin-sum"] + DECRYPTED * seconds["decrypt"]


def _workload(result: Comparison) -> list[str]:
    total = {n: _seconds_of_workload(s) for n, s in result.seconds.items() if "bin-sum" in s}
    best = min((t for n, t in total.items() if not _is_ours(n)), default=float("nan"))
    lines = [
        "",
        f"Reference workload, in seconds of CPU time: encrypt {ROWS:,} values, sum {ROWS:,} x {FEATURES} into {BINS} "
        f"bins, decrypt {DECRYPTED:,}, each library by its fastest encryption; from the rates above.",
        "",
        "| library | seconds | to best peer |",
        "| --- | --- | --- |",
        *(f"| {n} | {t:,.2f} | {best / t:.2f} |" for n, t in total.items()),
        "",
    ]
    run = {n: s["workload"] * ROWS for n, s in result.seconds.items() if "workload" in s}
    if run:
        lines += ["Run in one go: " + ", ".join(f"{n} {t:.2f} s" for n, t in run.items()) + ".", ""]
    return lines


def _notes(result: Comparison) -> list[str]:
    batches = ", ".join(f"{n} {c['bin-sum']:,}" for n, c in result.counts.items() if "bin-sum" in c)
    return [
        "What is compared:",
        "",
        "* Ours reads its noise tables in constant time; pypaillier says so of its own. The gmpy2 loops do not.",
        "* HALF: noise exponents of half the key's length (sf-heu and pypaillier choose theirs); WIDE: the whole "
        "length and 128 bits; phe draws textbook noise, which has no short form. Owner: modulo p^2 and q^2; for gmpy2 "
        "textbook noise by remainders.",
        f"* Rows of a bin sum: {batches}.",
        "* sf-heu and pypaillier made keys of their own; the others share one.",
    ]
