"""Lesson 2: gradients of a whole histogram, packed, summed under encryption, and read with a few decryptions.

Boosting needs, for every feature and bin, the sum of gradients g and Hessians h of the rows in that bin. One
ciphertext holds a pair (g, h), a sum of pairs is a pair of sums, and one reply holds many of them. `--fast`
takes a weak key.
"""

import sys
import time

import numpy as np

from vflcrypto import generate_keypair, plan_packing

N_ROWS, N_BINS = 400, 8
FAST = "--fast" in sys.argv
KEY_BITS = 512 if FAST else 2048


def main() -> None:
    public, private = generate_keypair(KEY_BITS, allow_weak_key=FAST)
    plan = plan_packing(N_ROWS, key_bits=KEY_BITS)
    print(
        f"{N_ROWS} rows need {plan.gradient_bits} bits for a sum of gradients and {plan.hessian_bits} for Hessians:"
    )
    print(f"one {KEY_BITS}-bit plaintext could hold {plan.values_per_reply} such pairs.\n")

    # The active party: gradients of the logistic loss at probability 1/2, as integers with 30 fraction bits.
    rng = np.random.default_rng(0)
    labels, bins = rng.integers(0, 2, N_ROWS), rng.integers(0, N_BINS, N_ROWS)
    scale = 2**plan.fraction_bits
    g = np.rint((0.5 - labels) * scale).astype(np.int64)[:, None]
    h = np.full_like(g, scale // 4)
    start = time.perf_counter()
    rows = plan.encrypt(private, g, h)  # the owner of the private key encrypts faster with it
    seconds = time.perf_counter() - start
    print(
        f"active  -> passive  {rows.shape[0]} rows, {len(rows.to_bytes()):,} bytes, encrypted in {seconds:.2f} s"
    )

    # The passive party: has the bins, sees only ciphertexts. One multiplication per row, then compression
    # and blinding.
    passive_view = type(rows).from_bytes(rows.to_bytes(), public)
    sums = passive_view.sum_by_bin(bins, N_BINS)
    reply = plan.compress(sums).rerandomize()
    print(
        f"passive -> active   {N_BINS} sums in {reply.size} ciphertext(s), {len(reply.to_bytes()):,} bytes\n"
    )

    # The active party: one decryption per ciphertext of the reply, then it cuts the slots apart.
    received = type(reply).from_bytes(reply.to_bytes(), public)
    G, H = plan.unpack(private.decrypt_words(received), N_BINS)
    print("bin   sum of g   sum of h")
    for k in range(N_BINS):
        print(f"{k:3} {G[k, 0] / scale:10.4f} {H[k, 0] / scale:10.4f}")

    in_clear = np.array([[g[bins == k].sum(), h[bins == k].sum()] for k in range(N_BINS)])
    print(f"\nequal to the sums in clear: {np.array_equal(np.hstack([G, H]), in_clear)}")


if __name__ == "__main__":
    main()
