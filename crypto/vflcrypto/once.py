"""A value made on first use, once, by whichever thread comes first; a fork never inherits a held lock."""

import os
import threading
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_all: "weakref.WeakSet[Once]" = weakref.WeakSet()


class Once(Generic[T]):
    """`Once(make)()` returns make(), called at most once per process for as long as this object lives."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._value: T | None = None
        self._lock = threading.Lock()
        _all.add(self)

    def __call__(self) -> T:
        if self._value is None:
            with self._lock:
                if self._value is None:
                    self._value = self._make()
        return self._value


def _renew_locks() -> None:
    """In a forked child: a lock that another thread of the parent held would never be released here."""
    for once in list(_all):
        once._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
