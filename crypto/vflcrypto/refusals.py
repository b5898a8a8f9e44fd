"""What Paillier cannot do, as a base class whose every operator explains itself with a TypeError."""

import sys
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

NO_PRODUCT = (
    "Paillier adds ciphertexts and multiplies only by plain numbers: two ciphertexts cannot be multiplied"
)
NO_QUOTIENT = "Paillier cannot divide by a ciphertext: it adds ciphertexts and multiplies by plain numbers"


class Refusals:
    """The operators of numbers and arrays that make no sense on encrypted values."""

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, *args: Any, **kwargs: Any) -> NDArray[np.object_]:
        # `sparse @ c` asks here first. SciPy hands over to our __rmatmul__ only if the answer is an array of no
        # dimensions holding an object, so SciPy alone gets one; nobody else is to have encrypted values in an array.
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.startswith("scipy.sparse."):
            answer = np.empty((), dtype=object)
            answer[()] = self
            return answer
        raise TypeError("a CiphertextArray holds encrypted values: decrypt it with the private key first")

    def __bool__(self) -> NoReturn:
        raise TypeError("an encrypted value is neither true nor false: decrypt it first")

    def __pow__(self, other: Any) -> NoReturn:
        raise TypeError(
            "Paillier cannot raise ciphertexts to a power: it adds them and multiplies by plain numbers"
        )

    def __rtruediv__(self, other: Any) -> NoReturn:
        raise TypeError(NO_QUOTIENT)

    def _no_integer_division(self, other: Any) -> NoReturn:
        raise TypeError("Paillier has no integer division: multiply by a plain number, or decrypt first")

    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = _no_integer_division

    def _no_comparison(self, other: Any) -> NoReturn:
        raise TypeError("ciphertexts cannot be compared: decrypt them first")

    __lt__ = __le__ = __gt__ = __ge__ = _no_comparison
    __eq__ = __ne__ = _no_comparison
