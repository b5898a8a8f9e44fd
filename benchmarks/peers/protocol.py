"""What a driver and the runner say to each other: one JSON object per line, the driver answers each line with one.

    -> {"key_bits": 2048, "p": "..", "q": "..", "options": {..}}     <- {"versions": "..", "operations": {name: most}}
    -> {"operation": "add", "count": 4000, "check": true}            <- {"cpu": 0.9, "wall": 0.9, "answers": [..]}

Only the operation itself is timed: inputs are prepared before. Everybody makes the same numbers from the same seeds.
Runs on Python 3.10 and newer without any package.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ROWS, FEATURES, BINS = 24_000, 12, 32
VALUE_BITS = 62  # a packed gradient as large as every peer takes it
CHECKED = 8  # answers compared per operation


@dataclass(frozen=True)
class Operation:
    """prepare(count) makes inputs, run(inputs) is timed, answers(result) decrypts the first few."""

    prepare: Callable[[int], Any]
    run: Callable[[Any], Any]
    answers: Callable[[Any], list[int]]
    most: int = ROWS  # the largest count worth asking for


def values() -> list[int]:
    """ROWS plaintexts."""
    rng = random.Random(1)
    return [rng.getrandbits(VALUE_BITS) for _ in range(ROWS)]


def scalars(bits: int) -> list[int]:
    """ROWS factors of exactly `bits` bits."""
    rng = random.Random(bits)
    return [rng.getrandbits(bits - 1) | 1 << (bits - 1) for _ in range(ROWS)]


def bins() -> list[list[int]]:
    """FEATURES lists of ROWS bins."""
    rng = random.Random(2)
    return [[rng.randrange(BINS) for _ in range(ROWS)] for _ in range(FEATURES)]


def expected(operation: str, count: int) -> list[int]:
    """What the first answers of an operation must be."""
    x = values()
    if operation == "add":  # every row to the next one, round and round
        return [x[i] + x[(i + 1) % count] for i in range(min(CHECKED, count))]
    if operation.startswith("multiply"):
        factors = scalars(int(operation.split("-")[1]))
        return [x[i] * factors[i] for i in range(min(CHECKED, count))]
    if operation == "bin-sum":
        sums = [0] * CHECKED
        for value, b in zip(x[:count], bins()[0], strict=False):
            if b < CHECKED:
                sums[b] += value
        return sums
    return x[: min(CHECKED, count)]


def serve(start: Callable[[dict[str, Any]], tuple[str, dict[str, Operation]]]) -> None:
    """Answer the runner until it closes the pipe. What libraries print goes to stderr."""
    answer_to = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    versions, operations = start(json.loads(sys.stdin.readline()))
    offered = {name: operation.most for name, operation in operations.items()}
    print(json.dumps({"versions": versions, "operations": offered}), file=answer_to)
    inputs: dict[tuple[str, int], Any] = {}
    for line in sys.stdin:
        order = json.loads(line)
        operation, key = operations[order["operation"]], (order["operation"], order["count"])
        if key not in inputs:
            inputs = {k: v for k, v in inputs.items() if k[0] != key[0]}
            inputs[key] = operation.prepare(order["count"])
        print(json.dumps(_timed(operation, inputs[key], order["check"])), file=answer_to)


def _timed(operation: Operation, inputs: Any, check: bool) -> dict[str, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = operation.run(inputs)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {"cpu": cpu, "wall": wall, "answers": operation.answers(result) if check else None}
