"""CiphertextArray: an encrypted array of any shape, in one contiguous buffer, without a Python object per value.

It adds like an array and multiplies by plain numbers. Two things travel with it: a bound on what the plaintexts can
be, so an overflow raises at the operation that causes it; and its freshness. Only encrypt() and rerandomize() make
fresh arrays (index, reshape and concatenate keep it); what is not fresh cannot be turned into bytes.
"""

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import products, wire
from . import words as wide
from .coefficients import is_sparse
from .encoding import Encoded, FixedPoint, encode
from .errors import BoundOverflowError, KeyMismatchError, SlotOverflowError
from .kernels import Elements
from .noise import HALF, WIDE, check_noise
from .packing import Packing, check_terms
from .refusals import NO_PRODUCT, NO_QUOTIENT, Refusals
from .shapes import Shape, broadcast, checked_axis, checked_segments, segments_of_bins

if TYPE_CHECKING:
    from .paillier import PublicKey

_FRESHNESS = (None, HALF, WIDE)
_ADD_ONLY = "packed values can only be added up and compressed, not {}"


class CiphertextArray(Refusals):
    """Encrypted numbers under one public key. Made by `encrypt`, `encrypt_words` and `from_bytes`.

    Attributes
    ----------
    public_key : PublicKey
    elements : ndarray of uint64, shape (size, 2 * words); Montgomery form of the key's backend
    shape : tuple of int
    encoding : FixedPoint, or the Packing of packed rows
    bound : int; no plaintext is larger in magnitude (as an encoded integer)
    terms : int; how many packed rows were added up (1 for everything else)
    freshness : None, "half" or "wide"
    received : whether the bytes are still exactly those that from_bytes was given
    """

    # NumPy then leaves `array + c`, `array * c` and `array @ c` to us.
    __array_ufunc__ = None
    __array_priority__ = 1000.0

    def __init__(
        self,
        public_key: "PublicKey",
        elements: Elements,
        *,
        shape: Shape,
        encoding: FixedPoint | Packing,
        bound: int,
        terms: int = 1,
        freshness: str | None = None,
        received: bool = False,
    ) -> None:
        if len(elements) != prod(shape):
            raise ValueError(f"shape {shape} needs {prod(shape)} ciphertexts, got {len(elements)}")
        self.public_key = public_key
        self.elements = elements
        self.shape = shape
        self.encoding = encoding
        self.bound = bound
        self.terms = terms
        self.freshness = freshness
        self.received = received

    def _replace(self, **changes: Any) -> "CiphertextArray":
        """A copy with some attributes changed; it shares the buffer and is no longer `received`."""
        fields = ("shape", "encoding", "bound", "terms", "freshness")
        state = {name: getattr(self, name) for name in fields}
        elements = changes.pop("elements", self.elements)
        return CiphertextArray(self.public_key, elements, **{**state, **changes})

    # ---- as an array ----

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return len(self.elements)

    @property
    def nbytes(self) -> int:
        """Bytes of the buffer."""
        return self.elements.nbytes

    @property
    def T(self) -> "CiphertextArray":
        """The array with its axes reversed."""
        order = np.arange(self.size).reshape(self.shape).T.ravel()
        return self._replace(elements=self.elements[order], shape=self.shape[::-1])

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an encrypted scalar")
        return self.shape[0]

    def __repr__(self) -> str:
        key = self.public_key.fingerprint[:4].hex()
        return f"CiphertextArray(shape={self.shape}, freshness={self.freshness!r}, key={key})"

    def __getitem__(self, key: Any) -> "CiphertextArray":
        """Select values as NumPy would; slices of the first axis share memory. Freshness is kept."""
        key = key if isinstance(key, tuple) else (key,)
        if not any(part is Ellipsis for part in key):
            key = (*key, Ellipsis)
        width = self.elements.shape[1]
        # The last axis holds the words of a value and must not be indexed by the caller.
        chosen = self.elements.reshape(*self.shape, width)[(*key, slice(None))]
        elements = np.ascontiguousarray(chosen).reshape(-1, width)
        return self._replace(elements=elements, shape=chosen.shape[:-1])

    def reshape(self, *shape: int | Sequence[int]) -> "CiphertextArray":
        """The same values in another shape; one size may be -1. Freshness is kept."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        order = np.empty(self.shape, dtype=np.bool_).reshape(wanted)  # type: ignore[arg-type]
        return self._replace(shape=order.shape)

    # ---- sending ----

    def rerandomize(self, noise: str = WIDE, n_jobs: int = 1) -> "CiphertextArray":
        """Blind every ciphertext anew, so that it shows nothing about how it was computed.

        Plaintext  unchanged.
        Fresh      yes, of the class asked for. WIDE ("wide") for receivers with the private key; HALF ("half") is
                   cheaper and enough for everybody else.
        Cost       one fixed-base exponentiation and one multiplication per value; only the latter where the key has
                   an active pool of this class (see pool.py).
        Timing     constant-time table reads; depends on sizes only.
        Raises     ValueError (noise).
        Source     Damgard, Jurik, Nielsen 2010; see noise.py for the two repairs.
        """
        check_noise(noise)
        ring, step = self.public_key.ring, wire.chunk_size(self.public_key.ring)
        out = np.empty_like(self.elements)
        for start in range(0, self.size, step):
            part = self.elements[start : start + step]
            factors = self.public_key.blinder.draw(len(part), noise, n_jobs)
            out[start : start + step] = ring.mul(part, factors, n_jobs=n_jobs)
        return self._replace(elements=out, freshness=self.public_key.noise.freshness(noise))

    def to_bytes(self, n_jobs: int = 1) -> bytes:
        """Header and plain integers of one width. NotFreshError for arrays that were computed and not rerandomized.

        What from_bytes gave and nobody touched is written again byte for byte.
        """
        return wire.to_bytes(self, n_jobs)

    @classmethod
    def from_bytes(
        cls, data: bytes | bytearray | memoryview, public_key: "PublicKey", n_jobs: int = 1
    ) -> "CiphertextArray":
        """Read what to_bytes wrote; every length, the key and every ciphertext are checked. The result is not fresh.

        Raises KeyMismatchError for another key, DamagedCiphertextError (both ValueErrors) for anything else.
        """
        return wire.from_bytes(data, public_key, n_jobs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles, for worker processes of one party: the validated bytes, and the freshness beside them."""
        return _unpickled, (
            wire.unchecked_bytes(self),
            self.public_key,
            self.freshness,
            self.received,
            self.terms,
        )

    def __copy__(self) -> "CiphertextArray":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "CiphertextArray":
        return self

    # ---- arithmetic ----

    def __add__(self, other: Any) -> "CiphertextArray":
        """Add ciphertexts or plain numbers, elementwise with broadcasting.

        Plaintext  scales are aligned to the finer one; the bound grows by the other's.
        Fresh      no.
        Cost       one multiplication modulo n^2 per value; aligning scales costs a squaring per bit.
        Timing     depends on shapes and scales, not on plaintexts.
        Raises     BoundOverflowError, SlotOverflowError, KeyMismatchError, TypeError, ValueError (shapes).
        Source     Paillier 1999, additive homomorphism.
        """
        return self.add(other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> "CiphertextArray":
        if isinstance(other, CiphertextArray):
            return self.add(-other)
        return self._add_plain(other, 1, subtract=True)

    def __rsub__(self, other: Any) -> "CiphertextArray":
        return (-self).add(other)

    def __pos__(self) -> "CiphertextArray":
        return self

    def __neg__(self) -> "CiphertextArray":
        """Change every sign. Not fresh; one batched inversion, about three multiplications per value."""
        self._fixed_point("negated")
        return self._replace(elements=self.public_key.ring.inverse(self.elements), freshness=None)

    def __mul__(self, other: Any) -> "CiphertextArray":
        return self.multiply(other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "CiphertextArray":
        if isinstance(other, CiphertextArray):
            raise TypeError(NO_QUOTIENT)
        with np.errstate(divide="ignore"):  # the infinity is refused by name
            return self.multiply(1.0 / np.asarray(other, dtype=np.float64))

    def __matmul__(self, other: Any) -> "CiphertextArray":
        """c @ plain, as (plain.T @ c.T).T; see dot()."""
        if isinstance(other, CiphertextArray):
            raise TypeError(NO_PRODUCT)
        return self.T.dot((other if is_sparse(other) else np.asarray(other)).T).T

    def __rmatmul__(self, other: Any) -> "CiphertextArray":
        return self.dot(other)

    def add(self, other: Any, n_jobs: int = 1) -> "CiphertextArray":
        """The sum, with threads; see __add__."""
        if isinstance(other, CiphertextArray):
            return self._add_ciphertexts(other, n_jobs)
        return self._add_plain(other, n_jobs)

    def _add_ciphertexts(self, other: "CiphertextArray", n_jobs: int) -> "CiphertextArray":
        other = self._same_ring(other)
        a, b, encoding = _aligned(self, other, n_jobs)
        bound = self._checked_bound(a.bound + b.bound, "a sum", a.bound, b.bound)
        terms = 1
        if isinstance(encoding, Packing):
            bound, terms = encoding.bound, check_terms(encoding, a.terms + b.terms)
        left, right, shape = broadcast(a.elements, a.shape, b.elements, b.shape)
        product = self.public_key.ring.mul(left, right, n_jobs=n_jobs)
        return CiphertextArray(
            self.public_key, product, shape=shape, encoding=encoding, bound=bound, terms=terms
        )

    def _add_plain(self, other: Any, n_jobs: int, *, subtract: bool = False) -> "CiphertextArray":
        encoding = self._fixed_point("added to plain numbers")
        plain = self._encode_plain(other)
        bits = max(encoding.fraction_bits, plain.encoding.fraction_bits)
        scaled = self._at_scale(bits, n_jobs)
        up = bits - plain.encoding.fraction_bits
        plain_bound = plain.bound << up
        bound = self._checked_bound(scaled.bound + plain_bound, "a sum", scaled.bound, plain_bound)
        n_words = self.public_key.ring.words + 1
        shifted = wide.shift_left(wide.resize(plain.words, n_words), up)
        messages = wide.residues(wide.negate(shifted) if subtract else shifted, self.public_key.n)
        left, right, shape = broadcast(scaled.elements, self.shape, messages, plain.shape)
        if len(right) != len(left):
            left, right = (
                np.broadcast_to(left, (prod(shape), left.shape[1])),
                np.broadcast_to(right, (prod(shape), right.shape[1])),
            )
        total = self.public_key.ring.mul_one_plus_mk(
            np.ascontiguousarray(left), np.ascontiguousarray(right), n_jobs=n_jobs
        )
        merged = FixedPoint(bits, encoding.is_integer and plain.encoding.is_integer)
        return CiphertextArray(self.public_key, total, shape=shape, encoding=merged, bound=bound)

    def multiply(
        self, plain: ArrayLike, *, fraction_bits: int | None = None, n_jobs: int = 1
    ) -> "CiphertextArray":
        """Multiply by plain numbers, elementwise with broadcasting.

        Plaintext  fraction bits add up: those of self and of `plain` (its default, or fraction_bits). The bound grows
                   by a scalar's own size, by an array's type.
        Fresh      no; a factor 0 gives an encryption of 0 that anybody can recognise until it is rerandomized.
        Cost       one exponentiation per value, as long as the largest factor.
        Timing     depends on the plain numbers, not on the plaintexts under encryption.
        Raises     BoundOverflowError, PrecisionError, TypeError (a ciphertext, no number), ValueError (shapes, NaN).
        Source     Paillier 1999, multiplication by a constant.
        """
        encoding = self._fixed_point("multiplied")
        factor = self._encode_plain(plain, fraction_bits)
        factor_bound = self._factor_bound(factor)
        bound = self._checked_bound(self.bound * factor_bound, "a product", self.bound, factor_bound)
        magnitude, negative = wide.absolute(factor.words)
        magnitude = magnitude[:, : wide.words_for(wide.bit_length(magnitude))]
        bases, exponents, shape = broadcast(self.elements, self.shape, magnitude, factor.shape)
        if len(bases) != prod(shape):
            bases = np.repeat(bases, prod(shape), axis=0)
        bases = self._inverted_where(
            bases, np.broadcast_to(negative.reshape(factor.shape), shape).ravel(), n_jobs
        )
        exponents = np.ascontiguousarray(exponents)
        power = self.public_key.ring.pow_vartime(bases, exponents, n_jobs=n_jobs)
        return CiphertextArray(
            self.public_key, power, shape=shape, encoding=encoding.times(factor.encoding), bound=bound
        )

    def dot(
        self, plain: ArrayLike, *, fraction_bits: int | None = None, n_jobs: int = 1
    ) -> "CiphertextArray":
        """plain @ self: linear combinations of ciphertexts.

        Plaintext  fraction bits add up; the bound grows by the type of `plain` and by the number of terms.
        Fresh      no.
        Cost       products.count_multiplications(plain) multiplications per column of self: 1.6 per term for 16-bit
                   factors that all differ (24,000 rows, 23 columns), about 1 where factors repeat.
        Timing     depends on `plain`, not on the plaintexts.
        Raises     BoundOverflowError, PrecisionError, TypeError, ValueError (shapes, NaN).
        Source     Pippenger's buckets and Straus' tables; see product_plans.py.

        Parameters
        ----------
        plain : array of shape (n,) or (m, n), or a SciPy sparse matrix; self has shape (n,) or (n, k)
        """
        return products.dot(self, plain, fraction_bits, n_jobs)

    # ---- sums ----

    def sum(self, axis: int | tuple[int, ...] | None = None, *, n_jobs: int = 1) -> "CiphertextArray":
        """Add up over all or some axes.

        Plaintext  same encoding; the bound grows by the number of terms.
        Fresh      no.
        Cost       one multiplication modulo n^2 per term.
        Timing     depends on shapes only.
        Raises     BoundOverflowError, SlotOverflowError, ValueError (axis).
        Source     Paillier 1999, additive homomorphism.
        """
        axes = range(self.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
        reduced = {checked_axis(a, self.ndim) for a in axes}
        kept = [a for a in range(self.ndim) if a not in reduced]
        shape = tuple(self.shape[a] for a in kept)
        count = prod(self.shape[a] for a in reduced)
        order = np.arange(self.size).reshape(self.shape).transpose([*kept, *sorted(reduced)]).ravel()
        indptr = np.arange(prod(shape) + 1, dtype=np.int64) * count
        product = self.public_key.ring.product_segments(self.elements, indptr, order, n_jobs=n_jobs)
        return self._sum_of(product, shape, count, count)

    def sum_rows(
        self, indptr: NDArray[np.integer], indices: NDArray[np.integer], n_jobs: int = 1
    ) -> "CiphertextArray":
        """Sums of chosen rows: out[s] adds self[i] for i in indices[indptr[s]:indptr[s+1]].

        Plaintext  same encoding; for packed arrays the longest segment counts against the slots.
        Fresh      no: rerandomize() before it leaves. The key owner can recover every r and could otherwise test
                   which rows were added.
        Cost       one multiplication modulo n^2 per index and trailing value.
        Timing     depends on the indices, not on plaintexts.
        Raises     SlotOverflowError, BoundOverflowError, ValueError (indices).
        Source     Paillier 1999, additive homomorphism.

        Parameters
        ----------
        indptr : integers, shape (n_segments + 1,), non-decreasing from 0
        indices : integers in [0, len(self)), shape (indptr[-1],)

        Returns
        -------
        CiphertextArray of shape (n_segments, *self.shape[1:])
        """
        n_rows = len(self)
        indptr, indices = checked_segments(indptr, indices, n_rows)
        lengths = np.diff(indptr)
        longest = int(lengths.max(initial=0))
        # In public only what the shapes tell: the fullest bin is the summing party's secret.
        public_terms = n_rows if longest <= n_rows else len(indices)
        width = self.elements.shape[1]
        trailing = self.shape[1:]
        per_row = prod(trailing)
        ring = self.public_key.ring
        out = np.empty((len(lengths), per_row, width), dtype=np.uint64)
        for k in range(per_row):
            chosen = indices if per_row == 1 else indices * per_row + k
            out[:, k] = ring.product_segments(self.elements, indptr, chosen, n_jobs=n_jobs)
        return self._sum_of(out.reshape(-1, width), (len(lengths), *trailing), longest, public_terms)

    def sum_by_bin(self, bins: ArrayLike, n_bins: int, n_jobs: int = 1) -> "CiphertextArray":
        """Add up, under encryption, the rows that share a bin.

        Plaintext  same encoding as self; a packed array takes at most as many terms as it was planned for.
        Fresh      no: rerandomize() before it leaves. The key owner can recover every r and could otherwise test
                   which rows were added.
        Cost       n * n_features multiplications modulo n^2; no exponentiation.
        Timing     depends on bins and sizes, not on plaintexts.
        Raises     SlotOverflowError, BoundOverflowError, TypeError, ValueError (shapes, bins out of range).
        Source     Paillier 1999, additive homomorphism.

        Parameters
        ----------
        bins : integers in [0, n_bins), shape (n,) or (n, n_features)

        Returns
        -------
        CiphertextArray of shape (n_bins, *self.shape[1:]) or (n_features, n_bins, *self.shape[1:])
        """
        bins = np.asarray(bins)
        if bins.ndim not in (1, 2) or not self.shape or len(bins) != len(self):
            raise ValueError(f"bins of shape {bins.shape} do not go with values of shape {self.shape}")
        indptr, order = segments_of_bins(bins, n_bins)
        sums = self.sum_rows(indptr, order, n_jobs=n_jobs)
        return sums if bins.ndim == 1 else sums.reshape(bins.shape[1], n_bins, *self.shape[1:])

    def compress(self, width_bits: int, per_ciphertext: int, n_jobs: int = 1) -> "CiphertextArray":
        """Join values side by side in one plaintext, by Horner: acc <- acc^(2^width_bits) * c.

        Plaintext  slots of width_bits, signed, the first value of a group highest; packing.split_slots cuts them.
        Fresh      no: rerandomize() before it leaves.
        Cost       width_bits squarings and one product per value.
        Timing     depends on sizes only.
        Raises     SlotOverflowError (a value could exceed its slot), BoundOverflowError, ValueError.
        Source     Horner's rule on Paillier 1999.

        Parameters
        ----------
        width_bits : width of a slot; every plaintext must be below 2**(width_bits - 1) in magnitude
        per_ciphertext : values per group

        Returns
        -------
        CiphertextArray of shape (ceil(size / per_ciphertext),)
        """
        if self.ndim != 1 or per_ciphertext < 1 or width_bits < 1:
            raise ValueError(
                f"compress takes a 1-d array and positive sizes, got shape {self.shape}, "
                f"width_bits={width_bits}, per_ciphertext={per_ciphertext}"
            )
        if self.bound >= 1 << (width_bits - 1):
            raise SlotOverflowError(
                f"values of {self.bound.bit_length()} bits and a sign need wider slots, got width_bits={width_bits}"
            )
        bound = self._checked_bound(1 << (width_bits * per_ciphertext - 1), "a compressed reply")
        starts = np.arange(0, self.size, per_ciphertext, dtype=np.int64)
        indptr = np.append(starts, self.size).astype(np.int64)
        joined = self.public_key.ring.horner(self.elements, indptr, width_bits, n_jobs=n_jobs)
        return CiphertextArray(
            self.public_key, joined, shape=(len(starts),), encoding=FixedPoint(), bound=bound
        )

    # ---- helpers ----

    def _fixed_point(self, operation: str) -> FixedPoint:
        if isinstance(self.encoding, Packing):
            raise TypeError(_ADD_ONLY.format(operation))
        return self.encoding

    @staticmethod
    def _refuse_ciphertext(values: Any) -> None:
        if isinstance(values, CiphertextArray):
            raise TypeError(NO_PRODUCT)

    def _encode_plain(self, values: Any, fraction_bits: int | None = None) -> Encoded:
        self._refuse_ciphertext(values)
        return encode(values, fraction_bits=fraction_bits, capacity=self.public_key.capacity)

    @staticmethod
    def _factor_bound(factor: Encoded) -> int:
        """A scalar factor counts with its own size (it is a constant of the program), an array with its type's."""
        return factor.bound if factor.shape else max(1, factor.largest())

    def _inverted_where(self, bases: Elements, negative: NDArray[np.bool_], n_jobs: int) -> Elements:
        if not negative.any():
            return bases
        bases = bases.copy()
        bases[negative] = self.public_key.ring.inverse(bases[negative], n_jobs=n_jobs)
        return bases

    def _at_scale(self, fraction_bits: int, n_jobs: int = 1) -> "CiphertextArray":
        """The same values with more fraction bits: multiplied by a power of two."""
        encoding = self._fixed_point("rescaled")
        up = fraction_bits - encoding.fraction_bits
        if up == 0:
            return self
        bound = self._checked_bound(self.bound << up, "aligning scales", self.bound, 1 << up)
        exponent = wide.from_int(1 << up, wide.words_for(up + 1)).reshape(1, -1)
        power = self.public_key.ring.pow_vartime(self.elements, exponent, n_jobs=n_jobs)
        return self._replace(
            elements=power,
            encoding=FixedPoint(fraction_bits, encoding.is_integer),
            bound=bound,
            freshness=None,
        )

    def _checked_bound(self, bound: int, operation: str, *parts: int) -> int:
        """The bound, or an error at the operation that could overflow."""
        if bound > self.public_key.capacity:
            sizes = " and ".join(str(part.bit_length()) for part in parts)
            detail = f" (from values of {sizes} bits)" if parts else ""
            raise BoundOverflowError(
                f"{operation} may need {bound.bit_length()} bits{detail}, "
                f"the key offers {self.public_key.capacity.bit_length()}: a larger key or fewer fraction bits"
            )
        return bound

    def _sum_of(self, elements: Elements, shape: Shape, terms: int, public_terms: int) -> "CiphertextArray":
        if isinstance(self.encoding, Packing):
            check_terms(self.encoding, self.terms * terms)
            # At least 2, so that even sums of single rows are written as sums: see wire._header.
            terms = max(self.terms * terms, min(2, self.encoding.n_rows))
            return self._replace(elements=elements, shape=shape, terms=terms, freshness=None)
        bound = self._checked_bound(
            self.bound * max(1, public_terms), f"a sum of {public_terms} terms", self.bound
        )
        return self._replace(elements=elements, shape=shape, bound=bound, freshness=None)

    def _same_ring(self, other: "CiphertextArray") -> "CiphertextArray":
        """`other` in this array's key object and backend; KeyMismatchError under another key."""
        mine, theirs = self.public_key, other.public_key
        if mine.fingerprint != theirs.fingerprint:
            raise KeyMismatchError(
                f"values under two keys cannot be combined: {mine.fingerprint[:8].hex()} "
                f"and {theirs.fingerprint[:8].hex()}"
            )
        return on_ring(other, mine)


def on_ring(array: CiphertextArray, public_key: "PublicKey") -> CiphertextArray:
    """The array with the elements of another key object for the same n, converted if its backend differs."""
    theirs, mine = array.public_key.ring, public_key.ring
    if theirs.backend == mine.backend:
        return array
    elements = mine.from_bytes(theirs.to_bytes(array.elements), array.size)
    return CiphertextArray(
        public_key,
        elements,
        shape=array.shape,
        encoding=array.encoding,
        bound=array.bound,
        terms=array.terms,
        freshness=array.freshness,
    )


def concatenate(arrays: Sequence[CiphertextArray], axis: int = 0) -> CiphertextArray:
    """Join arrays along an axis.

    Plaintext  scales are aligned to the finest; the largest bound holds.
    Fresh      as the least fresh of them (aligning a scale makes it not fresh).
    Cost       copying; aligning scales costs a squaring per bit and value.
    Timing     depends on shapes and scales.
    Raises     KeyMismatchError, TypeError (packed with another layout), ValueError (no arrays, shapes).
    Source     none.
    """
    if not arrays:
        raise ValueError("concatenate needs at least one array")
    first = arrays[0]
    joined = [first, *(first._same_ring(other) for other in arrays[1:])]
    if not all(other.encoding == first.encoding for other in joined):
        if any(isinstance(other.encoding, Packing) for other in joined):
            raise TypeError("packed arrays of different layouts cannot be joined")
        finest = max(other.encoding.fraction_bits for other in joined)
        joined = [other._at_scale(finest) for other in joined]
    width = first.elements.shape[1]
    elements = np.concatenate(
        [other.elements.reshape(*other.shape, width) for other in joined], axis=_axis(axis, first)
    )
    encoding = first.encoding
    if isinstance(encoding, FixedPoint):
        integer = all(
            isinstance(other.encoding, FixedPoint) and other.encoding.is_integer for other in joined
        )
        encoding = FixedPoint(joined[0].encoding.fraction_bits, integer)
    return CiphertextArray(
        first.public_key,
        elements.reshape(-1, width),
        shape=elements.shape[:-1],
        encoding=encoding,
        bound=max(other.bound for other in joined),
        terms=max(other.terms for other in joined),
        freshness=min((other.freshness for other in joined), key=_FRESHNESS.index),
    )


def _axis(axis: int, array: CiphertextArray) -> int:
    if array.ndim == 0:
        raise ValueError("encrypted scalars cannot be concatenated: reshape them first")
    return checked_axis(axis, array.ndim)


def _aligned(
    a: CiphertextArray, b: CiphertextArray, n_jobs: int
) -> tuple[CiphertextArray, CiphertextArray, FixedPoint | Packing]:
    """Both arrays at the finer of their scales."""
    if a.encoding == b.encoding:
        return a, b, a.encoding
    if isinstance(a.encoding, Packing) or isinstance(b.encoding, Packing):
        raise TypeError("packed values of different layouts cannot be added")
    merged = a.encoding.merged(b.encoding)
    return a._at_scale(merged.fraction_bits, n_jobs), b._at_scale(merged.fraction_bits, n_jobs), merged


def _unpickled(
    data: bytes, public_key: "PublicKey", freshness: str | None, received: bool, terms: int
) -> CiphertextArray:
    array = wire.from_bytes(data, public_key)
    array.freshness, array.received, array.terms = freshness, received, terms
    return array
