"""Bin sums of a passive party on Credit and Nursery: single features beside joint cells, in one run.

    make bench ARGS="-k bin_sums"

The nodes are those of a real training (depth 6, 32 bins, 5 rounds). `per row, feature and tree` is what is multiplied,
divided by rows x passive features x trees. Timed is the planning of all nodes and, in `multiply CPU seconds`, the sums
of the first round under a 2048-bit key on one thread.
"""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vflcrypto import generate_keypair, plan_packing
from vflcrypto.layers import sum_in_layers
from vfldata import load_credit, load_nursery
from vfltree import SecureBoostClassifier
from vfltree.bin_sums import count_bins
from vfltree.growing.follower import TreeFollower
from vfltree.joint_cells import SumPlan, find_trees, plan_sums, single_features

pytestmark = pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning")

ROUNDS, DEPTH, KEY_BITS = 5, 6, 2048


@cache
def workload(name: str) -> tuple[np.ndarray, int, int, list[list[np.ndarray]]]:
    """Bins of the passive party, their number, that of trees, and the rows of the nodes asked for, call by call."""
    if name == "nursery":
        data, parameters = load_nursery(one_hot="full"), {"learning_rate": 0.3}
    else:
        home = Path(os.environ.get("VFL_DATA_HOME", Path(__file__).resolve().parents[2] / "shared" / "data"))
        if not home.is_dir():
            pytest.skip(f"Credit needs VFL_DATA_HOME ({home} is no folder)")
        data, parameters = load_credit(data_home=home), {}
    calls: list[list[np.ndarray]] = []
    parties: list[Any] = []
    original = TreeFollower._sum_nodes

    def noted(self: Any, current: Any, rows_by_node: dict[int, np.ndarray]) -> Any:
        parties.append(self)
        calls.append(list(rows_by_node.values()))
        return original(self, current, rows_by_node)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TreeFollower, "_sum_nodes", noted)
        model = SecureBoostClassifier(
            ROUNDS, max_depth=DEPTH, partition=data.partition, encryption="none", random_state=0, **parameters
        ).fit(data.X_train, data.y_train)
    n_classes = len(model.classes_)
    n_trees = ROUNDS * (1 if n_classes == 2 else n_classes)
    return np.asfortranarray(parties[0]._binned), parties[0]._mapper.n_bins, n_trees, calls


@cache
def sealed(n_rows: int, n_outputs: int) -> Any:
    _, private = generate_keypair(KEY_BITS)
    ones = np.ones((n_rows, n_outputs), dtype=np.int64)
    return plan_packing(n_rows, n_outputs, key_bits=KEY_BITS).encrypt(private, ones, ones)


@pytest.mark.parametrize("scheme", ["single", "joint"])
@pytest.mark.parametrize("name", ["credit", "nursery"])
def test_bin_sums(benchmark, name, scheme):
    binned, n_bins, n_trees, calls = workload(name)

    def planned() -> list[SumPlan]:
        trees = single_features(binned.shape[1]) if scheme == "single" else find_trees(binned, n_bins)
        return [plan_sums(binned, rows, count_bins(binned, rows, n_bins), trees) for rows in calls]

    plans = benchmark.pedantic(planned, rounds=3, warmup_rounds=1)
    total = sum(plan.n_multiplications for plan in plans)
    first_round = plans[: len(plans) // ROUNDS]
    rows = sealed(len(binned), n_trees // ROUNDS)
    start = time.process_time()
    for plan in first_round:
        sum_in_layers(rows, plan.n_values, plan.batches)
    benchmark.extra_info.update(
        {
            "multiplications": total,
            "per row, feature and tree": round(total / (binned.size * n_trees), 4),
            "multiply CPU seconds, one round": round(time.process_time() - start, 3),
            "multiplications, one round": sum(plan.n_multiplications for plan in first_round),
        }
    )
