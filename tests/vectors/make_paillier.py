"""Known answers for Paillier, written to paillier.json: `python tests/vectors/make_paillier.py`.

The primes are safe primes, drawn once and fixed: insecure on purpose. Every ciphertext is made twice, with Python's
pow and with phe, and phe decrypts it; the file is written only if all agree.
"""

import json
from hashlib import shake_128
from pathlib import Path

import phe

HERE = Path(__file__).parent


def answers(p: int, q: int) -> list[dict[str, str]]:
    """Ciphertexts of 0, 1, n - 1, and the neighbours of n/2, where signs change."""
    n = p * q
    public = phe.PaillierPublicKey(n)
    private = phe.PaillierPrivateKey(public, p, q)
    half = (n - 1) // 2
    rows = []
    for m in (0, 1, n - 1, half - 1, half, half + 1, half + 2, 123456789 % n):
        r = int.from_bytes(shake_128(f"{n} {m}".encode()).digest(2 * n.bit_length() // 8), "big") % n
        c = (1 + m * n) * pow(r, n, n * n) % (n * n)
        assert c == public.raw_encrypt(m, r_value=r)
        assert private.raw_decrypt(c) == m
        rows.append({"m": hex(m), "r": hex(r), "c": hex(c)})
    return rows


def main() -> None:
    keys = json.loads((HERE / "insecure_keys.json").read_text())
    made_with = {"phe": phe.__version__, "script": "make_paillier.py"}
    document = {"made_with": made_with, "keys": []}
    for name, primes in keys["keys"].items():
        if name.endswith("2048"):
            continue  # a slow second in Python, and nothing new
        p, q = (int(primes[side], 16) for side in "pq")
        document["keys"].append({"name": name, "p": hex(p), "q": hex(q), "answers": answers(p, q)})
    (HERE / "paillier.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
