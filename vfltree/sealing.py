"""Gradients on their way to the passive parties and sums on their way back, encrypted or in the clear.

The active party holds a *sealer* (seals rows, opens sums), a passive party a *summer* (adds sealed rows up). Both kinds
carry the same integers, so a run without encryption gives the same trees, bit for bit. Packing and compression:
`vflcrypto.packing`; the fixed point: `vfltree.losses`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np

from vflcrypto import CiphertextArray, CryptoError, PackingPlan, PrivateKey, PublicKey, plan_packing
from vflcrypto.kernels import thread_count
from vflcrypto.layers import sum_in_layers
from vflparty import Ledger, RemoteProtocolError

from .joint_cells import SumPlan

ENCRYPTIONS = ("paillier", "none")
# What the ledger counts, besides bytes: operations on ciphertexts.
COUNTERS = ("encryptions", "additions", "squarings", "blindings", "decryptions")


class PlainSealer:
    """The active party's side without encryption."""

    public_bytes = b""

    def __init__(self, n_outputs: int) -> None:
        self._n_outputs = n_outputs

    def seal(self, gradients: np.ndarray, hessians: np.ndarray) -> bytes:
        """gradients, hessians : int64 (n_rows, n_outputs). Returns the bytes of int64 (n_rows, 2, n_outputs)."""
        return _plain_bytes(np.stack([gradients, hessians], axis=1))

    def open(self, sums: bytes, n_values: int) -> np.ndarray:
        """Returns int64 (n_values, 2, n_outputs); ValueError where the reply has another size."""
        return _plain_values(sums, n_values, self._n_outputs)


class PaillierSealer:
    """The active party's side: encrypts rows on the key owner's fast path, decrypts compressed sums."""

    def __init__(self, private_key: PrivateKey, plan: PackingPlan, n_jobs: int, ledger: Ledger) -> None:
        self._private_key, self._plan, self._n_jobs, self._ledger = private_key, plan, n_jobs, ledger
        self.public_bytes = private_key.public_key.to_bytes()

    def seal(self, gradients: np.ndarray, hessians: np.ndarray) -> bytes:
        """gradients, hessians : int64 (n_rows, n_outputs). Returns the bytes of (n_rows, per_row) ciphertexts."""
        rows = self._plan.encrypt(self._private_key, gradients, hessians, n_jobs=self._n_jobs)
        self._ledger.count("encryptions", rows.size)
        return rows.to_bytes(self._n_jobs)

    def open(self, sums: bytes, n_values: int) -> np.ndarray:
        """Returns int64 (n_values, 2, n_outputs). Raises CryptoError or ValueError on anything but an honest reply."""
        if n_values == 0:
            return np.zeros((0, 2, self._plan.n_outputs), dtype=np.int64)
        reply = CiphertextArray.from_bytes(sums, self._private_key.public_key, self._n_jobs)
        words = self._private_key.decrypt_words(reply, n_jobs=self._n_jobs)
        self._ledger.count("decryptions", reply.size)
        return np.stack(self._plan.unpack(words, n_values), axis=1)


class PlainSummer:
    """A passive party's side without encryption."""

    def __init__(self, n_outputs: int) -> None:
        self._n_outputs = n_outputs

    def load(self, payload: bytes, n_rows: int) -> None:
        """Take the sealed gradients of a round."""
        try:
            self._rows = _plain_values(payload, n_rows, self._n_outputs)
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

    def __init__(self, public_key: PublicKey, plan: PackingPlan, n_jobs: int, ledger: Ledger) -> None:
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


def _plain_values(data: bytes, n_rows: int, n_outputs: int) -> np.ndarray:
    """int64 (n_rows, 2, n_outputs)"""
    if len(data) != 16 * n_rows * n_outputs:
        raise ValueError(
            f"{16 * n_rows * n_outputs} bytes of sums in the clear were expected, got {len(data)}"
        )
    return np.frombuffer(data, dtype="<i8").reshape(n_rows, 2, n_outputs).astype(np.int64)


Sealer = PlainSealer | PaillierSealer
Summer = PlainSummer | PaillierSummer


def make_sealer(
    private_key: PrivateKey | None,
    *,
    n_rows: int,
    n_outputs: int,
    fraction_bits: int,
    n_jobs: int,
    ledger: Ledger,
) -> Sealer:
    """The active party's half; without a key, in the clear."""
    if private_key is None:
        return PlainSealer(n_outputs)
    plan = plan_packing(n_rows, n_outputs, fraction_bits, private_key.public_key.key_bits)
    return PaillierSealer(private_key, plan, n_jobs, ledger)


def make_summer(
    encryption: str,
    public_key: bytes,
    *,
    allow_weak_key: bool,
    n_rows: int,
    n_outputs: int,
    fraction_bits: int,
    n_jobs: int,
    ledger: Ledger,
) -> Summer:
    """A passive party's half. The key was received, so it is checked; see `PublicKey.from_bytes`."""
    if encryption == "none":
        return PlainSummer(n_outputs)
    if encryption != "paillier":
        raise RemoteProtocolError(f"encryption {encryption!r} is not one of {ENCRYPTIONS}")
    try:
        key = PublicKey.from_bytes(public_key, allow_weak_key=allow_weak_key)
        plan = plan_packing(n_rows, n_outputs, fraction_bits, key.key_bits)
    except (ValueError, CryptoError) as error:
        raise RemoteProtocolError(f"key and settings of the active party: {error}") from error
    return PaillierSummer(key, plan, n_jobs, ledger)
