"""The messages between a launcher and the process of one party."""

from __future__ import annotations

from dataclasses import dataclass

from .messages import Message


@dataclass(frozen=True)
class Launch(Message):
    """launcher -> process, first: how to find the code, and the sockets to its peers. A Seat follows."""

    sys_path: tuple[str, ...]
    leader: str
    peers: tuple[str, ...]  # of the leader: the answering parties; of an answering party: the leader
    descriptors: tuple[int, ...]  # inherited file descriptors of the sockets to `peers`
    timeout: float | None
    record: bool


@dataclass(frozen=True)
class Ready(Message):
    """process -> launcher: the party sits; an ErrorReport instead when it could not be built."""


@dataclass(frozen=True)
class Converse(Message):
    """launcher -> leader. Answers: any number of Progress and Kept, a LedgerReport, the result."""


@dataclass(frozen=True)
class Progress(Message):
    """leader -> launcher, whenever it likes during a conversation."""

    text: str
    done: int
    total: int | None


@dataclass(frozen=True)
class Kept(Message):
    """leader -> launcher after a recorded conversation: one line of the transcript."""

    sender: str
    receiver: str
    frame: bytes


@dataclass(frozen=True)
class Collect(Message):
    """launcher -> process: export your state."""


@dataclass(frozen=True)
class TakeLedger(Message):
    """launcher -> process: hand over your ledger (a LedgerReport) and start a new one."""


@dataclass(frozen=True)
class Ping(Message):
    """launcher -> process: are you there?"""


@dataclass(frozen=True)
class Pong(Message):
    """process -> launcher: yes. A party that computes answers too; one that has been stopped does not."""
