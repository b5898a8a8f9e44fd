"""Encrypted trainings for tests: plans, weak keys in the test's hand, and what crossed."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.crypto.insecure_keys import insecure_key
from tests.nn import small
from vflcrypto import CiphertextArray, PrivateKey
from vflcrypto import words as wide
from vflnn.encrypted import Terms
from vflnn.encrypted.active import EncryptedActiveParty
from vflnn.encrypted.messages import EncryptedOutputs, JoinedEncrypted, MaskedGradient
from vflnn.encrypted.passive import EncryptedPassiveParty
from vflnn.encrypted.seating import TrainedEncrypted, train_encrypted
from vflnn.encrypted.share import OwnShare
from vflnn.messages import ScoredOutputs
from vflnn.recipes import model_recipe
from vflnn.seating import PartyPlan, TrainingPlan
from vflparty import codec
from vflparty.arithmetic import PaillierArithmetic
from vflparty.coordinator import AskKey, KeyMade, Opened, OpenMasked

KINDS = (
    *EncryptedPassiveParty.messages, JoinedEncrypted, EncryptedOutputs, MaskedGradient, ScoredOutputs,
    AskKey, KeyMade, OpenMasked, Opened,
)  # fmt: skip
WEAK = Terms(key_bits=512, allow_weak_key=True, allow_small_batches=True)
PLAIN = Terms(encryption="none", allow_small_batches=True)
HERE = "tests.nn.small"


def labels_of(X, n_classes):
    """Classes that depend on all parties' columns."""
    signal = sum(block[:, 0] - block[:, 1] for block in X)
    return np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes)).astype(np.int64)


def plan(n_parties=2, n_classes=3, bottom="linear", *, n=37, n_evaluation=0, n_features=4, **changes):
    """The first party leads; bottoms of tests.nn.small."""
    X, _ = small.blocks(n_parties, n=n + n_evaluation, n_features=n_features)
    y = labels_of(X, n_classes)
    parts = {
        name: PartyPlan(
            model_recipe(f"{HERE}:{bottom}", seed=20 + k),
            n_classes,
            X[k][:n],
            X[k][n:] if n_evaluation else None,
        )
        for k, name in enumerate(small.PARTIES[:n_parties])
    }
    agreed = small.settings(n_samples=n, n_evaluation=n_evaluation, **changes)
    return TrainingPlan(
        agreed, "active", parts.pop("active"), parts, model_recipe("sum"), y[:n], n_classes, loss="taylor_logit",
        evaluation_labels=y[n:] if n_evaluation else None,
    )  # fmt: skip


def weights(trained):
    return {
        f"{party}.{name}": array
        for party, state in trained.states.items()
        for name, array in zip(state.names, state.arrays, strict=True)
    }


@dataclass
class Run:
    """One training, with everything that crossed, and what parties did before values left."""

    key: PrivateKey
    trained: TrainedEncrypted
    hidden: list[tuple[CiphertextArray, CiphertextArray]] = field(default_factory=list)  # before, after
    blinded: list[tuple[CiphertextArray, CiphertextArray]] = field(default_factory=list)
    outputs: dict[str, list[Any]] = field(default_factory=dict)  # party -> encoded, step by step
    sums: dict[str, list[Any]] = field(default_factory=dict)  # party -> opened, step by step

    def messages(self, receiver=None, kind=None):
        """Decoded messages, of one receiver or kind."""
        found = []
        for sent in self.trained.transcript:
            if receiver in (None, sent.receiver):
                name = sent.frame[32 : 32 + sent.frame[5]].decode()
                kinds = [known for known in KINDS if known.__name__ == name]
                if kinds and kind in (None, kinds[0]):
                    found.append(codec.decode(sent.frame, (kinds[0],)))
        return found

    def opened(self):
        """What the coordinator decrypted, modulo n: per step all values, parties in order."""
        n = self.key.public_key.n
        return [
            [value % n for part in message.values for value in wide.to_ints(part)]
            for message in self.messages(kind=Opened)
        ]

    def array(self, payload):
        return CiphertextArray.from_bytes(payload, self.key.public_key)


def watched(plan, monkeypatch, terms=WEAK, *, hide=None, send=None):
    """Train with the coordinator's key in the test's hand; `hide` and `send` are planted violations."""
    from vflcrypto import masking

    key = insecure_key("INSECURE_TEST_KEY_512")
    run = Run(key, None)  # type: ignore[arg-type]
    true_send, true_outputs, true_descend = PaillierArithmetic.send, OwnShare.outputs, OwnShare.descend

    def watched_hide(array, n_jobs=1):
        masked, mask = (hide or masking.hide)(array, n_jobs)
        run.hidden.append((array, masked))
        return masked, mask

    def watched_send(self, values):
        payload = true_send(self, values) if send is None else send(values)
        run.blinded.append((values, run.array(payload)))
        return payload

    def watched_outputs(self, step):
        run.outputs.setdefault(self._party, []).append(true_outputs(self, step))
        return run.outputs[self._party][-1]

    def watched_descend(self, step, sums):
        run.sums.setdefault(self._party, []).append(sums)
        true_descend(self, step, sums)

    with monkeypatch.context() as patch:
        patch.setattr("vflparty.coordinator.obtain_keypair", lambda bits, weak: (key.public_key, key))
        patch.setattr("vflparty.arithmetic.hide", watched_hide)
        patch.setattr(PaillierArithmetic, "send", watched_send)
        patch.setattr(OwnShare, "outputs", watched_outputs)
        patch.setattr(OwnShare, "descend", watched_descend)
        run.trained = train_encrypted(plan, terms, record=True)
    return run


__all__ = ["HERE", "PLAIN", "WEAK", "EncryptedActiveParty", "Run", "plan", "watched", "weights"]
