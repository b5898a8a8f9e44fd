"""All parties in one process; what crosses is bytes even so: encoded, counted and decoded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeVar

from . import codec
from .errors import LocalProtocolError
from .ledger import Ledger
from .messages import Done, Message, Seat
from .network import Exchange, Network, Sent, lead, split_seats
from .party import Conversation, Leader, Party, ProgressHook, Seated, answer_frame, blaming, take_seat

# (sender, receiver, frame) -> the frame that arrives: lets a test damage what is on its way.
Tamper = Callable[[str, str, bytes], bytes]

Role = TypeVar("Role", Party, Leader)


class InProcessNetwork(Network):
    """Parties that live in this process.

    Parameters
    ----------
    parties : the answering parties by name, ready made; from_seats builds them out of seats instead
    ledger : where traffic and costs are added; a new one by default
    leader : name of the leading party
    record : keep every frame, in the order sent, in `transcript`
    tamper : see Tamper
    on_progress : called with (text, done, total) when a Leader reports
    """

    def __init__(
        self,
        parties: Mapping[str, Party],
        ledger: Ledger | None = None,
        leader: str = "active",
        *,
        record: bool = False,
        tamper: Tamper | None = None,
        on_progress: ProgressHook | None = None,
    ) -> None:
        if leader in parties:
            raise ValueError(f"party {leader!r} leads and cannot answer as well")
        self.leader = leader
        self.parties = tuple(parties)
        self.ledger = Ledger() if ledger is None else ledger
        self.transcript: list[Sent] = []
        self._answering = dict(parties)
        self._leading: Leader | None = None
        self._tamper = tamper
        self._on_progress = on_progress
        self._exchange = Exchange(
            leader, self.parties, self._deliver, self.ledger, self.transcript.append if record else None
        )

    @classmethod
    def from_seats(cls, seats: Sequence[Seat], **options: Any) -> Self:
        """Build the parties out of their seats, exactly as a process of their own would."""
        leading, answering = split_seats(seats)
        parties = {seat.party: _built(seat, Party) for seat in answering}
        network = cls(parties, leader=leading.party, **options)
        network._leading = _built(leading, Leader)
        return network

    def run(self, conversation: Conversation | Leader | None = None) -> Any:
        """Lead a conversation: a generator, a Leader, or (None) the leader on its seat; returns its result.

        The result of a Leader crosses the codec too, as it does between processes.
        """
        party: Conversation | Leader | None = self._leading if conversation is None else conversation
        if party is None:
            raise LocalProtocolError(
                "nobody leads: give run() a conversation, or build the network from seats"
            )
        try:
            if not isinstance(party, Leader):
                return lead(party, self._exchange)
            party.on_progress = self._on_progress
            with blaming(self.leader):
                return check_result(party, lead(party.conversation(), self._exchange))
        finally:
            for seated in (*self._answering.values(), party):
                if isinstance(seated, Seated):
                    self.ledger.merge(seated.ledger.take())

    def collect(self, party: str) -> Message:
        seated: Seated | None = self._leading if party == self.leader else self._answering.get(party)
        if seated is None:
            raise LocalProtocolError(
                f"no party is called {party!r}, there are {[self.leader, *self.parties]}"
            )
        with blaming(party):
            return check_state(seated, seated.export_state())

    def close(self) -> None:
        """Nothing to end."""

    def _deliver(self, frames: Mapping[str, bytes]) -> dict[str, bytes]:
        return {party: self._ask(party, frame) for party, frame in frames.items()}

    def _ask(self, party: str, frame: bytes) -> bytes:
        if self._tamper is not None:
            frame = self._tamper(self.leader, party, frame)
        reply, error = answer_frame(self._answering[party], party, self.leader, frame)
        if error is not None:
            self._exchange.causes[party] = error
        return reply if self._tamper is None else self._tamper(party, self.leader, reply)


def check_result(leader: Leader, result: Message | None) -> Message:
    """The result after a trip through the codec; it must be the leader's result_message."""
    return _through_codec(leader, result, leader.result_message, "returned")


def check_state(party: Seated, state: Message) -> Message:
    """The state after a trip through the codec; it must be the party's state_message."""
    return _through_codec(party, state, party.state_message, "exported")


def _through_codec(
    party: Seated, message: Message | None, wanted: type[Message] | None, verb: str
) -> Message:
    message = Done() if message is None else message
    if type(message) is not wanted:
        name = wanted.__name__ if wanted else "nothing"
        raise LocalProtocolError(f"{type(party).__name__} {verb} {type(message).__name__}, promised {name}")
    return codec.decode(codec.encode(message), (wanted,))


def _built(seat: Seat, kind: type[Role]) -> Role:
    """The party of a seat, whose class split_seats has looked at."""
    with blaming(seat.party):
        party = take_seat(seat)
    assert isinstance(party, kind)
    return party
