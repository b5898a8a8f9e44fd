"""Known answers, made with Python's pow and with phe; the kernels and the reference formulas must agree with them."""

import json

import numpy as np
import pytest
from insecure_keys import VECTORS

from vflcrypto import CiphertextArray, FixedPoint, PrivateKey, paillier
from vflcrypto import words as wide

DOCUMENT = json.loads((VECTORS / "paillier.json").read_text())
KEYS = DOCUMENT["keys"]


def integers(row: dict[str, str]) -> tuple[int, int, int]:
    return tuple(int(row[name], 16) for name in "mrc")


@pytest.mark.parametrize("vector", KEYS, ids=lambda v: v["name"])
def test_the_reference_formulas_give_the_known_answers(vector):
    p, q = int(vector["p"], 16), int(vector["q"], 16)
    n = p * q
    for m, r, c in map(integers, vector["answers"]):
        assert paillier.encrypt_integer(n, m, r) == c
        assert paillier.decrypt_integer(p, q, c) == m
        assert paillier.decrypt_integer(p, q, paillier.add_integers(n, c, c)) == 2 * m % n
        assert paillier.decrypt_integer(p, q, paillier.multiply_integer(n, c, -3)) == -3 * m % n


@pytest.mark.parametrize("vector", KEYS, ids=lambda v: v["name"])
def test_the_kernels_decrypt_the_known_answers(vector, backend):
    p, q = int(vector["p"], 16), int(vector["q"], 16)
    key = PrivateKey.from_primes(p, q, allow_weak_key=True, backend=backend)
    public, n = key.public_key, p * q
    answers = [integers(row) for row in vector["answers"]]
    elements = public.ring.from_ints([c for _, _, c in answers])
    array = CiphertextArray(
        public, elements, shape=(len(answers),), encoding=FixedPoint(), bound=public.capacity
    )
    centred = [m - n if 2 * m > n else m for m, _, _ in answers]
    assert key.decrypt(array).tolist() == centred
    assert wide.to_ints(key.decrypt_words(array)) == centred
    # The kernels' message factor on a known noise gives the known ciphertext.
    noise = public.ring.from_ints([pow(r, n, n * n) for _, r, _ in answers])
    messages = wide.residues(wide.from_ints(centred, public.ring.words + 1), n)
    made = public.ring.to_ints(public.ring.mul_one_plus_mk(noise, messages))
    assert made == [c for _, _, c in answers]


def test_randomness_that_is_no_unit_is_refused_by_the_reference():
    p, q = (int(KEYS[0][side], 16) for side in "pq")
    for r in (0, p, p * q, 5 * q):
        with pytest.raises(ValueError, match="coprime"):
            paillier.encrypt_integer(p * q, 2, r)


def test_the_file_can_be_made_again_bit_for_bit(tmp_path, monkeypatch):
    pytest.importorskip("phe")
    monkeypatch.syspath_prepend(str(VECTORS))
    import make_paillier

    monkeypatch.setattr(make_paillier, "HERE", tmp_path)
    (tmp_path / "insecure_keys.json").write_text((VECTORS / "insecure_keys.json").read_text())
    make_paillier.main()
    made = json.loads((tmp_path / "paillier.json").read_text())
    assert made["keys"] == DOCUMENT["keys"]


def test_encryption_decrypts_by_the_reference(key):
    p, q = key.unsafe_primes()
    values = np.array([0, 1, -1, 2**62, -(2**63)])
    for c in (key.encrypt(values), key.public_key.encrypt(values), key.encrypt(values) + 0):
        plain = [paillier.decrypt_integer(p, q, x) for x in key.public_key.ring.to_ints(c.elements)]
        assert plain == [int(v) % (p * q) for v in values]
