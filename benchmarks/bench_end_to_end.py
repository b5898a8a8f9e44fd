"""SecureBoost on Credit and Nursery with the settings of the VFLAIR benchmark: what encryption costs.

    make bench ARGS="-k end_to_end"

One run each, 5 trees of depth 6 (Nursery: 5 rounds of a tree per class), all cores; the key and its tables are made
before. Beside the seconds: CPU seconds, the share of wall time in phases of native kernels, and the counts of
encryptions, modular multiplications and decryptions. VFLAIR's paper, 512 bits: Credit 881 s, Nursery 1194 s.
"""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import pytest

from vflcrypto import PrivateKey, generate_keypair, reuse_keys
from vfldata import load_credit, load_nursery
from vfltree import SecureBoostClassifier
from vfltree.sealing import COUNTERS

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]

NATIVE_PHASES = ("encrypt", "check ciphertexts", "bin sums", "compress", "blind", "decrypt")


@cache
def load(name: str):
    if name == "nursery":
        return load_nursery()
    home = Path(os.environ.get("VFL_DATA_HOME", Path(__file__).resolve().parents[2] / "shared" / "data"))
    if not home.is_dir():
        pytest.skip(f"Credit needs VFL_DATA_HOME ({home} is no folder)")
    return load_credit(data_home=home)


@cache
def warm_key(key_bits: int) -> PrivateKey:
    _, private = generate_keypair(key_bits, allow_weak_key=True)
    private.decrypt(private.encrypt([1.0]).rerandomize())
    return private


@pytest.mark.parametrize("key_bits", [0, 512, 1024, 2048, 3072], ids=lambda bits: f"{bits or 'plain'}")
@pytest.mark.parametrize("name", ["credit", "nursery"])
def test_end_to_end(benchmark, name, key_bits):
    data = load(name)
    cipher = {"key_bits": key_bits, "allow_weak_key": key_bits < 2048} if key_bits else {"encryption": "none"}
    model = SecureBoostClassifier(
        5, max_depth=6, partition=data.partition, n_jobs=-1, random_state=0, **cipher
    )
    with reuse_keys(warm_key(key_bits)) if key_bits else nullcontext():
        model.set_params(n_estimators=1).fit(data.X_train[:2000], data.y_train[:2000])  # kernels are compiled
        model.set_params(n_estimators=5)
        before = time.process_time()
        benchmark.pedantic(model.fit, args=(data.X_train, data.y_train), rounds=1)
        cpu_seconds = time.process_time() - before
    seconds = model.costs_["seconds"]
    wall = benchmark.stats.stats.max
    benchmark.extra_info.update(
        accuracy=round(model.score(data.X_test, data.y_test), 4),
        cpu_seconds=round(cpu_seconds, 2),
        native_share=round(sum(seconds.get(phase, 0.0) for phase in NATIVE_PHASES) / wall, 2),
        megabytes=round(model.costs_["bytes"] / 1e6, 1),
        **{counter: model.costs_[counter] for counter in COUNTERS},
        **{f"seconds {phase}": round(value, 2) for phase, value in seconds.items()},
    )
    print(f"\n{name} {key_bits or 'plain'}: {wall:.2f} s wall, {benchmark.extra_info}")
