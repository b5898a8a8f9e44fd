"""Every batch function of a Ring agrees with Python's integers, on every backend, around every size."""

import random
import subprocess

import numpy as np
import pytest
from kernel_patterns import BITS, SIZES, filled, from_words, modulus, pattern, words
from new_process import PYTHON

from vflcrypto import kernels
from vflcrypto import words as wide
from vflcrypto.kernels import Ring

BACKENDS = kernels.backends()
CASES = [(b, bits) for b in BACKENDS for bits in BITS]


@pytest.fixture(params=CASES, ids=[f"{b}-{bits}" for b, bits in CASES])
def ring(request):
    backend, bits = request.param
    return Ring(modulus(bits), backend=backend)


def test_integers_survive_the_way_in_and_out(ring):
    for size in SIZES:
        values, x = filled(ring, size, 1)
        assert x.shape == (size, 2 * ring.words)
        assert ring.to_ints(x) == values


def test_halves_are_stored_canonical(ring):
    _, x = filled(ring, 17, 2)
    x = ring.mul(x, x)
    halves = from_words(x.reshape(-1, ring.words))
    assert max(halves) < ring.modulus


def test_mul_agrees_with_python_ints(ring):
    square = ring.modulus**2
    for size in SIZES:
        (a, x), (b, y) = filled(ring, size, 1), filled(ring, size, 4)
        assert ring.to_ints(ring.mul(x, y)) == [u * v % square for u, v in zip(a, b, strict=True)]


def test_redc_divides_by_the_radix_modulo_the_modulus_itself(ring):
    m, radix = ring.modulus, 1 << 64 * ring.words
    numbers = [0, 1, m - 1, m, m * m % (m * radix), m * radix - 1]
    given = np.stack([wide.from_int(v, 2 * ring.words) for v in numbers])
    found = ring.redc(given)
    assert wide.to_ints(found, signed=False) == [v * pow(radix, -1, m) % m for v in numbers]
    given[3] = wide.from_int(m * radix, 2 * ring.words)
    if m * radix < 1 << 128 * ring.words:
        with pytest.raises(ValueError, match="integer 3 is not below"):
            ring.redc(given)


def test_a_single_factor_serves_a_whole_batch(ring):
    square = ring.modulus**2
    (a, x), (b, y) = filled(ring, 9, 1), filled(ring, 1, 4)
    expected = [u * b[0] % square for u in a]
    assert ring.to_ints(ring.mul(x, y)) == expected
    assert ring.to_ints(ring.mul(y, x)) == expected
    assert ring.mul(x[:0], y).shape == (0, 2 * ring.words)


def test_edge_values_multiply_right_in_every_pair(ring):
    square = ring.modulus**2
    edges = pattern(ring.modulus, 8, 0)
    pairs = [(u, v) for u in edges for v in edges]
    x, y = (ring.from_ints([pair[i] for pair in pairs]) for i in (0, 1))
    assert ring.to_ints(ring.mul(x, y)) == [u * v % square for u, v in pairs]
    assert ring.to_ints(ring.add(x, y)) == [(u + v) % square for u, v in pairs]


def test_mul_is_associative_commutative_and_spreads_over_sums(ring):
    (_, x), (_, y), (_, z) = (filled(ring, 16, seed) for seed in (1, 3, 6))
    assert (ring.mul(x, y) == ring.mul(y, x)).all()
    assert (ring.mul(ring.mul(x, y), z) == ring.mul(x, ring.mul(y, z))).all()
    assert (ring.mul(x, ring.add(y, z)) == ring.add(ring.mul(x, y), ring.mul(x, z))).all()


def test_message_factor_agrees_with_python_ints(ring):
    m = ring.modulus
    for size in SIZES:
        a, x = filled(ring, size, 5)
        messages = [v % m for v in pattern(m, size, 2)]
        product = ring.mul_one_plus_mk(x, words(messages, ring.words))
        assert ring.to_ints(product) == [u * (1 + m * k) % m**2 for u, k in zip(a, messages, strict=True)]
    shared = ring.mul_one_plus_mk(ring.one(), words([0, 1, m - 1], ring.words))
    assert ring.to_ints(shared) == [1, 1 + m, 1 + m * (m - 1)]


def test_public_powers_agree_with_python_pow(ring):
    square = ring.modulus**2
    generator = random.Random(3)
    for size in (0, 1, 9):
        a, x = filled(ring, size, 1)
        exponents = [generator.getrandbits(7 + 9 * i % 70) for i in range(size)]
        powers = ring.pow_vartime(x, words(exponents, 2))
        assert ring.to_ints(powers) == [pow(u, e, square) for u, e in zip(a, exponents, strict=True)]


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 16, 31, 64, 2**63, 2**64 - 1, 2**64, 3**50])
def test_one_public_exponent_serves_a_whole_batch(exponent):
    for backend in BACKENDS:
        ring = Ring(modulus(100), backend=backend)
        a, x = filled(ring, 9, 3)
        assert ring.to_ints(ring.pow_vartime(x, exponent)) == [pow(u, exponent, ring.modulus**2) for u in a]


def test_one_base_serves_many_public_exponents(ring):
    a, x = filled(ring, 6, 6)
    exponents = list(range(20))
    powers = ring.pow_vartime(x[3:4], words(exponents, 1))
    assert ring.to_ints(powers) == [pow(a[3], e, ring.modulus**2) for e in exponents]


def test_secret_powers_agree_with_python_pow(ring):
    a, x = filled(ring, 3, 1)
    for bits, exponent in [(0, 0), (1, 0), (1, 1), (3, 5), (64, 2**64 - 1), (65, 2**64), (130, 3**80)]:
        powers = ring.pow_secret(x, exponent, bits)
        assert ring.to_ints(powers) == [pow(u, exponent, ring.modulus**2) for u in a]


def test_leading_zeros_of_a_secret_exponent_change_nothing(ring):
    _, x = filled(ring, 8, 1)
    assert (ring.pow_secret(x, 5, 3) == ring.pow_secret(x, 5, 200)).all()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_inverses_multiply_to_one(backend, size):
    ring = Ring(2**127 - 1, backend=backend)
    generator = random.Random(size)
    x = ring.from_ints([generator.randrange(1, ring.modulus) for _ in range(size)])
    assert ring.to_ints(ring.mul(x, ring.inverse(x))) == [1] * size


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("bad", [[4], [0], [2, 5]])
def test_an_element_without_inverse_is_named(backend, bad):
    ring = Ring(2**127 - 1, backend=backend)
    values = [3 + i for i in range(9)]
    for i in bad:
        values[i] = 6 * ring.modulus
    with pytest.raises(ValueError, match=f"element {bad[0]} has no inverse"):
        ring.inverse(ring.from_ints(values))


def test_plain_bytes_are_the_same_on_every_backend():
    for bits in BITS:
        values = pattern(modulus(bits), 9, 1)
        rings = [Ring(modulus(bits), backend=backend) for backend in BACKENDS]
        plain = {r.to_bytes(r.mul(r.from_ints(values), r.from_ints(values[::-1]))) for r in rings}
        assert len(plain) == 1


@pytest.mark.parametrize("n_jobs", [2, 3, -1])
def test_threads_change_no_result(ring, n_jobs):
    (_, x), (_, y) = filled(ring, 41, 1), filled(ring, 41, 2)
    assert (ring.mul(x, y, n_jobs) == ring.mul(x, y)).all()
    assert (ring.add(x, y, n_jobs) == ring.add(x, y)).all()
    assert (ring.pow_vartime(x, 37, n_jobs) == ring.pow_vartime(x, 37)).all()
    assert (ring.pow_secret(x, 37, 6, n_jobs) == ring.pow_secret(x, 37, 6)).all()
    assert ring.to_bytes(x, n_jobs) == ring.to_bytes(x)
    data = ring.to_bytes(x)
    assert (ring.from_bytes(data, 41, n_jobs) == x).all()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_first_integer_out_of_range_is_named(ring, n_jobs):
    square = ring.modulus**2
    data = words([0, 1] * 9 + [square] + [1] * 9 + [square + 1], 2 * ring.words)
    with pytest.raises(ValueError, match="integer 18 is not below"):
        ring.from_bytes(data.tobytes(), 29, n_jobs)


def test_the_largest_and_the_smallest_modulus_work():
    for backend in BACKENDS:
        for m in (3, modulus(8192)):
            ring = Ring(m, backend=backend)
            (a, x), (b, y) = filled(ring, 3, 4), filled(ring, 3, 2)
            assert ring.to_ints(ring.mul(x, y)) == [u * v % m**2 for u, v in zip(a, b, strict=True)]
            assert ring.to_ints(ring.pow_vartime(x, 3)) == [pow(u, 3, m**2) for u in a]


@pytest.mark.parametrize("m", [-3, 0, 1, 2, 4, 2**8192 + 1])
def test_a_modulus_that_is_even_or_out_of_range_is_refused(m):
    with pytest.raises(ValueError, match="modulus"):
        Ring(m)


def test_arrays_of_another_shape_or_type_are_refused():
    ring = Ring(modulus(100))
    x = ring.from_ints([1, 2, 3])
    with pytest.raises(ValueError, match=r"elements must have shape \(count, 4\), got \(3, 3\)"):
        ring.mul(x[:, :3], x)
    with pytest.raises(TypeError, match="uint64"):
        ring.mul(x.astype(np.int64), x)
    with pytest.raises(ValueError, match="3 and 2 elements"):
        ring.mul(x, x[:2])
    with pytest.raises(ValueError, match="3 and 1 elements"):
        ring.add(x, x[:1])
    with pytest.raises(ValueError, match="2 messages do not match 3 elements"):
        ring.mul_one_plus_mk(x, words([1, 2], 2))
    with pytest.raises(ValueError, match="message is not below"):
        ring.mul_one_plus_mk(x, words([1, ring.modulus, 2], 2))
    with pytest.raises(ValueError, match="3 integers of 32 bytes need 96 bytes, got 95"):
        ring.from_bytes(bytes(95), 3)
    with pytest.raises(ValueError, match="integer 1 is not below"):
        ring.from_ints([0, -1])
    with pytest.raises(ValueError, match="negative"):
        ring.pow_vartime(x, -1)
    with pytest.raises(ValueError, match="more than 3 bits"):
        ring.pow_secret(x, 8, 3)
    with pytest.raises(ValueError, match="n_jobs"):
        ring.mul(x, x, n_jobs=0)


def test_bytes_and_arrays_may_begin_anywhere():
    ring = Ring(modulus(100))
    values, x = filled(ring, 5, 1)
    for offset in range(8):
        frame = bytes(offset) + ring.to_bytes(x)
        assert ring.to_ints(ring.from_bytes(memoryview(frame)[offset:], 5)) == values
    shifted = np.frombuffer(b"." + x.tobytes(), dtype=np.uint64, offset=1).reshape(x.shape)
    assert ring.to_ints(shifted) == values


def test_a_non_contiguous_batch_is_understood():
    ring = Ring(modulus(100))
    values, x = filled(ring, 16, 1)
    assert ring.to_ints(ring.mul(x[::2], x[::-2])) == [
        u * v % ring.modulus**2 for u, v in zip(values[::2], values[::-2], strict=True)
    ]


def test_the_derivation_in_the_readme_runs(repo):
    text = (repo / "native" / "README.md").read_text(encoding="utf-8")
    code = text.split("```python\n")[1].split("```")[0]
    ran = subprocess.run([*PYTHON, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout == "right\n", ran.stderr
