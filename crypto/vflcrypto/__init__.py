"""Paillier encryption of whole arrays, on C kernels: encrypt, add up, multiply by plain numbers, blind, decrypt.

    public, private = generate_keypair()            # 3072 bits
    c = public.encrypt([1.5, -2.0])                 # a CiphertextArray
    private.decrypt(3 * c + 1)                      # array([5.5, -5. ])

Nothing computed leaves unblinded: `to_bytes()` of an array that is not fresh raises until `rerandomize()`.
Randomness comes from the operating system only. docs/crypto.md tells the rest.
"""

from . import errors
from .ciphertexts import CiphertextArray, concatenate
from .encoding import FixedPoint
from .errors import (
    BoundOverflowError,
    CryptoError,
    DamagedCiphertextError,
    DecryptionError,
    InsecureKeyWarning,
    InvalidKeyError,
    KeyMismatchError,
    NotFreshError,
    PrecisionError,
    SlotOverflowError,
)
from .keycache import obtain_keypair, reuse_keys
from .packing import Packing, PackingPlan, plan_packing, split_slots
from .paillier import PrivateKey, PublicKey, generate_keypair
from .pool import BlindingPool
from .slots import SlotPlan, plan_slots

__all__ = [
    "BlindingPool",
    "BoundOverflowError",
    "CiphertextArray",
    "CryptoError",
    "DamagedCiphertextError",
    "DecryptionError",
    "FixedPoint",
    "InsecureKeyWarning",
    "InvalidKeyError",
    "KeyMismatchError",
    "NotFreshError",
    "Packing",
    "PackingPlan",
    "PrecisionError",
    "PrivateKey",
    "PublicKey",
    "SlotOverflowError",
    "SlotPlan",
    "concatenate",
    "errors",
    "generate_keypair",
    "obtain_keypair",
    "plan_packing",
    "plan_slots",
    "reuse_keys",
    "split_slots",
]
