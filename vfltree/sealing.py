"""What rows add up, on its way to the passive parties, and sums on their way back, encrypted or in the clear.

The active party holds a *sealer* (seals rows, opens sums), a passive party a *summer* (adds sealed rows up). Both kinds
carry the same integers, so a run without encryption gives the same trees, bit for bit. A row holds several kinds of
numbers, each for every output: boosting a gradient and a hessian. Packing and compression: `vflcrypto.packing` and
`vflcrypto.slots`; the fixed point: `vfltree.losses`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from vflcrypto import (
    CiphertextArray,
    CryptoError,
    Packing,
    PackingPlan,
    PrivateKey,
    PublicKey,
    SlotPlan,
    plan_packing,
    plan_slots,
)
from vflcrypto.kernels import thread_count
from vflcrypto.layers import sum_in_layers
from vflparty import Ledger, RemoteProtocolError

from .joint_cells import SumPlan
from .parameters import ENCRYPTIONS

# What the ledger counts, besides bytes: operations on ciphertexts.
COUNTERS = ("encryptions", "additions", "squarings", "blindings", "decryptions")


class Layout(Protocol):
    """What a row holds, as both sides agree on it."""

    @property
    def row_shape(self) -> tuple[int, int]:
        """Kinds of numbers, and outputs."""

    def plan(self, key_bits: int) -> PackingPlan | SlotPlan:
        """How a key of this length packs it; ValueError where it cannot."""


@dataclass(frozen=True)
class PairLayout:
    """Boosting: a gradient and a hessian for every output. Rows are given as two arrays, int64 (n_rows, n_outputs)."""

    n_rows: int
    n_outputs: int
    fraction_bits: int

    @property
    def row_shape(self) -> tuple[int, int]:
        return 2, self.n_outputs

    def plan(self, key_bits: int) -> PackingPlan:
        return plan_packing(self.n_rows, self.n_outputs, self.fraction_bits, key_bits)


@dataclass(frozen=True)
class SlotLayout:
    """Forests: signed numbers, weights and counts, a kind each. Rows are given as one array, int64 (n_rows, n_kinds).

    n_rows : draws that one sum may hold.
    """

    n_rows: int
    n_signed: int = 0
    n_weights: int = 0
    n_counts: int = 0
    fraction_bits: int = 0

    @property
    def row_shape(self) -> tuple[int, int]:
        return self.n_signed + self.n_weights + self.n_counts, 1

    def plan(self, key_bits: int) -> SlotPlan:
        return plan_slots(
            self.n_rows,
            n_signed=self.n_signed,
            n_weights=self.n_weights,
            n_counts=self.n_counts,
            fraction_bits=self.fraction_bits,
            key_bits=key_bits,
        )


class PlainSealer:
    """The active party's side without encryption."""

    public_bytes = b""

    def __init__(self, layout: Layout) -> None:
        self._row_shape = layout.row_shape

    def seal(self, *rows: np.ndarray) -> bytes:
        """rows : as the layout says. Returns the bytes of int64 (n_rows, n_kinds, n_outputs)."""
        return _plain_bytes(np.stack(rows, axis=1).reshape(-1, *self._row_shape))

    def open(self, sums: bytes, n_values: int) -> np.ndarray:
        """Returns int64 (n_values, n_kinds, n_outputs); ValueError where the reply has another size."""
        return _plain_values(sums, n_values, self._row_shape)


class PaillierSealer:
    """The active party's side: encrypts rows on the key owner's fast path, decrypts compressed sums."""

    def __init__(self, private_key: PrivateKey, layout: Layout, n_jobs: int, ledger: Ledger) -> None:
        self._private_key, self._n_jobs, self._ledger = private_key, n_jobs, ledger
        self._row_shape, self._plan = layout.row_shape, layout.plan(private_key.public_key.key_bits)
        self.public_bytes = private_key.public_key.to_bytes()

    def seal(self, *rows: np.ndarray) -> bytes:
        """rows : as the layout says. Returns the bytes of (n_rows, per_row) ciphertexts."""
        packed = self._plan.pack(*rows)
        sealed = self._plan.encrypt_packed(self._private_key, packed, n_jobs=self._n_jobs)
        self._ledger.count("encryptions", sealed.size)
        return sealed.to_bytes(self._n_jobs)

    def open(self, sums: bytes, n_values: int) -> np.ndarray:
        """int64 (n_values, n_kinds, n_outputs). Raises CryptoError or ValueError on anything but an honest reply."""
        if n_values == 0:
            return np.zeros((0, *self._row_shape), dtype=np.int64)
        reply = CiphertextArray.from_bytes(sums, self._private_key.public_key, self._n_jobs)
        words = self._private_key.decrypt_words(reply, n_jobs=self._n_jobs)
        self._ledger.count("decryptions", reply.size)
        return np.stack(self._plan.unpack(words, n_values), axis=1)


class PlainSummer:
    """A passive party's side without encryption."""

    def __init__(self, layout: Layout) -> None:
        self._row_shape = layout.row_shape

    def load(self, payload: bytes, n_rows: int) -> None:
        """Take the sealed gradients of a round."""
        try:
            self._rows = _plain_values(payload, n_rows, self._row_shape)
        except ValueError as error:
            raise RemoteProtocolError(f"gradients of the active party: {error}") from error

    def sum(self, plan: SumPlan) -> bytes:
        """The values of the plan."""
        values = np.zeros((plan.n_values, *self._rows.shape[1:]), dtype=np.int64)
        for batch in plan.batches:
            elements = self._rows
            for layer in batch:
                elements = np.add.reduceat(elements[layer.indices], layer.starts[:-1], axis=0)
                done = layer.places >= 0
                values[layer.places[done]] = elements[done]
        return _plain_bytes(values)


class PaillierSummer:
    """A passive party's side: adds ciphertexts up, compresses, and blinds whatever leaves."""

    def __init__(self, public_key: PublicKey, plan: Packing, n_jobs: int, ledger: Ledger) -> None:
        self._public_key, self._plan, self._n_jobs, self._ledger = public_key, plan, n_jobs, ledger

    def load(self, payload: bytes, n_rows: int) -> None:
        """Take the sealed gradients of a round."""
        expected = (n_rows, self._plan.ciphertexts_per_row)
        try:
            with self._ledger.phase("check ciphertexts"):
                received = CiphertextArray.from_bytes(payload, self._public_key, self._n_jobs)
            if received.shape != expected or received.encoding != self._plan:
                raise ValueError(f"expected {expected} ciphertexts packed as agreed, got {received!r}")
        except (ValueError, CryptoError) as error:
            raise RemoteProtocolError(f"gradients of the active party: {error}") from error
        self._rows = received

    def sum(self, plan: SumPlan) -> bytes:
        """As `PlainSummer.sum`, under encryption.

        Plaintext  packed sums, `values_per_reply` in one ciphertext.
        Fresh      yes, WIDE: the receiver holds the private key.
        Cost       plan.n_multiplications products, and pair_bits squarings a value; for each ciphertext of a row.
        """
        n_values = plan.n_values
        if n_values == 0:
            return b""
        per_row = self._plan.ciphertexts_per_row
        n_replies = -(-n_values * per_row // self._plan.values_per_reply)
        with self._noise_ahead(n_replies):
            with self._ledger.phase("bin sums"):
                sums = sum_in_layers(self._rows, n_values, plan.batches, n_jobs=self._n_jobs)
            with self._ledger.phase("compress"):
                joined = self._plan.compress(sums, n_jobs=self._n_jobs)
            with self._ledger.phase("blind"):
                reply = joined.rerandomize(noise="wide", n_jobs=self._n_jobs)
        self._ledger.count("additions", plan.n_multiplications * per_row)
        self._ledger.count("squarings", (n_values * per_row - reply.size) * self._plan.value_bits)
        self._ledger.count("blindings", reply.size)
        return reply.to_bytes()

    def _noise_ahead(self, count: int) -> AbstractContextManager[object]:
        """The noise of a reply needs no sums: a thread makes it where adding leaves a core idle."""
        if thread_count(self._n_jobs) == 1:
            return nullcontext()
        return self._public_key.blinding_pool(count)


def _plain_bytes(values: np.ndarray) -> bytes:
    return values.astype("<i8").tobytes()


def _plain_values(data: bytes, n_rows: int, row_shape: tuple[int, int]) -> np.ndarray:
    """int64 (n_rows, n_kinds, n_outputs)"""
    n_bytes = 8 * n_rows * row_shape[0] * row_shape[1]
    if len(data) != n_bytes:
        raise ValueError(f"{n_bytes} bytes of sums in the clear were expected, got {len(data)}")
    return np.frombuffer(data, dtype="<i8").reshape(n_rows, *row_shape).astype(np.int64)


Sealer = PlainSealer | PaillierSealer
Summer = PlainSummer | PaillierSummer


def make_sealer(private_key: PrivateKey | None, layout: Layout, *, n_jobs: int, ledger: Ledger) -> Sealer:
    """The active party's half; without a key, in the clear."""
    return PlainSealer(layout) if private_key is None else PaillierSealer(private_key, layout, n_jobs, ledger)


def make_summer(
    encryption: str,
    public_key: bytes,
    layout: Layout,
    *,
    allow_weak_key: bool,
    n_jobs: int,
    ledger: Ledger,
) -> Summer:
    """A passive party's half. The key was received, so it is checked; see `PublicKey.from_bytes`."""
    if encryption == "none":
        return PlainSummer(layout)
    if encryption != "paillier":
        raise RemoteProtocolError(f"encryption {encryption!r} is not one of {ENCRYPTIONS}")
    try:
        key = PublicKey.from_bytes(public_key, allow_weak_key=allow_weak_key)
        plan = layout.plan(key.key_bits)
    except (ValueError, CryptoError) as error:
        raise RemoteProtocolError(f"key and settings of the active party: {error}") from error
    return PaillierSummer(key, plan, n_jobs, ledger)
