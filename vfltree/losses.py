"""Losses of boosting: start values, gradients and hessians at the raw score, as XGBoost 3 defines them.

XGBoost keeps labels, weights, raw scores and gradients in single precision. Late in training, when trees
fit what is left over, that rounding decides near-ties, so equal trees need equal rounding: raw scores are
float32 here too, and `start` says so by its dtype. Targets that single precision would blur (around 1e9 and
4 apart, say) get float64. Every method computes in the precision of the raw scores it is given and returns
float64 arrays.

For the encrypted sums the pair (g, h) becomes integers on a private power-of-two scale (`quantize`): sums
are then exact and do not depend on order.
"""

from .objectives.base import Array, LeafLoss, Loss, Scores, single_precision_suits
from .objectives.classification import Logistic, Softmax
from .objectives.custom import CustomLoss
from .objectives.quantiles import AbsoluteError, QuantileError, quantile
from .objectives.quantized import FRACTION_BITS, Quantized, fraction_bits_for, quantize
from .objectives.regression import POISSON_DELTA_STEP, Poisson, PseudoHuber, SquaredError
from .objectives.targets import PerTarget

__all__ = [
    "FRACTION_BITS",
    "POISSON_DELTA_STEP",
    "AbsoluteError",
    "Array",
    "CustomLoss",
    "LeafLoss",
    "Logistic",
    "Loss",
    "PerTarget",
    "Poisson",
    "PseudoHuber",
    "QuantileError",
    "Quantized",
    "Scores",
    "Softmax",
    "SquaredError",
    "fraction_bits_for",
    "quantile",
    "quantize",
    "single_precision_suits",
]
