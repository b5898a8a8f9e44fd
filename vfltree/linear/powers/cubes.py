"""Cubes of sums under encryption, by the binomial formula: what both sides of the exchange compute.

Scores have POWER_BITS fraction bits here, so that exponents stay short.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arithmetic import Arithmetic
from ..columns import LARGEST_SCORE_BITS, SCORE_BITS

POWER_BITS = 20  # fraction bits of a score; its cube has three times as many
_SHIFT = SCORE_BITS - POWER_BITS
CUBE_BITS = 3 * (LARGEST_SCORE_BITS - _SHIFT)  # magnitude of a cube


def power_scores(scores: np.ndarray) -> np.ndarray:
    """int64 scores, as Python integers with POWER_BITS fraction bits, rounded; dtype object."""
    return ((scores + (1 << (_SHIFT - 1))) >> _SHIFT).astype(object)


def first_powers(v: np.ndarray) -> np.ndarray:
    """v, v^2, v^3 of Python integers (n, n_outputs): (n, n_outputs, 3)."""
    return np.stack([v, v * v, v * v * v], axis=-1)


def extended(arithmetic: Arithmetic, powers: Any, v: np.ndarray) -> Any:
    """Powers of z + v, from those of z under encryption and v in the clear."""
    z1, z2, z3 = (powers[..., i] for i in range(3))
    add, scale = arithmetic.add, arithmetic.scale
    cube = add(add(z3, scale(z2, 3 * v)), scale(z1, 3 * v * v))
    return arithmetic.stacked([add(z1, v), add(add(z2, scale(z1, 2 * v)), v * v), add(cube, v * v * v)])


def cubic(arithmetic: Arithmetic, powers: Any, v: np.ndarray, linear: int, cube: int) -> Any:
    """linear (z + v) + cube (z + v)^3, without the powers in between."""
    z1, z2, z3 = (powers[..., i] for i in range(3))
    add, scale = arithmetic.add, arithmetic.scale
    total = add(scale(z3, cube), scale(z2, 3 * cube * v))
    total = add(total, scale(z1, linear + 3 * cube * v * v))
    return add(total, linear * v + cube * v * v * v)
