"""python-paillier (phe) with gmpy2 underneath."""

from __future__ import annotations

import platform
from typing import Any

import gmpy2
import phe
import phe.util
from protocol import BINS, CHECKED, FEATURES, Operation, bins, scalars, serve, values

SUMMED = 2000  # rows of a bin sum


def start(job: dict[str, Any]) -> tuple[str, dict[str, Operation]]:
    assert phe.util.HAVE_GMP
    p, q = int(job["p"], 16), int(job["q"], 16)
    public = phe.PaillierPublicKey(p * q)
    private = phe.PaillierPrivateKey(public, p, q)
    x, table = values(), bins()
    blinded = [public.encrypt(0) for _ in range(32)]
    # Full-size ciphertexts of the right values, without an encryption each.
    rows = [blinded[i % 32] + blinded[(i // 32) % 32] + v for i, v in enumerate(x[:SUMMED])]

    def decrypted(array: Any) -> list[int]:
        return [private.decrypt(c) for c in array[:CHECKED]]

    def sums(count: int) -> list[Any]:
        out: list[Any] = [None] * (FEATURES * BINS)
        for f in range(FEATURES):
            for row, b in zip(rows[:count], table[f], strict=False):
                at = f * BINS + b
                out[at] = row if out[at] is None else out[at] + row
        return [0 if c is None else c for c in out]

    def multiplying(bits: int) -> Operation:
        factors = scalars(bits)
        return Operation(
            lambda k: list(zip(rows[:k], factors, strict=False)),
            lambda pairs: [c * f for c, f in pairs],
            decrypted,
            SUMMED,
        )

    textbook = Operation(lambda k: x[:k], lambda v: [public.encrypt(u) for u in v], decrypted)
    operations = {
        "encrypt-half": textbook,
        "encrypt-wide": textbook,
        "decrypt": Operation(
            lambda k: rows[:k], lambda v: [private.decrypt(c) for c in v], lambda v: v[:CHECKED], SUMMED
        ),
        "add": Operation(
            lambda k: list(zip(rows[:k], [*rows[1:k], rows[0]], strict=True)),
            lambda pairs: [a + b for a, b in pairs],
            decrypted,
            SUMMED,
        ),
        "multiply-20": multiplying(20),
        "multiply-62": multiplying(62),
        "bin-sum": Operation(lambda k: k, sums, decrypted, SUMMED),
    }
    return (
        f"phe {phe.__version__}, gmpy2 {gmpy2.version()} ({gmpy2.mp_version()}), Python {platform.python_version()}",
        operations,
    )


if __name__ == "__main__":
    serve(start)
