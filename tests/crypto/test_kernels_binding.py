"""The C binding refuses damaged sizes with an exception instead of touching memory, and the backend choice is kept."""

import os
import subprocess
import sys

import numpy as np
import pytest
from kernel_patterns import modulus
from new_process import PYTHON
from threadpoolctl import threadpool_info, threadpool_limits

from vflcrypto import _native, kernels

W = 2  # words of the modulus in these tests


@pytest.fixture(params=kernels.backends())
def ring(request):
    return _native.Ring(request.param, modulus(100).to_bytes(16, "little"))


def rows(n, width=2 * W):
    return np.zeros((n, width), dtype=np.uint64)


def i64(*values):
    return np.array(values, dtype=np.int64)


def good_calls(ring):
    """One correct call of every function that takes arrays."""
    table = np.zeros((3, ring.table_row_words(4)), dtype=np.uint64)
    flags = np.zeros(5, dtype=np.uint8)
    return {
        "one": [rows(1)],
        "mul": [rows(5), rows(5), rows(1)],
        "add": [rows(5), rows(5), rows(5)],
        "message": [rows(5), rows(1), rows(5, W)],
        "pow_vartime": [rows(5), rows(5), rows(5, 1), 0, 64, 4],
        "pow_secret": [rows(5), rows(5), rows(1, 1), 64, 4],
        "powers_of_two": [rows(5), rows(1), 4],
        "products": [rows(2), rows(5), rows(1), i64(0, 1, 2, 5), i64(0, 1), i64(1, 3), i64(1, 0)],
        "horner": [rows(2), rows(5), i64(0, 1), i64(1, 4), i64(1, 0), 8],
        "table_build": [table, rows(3), 4],
        "table_choice": [table[:1], rows(1), 4],
        "table_power": [rows(5), table, rows(5, 1), table[:1], flags, 4],
        "from_plain": [rows(5), rows(5)],
        "to_plain": [rows(5), rows(5)],
        "redc": [rows(5, W), rows(5)],
        "reduce": [rows(5), rows(5, 6), rows(1, W), rows(1), 3],
        "embed": [rows(5), rows(5, W), rows(1, 1), 1],
        "log": [rows(5, W), rows(5), rows(1, W)],
        "garner": [rows(5, 3), rows(5, W), rows(5, W), rows(1, W), rows(1, W), 3],
    }


NAMES = list(good_calls(_native.Ring("portable", modulus(100).to_bytes(16, "little"))))


def damaged(array):
    """The same array with one item more or less, of another type, read-only, strided, or no array at all."""
    flat = array.ravel()
    yield np.append(flat, flat[:1])
    yield flat[:-1]
    yield array.astype(np.float64)
    yield array.astype(np.uint32)
    if flat.size > 1:
        yield np.repeat(flat, 2)[::2]
    yield b"abc"
    yield 3


def test_every_array_function_is_tried():
    arrays = {name for name in dir(_native.Ring) if not name.startswith("_")}
    assert arrays - {"words", "lanes", "r_bits", "table_row_words"} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_correct_call_is_accepted(ring, name):
    getattr(ring, name)(*good_calls(ring)[name])


def len_of(x):
    return getattr(x, "size", 0)


@pytest.mark.parametrize("name", NAMES)
def test_damaged_arrays_raise(ring, name):
    call = good_calls(ring)[name]
    for position, argument in enumerate(call):
        if not isinstance(argument, np.ndarray):
            continue
        for bad in damaged(argument):
            if name == "products" and position == 3 and len_of(bad) == 5:
                continue  # an index that no segment uses is no damage
            with pytest.raises((TypeError, ValueError, BufferError)):
                getattr(ring, name)(*call[:position], bad, *call[position + 1 :])


@pytest.mark.parametrize("name", NAMES)
def test_damaged_numbers_and_argument_counts_raise(ring, name):
    call = good_calls(ring)[name]
    for position, argument in enumerate(call):
        if isinstance(argument, int):
            for bad in (-1, 2**31, 2**63 - 1, 2**80, 1.5, None):
                with pytest.raises((TypeError, ValueError, OverflowError)):
                    getattr(ring, name)(*call[:position], bad, *call[position + 1 :])
    for arguments in (call[:-1], [*call, rows(1)], []):
        with pytest.raises(TypeError, match="expected"):
            getattr(ring, name)(*arguments)


@pytest.mark.parametrize("name", NAMES)
def test_a_read_only_result_is_refused(ring, name):
    call = good_calls(ring)[name]
    call[0].flags.writeable = False
    with pytest.raises((ValueError, BufferError), match=r"read-only|not writable"):
        getattr(ring, name)(*call)


@pytest.mark.parametrize("big", [5, 6, 2**62, 2**63 - 1])
def test_segments_outside_the_arrays_raise(ring, big):
    for bad in (-1, big):
        with pytest.raises(ValueError, match=r"segment 0|out of range"):
            ring.products(rows(2), rows(5), None, i64(0, 1, 2, 4), i64(bad), i64(1), i64(0))
        with pytest.raises(ValueError, match=r"segment 0|out of range"):
            ring.products(rows(2), rows(5), None, i64(0, 1, 2, 4), i64(0), i64(bad), i64(0))
        with pytest.raises(ValueError, match="segment 0"):
            ring.products(rows(2), rows(5), None, i64(0, 1, 2, 4), i64(0), i64(1), i64(bad))
        with pytest.raises(ValueError, match="index"):
            ring.products(rows(2), rows(5), None, i64(0, bad, 2, 4), i64(0), i64(4), i64(0))
        with pytest.raises(ValueError, match="segment 0"):
            ring.horner(rows(2), rows(5), i64(1), i64(bad), i64(0), 3)
        with pytest.raises(ValueError, match="segment 0"):
            ring.horner(rows(2), rows(5), i64(bad), i64(1), i64(0), 3)


@pytest.mark.parametrize(
    "words", [b"", b"\3", bytes(8), b"\2" + bytes(7), b"\1" + bytes(7), b"\3" + bytes(15)]
)
def test_a_damaged_modulus_raises(words):
    for backend in kernels.backends():
        with pytest.raises(ValueError, match="modulus"):
            _native.Ring(backend, words)


def test_a_modulus_that_is_too_long_raises():
    with pytest.raises(ValueError, match="1 to 128 words of 8 bytes, got 1032 bytes"):
        _native.Ring("portable", b"\1" * 1032)


def test_an_unknown_backend_raises_and_lists_those_that_run():
    with pytest.raises(ValueError, match="no backend called 'abacus'"):
        _native.Ring("abacus", b"\3" + bytes(7))
    with pytest.raises(ValueError, match=r"backend 'abacus' does not run here; these do: .*portable"):
        kernels.Ring(3, backend="abacus")


def backend_in_a_new_process(value):
    code = "from vflcrypto.kernels import Ring; print(Ring(15).backend)"
    environment = {**os.environ, "VFL_BACKEND": value, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([*PYTHON, "-c", code], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("backend", kernels.backends())
def test_the_environment_chooses_the_backend(backend):
    assert backend_in_a_new_process(backend).stdout.strip() == backend


def test_an_unknown_backend_in_the_environment_raises():
    failed = backend_in_a_new_process("abacus")
    assert failed.returncode != 0
    assert "backend 'abacus' (from VFL_BACKEND) does not run here; these do:" in failed.stderr


def test_every_backend_knows_the_known_answer():
    assert kernels.backends()[-1] == "portable"
    assert all(_native.self_test(name) for name in kernels.backends())


def test_a_backend_with_a_wrong_answer_is_dropped_with_a_warning(monkeypatch):
    monkeypatch.setattr(_native, "self_test", lambda name: name == "portable")
    monkeypatch.setattr(
        _native, "backends", lambda: [("broken", True), ("portable", True), ("absent", False)]
    )
    kernels._proven_backends.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match="'broken' gave a wrong known answer"):
            assert kernels.backends() == ["portable"]
    finally:
        kernels._proven_backends.cache_clear()


def test_usable_cores_respect_the_environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1,2")
    assert kernels.usable_cores() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "")
    assert kernels.usable_cores() >= 1


def test_n_jobs_counts_up_from_one_or_down_from_all_cores(monkeypatch):
    monkeypatch.setattr("vflcrypto.batches.usable_cores", lambda: 4)
    assert [kernels.thread_count(n) for n in (None, 1, 7, -1, -2, -9)] == [1, 1, 7, 4, 3, 1]
    with pytest.raises(ValueError, match="n_jobs"):
        kernels.thread_count(0)


def test_the_environment_and_threadpoolctl_bound_all_cores(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert kernels.usable_cores() == 1
    monkeypatch.delenv("OMP_NUM_THREADS")
    if any(pool["user_api"] == "openmp" for pool in threadpool_info()):
        with threadpool_limits(1):
            assert kernels.usable_cores() == 1
