"""One party's file on disk, a model or a checkpoint: messages of the codec behind a header, checked before use.

A file is::

    magic "VFLMODEL"   length of the header u64   header (JSON, ASCII)   frames of the codec   digest 32

all little-endian. The digest is SHA-256 over everything before it: it finds damage, not malice. This outline is the
same for all format versions, so that a file of a later version can be told from a damaged one. The header names the
format and its version, the library that wrote it, the kind of model, the party whose file it is, and the training: an
id drawn once per training that all its files carry. `metadata` is what the party may know and show in the clear.

There is no pickle. Files are written to a temporary name and renamed, readable by their user only, since each holds
what its party keeps from the others.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import struct
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from vflcrypto.callers import outside_level

from . import codec
from .errors import (
    DamagedFileError,
    FileVersionError,
    ModelFileError,
    OtherVersionWarning,
    RemoteProtocolError,
    WrongFileError,
)
from .messages import Message, kind_name

MAGIC = b"VFLMODEL"
FORMAT = "vflparty model file"
FORMAT_VERSION = 1
LIBRARY = "vfltree"
LIBRARY_VERSION = version(LIBRARY)
SUFFIX = ".model"

_FRONT = struct.Struct("<8sQ")  # magic, length of the header
_DIGEST_BYTES = hashlib.sha256().digest_size
_LONGEST_NAME = 120  # characters of a file name, far below the 255 bytes that file systems allow
_TEXT_FIELDS = ("library", "library_version", "kind", "party", "training")

FilePath = str | PathLike[str]


def new_training_id() -> str:
    """An id for all files of one training: 128 random bits, in hexadecimal."""
    return secrets.token_hex(16)


@dataclass(frozen=True)
class ModelFile:
    """What one party's file holds.

    Attributes
    ----------
    kind : of model: says which messages the frames are
    party : whose file it is
    training : id that all files of one training share, see `new_training_id`
    frames : encoded messages, in the order of the kind
    metadata : plain JSON values, str keys
    library_version : of the library that wrote the file
    """

    kind: str
    party: str
    training: str
    frames: tuple[bytes, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    library_version: str = LIBRARY_VERSION

    @classmethod
    def of(
        cls,
        kind: str,
        party: str,
        training: str,
        messages: Iterable[Message],
        metadata: Mapping[str, Any] | None = None,
    ) -> Self:
        """A file of these messages."""
        return cls(kind, party, training, tuple(map(codec.encode, messages)), metadata or {})

    # ---------------------------------------------------------------- messages

    def messages(self, *classes: type[Message]) -> tuple[Message, ...]:
        """The messages, which must be of exactly these classes; fields newer than the file take their defaults."""
        if len(classes) != len(self.frames):
            raise WrongFileError(f"{len(self.frames)} messages in the file, expected {len(classes)}")
        return tuple(_message(frame, (cls,)) for frame, cls in zip(self.frames, classes, strict=True))

    def many(self, *classes: type[Message]) -> tuple[Message, ...]:
        """The messages, as many as there are, each of one of these classes."""
        return tuple(_message(frame, classes) for frame in self.frames)

    # ---------------------------------------------------------------- bytes

    def to_bytes(self) -> bytes:
        return b"".join(self._parts())

    def _parts(self) -> Iterator[bytes]:
        """The file, piece by piece."""
        header = _written_header(self)
        digest = hashlib.sha256()
        for part in (_FRONT.pack(MAGIC, len(header)), header, *self.frames):
            digest.update(part)
            yield part
        yield digest.digest()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The file in these bytes.

        Raises
        ------
        DamagedFileError : not a model file, cut short, or other bytes than were written
        FileVersionError : another format version than this library reads, or none
        """
        view = memoryview(data)
        header_bytes, body = _split(view)
        sound = hashlib.sha256(view[:-_DIGEST_BYTES]).digest() == view[-_DIGEST_BYTES:]
        header = _parsed_header(header_bytes, sound)
        _check_version(header, sound)
        if not sound:
            raise DamagedFileError(f"the digest does not match the {len(data)} bytes of the file")
        _check_header(header)
        return cls(
            header["kind"],
            header["party"],
            header["training"],
            tuple(_frames(body)),
            header["metadata"],
            header["library_version"],
        )

    # ---------------------------------------------------------------- files

    def write(self, path: FilePath) -> None:
        """Write the file: whole or not at all, readable by this user only. An older file of that name is replaced."""
        folder, _ = os.path.split(os.path.abspath(path))
        descriptor, temporary = tempfile.mkstemp(prefix=".vfl-", suffix=".part", dir=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.writelines(self._parts())
                file.flush()
                os.fsync(
                    file.fileno()
                )  # the new name must not point to bytes that a power cut can still lose
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise

    @classmethod
    def read(
        cls,
        path: FilePath,
        *,
        kind: str | Sequence[str] | None = None,
        party: str | None = None,
        training: str | None = None,
    ) -> Self:
        """Read and check a file; every error names it.

        Parameters
        ----------
        path : the file
        kind : kind of model, or several, that it must be of; None: any
        party : whose file it must be; None: anybody's
        training : id that it must carry; None: any

        Raises
        ------
        ModelFileError : see `from_bytes`; WrongFileError where kind, party or training are others
        OSError : the file cannot be read

        A file of another library version is read with an `OtherVersionWarning`.
        """
        try:
            found = cls.from_bytes(Path(path).read_bytes())
            found.check(kind=kind, party=party, training=training)
        except ModelFileError as error:
            raise error.of(path) from error.__cause__
        if found.library_version != LIBRARY_VERSION:
            warnings.warn(
                f"{os.fspath(path)} was written by {LIBRARY} {found.library_version}, this is {LIBRARY_VERSION}",
                OtherVersionWarning,
                stacklevel=outside_level(),
            )
        return found

    def check(
        self,
        *,
        kind: str | Sequence[str] | None = None,
        party: str | None = None,
        training: str | None = None,
    ) -> None:
        """Raise WrongFileError unless kind, party and training are those expected; None expects nothing."""
        kinds = (kind,) if isinstance(kind, str) else kind
        if kinds is not None and self.kind not in kinds:
            raise WrongFileError(f"it holds a {self.kind!r}, expected {' or '.join(map(repr, kinds))}")
        if party is not None and self.party != party:
            raise WrongFileError(f"it belongs to party {self.party!r}, expected party {party!r}")
        if training is not None and self.training != training:
            raise WrongFileError(
                f"it comes from training {self.training}, expected {training}: files of different trainings do not "
                "make a model"
            )


# ---------------------------------------------------------------- writing


def _written_header(file: ModelFile) -> bytes:
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "library": LIBRARY,
        "library_version": file.library_version,
        "kind": file.kind,
        "party": file.party,
        "training": file.training,
        "metadata": dict(file.metadata),
    }
    text = json.dumps(header, allow_nan=False)
    if json.loads(text) != header:  # tuples, numeric keys: JSON would change them without a word
        raise TypeError("metadata of a model file must be what JSON gives back: str keys, lists, no tuples")
    return text.encode("ascii")


# ---------------------------------------------------------------- reading


def _split(view: memoryview) -> tuple[bytes, memoryview]:
    """Header and frames; lengths are compared with the bytes there."""
    if bytes(view[: len(MAGIC)]) != MAGIC:
        raise DamagedFileError("this is no model file: it starts with other bytes")
    rest = len(view) - _FRONT.size - _DIGEST_BYTES
    if rest < 0:
        raise DamagedFileError(f"the file is cut short: it has {len(view)} bytes")
    n_header = _FRONT.unpack_from(view)[1]
    if n_header > rest:
        raise DamagedFileError(
            f"the file is cut short or damaged: it claims a header of {n_header} bytes, {rest} are left"
        )
    return bytes(view[_FRONT.size : _FRONT.size + n_header]), view[_FRONT.size + n_header : -_DIGEST_BYTES]


def _parsed_header(data: bytes, sound: bool) -> dict[str, Any]:
    try:
        header = json.loads(data.decode("ascii"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise DamagedFileError(
            "its header is no JSON object"
            if sound
            else "its header is damaged, and the digest does not match"
        )
    return header


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} in the header")


def _check_version(header: dict[str, Any], sound: bool) -> None:
    """Before the digest, since a later version is the likelier reason why things look strange."""
    also = "" if sound else "; its digest does not match either: it was damaged or edited"
    if header.get("format", FORMAT) != FORMAT:
        raise FileVersionError(f"its format is {header['format']!r}, this library reads {FORMAT!r}{also}")
    if "format_version" not in header:
        raise FileVersionError(
            f"its format version is missing, this library reads version {FORMAT_VERSION}{also}"
        )
    found = header["format_version"]
    if type(found) is not int or found != FORMAT_VERSION:
        wrote = f" (written by {LIBRARY} {header['library_version']})" if "library_version" in header else ""
        raise FileVersionError(
            f"its format version is {found!r}{wrote}, this library ({LIBRARY_VERSION}) reads version "
            f"{FORMAT_VERSION}{also}"
        )


def _check_header(header: dict[str, Any]) -> None:
    for name in ("format", *_TEXT_FIELDS):
        if not isinstance(header.get(name), str):
            raise DamagedFileError(f"its header has no text {name!r}")
    if not isinstance(header.get("metadata"), dict):
        raise DamagedFileError("its header has no object 'metadata'")


def _frames(body: memoryview) -> Iterator[bytes]:
    """Whole frames, one after another, to the last byte; each is checked when it is decoded."""
    at = 0
    while at < len(body):
        try:
            size = codec.frame_bytes(body[at : at + codec.HEADER_BYTES])
        except RemoteProtocolError as error:
            raise DamagedFileError(f"at byte {at} of its messages: {error.text}") from error
        if size > len(body) - at:
            raise DamagedFileError(f"a message claims {size} bytes, {len(body) - at} are left")
        yield bytes(body[at : at + size])
        at += size


def _message(frame: bytes, classes: tuple[type[Message], ...]) -> Message:
    try:
        return codec.decode(frame, classes, fill=True)
    except RemoteProtocolError as error:
        names = " or ".join(map(kind_name, classes))
        raise DamagedFileError(f"a message that should be {names}: {error.text}") from error


# ---------------------------------------------------------------- names of files


def file_names(parties: Iterable[str]) -> dict[str, str]:
    """A file name for each party, safe whatever the party is called.

    Anything but letters, digits and "-_." is percent-encoded, and so is a leading dot; a name that is empty or too
    long, or that differs from another only by case, gets a tilde and eight digits of its SHA-256.
    """
    names = list(parties)
    plain = {name: _quoted(name) for name in names}
    lowered = [text.lower() for text in plain.values()]
    result = {}
    for name, text in plain.items():
        if not text or len(text) > _LONGEST_NAME or lowered.count(text.lower()) > 1:
            mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
            text = f"{text[:_LONGEST_NAME]}~{mark}"
        result[name] = text + SUFFIX
    return result


def _quoted(name: str) -> str:
    text = quote(name.encode("utf-8", "surrogatepass"), safe="").replace("~", "%7E")
    return "%2E" + text[1:] if text.startswith(".") else text
