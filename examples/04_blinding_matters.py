"""Lesson 4: why every answer is blinded anew. A sum that is not, shows the key owner which rows were added.

A Paillier ciphertext is (1 + m n) * r^n mod n^2 with a random r. Adding multiplies the r of the rows. The key
owner made those ciphertexts, so it can find every r, and the r of a sum too. Then it tries subsets. Here with
toy numbers in plain Python; the library's arrays refuse to leave a party unblinded. `--fast` takes a weak
key.
"""

import math
import sys
from itertools import chain, combinations

from vflcrypto import CiphertextArray, generate_keypair
from vflcrypto.errors import NotFreshError

P, Q = 1000000007, 1000000403  # a toy key; real primes have 1536 bits
N = P * Q
LAMBDA = math.lcm(P - 1, Q - 1)
FAST = "--fast" in sys.argv
KEY_BITS = 512 if FAST else 2048


def encrypt(m: int, r: int) -> int:
    return (1 + m * N) * pow(r, N, N * N) % (N * N)


def noise_of(ciphertext: int) -> int:
    """What only the key owner can do: the r of a ciphertext, an N-th root modulo N."""
    return pow(ciphertext % N, pow(N, -1, LAMBDA), N)


def main() -> None:
    # The active party encrypts eight gradients and knows the r of each.
    gradients = [3, 1, 4, 1, 5, 9, 2, 6]
    noises = [123456789 + 1000003 * i for i in range(8)]
    rows = [encrypt(m, r) for m, r in zip(gradients, noises, strict=True)]

    # The passive party adds the rows of one bin.
    secret_bin = (1, 4, 6)
    bare = math.prod(rows[i] for i in secret_bin) % (N * N)
    blinded = bare * encrypt(0, r=987654321) % (N * N)

    subsets = list(chain.from_iterable(combinations(range(8), k) for k in range(1, 9)))
    print(f"The passive party answers with the sum of rows {secret_bin}, which it must not reveal.\n")
    for words, answer in (("not blinded", bare), ("blinded", blinded)):
        r = noise_of(answer)
        fitting = [chosen for chosen in subsets if math.prod(noises[i] for i in chosen) % N == r]
        print(f"{words:11}: exactly {len(fitting)} of {len(subsets)} subsets explain the answer {fitting}")

    # The library keeps track: what has been computed with is not fresh, and does not leave.
    public, private = generate_keypair(KEY_BITS, allow_weak_key=FAST)
    total = private.encrypt(gradients)[list(secret_bin)].sum()
    print(f"\nfreshness of a sum: {total.freshness}")
    try:
        total.to_bytes()
    except NotFreshError as error:
        print(f"to_bytes() refuses: {error}")
    received = CiphertextArray.from_bytes(total.rerandomize().to_bytes(), public)
    print(f"after rerandomize() it travels, and decrypts to {private.decrypt(received)}")


if __name__ == "__main__":
    main()
