"""Every party in an operating-system process of its own, the leading one too. No pickle, no multiprocessing.

::

             ┌─ control ─ bank (leads) ─┬─ data ─┐
    launcher ┼─ control ─ shop ─────────┘        │
             └─ control ─ phone ─────────────────┘

A control socket brings a process its seat and takes results and errors out; a data socket joins the leader to
one answering party. The process that opens the network only launches and listens: it sees no frame between
parties (unless `record=True`). A party's process is sent its own seat and nothing of another's. It runs fresh
from the interpreter's command line, so scripts need no ``if __name__ == "__main__"`` and notebooks, threads
and forked children may all open networks.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import IO, Self

from . import codec
from .control import Collect, Converse, Kept, Launch, Ping, Pong, Progress, Ready, TakeLedger
from .errors import LocalProtocolError, PeerGoneError, PeerTimeoutError, RemoteProtocolError
from .ledger import Ledger, LedgerReport
from .messages import ErrorReport, Message, Seat
from .network import DEFAULT_TIMEOUT, Network, Sent, check_timeout, split_seats
from .party import Leader, ProgressHook, Seated, seat_class
from .wire import Wire

START_SECONDS = 300.0  # for importing and building a party; a small `timeout` is about conversations
_LEAVE_SECONDS = 2.0  # for a process to end by itself once its control socket is closed
_GRACE_SECONDS = 2.0  # for the leader to say where it was when another party died
_LAST_WORDS_BYTES = 2000

Kinds = tuple[type[Message], ...]


class _Child:
    """One party's process, the launcher's end of its control socket, and what it wrote to its log."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        self.cls: type[Seated] = seat_class(seat)
        self.process: subprocess.Popen[bytes]
        self.wire: Wire
        self._log: IO[bytes]

    def start(self, inherited: Sequence[socket.socket], environment: dict[str, str]) -> None:
        """Spawn the process; it inherits the sockets given and no other."""
        if not sys.executable:
            raise LocalProtocolError("sys.executable is empty: this interpreter cannot start processes")
        ours, theirs = socket.socketpair()
        with ExitStack() as undo, theirs:
            self.wire = Wire(ours, self.seat.party, START_SECONDS)
            undo.callback(self.wire.close)
            self._log = undo.enter_context(tempfile.TemporaryFile())
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "vflparty.partymain", str(theirs.fileno())],
                pass_fds=[theirs.fileno(), *(end.fileno() for end in inherited)],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                env=environment,
                start_new_session=True,  # a Ctrl-C is the launcher's to handle
            )
            undo.pop_all()  # end() closes them

    def last_words(self) -> str:
        """The end of what the process wrote; pread leaves the offset alone, which the process shares."""
        size = os.fstat(self._log.fileno()).st_size
        tail = os.pread(self._log.fileno(), _LAST_WORDS_BYTES, max(0, size - _LAST_WORDS_BYTES))
        return tail.decode("utf-8", "replace").strip()

    def fate(self) -> str:
        """How the process ended, with its last words."""
        try:
            code = self.process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return "its process has closed the connection"
        ending = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
        words = self.last_words()
        return f"its process ended with {ending}" + (f", its last words:\n{words}" if words else "")

    def end(self, deadline: float) -> None:
        """Reap the process, by force if it is still there at the deadline."""
        try:
            self.process.wait(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass
        finally:
            self.kill()

    def kill(self) -> None:
        self.process.kill()  # does nothing to a process that has been waited for
        self.process.wait()
        self._log.close()


class ProcessNetwork(Network):
    """Parties on seats, each in its own process, while the `with` block lasts.

    Parameters
    ----------
    seats : exactly one names a Leader
    ledger : where traffic and costs are added; a new one by default
    timeout : seconds that a party may be silent: an answering party towards the leader that waits for it, any
        party towards a ping of the launcher. A party that has died is noticed at once. None waits forever.
    on_progress : called with (text, done, total) when the leader reports
    record : keep every frame in `transcript`; the frames then pass through this process
    """

    def __init__(
        self,
        seats: Sequence[Seat],
        ledger: Ledger | None = None,
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
        on_progress: ProgressHook | None = None,
        record: bool = False,
    ) -> None:
        leading, answering = split_seats(seats)
        check_timeout(timeout)
        self.leader = leading.party
        self.parties = tuple(seat.party for seat in answering)
        self.ledger = Ledger() if ledger is None else ledger
        self.transcript: list[Sent] = []
        self._seats = [leading, *answering]
        self._timeout = timeout
        self._on_progress = on_progress
        self._record = record
        self._children: dict[str, _Child] = {}
        self._gone: dict[str, float] = {}  # party -> when its control socket ended

    # ------------------------------------------------------------ opening and closing

    def __enter__(self) -> Self:
        if self._children:
            raise LocalProtocolError("this network is open already")
        _OPEN.add(self)
        try:
            self._spawn()
            starting: dict[str, Kinds] = {party: (Ready,) for party in self._children}
            while starting:
                del starting[self._next(starting, START_SECONDS)[0]]
        except BaseException:
            self.close()
            raise
        return self

    def _spawn(self) -> None:
        """Start all processes, then hand each its seat."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(_search_path())}
        with ExitStack() as stack:
            # One pair of data sockets per answering party. Our copies are closed when this block ends, so
            # that the death of either process is an end of file for the other.
            pairs = {party: socket.socketpair() for party in self.parties}
            for pair in pairs.values():
                for end in pair:
                    stack.enter_context(end)
            ends = {party: {self.leader: theirs} for party, (_, theirs) in pairs.items()}
            ends[self.leader] = {party: ours for party, (ours, _) in pairs.items()}
            for seat in self._seats:
                child = _Child(seat)
                child.start(list(ends[seat.party].values()), environment)
                self._children[seat.party] = child
            for party, child in self._children.items():
                peers = {peer: end.fileno() for peer, end in ends[party].items()}
                self._tell(party, self._launch(peers))
                self._tell(party, child.seat)

    def _launch(self, peers: dict[str, int]) -> Launch:
        return Launch(
            sys_path=tuple(_search_path()),
            leader=self.leader,
            peers=tuple(peers),
            descriptors=tuple(peers.values()),
            timeout=self._timeout,
            record=self._record,
        )

    def close(self) -> None:
        """End all processes and reap them. They end by themselves when this process dies."""
        children, self._children = list(self._children.values()), {}
        _OPEN.discard(self)
        try:
            for child in children:
                child.wire.close()
            deadline = time.monotonic() + _LEAVE_SECONDS
            for child in children:
                child.end(deadline)
        except BaseException:  # a second Ctrl-C: no more patience, but no zombies either
            for child in children:
                child.kill()
            raise

    def _abandon(self) -> None:
        """In a forked child, whose copy this is: the processes are the parent's, and must see the parent's end."""
        for child in self._children.values():
            child.wire.abandon()
        self._children = {}

    # ------------------------------------------------------------ conversations

    def run(self) -> Message:
        """Let the leader lead its conversation; returns its result_message. May be called again."""
        leader = self._child(self.leader)
        assert issubclass(leader.cls, Leader)
        kinds = (Progress, Kept, LedgerReport, leader.cls.result_message)
        self._tell(self.leader, Converse())
        while True:
            message = self._expect(self.leader, kinds)
            if isinstance(message, Progress):
                if self._on_progress is not None:
                    self._on_progress(message.text, message.done, message.total)
            elif isinstance(message, Kept):
                self.transcript.append(Sent(message.sender, message.receiver, message.frame))
            elif isinstance(message, LedgerReport):
                self.ledger.merge(message)
            else:
                break
        for party in self.parties:
            self._tell(party, TakeLedger())
            report = self._expect(party, (LedgerReport,))
            assert isinstance(report, LedgerReport)
            self.ledger.merge(report)
        return message

    def collect(self, party: str) -> Message:
        child = self._child(party)
        if child.cls.state_message is None:
            raise LocalProtocolError(f"{child.cls.__name__} has no state to export")
        self._tell(party, Collect())
        return self._expect(party, (child.cls.state_message,))

    def process_id(self, party: str) -> int:
        """The operating system's number of a party's process."""
        return self._child(party).process.pid

    # ------------------------------------------------------------ control sockets

    def _child(self, party: str) -> _Child:
        if not self._children:
            raise LocalProtocolError("the network is not open: use it in a `with` block")
        if party not in self._children:
            raise LocalProtocolError(
                f"no party is called {party!r}, there are {[self.leader, *self.parties]}"
            )
        return self._children[party]

    def _tell(self, party: str, message: Message) -> None:
        child = self._child(party)
        try:
            child.wire.write(codec.encode(message))
        except PeerGoneError as error:
            raise PeerGoneError(child.fate(), party) from error

    def _expect(self, party: str, kinds: Kinds) -> Message:
        return self._next({party: kinds})[1]

    def _next(self, kinds: Mapping[str, Kinds], seconds: float | None = None) -> tuple[str, Message]:
        """The next message of a party in `kinds`; hears the others' deaths and answers to pings meanwhile.

        `seconds` replaces the pings by one fixed time (while a process starts it cannot answer them).
        """
        limit = self._timeout if seconds is None else seconds
        heard = dict.fromkeys(self._children, time.monotonic())
        while True:
            for ready in self._select(None if limit is None else limit / 4):
                heard[ready] = time.monotonic()
                message = self._read(ready, kinds.get(ready, ()))
                if isinstance(message, ErrorReport):
                    raise self._complete(message.rebuild(ready))
                if message is not None and not isinstance(message, Pong):
                    return ready, message
            self._check(kinds, heard, limit)
            if seconds is None and limit is not None:
                self._ping(heard, limit / 4)

    def _select(self, seconds: float | None) -> list[str]:
        """Parties whose control socket has something to read."""
        if self._gone:
            seconds = min(_GRACE_SECONDS, seconds or _GRACE_SECONDS)
        with selectors.DefaultSelector() as selector:
            for party, child in self._children.items():
                if party not in self._gone:
                    selector.register(child.wire, selectors.EVENT_READ, party)
            return [key.data for key, _ in selector.select(seconds)] if selector.get_map() else []

    def _read(self, party: str, kinds: Kinds) -> Message | None:
        """One message of a party, or None when it is gone."""
        try:
            return codec.decode(self._children[party].wire.read(), (*kinds, Pong, ErrorReport))
        except PeerGoneError:
            self._gone[party] = time.monotonic()
            return None
        except RemoteProtocolError as error:
            raise error.by(party) from error

    def _check(self, awaited: Mapping[str, Kinds], heard: dict[str, float], limit: float | None) -> None:
        """Raise for a party that is gone or silent."""
        now = time.monotonic()
        for gone, since in self._gone.items():
            # An awaited leader will notice the same death and knows which step it was in.
            if gone in awaited or self.leader not in awaited or now - since >= _GRACE_SECONDS:
                raise PeerGoneError(self._children[gone].fate(), gone)
        for silent, last in heard.items():
            if limit is not None and now - last > limit and silent not in self._gone:
                raise PeerTimeoutError(f"its process says nothing for {limit:g} seconds", silent)

    def _ping(self, heard: dict[str, float], seconds: float) -> None:
        for party, last in heard.items():
            if party not in self._gone and time.monotonic() - last >= seconds:
                with suppress(PeerGoneError):  # the next select reads its end of file
                    self._children[party].wire.write(codec.encode(Ping()))

    def _complete(self, error: Exception) -> Exception:
        """Add what the launcher knows about the party that an error names."""
        child = self._children.get(getattr(error, "party", None) or "")
        if child is None:
            return error
        if isinstance(error, PeerGoneError):
            return PeerGoneError(f"{error.text}; {child.fate()}", child.seat.party)
        words = child.last_words()
        if words:
            error.add_note(f"party {child.seat.party!r} wrote:\n{words}")
        return error


def _search_path() -> list[str]:
    """sys.path for a process: where this one finds its modules, with the current folder by its name."""
    return [os.path.abspath(entry) for entry in sys.path]


# Open networks of this process. A fork copies their sockets; the copy would hide the launcher's end from the
# parties.
_OPEN: weakref.WeakSet[ProcessNetwork] = weakref.WeakSet()


def _abandon_after_fork() -> None:
    for network in list(_OPEN):
        network._abandon()
    _OPEN.clear()


os.register_at_fork(after_in_child=_abandon_after_fork)
