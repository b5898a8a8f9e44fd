"""To and from python-paillier (phe): keys and ciphertexts, both ways.

phe is imported only when something is handed to it. Its primes are not safe primes, so keys that come from it blind
with textbook noise here; see `noise.py`. Its ciphertexts carry an exponent each (base 16); here they share one scale,
so they are aligned to the smallest exponent on the way in.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import words as wide
from .ciphertexts import CiphertextArray
from .encoding import FixedPoint
from .errors import BoundOverflowError, KeyMismatchError, NotFreshError
from .paillier import PrivateKey, PublicKey
from .wire import check_units

if TYPE_CHECKING:
    import phe

_BASE_BITS = 4  # phe's exponents count powers of 16


def public_key_from_phe(
    key: "phe.PaillierPublicKey", *, allow_weak_key: bool = False, backend: str | None = None
) -> PublicKey:
    """phe's public key. It blinds with textbook noise, whatever structure its primes have."""
    return PublicKey(int(key.n), allow_weak_key=allow_weak_key, backend=backend, textbook_noise=True)


def public_key_to_phe(key: PublicKey) -> "phe.PaillierPublicKey":
    """The same modulus for phe."""
    import phe

    return phe.PaillierPublicKey(key.n)


def private_key_from_phe(
    key: "phe.PaillierPrivateKey", *, allow_weak_key: bool = False, backend: str | None = None
) -> PrivateKey:
    """phe's private key; its public half blinds with textbook noise."""
    return PrivateKey(
        int(key.p), int(key.q), allow_weak_key=allow_weak_key, backend=backend, textbook_noise=True
    )


def unsafe_private_key_to_phe(key: PrivateKey) -> "phe.PaillierPrivateKey":
    """The same primes for phe, which pickles and copies them freely: hence the name."""
    import phe

    return phe.PaillierPrivateKey(public_key_to_phe(key.public_key), *key.unsafe_primes())


def ciphertexts_from_phe(
    numbers: "Sequence[phe.EncryptedNumber]", public_key: PublicKey, *, bound: float | None = None
) -> CiphertextArray:
    """phe's encrypted numbers as one array. Not fresh: rerandomize() before it leaves.

    Plaintext  fixed point at the smallest exponent; integers if no exponent is negative.
    Fresh      no.
    Cost       a checked conversion; a squaring per bit by which a number must be aligned.
    Timing     depends on the exponents, which are public in phe.
    Raises     KeyMismatchError, DamagedCiphertextError, BoundOverflowError.
    Source     python-paillier 1.5, EncryptedNumber.

    Parameters
    ----------
    numbers : sequence of n encrypted numbers
    bound : no value is larger in magnitude; by default half the key's bits, which leaves room for sums and products
        on either side. Decryption refuses what lies beyond.

    Returns
    -------
    CiphertextArray of shape (n,)
    """
    ring = public_key.ring
    for index, number in enumerate(numbers):
        if number.public_key.n != public_key.n:
            raise KeyMismatchError(f"encrypted number {index} belongs to another key")
    elements = ring.from_ints([int(number.ciphertext(be_secure=False)) for number in numbers])
    check_units(ring, elements)
    exponents = np.array([number.exponent for number in numbers], dtype=np.int64)
    lowest = min(0, int(exponents.min(initial=0)))
    up = _BASE_BITS * (exponents - lowest)
    if up.any():
        powers = wide.from_ints([1 << int(bits) for bits in up], wide.words_for(int(up.max()) + 2))
        elements = ring.pow_vartime(elements, powers)
    fraction_bits = -_BASE_BITS * lowest
    limit = 1 << (public_key.key_bits // 2) if bound is None else int(bound * 2**fraction_bits) + 1
    if limit > public_key.capacity:
        raise BoundOverflowError(
            f"values of {limit.bit_length()} bits with {fraction_bits} fraction bits do not fit: "
            f"the key offers {public_key.capacity.bit_length()}"
        )
    return CiphertextArray(
        public_key,
        elements,
        shape=(len(numbers),),
        encoding=FixedPoint(fraction_bits, lowest == 0),
        bound=limit,
    )


def ciphertexts_to_phe(array: CiphertextArray, key: "phe.PaillierPublicKey | None" = None) -> list[Any]:
    """An array as phe's encrypted numbers, in C order. It leaves this library, so it must be fresh.

    Raises NotFreshError, KeyMismatchError (another key), ValueError (fraction_bits is no multiple of 4).
    """
    import phe

    if array.freshness is None:
        raise NotFreshError("the array is not freshly blinded: rerandomize() it before it leaves")
    encoding = array.encoding
    if not isinstance(encoding, FixedPoint):
        raise TypeError("packed values mean nothing to phe: decrypt and unpack them here")
    if encoding.fraction_bits % _BASE_BITS:
        raise ValueError(
            f"phe scales by powers of 16: fraction_bits={encoding.fraction_bits} is no multiple of 4"
        )
    key = key or public_key_to_phe(array.public_key)
    if key.n != array.public_key.n:
        raise KeyMismatchError("the array belongs to another key")
    exponent = -(encoding.fraction_bits // _BASE_BITS)
    ciphertexts = array.public_key.ring.to_ints(array.elements)
    return [phe.EncryptedNumber(key, ciphertext, exponent) for ciphertext in ciphertexts]
