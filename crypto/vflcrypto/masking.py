"""One-time masks: a party lets the key owner decrypt its values and shows it nothing.

    masked, mask = hide(sums)                  # fresh, WIDE; every plaintext is uniform modulo n
    opened = private.decrypt_words(masked)     # elsewhere, by somebody who learns nothing from it
    mask.remove(opened)                        # the integers under `sums`

A mask without fresh noise would hide the plaintext and still show how the ciphertext was computed: the key owner could
test linear relations of its noise. `hide` therefore always blinds, and a mask is drawn anew for every value.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import words as wide
from .ciphertexts import CiphertextArray
from .encoding import FixedPoint
from .errors import DecryptionError
from .noise import WIDE
from .randomness import random_below
from .words import Words


class OneTimeMask:
    """What was added to one array. It comes off once; there is no way to put it on another."""

    def __init__(self, values: list[int], modulus: int, shape: tuple[int, ...], bound: int) -> None:
        self._values: list[int] | None = values
        self._modulus, self._shape, self._bound = modulus, shape, bound

    def remove(self, opened: Words) -> NDArray[Any]:
        """The integers that were hidden: Python integers (dtype object) in the array's shape.

        opened : uint64 (..., n_words), two's complement, as `PrivateKey.decrypt_words` gives them

        Raises ValueError (another number of values, a second use), DecryptionError (beyond the array's bound: somebody
        decrypted something else).
        """
        if self._values is None:
            raise ValueError("this mask has been taken off already: masks are used once")
        rows = np.ascontiguousarray(opened).reshape(-1, opened.shape[-1])
        if len(rows) != len(self._values):
            raise ValueError(f"{len(self._values)} values were masked, {len(rows)} came back")
        masks, self._values = self._values, None
        n, half = self._modulus, self._modulus // 2
        found = [
            (value - mask + half) % n - half for value, mask in zip(wide.to_ints(rows), masks, strict=True)
        ]
        if any(abs(value) > self._bound for value in found):
            raise DecryptionError(
                f"an unmasked value exceeds the bound of {self._bound.bit_length()} bits: "
                "what came back is not the decryption of what was sent"
            )
        out = np.empty(len(found), dtype=object)
        out[:] = found
        return out.reshape(self._shape)

    def __repr__(self) -> str:
        return f"OneTimeMask(shape={self._shape}, used={self._values is None})"


def hide(array: CiphertextArray, n_jobs: int = 1) -> tuple[CiphertextArray, OneTimeMask]:
    """Add a uniform number modulo n to every value and blind the result.

    Plaintext  uniform modulo n, whatever it was; integers (the scale stays with the caller).
    Fresh      yes, WIDE: the receiver holds the private key.
    Cost       one rerandomize("wide") and one multiplication per value.
    Timing     as rerandomize(); drawing the masks depends on n only.
    Raises     TypeError (packed gradients).
    Source     the coordinated protocol of Yang et al., 2019, section 2.4; modulo n rather than in floats.
    """
    encoding = array.encoding
    if not isinstance(encoding, FixedPoint):
        raise TypeError("packed gradients cannot be masked: mask sums of numbers or words")
    key = array.public_key
    values = [random_below(key.n) for _ in range(array.size)]
    rows = wide.from_ints(values, key.ring.words + 1)[:, : key.ring.words]
    elements = key.ring.mul_one_plus_mk(array.elements, np.ascontiguousarray(rows), n_jobs=n_jobs)
    hidden = CiphertextArray(
        key, elements, shape=array.shape, encoding=FixedPoint(), bound=key.capacity
    ).rerandomize(WIDE, n_jobs)
    return hidden, OneTimeMask(values, key.n, array.shape, array.bound)
