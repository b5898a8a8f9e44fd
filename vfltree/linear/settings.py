"""What a linear training is set to, as the active party knows it. Frozen, checked when made, plain JSON to its seat."""

from __future__ import annotations

import dataclasses
import json
import numbers
from dataclasses import dataclass

import numpy as np

from ..parameters import ENCRYPTIONS, check_choice, check_flag, check_key_bits, check_range, plain_number
from .approximations import APPROXIMATIONS, HIGHEST_ORDER
from .families import FAMILIES
from .optimisers import OPTIMIZERS

EXCHANGES = ("scores", "rows")
RESIDUALS = (*APPROXIMATIONS, "exact")


@dataclass(frozen=True)
class LinearSettings:
    """See `SecureLogisticRegression` for each; ValueError or TypeError names a wrong one.

    l2_sum, l2_mean, l1_sum, l1_mean : penalties l2/2 |w|^2 and l1 |w|_1, beside the sum of weighted losses or beside
    their mean.
    """

    family: str = "binomial"
    n_outputs: int = 1
    exchange: str = "scores"
    residual: str = "taylor"
    order: int = 1
    interval: float = 6.0
    l2_sum: float = 0.0
    l2_mean: float = 0.0
    l1_sum: float = 0.0
    l1_mean: float = 0.0
    fit_intercept: bool = True
    optimizer: str = "newton"
    learning_rate: float = 1.0
    learning_rate_decay: float = 0.0
    momentum: float = 0.9
    max_iter: int = 100
    tol: float = 1e-4
    batch_size: int = 0
    allow_small_batches: bool = False
    early_stopping: bool = False
    n_iter_no_change: int = 5
    encryption: str = "paillier"
    key_bits: int = 3072
    allow_weak_key: bool = False
    n_jobs: int = 1

    def __post_init__(self) -> None:
        check_choice("family", self.family, tuple(FAMILIES))
        check_choice("exchange", self.exchange, EXCHANGES)
        check_choice("residual", self.residual, RESIDUALS)
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        check_choice("encryption", self.encryption, ENCRYPTIONS)
        for name, (kind, low, high, low_open) in _RANGES.items():
            check_range(name, getattr(self, name), kind, low, high, low_open)
        for name in ("fit_intercept", "early_stopping", "allow_small_batches", "allow_weak_key"):
            check_flag(name, getattr(self, name))
        check_key_bits(self.key_bits, self.allow_weak_key, self.encryption)
        self._check_together()

    def _check_together(self) -> None:
        if self.optimizer == "newton" and self.batch_size:
            raise ValueError(
                "optimizer='newton' takes full batches only: batch_size=None, or another optimizer"
            )
        if self.optimizer == "newton" and (self.l1_sum or self.l1_mean):
            raise ValueError(
                "optimizer='newton' takes no L1 penalty: choose 'sgd', 'momentum', 'adam' or 'adagrad'"
            )
        if self.order > 1 and self.family != "binomial":
            raise ValueError(
                f"order={self.order} is for the logistic function; {self.family} takes order=1 or residual='exact'"
            )
        if self.order == 2:
            raise ValueError("order must be 1 or 3: even powers of the logistic function vanish")
        if self.order > 1 and self.residual == "exact":
            raise ValueError("residual='exact' is no polynomial: leave order at 1")
        if self.early_stopping and (self.exchange == "rows" or self.order > 1):
            raise ValueError("early_stopping takes exchange='scores' and order=1, or residual='exact'")
        if self.exchange == "rows" and (self.order > 1 or self.residual == "exact"):
            raise ValueError("exchange='rows' is for polynomials of order 1: exchange='scores'")
        if self.residual in ("least_squares", "minimax") and self.family != "binomial":
            raise ValueError(f"residual={self.residual!r} approximates the logistic function only")

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), default=plain_number)

    @classmethod
    def from_json(cls, text: str) -> LinearSettings:
        return cls(**json.loads(text))


# parameter: kind, lowest, highest, lowest excluded
_RANGES: dict[str, tuple[type, float, float, bool]] = {
    "n_outputs": (numbers.Integral, 1, np.inf, False),
    "order": (numbers.Integral, 1, HIGHEST_ORDER, False),
    "interval": (numbers.Real, 0, np.inf, True),
    "l2_sum": (numbers.Real, 0, np.inf, False),
    "l2_mean": (numbers.Real, 0, np.inf, False),
    "l1_sum": (numbers.Real, 0, np.inf, False),
    "l1_mean": (numbers.Real, 0, np.inf, False),
    "learning_rate": (numbers.Real, 0, np.inf, True),
    "learning_rate_decay": (numbers.Real, 0, np.inf, False),
    "momentum": (numbers.Real, 0, 0.999, False),
    "max_iter": (numbers.Integral, 1, np.inf, False),
    "tol": (numbers.Real, 0, np.inf, False),
    "batch_size": (numbers.Integral, 0, np.inf, False),
    "n_iter_no_change": (numbers.Integral, 1, np.inf, False),
    "key_bits": (numbers.Integral, 16, 8192, False),
}
