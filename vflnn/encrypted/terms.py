"""What a party insists on in encrypted training; each party has its own terms, and the active party's name the key."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

ENCRYPTIONS = ("paillier", "none")
STRONG_KEY_BITS = (2048, 3072, 4096)
ROWS_PER_EQUATION = 64  # of a batch, per parameter and class, at least: see `vflnn.encrypted`


@dataclass(frozen=True)
class Terms:
    """ValueError or TypeError names a wrong one.

    Attributes
    ----------
    encryption : "paillier", or "none": the same protocol in the clear; the model is the same, bit for bit
    key_bits : 2048, 3072 or 4096
    allow_weak_key : make, and accept, shorter keys; for tests
    allow_small_batches : answer batches from which a party could solve for labels
    watch_loss : compute the loss of every batch under encryption; the active party learns it
    most_products : of plain factors and ciphertexts, in one step, for a bottom model that is not linear
    n_jobs : threads
    """

    encryption: str = "paillier"
    key_bits: int = 3072
    allow_weak_key: bool = False
    allow_small_batches: bool = False
    watch_loss: bool = False
    most_products: int = 1 << 24
    n_jobs: int = 1

    def __post_init__(self) -> None:
        if self.encryption not in ENCRYPTIONS:
            raise ValueError(f"encryption must be one of {ENCRYPTIONS}, got {self.encryption!r}")
        for name in ("allow_weak_key", "allow_small_batches", "watch_loss"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, got {getattr(self, name)!r}")
        for name in ("key_bits", "most_products", "n_jobs"):
            if type(getattr(self, name)) is not int:
                raise TypeError(f"{name} must be an integer, got {getattr(self, name)!r}")
        if self.encryption != "none" and not self.allow_weak_key and self.key_bits not in STRONG_KEY_BITS:
            raise ValueError(
                f"key_bits must be one of {STRONG_KEY_BITS}, got {self.key_bits}; weaker keys, for tests only, need "
                "allow_weak_key=True"
            )
        if self.most_products < 1:
            raise ValueError(f"most_products must be positive, got {self.most_products}")

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Terms:
        return cls(**json.loads(text))


def least_rows(n_values: int, n_classes: int) -> int:
    """Rows of a batch below which a gradient of so many parameters says too much about single rows."""
    return -(-ROWS_PER_EQUATION * n_values // n_classes)
