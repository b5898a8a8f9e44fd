"""Arrays as bytes: fixed widths, checked headers, damaged inputs."""

import os
import struct
import subprocess
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from insecure_keys import insecure_key
from new_process import PYTHON

from vflcrypto import (
    CiphertextArray,
    DamagedCiphertextError,
    KeyMismatchError,
    NotFreshError,
    plan_packing,
    wire,
)

KEY = insecure_key("INSECURE_TEST_KEY_512")
PUBLIC = KEY.public_key
WIDTH = 128  # bytes of a ciphertext under a 512-bit key


def header_size(ndim: int) -> int:
    return len(PUBLIC.encrypt(np.empty((0,) * ndim)).to_bytes())


def with_payload(*ciphertexts: int) -> bytes:
    """A well-formed array around given integers."""
    good = PUBLIC.encrypt(np.zeros(len(ciphertexts), dtype=np.int64)).to_bytes()
    return good[: header_size(1)] + b"".join(c.to_bytes(WIDTH, "little") for c in ciphertexts)


@pytest.mark.parametrize(
    "values", [3, -2.5, [1, 2], [[1.5], [2.5]], np.empty((0, 3)), np.arange(24).reshape(2, 3, 4), 2**100]
)
def test_arrays_survive_the_round_trip(key, values):
    for side in (key, key.public_key):
        c = side.encrypt(values)
        again = CiphertextArray.from_bytes(c.to_bytes(), key.public_key)
        assert (again.shape, again.encoding, again.bound) == (c.shape, c.encoding, c.bound)
        np.testing.assert_array_equal(key.decrypt(again), np.asarray(values))


def test_bytes_do_not_depend_on_threads(key):
    many = key.encrypt(np.arange(wire.chunk_size(PUBLIC.ring) * 2 + 1))
    data = many.to_bytes()
    assert many.to_bytes(n_jobs=3) == data
    again = CiphertextArray.from_bytes(data, key.public_key, n_jobs=3)
    assert (again.elements == many.elements).all()


def test_packed_rows_and_sums_survive_without_telling_the_fullest_bin(key):
    plan = plan_packing(5, 1, 30, 512)
    g = h = np.arange(5).reshape(5, 1)
    rows = plan.encrypt(key, g, h)
    received = CiphertextArray.from_bytes(rows.to_bytes(), key.public_key)
    assert received.encoding == plan
    assert received.terms == 1
    headers = set()
    for bins in ([0, 1, 2, 3, 4], [0, 0, 0, 0, 0], [0, 0, 1, 1, 2]):
        sums = received.sum_by_bin(np.array(bins), 5).rerandomize()
        headers.add(sums.to_bytes()[: -5 * WIDTH])
        assert CiphertextArray.from_bytes(sums.to_bytes(), key.public_key).terms == 5
    assert len(headers) == 1


def test_headers_do_not_depend_on_values_or_bins():
    headers = {
        PUBLIC.encrypt(np.array(v)).to_bytes()[: -2 * WIDTH] for v in ([0.001, 0.0], [1e15, -3.0], [1.0, 2.0])
    }
    assert len(headers) == 1
    c = PUBLIC.encrypt(np.arange(6))
    sums = [c.sum_by_bin(np.array(b), 3).rerandomize() for b in ([0] * 6, [0, 1, 2] * 2, [2, 2, 2, 2, 1, 0])]
    assert len({s.to_bytes()[: -3 * WIDTH] for s in sums}) == 1


def test_the_wire_form_is_the_plain_integer(key):
    c = key.encrypt([7])
    data = c.to_bytes()
    assert int.from_bytes(data[-WIDTH:], "little") == key.public_key.ring.to_ints(c.elements)[0]


def test_bytes_do_not_depend_on_the_backend(key):
    data = PUBLIC.encrypt([1.5, -2.0]).to_bytes()
    received = CiphertextArray.from_bytes(data, key.public_key)
    assert received.to_bytes() == data
    assert key.decrypt(received).tolist() == [1.5, -2.0]


def test_unaligned_and_foreign_buffers_are_read(key):
    data = key.encrypt([1, 2]).to_bytes()
    for shift in range(8):
        buffer = bytearray(shift) + data
        for view in (memoryview(buffer)[shift:], buffer[shift:], bytes(buffer[shift:])):
            assert key.decrypt(CiphertextArray.from_bytes(view, key.public_key)).tolist() == [1, 2]


def test_keys_and_arrays_work_in_a_fresh_process(tmp_path):
    public, arrays, out = tmp_path / "key", tmp_path / "array", tmp_path / "out"
    public.write_bytes(PUBLIC.to_bytes())
    arrays.write_bytes(PUBLIC.encrypt([1.5, -2.0]).to_bytes())
    program = """
import sys
from pathlib import Path
from vflcrypto import CiphertextArray, PublicKey
key, array, out = map(Path, sys.argv[1:])
public = PublicKey.from_bytes(key.read_bytes(), allow_weak_key=True)
c = CiphertextArray.from_bytes(array.read_bytes(), public)
out.write_bytes((c + c).rerandomize().to_bytes())
"""
    subprocess.run([*PYTHON, "-c", program, public, arrays, out], check=True, timeout=60, env=os.environ)
    result = CiphertextArray.from_bytes(out.read_bytes(), PUBLIC)
    assert KEY.decrypt(result).tolist() == [3.0, -4.0]


def test_lengths_do_not_depend_on_what_was_computed():
    c = PUBLIC.encrypt(0)
    for _ in range(1000):
        c = c + PUBLIC.encrypt(1)
    assert KEY.decrypt(c) == 1000
    assert len(c.rerandomize().to_bytes()) == len(PUBLIC.encrypt(0).to_bytes())


# ---- damaged inputs ----


def test_damaged_ciphertexts_are_refused_and_named(key):
    p, _ = key.unsafe_primes()
    n = key.public_key.n
    good = 123456789**2 % n
    for bad in (0, p, n, n * (n - 1), n * n, n * n + 1, (1 << 1024) - 1, 17 * p):
        for place in (0, 3, 9):
            ciphertexts = [good] * 10
            ciphertexts[place] = bad
            with pytest.raises(DamagedCiphertextError, match=f"ciphertext {place} "):
                CiphertextArray.from_bytes(with_payload(*ciphertexts), key.public_key)
    # n^2 - 1 is a unit like any other; what it decrypts to is not our concern here.
    assert CiphertextArray.from_bytes(with_payload(n * n - 1), key.public_key).shape == (1,)


def test_the_first_of_several_damaged_ciphertexts_is_named(key):
    n = key.public_key.n
    with pytest.raises(DamagedCiphertextError, match="ciphertext 1 "):
        CiphertextArray.from_bytes(with_payload(5, 0, n, 0), key.public_key)


def test_damaged_bytes_raise_valueerror_and_allocate_nothing():
    good = PUBLIC.encrypt([1, 2, 3]).to_bytes()
    huge_shape = bytearray(good)
    struct.pack_into("<Q", huge_shape, header_size(1) - 64 - 8, 2**60)
    wrong = [
        b"",
        good[:-1],
        good[:10],
        os.urandom(64),
        os.urandom(1000),
        good + b"x",
        bytes(huge_shape),
        good[:70],
    ]
    tracemalloc.start()
    try:
        for data in wrong:
            with pytest.raises(ValueError):
                CiphertextArray.from_bytes(data, PUBLIC)
        assert tracemalloc.get_traced_memory()[1] < 1 << 21
    finally:
        tracemalloc.stop()


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_damage_to_the_header_gets_past_as_anything_but_a_valueerror(data):
    good = bytearray(PUBLIC.encrypt([[1, 2]]).to_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        good[data.draw(st.integers(0, header_size(2) - 1))] = data.draw(st.integers(0, 255))
    try:
        array = CiphertextArray.from_bytes(bytes(good), PUBLIC)
    except ValueError:
        return
    # What still reads is well-formed: it may claim another scale or bound, never another amount.
    assert array.size == 2
    assert 0 < array.bound <= PUBLIC.capacity


@pytest.mark.parametrize("ndim", [17, 255])
def test_absurd_dimensions_are_refused(ndim):
    good = bytearray(PUBLIC.encrypt(np.empty((0,))).to_bytes())
    good[6:8] = struct.pack("<H", ndim)
    with pytest.raises(DamagedCiphertextError, match="dimensions"):
        CiphertextArray.from_bytes(bytes(good) + bytes(8 * 300), PUBLIC)


def test_a_flipped_payload_is_either_refused_or_decrypts_to_an_error(key, rng):
    """Paillier has no integrity; but a random number nearly never lies within the declared bound."""
    data = key.encrypt([1, 2, 3]).to_bytes()
    for _ in range(20):
        broken = bytearray(data)
        broken[int(rng.integers(header_size(1), len(data)))] ^= 1 << int(rng.integers(0, 8))
        with pytest.raises(ValueError):
            key.decrypt(CiphertextArray.from_bytes(bytes(broken), key.public_key))


def test_another_keys_array_is_refused(key, other_key):
    with pytest.raises(KeyMismatchError, match="belongs to key"):
        CiphertextArray.from_bytes(other_key.encrypt(1).to_bytes(), key.public_key)


def test_errors_show_no_plaintext_and_no_ciphertext(key):
    secret = 918273645546372819
    c = key.encrypt(secret)
    payload = c.to_bytes()[-WIDTH:].hex()
    with pytest.raises(NotFreshError) as caught:
        (c + 1).to_bytes()
    assert str(secret) not in str(caught.value)
    assert payload[:16] not in str(caught.value)
