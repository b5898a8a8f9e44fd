"""Message <-> frame, without pickle; every length is checked against the bytes there before it is used.

A frame is::

    magic "VFLP"   version u8   length of the kind name u8   two zero bytes   length of the payload u64
    digest 16 kind name (ASCII)           payload

all little-endian. The digest is SHA-256 over everything else in the frame, cut to 16 bytes: it finds damage,
not malice. The payload is the number of fields (u16) and the fields in order, each a tag and its content:

    N T F                      None, True, False
    i  u32 n, n bytes          int, two's complement, n = bit_length // 8 + 1
    f  8 bytes                 float
    s  u64 n, n bytes          str, UTF-8
    b  u64 n, n bytes          bytes
    a  u8 dtype, u8 ndim, ndim x u64, data          array in C order
    t  u32 n, n values         tuple

A field of another type than the class says is the sender's error. Decoded arrays are fresh and writable:
nothing that is received shares memory with the frame or with the sender.
"""

from __future__ import annotations

import dataclasses
import hashlib
import struct
from typing import Any

import numpy as np

from .errors import DamagedFrameError, LocalProtocolError, RemoteProtocolError
from .messages import ARRAY_DTYPES, FieldType, Message, field_types, kind_name

MAGIC = b"VFLP"
VERSION = 1
MAX_FRAME_BYTES = 4 << 30  # what one frame may hold; more travels in blocks
MAX_INT_BYTES = 1 << 10  # far beyond any count; Python still writes such a number out (4300 digits at most)
MAX_TUPLE_ITEMS = (
    1 << 20
)  # many values belong into an array; a tuple costs many bytes of memory per byte on the wire
MAX_DIMENSIONS = 8

_FRONT = struct.Struct("<4sBBHQ")  # magic, version, kind length, zero, payload length; the digest follows
_DIGEST_BYTES = 16
HEADER_BYTES = _FRONT.size + _DIGEST_BYTES  # 32: read these first, then frame_bytes() says how many there are

_U16, _U32, _U64, _F64 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<Q"), struct.Struct("<d")
_TAGS = {bool: b"TF", int: b"i", float: b"f", str: b"s", bytes: b"b", np.ndarray: b"a", tuple: b"t"}
_WIRE_DTYPES = tuple(dtype.newbyteorder("<") for dtype in ARRAY_DTYPES)


def encode(message: Message) -> bytes:
    """The frame of a message. LocalProtocolError names the field that cannot cross."""
    if not isinstance(message, Message):
        raise LocalProtocolError(f"only messages cross the wire, got {type(message).__name__}")
    name_of_kind, fields = kind_name(type(message)), field_types(type(message))
    parts: list[Any] = [_U16.pack(len(fields))]
    for name, field in fields:
        _write(parts, field, getattr(message, name), f"{name_of_kind}.{name}")
    kind = name_of_kind.encode("ascii")
    size = sum(len(part) for part in parts)
    if HEADER_BYTES + len(kind) + size > MAX_FRAME_BYTES:
        raise LocalProtocolError(
            f"{name_of_kind} has {size} bytes, a frame holds {MAX_FRAME_BYTES}: send blocks"
        )
    front = _FRONT.pack(MAGIC, VERSION, len(kind), 0, size)
    # One join is the only copy of large fields.
    return b"".join([front, _digest(front, kind, *parts), kind, *parts])


def decode(
    frame: bytes | bytearray | memoryview, allowed: tuple[type[Message], ...], *, fill: bool = False
) -> Message:
    """The message in a frame.

    Parameters
    ----------
    frame : exactly one whole frame
    allowed : the message classes that may arrive here and now; any other kind is refused
    fill : fields that the frame lacks at its end take the class's defaults. For frames out of files, which an older
        library may have written; on the wire both sides speak one version.

    Raises
    ------
    DamagedFrameError : not a frame, or not as it was sent
    RemoteProtocolError : a sound frame of a kind not allowed, or whose fields have other types
    """
    view = memoryview(frame).cast("B")
    kind, payload = _open(view)
    cls = next((c for c in allowed if kind_name(c) == kind), None)
    if cls is None:
        names = ", ".join(kind_name(c) for c in allowed) or "none"
        raise RemoteProtocolError(f"sent {kind}, expected one of: {names}")
    fields, reader = field_types(cls), _Reader(payload)
    (count,) = _U16.unpack(reader.take(2))
    if fill and count < len(fields) and _have_defaults(cls, count):
        fields = fields[:count]
    if count != len(fields):
        raise RemoteProtocolError(f"{kind} came with {count} fields, it has {len(fields)}")
    values = {name: reader.read(field, f"{kind}.{name}") for name, field in fields}
    if reader.left:
        raise DamagedFrameError(f"{reader.left} bytes after the end of {kind}")
    return cls(**values)


def _have_defaults(cls: type[Message], start: int) -> bool:
    """Whether all fields from this one on may be left out."""
    later = dataclasses.fields(cls)[start:]  # type: ignore[arg-type]
    return all(
        field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        for field in later
    )


def frame_bytes(header: bytes | bytearray | memoryview) -> int:
    """Size of the whole frame, from its first HEADER_BYTES bytes."""
    if len(header) < HEADER_BYTES:
        raise DamagedFrameError(f"{len(header)} bytes are no frame, its header alone has {HEADER_BYTES}")
    magic, version, kind_bytes, zero, payload_bytes = _FRONT.unpack_from(header)
    if magic != MAGIC or zero != 0 or kind_bytes == 0:
        raise DamagedFrameError("this is no frame: it starts with other bytes")
    if version != VERSION:
        raise DamagedFrameError(f"the frame has version {version}, this side speaks version {VERSION}")
    total = int(HEADER_BYTES + kind_bytes + payload_bytes)
    if total > MAX_FRAME_BYTES:
        raise DamagedFrameError(f"the frame claims {total} bytes, the limit is {MAX_FRAME_BYTES}")
    return total


def _open(view: memoryview) -> tuple[str, memoryview]:
    """Kind and payload of a sound frame: lengths first, then the digest."""
    total = frame_bytes(view[:HEADER_BYTES])
    if len(view) != total:
        raise DamagedFrameError(f"the frame claims {total} bytes, {len(view)} are here")
    front, digest, rest = view[: _FRONT.size], view[_FRONT.size : HEADER_BYTES], view[HEADER_BYTES:]
    if _digest(front, rest) != bytes(digest):
        raise DamagedFrameError(f"the digest does not match the {total} bytes of the frame")
    kind = bytes(rest[: view[5]])
    if not kind.isascii():
        raise DamagedFrameError("the kind of the message is not ASCII")
    return kind.decode("ascii"), rest[view[5] :]


def _digest(*parts: Any) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()[:_DIGEST_BYTES]


# ---------------------------------------------------------------- writing


def _write(parts: list[Any], field: FieldType, value: Any, where: str) -> None:
    """Append tag and content of one value. NumPy scalars become plain ones; nothing else is converted."""
    if value is None and field.optional:
        parts.append(b"N")
    elif field.base is bool and isinstance(value, bool | np.bool_):
        parts.append(b"T" if value else b"F")
    elif field.base is int and isinstance(value, int | np.integer) and not isinstance(value, bool):
        _write_int(parts, int(value), where)
    elif (
        field.base is float
        and isinstance(value, float | int | np.floating | np.integer)
        and not isinstance(value, bool)
    ):
        parts.append(b"f" + _F64.pack(_as_float(value, where)))
    elif field.base is str and isinstance(value, str):
        _write_str(parts, value, where)
    elif field.base is bytes and isinstance(value, bytes | bytearray | memoryview):
        data = value.tobytes() if isinstance(value, memoryview) else value
        parts += [b"b" + _U64.pack(len(data)), data]
    elif field.base is np.ndarray and isinstance(value, np.ndarray):
        _write_array(parts, field, value, where)
    elif field.base is tuple and isinstance(value, tuple | list):
        _write_tuple(parts, field, tuple(value), where)
    else:
        raise LocalProtocolError(f"{where} must be {field}, got {type(value).__name__}")


def _as_float(value: Any, where: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise LocalProtocolError(f"{where}: an int of {value.bit_length()} bits is no float") from None


def _write_int(parts: list[Any], value: int, where: str) -> None:
    n_bytes = value.bit_length() // 8 + 1
    if n_bytes > MAX_INT_BYTES:
        raise LocalProtocolError(f"{where} has {n_bytes} bytes, an int may have {MAX_INT_BYTES}")
    parts.append(b"i" + _U32.pack(n_bytes) + value.to_bytes(n_bytes, "little", signed=True))


def _write_str(parts: list[Any], value: str, where: str) -> None:
    try:
        data = value.encode("utf-8")
    except UnicodeEncodeError:
        raise LocalProtocolError(f"{where} holds characters that UTF-8 cannot write") from None
    parts.append(b"s" + _U64.pack(len(data)) + data)


def _write_array(parts: list[Any], field: FieldType, value: np.ndarray, where: str) -> None:
    native = value.dtype.newbyteorder("=")
    if native not in ARRAY_DTYPES or isinstance(value, np.ma.MaskedArray) or value.ndim > MAX_DIMENSIONS:
        raise LocalProtocolError(
            f"{where}: a {type(value).__name__} of {value.dtype}, {value.ndim}-d cannot cross"
        )
    if field.dtype is not None and native != field.dtype:
        raise LocalProtocolError(f"{where} must be {field}, got {value.dtype}")
    code = ARRAY_DTYPES.index(native)
    data = np.asarray(value, dtype=_WIRE_DTYPES[code], order="C").reshape(-1).view(np.uint8)
    parts += [struct.pack(f"<cBB{value.ndim}Q", b"a", code, value.ndim, *value.shape), data.data]


def _write_tuple(parts: list[Any], field: FieldType, value: tuple[Any, ...], where: str) -> None:
    items = field.items * len(value) if field.any_length else field.items
    if len(items) != len(value) or len(value) > MAX_TUPLE_ITEMS:
        raise LocalProtocolError(
            f"{where} must be {field} of at most {MAX_TUPLE_ITEMS} items, got {len(value)}"
        )
    parts.append(b"t" + _U32.pack(len(value)))
    for index, (item, entry) in enumerate(zip(items, value, strict=True)):
        _write(parts, item, entry, f"{where}[{index}]")


# ---------------------------------------------------------------- reading


class _Reader:
    """Takes values off a payload from left to right; never past its end."""

    def __init__(self, payload: memoryview) -> None:
        self._payload = payload
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._payload) - self._at

    def take(self, n_bytes: int) -> memoryview:
        if n_bytes > self.left:
            raise DamagedFrameError(f"{n_bytes} bytes announced, {self.left} left in the frame")
        self._at += n_bytes
        return self._payload[self._at - n_bytes : self._at]

    def number(self, form: struct.Struct) -> int:
        return int(form.unpack(self.take(form.size))[0])

    def read(self, field: FieldType, where: str) -> Any:
        """One value of the given type, or RemoteProtocolError naming the field."""
        tag = bytes(self.take(1))
        if tag == b"N" and field.optional:
            return None
        if tag not in _TAGS[field.base]:
            raise RemoteProtocolError(f"{where} must be {field}, it came with tag {tag!r}")
        if field.base is bool:
            return tag == b"T"
        if field.base is float:
            return float(_F64.unpack(self.take(8))[0])
        if field.base is int:
            return self._int(where)
        if field.base is tuple:
            return self._tuple(field, where)
        if field.base is np.ndarray:
            return self._array(field, where)
        data = bytes(self.take(self.number(_U64)))
        return data if field.base is bytes else _text(data, where)

    def _int(self, where: str) -> int:
        n_bytes = self.number(_U32)
        if n_bytes > MAX_INT_BYTES:
            raise DamagedFrameError(f"{where} claims {n_bytes} bytes, an int may have {MAX_INT_BYTES}")
        value = int.from_bytes(self.take(n_bytes), "little", signed=True)
        if n_bytes != value.bit_length() // 8 + 1:  # one way to write each number
            raise DamagedFrameError(
                f"{where} is written with {n_bytes} bytes, it needs {value.bit_length() // 8 + 1}"
            )
        return value

    def _tuple(self, field: FieldType, where: str) -> tuple[Any, ...]:
        count = self.number(_U32)
        if count > min(self.left, MAX_TUPLE_ITEMS):  # every item has at least its tag
            raise DamagedFrameError(f"{where} claims {count} items, {self.left} bytes are left")
        if field.any_length:
            return tuple(self.read(field.items[0], where) for _ in range(count))
        if count != len(field.items):
            raise RemoteProtocolError(f"{where} must be {field}, it came with {count} items")
        return tuple(self.read(item, where) for item in field.items)

    def _array(self, field: FieldType, where: str) -> np.ndarray:
        code, n_dims = self.take(2)
        if code >= len(ARRAY_DTYPES) or n_dims > MAX_DIMENSIONS:
            raise DamagedFrameError(f"{where}: no array has dtype code {code} and {n_dims} dimensions")
        shape = struct.unpack(f"<{n_dims}Q", self.take(8 * n_dims))
        dtype = _WIRE_DTYPES[code]
        # Python ints do not overflow. Zeros are left out of the first product, so that (0, 2**60) is refused
        # too.
        if _product(max(size, 1) for size in shape) * dtype.itemsize > MAX_FRAME_BYTES:
            raise DamagedFrameError(f"{where} claims the shape {shape}")
        data = self.take(_product(shape) * dtype.itemsize)
        if field.dtype is not None and ARRAY_DTYPES[code] != field.dtype:
            raise RemoteProtocolError(f"{where} must be {field}, it came as {ARRAY_DTYPES[code]}")
        if code == 0 and (np.frombuffer(data, np.uint8) > 1).any():
            raise DamagedFrameError(f"{where} holds bytes that are neither true nor false")
        return np.frombuffer(data, dtype).reshape(shape).astype(ARRAY_DTYPES[code])  # astype copies


def _product(sizes: Any) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise DamagedFrameError(f"{where} is not UTF-8") from None
