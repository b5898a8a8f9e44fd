"""Protocols and compressors by name, with their options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..naming import nearest
from .celu import CELU
from .fedbcd import FedBCDParallel, FedBCDSequential
from .fedsgd import FedSGD
from .quantize import Quantize
from .roles import Compressor, TrainingProtocol
from .topk import TopK
from .uncompressed import Uncompressed


@dataclass(frozen=True)
class ProtocolEntry:
    """What a name stands for.

    Attributes
    ----------
    name, description : str
    protocol : name of the schedule in SCHEDULES
    compressor : name of the compressor in COMPRESSORS; "" for none
    """

    name: str
    description: str
    protocol: str
    compressor: str = ""

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments with their defaults."""
        maker: Callable[..., Any] = (
            COMPRESSORS[self.compressor] if self.compressor else SCHEDULES[self.protocol]
        )
        parameters = inspect.signature(maker).parameters.values()
        return {p.name: p.default for p in parameters if p.name not in ("seed", "party")}


SCHEDULES: dict[str, Callable[..., TrainingProtocol]] = {
    "fedsgd": FedSGD,
    "fedbcd-p": FedBCDParallel,
    "fedbcd-s": FedBCDSequential,
    "celu": CELU,
}
COMPRESSORS: dict[str, Callable[..., Compressor]] = {
    "": Uncompressed,
    "quantize": Quantize,
    "topk": TopK,
}
PROTOCOLS: dict[str, ProtocolEntry] = {
    entry.name: entry
    for entry in (
        ProtocolEntry("fedsgd", "one exchange and one step of every party a batch", "fedsgd"),
        ProtocolEntry(
            "fedbcd-p", "one exchange a batch, then local steps of all parties at once", "fedbcd-p"
        ),
        ProtocolEntry("fedbcd-s", "one exchange a batch, local steps of the active party first", "fedbcd-s"),
        ProtocolEntry("celu", "one exchange a batch, then local updates on batches exchanged before", "celu"),
        ProtocolEntry("quantize", "FedSGD, outputs with a few bits an entry", "fedsgd", "quantize"),
        ProtocolEntry("topk", "FedSGD, the largest entries of outputs", "fedsgd", "topk"),
    )
}


def protocol_entry(name: str) -> ProtocolEntry:
    """The protocol of this name, in any case; ValueError names the nearest."""
    entry = PROTOCOLS.get(name.lower())
    if entry is None:
        raise ValueError(f"protocol {name!r} is unknown{nearest(name, PROTOCOLS)}")
    return entry


def make_protocol(name: str, options: Mapping[str, Any], *, seed: int) -> TrainingProtocol:
    """A schedule for one party. `seed` is shared by all parties."""
    maker = _known(SCHEDULES, name, "protocol")
    return _make(maker, f"protocol {name!r}", options, seed=seed)


def make_compressor(name: str, options: Mapping[str, Any], *, seed: int, party: str) -> Compressor:
    """One end of the link to a passive party."""
    maker = _known(COMPRESSORS, name, "compressor")
    return _make(maker, f"compressor {name!r}", options, seed=seed, party=party)


def _known(makers: Mapping[str, Callable[..., Any]], name: str, what: str) -> Callable[..., Any]:
    if name not in makers:
        raise ValueError(f"{what} {name!r} is unknown{nearest(name, filter(None, makers))}")
    return makers[name]


def _make(maker: Callable[..., Any], what: str, options: Mapping[str, Any], **context: Any) -> Any:
    known = inspect.signature(maker).parameters
    unknown = sorted(set(options) - (set(known) - set(context)))
    if unknown:
        own = [name for name in known if name not in context]
        raise ValueError(f"{what} has no option {unknown[0]!r}{nearest(unknown[0], own)}")
    return maker(**options, **{name: value for name, value in context.items() if name in known})
