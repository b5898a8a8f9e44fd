"""The coordinator: a trusted third party that makes the key, decrypts masked values, and sees no data.

::

    leader -> coordinator      AskKey -> KeyMade            once
                               OpenMasked -> Opened         at most once a step

Whoever wants a value opened masks it first (`vflcrypto.masking.hide`): what the coordinator decrypts is uniform modulo
n. Parties have no connection to it of their own, so the leader carries their masked values there and back; it holds no
key, and the opened values are as uniform to it as to the coordinator.

======== ========================================================= ====================================================
party    learns                                                    does not learn
======== ========================================================= ====================================================
coordi-  names of parties, how many values each of them has opened labels, features, weights, gradients; any plaintext
nator    per step, number of steps, sizes and times                that a party has masked
leader   masked values of the others, which are uniform            what they hide
======== ========================================================= ====================================================

Against honest-but-curious parties that do not collude. With the coordinator's private key a colluding party reads every
ciphertext that ever passed it. A party that deviates can have the coordinator open *other* ciphertexts in place of its
own: the coordinator cannot tell. It therefore keeps a quota, exactly the agreed number of values per party and step and
no more than the agreed steps, counts what it was asked, and refuses and logs the rest. Within its quota a cheating
party can still open any ciphertexts under this key that it has seen; since the leader carries all requests, a cheating
leader has the quota of all parties (who then get no gradient).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vflcrypto import CiphertextArray, CryptoError, PrivateKey, obtain_keypair

from .errors import RemoteProtocolError
from .messages import Message
from .party import Party

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CoordinatorSetup(Message):
    """To the coordinator's own seat: what the parties have agreed on."""

    parties: tuple[str, ...]
    values_per_step: tuple[int, ...]  # one entry per party
    max_steps: int
    key_bits: int
    allow_weak_key: bool  # make a key that is fit for tests only
    n_jobs: int


@dataclass(frozen=True)
class AskKey(Message, answer="KeyMade"):
    """leader -> coordinator, once."""


@dataclass(frozen=True)
class KeyMade(Message):
    """coordinator -> leader, for all parties."""

    public_key: bytes


@dataclass(frozen=True)
class OpenMasked(Message, answer="Opened"):
    """leader -> coordinator, at most once a step: ciphertext arrays of some parties, each value masked by its owner."""

    step: int
    parties: tuple[str, ...]
    masked: tuple[bytes, ...]  # one array per party, of exactly its quota


@dataclass(frozen=True)
class Opened(Message):
    """coordinator -> leader: the decrypted, still masked values, party by party."""

    step: int
    values: tuple[NDArray[np.uint64], ...]  # uint64 (n_values, n_words), two's complement


@dataclass(frozen=True)
class CoordinatorLog(Message):
    """What the coordinator was asked: its state after a conversation."""

    steps: int
    parties: tuple[str, ...]
    opened: tuple[int, ...]  # values, one entry per party
    refused: int  # requests


class Coordinator(Party):
    """Holds the private key and nothing else.

    values_per_step : party -> how many values it may open in a step; exactly these.
    max_steps : steps beyond it are refused.
    private_key : to use in place of a fresh one.
    """

    setup_message = CoordinatorSetup
    state_message = CoordinatorLog
    messages: ClassVar[tuple[type[Message], ...]] = (AskKey, OpenMasked)

    def __init__(
        self,
        values_per_step: Mapping[str, int],
        *,
        max_steps: int,
        key_bits: int = 3072,
        allow_weak_key: bool = False,
        n_jobs: int = 1,
        private_key: PrivateKey | None = None,
    ) -> None:
        if not values_per_step or min(values_per_step.values()) < 0 or max_steps < 1:
            raise ValueError(
                f"a coordinator needs parties and at least one step, got {dict(values_per_step)} and {max_steps}"
            )
        self._quota = dict(values_per_step)
        self._max_steps, self._n_jobs = max_steps, n_jobs
        self._key_bits, self._allow_weak_key = key_bits, allow_weak_key
        self._private_key = private_key
        self._asked_for_key = False
        self._steps = 0
        self._refused = 0
        self._opened = dict.fromkeys(self._quota, 0)

    @classmethod
    def from_setup(cls, setup: CoordinatorSetup) -> Coordinator:
        return cls(
            dict(zip(setup.parties, setup.values_per_step, strict=True)),
            max_steps=setup.max_steps,
            key_bits=setup.key_bits,
            allow_weak_key=setup.allow_weak_key,
            n_jobs=setup.n_jobs,
        )

    def export_state(self) -> CoordinatorLog:
        return CoordinatorLog(self._steps, tuple(self._opened), tuple(self._opened.values()), self._refused)

    def receive(self, message: Message) -> Message:
        """As `Party.receive`; what is refused is counted."""
        try:
            return super().receive(message)
        except RemoteProtocolError as error:
            self._refused += 1
            log.warning("refused %s: %s", type(message).__name__, error.text)
            raise

    def on_ask_key(self, msg: AskKey) -> KeyMade:
        """Once: make the key; its private half stays here."""
        if self._asked_for_key:
            raise RemoteProtocolError("the key has been given already")
        self._asked_for_key = True
        if self._private_key is None:
            with self.ledger.phase("make key"):
                _, self._private_key = obtain_keypair(self._key_bits, self._allow_weak_key)
        return KeyMade(self._private_key.public_key.to_bytes())

    def on_open_masked(self, msg: OpenMasked) -> Opened:
        """Decrypt what the quota allows; all of a request or nothing."""
        if self._private_key is None or not self._asked_for_key:
            raise RemoteProtocolError("values to open before anybody asked for the key")
        self._check_step(msg)
        arrays = [self._read(party, masked) for party, masked in zip(msg.parties, msg.masked, strict=True)]
        self._steps = msg.step + 1
        with self.ledger.phase("open masked"):
            values = tuple(self._open(party, array) for party, array in zip(msg.parties, arrays, strict=True))
        log.info("step %d: opened %s", msg.step, dict(zip(msg.parties, map(len, values), strict=True)))
        return Opened(msg.step, values)

    def _check_step(self, msg: OpenMasked) -> None:
        if msg.step != self._steps:
            raise RemoteProtocolError(
                f"step {msg.step} to open, step {self._steps} is next: each is opened once"
            )
        if msg.step >= self._max_steps:
            raise RemoteProtocolError(f"step {msg.step} to open, {self._max_steps} steps were agreed")
        if len(msg.parties) != len(msg.masked) or len(set(msg.parties)) != len(msg.parties):
            raise RemoteProtocolError(f"{len(msg.masked)} arrays for the parties {list(msg.parties)}")
        unknown = [party for party in msg.parties if party not in self._quota]
        if unknown:
            raise RemoteProtocolError(f"no quota was agreed for {unknown}; there are {list(self._quota)}")

    def _read(self, party: str, masked: bytes) -> CiphertextArray:
        assert self._private_key is not None
        try:
            array = CiphertextArray.from_bytes(masked, self._private_key.public_key)
        except (ValueError, CryptoError) as error:
            raise RemoteProtocolError(f"masked values of {party!r}: {error}") from error
        if array.size != self._quota[party] or array.bound != array.public_key.capacity:
            raise RemoteProtocolError(
                f"{array.size} values of {array.bound.bit_length()} bits to open for {party!r}; a step has exactly "
                f"{self._quota[party]} masked ones"
            )
        return array

    def _open(self, party: str, array: CiphertextArray) -> NDArray[np.uint64]:
        assert self._private_key is not None
        values = self._private_key.decrypt_words(array.reshape(-1), n_jobs=self._n_jobs)
        self.ledger.count("decryptions", array.size)
        self._opened[party] += array.size
        return values
