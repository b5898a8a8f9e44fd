"""One party's file: what was written comes back; what was not written is refused, whatever its bytes say."""

from __future__ import annotations

import hashlib
import json
import os
import random
import stat
import struct
import warnings
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from vflparty import (
    DamagedFileError,
    FileVersionError,
    Message,
    ModelFile,
    ModelFileError,
    OtherVersionWarning,
    WrongFileError,
    codec,
    file_names,
    new_training_id,
)
from vflparty.modelfile import FORMAT_VERSION, LIBRARY_VERSION, MAGIC


@dataclass(frozen=True)
class Half(Message):
    """Half a model."""

    numbers: NDArray[np.float64]
    name: str


@dataclass(frozen=True)
class Extra(Message):
    count: int


HALF = Half(np.array([1 / 3, np.inf, -0.0]), "Zoë")
FILE = ModelFile.of(
    "toy", "bank", "ab" * 16, [HALF, Extra(7)], {"names": ["x", "y"], "depth": 3, "rate": 0.1}
)
GOOD = FILE.to_bytes()


def with_header(**changes) -> bytes:
    """GOOD with another header and a digest that matches again; None removes a field."""
    (n_header,) = struct.unpack_from("<Q", GOOD, 8)
    header = json.loads(GOOD[16 : 16 + n_header])
    header.update(changes)
    header = {name: value for name, value in header.items() if value is not None}
    return sealed(json.dumps(header).encode(), GOOD[16 + n_header : -32])


def sealed(header: bytes, body: bytes) -> bytes:
    data = MAGIC + struct.pack("<Q", len(header)) + header + body
    return data + hashlib.sha256(data).digest()


class TestRoundTrip:
    def test_everything_comes_back(self, tmp_path):
        FILE.write(tmp_path / "bank.model")
        back = ModelFile.read(tmp_path / "bank.model")
        assert back == FILE
        assert back.messages(Half, Extra) == (HALF, Extra(7))
        assert back.metadata == {"names": ["x", "y"], "depth": 3, "rate": 0.1}
        assert (back.kind, back.party, back.training) == ("toy", "bank", "ab" * 16)
        assert back.library_version == LIBRARY_VERSION

    def test_as_many_messages_as_there_are_can_be_asked_for(self):
        assert FILE.many(Half, Extra) == (HALF, Extra(7))
        assert ModelFile.of("toy", "bank", "id", []).many(Half) == ()

    def test_the_same_file_is_the_same_bytes(self):
        assert ModelFile.from_bytes(GOOD).to_bytes() == GOOD

    @pytest.mark.parametrize("metadata", [{"a": (1, 2)}, {1: "a"}, {"a": {2: 3}}])
    def test_metadata_that_json_would_change_is_refused(self, metadata):
        with pytest.raises(TypeError, match="metadata"):
            ModelFile.of("toy", "bank", "id", [], metadata).to_bytes()

    def test_metadata_must_be_finite_plain_values(self):
        with pytest.raises(ValueError, match="JSON"):
            ModelFile.of("toy", "bank", "id", [], {"a": float("nan")}).to_bytes()
        with pytest.raises(TypeError):
            ModelFile.of("toy", "bank", "id", [], {"a": b"bytes"}).to_bytes()

    def test_training_ids_differ(self):
        assert len({new_training_id() for _ in range(100)}) == 100


class TestWriting:
    def test_only_the_user_may_read_it(self, tmp_path):
        FILE.write(tmp_path / "bank.model")
        assert stat.S_IMODE(os.stat(tmp_path / "bank.model").st_mode) == 0o600

    def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(self, tmp_path, monkeypatch):
        path = tmp_path / "bank.model"
        FILE.write(path)

        def full_disk(descriptor):
            raise OSError("no space left")

        monkeypatch.setattr(os, "fsync", full_disk)
        with pytest.raises(OSError, match="no space left"):
            replace(FILE, party="shop").write(path)
        assert path.read_bytes() == GOOD
        assert [p.name for p in tmp_path.iterdir()] == ["bank.model"]

    def test_metadata_that_cannot_be_written_leaves_nothing(self, tmp_path):
        with pytest.raises(TypeError):
            ModelFile.of("toy", "bank", "id", [], {1: 2}).write(tmp_path / "a.model")
        assert list(tmp_path.iterdir()) == []

    def test_a_plain_name_writes_into_the_current_folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        FILE.write("bank.model")
        assert ModelFile.read("bank.model") == FILE


class TestDamage:
    def test_another_file_is_told_so(self, tmp_path):
        for data in (b"", b"VFLMODE", b"PK\x03\x04" + bytes(200), codec.encode(HALF)):
            (tmp_path / "x").write_bytes(data)
            with pytest.raises(DamagedFileError, match="no model file") as caught:
                ModelFile.read(tmp_path / "x")
            assert caught.value.path == str(tmp_path / "x")
            assert str(tmp_path / "x") in str(caught.value)

    def test_every_truncation_is_refused(self):
        for size in range(len(GOOD)):
            with pytest.raises(DamagedFileError):
                ModelFile.from_bytes(GOOD[:size])

    def test_every_flipped_byte_is_refused(self):
        for at in range(len(GOOD)):
            data = bytearray(GOOD)
            data[at] ^= 1 << (at % 8)
            with pytest.raises(ModelFileError):
                ModelFile.from_bytes(bytes(data))

    def test_more_bytes_than_were_written_are_refused(self):
        for more in (b"\0", GOOD):
            with pytest.raises(DamagedFileError):
                ModelFile.from_bytes(GOOD + more)

    @settings(max_examples=200, deadline=None)
    @given(st.binary(max_size=300))
    def test_rubbish_behind_the_magic_is_refused(self, rubbish):
        with pytest.raises(ModelFileError):
            ModelFile.from_bytes(MAGIC + rubbish)

    def test_rubbish_with_a_sound_digest_is_refused_too(self):
        rng = random.Random(0)
        for _ in range(300):
            header, body = bytearray(GOOD[16:-32]), b""
            for _ in range(rng.randint(1, 4)):
                header[rng.randrange(len(header))] = rng.randrange(256)
            cut = rng.randrange(len(header))
            header, body = bytes(header[:cut]), bytes(header[cut:])
            with pytest.raises(ModelFileError):
                ModelFile.from_bytes(sealed(header, body)).messages(Half, Extra)

    def test_a_header_that_claims_more_than_there_is_is_refused(self):
        for claimed in (len(GOOD), 1 << 60, (1 << 64) - 1):
            with pytest.raises(DamagedFileError, match=str(claimed)):
                ModelFile.from_bytes(MAGIC + struct.pack("<Q", claimed) + GOOD[16:])

    @pytest.mark.parametrize(
        "header",
        [b"[]", b"null", b"{", b"\xff", b"[" * 100_000, b'{"format_version": NaN}', b'{"x": Infinity}'],
    )
    def test_a_header_that_is_no_plain_object_is_refused(self, header):
        with pytest.raises(DamagedFileError, match="header"):
            ModelFile.from_bytes(sealed(header, b""))

    @pytest.mark.parametrize(
        "name", ["kind", "party", "training", "library", "library_version", "metadata", "format"]
    )
    def test_a_missing_or_wrong_header_field_is_named(self, name):
        for value in (None, 3):
            with pytest.raises(
                ModelFileError, match="format is 3" if (name, value) == ("format", 3) else name
            ):
                ModelFile.from_bytes(with_header(**{name: value}))

    def test_messages_of_other_kinds_or_numbers_are_refused(self):
        with pytest.raises(DamagedFileError, match="Extra"):
            FILE.messages(Extra, Extra)
        with pytest.raises(WrongFileError, match="2 messages"):
            FILE.messages(Half)
        with pytest.raises(DamagedFileError, match="Half"):
            FILE.many(Half)


class TestVersions:
    def test_an_unknown_format_version_names_both(self):
        with pytest.raises(FileVersionError, match=rf"version is 999.*reads version {FORMAT_VERSION}"):
            ModelFile.from_bytes(with_header(format_version=999))

    def test_a_missing_format_version_says_so(self):
        with pytest.raises(FileVersionError, match=rf"missing.*version {FORMAT_VERSION}"):
            ModelFile.from_bytes(with_header(format_version=None))

    @pytest.mark.parametrize("version", ["1", 1.0, True, [1]])
    def test_a_version_of_another_type_is_none(self, version):
        with pytest.raises(FileVersionError):
            ModelFile.from_bytes(with_header(format_version=version))

    def test_a_version_edited_by_hand_is_a_version_error_and_says_that_it_was_edited(self, tmp_path):
        edited = GOOD.replace(b'"format_version": 1', b'"format_version": 9')
        assert edited != GOOD
        (tmp_path / "a.model").write_bytes(edited)
        with pytest.raises(FileVersionError, match=r"a\.model.*version is 9.*edited"):
            ModelFile.read(tmp_path / "a.model")

    def test_an_older_library_is_read_with_a_warning_that_names_both(self, tmp_path):
        (tmp_path / "a.model").write_bytes(with_header(library_version="0.0.1"))
        with pytest.warns(OtherVersionWarning, match=rf"0\.0\.1, this is {LIBRARY_VERSION}"):
            back = ModelFile.read(tmp_path / "a.model")
        assert back.messages(Half, Extra) == (HALF, Extra(7))

    def test_the_same_library_is_read_in_silence(self, tmp_path):
        FILE.write(tmp_path / "a.model")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ModelFile.read(tmp_path / "a.model")

    def test_header_fields_of_later_libraries_are_ignored(self):
        assert ModelFile.from_bytes(with_header(something_new=[1])) == FILE

    def test_fields_that_a_message_gained_since_take_their_defaults(self):
        @dataclass(frozen=True)
        class Half(Message):
            numbers: NDArray[np.float64]
            name: str
            tags: tuple[str, ...] = ()
            sizes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

        back, _ = FILE.messages(Half, Extra)
        assert back == Half(HALF.numbers, HALF.name)

    def test_a_field_without_a_default_is_missed(self):
        @dataclass(frozen=True)
        class Half(Message):
            numbers: NDArray[np.float64]
            name: str
            more: int

        with pytest.raises(DamagedFileError, match="2 fields"):
            FILE.messages(Half, Extra)


class TestWhoseFile:
    @pytest.mark.parametrize(
        ("wanted", "words"),
        [
            ({"kind": "forest"}, r"'toy', expected 'forest'"),
            ({"kind": ("forest", "boost")}, r"'forest' or 'boost'"),
            ({"party": "shop"}, r"'bank', expected party 'shop'"),
            ({"training": "cd" * 16}, r"different trainings"),
        ],
    )
    def test_another_kind_party_or_training_is_refused_with_both_names(self, tmp_path, wanted, words):
        FILE.write(tmp_path / "bank.model")
        with pytest.raises(WrongFileError, match=words):
            ModelFile.read(tmp_path / "bank.model", **wanted)

    def test_the_right_ones_are_accepted(self, tmp_path):
        FILE.write(tmp_path / "bank.model")
        assert (
            ModelFile.read(tmp_path / "bank.model", kind=("x", "toy"), party="bank", training="ab" * 16)
            == FILE
        )


class TestNames:
    def test_plain_names_stay_as_they_are(self):
        assert file_names(["bank", "shop-2", "a.b"]) == {
            "bank": "bank.model",
            "shop-2": "shop-2.model",
            "a.b": "a.b.model",
        }

    @pytest.mark.parametrize(
        "party",
        ["", ".", "..", "../../etc/passwd", "/etc/passwd", "a/b", "a\\b", "a\0b", "~", "\ud800", "x" * 5000, "Zoë" * 99,
         "a\nb", "..model", "C:x"],
    )  # fmt: skip
    def test_no_name_leaves_the_folder(self, tmp_path, party):
        (name,) = file_names([party]).values()
        FILE.write(tmp_path / name)
        assert [p.name for p in tmp_path.iterdir()] == [name]
        assert not name.startswith(".")

    def test_different_parties_have_different_files_where_case_does_not_count(self):
        parties = [
            "bank",
            "Bank",
            "BANK",
            "a/b",
            "a%2Fb",
            "a%2fb",
            "",
            "~e3b0c442",
            "x" * 200,
            "x" * 201,
            "é",
            "e\u0301",
        ]
        names = file_names(parties).values()
        assert len({name.lower() for name in names}) == len(parties)
