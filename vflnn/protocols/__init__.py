"""Protocols: who steps how often on one exchange, and how outputs are compressed. One algorithm per file."""

from .fedbcd import FedBCDParallel, FedBCDSequential
from .fedsgd import FedSGD
from .registry import COMPRESSORS, PROTOCOLS, ProtocolEntry, make_compressor, make_protocol, protocol_entry
from .roles import Compressor, Leading, TrainingProtocol

__all__ = [
    "COMPRESSORS",
    "PROTOCOLS",
    "Compressor",
    "FedBCDParallel",
    "FedBCDSequential",
    "FedSGD",
    "Leading",
    "ProtocolEntry",
    "TrainingProtocol",
    "make_compressor",
    "make_protocol",
    "protocol_entry",
]
