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
    DamagedFileError,
    DamagedFrameError,
    FileVersionError,
    LocalProtocolError,
    ModelFileError,
    OtherVersionWarning,
    PartyFailedError,
    PeerGoneError,
    PeerTimeoutError,
    ProtocolError,
    RemoteProtocolError,
    RowsDisagreeError,
    WrongFileError,
    may_cross,
)
from .ledger import Ledger, LedgerReport
from .messages import Done, ErrorReport, Message, Seat
from .modelfile import ModelFile, file_names, new_training_id
from .network import Network, make_network
from .party import Conversation, Leader, Party, Round, make_seat, to_all
from .process import ProcessNetwork

__all__ = [
    "Alignment",
    "Conversation",
    "DamagedFileError",
    "DamagedFrameError",
    "Done",
    "ErrorReport",
    "FileVersionError",
    "InProcessNetwork",
    "Leader",
    "Ledger",
    "LedgerReport",
    "LocalProtocolError",
    "Message",
    "ModelFile",
    "ModelFileError",
    "Network",
    "OtherVersionWarning",
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
    "WrongFileError",
    "align",
    "check_rows",
    "codec",
    "compare_rows",
    "file_names",
    "make_network",
    "make_seat",
    "may_cross",
    "new_training_id",
    "row_digest",
    "set_digest",
    "to_all",
]
