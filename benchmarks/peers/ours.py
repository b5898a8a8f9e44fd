"""vflcrypto through its Python API; options: backend."""

from __future__ import annotations

import platform
import warnings
from typing import Any

import numpy as np
from protocol import BINS, CHECKED, FEATURES, ROWS, Operation, bins, scalars, serve, values

from vflcrypto import CiphertextArray, PrivateKey

ADDED = 10_000  # of a batch of element-wise operations
DECRYPTED = 1500


def start(job: dict[str, Any]) -> tuple[str, dict[str, Operation]]:
    warnings.simplefilter("ignore")
    key = PrivateKey.from_primes(
        int(job["p"], 16), int(job["q"], 16), allow_weak_key=True, backend=job["options"]["backend"]
    )
    public = key.public_key
    x = np.array(values(), dtype=np.int64)
    table = np.array(bins()).T
    fast = PrivateKey.from_primes(*key.unsafe_primes(), allow_weak_key=True)  # on the best backend
    encrypted = CiphertextArray.from_bytes(fast.encrypt(x).to_bytes(), public)
    factors = {bits: np.array(scalars(bits), dtype=np.int64) for bits in (20, 62)}

    def decrypted(array: Any) -> list[int]:
        return [int(v) for v in key.decrypt(array.reshape(-1)[:CHECKED])]

    def encrypting(encrypt: Any) -> Operation:
        return Operation(lambda k: x[:k], encrypt, decrypted)

    def multiplying(bits: int) -> Operation:
        inputs = lambda k: (encrypted[:k], factors[bits][:k])  # noqa: E731
        return Operation(inputs, lambda a: a[0] * a[1], decrypted, ADDED)

    def workload(x: Any) -> Any:
        rows = key.encrypt(x)
        key.decrypt(rows[:DECRYPTED])
        return rows.sum_by_bin(table, BINS)

    operations = {
        "encrypt-half": encrypting(lambda v: public.encrypt(v, noise="half")),
        "encrypt-wide": encrypting(lambda v: public.encrypt(v, noise="wide")),
        "encrypt-owner": encrypting(key.encrypt),
        "decrypt": Operation(
            lambda k: encrypted[:k], key.decrypt, lambda v: [int(u) for u in v[:CHECKED]], ADDED
        ),
        "add": Operation(
            lambda k: (encrypted[:k], encrypted[[*range(1, k), 0]]), lambda a: a[0] + a[1], decrypted, ADDED
        ),
        "multiply-20": multiplying(20),
        "multiply-62": multiplying(62),
        "bin-sum": Operation(
            lambda k: (encrypted[:k], table[:k]), lambda a: a[0].sum_by_bin(a[1], BINS), decrypted
        ),
    }
    if public.backend != "portable":
        operations["workload"] = Operation(lambda k: x, workload, lambda sums: [], ROWS)
    assert table.shape == (ROWS, FEATURES)
    return f"vflcrypto ({key.public_key.backend}), Python {platform.python_version()}", operations


if __name__ == "__main__":
    serve(start)
