"""Blinding pools: no factor is given twice, whatever threads and forks do; and nothing reaches another key."""

import copy
import os
import pickle
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from insecure_keys import primes_of
from new_process import PYTHON
from test_processes import needs_fork, run_forked

from vflcrypto import BlindingPool, CiphertextArray, KeyMismatchError, PrivateKey

WAIT = 60  # seconds; only a hang takes that long


def new_key(backend: str | None = None) -> PrivateKey:
    """A key object of the test's own: pools attach to objects."""
    return PrivateKey.from_primes(*primes_of("INSECURE_TEST_KEY_512"), allow_weak_key=True, backend=backend)


@pytest.fixture
def key(backend):
    return new_key(backend)


@pytest.fixture
def public(key):
    return key.public_key


def violations(*given: np.ndarray) -> list[str]:
    """What is wrong with the factors that pools gave, all calls together. Empty for good pools."""
    rows = [row.tobytes() for block in given for row in block]
    found = []
    if len(set(rows)) < len(rows):
        found.append("a factor was given twice")
    if any(not any(row) for row in rows):
        found.append("an empty slot was given")
    return found


def take(pool: BlindingPool, count: int) -> np.ndarray:
    return pool.take(count, pool.fingerprint, pool.noise)


def filled_once(pool: BlindingPool) -> BlindingPool:
    """Started and full, with a thread that has ended: exact numbers from here on."""
    pool._room = lambda me: min(64, pool.capacity - pool._ready)  # type: ignore[method-assign]
    pool.start()
    assert pool.wait(timeout=WAIT)
    filler = pool._filler
    if filler is not None:
        filler.join(WAIT)
    return pool


def draws_of(blinder, monkeypatch) -> list[int]:
    """From now on: how many factors were drawn outside the pool's thread, call by call."""
    drawn, draw_new = [], blinder.draw_new

    def spy(count, kind, n_jobs):
        if threading.current_thread().name != "blinding pool":
            drawn.append(count)
        return draw_new(count, kind, n_jobs)

    monkeypatch.setattr(blinder, "draw_new", spy)
    return drawn


# ---- what it gives ----


@pytest.mark.parametrize("kind", ["half", "wide"])
def test_what_is_ready_is_taken_and_the_rest_is_drawn(key, public, kind, monkeypatch):
    drawn = draws_of(public.blinder, monkeypatch)
    pool = filled_once(public.blinding_pool(capacity=70, noise=kind))
    c = public.encrypt(np.arange(50), noise=kind)
    assert (drawn, len(pool)) == ([], 20)
    again = (c + c).rerandomize(kind)
    assert (drawn, len(pool)) == ([30], 0)
    assert (c.freshness, again.freshness) == (kind, kind)
    assert key.decrypt(again).tolist() == [2 * i for i in range(50)]
    pool.close()


def test_the_owners_pool_serves_the_owners_encryption_only(key, public, monkeypatch):
    pool = filled_once(key.blinding_pool(capacity=64))
    c = key.encrypt(np.arange(10))
    assert len(pool) == 54
    again = c.rerandomize()
    public.encrypt([1], noise="wide")
    assert len(pool) == 54
    assert key.decrypt(again).tolist() == list(range(10))
    pool.close()


def test_a_pool_serves_its_own_class_only(public):
    pool = filled_once(public.blinding_pool(capacity=16, noise="half"))
    public.encrypt([1, 2]).rerandomize("wide")
    assert len(pool) == 14
    pool.close()


def test_two_classes_may_be_pooled_side_by_side(public):
    with public.blinding_pool(capacity=8, noise="half") as half, public.blinding_pool(capacity=8) as wide:
        assert half.wait(timeout=WAIT)
        assert wide.wait(timeout=WAIT)


def test_pooled_factors_are_encryptions_of_zero(key, public):
    pool = filled_once(public.blinding_pool(capacity=40))
    factors = take(pool, 40)
    c = public.encrypt(np.zeros(40, dtype=int))
    assert key.decrypt(c._replace(elements=factors)).tolist() == [0] * 40
    pool.close()


def test_what_was_given_is_overwritten(public):
    pool = filled_once(public.blinding_pool(capacity=16))
    given = take(pool, 10)
    assert given.any(axis=1).all()
    assert not pool._slots[6:].any()
    assert pool._slots[:6].any(axis=1).all()
    slots = pool._slots
    pool.close()
    assert not slots.any()


# ---- once ----


def factors_of_racing_threads(pool: BlindingPool) -> list[np.ndarray]:
    """Eight threads, each taking small and large pieces while the pool is being filled."""
    barrier = threading.Barrier(8)

    def work(seed: int) -> np.ndarray:
        rng, given = np.random.default_rng(seed), []
        barrier.wait()
        while sum(map(len, given)) < 80:
            pool.wait(1, timeout=WAIT)
            given.append(take(pool, int(rng.integers(0, 30))))
        return np.concatenate(given)

    with pool, ThreadPoolExecutor(8) as threads:
        assert pool.wait(timeout=WAIT)
        return list(threads.map(work, range(8)))


def test_racing_threads_never_get_a_factor_twice(public):
    given = factors_of_racing_threads(public.blinding_pool(capacity=100))
    assert sum(map(len, given)) >= 640
    assert violations(*given) == []


class GivesTwice(BlindingPool):
    """One slot among hundreds is given to two takers: what a lost update would do."""

    first = None

    def take(self, count, fingerprint, noise):
        given = super().take(count, fingerprint, noise)
        if self.first is None and len(given):
            self.first = given[:1].copy()
        elif len(given) > 20:
            given[-1:] = self.first
        return given


class TakesWithoutLooking(BlindingPool):
    """Gives as many as were asked for, ready or not."""

    def take(self, count, fingerprint, noise):
        given = super().take(count, fingerprint, noise)
        return np.concatenate([given, np.zeros((count - len(given), given.shape[1]), dtype=np.uint64)])


@pytest.mark.parametrize(
    ("planted", "finding"),
    [(GivesTwice, "a factor was given twice"), (TakesWithoutLooking, "an empty slot was given")],
)
def test_planted_pools_that_give_twice_or_nothing_are_found(public, planted, finding):
    assert finding in violations(*factors_of_racing_threads(planted(public, capacity=100)))


def test_racing_encryptions_and_blindings_share_no_noise(key, public):
    zeros = np.zeros(25, dtype=int)

    def work(_: int) -> list[np.ndarray]:
        blinded = public.encrypt(zeros, noise="wide")
        return [blinded.elements, (blinded + blinded).rerandomize().elements, key.encrypt(zeros).elements]

    with public.blinding_pool(capacity=64), key.blinding_pool(capacity=64), ThreadPoolExecutor(6) as threads:
        made = [block for blocks in threads.map(work, range(12)) for block in blocks]
    assert violations(*made) == []


# ---- processes ----


@needs_fork
def test_a_forked_child_finds_the_pool_empty(public):
    pool = filled_once(public.blinding_pool(capacity=20))

    def in_the_child() -> bytes:
        assert (len(pool), pool._slots.size) == (0, 0)
        return take(pool, 20).tobytes() + b"end"

    assert run_forked(in_the_child) == b"end"
    assert len(take(pool, 20)) == 20
    pool.close()


def given_across_a_fork(pool: BlindingPool) -> list[np.ndarray]:
    """Factors that a child and its parent take from one pool after a fork."""
    width = pool._slots.shape[1]
    theirs = np.frombuffer(run_forked(lambda: take(pool, 20).tobytes()), dtype=np.uint64).reshape(-1, width)
    return [theirs, take(pool, 20)]


@needs_fork
def test_parent_and_child_never_give_the_same_factor_and_a_planted_pool_that_does_is_found(
    public, monkeypatch
):
    good = filled_once(public.blinding_pool(capacity=20))
    assert violations(*given_across_a_fork(good)) == []
    good.close()

    class SurvivesForks(BlindingPool):
        def _reset(self):
            if not hasattr(self, "_slots"):
                super()._reset()

    planted = filled_once(SurvivesForks(public, capacity=20))
    assert violations(*given_across_a_fork(planted)) == ["a factor was given twice"]
    planted.close()


@needs_fork
def test_children_of_a_filling_pool_do_not_hang_and_may_start_their_own(key, public):
    def in_the_child() -> bytes:
        made = public.encrypt([0], noise="wide").rerandomize().to_bytes()
        pool.start()
        assert pool.wait(timeout=20)
        own = take(pool, 3).tobytes()
        pool.close()
        return made + own

    with public.blinding_pool(capacity=64) as pool:
        sizes, factors = set(), []
        for _ in range(10):
            take(pool, 64)  # so that the thread is at work while we fork
            data = run_forked(in_the_child)
            sizes.add(len(data))
            factors.append(np.frombuffer(data[-3 * 128 :], dtype=np.uint64).reshape(3, -1))
        factors.append(take(pool, 64))
    assert len(sizes) == 1
    assert sizes != {0}
    assert violations(*factors) == []


def test_a_fork_that_python_did_not_see_empties_the_pool_too(public, monkeypatch):
    pool = filled_once(public.blinding_pool(capacity=20))
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert len(pool) == 0
    assert not pool.wait(1)
    assert len(take(pool, 20)) == 0


def test_a_fork_in_the_middle_of_a_call_leaves_the_factors_to_the_parent(public, monkeypatch):
    pool = filled_once(public.blinding_pool(capacity=20))
    monkeypatch.setattr(pool._changed, "notify_all", lambda: monkeypatch.setattr(os, "getpid", lambda: -1))
    assert len(take(pool, 20)) == 0


@pytest.mark.parametrize("way", [pickle.dumps, copy.copy, copy.deepcopy])
def test_pools_are_never_pickled_or_copied(public, way):
    with pytest.raises(TypeError, match="each factor is given once"):
        way(public.blinding_pool())


def test_what_is_pickled_leaves_the_pool_behind(public):
    with public.blinding_pool(capacity=16) as pool:
        assert pool.wait(timeout=WAIT)
        c = pickle.loads(pickle.dumps(public.encrypt([1, 2], noise="wide")))
        assert isinstance(c, CiphertextArray)
        assert c.public_key.blinder._pools == {}


def test_an_interpreter_with_an_open_pool_ends_quietly():
    program = """
import sys
sys.path.insert(0, sys.argv[1])
from insecure_keys import insecure_key
key = insecure_key("INSECURE_TEST_KEY_512").public_key
pool = key.blinding_pool(capacity=100_000, n_jobs=int(sys.argv[2])).start()
pool.wait(64)
"""
    for n_jobs in ("1", "2"):
        done = subprocess.run(
            [*PYTHON, "-c", program, os.path.dirname(__file__), n_jobs],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert "Fatal" not in done.stderr


# ---- its key ----


def test_a_pool_gives_nothing_to_another_key_or_class(public, other_key):
    pool = filled_once(public.blinding_pool(capacity=16))
    with pytest.raises(KeyMismatchError, match="noise of key"):
        pool.take(1, other_key.fingerprint, "wide")
    with pytest.raises(ValueError, match="was asked for 'half' noise"):
        pool.take(1, public.fingerprint, "half")
    assert len(pool) == 16
    pool.close()


def test_another_object_of_the_same_key_draws_for_itself(public):
    pool = filled_once(public.blinding_pool(capacity=16))
    new_key().public_key.encrypt([1], noise="wide")
    assert len(pool) == 16
    pool.close()


def test_a_second_pool_of_the_same_class_is_refused(public):
    with public.blinding_pool(capacity=16) as first:
        with pytest.raises(RuntimeError, match="an active pool of 'wide' noise already"):
            public.blinding_pool(capacity=16).start()
        assert first.start() is first


@pytest.mark.parametrize("capacity", [0, -1, 2.5, True])
def test_a_capacity_that_is_no_positive_number_is_refused(public, capacity):
    with pytest.raises(ValueError, match="capacity"):
        public.blinding_pool(capacity=capacity)


def test_a_class_that_the_key_does_not_have_is_refused(key, public):
    with pytest.raises(ValueError, match="'half' or 'wide'"):
        public.blinding_pool(noise="short")
    with pytest.raises(ValueError, match="always 'wide'"):
        BlindingPool(key, noise="half")


# ---- its end ----


def test_after_the_block_nothing_is_kept_and_it_may_be_opened_again(public):
    pool = public.blinding_pool(capacity=16)
    for _ in range(3):
        with pool:
            assert pool.wait(timeout=WAIT)
            public.encrypt([1], noise="wide")
        assert len(pool) == 0
        assert public.blinder._pools == {}
        assert not any(thread.name == "blinding pool" for thread in threading.enumerate())
        public.encrypt([1], noise="wide")
        assert len(pool) == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_fails_keeps_nobody_waiting(key, public, monkeypatch):
    draw_new = public.blinder.draw_new

    def fails_in_the_background(count, kind, n_jobs):
        if threading.current_thread().name == "blinding pool":
            raise MemoryError
        return draw_new(count, kind, n_jobs)

    monkeypatch.setattr(public.blinder, "draw_new", fails_in_the_background)
    with public.blinding_pool(capacity=16) as pool:
        assert not pool.wait()
        assert key.decrypt(public.encrypt([7], noise="wide")).tolist() == [7]
