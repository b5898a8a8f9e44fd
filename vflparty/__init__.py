"""Parties, the channel they meet in, and the ledger of what crosses it.

Parties hold no reference to each other. The leading party is a generator that yields messages and is handed
the answers; an answering party is an inbox of `on_<message>` methods. What crosses is bytes, always: the
in-process network encodes and decodes like the one between processes, so the ledger's figures are true and
nobody shares an object by accident. See docs/parties.md.
"""

from . import codec
from .alignment import Alignment, RowsDigest, align, check_rows, compare_rows, row_digest, set_digest
from .channel import InProcessNetwork
from .errors import (
    DamagedFrameError,
    LocalProtocolError,
    PartyFailedError,
    PeerGoneError,
    PeerTimeoutError,
    ProtocolError,
    RemoteProtocolError,
    RowsDisagreeError,
    may_cross,
)
from .ledger import Ledger, LedgerReport
from .messages import Done, ErrorReport, Message, Seat
from .network import Network, make_network
from .party import Conversation, Leader, Party, Round, make_seat, to_all
from .process import ProcessNetwork

__all__ = [
    "Alignment",
    "Conversation",
    "DamagedFrameError",
    "Done",
    "ErrorReport",
    "InProcessNetwork",
    "Leader",
    "Ledger",
    "LedgerReport",
    "LocalProtocolError",
    "Message",
    "Network",
    "Party",
    "PartyFailedError",
    "PeerGoneError",
    "PeerTimeoutError",
    "ProcessNetwork",
    "ProtocolError",
    "RemoteProtocolError",
    "Round",
    "RowsDigest",
    "RowsDisagreeError",
    "Seat",
    "align",
    "check_rows",
    "codec",
    "compare_rows",
    "make_network",
    "make_seat",
    "may_cross",
    "row_digest",
    "set_digest",
    "to_all",
]
