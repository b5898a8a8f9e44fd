"""Threads, forks and the interpreter's life, and memory."""

import multiprocessing
import os
import subprocess
import threading
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from insecure_keys import insecure_key, primes_of
from new_process import PYTHON

from vflcrypto import CiphertextArray, PrivateKey, kernels, obtain_keypair, reuse_keys
from vflcrypto.once import Once

METHODS = [m for m in ("fork", "spawn", "forkserver") if m in multiprocessing.get_all_start_methods()]
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")


def test_one_key_serves_many_threads(backend):
    values = np.arange(100.0)
    for _ in range(20):
        # A new object each time: the threads also race to build its tables.
        key = PrivateKey.from_primes(
            *primes_of("INSECURE_TEST_KEY_256"), allow_weak_key=True, backend=backend
        )
        edge = key.public_key.capacity

        def work(_, key=key, edge=edge):
            public = key.decrypt(key.public_key.encrypt(values))
            owner = key.decrypt(key.encrypt([edge, -edge, 0]))
            return public, owner.tolist()

        with ThreadPoolExecutor(8) as pool:
            for public, owner in pool.map(work, range(8)):
                np.testing.assert_array_equal(public, values)
                assert owner == [edge, -edge, 0]


def test_tables_are_built_once_by_racing_threads():
    built, barrier = [], threading.Barrier(8)
    once = Once(lambda: built.append(1) or len(built))

    def work(_):
        barrier.wait()
        return once()

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(work, range(8))) == {1}
    assert built == [1]


# ---- processes ----


def in_a_child(connection) -> None:
    key = insecure_key("INSECURE_TEST_KEY_512")
    c = key.public_key.encrypt(np.arange(40), n_jobs=2)
    total = (c + c).rerandomize(n_jobs=2)
    connection.send((key.decrypt(total, n_jobs=2).tolist(), key.encrypt([1]).to_bytes()))
    connection.close()


@pytest.mark.parametrize("method", METHODS)
def test_children_of_a_parent_with_threads_finish(method):
    key = insecure_key("INSECURE_TEST_KEY_512")
    key.decrypt(key.encrypt(np.arange(40), n_jobs=2), n_jobs=2)
    context = multiprocessing.get_context(method)
    here, there = context.Pipe(duplex=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons dislike any fork beside threads
        child = context.Process(target=in_a_child, args=(there,))
        child.start()
    try:
        assert here.poll(60), "the child hangs"
        values, _ = here.recv()
        assert values == [2 * i for i in range(40)]
        child.join(60)
        assert child.exitcode == 0
    finally:
        child.kill()


def run_forked(action) -> bytes:
    """What action() returns in a forked child; a child that hangs is ended by an alarm."""
    import signal

    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        signal.alarm(30)
        try:
            os.write(write, action())
        finally:
            os._exit(0)
    os.close(write)
    chunks = []
    while chunk := os.read(read, 1 << 16):
        chunks.append(chunk)
    os.close(read)
    os.waitpid(pid, 0)
    return b"".join(chunks)


@needs_fork
def test_forked_processes_never_share_noise():
    key = insecure_key("INSECURE_TEST_KEY_512")
    key.public_key.encrypt(0)  # tables exist before the fork

    def three_kinds() -> bytes:
        made = [key.encrypt(0), key.public_key.encrypt(0), key.public_key.encrypt(0).rerandomize()]
        return b"".join(key.public_key.ring.to_bytes(c.elements) for c in made)

    drawn = [run_forked(three_kinds), run_forked(three_kinds), three_kinds()]
    pieces = [data[i : i + 128] for data in drawn for i in range(0, len(data), 128)]
    assert len(pieces) == 9
    assert len(set(pieces)) == 9


@needs_fork
def test_a_fork_while_a_table_is_being_built_does_not_hang():
    building, proceed = threading.Event(), threading.Event()

    def make() -> bytes:
        if threading.current_thread() is not threading.main_thread():
            building.set()
            proceed.wait(30)
        return b"made"

    once = Once(make)
    thread = threading.Thread(target=once)
    thread.start()
    building.wait(30)
    try:
        assert run_forked(once) == b"made"
    finally:
        proceed.set()
        thread.join()


@needs_fork
@pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning")
def test_kept_keys_do_not_pass_a_fork():
    with reuse_keys():
        mine = obtain_keypair(64, True)[0].fingerprint
        theirs = run_forked(lambda: obtain_keypair(64, True)[0].fingerprint)
        assert len(theirs) == 32
        assert theirs != mine
        assert obtain_keypair(64, True)[0].fingerprint == mine


# ---- the process lives ----


def test_enormous_integers_raise_and_the_process_lives():
    program = """
import sys
sys.path.insert(0, sys.argv[1])
from insecure_keys import insecure_key
key = insecure_key("INSECURE_TEST_KEY_1024")
for operation in (
    lambda: key.public_key.encrypt(10**400),
    lambda: key.public_key.encrypt(1.0) * 10**10000,
    lambda: key.public_key.encrypt([1 << 200000]),
    lambda: key.encrypt(10**400),
    lambda: key.encrypt([1]) + (1 << 200000),
    lambda: [1 << 200000] @ key.encrypt([1]),
    lambda: key.encrypt(1.0, fraction_bits=10**9),
):
    try:
        operation()
    except (OverflowError, ValueError):
        continue
    raise SystemExit("no error")
print("alive")
"""
    done = subprocess.run(
        [*PYTHON, "-c", program, os.path.dirname(__file__)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "alive"), done.stderr


# ---- memory ----


def peak_of(action) -> tuple[int, object]:
    tracemalloc.start()
    try:
        result = action()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def test_arrays_take_little_more_memory_than_their_ciphertexts():  # kernels themselves take none
    key = insecure_key("INSECURE_TEST_KEY_1024", kernels.backends()[-1])
    values = np.zeros(20_000)
    key.public_key.encrypt([0.0])  # tables
    size = 20_000 * 256
    peak, c = peak_of(lambda: key.public_key.encrypt(values))
    assert c.nbytes == size
    assert c.elements.flags.c_contiguous
    assert peak <= 2 * size
    assert peak_of(lambda: c.rerandomize(noise="half"))[0] <= 2 * size
    peak, data = peak_of(c.to_bytes)
    assert peak <= 2 * size
    assert peak_of(lambda: CiphertextArray.from_bytes(data, key.public_key))[0] <= 2 * size
    assert peak_of(lambda: c[10:20])[0] < 20_000
    assert peak_of(lambda: key.decrypt(c[:4_000]))[0] <= size
