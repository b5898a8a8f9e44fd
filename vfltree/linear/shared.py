"""What the parties of one training agree on in the open: all of it crosses, so nothing here may follow the labels
beyond what its comment says."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass


@dataclass(frozen=True)
class SharedSettings:
    """From the active party to every passive party; JSON on the wire."""

    exchange: str = "scores"
    residual: str = "polynomial"  # "exact": the active party sees sums of scores
    order: int = 1  # of the polynomial
    n_outputs: int = 1
    unit: float = 1.0  # scores are counted in this power of two; follows the largest target of a regression
    factor: float = 1.0  # integer sums times this are gradients of the mean loss; shows the sum of weights
    l2: float = 0.0  # penalties on the mean loss; shows the sum of weights
    l1: float = 0.0
    optimizer: str = "newton"
    learning_rate: float = 1.0
    learning_rate_decay: float = 0.0
    momentum: float = 0.9
    max_iter: int = 100
    tol: float = 1e-4
    n_parties: int = 2
    watch_loss: bool = False  # the loss is computed under encryption, for early stopping

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> SharedSettings:
        """ValueError or TypeError unless the fields are those of this class, each of its type."""
        fields = json.loads(text)
        if not isinstance(fields, dict):
            raise ValueError("settings must be a JSON object")
        settings = cls(**fields)
        for field in dataclasses.fields(cls):
            value, wanted = getattr(settings, field.name), type(field.default)
            if type(value) is not wanted:
                raise TypeError(f"{field.name} must be {wanted.__name__}, got {value!r}")
        return settings
