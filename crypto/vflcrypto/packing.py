"""Packing for boosting: a gradient and a Hessian, for every output, in one plaintext; many sums in one reply.

    w_h = bit_length(n 2^B)     w_g = w_h + 1 (sign)     pair = (g << w_h) + h,  W = w_g + w_h bits, signed

    value  = | pair K-1 | ... | pair 1 | pair 0 |            one ciphertext of a row (or of a sum of rows)
    reply  = | value 0 | value 1 | ... | value r-1 |         one ciphertext of the compressed answer

Widths depend on the number of rows n and the fraction bits B only, never on labels or weights, because they are
public. Signed slots are read by adding half of each slot's range first: then every slot is a plain field of bits.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from . import words as wide
from .errors import DecryptionError, SlotOverflowError
from .words import Words

if TYPE_CHECKING:
    from .ciphertexts import CiphertextArray
    from .paillier import PrivateKey, PublicKey

FRACTION_BITS = 30  # rounding error at most 2**-31 of a gradient scaled to [-1, 1]
MAX_SUM_BITS = 61  # fraction bits plus log2 of the rows: sums must fit 62 bits in the plain path too


class Packing:
    """What every layout of packed rows has: the `encoding` of the arrays it makes, and how sums are joined in a reply.

    Subclasses are frozen dataclasses that say which slots a row has.
    """

    n_rows: int  # rows, or draws of rows, that one sum may take
    fraction_bits: int
    key_bits: int

    @property
    def capacity_bits(self) -> int:
        """What a plaintext of this key holds, with its sign and a spare bit."""
        return self.key_bits - 2

    @property
    def ciphertexts_per_row(self) -> int:
        """Ciphertexts that the slots of one row take."""
        raise NotImplementedError

    @property
    def value_bits(self) -> int:
        """Width of one packed value inside a reply."""
        raise NotImplementedError

    @property
    def values_per_reply(self) -> int:
        """Packed values that one compressed ciphertext holds."""
        return self.capacity_bits // self.value_bits

    @property
    def bound(self) -> int:
        """No packed value, and no sum of n_rows of them, is larger in magnitude."""
        return (1 << (self.value_bits - 1)) - 1

    def encrypt_packed(self, key: "PublicKey | PrivateKey", words: Words, n_jobs: int) -> "CiphertextArray":
        """Encrypt what pack() of this plan has made.

        words : ndarray of uint64, shape (n, ciphertexts_per_row, n_words).  Fresh, Cost, Raises: see encrypt().
        """
        public_key = key.public_key
        if public_key.key_bits < self.key_bits:
            raise ValueError(
                f"the plan needs a key of {self.key_bits} bits, got one of {public_key.key_bits}"
            )
        array = key.encrypt_words(words, bound=self.bound, n_jobs=n_jobs)
        return array._replace(encoding=self, terms=1)

    def compress(self, array: "CiphertextArray", n_jobs: int = 1) -> "CiphertextArray":
        """Join packed sums, values_per_reply in one ciphertext, by Horner's rule.

        Plaintext  several values side by side, the first highest; read by unpack().
        Fresh      no: rerandomize() before it leaves.
        Cost       value_bits squarings and one product per value.
        Timing     depends on sizes only.
        Raises     TypeError (another layout), ValueError (shape).
        Source     see the module.

        Parameters
        ----------
        array : CiphertextArray of shape (m, ciphertexts_per_row)

        Returns
        -------
        CiphertextArray of shape (ceil(m * ciphertexts_per_row / values_per_reply),)
        """
        if array.encoding != self:
            raise TypeError("the array was not packed by this plan")
        if array.ndim != 2 or array.shape[1] != self.ciphertexts_per_row:
            raise ValueError(f"expected shape (m, {self.ciphertexts_per_row}), got {array.shape}")
        return array.reshape(-1).compress(self.value_bits, self.values_per_reply, n_jobs=n_jobs)


@dataclass(frozen=True)
class PackingPlan(Packing):
    """The layout of packed gradients; also the `encoding` of the arrays it makes. Use `plan_packing`."""

    n_rows: int
    n_outputs: int
    fraction_bits: int
    key_bits: int

    @property
    def hessian_bits(self) -> int:
        """w_h: a sum of n_rows Hessians of at most 2**fraction_bits, inclusive."""
        return (self.n_rows << self.fraction_bits).bit_length()

    @property
    def gradient_bits(self) -> int:
        """w_g: as the Hessian, and a sign."""
        return self.hessian_bits + 1

    @property
    def pair_bits(self) -> int:
        """W: one gradient and one Hessian."""
        return self.gradient_bits + self.hessian_bits

    @property
    def ciphertexts_per_row(self) -> int:
        """Ciphertexts that the outputs of one row take."""
        return -(-self.n_outputs // (self.capacity_bits // self.pair_bits))

    @property
    def outputs_per_ciphertext(self) -> int:
        """Pairs in one plaintext, spread evenly; the last ciphertext of a row may hold fewer."""
        return -(-self.n_outputs // self.ciphertexts_per_row)

    @property
    def value_bits(self) -> int:
        """Width of one packed value inside a reply."""
        return self.outputs_per_ciphertext * self.pair_bits

    def pack(self, gradients: NDArray[np.int64], hessians: NDArray[np.int64]) -> Words:
        """Pack fixed-point gradients and Hessians of rows.

        Parameters
        ----------
        gradients : ndarray of int64, shape (n, n_outputs), in [-2**fraction_bits, 2**fraction_bits]
        hessians : ndarray of int64, shape (n, n_outputs), in [0, 2**fraction_bits]

        Returns
        -------
        ndarray of uint64, shape (n, ciphertexts_per_row, n_words), two's complement
        """
        g, h = self._checked(gradients, "gradients", -1), self._checked(hessians, "hessians", 0)
        if g.shape != h.shape:
            raise ValueError(f"gradients have shape {g.shape}, hessians {h.shape}")
        n_words = wide.words_for(self.value_bits + 1)
        packed = np.empty((len(g), self.ciphertexts_per_row, n_words), dtype=np.uint64)
        for column in range(self.ciphertexts_per_row):
            start = column * self.outputs_per_ciphertext
            stop = min(start + self.outputs_per_ciphertext, self.n_outputs)
            packed[:, column] = self._pack_column(g[:, start:stop], h[:, start:stop], n_words)
        return packed

    def _pack_column(self, g: NDArray[np.int64], h: NDArray[np.int64], n_words: int) -> Words:
        """Pairs of some outputs, the first lowest: biased fields side by side, then the bias taken off."""
        fields = np.zeros((len(g), n_words), dtype=np.uint64)
        half = 1 << (self.gradient_bits - 1)
        for k in range(g.shape[1]):
            offset = k * self.pair_bits
            wide.or_field(fields, offset, h[:, k].astype(np.uint64))
            wide.or_field(fields, offset + self.hessian_bits, (g[:, k] + np.int64(half)).astype(np.uint64))
        return wide.subtract(fields, wide.from_int(_bias(self.pair_bits, g.shape[1]), n_words))

    def _checked(self, values: NDArray[np.int64], name: str, lowest: int) -> NDArray[np.int64]:
        values = np.asarray(values)
        if values.dtype.kind not in "iu":
            raise TypeError(f"{name} must be fixed-point integers, got dtype {values.dtype}")
        values = values.astype(np.int64, copy=False)
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2 or values.shape[1] != self.n_outputs:
            raise ValueError(
                f"{name} have shape {values.shape}, the plan has {self.n_outputs} outputs per row"
            )
        if len(values) > self.n_rows:
            raise ValueError(f"{len(values)} rows, but the packing was planned for {self.n_rows}")
        limit = 1 << self.fraction_bits
        if values.size and (values.max() > limit or values.min() < lowest * limit):
            raise ValueError(f"{name} must lie in [{lowest}, 1] * 2**{self.fraction_bits}: scale them first")
        return values

    def encrypt(
        self,
        key: "PublicKey | PrivateKey",
        gradients: NDArray[np.int64],
        hessians: NDArray[np.int64],
        n_jobs: int = 1,
    ) -> "CiphertextArray":
        """Pack and encrypt rows.

        Plaintext  one packed value per (row, ciphertext); sums of up to n_rows terms fit their slots.
        Fresh      yes: HALF under a public key, WIDE under a private one.
        Cost       n * ciphertexts_per_row encryptions.
        Timing     packing is not constant-time; the encryption is.
        Raises     ValueError (shapes, ranges, key size), TypeError (dtypes).
        Source     see the module; Chen et al., SecureBoost+, section on packing.

        Returns
        -------
        CiphertextArray of shape (n, ciphertexts_per_row)
        """
        return self.encrypt_packed(key, self.pack(gradients, hessians), n_jobs)

    def unpack(self, words: Words, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Gradients and Hessians of a decrypted reply.

        Parameters
        ----------
        words : ndarray of uint64, shape (n_replies, n_words), from PrivateKey.decrypt_words
        count : how many sums (rows of the array given to compress) the reply holds

        Returns
        -------
        two ndarrays of int64, shape (count, n_outputs)

        Raises
        ------
        ValueError : another number of ciphertexts than `count` sums take
        DecryptionError : bits beyond the slots are not zero
        """
        values = split_slots(words, self.value_bits, self.values_per_reply, count * self.ciphertexts_per_row)
        return self.unpack_values(values.reshape(count, self.ciphertexts_per_row, values.shape[1]))

    def unpack_values(self, values: Words) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Gradients and Hessians of decrypted values that were not compressed.

        Parameters
        ----------
        values : ndarray of uint64, shape (count, ciphertexts_per_row, n_words), two's complement

        Returns
        -------
        two ndarrays of int64, shape (count, n_outputs)
        """
        g = np.empty((len(values), self.n_outputs), dtype=np.int64)
        h = np.empty_like(g)
        half = np.int64(1 << (self.gradient_bits - 1))
        for column in range(self.ciphertexts_per_row):
            start = column * self.outputs_per_ciphertext
            pairs = min(self.outputs_per_ciphertext, self.n_outputs - start)
            fields = _biased(values[:, column], self.pair_bits, pairs)
            for k in range(pairs):
                offset = k * self.pair_bits
                h[:, start + k] = wide.get_field(fields, offset, self.hessian_bits).astype(np.int64)
                raised = wide.get_field(fields, offset + self.hessian_bits, self.gradient_bits)
                g[:, start + k] = raised.astype(np.int64) - half
        return g, h


def plan_packing(
    n_rows: int, n_outputs: int = 1, fraction_bits: int = FRACTION_BITS, key_bits: int = 3072
) -> PackingPlan:
    """Lay out the plaintexts for sums of up to n_rows gradients and Hessians of n_outputs outputs.

    Raises
    ------
    ValueError : sums would not fit 62 bits, or a single pair does not fit the key ("needs N bits, key offers M")
    """
    for name, value, lowest in (
        ("n_rows", n_rows, 1),
        ("n_outputs", n_outputs, 1),
        ("fraction_bits", fraction_bits, 0),
    ):
        if int(value) != value or value < lowest:
            raise ValueError(f"{name} must be an integer of at least {lowest}, got {value!r}")
    plan = PackingPlan(int(n_rows), int(n_outputs), int(fraction_bits), int(key_bits))
    needed = plan.fraction_bits + (plan.n_rows - 1).bit_length()
    if needed > MAX_SUM_BITS:
        raise ValueError(
            f"sums of {n_rows} values with {fraction_bits} fraction bits need {needed} bits, "
            f"{MAX_SUM_BITS} are offered: use fewer fraction bits"
        )
    if plan.pair_bits > plan.capacity_bits:
        raise ValueError(
            f"a packed gradient and Hessian of {n_rows} rows needs {plan.pair_bits} bits, "
            f"the {key_bits}-bit key offers {max(0, plan.capacity_bits)}: use a larger key or fewer fraction bits"
        )
    return plan


def split_slots(words: Words, width_bits: int, per_ciphertext: int, count: int) -> Words:
    """Cut decrypted replies of CiphertextArray.compress back into their values.

    Parameters
    ----------
    words : ndarray of uint64, shape (n_replies, n_words), two's complement
    width_bits, per_ciphertext : as given to compress
    count : values that were compressed

    Returns
    -------
    ndarray of uint64, shape (count, ceil(width_bits / 64)), two's complement
    """
    words = np.asarray(words, dtype=np.uint64)
    n_groups = -(-count // per_ciphertext)
    if words.ndim != 2 or len(words) != n_groups:
        raise ValueError(f"{count} values take {n_groups} ciphertexts, got words of shape {words.shape}")
    n_slots = np.full(n_groups, per_ciphertext)
    if n_groups:
        n_slots[-1] = count - per_ciphertext * (n_groups - 1)
    out_words = wide.words_for(width_bits)
    values = np.empty((n_groups, per_ciphertext, out_words), dtype=np.uint64)
    full = int((n_slots == per_ciphertext).sum())
    _split_full(words[:full], width_bits, per_ciphertext, values[:full])
    if full < n_groups:  # the last reply holds fewer
        _split_full(words[full:], width_bits, int(n_slots[-1]), values[full:])
    return values.reshape(n_groups * per_ciphertext, out_words)[:count]


def _split_full(words: Words, width_bits: int, slots: int, values: Words) -> None:
    """Slots of replies that all hold `slots` values, the first highest, into values[:, :slots], in place."""
    if len(words) == 0:
        return
    fields = _biased(words, width_bits, slots)
    half = wide.from_int(1 << (width_bits - 1), values.shape[2])
    for slot in range(slots):
        offset = (slots - 1 - slot) * width_bits
        slot_words = np.zeros((len(words), values.shape[2]), dtype=np.uint64)
        for i in range(values.shape[2]):
            width = min(wide.WORD_BITS, width_bits - i * wide.WORD_BITS)
            slot_words[:, i] = wide.get_field(fields, offset + i * wide.WORD_BITS, width)
        values[:, slot] = wide.subtract(slot_words, half)


def _bias(width_bits: int, slots: int) -> int:
    """Half the range of every slot: adding it makes signed slots plain fields of bits."""
    return sum(1 << (slot * width_bits + width_bits - 1) for slot in range(slots))


def _biased(words: Words, width_bits: int, slots: int) -> Words:
    """Signed stacks of slots as plain fields; refuses numbers with anything beyond their slots."""
    n_words = max(words.shape[1], wide.words_for(slots * width_bits + 1))
    fields = wide.add(wide.resize(words, n_words), wide.from_int(_bias(width_bits, slots), n_words))
    if wide.exceeds(fields, (1 << (slots * width_bits)) - 1).any():
        raise DecryptionError(
            f"a decrypted reply has bits beyond its {slots} slots of {width_bits} bits: damaged or forged"
        )
    return fields


def check_terms(plan: Packing, terms: int) -> int:
    """The number of terms of a sum, or SlotOverflowError."""
    if terms > plan.n_rows:
        raise SlotOverflowError(
            f"a sum of {terms} packed values needs wider slots: the packing was planned for {plan.n_rows}"
        )
    return terms
