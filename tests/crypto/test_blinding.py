"""Blinding, with the private key in hand: what the key owner can learn from the r of a reply, and from planted faults.

A key owner knows the r of every row it encrypted and can extract the r of a reply. `violations` looks for what that
would tell about which rows were added; planted faults must be found by the same function.
"""

import numpy as np
import pytest
from gmpy2 import jacobi

from vflcrypto import noise, randomness

REPLIES = 400


def extract_r(key, array) -> list[int]:
    """The r modulo n of every ciphertext: an n-th root, which takes the primes."""
    p, q = key.unsafe_primes()
    n = p * q
    root = pow(n, -1, (p - 1) * (q - 1))
    return [pow(c % n, root, n) for c in key.public_key.ring.to_ints(array.elements)]


def sums_of_random_subsets(key, rng):
    """One conversation: rows, secret subsets, unblinded sums, and the r the owner predicts for each subset."""
    n = key.public_key.n
    rows = key.encrypt(rng.integers(-1000, 1000, 40))
    subsets = [np.flatnonzero(rng.integers(0, 2, 40)) for _ in range(REPLIES)]
    indptr = np.concatenate([[0], np.cumsum([len(s) for s in subsets])])
    sums = rows.sum_rows(indptr, np.concatenate(subsets))
    r_of_rows = extract_r(key, rows)
    predicted = []
    for subset in subsets:
        product = 1
        for i in subset:
            product = product * r_of_rows[i] % n
        predicted.append(product)
    return sums, predicted


def violations(key, replies, predicted) -> list[str]:
    """What the owner sees of the subsets in the replies. Empty for good blinding."""
    found = []
    n, primes = key.public_key.n, key.unsafe_primes()
    actual = extract_r(key, replies)
    if any(a == b for a, b in zip(actual, predicted, strict=True)):
        found.append("r is the product of the rows' r")
    factors = [a * pow(b, -1, n) % n for a, b in zip(actual, predicted, strict=True)]
    if len(set(factors)) < len(factors):
        found.append("blinding factors repeat")
    characters = {
        "Jacobi symbol": [jacobi(f, n) for f in factors],
        "symbol modulo p": [jacobi(f, primes[0]) for f in factors],
        "symbol modulo q": [jacobi(f, primes[1]) for f in factors],
    }
    for name, symbols in characters.items():
        # Predicted right 200 times of 400, give or take 10; five sigma.
        if abs(symbols.count(1) - REPLIES / 2) > 5 * (REPLIES / 4) ** 0.5:
            found.append(f"{name} follows the prediction")
    return found


def test_rerandomized_replies_tell_the_key_owner_nothing(key, rng):
    sums, predicted = sums_of_random_subsets(key, rng)
    for kind in ("wide", "half"):
        assert violations(key, sums.rerandomize(noise=kind), predicted) == []


def test_planted_missing_rerandomization_is_found(key, rng):
    sums, predicted = sums_of_random_subsets(key, rng)
    assert "r is the product of the rows' r" in violations(key, sums, predicted)


def test_planted_missing_factor_u_is_found(key, rng, monkeypatch):
    monkeypatch.setattr(randomness, "random_bits", lambda count: np.zeros(count, dtype=np.uint8))
    sums, predicted = sums_of_random_subsets(key, rng)
    assert violations(key, sums.rerandomize(), predicted) == ["Jacobi symbol follows the prediction"]


def test_planted_base_of_order_one_is_found(rng, monkeypatch):
    """What a sent h_s = 1 would do: the reason why it is derived and never taken from the wire."""
    from insecure_keys import primes_of

    from vflcrypto import PrivateKey

    monkeypatch.setattr(noise, "derived_base", lambda n: 1)
    monkeypatch.setattr(noise, "_public_tables", {})  # the table of this key is not one made before
    key = PrivateKey.from_primes(*primes_of("INSECURE_TEST_KEY_512"), allow_weak_key=True)
    sums, predicted = sums_of_random_subsets(key, rng)
    found = violations(key, sums.rerandomize(), predicted)
    assert "blinding factors repeat" in found
    assert "r is the product of the rows' r" in found


def test_planted_reused_noise_is_found(key, rng, monkeypatch):
    sums, predicted = sums_of_random_subsets(key, rng)
    noise_source = key.public_key.noise
    once = noise_source.draw(1, "wide")
    monkeypatch.setattr(noise_source, "draw", lambda count, kind, n_jobs=1: np.repeat(once, count, axis=0))
    assert "blinding factors repeat" in violations(key, sums.rerandomize(), predicted)


def test_reused_noise_would_show_the_difference_of_plaintexts(key):
    """Why noise is drawn anew for every value: c1 / c2 = 1 + (m1 - m2) n."""
    n = key.public_key.n
    c1, c2 = key.public_key.ring.to_ints(key.encrypt([12, 5]).elements)
    assert c1 * pow(c2, -1, n * n) % n != 1
    r = 123456789
    same = [(1 + m * n) * pow(r, n, n * n) % (n * n) for m in (12, 5)]
    assert (same[0] * pow(same[1], -1, n * n) % (n * n) - 1) // n == 7


@pytest.mark.parametrize("side", ["public half", "public wide", "owner"])
def test_fresh_encryptions_have_independent_balanced_symbols(key, side):
    values = np.zeros(REPLIES, dtype=int)
    c = {
        "public half": lambda: key.public_key.encrypt(values),
        "public wide": lambda: key.public_key.encrypt(values, noise="wide"),
        "owner": lambda: key.encrypt(values),
    }[side]()
    assert violations(key, c, [1] * REPLIES) == []
    # Both symbols together: four cells of about 100.
    p, q = key.unsafe_primes()
    cells = [(jacobi(r, p), jacobi(r, q)) for r in extract_r(key, c)]
    assert all(
        abs(cells.count((a, b)) - REPLIES / 4) < 5 * (REPLIES * 3 / 16) ** 0.5
        for a in (1, -1)
        for b in (1, -1)
    )
