"""Fuzz everything that is read from outside: ciphertext arrays, keys, frames.

    python tests/fuzz/fuzz_from_bytes.py --seconds 60 --seed 0       mutations from a seed, any Python
    python tests/fuzz/fuzz_from_bytes.py --replay crash.bin          once more what failed
    python tests/fuzz/fuzz_from_bytes.py --atheris -max_len=4096     guided by coverage, where `atheris` is installed

For any bytes a reader must either raise an error of its documented family or give a value that writes the very same
bytes again; and it must not set aside more memory than a small multiple of what it was given. Frames carry a digest
and keys a fingerprint, which would stop every mutation at the door: for each there is also a target that puts it right.
"""

import argparse
import hashlib
import json
import random
import struct
import sys
import time
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vflcrypto import (
    CiphertextArray,
    DamagedCiphertextError,
    InvalidKeyError,
    KeyMismatchError,
    PrivateKey,
    PublicKey,
    plan_packing,
    plan_slots,
)
from vflparty import DamagedFrameError, Message, RemoteProtocolError, codec

KEYS = Path(__file__).resolve().parents[1] / "vectors" / "insecure_keys.json"
MEMORY_FACTOR, MEMORY_FREE = 32, 4 << 20  # bytes that a reader may set aside: per byte read, and in any case


class Finding(AssertionError):
    """A reader broke its promise. Says which, and holds the bytes."""

    def __init__(self, target: str, data: bytes, what: str) -> None:
        super().__init__(f"{target}: {what}\n{data.hex()}")
        self.target, self.data = target, data


# ---- what is read ----


@dataclass(frozen=True)
class Target:
    """A reader, sound examples of its input, the errors it may raise, and how to write what it read."""

    seeds: tuple[bytes, ...]
    read_and_write: Callable[[bytes], bytes]
    errors: tuple[type[Exception], ...]
    put_right: Callable[[bytes], bytes] = bytes  # after a mutation: checksums as they ought to be
    turns: int = 1  # inputs per round: keys are tested for primes, which takes long


@dataclass(frozen=True)
class Everything(Message):
    """One field of every type."""

    flag: bool
    number: int
    real: float
    text: str
    data: bytes
    anything: np.ndarray
    rows: NDArray[np.int32]
    maybe: str | None
    pair: tuple[int, str]
    many: tuple[NDArray[np.float64], ...]


@cache
def key(name: str) -> PrivateKey:
    primes = json.loads(KEYS.read_text(encoding="utf-8"))["keys"][name]
    return PrivateKey.from_primes(int(primes["p"], 16), int(primes["q"], 16), allow_weak_key=True)


def _array_seeds() -> tuple[bytes, ...]:
    mine = key("INSECURE_TEST_KEY_256")
    plan = plan_packing(3, 1, 30, 256)
    rows = plan.encrypt(mine, np.arange(3).reshape(3, 1), np.arange(3).reshape(3, 1))
    arrays = [
        mine.encrypt(7),
        mine.encrypt([1.5, -2.0]),
        mine.encrypt(np.arange(12).reshape(2, 3, 2)),
        mine.encrypt(np.empty((0, 5))),
        rows,
        plan_slots(3, n_weights=2, n_counts=1, fraction_bits=4, key_bits=256).encrypt(
            mine, np.eye(3, dtype=int)
        ),
        rows.sum_rows(np.array([0, 2, 3]), np.array([0, 1, 2])).rerandomize(),
        key("INSECURE_TEST_KEY_512").encrypt([1, 2]),  # another key
    ]
    return tuple(array.to_bytes() for array in arrays)


def _frame_seeds() -> tuple[bytes, ...]:
    messages = [
        Everything(True, -5, 1.5, "text é", b"data", np.eye(3), np.arange(4, dtype=np.int32), None, (1, "a"), ()),
        Everything(
            False, 1 << 300, -0.0, "", b"", np.empty((0, 2), dtype=bool), np.empty(0, dtype=np.int32), "yes",
            (0, ""), (np.zeros(2), np.ones((2, 2))),
        ),
    ]  # fmt: skip
    return tuple(codec.encode(message) for message in messages)


def fingerprint_put_right(data: bytes) -> bytes:
    """A public key whose fingerprint belongs to its bytes, whatever they are."""
    n = int.from_bytes(data[42:], "big")
    if n < 9 or n % 2 == 0 or n.bit_length() > 8192:
        return data
    minimal = n.to_bytes(-(-n.bit_length() // 8), "big")
    digest = hashlib.sha256(b"vflcrypto: Paillier public key, version 1" + minimal).digest()
    return data[:6] + struct.pack(">I", n.bit_length()) + digest + minimal


def digest_put_right(data: bytes) -> bytes:
    """A frame whose payload length and digest belong to its bytes."""
    if len(data) < codec.HEADER_BYTES:
        return data
    size = max(0, len(data) - codec.HEADER_BYTES - data[5])
    front, rest = data[:8] + struct.pack("<Q", size), data[codec.HEADER_BYTES :]
    return front + hashlib.sha256(front + rest).digest()[:16] + rest


def _reread_json(data: bytes) -> bytes:
    return PublicKey.from_json(data.decode("utf-8", "replace"), allow_weak_key=True).to_json().encode()


@cache
def targets() -> dict[str, Target]:
    """By name; names begin corpora and reports."""
    mine = key("INSECURE_TEST_KEY_256")
    public, textbook = mine.public_key, PublicKey(mine.public_key.n, allow_weak_key=True, textbook_noise=True)
    public_seeds = (public.to_bytes(), textbook.to_bytes())

    def array(data: bytes) -> bytes:
        return CiphertextArray.from_bytes(data, public).to_bytes()

    def public_key(data: bytes) -> bytes:
        return PublicKey.from_bytes(data, allow_weak_key=True).to_bytes()

    def private_key(data: bytes) -> bytes:
        return PrivateKey.from_unsafe_private_bytes(data, allow_weak_key=True).unsafe_private_bytes()

    def frame(data: bytes) -> bytes:
        return codec.encode(codec.decode(data, (Everything,)))

    frame_errors = (DamagedFrameError, RemoteProtocolError)
    return {
        "array": Target(_array_seeds(), array, (DamagedCiphertextError, KeyMismatchError), turns=10),
        "public key": Target(public_seeds, public_key, (InvalidKeyError,)),
        "public key, right fingerprint": Target(
            public_seeds, public_key, (InvalidKeyError,), fingerprint_put_right
        ),
        "public key in JSON": Target((public.to_json().encode(),), _reread_json, (InvalidKeyError,)),
        "private key": Target((mine.unsafe_private_bytes(),), private_key, (InvalidKeyError,)),
        "frame": Target(_frame_seeds(), frame, frame_errors, turns=3),
        "frame, right digest": Target(_frame_seeds(), frame, frame_errors, digest_put_right, turns=10),
    }


def check(name: str, data: bytes) -> bool:
    """Whether the reader took the bytes; Finding if it did anything that is not documented."""
    target = targets()[name]
    data = target.put_right(data)
    limit = MEMORY_FREE + MEMORY_FACTOR * len(data)
    started = not tracemalloc.is_tracing()
    if started:
        tracemalloc.start()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    taken = True
    try:
        written = target.read_and_write(data)
        # JSON has many spellings of one document; bytes have one.
        if written != data and "JSON" not in name:
            raise Finding(name, data, f"was read, but written as {written.hex()}")
    except target.errors:
        taken = False
    except Finding:
        raise
    except Exception as error:
        raise Finding(name, data, f"{type(error).__name__}: {error}") from error
    finally:
        peak = tracemalloc.get_traced_memory()[1] - before
        if started:
            tracemalloc.stop()
    if peak > limit:
        raise Finding(name, data, f"{peak} bytes were set aside for {len(data)}")
    return taken


# ---- mutations ----

_NUMBERS = (0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 63, 64, 127, 128, 255, 256, 1 << 15, (1 << 16) - 1, 1 << 31,
            (1 << 32) - 1, 1 << 48, 1 << 60, 1 << 63, (1 << 64) - 1)  # fmt: skip


def _flip(data: bytearray, at: int, rng: random.Random, _: bytes) -> None:
    data[at] ^= 1 << rng.randrange(8)


def _byte(data: bytearray, at: int, rng: random.Random, _: bytes) -> None:
    data[at] = rng.randrange(256)


def _number(data: bytearray, at: int, rng: random.Random, _: bytes) -> None:
    width = rng.choice((1, 2, 4, 8))
    number = (rng.choice(_NUMBERS) + rng.choice((-1, 0, 0, 1))) % (1 << 8 * width)
    data[at : at + width] = number.to_bytes(width, rng.choice(("little", "big")))


def _cut(data: bytearray, at: int, rng: random.Random, _: bytes) -> None:
    del data[at : at + rng.choice((1, 2, 8, 64, len(data)))]


def _repeat(data: bytearray, at: int, rng: random.Random, _: bytes) -> None:
    data[at:at] = data[at : at + rng.choice((1, 8, 64))]


def _insert(data: bytearray, at: int, rng: random.Random, _: bytes) -> None:
    data[at:at] = rng.choice((bytes(8), rng.randbytes(8), b"\xff" * 8, bytes(64)))


def _zero(data: bytearray, at: int, rng: random.Random, _: bytes) -> None:
    size = min(rng.choice((8, 32, 64)), len(data) - at)
    data[at : at + size] = rng.choice((b"\0", b"\xff")) * size


def _splice(data: bytearray, at: int, rng: random.Random, other: bytes) -> None:
    data[at:] = other[rng.randrange(len(other) + 1) if rng.random() < 0.5 else at :]


_MUTATIONS = (_flip, _flip, _byte, _byte, _number, _number, _number, _cut, _repeat, _insert, _zero, _splice)


def mutated(seeds: Sequence[bytes], rng: random.Random) -> bytes:
    """A sound example with one to six things done to it, near its front more often than not."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        if not data:
            break
        reach = len(data) if rng.random() < 0.4 else min(len(data), 96)
        rng.choice(_MUTATIONS)(data, rng.randrange(reach), rng, rng.choice(seeds))
    return bytes(data)


# ---- running ----


def run(
    names: Sequence[str], *, seed: int, count: int | None = None, seconds: float | None = None
) -> Counter[tuple[str, bool]]:
    """Mutations in turn over the targets, until `count` are done or `seconds` have passed.

    Returns
    -------
    how many inputs were (target, taken)
    """
    rng, done, results = random.Random(seed), 0, Counter[tuple[str, bool]]()
    end = None if seconds is None else time.monotonic() + seconds
    turns = [name for name in names for _ in range(targets()[name].turns)]
    tracemalloc.start(1)
    try:
        for name in names:
            for example in targets()[name].seeds:
                check(name, example)
        while (count is None or done < count) and (end is None or time.monotonic() < end):
            name = turns[done % len(turns)]
            results[name, check(name, mutated(targets()[name].seeds, rng))] += 1
            done += 1
    finally:
        tracemalloc.stop()
    return results


def _guided(arguments: list[str]) -> None:
    """libFuzzer's loop, through atheris. The first byte of an input chooses the target."""
    import atheris

    names = list(targets())
    atheris.instrument_all()

    def one_input(data: bytes) -> None:
        if data:
            check(names[data[0] % len(names)], data[1:])

    atheris.Setup([sys.argv[0], *arguments], one_input)
    atheris.Fuzz()


def _write_corpus(folder: Path) -> None:
    """The sound examples as files, for a guided run to start from."""
    folder.mkdir(parents=True, exist_ok=True)
    for index, target in enumerate(targets().values()):
        for number, seed in enumerate(target.seeds):
            (folder / f"{index}-{number}").write_bytes(bytes([index]) + seed)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, help="how long (10 unless --count is given)")
    parser.add_argument("--count", type=int, help="how many mutations")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--target", choices=[*targets()], action="append", help="only this one; may be repeated"
    )
    parser.add_argument("--replay", type=Path, help="a file that a run has written")
    parser.add_argument("--corpus", type=Path, help="write the sound examples into this folder and stop")
    parser.add_argument(
        "--atheris", action="store_true", help="guided by coverage; further options are libFuzzer's"
    )
    options, rest = parser.parse_known_args(arguments)
    if options.atheris:
        _guided(rest)
        return 0
    if rest:
        parser.error(f"unknown options {rest}")
    if options.corpus:
        _write_corpus(options.corpus)
        return 0
    if options.replay:
        data = options.replay.read_bytes()
        name = list(targets())[data[0] % len(targets())]
        print(f"{name}: {'taken' if check(name, data[1:]) else 'refused'}")
        return 0
    seconds = 10.0 if options.seconds is None and options.count is None else options.seconds
    names = options.target or [*targets()]
    try:
        results = run(names, seed=options.seed, count=options.count, seconds=seconds)
    except Finding as finding:
        path = Path(f"finding-{hashlib.sha256(finding.data).hexdigest()[:8]}.bin")
        path.write_bytes(bytes([list(targets()).index(finding.target)]) + finding.data)
        print(f"{finding}\nwritten to {path}; --replay {path} shows it again")
        return 1
    for name in names:
        print(f"{name:32} {results[name, False]:8} refused {results[name, True]:8} taken")
    return 0


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
