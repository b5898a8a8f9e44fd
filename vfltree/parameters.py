"""Checks that parameters of estimators share: choices, ranges, lengths of keys. The error names the parameter."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

ENCRYPTIONS = ("paillier", "none")
STRONG_KEY_BITS = (2048, 3072, 4096)


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """ValueError unless the value is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_range(name: str, value: object, kind: type, low: float, high: float, low_open: bool) -> None:
    """TypeError unless a number of this kind, ValueError unless within [low, high], or (low, high]."""
    word = "an integer" if kind is numbers.Integral else "a number"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, kind):
        raise TypeError(f"{name} must be {word}, got {value!r} of type {type(value).__name__}")
    number = as_float(value)
    if not (low < number if low_open else low <= number) or not number <= high or not np.isfinite(number):
        brackets = ("(" if low_open else "[") + f"{low}, {high}" + ("]" if np.isfinite(high) else ")")
        raise ValueError(f"{name} must be {word} in {brackets}, got {value!r}")


def check_flag(name: str, value: object) -> None:
    """TypeError unless True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def check_key_bits(key_bits: int, allow_weak_key: bool, encryption: str) -> None:
    """ValueError where a key of this length would be made without being allowed."""
    check_flag("allow_weak_key", allow_weak_key)
    if not allow_weak_key and key_bits not in STRONG_KEY_BITS and encryption != "none":
        raise ValueError(
            f"key_bits must be one of {STRONG_KEY_BITS}, got {key_bits}; "
            "weaker keys, for tests only, need allow_weak_key=True"
        )


def as_float(value: Any) -> float:
    """As a double; integers beyond its range are infinite."""
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def plain_number(value: object) -> object:
    """NumPy's numbers as Python's, for json.dumps."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} in settings")
