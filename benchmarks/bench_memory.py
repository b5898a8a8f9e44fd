"""How much memory a million ciphertexts take, and that they can be summed by bin: largest resident size of a process.

    .venv/bin/python benchmarks/bench_memory.py [--count 1000000] [--bits 2048] [--features 4]

A child process encrypts them all (minutes) and sums them; what it held before is taken off.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from vflcrypto import generate_keypair
from vflcrypto.paillier import PrivateKey

VECTORS = Path(__file__).resolve().parents[1] / "tests" / "vectors" / "insecure_keys.json"
BINS = 32


def peak() -> int:
    """Bytes."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024


def key(bits: int) -> PrivateKey:
    known = json.loads(VECTORS.read_text())["keys"].get(f"INSECURE_TEST_KEY_{bits}")
    if known:
        return PrivateKey.from_primes(int(known["p"], 16), int(known["q"], 16), allow_weak_key=True)
    return generate_keypair(bits, allow_weak_key=True)[1]


def child(count: int, bits: int, features: int) -> None:
    private = key(bits)
    values = np.arange(count)
    bins = np.random.default_rng(0).integers(BINS, size=(count, features), dtype=np.uint8)
    private.encrypt(values[:512], n_jobs=-1).sum_by_bin(bins[:512], BINS)  # loaded, tables made, run once
    before = peak()
    array = private.encrypt(values, n_jobs=-1)
    made = peak()
    start = time.perf_counter()
    sums = array.sum_by_bin(bins, BINS)
    seconds = time.perf_counter() - start
    summed = peak()
    wanted = np.bincount(bins[:, 0], weights=values, minlength=BINS)
    assert (private.decrypt(sums[0]) == wanted).all()
    raw = array.nbytes
    print(
        json.dumps(
            {
                "raw": raw,
                "before": before,
                "array": made - before,
                "summed": summed - before,
                "seconds": seconds,
            }
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--bits", type=int, default=2048)
    parser.add_argument("--features", type=int, default=4)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.count, arguments.bits, arguments.features)
        return
    done = subprocess.run(
        [sys.executable, __file__, "--child", *sys.argv[1:]], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    raw = found["raw"]
    print(f"{arguments.count:,} ciphertexts of a {arguments.bits}-bit key: {raw / 1e6:,.0f} MB raw")
    print(
        f"encrypted:     {found['array'] / 1e6:8,.0f} MB more than before, {found['array'] / raw:.2f} x raw"
    )
    print(
        f"summed by bin: {found['summed'] / 1e6:8,.0f} MB more than before, {found['summed'] / raw:.2f} x raw"
    )
    print(f"whole process: {(found['before'] + found['summed']) / 1e6:8,.0f} MB")
    print(f"{arguments.features} features into {BINS} bins: {found['seconds']:.1f} s on one thread")


if __name__ == "__main__":
    main()
