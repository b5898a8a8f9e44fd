"""Paillier's cryptosystem: the four formulas in plain integers, and the two keys that run them on arrays.

    [[m]] = (1 + m n) r^n mod n^2      [[a]] [[b]] = [[a + b]]      [[a]]^k = [[k a]]
    decrypt: L(c^lambda mod n^2) / lambda mod n,  L(u) = (u - 1) / n,  lambda = lcm(p - 1, q - 1)

Source: Paillier 1999. The formulas are the reference that tests hold the kernels to; everything else goes through
`kernels.py`.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from hashlib import sha256
from math import gcd, lcm
from threading import Event
from typing import Any, NoReturn
from warnings import warn

import gmpy2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import keyformat, wire
from . import words as wide
from .batches import SHARED_VECTORS, run, spans, thread_count
from .callers import outside_level
from .ciphertexts import CiphertextArray, on_ring
from .encoding import FixedPoint, decode, encode
from .errors import BoundOverflowError, DecryptionError, InsecureKeyWarning, InvalidKeyError, KeyMismatchError
from .kernels import CrtRings, Elements, Ring
from .noise import HALF, WIDE, OwnerNoise, PublicNoise, check_noise
from .pool import DEFAULT_CAPACITY, Blinder, BlindingPool
from .primes import MILLER_RABIN_ROUNDS, is_prime, random_safe_prime
from .randomness import primes_below
from .words import Words

ALLOWED_KEY_BITS = (2048, 3072, 4096)
DEFAULT_KEY_BITS = 3072  # 128 bits of security
_THREADED_BITS = 512  # of a prime, from where a second thread is worth starting
_NOTICE_SECONDS = 0.2  # after which a Ctrl-C ends a search at the latest
SHARED_ROWS = 8 * SHARED_VECTORS  # numbers, at eight a vector
MINIMUM_GENERATED_BITS = 64  # tests only, far below anything secure
_FINGERPRINT_DOMAIN = b"vflcrypto: Paillier public key, version 1"


# ---- the reference ----


def encrypt_integer(n: int, m: int, r: int) -> int:
    """(1 + m n) r^n mod n^2, for m modulo n and r coprime to n."""
    if gcd(r, n) != 1:
        raise ValueError("r must be coprime to n")
    return (1 + m % n * n) * pow(r, n, n * n) % (n * n)


def add_integers(n: int, a: int, b: int) -> int:
    """The ciphertext of the sum."""
    return a * b % (n * n)


def multiply_integer(n: int, c: int, k: int) -> int:
    """The ciphertext of k times the plaintext; k may be negative."""
    return pow(c, k, n * n)


def decrypt_integer(p: int, q: int, c: int) -> int:
    """The plaintext in [0, n), n = p q."""
    n, exponent = p * q, lcm(p - 1, q - 1)
    return (pow(c, exponent, n * n) - 1) // n * pow(exponent, -1, n) % n


# ---- keys ----


class PublicKey:
    """n, and what anybody can do with it: encrypt, and compute on ciphertexts.

    Parameters
    ----------
    n : the modulus; checked (size, odd, composite, no perfect power, no small factor)
    allow_weak_key : accept sizes other than 2048, 3072 and 4096 bits; for tests and interoperation
    backend : "ifma", "avx2", "portable" or None for the best that runs here
    textbook_noise : blind with r^n for uniform r, some ten times slower. For keys whose primes are not safe
        primes (phe's); the fast noise would then leave out cosets of small order

    Attributes
    ----------
    n, key_bits : int
    fingerprint : bytes, 32 of SHA-256 over a domain string and n
    capacity : int, the largest magnitude of a plaintext, (n - 1) / 2
    """

    def __init__(
        self,
        n: int,
        *,
        allow_weak_key: bool = False,
        backend: str | None = None,
        textbook_noise: bool = False,
    ) -> None:
        _check_size(n, allow_weak_key)
        _check_modulus(n)
        self.n = n
        self.key_bits = n.bit_length()
        self.capacity = (n - 1) // 2
        self.fingerprint = sha256(_FINGERPRINT_DOMAIN + keyformat.big_endian(n)).digest()
        self.textbook_noise = textbook_noise
        self.ring = Ring(n, backend=backend)
        source = self.noise = PublicNoise(self.ring, textbook=textbook_noise)
        self.blinder = Blinder(
            self.fingerprint,
            self.ring,
            lambda count, kind, jobs: source.draw(count, kind, jobs),
            (HALF, WIDE),
        )

    @property
    def public_key(self) -> "PublicKey":
        """Itself, so that code may take either key."""
        return self

    @property
    def backend(self) -> str:
        """Which kernels run: "ifma", "avx2" or "portable"."""
        return self.ring.backend

    def encrypt(
        self,
        values: ArrayLike,
        *,
        fraction_bits: int | None = None,
        bound: float | None = None,
        noise: str = HALF,
        n_jobs: int = 1,
    ) -> CiphertextArray:
        """Encrypt numbers of any shape.

        Plaintext  integers exactly; floats in fixed point with fraction_bits (by default encoding.FRACTION_BITS). The
                   scale and the bound follow the type or the arguments and are public.
        Fresh      yes, of class `noise`: HALF rests on factoring; WIDE is for receivers with the private key.
        Cost       one fixed-base exponentiation and two multiplications per value.
        Timing     the exponentiation is constant-time; encoding in NumPy is not covered.
        Raises     TypeError and ValueError (no numbers, NaN), PrecisionError, BoundOverflowError.
        Source     Paillier 1999; noise: Damgard, Jurik, Nielsen 2010, see noise.py.
        """
        check_noise(noise)
        plain = encode(values, fraction_bits=fraction_bits, bound=bound, capacity=self.capacity)
        elements = _encrypt(
            self, plain.words, lambda count, jobs: self.blinder.draw(count, noise, jobs), n_jobs
        )
        return CiphertextArray(
            self,
            elements,
            shape=plain.shape,
            encoding=plain.encoding,
            bound=plain.bound,
            freshness=self.noise.freshness(noise),
        )

    def encrypt_words(
        self, words: Words, *, bound: int, noise: str = HALF, n_jobs: int = 1
    ) -> CiphertextArray:
        """Encrypt integers wider than 64 bits.

        Plaintext  exact integers of magnitude at most `bound`, which is public.
        Fresh      yes, of class `noise`.
        Cost       as encrypt().
        Timing     as encrypt().
        Raises     BoundOverflowError (a value beyond the bound, the bound beyond the key), TypeError, ValueError.
        Source     as encrypt().

        Parameters
        ----------
        words : ndarray of uint64, shape (..., n_words), least significant first, two's complement
        """
        check_noise(noise)
        rows, shape = _checked_words(words, bound, self.capacity)
        elements = _encrypt(self, rows, lambda count, jobs: self.blinder.draw(count, noise, jobs), n_jobs)
        return CiphertextArray(
            self,
            elements,
            shape=shape,
            encoding=FixedPoint(),
            bound=bound,
            freshness=self.noise.freshness(noise),
        )

    def blinding_pool(
        self, capacity: int = DEFAULT_CAPACITY, noise: str = WIDE, n_jobs: int = 1
    ) -> BlindingPool:
        """`with key.blinding_pool():` rerandomize() and encrypt() of this class take noise made in the background."""
        return BlindingPool(self, noise, capacity, n_jobs)

    def to_bytes(self) -> bytes:
        """A checked, versioned form; read by from_bytes."""
        return keyformat.public_to_bytes(self.n, self.textbook_noise, self.fingerprint)

    @classmethod
    def from_bytes(
        cls, data: bytes, *, allow_weak_key: bool = False, backend: str | None = None
    ) -> "PublicKey":
        """Read a received key. Whether its primes are safe cannot be seen; everything else is checked.

        Raises InvalidKeyError (a ValueError).
        """
        n, textbook, fingerprint = keyformat.public_from_bytes(data)
        return cls._received(n, textbook, fingerprint, allow_weak_key, backend)

    def to_json(self) -> str:
        """A JSON document with the modulus as a hexadecimal string: no number in it exceeds 2**53."""
        return keyformat.public_to_json(self.n, self.textbook_noise, self.fingerprint)

    @classmethod
    def from_json(cls, text: str, *, allow_weak_key: bool = False, backend: str | None = None) -> "PublicKey":
        """Read what to_json wrote, with the checks of from_bytes."""
        n, textbook, fingerprint = keyformat.public_from_json(text)
        return cls._received(n, textbook, fingerprint, allow_weak_key, backend)

    @classmethod
    def _received(
        cls, n: int, textbook: bool, fingerprint: bytes, allow_weak_key: bool, backend: str | None
    ) -> "PublicKey":
        key = cls(n, allow_weak_key=allow_weak_key, backend=backend, textbook_noise=textbook)
        if key.fingerprint != fingerprint:
            raise InvalidKeyError(
                "the fingerprint of the public key does not match its modulus: damaged bytes"
            )
        return key

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled_public_key, (self.to_bytes(),)

    def __copy__(self) -> "PublicKey":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "PublicKey":
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicKey) and other.n == self.n

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"PublicKey({self.key_bits} bits, {self.fingerprint[:8].hex()})"


class PrivateKey:
    """The primes, and what only their owner can do: decrypt, and encrypt faster than everybody else.

    It cannot be pickled, and nothing prints it. `unsafe_private_bytes` is the one way out. Copies are the key itself.
    """

    def __init__(
        self,
        p: int,
        q: int,
        *,
        allow_weak_key: bool = False,
        backend: str | None = None,
        textbook_noise: bool = False,
        _known_safe: bool = False,
    ) -> None:
        safe = _known_safe or _check_primes(p, q)
        self._public_key = PublicKey(
            p * q, allow_weak_key=allow_weak_key, backend=backend, textbook_noise=textbook_noise or not safe
        )
        self._rings = CrtRings(p, q, ring=self._public_key.ring)
        source = self._noise = OwnerNoise(self._rings, safe_primes=safe)
        self.blinder = Blinder(
            self.fingerprint, self.public_key.ring, lambda count, _, jobs: source.draw(count, jobs), (WIDE,)
        )
        self._primes = (p, q)

    @classmethod
    def from_primes(
        cls, p: int, q: int, *, allow_weak_key: bool = False, backend: str | None = None
    ) -> "PrivateKey":
        """The key of two given primes. Unless both are safe primes, blinding is the slow textbook's, on either side."""
        return cls(p, q, allow_weak_key=allow_weak_key, backend=backend)

    @property
    def public_key(self) -> PublicKey:
        return self._public_key

    @property
    def key_bits(self) -> int:
        return self._public_key.key_bits

    @property
    def fingerprint(self) -> bytes:
        """That of the public key."""
        return self._public_key.fingerprint

    def encrypt(
        self,
        values: ArrayLike,
        *,
        fraction_bits: int | None = None,
        bound: float | None = None,
        n_jobs: int = 1,
    ) -> CiphertextArray:
        """Encrypt numbers of any shape, modulo p^2 and q^2.

        Plaintext  as PublicKey.encrypt.
        Fresh      yes, WIDE: within 2^-128 of textbook noise.
        Cost       two fixed-base exponentiations of half the size, three multiplications per value.
        Timing     exponentiations and the joining of remainders are constant-time; encoding is not covered.
        Raises     as PublicKey.encrypt.
        Source     Paillier 1999, section 7 (Chinese remainders); see noise.py.
        """
        plain = encode(values, fraction_bits=fraction_bits, bound=bound, capacity=self.public_key.capacity)
        elements = _encrypt(
            self.public_key, plain.words, lambda count, jobs: self.blinder.draw(count, WIDE, jobs), n_jobs
        )
        return CiphertextArray(
            self.public_key,
            elements,
            shape=plain.shape,
            encoding=plain.encoding,
            bound=plain.bound,
            freshness=WIDE,
        )

    def encrypt_words(self, words: Words, *, bound: int, n_jobs: int = 1) -> CiphertextArray:
        """PublicKey.encrypt_words by the owner's path: always WIDE."""
        rows, shape = _checked_words(words, bound, self.public_key.capacity)
        elements = _encrypt(
            self.public_key, rows, lambda count, jobs: self.blinder.draw(count, WIDE, jobs), n_jobs
        )
        return CiphertextArray(
            self.public_key, elements, shape=shape, encoding=FixedPoint(), bound=bound, freshness=WIDE
        )

    def blinding_pool(self, capacity: int = DEFAULT_CAPACITY, n_jobs: int = 1) -> BlindingPool:
        """`with key.blinding_pool():` the owner's encrypt() takes noise made in the background."""
        return BlindingPool(self, WIDE, capacity, n_jobs)

    def decrypt(self, array: CiphertextArray, n_jobs: int = 1) -> NDArray[Any]:
        """The numbers of an array, in its shape (0-d for scalars).

        Plaintext  int64 where all values fit, else Python integers (dtype object); float64 for fixed point. Packed
                   arrays give their integers: see decrypt_words and PackingPlan.unpack.
        Fresh      none.
        Cost       two exponentiations modulo p^2 and q^2 per value.
        Timing     constant-time in the exponents and the joining of remainders; decoding is not covered.
        Raises     KeyMismatchError, DecryptionError (beyond the array's bound: damaged or forged).
        Source     Paillier 1999, section 7.
        """
        encoding = array.encoding if isinstance(array.encoding, FixedPoint) else FixedPoint()
        return decode(self._decrypt(array, n_jobs), array.shape, encoding)

    def decrypt_words(self, array: CiphertextArray, n_jobs: int = 1) -> Words:
        """The encoded integers of an array, without a Python object per value.

        Plaintext  two's complement, sign-extended to ceil(key_bits / 64) words, least significant first.
        Fresh      none.
        Cost       as decrypt().
        Timing     as decrypt().
        Raises     as decrypt().
        Source     as decrypt().

        Returns
        -------
        ndarray of uint64, shape (*array.shape, n_words)
        """
        n_words = self.public_key.ring.words
        return wide.resize(self._decrypt(array, n_jobs), n_words).reshape(*array.shape, n_words)

    def _decrypt(self, array: CiphertextArray, n_jobs: int) -> Words:
        """Signed rows, as many words as the bound needs."""
        if array.public_key.fingerprint != self.fingerprint:
            raise KeyMismatchError(
                f"the array belongs to key {array.public_key.fingerprint[:8].hex()}, "
                f"this is the private key of {self.fingerprint[:8].hex()}"
            )
        array = on_ring(array, self.public_key)
        ring = self.public_key.ring
        n_words, step = wide.words_for(array.bound.bit_length() + 1), wire.chunk_size(ring)
        out = np.empty((array.size, min(n_words, ring.words)), dtype=np.uint64)
        for start in range(0, array.size, step):
            residues = self._rings.decrypt(array.elements[start : start + step], n_jobs=n_jobs)
            signed = wide.centred(residues, self.public_key.n)
            beyond = wide.exceeds(wide.absolute(signed)[0], array.bound)
            if beyond.any():
                index = start + int(np.flatnonzero(beyond)[0])
                raise DecryptionError(
                    f"value {index} decrypts beyond the bound of {array.bound.bit_length()} bits "
                    "that its array declares: damaged or forged"
                )
            out[start : start + step] = wide.resize(signed, out.shape[1])
        return out

    def unsafe_private_bytes(self) -> bytes:
        """The primes in the clear. Whoever has these bytes decrypts everything: store them accordingly."""
        return keyformat.private_to_bytes(*self._primes, self.public_key.textbook_noise, self.fingerprint)

    @classmethod
    def from_unsafe_private_bytes(
        cls, data: bytes, *, allow_weak_key: bool = False, backend: str | None = None
    ) -> "PrivateKey":
        """Read what unsafe_private_bytes wrote. Raises InvalidKeyError (a ValueError)."""
        p, q, textbook, fingerprint = keyformat.private_from_bytes(data)
        key = cls(p, q, allow_weak_key=allow_weak_key, backend=backend, textbook_noise=textbook)
        if key.fingerprint != fingerprint:
            raise InvalidKeyError(
                "the fingerprint of the private key does not match its primes: damaged bytes"
            )
        return key

    def unsafe_primes(self) -> tuple[int, int]:
        """p and q in the clear; for tests and for other libraries."""
        return self._primes

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a PrivateKey cannot be pickled; unsafe_private_bytes() is the explicit way to store it"
        )

    def __copy__(self) -> "PrivateKey":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "PrivateKey":
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrivateKey) and other.public_key == self.public_key

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"PrivateKey({self.key_bits} bits, {self.fingerprint[:8].hex()}, secrets not shown)"


def generate_keypair(
    key_bits: int = DEFAULT_KEY_BITS, allow_weak_key: bool = False, backend: str | None = None
) -> tuple[PublicKey, PrivateKey]:
    """Make a key of exactly key_bits bits from two random safe primes.

    Parameters
    ----------
    key_bits : 2048, 3072 or 4096; anything else only with allow_weak_key=True
    allow_weak_key : for tests: any size from 64 bits up, with an InsecureKeyWarning
    backend : "ifma", "avx2", "portable" or None for the best that runs here

    Returns
    -------
    public key, private key

    Notes
    -----
    Safe primes at every size, from the operating system's randomness only; see primes.py. The time varies by a
    factor of several around its mean, as any search for primes does.
    """
    if isinstance(key_bits, bool) or int(key_bits) != key_bits:
        raise TypeError(f"key_bits must be an integer, got {key_bits!r}")
    _check_bits(key_bits, allow_weak_key)
    if not MINIMUM_GENERATED_BITS <= key_bits <= keyformat.MAX_KEY_BITS or key_bits % 2:
        raise InvalidKeyError(
            f"even in tests keys have an even number of {MINIMUM_GENERATED_BITS} to {keyformat.MAX_KEY_BITS} "
            f"bits, got {key_bits}"
        )
    if key_bits < min(ALLOWED_KEY_BITS):
        warn(
            f"a {key_bits}-bit key protects nothing: use it in tests only",
            InsecureKeyWarning,
            stacklevel=outside_level(),
        )
    while True:
        p, q = _two_safe_primes(key_bits // 2)
        # Close primes would let Fermat factor n; at real sizes this never happens by chance.
        far_apart = abs(p - q).bit_length() > key_bits // 2 - 100
        if p != q and far_apart and gcd(p * q, (p - 1) * (q - 1)) == 1:
            private_key = PrivateKey(p, q, allow_weak_key=allow_weak_key, backend=backend, _known_safe=True)
            return private_key.public_key, private_key


def _two_safe_primes(bits: int) -> tuple[int, int]:
    """Two searches side by side: gmpy2 lets other threads run during a power. A Ctrl-C ends both."""
    given_up = Event()

    def search() -> int:
        with gmpy2.context(gmpy2.get_context(), allow_release_gil=True):
            return random_safe_prime(bits, given_up.is_set)

    if bits < _THREADED_BITS:
        return search(), search()
    with ThreadPoolExecutor(2) as pool:
        try:
            searches = [pool.submit(search) for _ in range(2)]
            for each in searches:
                # A signal that comes just before a wait without limit would be noticed only when that ends.
                while not each.done():
                    wait([each], timeout=_NOTICE_SECONDS)
            p, q = (each.result() for each in searches)
        finally:
            given_up.set()  # the pool waits for its threads, so they must not go on
    return p, q


def _encrypt(key: PublicKey, words: Words, draw: Callable[[int, int], Elements], n_jobs: int) -> Elements:
    """(1 + m n) times noise. Every thread does its share from the first random bit on, a chunk at a time so that little
    memory is needed beside the result."""
    ring, step = key.ring, wire.chunk_size(key.ring)
    out = np.empty((len(words), 2 * ring.words), dtype=np.uint64)
    threads = thread_count(n_jobs)
    shares = spans(len(words), threads, SHARED_ROWS)
    inside = threads if len(shares) == 1 else 1

    def task(start: int, stop: int) -> None:
        for first in range(start, stop, step):
            last = min(first + step, stop)
            messages = wide.residues(words[first:last], key.n)
            out[first:last] = ring.mul_one_plus_mk(draw(last - first, inside), messages)

    run(task, shares, threads)
    return out


def _checked_words(words: Words, bound: int, capacity: int) -> tuple[Words, tuple[int, ...]]:
    """Rows and shape of an array of wide integers, each within its bound."""
    words = np.asarray(words)
    if words.dtype != np.uint64 or words.ndim < 1 or words.shape[-1] < 1:
        raise TypeError(
            f"words must be uint64 of shape (..., n_words), got {words.dtype} of shape {words.shape}"
        )
    if not 0 < bound <= capacity:
        raise BoundOverflowError(
            f"a bound of {bound.bit_length()} bits was declared, the key offers {capacity.bit_length()}"
        )
    rows = np.ascontiguousarray(words).reshape(-1, words.shape[-1])
    beyond = wide.exceeds(wide.absolute(rows)[0], bound)
    if beyond.any():
        raise BoundOverflowError(
            f"{int(beyond.sum())} values exceed the declared bound of {bound.bit_length()} bits"
        )
    return rows, words.shape[:-1]


def _check_bits(bits: int, allow_weak_key: bool) -> None:
    if bits in ALLOWED_KEY_BITS or allow_weak_key:
        return
    sizes = ", ".join(map(str, ALLOWED_KEY_BITS))
    raise InvalidKeyError(f"keys have {sizes} bits, got {bits}; tests may pass allow_weak_key=True")


def _check_size(n: int, allow_weak_key: bool) -> None:
    if n < 9 or n % 2 == 0:
        raise InvalidKeyError("the modulus of a public key must be a positive odd number")
    _check_bits(n.bit_length(), allow_weak_key)


def _check_modulus(n: int) -> None:
    """What can be seen of a modulus: composite, no perfect power, no small factor."""
    limit = 1 << min(16, n.bit_length() // 4)  # toy keys have small primes by nature
    for prime in primes_below(limit):
        if n % int(prime) == 0:
            raise InvalidKeyError(f"the modulus of the public key has the small factor {prime}")
    if gmpy2.is_power(n):
        raise InvalidKeyError("the modulus of the public key is a perfect power")
    if gmpy2.is_prime(n, MILLER_RABIN_ROUNDS):
        raise InvalidKeyError("the modulus of the public key is prime")


def _check_primes(p: int, q: int) -> bool:
    """Refuses what makes no key; tells whether both primes are safe."""
    if p == q or not is_prime(p) or not is_prime(q):
        raise InvalidKeyError("a private key needs two different primes")
    if gcd(p * q, (p - 1) * (q - 1)) != 1:
        raise InvalidKeyError("n and (p - 1)(q - 1) share a factor: decryption would be ambiguous")
    return is_prime((p - 1) // 2) and is_prime((q - 1) // 2)


def _unpickled_public_key(data: bytes) -> PublicKey:
    # Whoever pickled it had accepted the key, weak or not.
    return PublicKey.from_bytes(data, allow_weak_key=True)
