"""Paillier libraries side by side: the same key size, numbers and operations, one thread, in one run.

    make bench-peers                            2048-bit keys; table in docs/results/peers.md
    make bench-peers ARGS="--bits 3072 --rounds 3"

Every library runs in a process and an environment of its own, all on the same core, never two at a time. An operation
is timed in rounds, each library once per round, so that a machine that drifts drifts for all; the medians of CPU time
count. Batches are sized to the same time. The first answers of every operation are decrypted and compared with plain
integers.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from environments import HERE, OURS, PEERS, Peer, prepare
from protocol import expected
from report import Comparison, write

from vflcrypto import generate_keypair, kernels

_BEST = kernels.backends()[0]
RESULT = HERE.parents[1] / "docs" / "results" / ("peers.md" if _BEST == "ifma" else f"peers-{_BEST}.md")
VECTORS = HERE.parents[1] / "tests" / "vectors" / "insecure_keys.json"


class Driver:
    """One library in its process."""

    def __init__(self, peer: Peer, python: str, core: int, job: dict[str, Any]) -> None:
        self.peer = peer
        # One thread, whatever pool a library keeps; so is the core that all of them share.
        environment = {**os.environ, "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [python, str(HERE / peer.driver)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if not os.environ.get("PEERS_DEBUG") else None,
            text=True,
            env=environment,
            preexec_fn=(lambda: os.sched_setaffinity(0, {core}))
            if hasattr(os, "sched_setaffinity")
            else None,
        )
        hello = self.ask({**job, "options": peer.options})
        self.versions: str = hello["versions"]
        self.operations: dict[str, int] = hello["operations"]
        self.counts: dict[str, int] = {}
        self.seconds: dict[str, list[float]] = {}

    def ask(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        # Some libraries greet on stdout before the driver can send them elsewhere.
        line = next((line for line in self.process.stdout if line.startswith("{")), "")
        if not line:
            raise RuntimeError(f"{self.peer.name} ended: {self._complaint()}")
        return json.loads(line)

    def _complaint(self) -> str:
        lines = self.process.stderr.read().strip().splitlines() if self.process.stderr else []
        return lines[-1] if lines else "no reason given"

    def time(self, operation: str, *, check: bool = False) -> float:
        count = self.counts[operation]
        answer = self.ask({"operation": operation, "count": count, "check": check})
        if check and answer["answers"] != expected(operation, count)[: len(answer["answers"])]:
            raise RuntimeError(f"{self.peer.name}: wrong answer of {operation}")
        return float(answer["cpu"])

    def warm_up(self, operation: str, budget: float) -> None:
        """Grow the batch until it takes about `budget` seconds; answers are checked at every size."""
        most = self.operations[operation]
        smallest = {"workload": most, "bin-sum": 500}.get(operation, 32)  # every bin gets a row
        self.counts[operation] = min(smallest, most)
        while True:
            seconds, count = self.time(operation, check=True), self.counts[operation]
            wanted = min(most, int(count * budget / max(seconds, 1e-6)))
            if wanted < 1.5 * count:
                self.seconds[operation] = []
                return
            self.counts[operation] = min(wanted, 16 * count)

    def median(self, operation: str) -> float:
        """Seconds per value."""
        return statistics.median(self.seconds[operation]) / self.counts[operation]

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def primes(bits: int) -> tuple[int, int]:
    """The published test key of this size (nothing secret is encrypted here), else a new one."""
    known = json.loads(VECTORS.read_text())["keys"].get(f"INSECURE_TEST_KEY_{bits}")
    if known:
        return int(known["p"], 16), int(known["q"], 16)
    print(f"== Making a {bits}-bit key of safe primes", flush=True)
    return generate_keypair(bits, allow_weak_key=True)[1].unsafe_primes()


def started(bits: int, core: int) -> tuple[list[Driver], dict[str, str]]:
    """The libraries that run here, and why the others do not."""
    p, q = primes(bits)
    job = {"key_bits": bits, "p": hex(p), "q": hex(q)}
    drivers, missing = [], {}
    for peer in (*OURS, *PEERS):
        if peer.options.get("backend", "portable") not in kernels.backends():
            missing[peer.name] = "this CPU does not run it"
            continue
        python, reason = prepare(peer)
        if python is None:
            missing[peer.name] = reason
            continue
        if reason:
            missing[f"another version of {peer.name}"] = reason
        print(f"== Starting {peer.name}", flush=True)
        try:
            drivers.append(Driver(peer, python, core, job))
        except RuntimeError as error:
            missing[peer.name] = str(error)
    return drivers, missing


def measure(drivers: list[Driver], rounds: int, budget: float) -> None:
    for operation in dict.fromkeys(name for d in drivers for name in d.operations):
        able = [d for d in drivers if operation in d.operations]
        for driver in able:
            driver.warm_up(operation, budget)
        for _ in range(1 if operation == "workload" else rounds):
            for driver in able:
                driver.seconds[operation].append(driver.time(operation))
        rates = ", ".join(f"{d.peer.name} {1 / d.median(operation):,.0f}/s" for d in able)
        print(f"{operation}: {rates}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bits", type=int, default=2048, help="key size (default 2048)")
    parser.add_argument("--rounds", type=int, default=7, help="timed rounds per operation (default 7)")
    parser.add_argument("--budget", type=float, default=0.25, help="seconds per batch, about (default 0.25)")
    parser.add_argument("--core", type=int, default=0, help="core that everybody runs on (default 0)")
    parser.add_argument("--output", type=Path, default=RESULT, help="where the table goes")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    drivers, missing = started(arguments.bits, arguments.core)
    try:
        measure(drivers, arguments.rounds, arguments.budget)
    finally:
        for driver in drivers:
            driver.close()
    result = Comparison(
        bits=arguments.bits,
        rounds=arguments.rounds,
        load=load,
        versions={d.peer.name: d.versions for d in drivers},
        missing=missing,
        seconds={d.peer.name: {op: d.median(op) for op in d.operations} for d in drivers},
        counts={d.peer.name: d.counts for d in drivers},
    )
    print(write(result, arguments.output))
    return 0


if __name__ == "__main__":
    sys.exit(main())
