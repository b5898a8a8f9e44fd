"""What each party received, and what the key owner can compute from it: the instruments of the privacy tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

import gmpy2
import numpy as np
import pytest

from tests.secureboost.small import WEAK
from vflcrypto import CiphertextArray, PrivateKey, generate_keypair, reuse_keys
from vflparty import InProcessNetwork, Message, codec
from vflparty.messages import field_types
from vfltree.forest.messages import OpenSlots
from vfltree.sealing import PaillierSealer, PaillierSummer
from vfltree.secureboost import ActiveParty, BoostSettings, PassiveParty
from vfltree.secureboost.messages import Histograms

BOOSTING = (ActiveParty, PassiveParty, BoostSettings)


@dataclass
class Run:
    """One training of an active and a passive party, with everything that crossed and was opened."""

    key: PrivateKey
    protocol: tuple[Any, Any, Any] = BOOSTING  # classes of the parties and of the settings
    frames: list[Any] = field(default_factory=list)
    rows: list[CiphertextArray] = field(default_factory=list)  # what the passive party summed, per round
    sums: list[CiphertextArray] = field(default_factory=list)  # compressed sums before blinding
    replies: list[CiphertextArray] = field(default_factory=list)  # what left
    noises: list[str] = field(default_factory=list)
    opened: list[np.ndarray] = field(default_factory=list)  # sums that the active party decrypted
    result: Any = None

    def messages_to(self, receiver: str) -> list[Any]:
        kinds = (*self.protocol[1].messages, Histograms, OpenSlots)
        return [codec.decode(sent.frame, kinds) for sent in self.frames if sent.receiver == receiver
                and any(kind.__name__.encode() in sent.frame[:64] for kind in kinds)]  # fmt: skip


def train(
    X_active: np.ndarray,
    X_passive: np.ndarray,
    y: np.ndarray,
    monkeypatch: pytest.MonkeyPatch,
    *,
    blind: Any = None,
    seed: int = 0,
    protocol: tuple[Any, Any, Any] = BOOSTING,
    **settings: Any,
) -> Run:
    """Train with a key in the test's hand. `blind` replaces the blinding of replies, for planted violations."""
    _, key = generate_keypair(WEAK["key_bits"], allow_weak_key=True)
    run = Run(key, protocol)
    active_party, passive_party, settings_of = protocol
    true_rerandomize, true_open = CiphertextArray.rerandomize, PaillierSealer.open

    def rerandomize(self: CiphertextArray, noise: str = "wide", n_jobs: int = 1) -> CiphertextArray:
        run.sums.append(self)
        run.noises.append(noise)
        reply = true_rerandomize(self, noise, n_jobs) if blind is None else blind(self)
        run.replies.append(reply)
        return reply

    def open_(self: PaillierSealer, sums: bytes, n_values: int) -> np.ndarray:
        run.opened.append(true_open(self, sums, n_values))
        return run.opened[-1]

    true_load = PaillierSummer.load

    def load(self: PaillierSummer, payload: bytes, n_rows: int) -> None:
        true_load(self, payload, n_rows)
        run.rows.append(self._rows)

    with monkeypatch.context() as patch:
        patch.setattr(CiphertextArray, "rerandomize", rerandomize)
        patch.setattr(PaillierSealer, "open", open_)
        patch.setattr(PaillierSummer, "load", load)
        active = active_party(
            X_active, y, passive_parties=["shop"], random_seed=seed,
            settings=settings_of(**{"n_estimators": 2, "max_depth": 3, **WEAK, **settings}),
        )  # fmt: skip
        passive = passive_party(X_passive, name="shop", allow_weak_key=True, random_seed=seed)
        with reuse_keys(key), InProcessNetwork({"shop": passive}, record=True) as network:
            run.result = network.run(active)
            run.frames = network.transcript
    return run


def crossed(run: Run, number: int) -> bool:
    """Do the bytes of this number stand anywhere in what crossed?"""
    everything = b"".join(sent.frame for sent in run.frames)
    size = (number.bit_length() + 7) // 8
    return any(number.to_bytes(size, order) in everything for order in ("little", "big"))


def fields_of_real_numbers(kinds: Iterable[type[Message]]) -> list[tuple[str, str]]:
    """(kind, field) of every field that could hold a number which is not whole."""
    return [
        (kind.__name__, name)
        for kind in kinds
        for name, type_ in field_types(kind)
        if type_.base is float
        or (type_.base is np.ndarray and (type_.dtype is None or type_.dtype.kind not in "iub"))
    ]


def values_of(array: CiphertextArray) -> list[int]:
    """The ciphertexts as integers."""
    return array.public_key.ring.to_ints(array.elements)


def noise_root(key: PrivateKey, ciphertext: int) -> int:
    """r of a ciphertext (1 + m n) r^n: only the owner of the key can tell."""
    p, q = key._primes
    order = (p - 1) * (q - 1)
    return int(gmpy2.powmod(ciphertext % (p * q), gmpy2.invert(p * q, order), p * q))


def replies_betray_rows(run: Run) -> bool:
    """Does a reply carry exactly the noise of the rows that were added up, as the key owner can compute it?"""
    predicted = {noise_root(run.key, c) for array in run.sums for c in values_of(array)}
    found = {noise_root(run.key, c) for array in run.replies for c in values_of(array)}
    return bool(predicted & found)


def predicted_jacobi_share(run: Run) -> float:
    """Share of replies whose Jacobi symbol is the one of the unblinded sum."""
    n = run.key.public_key.n
    pairs = [
        (gmpy2.jacobi(before % n, n), gmpy2.jacobi(after % n, n))
        for sums, replies in zip(run.sums, run.replies, strict=True)
        for before, after in zip(values_of(sums), values_of(replies), strict=True)
    ]
    return sum(before == after for before, after in pairs) / len(pairs)


def without_ciphertexts(message: Any) -> Any:
    """The message with byte fields replaced by their lengths: what can be read of it without the key."""
    secret = {
        f.name: str(len(getattr(message, f.name)))
        for f in fields(message)
        if f.name in ("gradients", "targets", "sums", "public_key")
    }
    return type(message).__name__, {
        f.name: secret.get(f.name, getattr(message, f.name)) for f in fields(message)
    }
