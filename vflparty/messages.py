"""Messages: frozen plain values that cross between parties.

A protocol is a page of small classes, top to bottom in the order sent, each saying who sends it to whom and
which kind answers it::

    @dataclass(frozen=True)
    class LevelToSplit(Message, answer="EncryptedHistograms"):
        \"\"\"active -> every passive, once per level.\"\"\"

        level: int
        rows: np.ndarray

Fields are `int bool float str bytes`, `np.ndarray` (or `NDArray[np.int32]`, which fixes the dtype), `tuple[X,
...]`, `tuple[X, Y]` and `X | None`. There is no global list of kinds: whoever reads a frame names the classes
it accepts.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import types
import typing
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .errors import LocalProtocolError, name_to_cross, party_of, rebuild

# The closed list of array types; the position is the code on the wire, so only ever append.
ARRAY_DTYPES: tuple[np.dtype[Any], ...] = tuple(
    np.dtype(scalar)
    for scalar in (
        *(np.bool_, np.int8, np.int16, np.int32, np.int64),
        *(np.uint8, np.uint16, np.uint32, np.uint64),
        *(np.float32, np.float64),
    )
)


def _equal(self: Any, other: Any) -> bool:
    if type(self) is not type(other):
        return NotImplemented
    return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in dataclasses.fields(self))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and bool(a == b)


def _short_repr(self: Any) -> str:
    parts = (f"{f.name}={_short(getattr(self, f.name))}" for f in dataclasses.fields(self))
    return f"{type(self).__name__}({', '.join(parts)})"


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"<{value.dtype} {value.shape}>"
    if isinstance(value, bytes | str | tuple) and len(value) > 40:
        return f"<{type(value).__name__} of {len(value)}>"
    return repr(value)


class Message:
    """Base of all messages. Subclasses are frozen dataclasses; the class name is the kind on the wire.

    Class argument `answer`: the kind (class, its name, or a tuple of them) that answers this message; `Done`
    unless said otherwise. Two messages are equal when class and all fields are, arrays compared bit for bit
    with dtype.
    """

    _answered_by: ClassVar[tuple[str | type[Message], ...]] = ("Done",)

    def __init_subclass__(
        cls, *, answer: str | type[Message] | tuple[str | type[Message], ...] | None = None, **kwargs: Any
    ) -> None:
        super().__init_subclass__(**kwargs)
        if answer is not None:
            cls._answered_by = answer if isinstance(answer, tuple) else (answer,)
        elif (
            "_answered_by" not in cls.__dict__
        ):  # it is there when @dataclass(slots=True) makes the class anew
            cls._answered_by = ("Done",)
        # Set on the class itself, so that @dataclass keeps them: its own `==` fails on arrays, and its own
        # repr would print megabytes of ciphertext.
        for name, method in (("__eq__", _equal), ("__repr__", _short_repr)):
            if name not in cls.__dict__:
                setattr(cls, name, method)


def kind_name(cls: type[Message]) -> str:
    """Name of a message class on the wire."""
    return cls.__name__


def answers_to(cls: type[Message]) -> tuple[type[Message], ...]:
    """The message classes that may answer a message of this class."""
    return tuple(_resolve(cls, answer) for answer in cls._answered_by)


def handler_name(cls: type[Message]) -> str:
    """Name of the method that receives it: LevelToSplit -> on_level_to_split."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__)
    return f"on_{words.lower()}"


@dataclass(frozen=True)
class Done(Message):
    """any party -> who asked: done, nothing to tell. What a handler that returns None answers."""


@dataclass(frozen=True)
class ErrorReport(Message):
    """any party -> who asked, instead of an answer."""

    error: str  # class name, looked up in the closed list of vflparty.errors
    text: str
    party: str  # the party that the text names already, or ""

    @classmethod
    def of(cls, error: BaseException) -> ErrorReport:
        """Report of `error`. An exception outside the closed list is told by its class name only."""
        name = name_to_cross(error)
        if name is None:
            return cls("PartyFailedError", f"failed with {type(error).__name__}", "")
        return cls(name, str(error), party_of(error))

    def rebuild(self, reporter: str) -> Exception:
        """The exception to raise where the report arrives."""
        return rebuild(self.error, self.text, reporter, self.party)


@dataclass(frozen=True)
class Seat(Message):
    """launcher -> one party: who you are, what you are made of, and your own data; nobody else's."""

    party: str
    factory: str  # "package.module:ClassName", a subclass of Party or Leader
    setup: bytes  # the frame of the class's setup message


# ---------------------------------------------------------------- what a field may hold


@dataclass(frozen=True)
class FieldType:
    """What an annotation allows: a scalar, an array (of one dtype, if given), or a tuple of field types."""

    base: type  # bool, int, float, str, bytes, np.ndarray or tuple
    optional: bool = False  # X | None
    dtype: np.dtype[Any] | None = None
    items: tuple[FieldType, ...] = ()
    any_length: bool = False  # tuple[X, ...]: items holds X

    def __str__(self) -> str:
        inner = self.base.__name__
        if self.base is tuple:
            inner = f"tuple[{', '.join(map(str, self.items))}{', ...' if self.any_length else ''}]"
        elif self.dtype is not None:
            inner = f"ndarray of {self.dtype}"
        return f"{inner} | None" if self.optional else inner


_FIELD_TYPES: dict[type[Message], tuple[tuple[str, FieldType], ...]] = {}


def field_types(cls: type[Message]) -> tuple[tuple[str, FieldType], ...]:
    """Names and types of a message's fields, in order; LocalProtocolError when the class cannot cross."""
    if cls not in _FIELD_TYPES:
        _FIELD_TYPES[cls] = _read_annotations(cls)
    return _FIELD_TYPES[cls]


def _read_annotations(cls: Any) -> tuple[tuple[str, FieldType], ...]:
    if "__dataclass_fields__" not in cls.__dict__ or not cls.__dict__["__dataclass_params__"].frozen:
        raise LocalProtocolError(f"message {cls.__name__} must be a @dataclass(frozen=True)")
    hints = typing.get_type_hints(cls)
    return tuple(
        (f.name, _field_type(hints[f.name], f"{cls.__name__}.{f.name}")) for f in dataclasses.fields(cls)
    )


def _field_type(hint: Any, where: str) -> FieldType:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        rest = [a for a in args if a is not type(None)]
        if len(rest) == 1 and len(args) == 2:
            return dataclasses.replace(_field_type(rest[0], where), optional=True)
    elif hint in (bool, int, float, str, bytes, np.ndarray):
        return FieldType(hint)
    elif origin is np.ndarray:
        return FieldType(np.ndarray, dtype=_fixed_dtype(args, where))
    elif origin is tuple and args and args[-1] is Ellipsis:
        return FieldType(tuple, items=(_field_type(args[0], where),), any_length=True)
    elif origin is tuple:
        return FieldType(tuple, items=tuple(_field_type(a, where) for a in args))
    raise LocalProtocolError(f"{where}: {hint!r} cannot cross the wire")


def _fixed_dtype(args: tuple[Any, ...], where: str) -> np.dtype[Any] | None:
    """dtype of NDArray[np.int32]; None for NDArray[Any]."""
    scalar = typing.get_args(args[1])[0]
    if scalar is Any or not isinstance(scalar, type):
        return None
    try:
        dtype = np.dtype(scalar)
    except TypeError:
        return None  # an abstract type such as np.generic
    if dtype not in ARRAY_DTYPES:
        raise LocalProtocolError(f"{where}: arrays of {dtype} cannot cross the wire")
    return dtype


def _resolve(cls: type[Message], answer: str | type[Message]) -> type[Message]:
    if not isinstance(answer, str):
        return answer
    for module in (cls.__module__, __name__):
        found = getattr(sys.modules.get(module), answer, None)
        if isinstance(found, type) and issubclass(found, Message):
            return found
    raise LocalProtocolError(
        f"{cls.__name__} is answered by {answer}, which {cls.__module__} does not define"
    )
