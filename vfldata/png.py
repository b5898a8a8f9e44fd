"""Reading one kind of PNG: 8 bits a channel, RGB, not interlaced; enough for image sets that are packed into a picture.

After the PNG specification (W3C), sections 5 (chunks) and 9 (filters).
"""

import struct
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIGNATURE = b"\x89PNG\r\n\x1a\n"
RGB, CHANNELS = 2, 3
N_FILTERS = 5


def read_png(path: Path) -> NDArray[np.uint8]:
    """The picture, uint8, shape (height, width, 3). ValueError for another kind of PNG, a damaged one, or none."""
    content = path.read_bytes()
    if not content.startswith(SIGNATURE):
        raise ValueError(f"{path} is no PNG: it starts with {content[:8].hex(' ') or 'nothing'}")
    chunks = _chunks(path, content)
    if not chunks or chunks[0][0] != b"IHDR" or len(chunks[0][1]) != 13:
        raise ValueError(f"{path} is a damaged PNG: it has no header")
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[0][1])
    if (depth, colour, interlaced) != (8, RGB, 0):
        raise ValueError(
            f"{path} has bit depth {depth}, colour type {colour} and interlacing {interlaced}; read is only 8, {RGB} "
            "(RGB) and 0"
        )
    size = height * (1 + width * CHANNELS)
    unpacker = zlib.decompressobj()
    try:
        packed = b"".join(data for kind, data in chunks if kind == b"IDAT")
        raw = unpacker.decompress(packed, size + 1)  # one byte more than expected shows that there is more
    except zlib.error as error:
        raise ValueError(f"{path} is a damaged PNG: {error}") from error
    if len(raw) != size:
        more = "more than " if len(raw) > size else ""
        raise ValueError(
            f"{path} is a damaged PNG: {more}{min(len(raw), size)} bytes for {height} lines of {width}"
        )
    # A line of the picture: the number of its filter, then 3 * width bytes.
    lines = np.frombuffer(raw, np.uint8).reshape(height, 1 + width * CHANNELS)
    if lines[:, 0].max(initial=0) >= N_FILTERS:
        raise ValueError(f"{path} is a damaged PNG: filter {lines[:, 0].max()}, known are 0..{N_FILTERS - 1}")
    pixels = np.array(lines[:, 1:])
    _compiled_unfilter()(pixels, np.array(lines[:, 0]))
    return pixels.reshape(height, width, CHANNELS)


def _chunks(path: Path, content: bytes) -> list[tuple[bytes, bytes]]:
    """Kind and data of every chunk up to the end mark; checksums are compared."""
    chunks: list[tuple[bytes, bytes]] = []
    at = len(SIGNATURE)
    while at + 12 <= len(content):
        (length,) = struct.unpack_from(">I", content, at)
        kind, data = content[at + 4 : at + 8], content[at + 8 : at + 8 + length]
        checksum = content[at + 8 + length : at + 12 + length]
        if len(checksum) < 4 or zlib.crc32(kind + data) != int.from_bytes(checksum, "big"):
            break
        if kind == b"IEND":
            return chunks
        chunks.append((kind, data))
        at += 12 + length
    raise ValueError(f"{path} is a damaged or shortened PNG: after {len(chunks)} chunks, at byte {at}")


def _unfilter(pixels: Any, filters: Any) -> None:
    """Add back, in place, what each filter predicted from the pixel at the left, above, and above left."""
    for y in range(pixels.shape[0]):
        kind = filters[y]
        for x in range(pixels.shape[1]):
            left = int(pixels[y, x - 3]) if x >= 3 else 0
            above = int(pixels[y - 1, x]) if y > 0 else 0
            corner = int(pixels[y - 1, x - 3]) if x >= 3 and y > 0 else 0
            predicted = 0
            if kind == 1:
                predicted = left
            elif kind == 2:
                predicted = above
            elif kind == 3:
                predicted = (left + above) // 2
            elif kind == 4:  # Paeth: whichever is nearest to left + above - corner, in this order
                to_left, to_above = abs(above - corner), abs(left - corner)
                to_corner = abs(left + above - 2 * corner)
                if to_left <= to_above and to_left <= to_corner:
                    predicted = left
                elif to_above <= to_corner:
                    predicted = above
                else:
                    predicted = corner
            pixels[y, x] = (int(pixels[y, x]) + predicted) & 255


@cache
def _compiled_unfilter() -> Any:
    import numba  # only here: whoever reads no pictures does not wait for it

    return numba.njit(nogil=True)(_unfilter)
