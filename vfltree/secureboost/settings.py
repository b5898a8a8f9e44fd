"""What a SecureBoost training is set to. Frozen, checked when it is made, and plain JSON to its seat."""

from __future__ import annotations

import dataclasses
import json
import numbers
from dataclasses import dataclass

import numpy as np

from ..binning import MAX_BINS, MIN_BINS
from ..growing.numbering import MAX_DEPTH
from ..parameters import ENCRYPTIONS, as_float, check_choice, check_key_bits, check_range, plain_number
from .objectives import OBJECTIVES, OF_SEVERAL_TARGETS, REFITTED

FIRST_TREES = ("all", "active")
GROW_POLICIES = ("depthwise", "lossguide")
MULTI_STRATEGIES = ("one_output_per_tree", "multi_output_tree")
SAMPLING_METHODS = ("uniform", "goss")


@dataclass(frozen=True)
class BoostSettings:
    """Parameters by XGBoost's names, see `SecureBoostClassifier`; ValueError or TypeError names a wrong one."""

    objective: str = "binary:logistic"
    n_classes: int = 2
    n_estimators: int = 100
    learning_rate: float = 0.3
    max_depth: int = 6
    max_bin: int = 32
    reg_lambda: float = 1.0
    reg_alpha: float = 0.0
    gamma: float = 0.0
    min_child_weight: float = 1.0
    subsample: float = 1.0
    max_delta_step: float = 0.0
    colsample_bytree: float = 1.0
    colsample_bylevel: float = 1.0
    sampling_method: str = "uniform"
    top_rate: float = 0.2
    other_rate: float = 0.1
    grow_policy: str = "depthwise"
    max_leaves: int = 0
    scale_pos_weight: float = 1.0
    base_score: float | None = None
    max_cat_to_onehot: int = 4
    max_cat_threshold: int = 64
    encryption: str = "paillier"
    key_bits: int = 3072
    allow_weak_key: bool = False
    n_jobs: int = 1
    quantile_alpha: tuple[float, ...] = (0.5,)
    huber_slope: float = 1.0
    custom_objective: str = (
        ""  # name of the user's function, see `vflparty.callables`; `objective` is what it replaces
    )
    first_tree: str = "all"
    label_privacy_epsilon: float | None = None
    multi_strategy: str = "one_output_per_tree"
    n_targets: int = 1

    def __post_init__(self) -> None:
        check_choice("objective", self.objective, OBJECTIVES)
        check_choice("encryption", self.encryption, ENCRYPTIONS)
        check_choice("grow_policy", self.grow_policy, GROW_POLICIES)
        check_choice("multi_strategy", self.multi_strategy, MULTI_STRATEGIES)
        if self.n_targets > 1 and self.objective not in OF_SEVERAL_TARGETS:
            raise ValueError(
                f"y of {self.n_targets} columns suits {', '.join(map(repr, OF_SEVERAL_TARGETS))}, the objective is "
                f"{self.objective!r}"
            )
        if self.vector_leaves and self.objective in REFITTED:
            raise ValueError(
                f'multi_strategy="multi_output_tree" is not offered for {self.objective!r}, which fits leaves anew'
            )
        check_choice("first_tree", self.first_tree, FIRST_TREES)
        check_choice("sampling_method", self.sampling_method, SAMPLING_METHODS)
        if self.grow_policy == "lossguide" and self.max_depth == 0:
            raise ValueError(
                f"max_depth=0 (no limit in XGBoost) is not offered: record ids hold depths up to {MAX_DEPTH}; "
                f"max_depth={MAX_DEPTH} is the most"
            )
        for name, (kind, low, high, low_open) in _RANGES.items():
            check_range(name, getattr(self, name), kind, low, high, low_open)
        self._check_sampling()
        if not self.quantile_alpha:
            raise ValueError("quantile_alpha must hold one number at least")
        for alpha in self.quantile_alpha:
            check_range("quantile_alpha", alpha, numbers.Real, 0, 1, low_open=True)
            if alpha >= 1:
                raise ValueError(f"quantile_alpha must lie in (0, 1), got {alpha!r}")
        if self.base_score is not None:
            self._check_base_score()
        if self.label_privacy_epsilon is not None:
            self._check_label_privacy()
        if self.scale_pos_weight != 1 and (self.objective != "binary:logistic" or self.custom_objective):
            name = self.custom_objective or self.objective
            raise ValueError(
                f"scale_pos_weight is for two classes by binary:logistic; the objective is {name}"
            )
        check_key_bits(self.key_bits, self.allow_weak_key, self.encryption)

    def _check_label_privacy(self) -> None:
        if self.n_classes < 2:
            raise ValueError(
                f"label_privacy_epsilon={self.label_privacy_epsilon!r} is for classes: values have no others to name"
            )
        check_range(
            "label_privacy_epsilon", self.label_privacy_epsilon, numbers.Real, 0, np.inf, low_open=True
        )

    def _check_sampling(self) -> None:
        if self.sampling_method != "goss":
            return
        if self.subsample < 1:
            raise ValueError(
                f'sampling_method="goss" chooses rows by their gradients, subsample={self.subsample} by lot: use one'
            )
        if self.top_rate + self.other_rate > 1:
            raise ValueError(
                f"top_rate and other_rate are parts of all rows, together at most 1, got {self.top_rate} and "
                f"{self.other_rate}"
            )

    @property
    def n_outputs(self) -> int:
        """Gradients per row; as many trees per round, unless one serves all."""
        if self.objective == "reg:quantileerror":
            return len(self.quantile_alpha)
        return self.n_classes if self.objective == "multi:softprob" else self.n_targets

    @property
    def vector_leaves(self) -> bool:
        """Whether a round's one tree serves all outputs."""
        return self.multi_strategy == "multi_output_tree" and self.n_outputs > 1

    @property
    def trees_per_round(self) -> int:
        return 1 if self.vector_leaves else self.n_outputs

    def _check_base_score(self) -> None:
        low = 0.0 if self.objective in ("binary:logistic", "count:poisson") else -np.inf
        check_range("base_score", self.base_score, numbers.Real, low, np.inf, low_open=True)
        if self.objective == "binary:logistic" and as_float(self.base_score) >= 1:
            raise ValueError(f"base_score of {self.objective} must lie in (0, 1), got {self.base_score}")

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), default=plain_number)

    @classmethod
    def from_json(cls, text: str) -> BoostSettings:
        fields = json.loads(text)
        return cls(**{**fields, "quantile_alpha": tuple(fields["quantile_alpha"])})


# parameter: kind, lowest, highest, lowest excluded
_RANGES: dict[str, tuple[type, float, float, bool]] = {
    "n_classes": (numbers.Integral, 1, np.inf, False),
    "n_targets": (numbers.Integral, 1, np.inf, False),
    "n_estimators": (numbers.Integral, 1, np.inf, False),
    "learning_rate": (numbers.Real, 0, np.inf, True),
    "max_depth": (numbers.Integral, 1, MAX_DEPTH, False),
    "max_bin": (numbers.Integral, MIN_BINS, MAX_BINS, False),
    "reg_lambda": (numbers.Real, 0, np.inf, False),
    "reg_alpha": (numbers.Real, 0, np.inf, False),
    "gamma": (numbers.Real, 0, np.inf, False),
    "min_child_weight": (numbers.Real, 0, np.inf, False),
    "subsample": (numbers.Real, 0, 1, True),
    "max_delta_step": (numbers.Real, 0, np.inf, False),
    "colsample_bytree": (numbers.Real, 0, 1, True),
    "colsample_bylevel": (numbers.Real, 0, 1, True),
    "top_rate": (numbers.Real, 0, 1, False),
    "other_rate": (numbers.Real, 0, 1, True),
    "max_leaves": (numbers.Integral, 0, np.inf, False),
    "scale_pos_weight": (numbers.Real, 0, np.inf, True),
    "huber_slope": (numbers.Real, 0, np.inf, True),
    "max_cat_to_onehot": (numbers.Integral, 1, np.inf, False),
    "max_cat_threshold": (numbers.Integral, 1, np.inf, False),
    "key_bits": (numbers.Integral, 16, 8192, False),
}
