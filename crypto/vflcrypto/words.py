"""Wide integers as NumPy arrays: rows of 64-bit words, least significant first, two's complement where signed.

A plaintext of a 3072-bit key is 48 words. The functions here run over whole arrays and loop over words only, so
that a million numbers never become a million Python objects. `words` is always uint64 of shape (count, n_words).
"""

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

WORD_BITS = 64
_MASK = (1 << WORD_BITS) - 1


def words_for(bits: int) -> int:
    """How many words hold `bits` bits (at least one)."""
    return max(1, -(-bits // WORD_BITS))


def from_int(value: int, n_words: int) -> Words:
    """One integer modulo 2**(64 n_words), shape (n_words,). Negative ones become two's complement."""
    value &= (1 << (WORD_BITS * n_words)) - 1
    return np.frombuffer(value.to_bytes(8 * n_words, "little"), dtype="<u8").astype(np.uint64)


def from_ints(values: list[int], n_words: int) -> Words:
    """Python integers that fit n_words words as two's complement, shape (len(values), n_words)."""
    data = b"".join(value.to_bytes(8 * n_words, "little", signed=True) for value in values)
    return np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(len(values), n_words)


def to_ints(words: Words, *, signed: bool = True) -> list[int]:
    """Python integers, one per row."""
    data = np.ascontiguousarray(words, dtype="<u8").tobytes()
    width = 8 * words.shape[-1]
    return [int.from_bytes(data[i : i + width], "little", signed=signed) for i in range(0, len(data), width)]


def from_int64(values: NDArray[np.int64]) -> Words:
    """Signed 64-bit integers as one word each, shape (count, 1)."""
    return np.ascontiguousarray(values, dtype=np.int64).view(np.uint64).reshape(-1, 1)


def is_negative(words: Words) -> NDArray[np.bool_]:
    """Sign of each row, shape (count,)."""
    return words[:, -1] >> np.uint64(WORD_BITS - 1) != 0


def resize(words: Words, n_words: int) -> Words:
    """Sign-extend or cut rows to n_words. Cutting is for rows known to fit."""
    have = words.shape[1]
    if n_words <= have:
        return words[:, :n_words]
    out = np.empty((len(words), n_words), dtype=np.uint64)
    out[:, :have] = words
    out[:, have:] = (np.uint64(0) - is_negative(words).astype(np.uint64))[:, None]
    return out


def add(a: Words, b: Words) -> Words:
    """a + b modulo 2**(64 n_words); b may be one row, shape (n_words,)."""
    out = np.empty_like(a)
    carry = np.zeros(len(a), dtype=np.uint64)
    for i in range(a.shape[1]):
        partial = a[:, i] + b[..., i]
        total = partial + carry
        carry = ((partial < a[:, i]) | (total < partial)).astype(np.uint64)
        out[:, i] = total
    return out


def subtract(a: Words, b: Words) -> Words:
    """a - b modulo 2**(64 n_words); b may be one row, shape (n_words,)."""
    out = np.empty_like(a)
    borrow = np.zeros(len(a), dtype=np.uint64)
    for i in range(a.shape[1]):
        partial = a[:, i] - b[..., i]
        total = partial - borrow
        borrow = ((a[:, i] < b[..., i]) | (partial < borrow)).astype(np.uint64)
        out[:, i] = total
    return out


def negate(words: Words) -> Words:
    """-words modulo 2**(64 n_words)."""
    return subtract(np.zeros_like(words), words)


def absolute(words: Words) -> tuple[Words, NDArray[np.bool_]]:
    """Magnitudes (unsigned) and the mask of negative rows."""
    negative = is_negative(words)
    if not negative.any():
        return words, negative
    magnitude = words.copy()
    magnitude[negative] = negate(words[negative])
    return magnitude, negative


def exceeds(words: Words, limit: int) -> NDArray[np.bool_]:
    """Rows that are greater than `limit` >= 0, as unsigned integers; shape (count,)."""
    if limit.bit_length() > WORD_BITS * words.shape[1]:
        return np.zeros(len(words), dtype=bool)
    bound = from_int(limit, words.shape[1])
    greater = np.zeros(len(words), dtype=bool)
    undecided = np.ones(len(words), dtype=bool)
    for i in reversed(range(words.shape[1])):
        greater |= undecided & (words[:, i] > bound[i])
        undecided &= words[:, i] == bound[i]
        if not undecided.any():
            break
    return greater


def bit_length(words: Words) -> int:
    """Bits of the largest row, read as unsigned."""
    for i in reversed(range(words.shape[1])):
        top = int(words[:, i].max(initial=0))
        if top:
            return i * WORD_BITS + top.bit_length()
    return 0


def get_field(words: Words, offset: int, width: int) -> Words:
    """Bits offset .. offset + width - 1 of each row, width at most 64; shape (count,). Bits beyond the end are 0."""
    index, shift = divmod(offset, WORD_BITS)
    if index >= words.shape[1]:
        return np.zeros(len(words), dtype=np.uint64)
    field = words[:, index] >> np.uint64(shift)
    if shift and shift + width > WORD_BITS and index + 1 < words.shape[1]:
        field = field | (words[:, index + 1] << np.uint64(WORD_BITS - shift))
    return field & np.uint64(_MASK >> (WORD_BITS - width)) if width < WORD_BITS else field


def or_field(words: Words, offset: int, field: Words) -> None:
    """Write `field` (uint64, shape (count,)) into zero bits from `offset` on, in place."""
    index, shift = divmod(offset, WORD_BITS)
    words[:, index] |= field << np.uint64(shift)
    if shift and index + 1 < words.shape[1]:
        words[:, index + 1] |= field >> np.uint64(WORD_BITS - shift)


def shift_left(words: Words, shift: int) -> Words:
    """words * 2**shift modulo 2**(64 n_words)."""
    n_words = words.shape[1]
    out = np.zeros_like(words)
    for i in range(n_words):
        start = i * WORD_BITS - shift
        if start >= 0:
            out[:, i] = get_field(words, start, WORD_BITS)
        elif start > -WORD_BITS:
            out[:, i] = words[:, 0] << np.uint64(-start)
    return out


def residues(words: Words, modulus: int) -> Words:
    """Signed rows with 2 |x| < modulus as residues in [0, modulus), shape (count, words_for(modulus))."""
    out = resize(words, words_for(modulus.bit_length())).copy()
    negative = is_negative(words)
    if negative.any():
        out[negative] = add(out[negative], from_int(modulus, out.shape[1]))
    return out


def centred(words: Words, modulus: int) -> Words:
    """Residues in [0, modulus) as signed rows in (-modulus/2, modulus/2): the upper half is negative."""
    upper = exceeds(words, (modulus - 1) // 2)
    if not upper.any():
        return words
    out = words.copy()
    out[upper] = subtract(words[upper], from_int(modulus, words.shape[1]))
    return out


def _leading_zeros(word: Words) -> NDArray[np.int64]:
    """Leading zero bits of each nonzero word, by halving."""
    zeros = np.zeros(len(word), dtype=np.int64)
    rest = word.copy()
    for step in (32, 16, 8, 4, 2, 1):
        short = rest >> np.uint64(WORD_BITS - step) == 0
        zeros[short] += step
        rest[short] <<= np.uint64(step)
    return zeros


def to_float(words: Words, fraction_bits: int) -> NDArray[np.float64]:
    """The doubles nearest to words / 2**fraction_bits, shape (count,)."""
    magnitude, negative = absolute(words)
    count, n_words = magnitude.shape
    padded = np.concatenate([np.zeros((count, 1), dtype=np.uint64), magnitude], axis=1)
    nonzero = magnitude != 0
    # Index (in `padded`) of the highest nonzero word of each row, and of the word under it.
    top = n_words - np.argmax(nonzero[:, ::-1], axis=1)
    rows = np.arange(count)
    zeros = _leading_zeros(padded[rows, top])
    zeros = np.where(nonzero.any(axis=1), zeros, 0).astype(np.uint64)
    high, low = padded[rows, top], padded[rows, top - 1]
    lifted = np.where(
        zeros > 0, low >> (np.uint64(WORD_BITS) - np.maximum(zeros, np.uint64(1))), np.uint64(0)
    )
    digits = (high << zeros) | lifted
    # One sticky bit for everything below the 64 leading bits makes the one rounding to 53 bits exact.
    below = np.cumsum(padded != 0, axis=1, dtype=np.int32)
    under = np.where(top >= 2, below[rows, np.maximum(top - 2, 0)], 0)
    sticky = (low << zeros != 0) | (under > 0)
    digits |= sticky.astype(np.uint64)
    exponent = (top.astype(np.int64) - 1) * WORD_BITS - zeros.astype(np.int64) - fraction_bits
    values = np.ldexp(digits.astype(np.float64), exponent)
    return np.where(negative, -values, values)
