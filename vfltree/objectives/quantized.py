"""Gradients and hessians as integers on a power-of-two scale: sums are exact and do not depend on order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .base import Array

FRACTION_BITS = 30  # rounding error of a gradient at most 2**-31 of the largest one in the tree
SUM_BITS = 61  # a sum over all rows must fit int64 with room for a subtraction
SMALLEST_EXPONENT = -1022  # of a normal double: what is smaller rounds to 0 rather than divide by it


@dataclass(frozen=True)
class Quantized:
    """Gradients and hessians of one round as integers: real value = integer * unit, per output.

    Attributes
    ----------
    g, h : ndarray of int64, shape (n_rows, n_outputs)
        |g| and h at most 2**fraction_bits; h >= 1 wherever the hessian is positive, so a sum of hessians is 0
        exactly where there is no row.
    g_unit, h_unit : ndarray of float64, shape (n_outputs,)
        Powers of two. They follow the values, so they stay with the active party.
    fraction_bits : int
    """

    g: NDArray[np.int64]
    h: NDArray[np.int64]
    g_unit: Array
    h_unit: Array
    fraction_bits: int


def fraction_bits_for(n_rows: int, fraction_bits: int = FRACTION_BITS) -> int:
    """`fraction_bits`, or fewer where sums over `n_rows` would not fit 61 bits."""
    return min(fraction_bits, SUM_BITS - max(n_rows - 1, 0).bit_length())


def quantize(g: Array, h: Array, fraction_bits: int = FRACTION_BITS) -> Quantized:
    """Round g and h to integers, on a power-of-two scale per output that brings the largest below 1.

    Parameters
    ----------
    g, h : ndarray of float64, shape (n_rows, n_outputs)
        h must not be negative.
    fraction_bits : int
        Fewer are used where sums over all rows would not fit 61 bits.
    """
    if not (np.isfinite(g).all() and np.isfinite(h).all()):
        raise ValueError(
            "gradients and hessians must be finite; targets, weights or raw scores are too large"
        )
    if (h < 0).any():
        raise ValueError(f"hessians must not be negative, the smallest is {h.min()}")
    bits = fraction_bits_for(len(g), fraction_bits)
    g_unit, h_unit = _unit(g, bits), _unit(h, bits)
    g_int = np.rint(g / g_unit).astype(np.int64)
    h_int = np.rint(h / h_unit).astype(np.int64)
    return Quantized(g_int, np.maximum(h_int, h > 0), g_unit, h_unit, bits)


def _unit(x: Array, bits: int) -> Array:
    """Per column the power of two u with |x| / u <= 2**bits, and the largest above 2**(bits - 1)."""
    largest = np.abs(x).max(axis=0, initial=0.0)
    _, exponents = np.frexp(np.where(largest > 0, largest, 0.5))
    return np.ldexp(1.0, np.maximum(exponents - bits, SMALLEST_EXPONENT))
