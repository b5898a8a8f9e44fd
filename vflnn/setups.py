"""What setup messages carry as frames, read again at the seat of the party that starts from them."""

from __future__ import annotations

from typing import TypeVar

from vflparty import Message, codec

from .samples import Samples

Kind = TypeVar("Kind", bound=Message)


def read_frame(frame: bytes, kind: type[Kind]) -> Kind:
    """The message of this kind; whatever else it is, the codec refuses."""
    message = codec.decode(frame, (kind,))
    assert isinstance(message, kind)
    return message


def read_optional(frame: bytes | None, kind: type[Kind]) -> Kind | None:
    """The same, where there is one."""
    return None if frame is None else read_frame(frame, kind)


def read_samples(frame: bytes | None, device: str) -> Samples | None:
    """Samples on this device, where there are any."""
    return None if frame is None else Samples.from_frame(frame, device)
