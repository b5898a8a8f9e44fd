"""Blinding factors made ahead of their use, by a thread in the background.

    with public_key.blinding_pool(capacity=4096):        # WIDE factors, from now on
        ...                                              # wait for the other party; the pool fills
        reply.rerandomize()                              # takes what is ready and draws the rest on the spot

A factor that blinds two ciphertexts shows the key owner, and for equal rows everybody, the difference of their
plaintexts (c1 / c2 = 1 + (m1 - m2) n). Everything here serves one rule: a factor is given once.

* It leaves the pool under a lock and its place is overwritten with zeros.
* A pool belongs to one process. A forked child finds it empty and without its thread; pools are never pickled.
* A pool belongs to one key object and one length class. There is no argument by which it could reach another key.
"""

import os
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from .batches import thread_count
from .errors import KeyMismatchError
from .kernels import Elements, Ring
from .noise import WIDE, check_noise

if TYPE_CHECKING:
    from .paillier import PrivateKey, PublicKey

DEFAULT_CAPACITY = 4096
_STEP = 64  # factors per call into C and thread: close() waits for one such call at most

Draw = Callable[[int, str, int], Elements]

_all: "weakref.WeakSet[BlindingPool]" = weakref.WeakSet()


class Blinder:
    """Where the blinding factors of one key object come from: its active pool of the class, else drawn on the spot.

    Parameters
    ----------
    draw : draw(count, noise, n_jobs) gives `count` new factors
    classes : the length classes that `draw` knows
    """

    def __init__(self, fingerprint: bytes, ring: Ring, draw: Draw, classes: tuple[str, ...]) -> None:
        self.fingerprint = fingerprint
        self.ring = ring
        self.classes = classes
        self.draw_new = draw
        self._pools: dict[str, BlindingPool] = {}
        self._lock = threading.Lock()

    def draw(self, count: int, noise: str, n_jobs: int = 1) -> Elements:
        """`count` independent blinding factors modulo n^2, shape (count, 2 * words)."""
        pool = self._pools.get(noise)
        if pool is None:
            return self.draw_new(count, noise, n_jobs)
        ready = pool.take(count, self.fingerprint, noise)
        if len(ready) == count:
            return ready
        rest = self.draw_new(count - len(ready), noise, n_jobs)
        return np.concatenate([ready, rest]) if len(ready) else rest

    def attach(self, pool: "BlindingPool") -> None:
        """From now on draw() asks this pool first. One pool per class."""
        with self._lock:
            if self._pools.setdefault(pool.noise, pool) is not pool:
                raise RuntimeError(f"this key has an active pool of {pool.noise!r} noise already")

    def detach(self, pool: "BlindingPool") -> None:
        with self._lock:
            if self._pools.get(pool.noise) is pool:
                del self._pools[pool.noise]


class BlindingPool:
    """Factors for `encrypt` and `rerandomize` of one key object, made in the background. A context manager.

    Parameters
    ----------
    key : the key whose arrays are blinded. A PublicKey's pool serves its encrypt() of the same class and
        rerandomize(); a PrivateKey's serves its own encrypt()
    noise : "wide" or "half"; other requests are drawn on the spot as ever. The owner's noise is always "wide"
    capacity : factors kept ready, each as large as a ciphertext
    n_jobs : threads that fill, beside whatever else this process computes

    Raises
    ------
    ValueError : noise, capacity
    RuntimeError : from start(), if the key has an active pool of this class
    """

    def __init__(
        self,
        key: "PublicKey | PrivateKey",
        noise: str = WIDE,
        capacity: int = DEFAULT_CAPACITY,
        n_jobs: int = 1,
    ) -> None:
        self._blinder = key.blinder
        if check_noise(noise) not in self._blinder.classes:
            raise ValueError(
                f"the key owner's own noise is always {WIDE!r}, a pool of {noise!r} was asked for"
            )
        if isinstance(capacity, bool) or int(capacity) != capacity or capacity < 1:
            raise ValueError(f"capacity must be a positive number of factors, got {capacity!r}")
        self.noise = noise
        self.capacity = int(capacity)
        self.fingerprint = self._blinder.fingerprint
        self._n_jobs = thread_count(n_jobs)
        self._reset()
        _all.add(self)

    def _reset(self) -> None:
        """Empty and at rest, with a lock that nobody holds. In a new process nothing of the old one is kept."""
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._slots = np.empty((0, 2 * self._blinder.ring.words), dtype=np.uint64)
        self._ready = 0  # the first so many slots hold factors
        self._filler: threading.Thread | None = None

    # ---- its life ----

    def start(self) -> "BlindingPool":
        """Attach to the key and begin to fill; a second call changes nothing. After a fork the child may call it."""
        self._leave_the_parent_behind()
        self._blinder.attach(self)
        with self._changed:
            if self._filler is None:
                self._slots = np.zeros((self.capacity, self._slots.shape[1]), dtype=np.uint64)
                self._ready = 0
                # A daemon: a pool that nobody closed must not keep the interpreter alive.
                self._filler = threading.Thread(target=self._fill, name="blinding pool", daemon=True)
                self._filler.start()
        return self

    def close(self) -> None:
        """Detach, stop the thread and forget what is left. It may be started again."""
        self._blinder.detach(self)
        self._leave_the_parent_behind()
        with self._changed:
            filler, self._filler = self._filler, None
            self._ready = 0
            self._slots.fill(0)
            self._changed.notify_all()
        if filler is not None:
            filler.join()

    def __enter__(self) -> "BlindingPool":
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # ---- its factors ----

    def __len__(self) -> int:
        """Factors that are ready now."""
        return 0 if self._pid != os.getpid() else self._ready

    def __bool__(self) -> bool:
        return True  # an empty pool is a pool

    def wait(self, count: int | None = None, timeout: float | None = None) -> bool:
        """Wait until `count` factors (all, by default) are ready; whether they are."""
        wanted = self.capacity if count is None else min(count, self.capacity)
        self._leave_the_parent_behind()
        with self._changed:
            self._changed.wait_for(lambda: self._ready >= wanted or self._filler is None, timeout)
            return self._ready >= wanted

    def take(self, count: int, fingerprint: bytes, noise: str) -> Elements:
        """Up to `count` factors for the key of this fingerprint, each given this once.

        Returns
        -------
        ndarray of uint64, shape (0 to count, 2 * words); the caller owns it
        """
        if fingerprint != self.fingerprint:
            raise KeyMismatchError(
                f"a pool of key {self.fingerprint[:8].hex()} was asked for noise of key {fingerprint[:8].hex()}"
            )
        if noise != self.noise:
            raise ValueError(f"a pool of {self.noise!r} noise was asked for {noise!r} noise")
        self._leave_the_parent_behind()
        pid = os.getpid()
        with self._changed:
            stop, start = self._ready, max(0, self._ready - count)
            given = self._slots[start:stop].copy()
            self._ready = start
            self._slots[start:stop] = 0
            self._changed.notify_all()
        # A signal handler may have forked meanwhile: then these factors are the parent's.
        return given if os.getpid() == pid else given[:0]

    def _fill(self) -> None:
        """The thread: draw a few, put them in, wait while the pool is full."""
        me = threading.current_thread()
        try:
            while room := self._room(me):
                # Outside the lock, so that takers never wait. Only this thread adds: the room stays.
                self._add(self._blinder.draw_new(room, self.noise, self._n_jobs), me)
        finally:  # where drawing fails, what is asked for is drawn on the spot and fails there
            with self._changed:
                if self._filler is me:
                    self._filler = None
                self._changed.notify_all()

    def _room(self, me: threading.Thread) -> int:
        """How many factors to draw next, once there is room for some; 0 when this thread is to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._filler is not me or self._ready < self.capacity)
            if self._filler is not me:
                return 0
            return min(_STEP * self._n_jobs, self.capacity - self._ready)

    def _add(self, factors: Elements, me: threading.Thread) -> None:
        with self._changed:
            if self._filler is me:
                self._slots[self._ready : self._ready + len(factors)] = factors
                self._ready += len(factors)
                self._changed.notify_all()

    def _leave_the_parent_behind(self) -> None:
        """Also for forks that Python was not told of, as by a C library."""
        if self._pid != os.getpid():
            self._reset()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a pool of blinding factors cannot be pickled or copied: each factor is given once")

    def __repr__(self) -> str:
        key = self.fingerprint[:4].hex()
        return f"BlindingPool({self.noise!r}, {len(self)} of {self.capacity} ready, key={key})"


def _empty_in_the_child() -> None:
    for pool in list(_all):
        pool._blinder._lock = threading.Lock()
        pool._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_empty_in_the_child)
