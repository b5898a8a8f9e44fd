"""pypaillier: Rust on GMP. It makes its own key, of the same size."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

import paillier
from protocol import BINS, CHECKED, FEATURES, Operation, bins, scalars, serve, values

SUMMED = 4000


def start(job: dict[str, Any]) -> tuple[str, dict[str, Operation]]:
    public, private = paillier.generate_keypair(job["key_bits"])
    x, table = values(), bins()
    rows = [bytes(c) for c in paillier.encrypt_integers(public, x[:SUMMED])]

    def decrypted(array: Any) -> list[int]:
        return [int(v) for v in paillier.decrypt_many(private, [bytes(c) for c in array[:CHECKED]])]

    def blocks(count: int) -> list[list[int]]:
        """Rows of every bin that has some; an empty block would be refused."""
        out: list[list[int]] = [[] for _ in range(FEATURES * BINS)]
        for f in range(FEATURES):
            for i in range(count):
                out[f * BINS + table[f][i]].append(i)
        assert all(out[:CHECKED])
        return [block for block in out if block]

    def multiplying(bits: int) -> Operation:
        factors = scalars(bits)
        return Operation(
            lambda k: (rows[:k], factors[:k]),
            lambda a: paillier.multiply_integers_public(public, *a),
            decrypted,
            SUMMED,
        )

    def summing(of: Any) -> Operation:
        return Operation(
            lambda k: (rows[:k], of(k)), lambda a: paillier.add_blocks(public, *a), decrypted, SUMMED
        )

    operations = {
        "encrypt-half": Operation(
            lambda k: x[:k], lambda v: paillier.encrypt_integers(public, v), decrypted, SUMMED
        ),
        "decrypt": Operation(
            lambda k: rows[:k],
            lambda v: paillier.decrypt_many(private, v),
            lambda v: [int(u) for u in v[:CHECKED]],
            SUMMED,
        ),
        "add": summing(lambda k: [[i, (i + 1) % k] for i in range(k)]),
        "multiply-20": multiplying(20),
        "multiply-62": multiplying(62),
        "bin-sum": summing(blocks),
    }
    return f"pypaillier {version('pypaillier')}, Python {platform.python_version()}", operations


if __name__ == "__main__":
    serve(start)
