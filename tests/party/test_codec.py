"""The codec: what goes in comes out; what was not sent is refused, whatever its bytes say."""

from __future__ import annotations

import hashlib
import random
import struct
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from vflparty import DamagedFrameError, LocalProtocolError, Message, RemoteProtocolError, codec
from vflparty.messages import ARRAY_DTYPES


@dataclass(frozen=True)
class Everything(Message):
    """One field of every type."""

    flag: bool
    number: int
    real: float
    text: str
    data: bytes
    array: np.ndarray
    pairs: tuple[tuple[str, int], ...]
    maybe: float | None
    rows: NDArray[np.int32] | None


@dataclass(frozen=True)
class Blob(Message):
    data: bytes


@dataclass(frozen=True)
class OneArray(Message):
    x: np.ndarray


@dataclass(frozen=True)
class OneInt(Message):
    x: int


@dataclass(frozen=True)
class Words(Message):
    x: tuple[str, ...]


SAMPLE = Everything(
    True,
    -(2**70),
    0.1,
    "Zoë",
    b"\x00\xff",
    np.arange(6.0).reshape(2, 3),
    (("a", 1), ("b", -1)),
    None,
    np.arange(3, dtype=np.int32),
)


def sealed(kind: str, payload: bytes) -> bytes:
    """A frame with a right digest around any payload: what a peer could send that means harm."""
    front = struct.pack("<4sBBHQ", b"VFLP", 1, len(kind), 0, len(payload))
    digest = hashlib.sha256(front + kind.encode() + payload).digest()[:16]
    return front + digest + kind.encode() + payload


def payload_of(message: Message) -> bytes:
    frame = codec.encode(message)
    return frame[codec.HEADER_BYTES + len(type(message).__name__) :]


def arrays() -> st.SearchStrategy[np.ndarray]:
    def build(dtype: np.dtype, shape: list[int], seed: int) -> np.ndarray:
        data = np.random.default_rng(seed).bytes(int(np.prod(shape)) * dtype.itemsize)
        return (
            np.array([b % 2 for b in data], bool).reshape(shape)
            if dtype.kind == "b"
            else np.frombuffer(data, dtype).reshape(shape)
        )

    shapes = st.lists(st.integers(0, 4), max_size=4)
    return st.builds(build, st.sampled_from(ARRAY_DTYPES), shapes, st.integers(0, 99))


@given(
    st.builds(
        Everything,
        flag=st.booleans(),
        number=st.integers(-(2**4000), 2**4000),
        real=st.floats(),
        text=st.text(),
        data=st.binary(max_size=50),
        array=arrays(),
        pairs=st.lists(st.tuples(st.text(max_size=3), st.integers()), max_size=4).map(tuple),
        maybe=st.none() | st.floats(),
        rows=st.none() | st.lists(st.integers(-9, 9)).map(lambda x: np.array(x, np.int32)),
    )
)
@settings(max_examples=200, deadline=None)
def test_decoded_message_has_the_same_bytes_and_types(message):
    frame = codec.encode(message)
    decoded = codec.decode(frame, (Everything,))
    assert codec.encode(decoded) == frame
    assert [type(value) for value in vars(decoded).values()] == [
        type(value) for value in vars(message).values()
    ]
    assert decoded.array.dtype == message.array.dtype and decoded.array.shape == message.array.shape


def test_frame_format_is_the_documented_one():
    assert codec.encode(OneInt(-2)) == sealed("OneInt", b"\x01\x00" + b"i\x01\x00\x00\x00\xfe")
    two = OneArray(np.array([[1, 2]], np.uint8))
    assert codec.encode(two) == sealed(
        "OneArray", b"\x01\x00" + b"a\x05\x02" + struct.pack("<QQ", 1, 2) + b"\x01\x02"
    )
    assert codec.encode(Words(("ab",))) == sealed(
        "Words", b"\x01\x00t\x01\x00\x00\x00s\x02" + bytes(7) + b"ab"
    )


@pytest.mark.parametrize("dtype", ARRAY_DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (0, 5), (3,), (2, 3), (2, 1, 4)], ids=str)
def test_arrays_of_every_dtype_and_shape_cross(dtype, shape):
    array = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2, dtype)
    got = codec.decode(codec.encode(OneArray(array)), (OneArray,)).x
    assert got.dtype == dtype and got.shape == shape and np.array_equal(got, array)


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.arange(24)[::-3],
        np.arange(12).reshape(3, 4).T,
        np.arange(5, dtype=">i4"),
        np.broadcast_to(np.float32(7), (2, 3)),
    ],
    ids=["fortran", "strided", "transposed", "big-endian", "broadcast"],
)
def test_memory_layout_of_the_sender_does_not_cross(array):
    got = codec.decode(codec.encode(OneArray(array)), (OneArray,)).x
    assert np.array_equal(got, array) and got.flags.c_contiguous and got.flags.aligned and got.dtype.isnative


def test_decoded_array_is_writable_and_shares_memory_with_nobody():
    sent = np.arange(1000)
    frame = codec.encode(OneArray(sent))
    first, second = (codec.decode(frame, (OneArray,)).x for _ in range(2))
    sent[:] = -1
    first[:] = -2
    assert second.tolist() == list(range(1000))
    assert codec.decode(frame, (OneArray,)).x.tolist() == list(range(1000))
    assert not np.shares_memory(first, sent) and not np.shares_memory(first, np.frombuffer(frame, np.uint8))


def test_numpy_scalars_arrive_as_plain_values():
    scalars = Everything(
        np.True_,
        np.int16(-3),
        np.float32(0.5),
        "",
        bytearray(b"x"),
        np.zeros(1),
        [("a", np.uint8(2))],
        3,
        None,
    )
    got = codec.decode(codec.encode(scalars), (Everything,))
    assert [type(v) for v in (got.flag, got.number, got.real, got.data, got.maybe)] == [
        bool,
        int,
        float,
        bytes,
        float,
    ]
    assert got.pairs == (("a", 2),) and type(got.pairs[0][1]) is int


# ---------------------------------------------------------------- damage


def test_every_flipped_bit_is_noticed():
    frame = codec.encode(SAMPLE)
    for position in range(len(frame)):
        for bit in range(8):
            damaged = bytearray(frame)
            damaged[position] ^= 1 << bit
            with pytest.raises(DamagedFrameError):
                codec.decode(damaged, (Everything,))


def test_every_truncation_and_extension_is_noticed():
    frame = codec.encode(SAMPLE)
    for length in range(len(frame)):
        with pytest.raises(DamagedFrameError):
            codec.decode(frame[:length], (Everything,))
    for extra in (b"\x00", b"x" * 1000, frame):
        with pytest.raises(DamagedFrameError):
            codec.decode(frame + extra, (Everything,))


def test_random_bytes_are_no_frame():
    source = random.Random(5)
    for length in [0, 1, 31, 32, 33, 64, 500]:
        for head in (b"", b"VFLP\x01\x01\x00\x00"):
            with pytest.raises(DamagedFrameError):
                codec.decode((head + source.randbytes(length))[:length], (Everything,))


def test_mutated_payload_under_a_right_digest_is_refused_or_well_typed():
    """A peer that means harm computes digests too: then only lengths and types stand in its way."""
    source, payload = random.Random(11), payload_of(SAMPLE)
    outcomes = {"refused": 0, "accepted": 0}
    tracemalloc.start()
    try:
        for _ in range(3000):
            mutated = bytearray(payload)
            for _ in range(source.choice([1, 1, 2, 8])):
                at = source.randrange(len(mutated))
                action = source.randrange(4)
                if action == 0:
                    mutated[at] = source.randrange(256)
                elif action == 1:
                    mutated[at : at + 8] = source.choice([b"\xff" * 8, bytes(8), struct.pack("<Q", 2**60)])
                elif action == 2:
                    del mutated[at : at + source.randrange(1, 20)]
                else:
                    mutated[at:at] = source.randbytes(source.randrange(1, 20))
                mutated = mutated or bytearray(1)
            try:
                got = codec.decode(sealed("Everything", bytes(mutated)), (Everything,))
            except RemoteProtocolError:
                outcomes["refused"] += 1
            else:
                outcomes["accepted"] += 1
                assert type(got.flag) is bool and type(got.number) is int and type(got.text) is str
                assert codec.encode(got) == sealed(
                    "Everything", bytes(mutated)
                )  # one way to write each message
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
    assert outcomes["refused"] > 1000 and outcomes["accepted"] > 100


HUGE = 2**60
CLAIMS = {
    "frame": (OneInt, struct.pack("<4sBBHQ", b"VFLP", 1, 6, 0, HUGE) + bytes(16) + b"OneInt"),
    "bytes": (Blob, sealed("Blob", b"\x01\x00b" + struct.pack("<Q", HUGE))),
    "vector": (OneArray, sealed("OneArray", b"\x01\x00a\x04\x01" + struct.pack("<Q", HUGE))),
    "overflowing shape": (
        OneArray,
        sealed("OneArray", b"\x01\x00a\x04\x02" + struct.pack("<QQ", 2**32, 2**32)),
    ),
    "empty but wide": (OneArray, sealed("OneArray", b"\x01\x00a\x04\x02" + struct.pack("<QQ", 0, HUGE))),
    "dimensions": (OneArray, sealed("OneArray", b"\x01\x00a\x04\xff" + bytes(8 * 255))),
    "unknown dtype": (OneArray, sealed("OneArray", b"\x01\x00a\x63\x00")),
    "tuple": (Words, sealed("Words", b"\x01\x00t\xff\xff\xff\xff" + b"N" * 100)),
    "int": (OneInt, sealed("OneInt", b"\x01\x00i\xff\xff\xff\xff" + bytes(100))),
    "fields": (OneInt, sealed("OneInt", b"\xff\xff" + bytes(100))),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_huge_claims_are_refused_without_memory(claim):
    cls, frame = CLAIMS[claim]
    tracemalloc.start()
    try:
        with pytest.raises(RemoteProtocolError):
            codec.decode(frame, (cls,))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("cls", "content"),
    [
        (OneInt, b"i\x02\x00\x00\x00\x05\x00"),  # 5 in two bytes
        (OneInt, b"i\x00\x00\x00\x00"),
        (Words, b"t\x01\x00\x00\x00s\x01" + bytes(7) + b"\xff"),  # not UTF-8
        (OneArray, b"a\x00\x01" + struct.pack("<Q", 1) + b"\x02"),  # a bool that is 2
        (OneInt, b"i\x01\x00\x00\x00\x05" + b"more"),
    ],
)
def test_values_written_in_a_way_the_encoder_does_not_write_are_refused(cls, content):
    with pytest.raises(DamagedFrameError):
        codec.decode(sealed(cls.__name__, b"\x01\x00" + content), (cls,))


def test_frame_of_another_version_says_both_versions():
    frame = bytearray(codec.encode(OneInt(1)))
    frame[4] = 9
    with pytest.raises(DamagedFrameError, match="version 9, this side speaks version 1"):
        codec.decode(frame, (OneInt,))


# ---------------------------------------------------------------- kinds and types


def test_kind_outside_the_list_is_refused_and_named():
    with pytest.raises(RemoteProtocolError, match="sent OneInt, expected one of: Blob, Words"):
        codec.decode(codec.encode(OneInt(1)), (Blob, Words))
    with pytest.raises(RemoteProtocolError, match="expected one of: none"):
        codec.decode(codec.encode(OneInt(1)), ())


def make_kind(annotation: object) -> type[Message]:
    """A message class called OneField with one field `x`, as a sender with other ideas would have it."""

    class OneField(Message):
        x: int

    OneField.__annotations__ = {"x": annotation}
    return dataclass(frozen=True)(OneField)


VALUES = {
    bool: True,
    int: 3,
    float: 3.0,
    str: "3",
    bytes: b"3",
    np.ndarray: np.arange(3),
    NDArray[np.int32]: np.arange(3, dtype=np.int32),
    tuple[int, ...]: (3, 3),
    tuple[int, str, int]: (3, "3", 3),
}


@pytest.mark.parametrize("wanted", VALUES, ids=str)
@pytest.mark.parametrize("sent", VALUES, ids=str)
def test_field_of_another_type_is_the_senders_error(wanted, sent):
    frame = codec.encode(make_kind(sent)(VALUES[sent]))
    if sent == wanted or (wanted is np.ndarray and sent == NDArray[np.int32]):
        codec.decode(frame, (make_kind(wanted),))
    else:
        with pytest.raises(RemoteProtocolError, match=r"OneField\.x must be"):
            codec.decode(frame, (make_kind(wanted),))


def test_none_crosses_only_where_it_is_allowed():
    frame = codec.encode(make_kind(int | None)(None))
    assert codec.decode(frame, (make_kind(int | None),)).x is None
    with pytest.raises(RemoteProtocolError, match=r"OneField\.x must be int"):
        codec.decode(frame, (make_kind(int),))
    with pytest.raises(LocalProtocolError, match="must be int, got NoneType"):
        codec.encode(make_kind(int)(None))


def test_another_number_of_fields_is_the_senders_error():
    with pytest.raises(RemoteProtocolError, match="came with 2 fields, it has 1"):
        codec.decode(sealed("OneInt", b"\x02\x00NN"), (OneInt,))


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, 1.0),
        (int, True),
        (int, "1"),
        (float, "1"),
        (float, True),
        (float, 10**400),
        (bool, 1),
        (str, b"x"),
        (str, "\ud800"),
        (bytes, "x"),
        (bytes, np.zeros(3)),
        (np.ndarray, [1, 2]),
        (np.ndarray, np.array(["a"])),
        (np.ndarray, np.array([object()])),
        (np.ndarray, np.zeros(2, complex)),
        (np.ndarray, np.zeros(2, "M8[s]")),
        (np.ndarray, np.zeros(2, [("a", int)])),
        (np.ndarray, np.ma.masked_array([1, 2], [True, False])),
        (np.ndarray, np.zeros((1,) * 9)),
        (NDArray[np.int32], np.zeros(2)),
        (tuple[int, ...], (1, "2")),
        (tuple[int, int], (1, 2, 3)),
        (tuple[int, ...], {1, 2}),
        pytest.param(int, 2 ** (8 * codec.MAX_INT_BYTES), id="int-huge"),
    ],
)
def test_value_that_cannot_cross_is_our_own_error_and_names_the_field(annotation, value):
    with pytest.raises(LocalProtocolError, match=r"OneField\.x"):
        codec.encode(make_kind(annotation)(value))


@pytest.mark.parametrize(
    "annotation", [dict, list[int], object, set, complex, int | str, NDArray[np.complex128]], ids=str
)
def test_annotation_that_cannot_cross_is_our_own_error(annotation):
    with pytest.raises(LocalProtocolError, match=r"OneField\.x"):
        codec.encode(make_kind(annotation)(1))


def test_only_frozen_dataclasses_cross():
    @dataclass
    class Loose(Message):
        x: int

    class Plain(Message):
        pass

    for message in (Loose(1), Plain()):
        with pytest.raises(LocalProtocolError, match="frozen"):
            codec.encode(message)
    with pytest.raises(LocalProtocolError, match="got dict"):
        codec.encode({"x": 1})


# ---------------------------------------------------------------- size


def test_frame_above_the_limit_is_refused_on_both_sides(monkeypatch):
    frame = codec.encode(Blob(bytes(2000)))
    monkeypatch.setattr(codec, "MAX_FRAME_BYTES", 1000)
    with pytest.raises(LocalProtocolError, match=r"Blob has 2011 bytes, a frame holds 1000"):
        codec.encode(Blob(bytes(2000)))
    with pytest.raises(DamagedFrameError, match=f"claims {len(frame)} bytes, the limit is 1000"):
        codec.decode(frame, (Blob,))


def test_long_tuple_is_refused_and_a_long_array_is_not(monkeypatch):
    monkeypatch.setattr(codec, "MAX_TUPLE_ITEMS", 100)
    with pytest.raises(LocalProtocolError, match="at most 100 items, got 101"):
        codec.encode(Words(("x",) * 101))
    codec.encode(OneArray(np.zeros(101)))


def test_ciphertexts_of_24000_rows_cross_with_one_copy_each_way():
    n_bytes = 24_000 * 768
    message = Blob(bytes(n_bytes))
    tracemalloc.start()
    try:
        frame = codec.encode(message)
        assert tracemalloc.get_traced_memory()[1] < n_bytes + 100_000
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        assert codec.decode(frame, (Blob,)) == message
        assert tracemalloc.get_traced_memory()[1] - before < n_bytes + 100_000
    finally:
        tracemalloc.stop()
