"""What a party does with values it may not read: encrypted under the coordinator's key, or in the clear.

Both kinds carry the same integers, so a run without encryption gives the same model, bit for bit. Values are
arrays that add and multiply by integers (`+`, `*`): a CiphertextArray, or Python integers in an array of objects.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vflcrypto import CiphertextArray, CryptoError, PublicKey, concatenate
from vflcrypto import words as wide
from vflcrypto.masking import OneTimeMask, hide
from vflcrypto.products import PreparedProduct

from .errors import RemoteProtocolError
from .ledger import Ledger

# What the ledger counts, besides bytes: operations on ciphertexts.
COUNTERS = (
    "encryptions",
    "additions",
    "multiplications",
    "exponent_bits",
    "blindings",
    "masks",
    "decryptions",
)
_PLAIN_WORDS = 8  # of a value in the clear: 512 bits


class PlainArithmetic:
    """Without encryption: no coordinator, no masks."""

    encrypted = False
    key_bits = 0

    def seal(self, values: np.ndarray, bits: int = 63) -> bytes:
        """The bytes of own integers, (n, n_outputs), magnitudes below 2**bits."""
        return self.send(values)

    def read(self, payload: bytes, shape: tuple[int, ...]) -> Any:
        """Values that another party sent."""
        n_values = int(np.prod(shape))
        if len(payload) == 8 * n_values:
            return np.frombuffer(payload, dtype="<i8").astype(object).reshape(shape)
        if len(payload) != 8 * _PLAIN_WORDS * n_values:
            raise RemoteProtocolError(
                f"{n_values} values in the clear were expected, got {len(payload)} bytes"
            )
        words = np.frombuffer(payload, dtype="<u8").astype(np.uint64).reshape(n_values, _PLAIN_WORDS)
        flat = np.empty(n_values, dtype=object)
        flat[:] = wide.to_ints(words)
        return flat.reshape(shape)

    def send(self, values: Any) -> bytes:
        """The bytes of computed values: of int64 where all of them fit, else of _PLAIN_WORDS words each."""
        try:
            return values.astype("<i8").tobytes()
        except OverflowError:
            pass
        return wide.from_ints([int(value) for value in values.ravel()], _PLAIN_WORDS).tobytes()

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def totals(self, values: Any) -> Any:
        """The sum over the outputs of every row: (n_rows, n_outputs) to (n_rows, 1)."""
        return values.sum(axis=1, keepdims=True)

    def scale(self, values: Any, factors: np.ndarray | int) -> Any:
        """Each value times an integer."""
        return values * (factors.astype(object) if isinstance(factors, np.ndarray) else factors)

    def seal_words(self, words: np.ndarray, bits: int) -> bytes:
        """The bytes of own integers as words, (..., n_words), magnitudes below 2**bits; see vflcrypto.words."""
        return np.ascontiguousarray(words[..., 0]).astype("<u8").tobytes()

    def stacked(self, parts: list[Any]) -> Any:
        """Values of one shape, along a new last axis."""
        return np.stack(parts, axis=-1)

    def joined(self, parts: list[Any]) -> Any:
        """All values in one vector."""
        return np.concatenate([part.ravel() for part in parts])

    def inner(self, factors: np.ndarray, values: Any) -> Any:
        """The sum of all products of integers and values of one shape: (1,)."""
        return np.array([(factors.astype(object) * values).sum()], dtype=object)

    def prepare(self, factors: np.ndarray) -> Any:
        """Integers (n, n_outputs) for `product`, which may come often."""
        return factors.T

    def product(self, prepared: Any, values: Any) -> Any:
        """factors^T values: prepared factors times (n, per_row), to (n_outputs, per_row)."""
        return _exact_product(prepared, values)

    def combine(self, factors: np.ndarray, values: Any) -> Any:
        """factors^T values, once."""
        return self.product(self.prepare(factors), values)

    def hide(self, values: Any) -> bytes:
        """What is sent to be opened; `reveal` takes the answer. In the clear, the values themselves."""
        self._shape = values.shape
        return self.send(values)

    def reveal(self, payload: bytes) -> np.ndarray:
        """The integers of what was hidden last, in its shape."""
        return np.asarray(self.read(payload, self._shape))


class PaillierArithmetic:
    """Under the coordinator's key. Everything that leaves is freshly blinded."""

    encrypted = True

    def __init__(self, public_key: PublicKey, n_jobs: int, ledger: Ledger) -> None:
        self.public_key, self.key_bits = public_key, public_key.key_bits
        self._n_jobs, self._ledger = n_jobs, ledger
        self._mask: OneTimeMask | None = None

    def seal(self, values: np.ndarray, bits: int = 63) -> bytes:
        """HALF noise: no party but the coordinator has the private key, and it never receives these."""
        with self._ledger.phase("encrypt"):
            array = self.public_key.encrypt(values, bound=1 << bits, n_jobs=self._n_jobs)
        self._ledger.count("encryptions", array.size)
        return array.to_bytes()

    def read(self, payload: bytes, shape: tuple[int, ...]) -> CiphertextArray:
        try:
            with self._ledger.phase("check ciphertexts"):
                array = CiphertextArray.from_bytes(payload, self.public_key)
            if array.shape != shape:
                raise ValueError(f"expected ciphertexts of shape {shape}, got {array.shape}")
        except (ValueError, CryptoError) as error:
            raise RemoteProtocolError(f"encrypted values: {error}") from error
        return array

    def send(self, values: CiphertextArray) -> bytes:
        """Plaintexts stay; blinded anew with HALF noise, for receivers without the private key."""
        with self._ledger.phase("blind"):
            fresh = values.rerandomize("half", self._n_jobs)
        self._ledger.count("blindings", fresh.size)
        return fresh.to_bytes()

    def add(self, a: CiphertextArray, b: CiphertextArray | np.ndarray) -> CiphertextArray:
        self._ledger.count("additions", a.size)
        with self._ledger.phase("combine"):
            return a.add(b, self._n_jobs)

    def totals(self, values: CiphertextArray) -> CiphertextArray:
        self._ledger.count("additions", values.size - len(values))
        with self._ledger.phase("combine"):
            return values.sum(axis=1, n_jobs=self._n_jobs).reshape(len(values), 1)

    def scale(self, values: CiphertextArray, factors: np.ndarray | int) -> CiphertextArray:
        bits = int(np.max(np.abs(factors), initial=1)).bit_length()
        self._ledger.count("exponent_bits", values.size * bits)
        with self._ledger.phase("combine"):
            return values.multiply(factors, n_jobs=self._n_jobs)

    def seal_words(self, words: np.ndarray, bits: int) -> bytes:
        with self._ledger.phase("encrypt"):
            array = self.public_key.encrypt_words(words, bound=1 << bits, n_jobs=self._n_jobs)
        self._ledger.count("encryptions", array.size)
        return array.to_bytes()

    def stacked(self, parts: list[CiphertextArray]) -> CiphertextArray:
        return concatenate([part.reshape(*part.shape, 1) for part in parts], axis=parts[0].ndim)

    def joined(self, parts: list[CiphertextArray]) -> CiphertextArray:
        return concatenate([part.reshape(-1) for part in parts])

    def inner(self, factors: np.ndarray, values: CiphertextArray) -> CiphertextArray:
        product = self.combine(factors.reshape(-1, 1), values.reshape(-1, 1))
        return product.reshape(1)

    def prepare(self, factors: np.ndarray) -> PreparedProduct:
        with self._ledger.phase("sums"):
            return PreparedProduct(factors.T, capacity=self.public_key.capacity, n_jobs=self._n_jobs)

    def product(self, prepared: PreparedProduct, values: CiphertextArray) -> CiphertextArray:
        with self._ledger.phase("sums"):
            out = prepared(values, self._n_jobs)
        self._ledger.count("multiplications", prepared.count().multiplications * values.shape[1])
        return out

    def combine(self, factors: np.ndarray, values: CiphertextArray) -> CiphertextArray:
        return self.product(self.prepare(factors), values)

    def hide(self, values: CiphertextArray) -> bytes:
        """Each value under a mask of its own, uniform modulo n, with WIDE noise: its receiver holds the private key."""
        if self._mask is not None:
            raise RemoteProtocolError("masked values are still to be opened")
        with self._ledger.phase("mask"):
            hidden, self._mask = hide(values, self._n_jobs)
        self._ledger.count("masks", hidden.size)
        return hidden.to_bytes()

    def reveal(self, payload: bytes) -> np.ndarray:
        if self._mask is None:
            raise RemoteProtocolError("opened values that nobody has masked")
        mask, self._mask = self._mask, None
        try:
            n_words = self.public_key.ring.words
            if len(payload) % (8 * n_words):
                raise ValueError(f"opened values have {8 * n_words} bytes each, got {len(payload)} bytes")
            return mask.remove(np.frombuffer(payload, dtype="<u8").astype(np.uint64).reshape(-1, n_words))
        except (ValueError, CryptoError) as error:
            raise RemoteProtocolError(f"opened values: {error}") from error


Arithmetic = PlainArithmetic | PaillierArithmetic


def read_public_key(data: bytes, *, allow_weak_key: bool) -> PublicKey:
    """The coordinator's key as received, which is checked."""
    try:
        return PublicKey.from_bytes(data, allow_weak_key=allow_weak_key)
    except (ValueError, CryptoError) as error:
        raise RemoteProtocolError(f"key of the coordinator: {error}") from error


def _exact_product(factors: np.ndarray, values: np.ndarray) -> np.ndarray:
    """factors (m, n) times Python integers (n, k): in int64 where no sum can exceed it; dtype object either way."""
    if _largest(factors) * _largest(values) * len(values) < 1 << 63:
        return np.asarray(factors.astype(np.int64) @ values.astype(np.int64)).astype(object)
    return np.asarray(factors.astype(object) @ values)


def _largest(integers: np.ndarray) -> int:
    """Magnitude."""
    return max(int(integers.max(initial=0)), -int(integers.min(initial=0)))
