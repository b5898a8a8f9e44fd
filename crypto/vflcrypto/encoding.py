"""Fixed-point encoding: a real x becomes the integer round(x * 2**fraction_bits), negative ones modulo n.

The scale comes from the type of the input or from an argument, never from the values: an exponent that follows the
values would be public and would tell their size. Integers are exact. A float that would lose more than 1e-9 of its
value raises and says which scale would do. A bound on what a plaintext can be travels with every array; it too
follows the type (or an argument), so it says nothing about the values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import words as wide
from .errors import BoundOverflowError, PrecisionError
from .words import Words

# Of floats, unless said otherwise. Magnitudes down to 2**-67 (7e-21) keep nine digits, 0.1 keeps every bit of its
# double; a 2048-bit key then has room for a dozen products in a row.
FRACTION_BITS = 96
# Floats up to 2**64 share one bound. Larger ones step up 64 bits at a time: `bound=` avoids even that hint.
INTEGER_BITS = 64
RELATIVE_LOSS = 1e-9
_DOUBLE_DIGITS = 53

Shape = tuple[int, ...]


@dataclass(frozen=True)
class FixedPoint:
    """How integers stand for numbers: value = integer / 2**fraction_bits; exact integers decrypt to integers."""

    fraction_bits: int = 0
    is_integer: bool = True

    def merged(self, other: "FixedPoint") -> "FixedPoint":
        """The encoding of a sum: the finer scale, integer only if both are."""
        bits = max(self.fraction_bits, other.fraction_bits)
        return FixedPoint(bits, self.is_integer and other.is_integer)

    def times(self, other: "FixedPoint") -> "FixedPoint":
        """The encoding of a product: fraction bits add up."""
        bits = self.fraction_bits + other.fraction_bits
        return FixedPoint(bits, self.is_integer and other.is_integer)


@dataclass(frozen=True)
class Encoded:
    """A plain array in fixed point.

    words : ndarray of uint64, shape (size, n_words), two's complement, in C order of `shape`
    bound : no encoded magnitude is larger; from the type or an argument, never from the values
    """

    words: Words
    shape: Shape
    encoding: FixedPoint
    bound: int

    def largest(self) -> int:
        """The largest magnitude that really occurs. Private to the caller, unlike `bound`."""
        magnitude, _ = wide.absolute(self.words)
        if len(magnitude) == 0:
            return 0
        return max(wide.to_ints(_largest_row(magnitude), signed=False))


def _largest_row(magnitude: Words) -> Words:
    """The rows that share the largest value, cut down word by word to few."""
    rows = magnitude
    for i in reversed(range(rows.shape[1])):
        rows = rows[rows[:, i] == rows[:, i].max()]
    return rows[:1]


def encode(
    values: ArrayLike,
    *,
    fraction_bits: int | None = None,
    bound: float | None = None,
    capacity: int,
) -> Encoded:
    """Encode numbers of any shape.

    Parameters
    ----------
    values : scalar, nested sequence or array of integers, booleans or floats
    fraction_bits : scale 2**fraction_bits; by default 0 for integers (exact) and FRACTION_BITS for floats
    bound : no value is larger than this in magnitude; by default from the type
    capacity : largest integer magnitude the key can hold

    Raises
    ------
    TypeError : strings, None, complex numbers, dates, masked arrays, ciphertexts
    ValueError : NaN or infinity
    PrecisionError : a float would lose more than 1e-9 of its value
    BoundOverflowError : a value beyond `bound` or beyond the key
    """
    array = _as_numbers(values)
    if fraction_bits is not None and (isinstance(fraction_bits, bool) or int(fraction_bits) != fraction_bits):
        raise TypeError(f"fraction_bits must be an integer, got {fraction_bits!r}")
    if fraction_bits is not None and not 0 <= fraction_bits <= capacity.bit_length():
        raise ValueError(
            f"fraction_bits must be in 0..{capacity.bit_length()} for this key, got {fraction_bits}"
        )
    kind = array.dtype.kind
    is_integer = kind != "f" and not fraction_bits
    bits = fraction_bits if fraction_bits is not None else (FRACTION_BITS if kind == "f" else 0)
    flat = array.ravel()
    limit = _declared_bound(bound, int(bits)) if bound is not None else _bound_of(flat, int(bits))
    limit = min(limit, capacity)
    encode_flat = {"f": _encode_floats, "O": _encode_objects}.get(kind, _encode_integers)
    encoded = encode_flat(flat, int(bits), limit)
    return Encoded(encoded, array.shape, FixedPoint(int(bits), is_integer), limit)


def decode(words: Words, shape: Shape, encoding: FixedPoint) -> NDArray[Any]:
    """Signed words back to numbers: float64, or int64, or Python integers where int64 is too small."""
    if not encoding.is_integer:
        with np.errstate(over="ignore"):
            values = wide.to_float(words, encoding.fraction_bits)
        if not np.isfinite(values).all():
            raise BoundOverflowError("a decrypted number is larger than a double can be")
        return values.reshape(shape)
    magnitude, negative = wide.absolute(words)
    magnitude = magnitude.copy()
    magnitude[negative] = wide.subtract(magnitude[negative], wide.from_int(1, words.shape[1]))
    if not wide.exceeds(magnitude, 2**63 - 1).any():  # -2**63 counts as 2**63 - 1 here
        return np.ascontiguousarray(words[:, 0]).view(np.int64).reshape(shape)
    numbers = np.empty(len(words), dtype=object)
    numbers[:] = wide.to_ints(words)
    return numbers.reshape(shape)


def _as_numbers(values: ArrayLike) -> NDArray[Any]:
    """The input as an array of kind b, i, u, f (float64) or O (Python integers)."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError("masked arrays have missing values and cannot be encrypted: fill them first")
    if isinstance(values, (str, bytes)) or values is None:
        raise TypeError(f"cannot encrypt {type(values).__name__}: numbers only")
    array = np.asarray(values)
    kind = array.dtype.kind
    if kind == "f":
        if not isinstance(values, np.ndarray) and _all_integers(values):
            array = np.asarray(values, dtype=object)  # NumPy turns [-1, 2**63] into floats
            return _checked_integers(array)
        return _checked_floats(array)
    if kind in "biu":
        return array
    if kind == "O":
        if all(isinstance(value, (int, np.integer, np.bool_)) for value in array.flat):
            return _checked_integers(array)
        for value in array.flat:
            if not isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
                raise TypeError(f"cannot encrypt {type(value).__name__}: numbers only")
        return _checked_floats(array.astype(np.float64))
    raise TypeError(f"cannot encrypt values of dtype {array.dtype}: integers, booleans and floats only")


def _all_integers(values: ArrayLike) -> bool:
    if isinstance(values, Sequence):
        return len(values) > 0 and all(_all_integers(value) for value in values)
    return isinstance(values, (int, np.integer))


def _checked_integers(array: NDArray[Any]) -> NDArray[Any]:
    integers = np.empty(array.shape, dtype=object)
    integers.ravel()[:] = [int(value) for value in array.flat]
    return integers


def _checked_floats(array: NDArray[Any]) -> NDArray[np.float64]:
    doubles = array.astype(np.float64)
    bad = ~np.isfinite(doubles)
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"cannot encrypt NaN or infinity: {int(bad.sum())} such values, the first at {index}"
        )
    if (
        array.dtype.itemsize > 8
        and array.dtype.kind == "f"
        and not np.array_equal(doubles.astype(array.dtype), array)
    ):
        raise ValueError(f"values of {array.dtype} do not fit float64 exactly: convert them yourself")
    return doubles


def _declared_bound(bound: float, bits: int) -> int:
    if isinstance(bound, bool) or not isinstance(bound, (int, float, np.integer, np.floating)):
        raise TypeError(f"bound must be a number, got {type(bound).__name__}")
    if isinstance(bound, (int, np.integer)):
        scaled = int(bound) << bits
    elif not np.isfinite(bound):
        raise ValueError("bound must be finite")
    else:
        scaled = -int(-Fraction(float(bound)) * 2**bits // 1)  # ceiling
    if scaled <= 0:
        raise ValueError("bound must be positive")
    return scaled


def _bound_of(flat: NDArray[Any], bits: int) -> int:
    """A bound that follows from the type. Only beyond 64 bits does it follow the values, 64 bits at a time."""
    kind = flat.dtype.kind
    if kind == "b":
        return 1 << bits
    if kind in "iu":
        info = np.iinfo(flat.dtype)
        return max(-int(info.min), int(info.max)) << bits
    if kind == "O":
        magnitude_bits = max((abs(value).bit_length() for value in flat), default=0)
    else:
        magnitude_bits = int(np.frexp(np.abs(flat).max(initial=0.0))[1])
    steps = max(1, -(-magnitude_bits // INTEGER_BITS))
    return 1 << (steps * INTEGER_BITS + bits)


def _overflow(needed_bits: int, limit: int) -> BoundOverflowError:
    return BoundOverflowError(
        f"a value needs {needed_bits} bits (sign apart), its bound or the key allows {limit.bit_length()}: "
        "a larger key, fewer fraction_bits, or a larger bound"
    )


def _encode_integers(flat: NDArray[Any], bits: int, limit: int) -> Words:
    n_words = wide.words_for(limit.bit_length() + 1)
    if flat.dtype.kind == "u" and flat.dtype.itemsize == 8:
        narrow = np.zeros((len(flat), 2), dtype=np.uint64)
        narrow[:, 0] = flat
    else:
        narrow = wide.from_int64(flat.astype(np.int64))
    if limit < _bound_of(flat, bits):  # the type promises less than this
        magnitude, _ = wide.absolute(wide.resize(narrow, 2))
        _check_limit(magnitude, bits, limit)
    return wide.shift_left(wide.resize(narrow, n_words), bits)


def _check_limit(magnitude: Words, bits: int, limit: int) -> None:
    too_large = wide.exceeds(magnitude, limit >> bits)
    if too_large.any():
        raise _overflow(wide.bit_length(magnitude[too_large]) + bits, limit)


def _encode_objects(flat: NDArray[Any], bits: int, limit: int) -> Words:
    n_words = wide.words_for(limit.bit_length() + 1)
    largest = max((abs(value) for value in flat), default=0)
    if largest << bits > limit:
        raise _overflow(largest.bit_length() + bits, limit)
    return wide.from_ints([value << bits for value in flat], n_words)


def _encode_floats(flat: NDArray[np.float64], bits: int, limit: int) -> Words:
    """round(x * 2**bits), half to even: 53 digits of each double, shifted to their place."""
    mantissa, exponent = np.frexp(np.abs(flat))
    digits = np.ldexp(mantissa, _DOUBLE_DIGITS).astype(np.uint64)
    shift = exponent.astype(np.int64) - _DOUBLE_DIGITS + bits
    needed = int(exponent.max(initial=-(2**20), where=digits != 0)) + bits
    if needed > limit.bit_length():
        raise _overflow(needed, limit)
    rounded = _shift_right_rounded(digits, np.clip(-shift, 0, None))
    _check_precision(digits, rounded, exponent, np.clip(-shift, 0, None), bits)
    n_words = wide.words_for(limit.bit_length() + 1)
    out = np.zeros((len(flat), n_words), dtype=np.uint64)
    index, offset = np.divmod(np.clip(shift, 0, None), wide.WORD_BITS)
    rows, offset = np.arange(len(flat)), offset.astype(np.uint64)
    index = np.where(digits == 0, 0, index)
    out[rows, index] = rounded << offset
    spill = (index + 1 < n_words) & (offset > 0)
    out[rows[spill], index[spill] + 1] = rounded[spill] >> (np.uint64(wide.WORD_BITS) - offset[spill])
    if wide.exceeds(out, limit).any():
        raise _overflow(wide.bit_length(out), limit)
    negative = flat < 0
    out[negative] = wide.negate(out[negative])
    return out


def _shift_right_rounded(digits: Words, shift: NDArray[np.int64]) -> Words:
    """digits / 2**shift rounded half to even."""
    safe = np.clip(shift, 0, wide.WORD_BITS - 1).astype(np.uint64)
    quotient = digits >> safe
    rest = digits - (quotient << safe)
    half = np.where(safe > 0, np.uint64(1) << (np.maximum(safe, np.uint64(1)) - np.uint64(1)), np.uint64(0))
    up = (safe > 0) & ((rest > half) | ((rest == half) & (quotient & np.uint64(1) == 1)))
    return np.where(shift < wide.WORD_BITS, quotient + up.astype(np.uint64), np.uint64(0))


def _check_precision(
    digits: Words, rounded: Words, exponent: NDArray[Any], shift: NDArray[np.int64], bits: int
) -> None:
    kept = np.ldexp(rounded.astype(np.float64), np.minimum(shift, 2000))
    exact = digits.astype(np.float64)
    lossy = np.abs(exact - kept) > RELATIVE_LOSS * exact
    if lossy.any():
        smallest = int(exponent[lossy].min())
        raise PrecisionError(
            f"{int(lossy.sum())} values would lose more than 1e-9 of themselves at fraction_bits={bits} (steps of "
            f"2**-{bits}, the smallest value is near 2**{smallest - 1}): fraction_bits={30 - smallest} would do"
        )
