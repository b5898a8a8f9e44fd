"""What every network does: lead a conversation round by round, count its frames, raise what a party reports.

`Network` is the door that estimators use; `InProcessNetwork` and `ProcessNetwork` stand behind it::

    with make_network("process", seats, on_progress=show) as network:
        result = network.run()
        tables = {party: network.collect(party) for party in network.parties}
        traffic = network.ledger.summary()
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from . import codec
from .errors import LocalProtocolError, RemoteProtocolError
from .ledger import Ledger
from .messages import ErrorReport, Message, Seat, answers_to, kind_name
from .party import Conversation, Leader, Party, ProgressHook, Round, seat_class

# Long computations are silence too; a peer that has died is noticed at once whatever this says.
DEFAULT_TIMEOUT = 3600.0
LONGEST_TIMEOUT = 1e9  # about what the operating system's calls take


class Sent(NamedTuple):
    """One line of a transcript."""

    sender: str
    receiver: str
    frame: bytes


class Network(ABC):
    """A leading party, answering parties, and a ledger; a context manager."""

    leader: str
    parties: tuple[str, ...]  # the answering parties
    ledger: Ledger
    transcript: list[Sent]  # filled with `record=True`

    @abstractmethod
    def run(self) -> Any:
        """Let the leading party lead its conversation; returns the conversation's result."""

    @abstractmethod
    def collect(self, party: str) -> Message:
        """The state that a party exports (Seated.export_state). No traffic: for simulation and for saving."""

    @abstractmethod
    def close(self) -> None:
        """End everything. Idempotent."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def make_network(
    kind: str,
    seats: Sequence[Seat],
    *,
    ledger: Ledger | None = None,
    timeout: float | None = DEFAULT_TIMEOUT,
    on_progress: ProgressHook | None = None,
    record: bool = False,
) -> Network:
    """The network of the given kind, with a party on every seat; exactly one of them leads.

    Parameters
    ----------
    kind : "inprocess" or "process"
    seats : see party.make_seat
    ledger : where traffic and costs are added; a new one by default (`network.ledger`)
    timeout : seconds that a peer may be silent ("process" only); None waits forever
    on_progress : called with (text, done, total) when the leader reports
    record : keep every frame in `network.transcript`
    """
    from .channel import InProcessNetwork
    from .process import ProcessNetwork

    check_timeout(timeout)
    if kind == "inprocess":
        return InProcessNetwork.from_seats(seats, ledger=ledger, on_progress=on_progress, record=record)
    if kind == "process":
        return ProcessNetwork(seats, ledger=ledger, timeout=timeout, on_progress=on_progress, record=record)
    raise ValueError(f"network must be 'inprocess' or 'process', got {kind!r}")


def check_timeout(timeout: float | None) -> None:
    """TypeError or ValueError unless it is a positive number of seconds, or None."""
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, int | float | np.integer | np.floating):
        raise TypeError(f"timeout must be a number of seconds or None, got {timeout!r}")
    if not 0 < timeout < LONGEST_TIMEOUT:
        raise ValueError(f"timeout must be a positive number of seconds or None, got {timeout!r}")


def split_seats(seats: Sequence[Seat]) -> tuple[Seat, list[Seat]]:
    """The leader's seat and the others', names checked."""
    names = [seat.party for seat in seats]
    if len(set(names)) != len(names) or "" in names:
        raise ValueError(f"parties need distinct names, got {names}")
    leading = [seat for seat in seats if issubclass(seat_class(seat), Leader)]
    if len(leading) != 1:
        raise ValueError(
            f"exactly one party leads, got {len(leading)} of {len(seats)}: {[s.party for s in leading]}"
        )
    return leading[0], [seat for seat in seats if issubclass(seat_class(seat), Party)]


def lead(conversation: Conversation, exchange: Callable[[Round], Round]) -> Any:
    """Run a conversation to its end. What fails in a round is thrown into it: it may add what it knows."""
    answers: Round | None = None
    failure: Exception | None = None
    try:
        while True:
            try:
                messages = conversation.send(answers) if failure is None else conversation.throw(failure)  # type: ignore[arg-type]
            except StopIteration as end:
                return end.value
            answers, failure = None, None
            try:
                answers = exchange(messages)
            except Exception as error:
                failure = error
    finally:
        conversation.close()


class Exchange:
    """One round after another: encode, count, deliver, count, decode.

    `deliver` carries frames (party -> frame) to the parties and brings theirs back; it is all that differs
    between networks. The ledger sees every frame as it was sent.
    """

    def __init__(
        self,
        leader: str,
        parties: Sequence[str],
        deliver: Callable[[Mapping[str, bytes]], dict[str, bytes]],
        ledger: Ledger,
        keep: Callable[[Sent], None] | None = None,
    ) -> None:
        self._leader = leader
        self._parties = parties
        self._deliver = deliver
        self._ledger = ledger
        self._keep = keep
        self.causes: dict[str, Exception] = {}  # the errors behind reports, where they are at hand

    def __call__(self, messages: Round) -> Round:
        frames = self._encode(messages)
        if not frames:
            return {}
        self._ledger.open_round()
        for party, frame in frames.items():
            self._count(self._leader, party, kind_name(type(messages[party])), frame)
        replies = self._deliver(frames)
        # All answers have arrived before the first error is raised, so every network counts the same.
        answers = {party: self._open(party, messages[party], replies[party]) for party in frames}
        for party, answer in answers.items():
            if isinstance(answer, Exception):
                raise answer from self.causes.pop(party, None)
        return answers  # type: ignore[return-value]

    def _encode(self, messages: Round) -> dict[str, bytes]:
        """Frames by party; a message for several parties is encoded once."""
        if not isinstance(messages, dict):
            raise LocalProtocolError(
                f"a conversation yields dict[party, message], got {type(messages).__name__}"
            )
        unknown = [name for name in messages if name not in self._parties]
        if unknown:
            raise LocalProtocolError(f"no party is called {unknown[0]!r}, there are {list(self._parties)}")
        encoded = {
            id(message): codec.encode(message) for message in {id(m): m for m in messages.values()}.values()
        }
        return {party: encoded[id(message)] for party, message in messages.items()}

    def _open(self, party: str, message: Message, frame: bytes) -> Message | Exception:
        """The answer in a frame, or the error that it reports or that it is."""
        try:
            answer = codec.decode(frame, (*answers_to(type(message)), ErrorReport))
        except RemoteProtocolError as error:
            return error.by(party)
        self._count(party, self._leader, kind_name(type(answer)), frame)
        return answer.rebuild(party) if isinstance(answer, ErrorReport) else answer

    def _count(self, sender: str, receiver: str, kind: str, frame: bytes) -> None:
        self._ledger.record(sender, receiver, kind, len(frame))
        if self._keep is not None:
            self._keep(Sent(sender, receiver, frame))
