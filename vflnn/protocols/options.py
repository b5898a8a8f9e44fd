"""What protocols take for options. They come from the active party, so a passive party checks them too."""

from __future__ import annotations

import math
from typing import Any


def whole_number(value: Any, name: str, low: int, high: int) -> int:
    """`value`, a whole number in low..high. The upper end bounds what a party does at another's word."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name} must be a whole number from {low} to {high}, got {value!r}")
    return value


def real_number(value: Any, name: str) -> float:
    """`value`, a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def switch(value: Any, name: str) -> bool:
    """`value`, True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return value
