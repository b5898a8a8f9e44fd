"""Small forests that several tests share."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.secureboost.small import WEAK
from vflcrypto import PrivateKey, generate_keypair, reuse_keys
from vflparty import InProcessNetwork
from vfltree import SecureForestClassifier, SecureForestRegressor
from vfltree.forest import ForestActive, ForestPassive, ForestSettings


def forest(task: str, n_estimators: int = 3, **parameters: Any) -> Any:
    """Of a task of `some_data`."""
    kind = SecureForestRegressor if task == "regression" else SecureForestClassifier
    return kind(n_estimators, **{"max_depth": 4, "random_state": 1, **parameters})


def train(
    X_active: np.ndarray,
    X_passive: np.ndarray,
    y: np.ndarray,
    *,
    seed: int = 0,
    record: bool = False,
    **settings: Any,
) -> tuple[PrivateKey, ForestActive, ForestPassive, Any, list[Any]]:
    """An encrypted training of two parties with a key in the test's hand: key, parties, result, frames."""
    _, key = generate_keypair(WEAK["key_bits"], allow_weak_key=True)
    active = ForestActive(
        X_active, y, passive_parties=["shop"], random_seed=seed,
        settings=ForestSettings(**{"n_estimators": 3, "max_depth": 3, **WEAK, **settings}),
    )  # fmt: skip
    passive = ForestPassive(X_passive, name="shop", allow_weak_key=True, random_seed=seed)
    with reuse_keys(key), InProcessNetwork({"shop": passive}, record=record) as network:
        result = network.run(active)
        frames = list(network.transcript) if record else []
    return key, active, passive, result, frames
