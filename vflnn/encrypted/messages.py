"""Encrypted training on one page, top to bottom in the order sent.

First RowsDigest (vflparty.alignment) and, with the coordinator, AskKey -> KeyMade (vflparty.coordinator). Steps are
numbered over all epochs; every party knows which rows a step holds (vflnn/order.py). All ciphertexts are under the
coordinator's key; without encryption the same integers travel in the clear.
"""

from __future__ import annotations

from dataclasses import dataclass

from vflparty import Message

# ---------------------------------------------------------------- what a party starts from


@dataclass(frozen=True)
class EncryptedPassiveSetup(Message):
    """To a passive party's own seat; never crosses to another party."""

    plain: bytes  # frame of a vflnn.messages.PassiveSetup
    terms: str  # JSON of its Terms


@dataclass(frozen=True)
class EncryptedActiveSetup(Message):
    """To the active party's own seat; never crosses to another party."""

    plain: bytes  # frame of a vflnn.messages.ActiveSetup
    coordinator: str  # name of its seat; empty without encryption
    terms: str


# ---------------------------------------------------------------- training


@dataclass(frozen=True)
class JoinEncrypted(Message, answer="JoinedEncrypted"):
    """active -> every passive, once."""

    settings: bytes  # frame of a TrainingSettings
    public_key: bytes  # of the coordinator, as received; empty without encryption
    watch_loss: bool


@dataclass(frozen=True)
class JoinedEncrypted(Message):
    """passive -> active."""

    width: int  # of its outputs
    n_values: int  # parameters that it trains: values to open per step


@dataclass(frozen=True)
class AskEncryptedOutputs(Message, answer="EncryptedOutputs"):
    """active -> every passive, once a batch: opens a step."""

    step: int


@dataclass(frozen=True)
class EncryptedOutputs(Message):
    """passive -> active."""

    outputs: bytes  # [[H_k]], (n_rows, n_classes), HALF


@dataclass(frozen=True)
class EncryptedResiduals(Message, answer="MaskedGradient"):
    """active -> every passive."""

    step: int
    residuals: bytes  # [[D]], (n_rows, n_classes), blinded anew, HALF


@dataclass(frozen=True)
class MaskedGradient(Message):
    """passive -> active -> coordinator (OpenMasked -> Opened)."""

    gradient: bytes  # [[J_k^T D + R]], n_values of them, R uniform modulo n, WIDE
    products: bytes  # [[sum of D o H_k]], one value, HALF, where the loss is watched; else empty


@dataclass(frozen=True)
class OpenedGradient(Message):
    """active -> each passive: its own masked values, decrypted. Closes the step: the party descends, then answers."""

    step: int
    values: bytes


# After the last step AskScoring -> ScoredOutputs (vflnn/messages.py), each row to evaluate once.
