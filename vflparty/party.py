"""Parties: who answers is an inbox of `on_<message>` methods, who leads a generator; no input or output.

::

    class PassiveParty(Party):                          class ActiveParty(Leader):
        setup_message = PassiveSetup                        setup_message = ActiveSetup
        messages = (LevelToSplit, ...)                      result_message = TrainedModel

        def on_level_to_split(self, msg):                   def conversation(self):
            return EncryptedHistograms(...)                     answers = yield to_all(self.peers,
            LevelToSplit(...))
                                                                return TrainedModel(...)

A party that sits in a process of its own is built there by `from_setup` out of its setup message, which
therefore holds that party's data and nobody else's.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

from . import codec
from .errors import LocalProtocolError, RemoteProtocolError, name_to_cross, party_of
from .ledger import Ledger
from .messages import Done, ErrorReport, Message, Seat, handler_name, kind_name

# What a leading party yields (party name -> message), is handed back (the answer of each of them), and
# returns.
Round = dict[str, Message]
Conversation = Generator[Round, Round, Any]
ProgressHook = Callable[[str, int, int | None], None]


class Seated:
    """What both kinds of party have in common: made from a setup message, with a ledger of their own."""

    setup_message: ClassVar[type[Message] | None] = None  # what from_setup takes
    state_message: ClassVar[type[Message] | None] = None  # what export_state gives

    @classmethod
    def from_setup(cls, setup: Any) -> Self:
        """Build the party from its setup message; override where the constructor takes something else."""
        return cls(setup)  # type: ignore[call-arg]

    @property
    def ledger(self) -> Ledger:
        """Its own seconds and counts: ``with self.ledger.phase("bin sums"):``; the network adds them up."""
        ledger: Ledger = self.__dict__.setdefault("_ledger", Ledger())
        return ledger

    def export_state(self) -> Message:
        """What this party keeps after training (a passive party: its lookup table), as a `state_message`."""
        raise LocalProtocolError(f"{type(self).__name__} has no state to export")


class Party(Seated):
    """Who answers. `messages` is the closed list of kinds it receives, each with a method `on_<snake_case>`.

    A handler returns the answer, or None for `Done`. What it raises travels back as an ErrorReport.
    """

    messages: ClassVar[tuple[type[Message], ...]] = ()

    def receive(self, message: Message) -> Message:
        """Hand a message to its method. A kind without one is the sender's mistake."""
        cls = type(message)
        handler = getattr(self, handler_name(cls), None)
        if cls not in self.messages or handler is None:
            raise RemoteProtocolError(
                f"{type(self).__name__} has no {handler_name(cls)} for {kind_name(cls)}"
            )
        answer = handler(message)
        return Done() if answer is None else answer


class Leader(Seated):
    """Who leads: `conversation()` is a generator that yields rounds and returns a `result_message`."""

    result_message: ClassVar[type[Message]] = Done
    on_progress: ProgressHook | None = None  # set by the network

    def conversation(self) -> Conversation:
        """Yield dict[party, message] (one round), be handed dict[party, answer], return the result."""
        raise NotImplementedError

    def report(self, text: str, done: int = 0, total: int | None = None) -> None:
        """Tell whoever started the conversation how far it is; no round and no traffic between parties."""
        if self.on_progress is not None:
            self.on_progress(text, done, total)


def to_all(parties: Iterable[str], message: Message) -> Round:
    """The same message to every party: one round."""
    return dict.fromkeys(parties, message)


# ---------------------------------------------------------------- seats


def make_seat(party: str, cls: type[Seated], setup: Message) -> Seat:
    """The seat of a party of class `cls`, with its data. The class must be importable by name."""
    if cls.__module__ == "__main__" or "<locals>" in cls.__qualname__:
        raise ValueError(f"party {party!r}: {cls.__qualname__} must live in an importable module")
    _check_setup(party, cls, type(setup))
    return Seat(party, f"{cls.__module__}:{cls.__qualname__}", codec.encode(setup))


def seat_class(seat: Seat) -> type[Seated]:
    """The class that a seat names: a Party or a Leader, anything else is refused."""
    module, _, name = seat.factory.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise LocalProtocolError(f"party {seat.party!r}: cannot find {seat.factory} ({error})") from error
    if not (isinstance(found, type) and issubclass(found, Party | Leader)):
        raise LocalProtocolError(f"party {seat.party!r}: {seat.factory} is neither a Party nor a Leader")
    return found


def take_seat(seat: Seat) -> Seated:
    """Build the party that a seat describes, out of the seat's own bytes only."""
    cls = seat_class(seat)
    if cls.setup_message is None:
        raise LocalProtocolError(f"party {seat.party!r}: {seat.factory} says no setup_message")
    return cls.from_setup(codec.decode(seat.setup, (cls.setup_message,)))


def _check_setup(party: str, cls: type[Seated], setup: type[Message]) -> None:
    if cls.setup_message is not setup:
        wanted = cls.setup_message.__name__ if cls.setup_message else "no setup at all"
        raise LocalProtocolError(
            f"party {party!r}: {cls.__name__} is set up by {wanted}, got {setup.__name__}"
        )


# ---------------------------------------------------------------- errors, and the answering side of a round


@contextmanager
def blaming(party: str) -> Iterator[None]:
    """Raise what the block raises as it would come from that party's process: named, of the closed list."""
    try:
        yield
    except Exception as error:
        if party_of(error) and name_to_cross(error) == type(error).__name__:
            raise  # it is what would arrive
        raise ErrorReport.of(error).rebuild(party) from error


def answer_frame(party: Party, name: str, leader: str, frame: bytes) -> tuple[bytes, Exception | None]:
    """The frame that answers a frame, and the error behind it if it is an ErrorReport.

    A RemoteProtocolError here is about the peer, so it names `leader`; a damaged or forbidden frame is one of them.
    The exception itself never leaves the process.
    """
    try:
        try:
            return codec.encode(party.receive(codec.decode(frame, party.messages))), None
        except RemoteProtocolError as error:
            if error.party is not None:
                raise
            raise type(error)(f"{error.text} (says {name!r})", leader) from error
    except Exception as error:
        return codec.encode(ErrorReport.of(error)), error
