"""Fixed point: what a party's reals become before they are encrypted, and what opened integers are worth.

Scales are the same for everybody and every step: an exponent per value would tell its size. A residual D has
OUTPUT_BITS fraction bits, a factor (a sample's value, or an entry of a Jacobian) FACTOR_BITS, their products both.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

OUTPUT_BITS = 20  # fraction bits of outputs and labels; rounding error at most 2**-21
FACTOR_BITS = 16  # fraction bits of factors; rounding error at most 2**-17
LARGEST_OUTPUT_BITS = 20  # outputs stay below 2**20
LARGEST_FACTOR_BITS = 14  # factors stay below 2**14, so that they fit an int32 after rounding
SEALED_BITS = OUTPUT_BITS + LARGEST_OUTPUT_BITS

Floats = NDArray[np.floating]


def encode_outputs(values: Floats, party: str) -> NDArray[np.int64]:
    """Outputs of a party's bottom model; OverflowError beyond 2**LARGEST_OUTPUT_BITS, or where they are not finite."""
    return _encode(values, OUTPUT_BITS, LARGEST_OUTPUT_BITS, f"party {party!r}: outputs").astype(np.int64)


def encode_factors(values: Floats, party: str) -> NDArray[np.int32]:
    """What residuals are multiplied by; OverflowError beyond 2**LARGEST_FACTOR_BITS, or where they are not finite."""
    what = f"party {party!r}: columns, or derivatives of its outputs,"
    return _encode(values, FACTOR_BITS, LARGEST_FACTOR_BITS, what).astype(np.int32)


def encode_labels(labels: NDArray[np.int64], n_classes: int) -> NDArray[np.int64]:
    """2 y, (n, n_classes), as outputs are encoded: y is +1 for the class of a row and -1 for the others."""
    doubled = np.full((len(labels), n_classes), -2 << OUTPUT_BITS, dtype=np.int64)
    doubled[np.arange(len(labels)), labels] = 2 << OUTPUT_BITS
    return doubled


def as_factors(encoded: NDArray[np.int64]) -> NDArray[np.int64]:
    """Encoded outputs with the fraction bits of factors, rounded."""
    shift = OUTPUT_BITS - FACTOR_BITS
    return (encoded + (1 << (shift - 1))) >> shift


def decode_sums(sums: NDArray[np.object_]) -> NDArray[np.float64]:
    """Sums of residuals times factors, Python integers, as doubles (each rounded once)."""
    return np.ldexp(sums.astype(np.float64), -(OUTPUT_BITS + FACTOR_BITS))


def _encode(values: Floats, bits: int, largest: int, what: str) -> Floats:
    reach = float(np.abs(values).max(initial=0.0))
    if not reach < 2.0**largest:
        raise OverflowError(
            f"{what} reach {reach:g}, encryption at a fixed scale takes less than 2**{largest}: scale the columns, "
            "or lower the learning rate"
        )
    return np.asarray(np.rint(np.ldexp(values.astype(np.float64, copy=False), bits)))
