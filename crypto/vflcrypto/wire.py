"""Ciphertext arrays as bytes: a checked header, then plain integers of one fixed width.

    magic  version  kind  ndim  fraction_bits | n_rows  layout  key_bits | fingerprint | shape | bound | payload

All numbers are little-endian. A ciphertext is the integer itself (never a Montgomery form), as wide as the key asks
for, so equal shapes give equal lengths. Nothing is allocated before the lengths agree.
"""

import struct
from io import BytesIO
from math import gcd, prod
from typing import TYPE_CHECKING

import numpy as np

from .batches import run, thread_count
from .encoding import FixedPoint
from .errors import DamagedCiphertextError, KeyMismatchError, NotFreshError
from .kernels import Elements, Ring
from .packing import Packing, PackingPlan, plan_packing
from .slots import MAX_COUNTS, MAX_SIGNED, MAX_WEIGHTS, SlotPlan, plan_slots

if TYPE_CHECKING:
    from .ciphertexts import CiphertextArray
    from .paillier import PublicKey

MAGIC = b"VFLC"
VERSION = 1
_INTEGER, _FLOAT, _PACKED_ROWS, _PACKED_SUMS, _SLOT_ROWS, _SLOT_SUMS = range(6)
_HEAD = struct.Struct("<4sBBHIQII32s")
_MAX_DIMENSIONS = 16
_MAX_SIZE = 1 << 48
_CHUNK_BYTES = 1 << 20


def chunk_size(ring: Ring) -> int:
    """Values handled together: keeps temporary memory small beside a large array. A multiple of eight."""
    return max(64, _CHUNK_BYTES // (ring.row_bytes) // 8 * 8)


def to_bytes(array: "CiphertextArray", n_jobs: int = 1) -> bytes:
    """The array as bytes; NotFreshError unless it is fresh or exactly as received."""
    if array.freshness is None and not array.received:
        raise NotFreshError(
            "this array was computed from other ciphertexts and is not freshly blinded: "
            "call rerandomize() before it leaves (the key owner could tell what was combined)"
        )
    return unchecked_bytes(array, n_jobs)


def unchecked_bytes(array: "CiphertextArray", n_jobs: int = 1) -> bytes:
    """The array as bytes whether fresh or not; for use inside one party only."""
    ring, header = array.public_key.ring, _header(array)
    width, begin = ring.row_bytes, len(header)
    out = BytesIO()  # gives its bytes away without a copy
    out.seek(begin + array.size * width - 1)
    out.write(b"\0")
    out.seek(0)
    out.write(header)
    with out.getbuffer() as view:

        def write(start: int, stop: int) -> None:
            view[begin + start * width : begin + stop * width] = ring.to_bytes(array.elements[start:stop])

        run(write, _chunks(array.size, ring), thread_count(n_jobs))
    return out.getvalue()


def _header(array: "CiphertextArray") -> bytes:
    encoding, key = array.encoding, array.public_key
    if isinstance(encoding, FixedPoint):
        kind = _INTEGER if encoding.is_integer else _FLOAT
        fields = (encoding.fraction_bits, 0, 0, 0)
    else:
        # Rows or sums, but not of how many: the fullest bin is the sender's secret.
        rows, sums = (
            (_SLOT_ROWS, _SLOT_SUMS) if isinstance(encoding, SlotPlan) else (_PACKED_ROWS, _PACKED_SUMS)
        )
        kind = rows if array.terms == 1 else sums
        fields = (encoding.fraction_bits, encoding.n_rows, _layout(encoding), encoding.key_bits)
    head = _HEAD.pack(MAGIC, VERSION, kind, len(array.shape), *fields, key.fingerprint)
    shape = struct.pack(f"<{len(array.shape)}Q", *array.shape)
    return head + shape + array.bound.to_bytes(8 * key.ring.words, "little")


def from_bytes(
    data: bytes | bytearray | memoryview, public_key: "PublicKey", n_jobs: int = 1
) -> "CiphertextArray":
    """Read and check an array. It is not fresh, but may be sent on unchanged.

    Raises
    ------
    KeyMismatchError : made under another key
    DamagedCiphertextError : anything else that is wrong
    """
    from .ciphertexts import CiphertextArray

    view = memoryview(data).cast("B")
    ring = public_key.ring
    if len(view) < _HEAD.size:
        raise DamagedCiphertextError(
            f"{len(view)} bytes are too few for a ciphertext array: at least {_HEAD.size}"
        )
    magic, version, kind, ndim, *fields, fingerprint = _HEAD.unpack_from(view)
    if magic != MAGIC:
        raise DamagedCiphertextError("these bytes are not a ciphertext array")
    if version != VERSION:
        raise DamagedCiphertextError(f"ciphertext array of version {version}, this program reads {VERSION}")
    if fingerprint != public_key.fingerprint:
        raise KeyMismatchError(
            f"the array belongs to key {fingerprint[:8].hex()}, not to {public_key.fingerprint[:8].hex()}"
        )
    encoding, terms = _read_encoding(kind, fields, public_key)
    shape, bound, start = _read_shape_and_bound(view, ndim, public_key)
    count, width = prod(shape), ring.row_bytes
    if len(view) - start != count * width:
        raise DamagedCiphertextError(
            f"{count} ciphertexts of {width} bytes take {count * width} bytes, got {len(view) - start}"
        )
    return CiphertextArray(
        public_key,
        _read_elements(view[start:], count, ring, n_jobs),
        shape=shape,
        encoding=encoding,
        bound=bound,
        terms=terms,
        received=True,
    )


def _read_encoding(kind: int, fields: list[int], public_key: "PublicKey") -> tuple[FixedPoint | Packing, int]:
    fraction_bits, n_rows, layout, key_bits = fields
    if kind in (_INTEGER, _FLOAT):
        if fraction_bits > public_key.key_bits or any((n_rows, layout, key_bits)):
            raise DamagedCiphertextError("the encoding in the header is damaged")
        return FixedPoint(fraction_bits, kind == _INTEGER), 1
    if kind not in (_PACKED_ROWS, _PACKED_SUMS, _SLOT_ROWS, _SLOT_SUMS):
        raise DamagedCiphertextError(f"unknown kind of encoding {kind}")
    if not 0 < key_bits <= public_key.key_bits or not 0 < layout < _MAX_SIZE:
        raise DamagedCiphertextError("the packing in the header does not belong to this key")
    try:
        plan = _read_plan(kind, *fields) if fraction_bits < 64 else None
    except ValueError as error:
        raise DamagedCiphertextError("the packing in the header is impossible") from error
    if plan is None:
        raise DamagedCiphertextError("the packing in the header is impossible")
    return plan, 1 if kind in (_PACKED_ROWS, _SLOT_ROWS) else plan.n_rows


def _layout(plan: Packing) -> int:
    """What a row holds, as the header says it: the outputs, or the three kinds of slots side by side."""
    if isinstance(plan, SlotPlan):
        return (plan.n_signed * (MAX_WEIGHTS + 1) + plan.n_weights) * (MAX_COUNTS + 1) + plan.n_counts
    assert isinstance(plan, PackingPlan)
    return plan.n_outputs


def _read_plan(kind: int, fraction_bits: int, n_rows: int, layout: int, key_bits: int) -> Packing:
    """The plan of a header; ValueError where there is none."""
    if kind in (_PACKED_ROWS, _PACKED_SUMS):
        return plan_packing(n_rows, layout, fraction_bits, key_bits)
    signed_and_weights, n_counts = divmod(layout, MAX_COUNTS + 1)
    n_signed, n_weights = divmod(signed_and_weights, MAX_WEIGHTS + 1)
    return plan_slots(
        n_rows,
        n_signed=min(n_signed, MAX_SIGNED + 1),
        n_weights=n_weights,
        n_counts=n_counts,
        fraction_bits=fraction_bits,
        key_bits=key_bits,
    )


def _read_shape_and_bound(
    view: memoryview, ndim: int, public_key: "PublicKey"
) -> tuple[tuple[int, ...], int, int]:
    if ndim > _MAX_DIMENSIONS:
        raise DamagedCiphertextError(f"an array of {ndim} dimensions, at most {_MAX_DIMENSIONS} are allowed")
    bound_bytes = 8 * public_key.ring.words
    start = _HEAD.size + 8 * ndim
    if len(view) < start + bound_bytes:
        raise DamagedCiphertextError("the header is cut short")
    shape = struct.unpack_from(f"<{ndim}Q", view, _HEAD.size)
    if prod(size for size in shape if size) >= _MAX_SIZE:
        raise DamagedCiphertextError(f"the header claims {prod(shape)} ciphertexts")
    bound = int.from_bytes(view[start : start + bound_bytes], "little")
    if not 0 < bound <= public_key.capacity:
        raise DamagedCiphertextError("the bound in the header is beyond the key")
    return shape, bound, start + bound_bytes


def _chunks(count: int, ring: Ring) -> list[tuple[int, int]]:
    step = chunk_size(ring)
    return [(start, min(start + step, count)) for start in range(0, count, step)]


def _read_elements(payload: memoryview, count: int, ring: Ring, n_jobs: int) -> Elements:
    """Plain integers to elements, each checked to lie in (0, n^2) and to be invertible."""
    width = ring.row_bytes
    elements = np.empty((count, 2 * ring.words), dtype=np.uint64)

    def read(start: int, stop: int) -> None:
        part = payload[start * width : stop * width]
        try:
            # bytes(): the kernels want aligned memory, and a payload may begin anywhere.
            elements[start:stop] = ring.from_bytes(bytes(part), stop - start)
        except ValueError:
            index = start + _first_too_large(part, ring)
            raise DamagedCiphertextError(
                f"ciphertext {index} is not below the square of the modulus"
            ) from None

    run(read, _chunks(count, ring), thread_count(n_jobs))
    check_units(ring, elements, n_jobs)
    return elements


def _first_too_large(payload: memoryview, ring: Ring) -> int:
    width = ring.row_bytes
    values = (int.from_bytes(payload[i : i + width], "little") for i in range(0, len(payload), width))
    return next(index for index, value in enumerate(values) if value >= ring.modulus**2)


def check_units(ring: Ring, elements: Elements, n_jobs: int = 1) -> None:
    """One gcd for the whole batch: every ciphertext must be coprime to n. Zero is caught here too."""
    count = len(elements)
    if count == 0:
        return
    ends = np.array([0, count], dtype=np.int64)
    everything = np.arange(count, dtype=np.int64)
    product = ring.to_ints(ring.product_segments(elements, ends, everything, n_jobs=n_jobs))[0]
    if gcd(product, ring.modulus) == 1:
        return
    for index in range(count):
        if gcd(ring.to_ints(elements[index : index + 1])[0], ring.modulus) != 1:
            raise DamagedCiphertextError(
                f"ciphertext {index} shares a factor with the modulus: it cannot be one"
            )
    raise DamagedCiphertextError("the ciphertexts cannot be checked: arithmetic disagrees with itself")
