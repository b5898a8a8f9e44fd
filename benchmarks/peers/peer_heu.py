"""SecretFlow's HEU (sf-heu), schema z-paillier. It makes its own key, of the same size."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

import numpy as np
from heu import numpy as hnp
from heu import phe
from protocol import BINS, CHECKED, Operation, bins, scalars, serve, values

SUMMED = 4000


def start(job: dict[str, Any]) -> tuple[str, dict[str, Operation]]:
    kit = hnp.setup("z-paillier", job["key_bits"])
    encoder = phe.BigintEncoder(kit.get_schema())
    encryptor, decryptor, evaluator = kit.encryptor(), kit.decryptor(), kit.evaluator()
    x = np.array(values(), dtype=np.int64)
    table = np.array(bins(), dtype=np.int8).T

    def plain(numbers: Any) -> Any:
        return kit.array(np.ascontiguousarray(numbers, dtype=np.int64).reshape(-1, 1), encoder)

    rows = encryptor.encrypt(plain(x[:SUMMED]))
    following = encryptor.encrypt(plain(np.roll(x[:SUMMED], -1)))

    def numbers(array: Any) -> list[int]:
        return [int(str(array[i, 0])) for i in range(min(CHECKED, array.rows))]

    def decrypted(array: Any) -> list[int]:
        return numbers(decryptor.decrypt(array[: min(CHECKED, array.rows), :]))

    def following_of(count: int) -> Any:
        return following[:count, :] if count == SUMMED else encryptor.encrypt(plain(np.roll(x[:count], -1)))

    def multiplying(bits: int) -> Operation:
        factors = scalars(bits)
        return Operation(
            lambda k: (rows[:k, :], plain(factors[:k])), lambda a: evaluator.mul(*a), decrypted, SUMMED
        )

    def sums(inputs: Any) -> Any:
        chosen, node, order = inputs
        return evaluator.feature_wise_bucket_sum(chosen, node, order, BINS, False)

    operations = {
        "encrypt-half": Operation(lambda k: plain(x[:k]), encryptor.encrypt, decrypted, SUMMED),
        "decrypt": Operation(lambda k: rows[:k, :], decryptor.decrypt, numbers, SUMMED),
        "add": Operation(
            lambda k: (rows[:k, :], following_of(k)), lambda a: evaluator.add(*a), decrypted, SUMMED
        ),
        "multiply-20": multiplying(20),
        "multiply-62": multiplying(62),
        "bin-sum": Operation(
            lambda k: (rows[:k, :], np.ones(k, dtype=np.int8), np.ascontiguousarray(table[:k])),
            sums,
            decrypted,
            SUMMED,
        ),
    }
    return f"sf-heu {version('sf_heu')} z-paillier, Python {platform.python_version()}", operations


if __name__ == "__main__":
    serve(start)
