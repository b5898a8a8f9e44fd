"""What can go wrong between parties: our own mistake is one thing, the peer's another.

::

    ProtocolError
    ├── LocalProtocolError       this side broke the protocol: unknown party or kind, a field's type
    └── RemoteProtocolError      the peer did; `.party` names it
        ├── DamagedFrameError    bytes that are no frame, or not the frame that was sent
        ├── PeerGoneError        the peer has ended or closed its connection
        ├── PeerTimeoutError     the peer is there and silent for too long
        ├── RowsDisagreeError    the peer's rows are not ours
        └── PartyFailedError     the peer's own code raised something that is nobody's protocol

Errors that a party raises while it answers travel as an `ErrorReport` and rise again where the conversation
is led: as the same class if it stands in the closed list below, otherwise as `PartyFailedError`. What such an
unexpected exception *says* stays in the party (its text may quote data); only its class name crosses.

Files on disk have a family of their own, since no peer is to blame::

    ModelFileError(ValueError)   `.path` is the file
    ├── DamagedFileError         no model file, cut short, or other bytes than were written
    ├── FileVersionError         sound, but of a format that this library does not read
    └── WrongFileError           sound, but of another kind of model, party or training
"""

from __future__ import annotations

from os import PathLike, fspath
from typing import Self


class ProtocolError(Exception):
    """Parties did not do what the protocol asks."""


class LocalProtocolError(ProtocolError):
    """This side's own mistake: nothing wrong has left it."""


class RemoteProtocolError(ProtocolError):
    """The peer's mistake.

    Parameters
    ----------
    text : what happened, without the party's name
    party : name of the party at fault; None while the place that raises does not know it
    """

    def __init__(self, text: str, party: str | None = None) -> None:
        super().__init__(text if party is None else f"party {party!r}: {text}")
        self.text = text
        self.party = party

    def by(self, party: str) -> Self:
        """The same error with the party named; an error that names somebody already stays as it is."""
        return self if self.party is not None else type(self)(self.text, party)

    def at(self, place: str) -> Self:
        """The same error with the place in the protocol: ``raise error.at("tree 3, level 2") from error``."""
        return type(self)(f"{place}: {self.text}", self.party)


class DamagedFrameError(RemoteProtocolError):
    """Bytes that are no frame of this protocol: too short, too long, another digest, impossible lengths."""


class PeerGoneError(RemoteProtocolError):
    """The connection ended before the answer came."""


class PeerTimeoutError(RemoteProtocolError):
    """Nothing came for longer than the agreed time."""


class RowsDisagreeError(RemoteProtocolError):
    """Two parties do not hold the same rows in the same order."""


class PartyFailedError(RemoteProtocolError):
    """A party's code raised an exception outside the closed list; only the class name of it is told."""


# The closed list of classes that rise again on the other side. Looked up by name, never imported by name.
_MAY_CROSS: dict[str, type[Exception]] = {
    cls.__name__: cls
    for cls in (
        ValueError,
        TypeError,
        OverflowError,
        NotImplementedError,
        MemoryError,
        ProtocolError,
        LocalProtocolError,
        RemoteProtocolError,
        DamagedFrameError,
        PeerGoneError,
        PeerTimeoutError,
        RowsDisagreeError,
        PartyFailedError,
    )
}


def may_cross(cls: type[Exception]) -> type[Exception]:
    """Add a class to the closed list (usable as a decorator). It must be buildable from one text."""
    if _MAY_CROSS.setdefault(cls.__name__, cls) is not cls:
        raise LocalProtocolError(f"another error called {cls.__name__} may cross already")
    return cls


def name_to_cross(error: BaseException) -> str | None:
    """Name of the nearest class of `error` that may cross, or None."""
    return next((c.__name__ for c in type(error).__mro__ if _MAY_CROSS.get(c.__name__) is c), None)


def rebuild(name: str, text: str, reporter: str, party: str) -> Exception:
    """The exception that a report speaks of.

    Parameters
    ----------
    name : class name in the closed list; any other name gives PartyFailedError
    text : str() of the original
    reporter : who sent the report
    party : the party that `text` names already, or "" when it names none; then the reporter is named
    """
    cls = _MAY_CROSS.get(name, PartyFailedError)
    at_fault = party or reporter
    if issubclass(cls, RemoteProtocolError):
        return cls(text.removeprefix(f"party {at_fault!r}: "), at_fault)
    named = bool(party) or text.startswith(f"party {at_fault!r}: ")
    error = cls(text if named else f"party {at_fault!r}: {text}")
    error.party = at_fault  # type: ignore[attr-defined]
    return error


def party_of(error: BaseException) -> str:
    """The party that an error's text names already, or ""."""
    return getattr(error, "party", None) or ""


# ---------------------------------------------------------------- files


class ModelFileError(ValueError):
    """A file that cannot be used as the model or checkpoint it should be.

    Parameters
    ----------
    text : what is wrong, without the file's name
    path : the file; None where bytes were given
    """

    def __init__(self, text: str, path: str | PathLike[str] | None = None) -> None:
        super().__init__(text if path is None else f"{fspath(path)}: {text}")
        self.text = text
        self.path = None if path is None else fspath(path)

    def of(self, path: str | PathLike[str]) -> Self:
        """The same error with the file named."""
        return type(self)(self.text, path)


class DamagedFileError(ModelFileError):
    """Not a model file, cut short, or not the bytes that were written."""


class FileVersionError(ModelFileError):
    """A format version that this library does not read, or none; the text names both."""


class WrongFileError(ModelFileError):
    """A sound file of another kind of model, another party, or another training."""


class OtherVersionWarning(UserWarning):
    """A file was written by another version of this library; it is read all the same."""
