"""Frames over a stream socket: what is read is bounded by what has come, never by what a header promises."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Lock

from . import codec
from .errors import PeerGoneError, PeerTimeoutError

_STEP_BYTES = 1 << 20  # the most that is set aside before the bytes of it have come


class Wire:
    """One end of a connection to `peer`.

    Parameters
    ----------
    end : a connected stream socket; this object closes it
    peer : name for errors
    timeout : seconds without a single byte that are too long; None waits forever
    """

    def __init__(self, end: socket.socket, peer: str, timeout: float | None = None) -> None:
        self.peer = peer
        self._end = end
        self._writing = Lock()  # several threads may answer on one wire
        end.settimeout(timeout)

    def fileno(self) -> int:
        return self._end.fileno()

    def write(self, frame: bytes) -> None:
        """Send one whole frame; PeerGoneError or PeerTimeoutError names the peer."""
        rest = memoryview(frame)
        with self._writing:
            while rest:
                try:
                    # In steps, so that the timeout is about silence and not about the size of the frame.
                    rest = rest[self._end.send(rest[:_STEP_BYTES]) :]
                except OSError as error:
                    raise self._failure(error, "takes nothing") from error

    def read(self) -> bytes:
        """Receive one whole frame, not yet checked beyond its lengths."""
        header = self._exactly(codec.HEADER_BYTES)
        try:
            total = codec.frame_bytes(header)
        except codec.DamagedFrameError as error:
            raise error.by(self.peer) from error
        return self._exactly(total - len(header), header)

    def close(self) -> None:
        """End the connection at both ends, also where a forked process still holds a copy of this one."""
        with suppress(OSError):  # the peer may have been faster
            self._end.shutdown(socket.SHUT_RDWR)
        self._end.close()

    def abandon(self) -> None:
        """Close this copy only (after a fork: the connection belongs to the parent)."""
        self._end.close()

    def _exactly(self, n_bytes: int, head: bytes = b"") -> bytes:
        """`head` and the next n_bytes; set aside in steps, each only when the one before has come."""
        chunks: list[bytes | memoryview] = [head]
        while n_bytes:
            chunk = memoryview(bytearray(min(n_bytes, _STEP_BYTES)))
            self._fill(chunk)
            chunks.append(chunk)
            n_bytes -= len(chunk)
        return b"".join(chunks)

    def _fill(self, chunk: memoryview) -> None:
        while chunk:
            try:
                got = self._end.recv_into(chunk)
            except OSError as error:
                raise self._failure(error, "says nothing") from error
            if got == 0:
                raise PeerGoneError("has closed the connection", self.peer)
            chunk = chunk[got:]

    def _failure(self, error: OSError, silence: str) -> Exception:
        if isinstance(error, TimeoutError):
            return PeerTimeoutError(f"{silence} for {self._end.gettimeout():g} seconds", self.peer)
        return PeerGoneError(
            f"has closed the connection ({error.strerror or type(error).__name__})", self.peer
        )
