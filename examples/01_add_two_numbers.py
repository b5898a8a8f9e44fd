"""Lesson 1: two encrypted numbers are added by somebody who cannot read them.

Paillier encryption keeps sums: multiply two ciphertexts, and the plaintexts add up. That is all the
mathematics that SecureBoost needs. `--fast` takes a weak key.
"""

import sys

from vflcrypto import generate_keypair

FAST = "--fast" in sys.argv
KEY_BITS = 512 if FAST else 2048


def main() -> None:
    public, private = generate_keypair(KEY_BITS, allow_weak_key=FAST)
    print(f"The owner made a key of {KEY_BITS} bits. The public half encrypts, the private half decrypts.\n")

    # Somebody with the public key only.
    seven = public.encrypt(7.0)
    again = public.encrypt(7.0)
    five = public.encrypt(5.25)
    print(f"7.00 encrypted        {head(seven)}")
    print(f"7.00 encrypted again  {head(again)}   never the same twice")
    print(f"5.25 encrypted        {head(five)}\n")

    total = seven + five
    weighted = 3 * seven - five
    print("Sums, differences and products with plain numbers work without the private key;")
    print("a product of two encrypted numbers does not.\n")

    # A result is blinded anew before it travels: without that, to_bytes() refuses.
    for words, result in (("7.00 + 5.25", total), ("3 * 7.00 - 5.25", weighted)):
        on_the_wire = result.rerandomize()
        print(
            f"{words:16} is {head(on_the_wire)} to everybody else, and decrypts to {private.decrypt(on_the_wire)}"
        )


def head(ciphertext) -> str:  # type: ignore[no-untyped-def]
    """The first and last bytes of what would travel."""
    data = ciphertext.to_bytes()
    return f"{data[-16:-8].hex()}... ({len(data)} bytes)"


if __name__ == "__main__":
    main()
