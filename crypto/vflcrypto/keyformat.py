"""Keys as bytes and as JSON. Only shapes are checked here; `paillier.py` checks what the numbers are.

public   "VFLP"  version  flags  key_bits  fingerprint  n            n big-endian, of exactly key_bits bits
private  "VFLS"  version  flags  key_bits  fingerprint  p_bytes  p  q
"""

import json
import struct

from .errors import InvalidKeyError

PUBLIC_MAGIC, PRIVATE_MAGIC = b"VFLP", b"VFLS"
VERSION = 1
JSON_FORMAT = "vflcrypto Paillier public key"
MAX_KEY_BITS = 8192
_HEAD = struct.Struct(">4sBBI32s")
_TEXTBOOK = 1  # flag: blind with textbook noise


def big_endian(n: int) -> bytes:
    """n in as few bytes as it takes."""
    return n.to_bytes(-(-n.bit_length() // 8), "big")


def public_to_bytes(n: int, textbook: bool, fingerprint: bytes) -> bytes:
    head = _HEAD.pack(PUBLIC_MAGIC, VERSION, _TEXTBOOK * textbook, n.bit_length(), fingerprint)
    return head + big_endian(n)


def public_from_bytes(data: bytes) -> tuple[int, bool, bytes]:
    """n, whether noise is the textbook's, and the fingerprint. Raises InvalidKeyError."""
    bits, flags, fingerprint, body = _open(bytes(data), PUBLIC_MAGIC, "public")
    if len(body) != -(-bits // 8):
        raise InvalidKeyError(f"a public key of {bits} bits takes {-(-bits // 8)} bytes, got {len(body)}")
    return _exact(int.from_bytes(body, "big"), bits), bool(flags), fingerprint


def public_to_json(n: int, textbook: bool, fingerprint: bytes) -> str:
    document = {
        "format": JSON_FORMAT,
        "version": VERSION,
        "key_bits": n.bit_length(),
        "textbook_noise": textbook,
        "fingerprint": fingerprint.hex(),
        "n": f"{n:x}",
    }
    return json.dumps(document)


def public_from_json(text: str) -> tuple[int, bool, bytes]:
    """n, whether noise is the textbook's, and the fingerprint. Raises InvalidKeyError."""
    try:
        document = json.loads(text)
        if document["format"] != JSON_FORMAT or document["version"] != VERSION:
            raise InvalidKeyError(f"not a {JSON_FORMAT} of version {VERSION}")
        digits, bits = document["n"], int(document["key_bits"])
        if not isinstance(digits, str) or len(digits) > MAX_KEY_BITS // 4 or f"{int(digits, 16):x}" != digits:
            raise InvalidKeyError("n must be a string of lower-case hexadecimal digits")
        fingerprint = bytes.fromhex(document["fingerprint"])
        return _exact(int(digits, 16), bits), bool(document["textbook_noise"]), fingerprint
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        if isinstance(error, InvalidKeyError):
            raise
        raise InvalidKeyError(
            "the JSON document is no public key: a field is missing or malformed"
        ) from error


def private_to_bytes(p: int, q: int, textbook: bool, fingerprint: bytes) -> bytes:
    head = _HEAD.pack(PRIVATE_MAGIC, VERSION, _TEXTBOOK * textbook, (p * q).bit_length(), fingerprint)
    p_bytes = big_endian(p)
    return head + struct.pack(">I", len(p_bytes)) + p_bytes + big_endian(q)


def private_from_bytes(data: bytes) -> tuple[int, int, bool, bytes]:
    """p, q, whether noise is the textbook's, and the fingerprint. Raises InvalidKeyError."""
    bits, flags, fingerprint, body = _open(bytes(data), PRIVATE_MAGIC, "private")
    if len(body) < 4:
        raise InvalidKeyError("the bytes of the private key are cut short")
    (p_bytes,) = struct.unpack_from(">I", body)
    primes = body[4:]
    if not 0 < p_bytes < len(primes) <= MAX_KEY_BITS // 8 + 2:
        raise InvalidKeyError("the bytes of the private key have the wrong length")
    p, q = int.from_bytes(primes[:p_bytes], "big"), int.from_bytes(primes[p_bytes:], "big")
    _exact(p * q, bits)
    return p, q, bool(flags), fingerprint


def _open(data: bytes, magic: bytes, kind: str) -> tuple[int, int, bytes, bytes]:
    """Key size, flags, fingerprint and the rest."""
    if len(data) < _HEAD.size:
        raise InvalidKeyError(f"{len(data)} bytes are too few for a {kind} key")
    found, version, flags, bits, fingerprint = _HEAD.unpack_from(data)
    if found != magic:
        raise InvalidKeyError(f"these bytes are not a {kind} key")
    if version != VERSION or flags not in (0, _TEXTBOOK):
        raise InvalidKeyError(f"a {kind} key of version {version}, this program reads {VERSION}")
    if not 0 < bits <= MAX_KEY_BITS:
        raise InvalidKeyError(f"a {kind} key of {bits} bits, at most {MAX_KEY_BITS} are allowed")
    return bits, flags, fingerprint, data[_HEAD.size :]


def _exact(n: int, bits: int) -> int:
    if n.bit_length() != bits:
        raise InvalidKeyError(f"the modulus has {n.bit_length()} bits, {bits} were announced")
    return n
