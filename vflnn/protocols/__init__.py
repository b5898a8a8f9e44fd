"""Protocols: who steps how often on one exchange, and how outputs are compressed. One algorithm per file."""

from .celu import CELU
from .fedbcd import FedBCDParallel, FedBCDSequential
from .fedsgd import FedSGD
from .quantize import Quantize
from .registry import COMPRESSORS, PROTOCOLS, ProtocolEntry, make_compressor, make_protocol, protocol_entry
from .roles import Compressor, Leading, TrainingProtocol
from .topk import TopK

__all__ = [
    "CELU",
    "COMPRESSORS",
    "PROTOCOLS",
    "Compressor",
    "FedBCDParallel",
    "FedBCDSequential",
    "FedSGD",
    "Leading",
    "ProtocolEntry",
    "Quantize",
    "TopK",
    "TrainingProtocol",
    "make_compressor",
    "make_protocol",
    "protocol_entry",
]
