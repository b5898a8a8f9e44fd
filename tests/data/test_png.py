"""Pictures: every filter of PNG, and what is refused."""

import struct
import zlib

import numpy as np
import pytest

from tests.data.pictures import chunk, png
from vfldata.png import SIGNATURE, read_png


@pytest.fixture(scope="module")
def picture():
    return np.random.default_rng(0).integers(0, 256, (10, 7, 3)).astype(np.uint8)


@pytest.mark.parametrize("filters", [[k] * 10 for k in range(5)] + [[4, 3, 2, 1, 0, 4, 1, 3, 2, 4]])
def test_every_filter_is_undone(picture, filters, tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(png(picture, filters))
    assert np.array_equal(read_png(path), picture)


def test_pillow_reads_and_writes_the_same_pictures(picture, tmp_path):
    image = pytest.importorskip("PIL.Image")  # comes with matplotlib
    path = tmp_path / "a.png"
    path.write_bytes(png(picture, [4, 3, 2, 1, 0, 4, 1, 3, 2, 4]))
    assert np.array_equal(np.asarray(image.open(path)), picture)
    image.fromarray(picture).save(path)
    assert np.array_equal(read_png(path), picture)


def test_other_files_and_other_kinds_of_png_are_refused(picture, tmp_path):
    whole = png(picture)
    no_header = SIGNATURE + chunk(b"IDAT", b"x") + chunk(b"IEND", b"")
    for content, words in [
        (b"", "is no PNG: it starts with nothing"),
        (b"GIF89a..", "is no PNG: it starts with 47 49 46"),
        (no_header, "it has no header"),
        (png(picture, header=(16, 2, 0, 0, 0)), "bit depth 16, colour type 2 and interlacing 0"),
        (png(picture, header=(8, 6, 0, 0, 0)), "colour type 6"),
        (png(picture, header=(8, 2, 0, 0, 1)), "interlacing 1"),
        (whole[:-20], "damaged or shortened PNG: after 3 chunks"),
        (whole.replace(b"any", b"ANY"), "damaged or shortened PNG: after 1 chunks"),
    ]:
        path = tmp_path / "a.png"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=words):
            read_png(path)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (bytes(2 * 7), "more than 13 bytes"),
        (bytes(12), "12 bytes for 1 lines of 4"),
        (b"\x05" + bytes(12), "filter 5, known are 0..4"),
    ],
)
def test_pixels_that_do_not_fit_the_header_are_refused(raw, words, tmp_path):
    path = tmp_path / "a.png"
    start = chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 1, 8, 2, 0, 0, 0))
    path.write_bytes(SIGNATURE + start + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))
    with pytest.raises(ValueError, match=words):
        read_png(path)
    path.write_bytes(SIGNATURE + start + chunk(b"IDAT", raw) + chunk(b"IEND", b""))
    with pytest.raises(ValueError, match="damaged PNG: Error"):
        read_png(path)
