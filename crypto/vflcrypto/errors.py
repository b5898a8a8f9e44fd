"""What can go wrong in the crypto room, as a short family.

    CryptoError
    |-- InvalidKeyError          (ValueError)     a key that fails its checks, or is too short
    |-- KeyMismatchError         (ValueError)     values under two different keys meet
    |-- DamagedCiphertextError   (ValueError)     bytes that are no ciphertexts of this key
    |-- DecryptionError          (ValueError)     a decrypted number that no honest sender can have produced
    |-- NotFreshError                             about to send what was not rerandomized
    |-- PrecisionError           (ValueError, OverflowError)  a float that its scale cannot hold
    `-- BoundOverflowError       (OverflowError)  the result might not fit the plaintext space of the key
        `-- SlotOverflowError                     ... or its slot in a packed plaintext

    InsecureKeyWarning           (UserWarning)    a key for tests only was made

No message ever holds a key, a plaintext or randomness: sizes in bits, positions and counts only.
"""


class CryptoError(Exception):
    """Base class of everything this package raises on its own account."""


class InvalidKeyError(CryptoError, ValueError):
    """A key does not pass its checks, or is shorter than allowed."""


class KeyMismatchError(CryptoError, ValueError):
    """Two values belong to different keys."""


class DamagedCiphertextError(CryptoError, ValueError):
    """Bytes are not a well-formed array of ciphertexts under this key."""


class DecryptionError(CryptoError, ValueError):
    """A decrypted number lies where no honest sender can have put it: damaged or forged."""


class NotFreshError(CryptoError):
    """An array that is not freshly blinded was about to leave: call rerandomize() first."""


class PrecisionError(CryptoError, ValueError, OverflowError):
    """A float would lose more than 1e-9 of its value at the chosen number of fraction bits."""


class BoundOverflowError(CryptoError, OverflowError):
    """The result of an operation might not fit the plaintext space of the key."""


class SlotOverflowError(BoundOverflowError):
    """A sum has more terms than the slots of its packing were planned for."""


class InsecureKeyWarning(UserWarning):
    """A key too short for real data was made on explicit request."""
