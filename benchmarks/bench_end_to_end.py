"""SecureBoost on Credit and Nursery with the settings of the VFLAIR benchmark: what encryption costs.

    make bench ARGS="-k end_to_end"

One run each, 5 trees of depth 6 (Nursery: 5 rounds of a tree per class), all cores. Beside the seconds: the counts of
encryptions, modular multiplications and decryptions behind them. VFLAIR's paper, 512 bits: 881 s and 1194 s.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vfldata import load_credit, load_nursery
from vfltree import SecureBoostClassifier

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]


def load(name: str):
    if name == "nursery":
        return load_nursery()
    home = Path(os.environ.get("VFL_DATA_HOME", Path(__file__).resolve().parents[2] / "shared" / "data"))
    if not home.is_dir():
        pytest.skip(f"Credit needs VFL_DATA_HOME ({home} is no folder)")
    return load_credit(data_home=home)


@pytest.mark.parametrize("key_bits", [0, 512, 1024, 2048, 3072], ids=lambda bits: f"{bits or 'plain'}")
@pytest.mark.parametrize("name", ["credit", "nursery"])
def test_end_to_end(benchmark, name, key_bits):
    data = load(name)
    cipher = {"key_bits": key_bits, "allow_weak_key": key_bits < 2048} if key_bits else {"encryption": "none"}
    model = SecureBoostClassifier(
        5, max_depth=6, partition=data.partition, n_jobs=-1, random_state=0, **cipher
    )
    SecureBoostClassifier(1, encryption="none").fit(
        data.X_train[:100], data.y_train[:100]
    )  # kernels are compiled
    benchmark.pedantic(model.fit, args=(data.X_train, data.y_train), rounds=1)
    benchmark.extra_info.update(
        accuracy=round(model.score(data.X_test, data.y_test), 4),
        **{
            name: model.costs_[name]
            for name in ("encryptions", "additions", "squarings", "blindings", "decryptions")
        },
        megabytes=round(model.costs_["bytes"] / 1e6, 1),
        **{f"seconds {phase}": round(seconds, 2) for phase, seconds in model.costs_["seconds"].items()},
    )
