"""Masks that cancel: every two parties share a secret, one adds what the other subtracts, and only the sum shows.

    mine = PairwiseKey();  ... send mine.public, receive the others' ...
    masks = ZeroSumMasks("shop", mine, {"phone": their_public})
    masks.hide(values, label)              # int64 modulo 2**64, uniform to everybody but the other party

Secrets come from a Diffie-Hellman exchange in the 3072-bit group of RFC 3526, masks from SHAKE-256 of the secret and a
label that is used once. Nobody authenticates the public values: whoever carries them must be honest, if curious.
Source: Bonawitz et al. 2017, section 4 (without its recovery from parties that leave).
"""

from collections.abc import Mapping
from functools import cache
from hashlib import shake_256

import gmpy2
import numpy as np
from numpy.typing import NDArray

from .errors import CryptoError
from .randomness import random_below

GROUP_BITS = 3072
_SECRET_BITS = 512  # twice what the group's strength asks for
_DOMAIN = b"vflcrypto pairwise masks 1"
_GENERATOR = 2


@cache
def group_modulus() -> int:
    """2^3072 - 2^3008 - 1 + 2^64 ([2^2942 pi] + 1690314), a safe prime: RFC 3526, section 4."""
    with gmpy2.context(gmpy2.get_context(), precision=GROUP_BITS + 64):
        digits = int(gmpy2.floor(gmpy2.const_pi() * (gmpy2.mpz(1) << (GROUP_BITS - 130))))
    return int(2**GROUP_BITS - 2 ** (GROUP_BITS - 64) - 1 + 2**64 * (digits + 1690314))


class PairwiseKey:
    """One party's half of every exchange. It cannot be pickled, and nothing prints its secret."""

    def __init__(self) -> None:
        self._secret = (1 << (_SECRET_BITS - 1)) + random_below(1 << (_SECRET_BITS - 1))
        self.public = _to_bytes(int(gmpy2.powmod_sec(_GENERATOR, self._secret, group_modulus())))

    def shared(self, public: bytes) -> bytes:
        """The secret shared with the owner of `public`; CryptoError unless that is an element of the group."""
        value, modulus = int.from_bytes(public, "big"), group_modulus()
        if len(public) != GROUP_BITS // 8 or not 1 < value < modulus - 1:
            raise CryptoError("the public value of a pairwise key lies outside its group")
        return _to_bytes(int(gmpy2.powmod_sec(value, self._secret, modulus)))

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a PairwiseKey cannot be pickled")

    def __repr__(self) -> str:
        return "PairwiseKey(secret not shown)"


class ZeroSumMasks:
    """The masks of one party against each of the others; over all parties they add up to 0 modulo 2**64.

    name, others : distinct names; the public values of the others. The lower name of a pair adds, the higher subtracts.
    """

    def __init__(self, name: str, own: PairwiseKey, others: Mapping[str, bytes]) -> None:
        if name in others:
            raise ValueError(f"{name!r} cannot share a secret with itself")
        self._signs = {other: name < other for other in others}
        self._keys = {
            other: shake_256(
                b"\0".join([_DOMAIN, *sorted([name.encode(), other.encode()]), own.shared(public)])
            ).digest(32)
            for other, public in others.items()
        }
        self._used: set[str] = set()

    def hide(self, values: NDArray[np.int64], label: str) -> NDArray[np.int64]:
        """values + masks modulo 2**64. A label is used once: ValueError for a second time."""
        if label in self._used:
            raise ValueError(f"masks for {label!r} have been used already")
        self._used.add(label)
        total = np.ascontiguousarray(values, dtype=np.int64).view(np.uint64).copy()
        for other, key in self._keys.items():
            stream = shake_256(key + label.encode()).digest(8 * values.size)
            mask = np.frombuffer(stream, dtype="<u8").reshape(values.shape)
            total = total + mask if self._signs[other] else total - mask
        return total.view(np.int64)


def _to_bytes(value: int) -> bytes:
    return value.to_bytes(GROUP_BITS // 8, "big")
