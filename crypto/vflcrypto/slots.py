"""Packing for forests: signed sums, sums of weights and counts side by side in one plaintext.

    slots of a row   = signed ..., weights ..., counts ...        as they are given and returned
    width of a count = bit_length(n)      of a weight = bit_length(n 2^B)      of a signed slot: one bit more

    value  = | signed ... | weights ... | counts ... |            one ciphertext of a row (or of a sum of rows)
    reply  = | value 0 | value 1 | ... | value r-1 |              as for gradients, see `packing`

n is how many rows, or draws of rows, one sum may take: a bootstrap sample holds a row as often as it was drawn.
Widths depend on n and the fraction bits B only, never on labels or weights, because they are public. Slots that do not
fit one ciphertext are spread evenly over several.
"""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from . import words as wide
from .errors import DecryptionError
from .packing import MAX_SUM_BITS, Packing, split_slots
from .words import Words

if TYPE_CHECKING:
    from .ciphertexts import CiphertextArray
    from .paillier import PrivateKey, PublicKey

MAX_SIGNED, MAX_WEIGHTS, MAX_COUNTS = 255, 4095, 4095  # what the header of an array has room for


@dataclass(frozen=True)
class SlotPlan(Packing):
    """The layout of packed slots; also the `encoding` of the arrays it makes. Use `plan_slots`."""

    n_rows: int
    n_signed: int
    n_weights: int
    n_counts: int
    fraction_bits: int
    key_bits: int

    @property
    def n_slots(self) -> int:
        """Numbers that a row holds."""
        return self.n_signed + self.n_weights + self.n_counts

    @property
    def widths(self) -> tuple[int, ...]:
        """Bits of each slot, in the order in which they are given."""
        count, weight = self.n_rows.bit_length(), (self.n_rows << self.fraction_bits).bit_length()
        return (weight + 1,) * self.n_signed + (weight,) * self.n_weights + (count,) * self.n_counts

    @property
    def columns(self) -> tuple[tuple[int, ...], ...]:
        """The slots in each ciphertext of a row, the lowest bits first: counts, weights, signed ones."""
        return _spread(self.widths, self.capacity_bits - 1)

    @property
    def ciphertexts_per_row(self) -> int:
        """Ciphertexts that the slots of one row take."""
        return len(self.columns)

    @property
    def value_bits(self) -> int:
        """Width of one packed value inside a reply: the fullest ciphertext of a row, and a sign."""
        return 1 + max(sum(self.widths[slot] for slot in column) for column in self.columns)

    def pack(self, values: NDArray[np.int64]) -> Words:
        """Pack the numbers of rows.

        Parameters
        ----------
        values : ndarray of int64, shape (n, n_slots)
            Signed ones in [-2**fraction_bits, 2**fraction_bits], weights in [0, 2**fraction_bits], counts 0 or 1.

        Returns
        -------
        ndarray of uint64, shape (n, ciphertexts_per_row, n_words), two's complement
        """
        values = self._checked(values)
        n_words = wide.words_for(self.value_bits + 1)
        packed = np.zeros((len(values), self.ciphertexts_per_row, n_words), dtype=np.uint64)
        for column, slots in enumerate(self.columns):
            offset, fields = 0, packed[:, column]
            for slot in slots:
                wide.or_field(fields, offset, (values[:, slot] + self._half(slot)).astype(np.uint64))
                offset += self.widths[slot]
            packed[:, column] = wide.subtract(fields, wide.from_int(self._bias(slots), n_words))
        return packed

    def encrypt(
        self, key: "PublicKey | PrivateKey", values: NDArray[np.int64], n_jobs: int = 1
    ) -> "CiphertextArray":
        """Pack and encrypt rows.

        Plaintext  one packed value per (row, ciphertext); sums of up to n_rows terms fit their slots.
        Fresh      yes: HALF under a public key, WIDE under a private one.
        Cost       n * ciphertexts_per_row encryptions.
        Timing     packing is not constant-time; the encryption is.
        Raises     ValueError (shapes, ranges, key size), TypeError (dtypes).
        Source     see the module.

        Returns
        -------
        CiphertextArray of shape (n, ciphertexts_per_row)
        """
        return self.encrypt_packed(key, self.pack(values), n_jobs)

    def unpack(self, words: Words, count: int) -> tuple[NDArray[np.int64], ...]:
        """Slots of a decrypted reply, an int64 array (count, 1) each.

        Parameters
        ----------
        words : ndarray of uint64, shape (n_replies, n_words), from PrivateKey.decrypt_words
        count : how many sums (rows of the array given to compress) the reply holds

        Raises
        ------
        ValueError : another number of ciphertexts than `count` sums take
        DecryptionError : bits beyond the slots are not zero
        """
        values = split_slots(words, self.value_bits, self.values_per_reply, count * self.ciphertexts_per_row)
        slots = self.unpack_values(values.reshape(count, self.ciphertexts_per_row, values.shape[1]))
        return tuple(slots[:, slot, None] for slot in range(self.n_slots))

    def unpack_values(self, values: Words) -> NDArray[np.int64]:
        """Slots of decrypted values that were not compressed, int64 (count, n_slots).

        values : ndarray of uint64, shape (count, ciphertexts_per_row, n_words), two's complement
        """
        out = np.empty((len(values), self.n_slots), dtype=np.int64)
        for column, slots in enumerate(self.columns):
            width = sum(self.widths[slot] for slot in slots)
            n_words = max(values.shape[2], wide.words_for(width + 1))
            bias = wide.from_int(self._bias(slots), n_words)
            fields = wide.add(wide.resize(values[:, column], n_words), bias)
            if wide.exceeds(fields, (1 << width) - 1).any():
                raise DecryptionError(
                    f"a decrypted sum has bits beyond its {len(slots)} slots of {width} bits: damaged or forged"
                )
            offset = 0
            for slot in slots:
                field = wide.get_field(fields, offset, self.widths[slot])
                out[:, slot] = field.astype(np.int64) - self._half(slot)
                offset += self.widths[slot]
        return out

    def _half(self, slot: int) -> np.int64:
        """Half the range of a signed slot: added, it makes the slot a plain field of bits."""
        return np.int64(1 << (self.widths[slot] - 1) if slot < self.n_signed else 0)

    def _bias(self, slots: tuple[int, ...]) -> int:
        """`_half` of every slot, each at its place."""
        offset, bias = 0, 0
        for slot in slots:
            bias += int(self._half(slot)) << offset
            offset += self.widths[slot]
        return bias

    def _checked(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        values = np.asarray(values)
        if values.dtype.kind not in "iu":
            raise TypeError(f"slots hold fixed-point integers, got dtype {values.dtype}")
        if values.ndim != 2 or values.shape[1] != self.n_slots:
            raise ValueError(f"values have shape {values.shape}, the plan has {self.n_slots} slots per row")
        if len(values) > self.n_rows:
            raise ValueError(f"{len(values)} rows, but the packing was planned for {self.n_rows}")
        one = 1 << self.fraction_bits
        high = np.array([one] * (self.n_signed + self.n_weights) + [1] * self.n_counts)
        low = np.array([-one] * self.n_signed + [0] * (self.n_weights + self.n_counts))
        wrong = ((values < low) | (values > high)).any(axis=0)
        if wrong.any():
            slot = int(wrong.argmax())
            raise ValueError(f"slot {slot} must lie in [{low[slot]}, {high[slot]}]: scale it first")
        return values.astype(np.int64, copy=False)


def plan_slots(
    n_rows: int,
    *,
    n_signed: int = 0,
    n_weights: int = 0,
    n_counts: int = 0,
    fraction_bits: int = 0,
    key_bits: int = 3072,
) -> SlotPlan:
    """Lay out the plaintexts for sums of up to n_rows terms.

    Raises
    ------
    ValueError : no slot or too many, sums that would not fit 62 bits, or a slot that does not fit the key
    """
    for name, value, lowest, highest in (
        ("n_rows", n_rows, 1, 1 << MAX_SUM_BITS),
        ("n_signed", n_signed, 0, MAX_SIGNED),
        ("n_weights", n_weights, 0, MAX_WEIGHTS),
        ("n_counts", n_counts, 0, MAX_COUNTS),
        ("fraction_bits", fraction_bits, 0, MAX_SUM_BITS),
    ):
        if int(value) != value or not lowest <= value <= highest:
            raise ValueError(f"{name} must be an integer from {lowest} to {highest}, got {value!r}")
    plan = SlotPlan(
        int(n_rows), int(n_signed), int(n_weights), int(n_counts), int(fraction_bits), int(key_bits)
    )
    if not plan.n_slots:
        raise ValueError("a row needs one slot at least")
    needed = plan.fraction_bits + (plan.n_rows - 1).bit_length()
    if needed > MAX_SUM_BITS:
        raise ValueError(
            f"sums of {n_rows} values with {fraction_bits} fraction bits need {needed} bits, "
            f"{MAX_SUM_BITS} are offered: use fewer fraction bits"
        )
    if max(plan.widths) >= plan.capacity_bits:
        raise ValueError(
            f"a packed sum of {n_rows} rows needs {max(plan.widths) + 1} bits, the {key_bits}-bit key offers "
            f"{max(0, plan.capacity_bits)}: use a larger key or fewer fraction bits"
        )
    return plan


@cache
def _spread(widths: tuple[int, ...], capacity: int) -> tuple[tuple[int, ...], ...]:
    """Slots dealt to as few ciphertexts as hold them, about as full as one another; the last slot comes first."""
    fewest = len(_filled(widths, capacity))
    limit = max(max(widths), -(-sum(widths) // fewest))
    while len(_filled(widths, limit)) > fewest:
        limit += 1
    return tuple(_filled(widths, limit))


def _filled(widths: tuple[int, ...], limit: int) -> list[tuple[int, ...]]:
    """Slots from the last to the first, as many in each group as `limit` bits hold."""
    groups: list[list[int]] = [[]]
    used = 0
    for slot in reversed(range(len(widths))):
        if groups[-1] and used + widths[slot] > limit:
            groups.append([])
            used = 0
        groups[-1].append(slot)
        used += widths[slot]
    return [tuple(group) for group in groups]
