"""Small parties for the tests: a bank asks shops for sums. Importable, so they can sit in processes."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vflparty import (
    Leader,
    Message,
    Party,
    RemoteProtocolError,
    RowsDigest,
    check_rows,
    compare_rows,
    make_seat,
    to_all,
)


@dataclass(frozen=True)
class AskSum(Message, answer="PartialSum"):
    """bank -> shop: add up your numbers in these rows, in a way that tests one thing."""

    rows: NDArray[np.int64]
    how: str  # "sum", or a name of something that goes wrong


@dataclass(frozen=True)
class PartialSum(Message):
    """shop -> bank."""

    total: float
    echo: np.ndarray


@dataclass(frozen=True)
class Remember(Message):
    """bank -> shop; answered by Done."""

    text: str


@dataclass(frozen=True)
class Unlisted(Message):
    """bank -> shop, but no shop receives it."""


@dataclass(frozen=True)
class ShopSetup(Message):
    """The shop's own numbers."""

    numbers: NDArray[np.float64]
    secret: str


@dataclass(frozen=True)
class ShopState(Message):
    """What the shop keeps."""

    remembered: tuple[str, ...]


class Shop(Party):
    setup_message = ShopSetup
    state_message = ShopState
    messages = (RowsDigest, AskSum, Remember)

    def __init__(self, setup: ShopSetup) -> None:
        if not len(setup.numbers):
            raise ValueError("there are no numbers to add up")
        self._numbers = setup.numbers
        self._remembered: list[str] = []

    def on_rows_digest(self, msg: RowsDigest) -> RowsDigest:
        return check_rows(RowsDigest.of(range(len(self._numbers))), msg)

    def on_remember(self, msg: Remember) -> None:
        self._remembered.append(msg.text)

    def on_ask_sum(self, msg: AskSum) -> Message:
        with self.ledger.phase("adding"):
            self.ledger.count("additions", len(msg.rows))
            total = float(self._numbers[msg.rows].sum())
        return _MISCHIEF[msg.how](PartialSum(total, msg.rows))

    def export_state(self) -> ShopState:
        return ShopState(tuple(self._remembered))


def _raise(error: BaseException) -> Message:
    raise error


def _wait(seconds: float, answer: Message) -> Message:
    time.sleep(seconds)
    return answer


_MISCHIEF = {
    "sum": lambda answer: answer,
    "slow": lambda answer: _wait(0.5, answer),
    "never": lambda answer: _wait(3600, answer),
    "die": lambda answer: os._exit(7),
    "last words": lambda answer: (print("I am leaving", flush=True), os._exit(3)),
    "value error": lambda answer: _raise(ValueError("row 3 is not there")),
    "refusal": lambda answer: _raise(RemoteProtocolError("asked for the same rows twice")),
    "surprise": lambda answer: _raise(KeyError("customer 4711")),
    "wrong kind": lambda answer: ShopState(()),
    "no message": lambda answer: 3.0,
}


@dataclass(frozen=True)
class BankSetup(Message):
    """The bank's own: its number, and what to do."""

    shops: tuple[str, ...]
    number: float
    hows: tuple[str, ...]  # one round each
    n_rows: int
    secret: str = ""


@dataclass(frozen=True)
class GrandTotal(Message):
    """What the bank's conversation returns."""

    totals: NDArray[np.float64]  # (n_rounds,)
    pids: tuple[int, ...]


class Bank(Leader):
    setup_message = BankSetup
    state_message = BankSetup
    result_message = GrandTotal

    def __init__(self, setup: BankSetup) -> None:
        self._setup = setup

    def conversation(self):
        setup, totals = self._setup, []
        yield from compare_rows(setup.shops, RowsDigest.of(range(setup.n_rows)))
        yield to_all(setup.shops, Remember("hello"))
        for index, how in enumerate(setup.hows):
            self.report(how, index, len(setup.hows))
            rows = np.arange(index + 1)
            with self.ledger.phase("waiting"):
                answers = yield bank_round(how, setup.shops, rows)
            totals.append(setup.number + sum(answer.total for answer in answers.values()))
        return GrandTotal(np.array(totals), (os.getpid(),))

    def export_state(self) -> BankSetup:
        return self._setup


class BigBank(Bank):
    """A bank that asks for all rows in one round."""

    def conversation(self):
        rows = np.arange(self._setup.n_rows)
        answers = yield {shop: AskSum(rows, "sum") for shop in self._setup.shops}
        return GrandTotal(np.array([sum(answer.total for answer in answers.values())]), (os.getpid(),))


def bank_round(how: str, shops: tuple[str, ...], rows: np.ndarray) -> dict[str, Message]:
    """One round of the bank: most ways of going wrong are asked of the last shop only."""
    special = {
        "unlisted": {shops[-1]: Unlisted()},
        "unknown party": {"nobody": Unlisted()},
        "not a dict": [Unlisted()],
        "nothing": {},
    }
    if how == "own mistake":
        raise ValueError("the bank is broke")
    if how == "own silence":
        time.sleep(3600)
    if how in special:
        return special[how]  # type: ignore[return-value]
    asked = {shop: AskSum(rows, "sum") for shop in shops[:-1]}
    return {**asked, shops[-1]: AskSum(rows, how)}


def toy_seats(*hows: str, n_shops: int = 2, n_rows: int = 6):
    """A bank and its shops, with different data and a secret text each."""
    shops = tuple(f"shop{i}" for i in range(n_shops))
    seats = [make_seat("bank", Bank, BankSetup(shops, 0.5, hows or ("sum",), n_rows, "secret of bank"))]
    for i, shop in enumerate(shops):
        seats.append(make_seat(shop, Shop, ShopSetup(np.arange(n_rows) * 10.0**i, f"secret of {shop}")))
    return seats
