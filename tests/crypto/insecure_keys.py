"""Fixed weak keys for tests; named so that nobody takes them for more."""

import json
from functools import cache
from pathlib import Path

from vflcrypto import PrivateKey

VECTORS = Path(__file__).resolve().parents[1] / "vectors"


def primes_of(name: str) -> tuple[int, int]:
    """p and q of tests/vectors/insecure_keys.json."""
    primes = json.loads((VECTORS / "insecure_keys.json").read_text())["keys"][name]
    return int(primes["p"], 16), int(primes["q"], 16)


@cache
def insecure_key(name: str, backend: str | None = None) -> PrivateKey:
    """The private key, made once per backend and process."""
    return PrivateKey.from_primes(*primes_of(name), allow_weak_key=True, backend=backend)
