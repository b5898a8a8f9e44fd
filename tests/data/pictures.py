"""Writing PNG files, filter by filter, in plain ints: the opposite of `vfldata.png`."""

import itertools
import struct
import zlib

from vfldata.png import SIGNATURE


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def paeth(left, above, corner):
    p = left + above - corner
    return min((abs(p - left), 0, left), (abs(p - above), 1, above), (abs(p - corner), 2, corner))[2]


def filtered(picture, y, kind):
    """One line as the specification says, byte by byte in plain ints."""
    line = picture[y].ravel().tolist()
    above = picture[y - 1].ravel().tolist() if y else [0] * len(line)
    out = [kind]
    for x, value in enumerate(line):
        left, corner = (line[x - 3], above[x - 3]) if x >= 3 else (0, 0)
        predicted = [0, left, above[x], (left + above[x]) // 2, paeth(left, above[x], corner)][kind]
        out.append((value - predicted) % 256)
    return bytes(out)


def png(picture, filters=None, header=(8, 2, 0, 0, 0), pieces=2):
    """A PNG file of a picture; line y has filter ``filters[y]``, the data comes in several chunks."""
    height, width, _ = picture.shape
    filters = [0] * height if filters is None else filters
    packed = zlib.compress(b"".join(filtered(picture, y, kind) for y, kind in enumerate(filters)))
    cuts = [len(packed) * k // pieces for k in range(pieces + 1)]
    data = [chunk(b"IDAT", packed[a:b]) for a, b in itertools.pairwise(cuts)]
    start = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, *header))
    return SIGNATURE + start + chunk(b"tEXt", b"Title\0any") + b"".join(data) + chunk(b"IEND", b"")
