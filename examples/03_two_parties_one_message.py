"""Lesson 3: two parties, one message each way, and a ledger of what crossed.

A bank knows which customers defaulted, a shop knows what each of them spent. How much did the defaulters
spend? The bank sends its labels encrypted, the shop multiplies and adds without reading them, the bank
decrypts one number.

Parties never call each other: the one who leads is a generator that yields messages and is handed the
answers, the one who answers is an inbox of `on_<message>` methods, and what passes between them is bytes.
`--fast` takes a weak key.
"""

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vflcrypto import CiphertextArray, PrivateKey, PublicKey, generate_keypair
from vflparty import Conversation, InProcessNetwork, Ledger, Message, Party, codec

FAST = "--fast" in sys.argv
KEY_BITS = 512 if FAST else 2048


@dataclass(frozen=True)
class EncryptedLabels(Message, answer="EncryptedTotal"):
    """bank -> shop: who defaulted, under the bank's key."""

    public_key: bytes
    labels: bytes  # (n_customers,) ciphertexts


@dataclass(frozen=True)
class EncryptedTotal(Message):
    """shop -> bank: what the defaulters spent, under the bank's key, freshly blinded."""

    total: bytes  # one ciphertext


class Shop(Party):
    """Answers. Its data stays in it."""

    messages = (EncryptedLabels,)  # the closed list of what it may be asked

    def __init__(self, spent: NDArray[np.int64]) -> None:
        self._spent = spent

    def on_encrypted_labels(self, msg: EncryptedLabels) -> EncryptedTotal:
        """The dot product of plain amounts and encrypted labels."""
        public = PublicKey.from_bytes(msg.public_key, allow_weak_key=FAST)
        labels = CiphertextArray.from_bytes(msg.labels, public)
        return EncryptedTotal((self._spent @ labels).rerandomize().to_bytes())


def bank(private: PrivateKey, defaulted: NDArray[np.int64]) -> Conversation:
    """Leads: says what to send, is handed the answers, returns what it learned."""
    public = private.public_key
    labels = private.encrypt(defaulted)
    answers = yield {"shop": EncryptedLabels(public.to_bytes(), labels.to_bytes())}
    return int(private.decrypt(CiphertextArray.from_bytes(answers["shop"].total, public)))


def main() -> None:
    _, private = generate_keypair(KEY_BITS, allow_weak_key=FAST)
    spent = np.array([120, 80, 200, 40, 60])
    defaulted = np.array([0, 1, 0, 1, 0])

    ledger = Ledger()
    with InProcessNetwork({"shop": Shop(spent)}, ledger, leader="bank", record=True) as network:
        total = network.run(bank(private, defaulted))
    print(f"The defaulters spent {total}; in clear: {spent @ defaulted}.\n")

    print("What each party received:")
    for sender, receiver, frame in network.transcript:
        message = codec.decode(frame, (EncryptedLabels, EncryptedTotal))
        fields = ", ".join(f"{name} = {value[-6:].hex()}..." for name, value in vars(message).items())
        print(f"  {receiver} <- {sender}  {type(message).__name__}: {len(frame)} bytes, {fields}")

    print(f"\nThe ledger, {ledger.rounds} round:")
    print(ledger.summary().to_string(index=False))


if __name__ == "__main__":
    main()
