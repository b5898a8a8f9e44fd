"""Frames over a socket: whole or not at all, and never on credit."""

from __future__ import annotations

import os
import socket
import struct
import threading
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from vflparty import DamagedFrameError, Message, PeerGoneError, PeerTimeoutError, RemoteProtocolError, codec
from vflparty.partymain import Rounds
from vflparty.wire import Wire


@dataclass(frozen=True)
class Blob(Message):
    data: bytes


@pytest.fixture
def pair() -> Iterator[tuple[Wire, socket.socket]]:
    ours, theirs = socket.socketpair()
    wire = Wire(ours, "shop", timeout=5.0)
    yield wire, theirs
    wire.close()
    theirs.close()


@pytest.mark.parametrize("n_bytes", [0, 1, 1000, (1 << 20) - 1, 1 << 20, 5_000_000])
def test_frame_arrives_as_it_was_sent(pair, n_bytes):
    wire, theirs = pair
    frames = [codec.encode(Blob(bytes([i]) * n_bytes)) for i in range(2)]
    other = Wire(theirs, "bank", timeout=5.0)
    sender = threading.Thread(target=lambda: [other.write(frame) for frame in frames])
    sender.start()
    assert [wire.read() for _ in frames] == frames
    sender.join()


def test_frame_that_trickles_in_byte_by_byte_is_put_together(pair):
    wire, theirs = pair
    frame = codec.encode(Blob(b"abc"))

    def trickle() -> None:
        for position in range(len(frame)):
            theirs.sendall(frame[position : position + 1])

    sender = threading.Thread(target=trickle)
    sender.start()
    assert wire.read() == frame
    sender.join()


@pytest.mark.parametrize(
    "sent", [0, 10, 32, 36], ids=["nothing", "half a header", "a header", "half a frame"]
)
def test_connection_that_ends_is_the_peers_and_named(pair, sent):
    wire, theirs = pair
    theirs.sendall(codec.encode(Blob(b"abc"))[:sent])
    theirs.close()
    with pytest.raises(PeerGoneError, match="party 'shop'"):
        wire.read()


def test_writing_to_a_closed_connection_names_the_peer(pair):
    wire, theirs = pair
    theirs.close()
    with pytest.raises(PeerGoneError, match="party 'shop'"):
        wire.write(codec.encode(Blob(bytes(10_000_000))))


def test_silence_in_the_middle_of_a_frame_is_a_timeout():
    ours, theirs = socket.socketpair()
    wire = Wire(ours, "shop", timeout=0.05)
    with theirs:
        theirs.sendall(codec.encode(Blob(b"abc"))[:-1])
        with pytest.raises(PeerTimeoutError, match=r"party 'shop': says nothing for 0.05 seconds"):
            wire.read()
        with pytest.raises(PeerTimeoutError, match=r"party 'shop': takes nothing for 0.05 seconds"):
            wire.write(codec.encode(Blob(bytes(10_000_000))))
    wire.close()


def test_closing_ends_the_connection_also_where_a_copy_of_the_descriptor_lives_on(pair):
    wire, theirs = pair
    copy = os.dup(wire.fileno())
    wire.close()
    theirs.settimeout(5.0)
    assert theirs.recv(1) == b""
    os.close(copy)


@pytest.mark.parametrize(
    "header", [b"GET / HTTP/1.1\r\nHost: localhost\r\n", bytes(32), b"VFLP\x02" + bytes(40)]
)
def test_bytes_of_another_protocol_are_refused_after_the_header(pair, header):
    wire, theirs = pair
    theirs.sendall(header)
    with pytest.raises(DamagedFrameError, match="party 'shop'"):
        wire.read()


@pytest.mark.parametrize("claim", [codec.MAX_FRAME_BYTES - 100, 2**60])
def test_a_claimed_length_takes_no_memory_before_the_bytes_come(pair, claim):
    wire, theirs = pair
    theirs.sendall(struct.pack("<4sBBHQ", b"VFLP", 1, 4, 0, claim) + bytes(16) + b"Blob")
    theirs.close()
    tracemalloc.start()
    try:
        with pytest.raises((PeerGoneError, DamagedFrameError), match="party 'shop'"):
            wire.read()
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


# ---------------------------------------------------------------- the leader's side of a round


@pytest.fixture
def table() -> Iterator[tuple[Rounds, dict[str, Wire]]]:
    """A leader's sockets to two shops, and the shops' ends."""
    pairs = {name: socket.socketpair() for name in ("shop0", "shop1")}
    near = {name: Wire(ours, name, timeout=5.0) for name, (ours, _) in pairs.items()}
    far = {name: Wire(theirs, "bank", timeout=5.0) for name, (_, theirs) in pairs.items()}
    yield Rounds(near, timeout=0.5), far
    for wire in (*near.values(), *far.values()):
        wire.close()


def test_answers_are_in_the_order_asked_whatever_order_they_come_in(table):
    rounds, far = table
    for name in ("shop1", "shop0"):
        far[name].write(codec.encode(Blob(name.encode())))
    replies = rounds.deliver({name: codec.encode(Blob(b"?")) for name in ("shop0", "shop1")})
    assert list(replies) == ["shop0", "shop1"]
    assert [codec.decode(frame, (Blob,)).data for frame in replies.values()] == [b"shop0", b"shop1"]
    assert all(codec.decode(wire.read(), (Blob,)).data == b"?" for wire in far.values())


def test_party_that_speaks_without_being_asked_ends_the_round(table):
    rounds, far = table
    far["shop1"].write(codec.encode(Blob(b"psst")))
    with pytest.raises(RemoteProtocolError, match="party 'shop1': speaks without being asked"):
        rounds.deliver({"shop0": codec.encode(Blob(b"?"))})


def test_party_that_dies_unasked_is_missed_at_once(table):
    rounds, far = table
    far["shop1"].close()
    with pytest.raises(PeerGoneError, match="party 'shop1'"):
        rounds.deliver({"shop0": codec.encode(Blob(b"?"))})


def test_late_answer_of_a_broken_round_is_never_taken_for_a_later_one(table):
    rounds, far = table
    with pytest.raises(PeerTimeoutError, match=r"party 'shop0': has not answered for 0.5 seconds"):
        rounds.deliver({"shop0": codec.encode(Blob(b"first"))})
    far["shop0"].write(codec.encode(Blob(b"answer to the first")))
    with pytest.raises(PeerTimeoutError, match="party 'shop0'"):
        rounds.deliver({"shop0": codec.encode(Blob(b"second"))})
