"""Protocols: who steps how often on one exchange, and how outputs are compressed. One algorithm per file."""

from .fedsgd import FedSGD
from .registry import COMPRESSORS, PROTOCOLS, ProtocolEntry, make_compressor, make_protocol, protocol_entry
from .roles import Compressor, Leading, TrainingProtocol

__all__ = [
    "COMPRESSORS",
    "PROTOCOLS",
    "Compressor",
    "FedSGD",
    "Leading",
    "ProtocolEntry",
    "TrainingProtocol",
    "make_compressor",
    "make_protocol",
    "protocol_entry",
]
