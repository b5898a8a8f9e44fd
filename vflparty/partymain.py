"""The process of one party: ``python -m vflparty.partymain CONTROL_DESCRIPTOR``, started by ProcessNetwork.

It learns everything from its control socket: where code is found, which inherited sockets lead to its peers,
and its seat with its own data. Two threads: the main thread answers (or leads); the other listens to the
launcher, and when the launcher is gone it ends the process at once, whatever the main thread is doing. So no
process is left behind.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Mapping
from queue import SimpleQueue
from threading import Event, Lock, Thread

from . import codec
from .channel import check_result, check_state
from .control import Collect, Converse, Kept, Launch, Ping, Pong, Progress, Ready, TakeLedger
from .errors import PeerGoneError, PeerTimeoutError, RemoteProtocolError
from .ledger import Ledger
from .messages import ErrorReport, Message, Seat
from .network import Exchange, Sent, lead
from .party import Leader, Party, Seated, answer_frame, take_seat
from .wire import Wire


class PartyProcess:
    """What one process does between its first frame and the end of its control socket."""

    def __init__(self, control: Wire) -> None:
        self._control = control
        self._converse: SimpleQueue[Message] = SimpleQueue()
        self._seated = Event()
        self._busy = Lock()  # the party is asked by one thread at a time
        self._party: Seated

    def run(self) -> None:
        """Take the seat, then answer or lead until the launcher leaves."""
        launch = codec.decode(self._control.read(), (Launch,))
        assert isinstance(launch, Launch)
        sys.path[:] = launch.sys_path
        seat = codec.decode(self._control.read(), (Seat,))
        assert isinstance(seat, Seat)
        Thread(target=self._listen, name="launcher", daemon=True).start()
        try:
            self._party = take_seat(seat)
        except Exception as error:
            self._tell_error(error)
            return
        leads = isinstance(self._party, Leader)  # who answers waits for the leader as long as it takes
        wires = {
            peer: Wire(socket.socket(fileno=descriptor), peer, launch.timeout if leads else None)
            for peer, descriptor in zip(launch.peers, launch.descriptors, strict=True)
        }
        self._seated.set()
        self._tell(Ready())
        if isinstance(self._party, Leader):
            self._lead(self._party, seat.party, wires, launch)
        elif isinstance(self._party, Party):
            self._answer(self._party, seat.party, wires[launch.leader])

    # ------------------------------------------------------------ the main thread

    def _answer(self, party: Party, name: str, wire: Wire) -> None:
        """Answer the leader, frame by frame, until it closes its end."""
        try:
            while True:
                frame = wire.read()
                with self._busy:
                    reply, error = answer_frame(party, name, wire.peer, frame)
                if error is not None:
                    traceback.print_exception(error)  # stays here, in this party's own log
                wire.write(reply)
        except PeerGoneError:
            return

    def _lead(self, party: Leader, name: str, wires: Mapping[str, Wire], launch: Launch) -> None:
        """Lead one conversation for every Converse."""
        party.on_progress = lambda text, done, total: self._tell(Progress(text, done, total))
        rounds = Rounds(wires, launch.timeout)
        while True:
            self._converse.get()
            ledger, kept = Ledger(), list[Sent]()
            exchange = Exchange(
                name, launch.peers, rounds.deliver, ledger, kept.append if launch.record else None
            )
            outcome: Message
            try:
                with self._busy:
                    outcome = check_result(party, lead(party.conversation(), exchange))
            except Exception as error:
                outcome = self._report(error)
            ledger.merge(party.ledger.take())
            for sent in kept:
                self._tell(Kept(*sent))
            self._tell(ledger.to_message())
            self._tell(outcome)

    # ------------------------------------------------------------ the listening thread

    def _listen(self) -> None:
        """Hear the launcher. Its end of file is the end of this process."""
        try:
            while True:
                message = codec.decode(self._control.read(), (Ping, Converse, Collect, TakeLedger))
                if isinstance(message, Ping):
                    self._tell(Pong())
                elif isinstance(message, Converse):
                    self._converse.put(message)
                else:
                    self._tell(self._hand_over(message))
        except RemoteProtocolError:
            pass  # closed, or not speaking our language: either way nobody is there to work for
        finally:
            sys.stderr.flush()
            os._exit(0)  # not sys.exit: the main thread may be deep in a kernel

    def _hand_over(self, message: Message) -> Message:
        """The party's ledger or state; both only after it sits, and never while it works."""
        self._seated.wait()
        try:
            with self._busy:
                if isinstance(message, TakeLedger):
                    return self._party.ledger.take()
                return check_state(self._party, self._party.export_state())
        except Exception as error:
            return self._report(error)

    # ------------------------------------------------------------ telling

    def _tell(self, message: Message) -> None:
        self._control.write(codec.encode(message))

    def _tell_error(self, error: Exception) -> None:
        self._tell(self._report(error))

    @staticmethod
    def _report(error: Exception) -> ErrorReport:
        traceback.print_exception(error)
        return ErrorReport.of(error)


class Rounds:
    """The leader's sockets: one round of frames out, one round of frames in."""

    def __init__(self, wires: Mapping[str, Wire], timeout: float | None) -> None:
        self._wires = wires
        self._timeout = timeout
        self._broken: RemoteProtocolError | None = None

    def deliver(self, frames: Mapping[str, bytes]) -> dict[str, bytes]:
        """Send every frame, then take the answers as they come; a peer gone or silent ends the round."""
        if self._broken is not None:  # an answer of that round may still come, and be taken for another
            raise self._broken
        try:
            for party, frame in frames.items():
                self._wires[party].write(frame)
            replies = self._gather(frames)
        except RemoteProtocolError as error:
            self._broken = error
            raise
        return {party: replies[party] for party in frames}

    def _gather(self, parties: Mapping[str, bytes]) -> dict[str, bytes]:
        replies: dict[str, bytes] = {}
        with selectors.DefaultSelector() as selector:
            for wire in self._wires.values():  # all of them: a party that dies unasked is missed at once too
                selector.register(wire, selectors.EVENT_READ, wire)
            while len(replies) < len(parties):
                ready = selector.select(self._timeout)
                if not ready:
                    silent = next(party for party in parties if party not in replies)
                    raise PeerTimeoutError(f"has not answered for {self._timeout:g} seconds", silent)
                for key, _ in ready:
                    frame, party = key.data.read(), key.data.peer
                    if party not in parties or party in replies:
                        raise RemoteProtocolError("speaks without being asked", party)
                    replies[party] = frame
        return replies


def main(arguments: list[str]) -> None:
    """Entry point of the process."""
    # Ctrl-C in a terminal reaches every process of it; here the launcher decides, by closing the control
    # socket.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = Wire(socket.socket(fileno=int(arguments[0])), "launcher")
    process = PartyProcess(control)
    try:
        process.run()
        Event().wait()  # the listening thread ends the process
    except PeerGoneError:
        pass  # the launcher has left before the party sat


if __name__ == "__main__":
    main(sys.argv[1:])
