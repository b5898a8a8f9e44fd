"""What every estimator says of its seats: how parties talk, keys that protect nothing, and what a training cost."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from typing import Any, Protocol

from vflcrypto import InsecureKeyWarning, kernels
from vflcrypto.callers import outside_level
from vflparty import Ledger
from vflparty.network import check_timeout

from .exceptions import NotEncryptedWarning
from .parameters import STRONG_KEY_BITS

NETWORKS = ("inprocess", "process")


class CipherSettings(Protocol):
    """What settings of every training have."""

    @property
    def encryption(self) -> str: ...
    @property
    def key_bits(self) -> int: ...
    @property
    def n_jobs(self) -> int: ...


def check_seating(network: object, timeout: Any, verbose: object) -> None:
    """ValueError or TypeError names a wrong one of the parameters that say how parties sit and talk."""
    if network not in NETWORKS:
        raise ValueError(f"network must be one of {NETWORKS}, got {network!r}")
    check_timeout(timeout)
    if not isinstance(verbose, numbers.Integral):
        raise TypeError(f"verbose must be an integer, got {verbose!r}")


def warn_of_keys(settings: CipherSettings, network: str, in_the_clear: str) -> None:
    """Warn where nothing, or next to nothing, is hidden; the warning names the line that fits.

    in_the_clear : who receives what without encryption.
    """
    if settings.encryption == "none":
        warnings.warn(f'encryption="none": {in_the_clear}', NotEncryptedWarning, stacklevel=outside_level())
    elif settings.key_bits < min(STRONG_KEY_BITS) and network == "process":
        # Made here, the key itself warns; there, its warning ends in the log of a process.
        warnings.warn(
            f"a {settings.key_bits}-bit key protects nothing: use it in tests only",
            InsecureKeyWarning,
            stacklevel=outside_level(),
        )


def costs_of(ledger: Ledger, settings: CipherSettings, counters: Sequence[str]) -> dict[str, Any]:
    """`costs_` of a training: how it was encrypted, rounds and bytes, counts of operations, seconds per phase.

    counters : names of the operations that the protocol counts; 0 where the ledger has none.
    """
    encrypted = settings.encryption != "none"
    return {
        "encryption": settings.encryption,
        "key_bits": int(settings.key_bits) if encrypted else None,
        "backend": kernels.backends()[0] if encrypted else None,
        "n_jobs": settings.n_jobs,
        "rounds": ledger.rounds,
        "bytes": ledger.bytes_sent,
        **{name: ledger.counts.get(name, 0) for name in counters},
        "seconds": dict(ledger.seconds),
    }
