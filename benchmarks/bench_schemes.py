"""One job, several kinds of cryptography: the figures of docs/why-paillier.md.

    python benchmarks/bench_schemes.py                      what can be imported here: ours, gmpy2, NumPy
    python -m venv /tmp/schemes && /tmp/schemes/bin/pip install numpy gmpy2 tenseal sf-heu
    /tmp/schemes/bin/python benchmarks/bench_schemes.py     and the others, in an environment of their own

The job is what a passive party does for the root of a tree: rows carry a gradient and a Hessian of 30 fraction bits,
sealed by their owner; the other party adds up those that share a bin and returns the sums. Every scheme's answer is
compared with NumPy's. Times are processor time of all threads, so a busy machine disturbs them less; the least of
several runs. The small schemes written out here are for measuring only: their keys are not made with care.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

KEY_BITS = 2048
ROWS, FEATURES, BINS = 4000, 4, 32
PLANNED_ROWS = 24_000  # widths are chosen for sums of so many
FRACTION_BITS, SUM_BITS = 30, 45
SLOTS = 8192  # of a lattice ciphertext that holds many rows
SLOW_ROWS = 200  # for schemes in a Python loop; figures are per operation

Pair = tuple[int, int]
Run = Callable[[], Any]


class Figures(NamedTuple):
    """One line of the table. Times in microseconds; None: does not apply."""

    scheme: str
    bytes_per_row: float
    encrypt_row: float
    add_term: float | None  # one row into one bin
    decrypt: float  # one ciphertext
    note: str


def timed(action: Run, count: int, least_runs: int = 3) -> tuple[float, Any]:
    """Microseconds of processor time per item, the least of about two seconds of runs, and the last result."""
    times: list[float] = []
    while len(times) < least_runs or (sum(times) < 2 and len(times) < 30):
        start = time.process_time()
        result = action()
        times.append(time.process_time() - start)
    return min(times) / count * 1e6, result


class Job:
    """Rows, bins, and the right answer."""

    def __init__(self, n_rows: int) -> None:
        rng = np.random.default_rng(7)
        self.g = rng.integers(-(1 << FRACTION_BITS), 1 << FRACTION_BITS, n_rows)
        self.h = rng.integers(0, 1 << FRACTION_BITS, n_rows)
        self.bins = rng.integers(0, BINS, (n_rows, FEATURES))
        self.n_terms = n_rows * FEATURES
        self.sums = [
            (int(self.g[self.bins[:, f] == b].sum()), int(self.h[self.bins[:, f] == b].sum()))
            for f in range(FEATURES)
            for b in range(BINS)
        ]
        self.packed = [
            (int(g) << SUM_BITS) + int(h) for g, h in zip(self.g.tolist(), self.h.tolist(), strict=True)
        ]
        self.members = [
            np.flatnonzero(self.bins[:, f] == b).tolist() for f in range(FEATURES) for b in range(BINS)
        ]

    def check(self, sums: list[Pair]) -> None:
        if sums != self.sums:
            raise SystemExit("a scheme gave wrong sums")


def unpacked(value: int) -> Pair:
    return value >> SUM_BITS, value & ((1 << SUM_BITS) - 1)


# ---- schemes over large integers ----


def ours() -> Iterator[Figures]:
    yield _ours(KEY_BITS)
    yield _ours(3072)


def _ours(key_bits: int) -> Figures:
    from vflcrypto import generate_keypair, plan_packing

    job, (public, private) = Job(ROWS), generate_keypair(key_bits)
    plan = plan_packing(PLANNED_ROWS, 1, FRACTION_BITS, key_bits)
    g, h = job.g[:, None], job.h[:, None]
    private.encrypt([1])  # makes the tables
    seal, rows = timed(lambda: plan.encrypt(private, g, h), ROWS)
    size = len(rows.to_bytes()) / ROWS
    add, sums = timed(lambda: rows.sum_by_bin(job.bins, BINS), job.n_terms)
    reply = plan.compress(sums.reshape(FEATURES * BINS, 1)).rerandomize()
    gs, hs = plan.unpack(private.decrypt_words(reply), FEATURES * BINS)
    job.check(list(zip(gs[:, 0].tolist(), hs[:, 0].tolist(), strict=True)))
    opening, _ = timed(lambda: private.decrypt_words(rows[:512]), 512)
    joining, _ = timed(lambda: plan.compress(sums.reshape(FEATURES * BINS, 1)), FEATURES * BINS)
    blinding, _ = timed(lambda: rows[:512].rerandomize(), 512)
    note = (
        f"{public.backend}; {plan.values_per_reply} sums in a reply: joining {joining:.0f} a sum, "
        f"blinding {blinding:.0f} a reply"
    )
    return Figures(f"Paillier {key_bits}, vflcrypto", size, seal, add, opening, note)


def _prime(bits: int) -> int:
    import gmpy2

    return int(gmpy2.next_prime(secrets.randbits(bits) | 3 << (bits - 2)))


def _looped(name: str, encrypt: Callable[[int], Any], decrypt: Callable[[Any], int], modulus: int) -> Figures:
    """A scheme whose addition is a product modulo `modulus`, in a Python loop over gmpy2 numbers."""
    job = Job(SLOW_ROWS)

    def add_up() -> list[Any]:
        sums = []
        for members in job.members:
            total = encrypt_zero
            for i in members:
                total = total * rows[i] % modulus
            sums.append(total)
        return sums

    encrypt_zero = encrypt(0)
    seal, rows = timed(lambda: [encrypt(value) for value in job.packed], SLOW_ROWS, 1)
    add, sums = timed(add_up, job.n_terms)
    opening, values = timed(lambda: [decrypt(value) for value in sums], len(sums))
    job.check([unpacked(value) for value in values])
    return Figures(name, -(-modulus.bit_length() // 8), seal, add, opening, "")


def textbook() -> Iterator[Figures]:
    """Paillier and Okamoto-Uchiyama as they were published, with full-length noise, in a few lines of gmpy2."""
    from gmpy2 import invert, mpz, powmod

    p, q = (mpz(_prime(KEY_BITS // 2)) for _ in range(2))
    n, lam = p * q, (p - 1) * (q - 1)
    square, mu = n * n, invert(lam, n)

    def decrypt(c: Any) -> int:
        m = (powmod(c, lam, square) - 1) // n * mu % n
        return int(m - n if 2 * m > n else m)

    def encrypt(m: int) -> Any:
        return (1 + m * n) * powmod(secrets.randbelow(int(n)), n, square) % square

    yield _looped(f"Paillier {KEY_BITS}, textbook, gmpy2", encrypt, decrypt, square)

    p, q = (mpz(_prime(-(-KEY_BITS // 3))) for _ in range(2))
    p2, n = p * p, p * p * q
    base = mpz(2)
    while powmod(base, p - 1, p2) == 1:
        base += 1
    zero, order = powmod(base, n, n), invert((powmod(base, p - 1, p2) - 1) // p, p)

    def encrypt_ou(m: int) -> Any:
        return powmod(base, m, n) * powmod(zero, secrets.randbelow(int(n)), n) % n

    def decrypt_ou(c: Any) -> int:
        m = (powmod(c, p - 1, p2) - 1) // p * order % p
        return int(m - p if 2 * m > p else m)

    line = _looped(f"Okamoto-Uchiyama {KEY_BITS}, textbook, gmpy2", encrypt_ou, decrypt_ou, n)
    yield line._replace(note=f"{p.bit_length() - 1} bits of plaintext")


def heu() -> Iterator[Figures]:
    """sf-heu: Paillier and Okamoto-Uchiyama with short noise and tables, through its bin sum for whole arrays."""
    from heu import numpy as hnp
    from heu import phe

    job = Job(ROWS)
    everyone = np.ones((1, ROWS), dtype=np.int8)
    order = np.ascontiguousarray(job.bins.astype(np.int8))

    def measured(name: str, schema: Any) -> Figures:
        kit = hnp.setup(schema, KEY_BITS)
        encoder = phe.BigintEncoder(kit.get_schema())
        plain = hnp.array(np.array(job.packed, dtype=object)[:, None], encoder)
        seal, rows = timed(lambda: kit.encryptor().encrypt(plain), ROWS)
        bin_sum = kit.evaluator().feature_wise_bucket_sum
        add, sums = timed(lambda: bin_sum(rows, everyone, order, BINS, False), job.n_terms)
        opening, opened = timed(lambda: kit.decryptor().decrypt(sums), FEATURES * BINS)
        job.check([unpacked(int(value)) for value in opened.to_numpy(encoder).ravel().tolist()])
        size = len(kit.encryptor().phe.encrypt_raw(5).serialize())
        return Figures(f"{name} {KEY_BITS}, sf-heu", size, seal, add, opening, "noise of its own choice")

    yield measured("Paillier", phe.SchemaType.ZPaillier)
    yield measured("Okamoto-Uchiyama", phe.SchemaType.OU)


# ---- schemes over lattices (SEAL, through tenseal) ----


def _seal_size(ciphertext: Any) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "c")
        ciphertext.save(path)
        return os.path.getsize(path)


def _context(seal: Any, kind: Any, degree: int, modulus: Any, plain_modulus: Any = None) -> Any:
    parameters = seal.EncryptionParameters(kind)
    parameters.set_poly_modulus_degree(degree)
    parameters.set_coeff_modulus(modulus)
    if plain_modulus is not None:
        parameters.set_plain_modulus(plain_modulus)
    return seal.SEALContext(parameters, True, seal.SEC_LEVEL_TYPE.TC128)  # refuses less than 128 bits


def bfv_rows() -> Iterator[Figures]:
    """BFV, a ciphertext per row as with Paillier: the smallest secure ring, digits of 10 bits in coefficients."""
    import tenseal.sealapi as seal

    job, t, digits, width = Job(ROWS), 1 << 26, 4, 10
    level = seal.SEC_LEVEL_TYPE.TC128
    context = _context(seal, seal.SCHEME_TYPE.BFV, 2048, seal.CoeffModulus.BFVDefault(2048, level), t)
    secret = seal.KeyGenerator(context).secret_key()
    encryptor, decryptor = seal.Encryptor(context, secret), seal.Decryptor(context, secret)
    evaluator = seal.Evaluator(context)

    def coefficients(value: int) -> list[int]:
        sign = -1 if value < 0 else 1
        return [sign * (abs(value) >> width * i & ((1 << width) - 1)) % t for i in range(digits)]

    def plain(i: int) -> Any:
        terms = [*coefficients(int(job.g[i])), *coefficients(int(job.h[i]))]
        text = " + ".join(f"{c:X}x^{k}" if k else f"{c:X}" for k, c in reversed([*enumerate(terms)]) if c)
        return seal.Plaintext(text or "0")

    plains = [plain(i) for i in range(ROWS)]

    def encrypt() -> list[Any]:
        rows = [seal.Ciphertext() for _ in plains]
        for p, row in zip(plains, rows, strict=True):
            encryptor.encrypt_symmetric(p, row)
        return rows

    def add_up() -> list[Any]:
        sums = []
        for members in job.members:
            total = seal.Ciphertext()
            evaluator.add(rows[members[0]], rows[members[1]], total)
            for i in members[2:]:
                evaluator.add_inplace(total, rows[i])
            sums.append(total)
        return sums

    def decrypt() -> list[Any]:
        opened = [seal.Plaintext() for _ in sums]
        for c, p in zip(sums, opened, strict=True):
            decryptor.decrypt(c, p)
        return opened

    def number(p: Any, first: int) -> int:
        values = [int(p.data(k)) if k < p.coeff_count() else 0 for k in range(first, first + digits)]
        return sum((c - t if 2 * c > t else c) << width * i for i, c in enumerate(values))

    seal_us, rows = timed(encrypt, ROWS)
    add, sums = timed(add_up, job.n_terms)
    opening, opened = timed(decrypt, len(sums))
    job.check([(number(p, 0), number(p, digits)) for p in opened])
    left = decryptor.invariant_noise_budget(sums[0])
    note = f"N=2048; noise budget left {left} bits"
    yield Figures("BFV, a row each, SEAL", _seal_size(rows[0]), seal_us, add, opening, note)


def slots() -> Iterator[Figures]:
    """BFV and CKKS with 4,096 rows in one ciphertext: a secret 0/1 mask per bin, then rotations to add up."""
    import tenseal.sealapi as seal

    level = seal.SEC_LEVEL_TYPE.TC128
    primes = seal.CoeffModulus.BFVDefault(SLOTS, level)
    bfv = _context(seal, seal.SCHEME_TYPE.BFV, SLOTS, primes, seal.PlainModulus.Batching(SLOTS, SUM_BITS + 2))
    ckks = _context(seal, seal.SCHEME_TYPE.CKKS, SLOTS, seal.CoeffModulus.Create(SLOTS, [60, 40, 40, 60]))
    yield _slotted(seal, bfv, exact=True)
    yield _slotted(seal, ckks, exact=False)


def _slotted(seal: Any, context: Any, *, exact: bool) -> Figures:
    """BFV holds two rows of slots: gradients in one, Hessians in the other. CKKS takes a ciphertext for each."""
    job, half, tried = Job(ROWS), SLOTS // 2, 4
    keys, galois, scale, unit = seal.KeyGenerator(context), seal.GaloisKeys(), 2.0**40, 2.0**-FRACTION_BITS
    keys.create_galois_keys(galois)
    encryptor, decryptor = (make(context, keys.secret_key()) for make in (seal.Encryptor, seal.Decryptor))
    evaluator = seal.Evaluator(context)
    encoder = seal.BatchEncoder(context) if exact else seal.CKKSEncoder(context)
    rotate = evaluator.rotate_rows if exact else evaluator.rotate_vector

    def encoded(left: np.ndarray, right: np.ndarray) -> list[Any]:
        columns = [np.pad(column, (0, half - len(column))).tolist() for column in (left, right)]
        if exact:
            plains = [seal.Plaintext()]
            encoder.encode([*columns[0], *columns[1]], plains[0])
            return plains
        plains = [seal.Plaintext(), seal.Plaintext()]
        for column, plain in zip(columns, plains, strict=True):
            encoder.encode([float(value) for value in column], scale, plain)
        return plains

    def encrypt() -> list[Any]:
        made = [seal.Ciphertext() for _ in data]
        for plain, ciphertext in zip(data, made, strict=True):
            encryptor.encrypt_symmetric(plain, ciphertext)
        return made

    def sum_of_bin(b: int) -> list[Any]:
        mask = (job.bins[:, 0] == b).astype(np.int64)
        totals = [seal.Ciphertext() for _ in sealed]
        for ciphertext, plain, total in zip(sealed, encoded(mask, mask), totals, strict=True):
            turned, step = seal.Ciphertext(), half
            evaluator.multiply_plain(ciphertext, plain, total)
            if not exact:
                evaluator.rescale_to_next_inplace(total)
            while step := step // 2:
                rotate(total, step, galois, turned)
                evaluator.add_inplace(total, turned)
        return totals

    def decrypt() -> list[list[Any]]:
        opened = [[seal.Plaintext() for _ in parts] for parts in sums]
        for parts, plains in zip(sums, opened, strict=True):
            for ciphertext, plain in zip(parts, plains, strict=True):
                decryptor.decrypt(ciphertext, plain)
        return opened

    data = encoded(job.g, job.h) if exact else encoded(job.g * unit, job.h * unit)
    seal_us, sealed = timed(encrypt, ROWS)
    bin_us, sums = timed(lambda: [sum_of_bin(b) for b in range(tried)], tried)
    opening, opened = timed(decrypt, tried * len(sealed))
    if exact:
        slots_of = [encoder.decode_int64(parts[0]) for parts in opened]
        if [(s[0], s[half]) for s in slots_of] != job.sums[:tried]:
            raise SystemExit("BFV gave wrong sums")
        precision = f"exact; noise budget left {decryptor.invariant_noise_budget(sums[0][0])} bits"
    else:
        found = [encoder.decode_double(plain)[0] for parts in opened for plain in parts]
        right = [number * unit for pair in job.sums[:tried] for number in pair]
        worst = max(abs(a - b) for a, b in zip(found, right, strict=True))
        precision = f"largest error of a sum 2^{np.log2(worst):.0f}"
    note = f"N={SLOTS}; {bin_us / 1e3:.1f} ms a bin for any number of rows up to {half}; {precision}"
    name = "BFV" if exact else "CKKS"
    size = sum(map(_seal_size, sealed)) / half
    return Figures(f"{name}, {half} rows each, SEAL", size, seal_us, bin_us * BINS / half, opening, note)


# ---- secret sharing ----


def sharing() -> Iterator[Figures]:
    """Additive shares modulo 2^64 with a matrix triple from a dealer: one party's computing while both are online.

    P holds the one-hot bins X, A the gradients Y; the triple is W = U^T V. P opens X - U (once while its bins stay),
    A opens Y - V; then X^T Y = U^T (Y - V) + (X - U)^T Y + W: P computes the first product, A the second.
    """
    job, modulus = Job(ROWS), np.uint64
    x = np.zeros((ROWS, FEATURES * BINS), dtype=modulus)
    for f in range(FEATURES):
        x[np.arange(ROWS), f * BINS + job.bins[:, f]] = 1
    y = np.stack([job.g, job.h], axis=1).astype(modulus)

    def random(shape: tuple[int, ...]) -> np.ndarray:
        return np.frombuffer(os.urandom(8 * shape[0] * shape[1]), dtype=modulus).reshape(shape)

    u, v = random(x.shape), random(y.shape)
    w_passive = random((x.shape[1], 2))
    w_active = u.T @ v - w_passive
    opened_x, opened_y = x - u, y - v
    online, passive = timed(lambda: u.T @ opened_y + w_passive, job.n_terms)
    active = opened_x.T @ y + w_active
    job.check([tuple(row) for row in (passive + active).astype(np.int64).tolist()])
    per_row = x.nbytes / ROWS
    note = f"per party; and {per_row:.0f} bytes a row once, for P's bins; making the triples not included"
    yield Figures("additive shares, NumPy", y.nbytes / ROWS, 0.0, online, 0.0, note)


# ---- the table ----

SCHEMES = (
    ("vflcrypto", ours),
    ("gmpy2", textbook),
    ("heu", heu),
    ("tenseal", bfv_rows),
    ("tenseal", slots),
    ("numpy", sharing),
)


def environment() -> str:
    model = platform.processor()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            model = next((line.split(":")[1].strip() for line in lines if "model name" in line), model)
    found = []
    for package in ("vfltree", "numpy", "gmpy2", "sf-heu", "tenseal"):
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return f"{model}; Python {platform.python_version()}; {', '.join(found)}"


def main() -> None:
    print(environment())
    print(f"{ROWS} rows x {FEATURES} features x {BINS} bins; microseconds of processor time")
    print(f"{'scheme':44} {'bytes/row':>9} {'encrypt row':>12} {'add term':>9} {'decrypt':>9}  note")
    for module, scheme in SCHEMES:
        if importlib.util.find_spec(module) is None:
            print(f"{module}: not installed here")
            continue
        for line in scheme():
            add = "" if line.add_term is None else f"{line.add_term:9.2f}"
            print(
                f"{line.scheme:44} {line.bytes_per_row:9.0f} {line.encrypt_row:12.2f} {add:>9} "
                f"{line.decrypt:9.0f}  {line.note}",
                flush=True,
            )


if __name__ == "__main__":
    main()
