"""What a careful person writes by hand on gmpy2: plain loops, CRT, the short-exponent noise of Damgard, Jurik and
Nielsen, with a fixed-base table of window 8 or without one (options: table). Nothing in it is constant-time."""

from __future__ import annotations

import platform
import secrets
from typing import Any

import gmpy2
from gmpy2 import mpz, powmod
from protocol import BINS, CHECKED, FEATURES, Operation, bins, scalars, serve, values

SUMMED = 4000
WINDOW = 8


class Key:
    def __init__(self, p: int, q: int) -> None:
        self.p, self.q, self.n = mpz(p), mpz(q), mpz(p) * q
        self.n2, self.p2, self.q2 = self.n**2, self.p**2, self.q**2
        self.bits = self.n.bit_length()
        x = mpz(secrets.randbelow(int(self.n)))
        self.base = powmod(-x * x, self.n, self.n2)
        self.hp = gmpy2.invert((powmod(self.n + 1, self.p - 1, self.p2) - 1) // self.p, self.p)
        self.hq = gmpy2.invert((powmod(self.n + 1, self.q - 1, self.q2) - 1) // self.q, self.q)
        self.p_inverse = gmpy2.invert(self.p, self.q)
        self.p2_inverse = gmpy2.invert(self.p2, self.q2)
        self.ep, self.eq = self.n % (self.p * (self.p - 1)), self.n % (self.q * (self.q - 1))

    def make_table(self, bits: int) -> None:
        self.table, base = [], self.base
        for _ in range(-(-bits // WINDOW)):
            row = [mpz(1)]
            for _ in range((1 << WINDOW) - 1):
                row.append(row[-1] * base % self.n2)
            self.table.append(row)
            base = row[-1] * base % self.n2

    def noise_powmod(self, bits: int) -> Any:
        return powmod(self.base, mpz(secrets.randbits(bits)), self.n2)

    def noise_table(self, bits: int) -> Any:
        a, n2, product = secrets.randbits(bits), self.n2, mpz(1)
        mask = (1 << WINDOW) - 1
        for row in self.table[: -(-bits // WINDOW)]:
            product = product * row[a & mask] % n2
            a >>= WINDOW
        return product

    def noise_owner(self, bits: int) -> Any:
        r = mpz(secrets.randbits(bits - 1))
        a, b = powmod(r, self.ep, self.p2), powmod(r, self.eq, self.q2)
        return a + self.p2 * ((b - a) * self.p2_inverse % self.q2)

    def decrypt(self, c: Any) -> int:
        mp = (powmod(c, self.p - 1, self.p2) - 1) // self.p * self.hp % self.p
        mq = (powmod(c, self.q - 1, self.q2) - 1) // self.q * self.hq % self.q
        return int(mp + self.p * ((mq - mp) * self.p_inverse % self.q))


def start(job: dict[str, Any]) -> tuple[str, dict[str, Operation]]:
    key = Key(int(job["p"], 16), int(job["q"], 16))
    n, n2, half, wide = key.n, key.n2, key.bits // 2, key.bits + 128
    x = [mpz(v) for v in values()]

    def decrypted(array: Any) -> list[int]:
        return [key.decrypt(c) for c in array[:CHECKED]]

    def encrypting(noise: Any, bits: int) -> Operation:
        return Operation(
            lambda k: x[:k], lambda v: [(1 + n * m) * noise(bits) % n2 for m in v], decrypted, SUMMED
        )

    versions = f"gmpy2 {gmpy2.version()} ({gmpy2.mp_version()}), Python {platform.python_version()}"
    if not job["options"]["table"]:
        return versions, {
            "encrypt-half": encrypting(key.noise_powmod, half),
            "encrypt-wide": encrypting(key.noise_powmod, wide),
            "encrypt-owner": encrypting(key.noise_owner, key.bits),
        }
    key.make_table(wide)
    blinded = [key.noise_table(half) for _ in range(64)]
    rows = [(1 + n * m) * blinded[i % 64] * blinded[(i // 64) % 64] % n2 for i, m in enumerate(x[:SUMMED])]

    def sums(inputs: Any) -> list[Any]:
        chosen, table = inputs
        out = [mpz(1)] * (FEATURES * BINS)
        for f in range(FEATURES):
            for row, b in zip(chosen, table[f], strict=False):
                out[f * BINS + b] = out[f * BINS + b] * row % n2
        return out

    def multiplying(bits: int) -> Operation:
        factors = scalars(bits)
        return Operation(
            lambda k: list(zip(rows[:k], factors, strict=False)),
            lambda pairs: [powmod(c, f, n2) for c, f in pairs],
            decrypted,
            SUMMED,
        )

    table = bins()
    return versions, {
        "encrypt-half": encrypting(key.noise_table, half),
        "encrypt-wide": encrypting(key.noise_table, wide),
        "decrypt": Operation(
            lambda k: rows[:k], lambda v: [key.decrypt(c) for c in v], lambda v: v[:CHECKED], SUMMED
        ),
        "add": Operation(
            lambda k: list(zip(rows[:k], [*rows[1:k], rows[0]], strict=True)),
            lambda pairs: [a * b % n2 for a, b in pairs],
            decrypted,
            SUMMED,
        ),
        "multiply-20": multiplying(20),
        "multiply-62": multiplying(62),
        "bin-sum": Operation(lambda k: (rows[:k], table), sums, decrypted, SUMMED),
    }


if __name__ == "__main__":
    serve(start)
