"""What each party of a linear training received and computed: the instruments of the privacy tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from vflcrypto import CiphertextArray, PrivateKey, generate_keypair, masking
from vflcrypto import words as wide
from vflparty import InProcessNetwork, codec
from vflparty.coordinator import AskKey, Coordinator, KeyMade, Opened, OpenMasked
from vfltree.linear import LinearActiveParty, LinearPassiveParty, LinearSettings
from vfltree.linear.arithmetic import PaillierArithmetic
from vfltree.linear.exact.messages import ClearScores, MaskKey
from vfltree.linear.messages import JoinedLinear, TrainingFinished
from vfltree.linear.own import OwnModel
from vfltree.linear.rows.messages import OtherHalf, SealedRows
from vfltree.linear.scores.messages import MaskedSums, SealedScores

KINDS = (
    *LinearPassiveParty.messages,
    *(AskKey, KeyMade, OpenMasked, Opened, JoinedLinear, SealedScores, MaskedSums, TrainingFinished),
    *(ClearScores, MaskKey, SealedRows, OtherHalf),
)


@dataclass
class Run:
    """One training, with everything that crossed, and what the parties did before values left."""

    key: PrivateKey
    frames: list[Any] = field(default_factory=list)
    hidden: list[tuple[CiphertextArray, CiphertextArray]] = field(
        default_factory=list
    )  # before, after the mask
    sent: list[tuple[CiphertextArray, CiphertextArray]] = field(
        default_factory=list
    )  # before, after blinding
    noises: list[str] = field(default_factory=list)  # of what goes to the coordinator
    gradients: dict[int, list[np.ndarray]] = field(
        default_factory=dict
    )  # of every OwnModel, in order of making
    result: Any = None
    coordinator: Any = None

    def messages(self, receiver: str | None = None, kind: type[Any] | None = None) -> list[Any]:
        """Decoded messages, of one receiver or kind."""
        found = []
        for sent in self.frames:
            if receiver in (None, sent.receiver):
                length = sent.frame[5]
                name = sent.frame[32 : 32 + length].decode()
                kinds = [k for k in KINDS if k.__name__ == name]
                if kinds and kind in (None, kinds[0]):
                    found.append(codec.decode(sent.frame, (kinds[0],)))
        return found

    def opened(self) -> list[list[int]]:
        """What the coordinator decrypted, modulo n: per step all values, parties in order."""
        n = self.key.public_key.n
        return [
            [value % n for part in message.values for value in wide.to_ints(part)]
            for message in self.messages(kind=Opened)
        ]

    def array(self, payload: bytes) -> CiphertextArray:
        return CiphertextArray.from_bytes(payload, self.key.public_key)


def train(
    blocks: dict[str, np.ndarray],
    y: np.ndarray,
    monkeypatch: pytest.MonkeyPatch,
    *,
    hide: Any = None,
    send: Any = None,
    **settings: Any,
) -> Run:
    """Train with the coordinator's key in the test's hand.

    blocks : party -> features, the active party first
    hide, send : replacements for masking and for blinding, for planted violations
    """
    _, key = generate_keypair(512, allow_weak_key=True)
    run = Run(key)
    options = {"max_iter": 2, "tol": 0.0, "key_bits": 512, "allow_weak_key": True, **settings}
    chosen = LinearSettings(**options)
    with monkeypatch.context() as patch:
        _watch(run, patch, hide, send)
        active, *passive = blocks
        network = _seated(blocks, chosen, key)
        leader = LinearActiveParty(
            blocks[active], y.reshape(len(y), -1).astype(float), name=active, passive_parties=passive,
            coordinator="coordinator", settings=chosen, random_seed=0,
        )  # fmt: skip
        with network:
            run.result = network.run(leader)
            run.coordinator = network.collect("coordinator")
            run.frames = network.transcript
    return run


def _seated(blocks: dict[str, np.ndarray], settings: LinearSettings, key: PrivateKey) -> InProcessNetwork:
    from vfltree.blocks import Block
    from vfltree.linear.estimator import coordinator_setup

    active, *passive = blocks
    setup = coordinator_setup({party: Block(party, X) for party, X in blocks.items()}, settings)
    quota = dict(zip(setup.parties, setup.values_per_step, strict=True))
    parties: dict[str, Any] = {
        party: LinearPassiveParty(blocks[party], name=party, allow_weak_key=True, allow_small_batches=True)
        for party in passive
    }
    parties["coordinator"] = Coordinator(
        quota, max_steps=setup.max_steps, private_key=key, allow_weak_key=True
    )
    return InProcessNetwork(parties, leader=active, record=True)


def _watch(run: Run, patch: pytest.MonkeyPatch, hide: Any, send: Any) -> None:
    true_hide, true_rerandomize, true_send = (
        masking.hide,
        CiphertextArray.rerandomize,
        PaillierArithmetic.send,
    )
    true_step = OwnModel.take_step

    def watched_hide(array: CiphertextArray, n_jobs: int = 1) -> Any:
        masked, mask = (true_hide if hide is None else hide)(array, n_jobs)
        run.hidden.append((array, masked))
        run.noises.append(masked.freshness)
        return masked, mask

    def watched_send(self: PaillierArithmetic, values: CiphertextArray) -> bytes:
        payload = true_send(self, values) if send is None else send(values)
        run.sent.append((values, run.array(payload)))
        return payload

    def watched_step(self: OwnModel, sums: np.ndarray, n_batch: int, curvature: float) -> None:
        run.gradients.setdefault(id(self), []).append(
            self.columns.gradients(
                sums, self._settings.factor * (self.columns.n_rows / n_batch if n_batch else 1.0)
            )
        )
        true_step(self, sums, n_batch, curvature)

    assert true_rerandomize is CiphertextArray.rerandomize
    patch.setattr("vflparty.arithmetic.hide", watched_hide)
    patch.setattr(PaillierArithmetic, "send", watched_send)
    patch.setattr(OwnModel, "take_step", watched_step)
