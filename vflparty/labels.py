"""Class labels as JSON and back, bit for bit and without pickle: numbers, bools, text, dates, and mixtures of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

# Of these kinds an array is written as its dtype and its values; others value by value.
_PLAIN_DTYPE = re.compile(r"[<>|=](b1|[iu][1248]|f[248]|[Mm]8(\[[0-9]*[a-zA-Zμ]+\])?|U[0-9]{1,6})")
_WIDEST = 1024  # characters that arrays of shorter text may keep as their width
_MAKERS: dict[str, Any] = {
    "bool": bool,
    "int": int,
    "float": float.fromhex,
    "str": str,
    "none": lambda _: None,
}


def encode_labels(labels: np.ndarray) -> dict[str, Any]:
    """Labels, (n_classes,), as plain JSON; TypeError names a kind of label that cannot be kept.

    Floats are written in hexadecimal, dates as their numbers: nothing is rounded.
    """
    labels = labels.astype(labels.dtype.newbyteorder("="))
    dtype = labels.dtype
    if dtype.kind == "O":
        return {"dtype": "object", "values": [_tagged(value) for value in labels.tolist()]}
    if not _PLAIN_DTYPE.fullmatch(dtype.str):
        raise TypeError(f"class labels of dtype {dtype} cannot be kept in a file; use numbers or text")
    values = labels.view(np.int64).tolist() if dtype.kind in "Mm" else labels.tolist()
    return {"dtype": dtype.str, "values": [v.hex() if isinstance(v, float) else v for v in values]}


def decode_labels(document: Mapping[str, Any]) -> np.ndarray:
    """The labels again, with their dtype; ValueError where the document is not of `encode_labels`."""
    name, values = document.get("dtype"), document.get("values")
    if not isinstance(name, str) or not isinstance(values, list):
        raise ValueError("class labels need a dtype and a list of values")
    if name == "object":
        labels = np.empty(len(values), dtype=object)
        labels[:] = [_untagged(value) for value in values]
        return labels
    if not _PLAIN_DTYPE.fullmatch(name):
        raise ValueError(f"class labels cannot have dtype {name!r}")
    return _plain_array(name, values)


def _plain_array(name: str, values: list[Any]) -> np.ndarray:
    try:
        dtype = np.dtype(name).newbyteorder("=")
    except TypeError as error:  # a unit of time that is none
        raise ValueError(str(error)) from None
    wanted = {"b": bool, "f": str, "U": str}.get(dtype.kind, int)
    if not all(type(value) is wanted for value in values):
        raise ValueError(f"class labels of dtype {name} must be written as {wanted.__name__}")
    if dtype.kind == "f":
        values = [float.fromhex(value) for value in values]
    if dtype.kind == "U":  # an array of text is as wide as it says: a false width would take much memory
        longest = max(map(len, values), default=1)
        dtype = np.dtype(f"U{min(int(name[2:]), max(longest, _WIDEST))}")
    try:
        if dtype.kind in "Mm":
            return np.array(values, dtype=np.int64).view(dtype)
        return np.array(values, dtype=dtype)
    except OverflowError as error:
        raise ValueError(f"class labels do not fit {name}: {error}") from None


def _tagged(value: Any) -> list[Any]:
    value = value.item() if isinstance(value, np.generic) else value
    if value is None:
        return ["none", None]
    kind = type(value).__name__
    if kind not in _MAKERS or type(value) not in (bool, int, float, str):
        raise TypeError(
            f"class labels of type {type(value).__name__} cannot be kept in a file; use numbers or text"
        )
    if kind == "float":
        return [kind, value.hex()]
    return [kind, str(value) if kind == "int" else value]  # JSON readers may round integers beyond 2**53


def _untagged(entry: Any) -> Any:
    if not isinstance(entry, list) or len(entry) != 2 or entry[0] not in _MAKERS:
        raise ValueError("a class label is not written as [type, value]")
    kind, value = entry
    if type(value) is not {"bool": bool, "none": type(None)}.get(kind, str):
        raise ValueError(f"a class label of type {kind} is written as {type(value).__name__}")
    return _MAKERS[kind](value)
