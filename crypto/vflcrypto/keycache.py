"""Reuse one key over many fits, on request, without putting it into an estimator.

    with reuse_keys():                 # off by default
        search.fit(X, y)               # every fit that asks for a key of the same kind gets the same one

The key lives in this process only, until the outermost `with` ends: it is never pickled, and a forked child starts
empty and makes its own. Joblib's process workers therefore each make one key.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .paillier import DEFAULT_KEY_BITS, PrivateKey, PublicKey, generate_keypair

_Request = tuple[int, bool, str | None]

_lock = threading.RLock()
_depth = 0
_keys: dict[_Request, PrivateKey] = {}
_given: list[PrivateKey] = []


@contextmanager
def reuse_keys(private_key: PrivateKey | None = None) -> Iterator[None]:
    """Within this block, obtain_keypair gives the same key for the same request.

    Parameters
    ----------
    private_key : use this key for requests of its size, instead of making one
    """
    global _depth
    with _lock:
        _depth += 1
        if private_key is not None:
            _given.append(private_key)
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if private_key in _given:
                _given.remove(private_key)
            if _depth <= 0:
                _forget()


def obtain_keypair(
    key_bits: int = DEFAULT_KEY_BITS, allow_weak_key: bool = False, backend: str | None = None
) -> tuple[PublicKey, PrivateKey]:
    """generate_keypair, or inside reuse_keys() the key made or given before."""
    if _depth <= 0:
        return generate_keypair(key_bits, allow_weak_key, backend)
    request = (key_bits, allow_weak_key, backend)
    with _lock:  # held while a key is made: two fits that start together share it
        private_key = _given_key(request) or _keys.get(request)
        if private_key is None:
            _, private_key = generate_keypair(key_bits, allow_weak_key, backend)
            _keys[request] = private_key
    return private_key.public_key, private_key


def _given_key(request: _Request) -> PrivateKey | None:
    key_bits, _, backend = request
    for key in reversed(_given):
        if key.key_bits == key_bits and backend in (None, key.public_key.backend):
            return key
    return None


def _forget() -> None:
    _keys.clear()
    _given.clear()


def _after_fork() -> None:
    """The child has no keys and a lock of its own; the parent's `with` block goes on there, empty."""
    global _lock
    _lock = threading.RLock()
    _forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
