"""One way to compile the plain kernels: Numba, GIL released, one thread each, and a disk cache that may fail.

Kernels never use Numba's own threading layers (they abort under Python threads and hang after a fork);
whoever wants threads runs ranges of a kernel in a short-lived pool, see `_threads.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numba


class ForgivingCache:
    """Numba's on-disk cache of one function, where every failure counts as a miss.

    A cache file cut short by a full disk, a folder that cannot be written, or two processes that compile at
    once must cost a compilation, never a fit.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        try:
            return self._cache.load_overload(signature, target_context)
        except Exception:  # unpickling rubbish may raise anything
            self._start_over()
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        for _ in range(2):  # the first try may trip over a damaged index, which the second finds emptied
            try:
                self._cache.save_overload(signature, data)
                return
            except Exception:
                self._start_over()

    def _start_over(self) -> None:
        with contextlib.suppress(Exception):
            self._cache.flush()


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` on first use: nopython, GIL released, cached on disk where that works.

    Parameters
    ----------
    function : callable
        A kernel on arrays and numbers. Helpers it calls should live in the same file: Numba's cache does not
        notice changes elsewhere.
    """
    dispatcher: Any = numba.njit(nogil=True)(function)
    # Numba raises RuntimeError when neither __pycache__ nor the user's cache folder can be written.
    with contextlib.suppress(RuntimeError, OSError):
        dispatcher.enable_caching()
        dispatcher._cache = ForgivingCache(dispatcher._cache)
    return dispatcher
