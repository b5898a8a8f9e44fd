"""Lesson 3: two parties, one message each way, and a ledger of what crossed.

A shop knows how much each customer spent, a bank knows which customers defaulted. The bank asks for the sums of two
groups. Parties never call each other: the one who leads is a generator that yields messages, the one who answers is an
inbox of `on_<message>` methods, and what passes between them is bytes.
"""

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vflparty import InProcessNetwork, Ledger, Message, Party, codec


@dataclass(frozen=True)
class SumByGroup(Message, answer="GroupSums"):
    """bank -> shop: please add up what the customers of each group spent."""

    group: NDArray[np.int64]  # (n_customers,)


@dataclass(frozen=True)
class GroupSums(Message):
    """shop -> bank: one sum per group, and nothing about single customers."""

    sums: NDArray[np.float64]  # (n_groups,)


class Shop(Party):
    """Answers. Its data stays in it."""

    messages = (SumByGroup,)  # the closed list of what it may be asked

    def __init__(self, spent: NDArray[np.float64]) -> None:
        self._spent = spent

    def on_sum_by_group(self, msg: SumByGroup) -> GroupSums:
        return GroupSums(np.bincount(msg.group, weights=self._spent))


def bank(
    defaulted: NDArray[np.bool_],
) -> Generator[dict[str, Message], dict[str, GroupSums], NDArray[np.float64]]:
    """Leads: says what to send, is handed the answers, returns what it learned."""
    answers = yield {"shop": SumByGroup(defaulted.astype(np.int64))}
    return answers["shop"].sums


def main() -> None:
    spent = np.array([120.0, 80.0, 200.0, 40.0, 60.0])
    defaulted = np.array([False, True, False, True, False])

    ledger = Ledger()
    with InProcessNetwork({"shop": Shop(spent)}, ledger, leader="bank", record=True) as network:
        sums = network.run(bank(defaulted))

    print(f"Customers who paid spent {sums[0]:.0f}, those who defaulted {sums[1]:.0f}.\n")

    print("What each party received:")
    for sender, receiver, frame in network.transcript:
        message = codec.decode(frame, (SumByGroup, GroupSums))
        values = {name: np.asarray(value).tolist() for name, value in vars(message).items()}
        print(f"  {receiver:5} <- {sender:5} {type(message).__name__:11} {len(frame):4} bytes  {values}")

    print(f"\nThe ledger, {ledger.rounds} round:")
    print(ledger.summary().to_string(index=False))

    print(
        "\nThe bank has just told the shop who defaulted: every message here is in clear. Lessons 1 and 2 show the"
        "\ncipher that lets the shop add up labels it cannot read; SecureBoost puts the two together."
    )


if __name__ == "__main__":
    main()
