"""What a forest's training is set to. Frozen, checked when it is made, and plain JSON to its seat."""

from __future__ import annotations

import dataclasses
import json
import math
import numbers
from dataclasses import dataclass
from typing import Any

from ..binning import MAX_BINS, MIN_BINS
from ..growing.numbering import MAX_DEPTH, MAX_TREES
from ..parameters import ENCRYPTIONS, check_choice, check_flag, check_key_bits, check_range, plain_number
from .criteria import CRITERIA

FEATURE_RULES = ("sqrt", "log2")


@dataclass(frozen=True)
class ForestSettings:
    """Parameters by scikit-learn's names, see `SecureForestClassifier`; ValueError or TypeError names a wrong one."""

    criterion: str = "gini"
    n_classes: int = 2
    n_estimators: int = 100
    max_depth: int = 10
    min_samples_split: int | float = 2
    min_samples_leaf: int | float = 1
    min_weight_fraction_leaf: float = 0.0
    max_features: str | int | float | None = "sqrt"
    min_impurity_decrease: float = 0.0
    bootstrap: bool = True
    max_samples: int | float | None = None
    balanced_subsample: bool = False  # class weights from each tree's own draws
    out_of_bag: bool = False
    max_bin: int = 32
    encryption: str = "paillier"
    key_bits: int = 3072
    allow_weak_key: bool = False
    n_jobs: int = 1

    def __post_init__(self) -> None:
        check_choice("criterion", self.criterion, CRITERIA)
        check_choice("encryption", self.encryption, ENCRYPTIONS)
        for name, (kind, low, high, low_open) in _RANGES.items():
            check_range(name, getattr(self, name), kind, low, high, low_open)
        _check_count_or_share("min_samples_split", self.min_samples_split, 2)
        _check_count_or_share("min_samples_leaf", self.min_samples_leaf, 1)
        if isinstance(self.max_features, str):
            check_choice("max_features", self.max_features, FEATURE_RULES)
        elif self.max_features is not None:
            _check_count_or_share("max_features", self.max_features, 1)
        for name in ("bootstrap", "balanced_subsample", "out_of_bag"):
            check_flag(name, getattr(self, name))
        if self.max_samples is not None:
            _check_count_or_share("max_samples", self.max_samples, 1)
            if not self.bootstrap:
                raise ValueError(
                    f"max_samples={self.max_samples!r} needs bootstrap=True: without it every tree has all rows"
                )
        if self.out_of_bag and not self.bootstrap:
            raise ValueError("oob_score needs bootstrap=True: without it every tree has all rows")
        check_key_bits(self.key_bits, self.allow_weak_key, self.encryption)

    def n_draws(self, n_rows: int) -> int:
        """Rows that a tree draws, one at least."""
        wanted = self.max_samples
        if wanted is None:
            return n_rows
        if isinstance(wanted, numbers.Integral):
            if wanted > n_rows:
                raise ValueError(f"max_samples={wanted} is more than the {n_rows} rows there are")
            return int(wanted)
        return max(1, round(n_rows * wanted))

    def least_to_split(self, n_draws: int) -> int:
        """Draws that a node needs to be split."""
        least = _count(self.min_samples_split, n_draws, 2)
        return max(least, 2 * self.least_in_leaf(n_draws))

    def least_in_leaf(self, n_draws: int) -> int:
        """Draws that a child needs."""
        return _count(self.min_samples_leaf, n_draws, 1)

    def n_drawn_features(self, n_features: int) -> int:
        """Features drawn at a node, over all parties."""
        wanted = self.max_features
        if wanted is None:
            return n_features
        if wanted == "sqrt":
            return max(1, math.isqrt(n_features))
        if wanted == "log2":
            return max(1, int(math.log2(n_features)))
        assert not isinstance(wanted, str)
        if isinstance(wanted, numbers.Integral):
            return min(int(wanted), n_features)
        return max(1, int(wanted * n_features))

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), default=plain_number)

    @classmethod
    def from_json(cls, text: str) -> ForestSettings:
        return cls(**json.loads(text))


# parameter: kind, lowest, highest, lowest excluded
_RANGES: dict[str, tuple[type, float, float, bool]] = {
    "n_classes": (numbers.Integral, 1, math.inf, False),
    "n_estimators": (numbers.Integral, 1, MAX_TREES, False),
    "max_depth": (numbers.Integral, 1, MAX_DEPTH, False),
    "min_weight_fraction_leaf": (numbers.Real, 0, 0.5, False),
    "min_impurity_decrease": (numbers.Real, 0, math.inf, False),
    "max_bin": (numbers.Integral, MIN_BINS, MAX_BINS, False),
    "key_bits": (numbers.Integral, 16, 8192, False),
}


def _check_count_or_share(name: str, value: Any, least: int) -> None:
    """An integer of at least `least`, or a share in (0, 1]."""
    if isinstance(value, numbers.Integral):
        check_range(name, value, numbers.Integral, least, math.inf, low_open=False)
    else:
        check_range(name, value, numbers.Real, 0, 1, low_open=True)


def _count(value: int | float, n: int, least: int) -> int:
    return int(value) if isinstance(value, numbers.Integral) else max(least, math.ceil(value * n))
