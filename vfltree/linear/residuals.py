"""What the active party makes of scores under encryption: residuals times weights, as integers.

With a mean function of order 1, c_0 + c_1 z, every residual is c_1 (z - t) with a target t = (y - c_0) / c_1 that only
the active party knows: one addition per score. c_1 and the scale go into a factor that the parties apply to their
decrypted sums. Sample weights are integers too: exponents of the ciphertexts.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .approximations import logistic_polynomial
from .arithmetic import Arithmetic
from .columns import COARSE_BITS, LARGEST_SCORE_BITS, SCORE_BITS, mixed
from .families import FAMILIES, Poisson
from .powers.cubes import POWER_BITS
from .settings import LinearSettings
from .shared import SharedSettings

COEFFICIENT_BITS = 24  # of the polynomial of order 3
CUBIC_BITS = COEFFICIENT_BITS + 3 * POWER_BITS  # fraction bits of a residual of order 3
WEIGHT_BITS = 40  # of the largest weight; smaller ones are rounded to its steps


class Targets:
    """Labels and weights, ready for the protocol; held by the active party.

    Parameters
    ----------
    y : float64 (n_rows, n_outputs)
    weights : float64 (n_rows,), not negative; None: all one
    """

    def __init__(self, y: np.ndarray, weights: np.ndarray | None, settings: LinearSettings) -> None:
        self.settings = settings
        self.family = FAMILIES[settings.family]
        self.y = y
        self.weights, step = integer_weights(weights)
        used = np.ones(len(y), dtype=np.int64) if self.weights is None else self.weights
        self._total = int(used.sum())
        self.total_weight = self._total * step
        self._largest_share = int(used.max()) / self._total
        self.start = self.family.start(y, used.astype(np.float64))
        self.unit = _unit(y) if settings.family == "gaussian" else 1.0
        self._polynomial = self._mean_polynomial()
        self.encoded = self._encoded_targets()

    def _mean_polynomial(self) -> tuple[float, ...]:
        """c_0, c_1, ...: the mean as a function of the score."""
        settings = self.settings
        if settings.family == "binomial":
            kind = "taylor" if settings.residual == "exact" else settings.residual
            return logistic_polynomial(kind, int(settings.order), float(settings.interval))
        if settings.family == "multinomial":
            return (1.0 / settings.n_outputs, 1.0 / settings.n_outputs)
        if settings.family == "poisson":
            # exp(z) near the mean of y, which is where training starts.
            rate, start = math.exp(self.start[0]), float(self.start[0])
            return (rate * (1.0 - start), rate)
        return (0.0, 1.0)

    def _encoded_targets(self) -> np.ndarray:
        """t, int64 (n_rows, n_outputs), as scores are encoded."""
        c0, c1 = self._polynomial[:2]
        targets = np.rint(np.ldexp((self.y - c0) / c1 / self.unit, SCORE_BITS))
        if np.abs(targets).max(initial=0.0) >= 2.0**LARGEST_SCORE_BITS:
            raise ValueError(
                f"targets reach {np.abs(self.y).max():g}, {2.0 ** (LARGEST_SCORE_BITS - SCORE_BITS):g} times their "
                "mean: residual='exact' or smaller targets"
            )
        return targets.astype(np.int64)

    def shared(self, n_parties: int) -> SharedSettings:
        """What everybody may know."""
        settings = self.settings
        exact = settings.residual == "exact"
        bits = COARSE_BITS if settings.exchange == "rows" else SCORE_BITS
        if settings.order > 1:
            bits = CUBIC_BITS
        slope = 1.0 if exact or settings.order > 1 else self._slope
        return SharedSettings(
            exchange=settings.exchange,
            residual="exact" if exact else "polynomial",
            order=int(settings.order),
            n_outputs=int(settings.n_outputs),
            unit=self.unit,
            factor=math.ldexp(slope * self.unit / self._total, -bits),
            l2=settings.l2_sum / self.total_weight + settings.l2_mean,
            l1=settings.l1_sum / self.total_weight + settings.l1_mean,
            optimizer=settings.optimizer,
            learning_rate=float(settings.learning_rate),
            learning_rate_decay=float(settings.learning_rate_decay),
            momentum=float(settings.momentum),
            max_iter=int(settings.max_iter),
            tol=float(settings.tol),
            n_parties=n_parties,
            watch_loss=bool(settings.early_stopping),
        )

    @property
    def _slope(self) -> float:
        """What a residual z - t, mixed where outputs are, is worth."""
        return self._polynomial[1] / (self.settings.n_outputs if self.is_mixed else 1)

    def polynomial_loss(self, products: int, rows: np.ndarray | None) -> float:
        """The mean loss to second order, from the opened sum of d (z - t) over some rows."""
        chosen = slice(None) if rows is None else rows
        y = self.y[chosen]
        weights = np.ones(len(y)) if self.weights is None else self.weights[chosen].astype(np.float64)
        total = max(1.0, math.fsum(weights))
        squares = self._slope / 2.0 * self.unit**2 * math.ldexp(products, -SCORE_BITS - COARSE_BITS)
        return (squares + math.fsum(self._loss_offsets(y) * weights)) / total

    def _loss_offsets(self, y: np.ndarray) -> np.ndarray:
        """What c_1 (z - t)^2 / 2 leaves out of a row's loss."""
        c0, c1 = self._polynomial[:2]
        squares = ((y - c0) ** 2 / c1 / 2).sum(axis=1)
        return np.asarray(self.family.losses(np.zeros_like(y), y) - squares)

    @property
    def curvature(self) -> float:
        """Upper bound of the second derivative by score of one row's share of the mean loss."""
        exact = self.settings.residual == "exact"
        slope = self.family.curvature if exact else self._polynomial[1]
        return slope * self._largest_share

    def curvature_at(self, z: np.ndarray) -> float:
        """As `curvature`, at exact scores; for Poisson, whose slope has no bound, near them."""
        if not isinstance(self.family, Poisson):
            return self.curvature
        return 2.0 ** math.ceil(math.log2(float(self.family.mean(z).max()) * self._largest_share))

    # ---- residuals

    def residuals(self, arithmetic: Arithmetic, others: Any, own: np.ndarray, rows: np.ndarray | None) -> Any:
        """[[weight * (z - t)]] of the rows; times n_outputs for several classes.

        others : sealed sum of the other parties' scores, (n_batch, n_outputs)
        own : int64 (n_batch, n_outputs)
        """
        missing = self.own_part(own, rows)
        if self.is_mixed:
            total = arithmetic.totals(others)
            others = arithmetic.add(arithmetic.scale(others, own.shape[1]), -total)
        return self.weighted(arithmetic, arithmetic.add(others, missing), rows)

    @property
    def is_mixed(self) -> bool:
        """Whether a residual depends on all outputs of its row; see `columns.mixed`."""
        return self.settings.family == "multinomial"

    def own_part(self, own: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        """What the active party adds to the others' scores: its own less the targets, mixed where outputs are.

        The rows of a mixed target sum up to 0, so mixing is multiplying by n_outputs.
        """
        missing = own - self.targets(rows)
        return mixed(missing) if self.is_mixed else missing

    def targets(self, rows: np.ndarray | None) -> np.ndarray:
        """t of some rows, or all; int64 (n_batch, n_outputs), as scores are encoded."""
        return self.encoded if rows is None else self.encoded[rows]

    def cubic_parts(self, rows: np.ndarray | None) -> tuple[int, int, np.ndarray]:
        """With scores of POWER_BITS: the factors of z and of z^3, and c_0 - y, all with CUBIC_BITS fraction bits."""
        c0, c1, _, c3 = self._polynomial
        y = self.y if rows is None else self.y[rows]
        whole = np.rint((c0 - y) * 2.0**COEFFICIENT_BITS).astype(np.int64).astype(object)
        return (
            round(c1 * 2**COEFFICIENT_BITS) << 2 * POWER_BITS,
            round(c3 * 2**COEFFICIENT_BITS),
            whole << 3 * POWER_BITS,
        )

    def weighted(self, arithmetic: Arithmetic, residuals: Any, rows: np.ndarray | None) -> Any:
        if self.weights is None:
            return residuals
        weights = self.weights if rows is None else self.weights[rows]
        return arithmetic.scale(residuals, weights[:, None])

    def exact_residuals(self, z: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        """weight * (mean(z) - y) in fixed point, Python integers (n_batch, n_outputs); z float64, in true units."""
        y = self.y if rows is None else self.y[rows]
        rounded = np.rint(np.ldexp((self.family.mean(z) - y) / self.unit, SCORE_BITS))
        if not (np.abs(rounded) < 2.0**LARGEST_SCORE_BITS).all():
            raise OverflowError(
                "residuals overflow: training diverges; scale the columns or lower learning_rate"
            )
        plain = rounded.astype(np.int64).astype(object)
        if self.weights is None:
            return np.asarray(plain)
        weights = self.weights if rows is None else self.weights[rows]
        return np.asarray(plain * weights[:, None].astype(object))

    def mean_loss(self, z: np.ndarray, rows: np.ndarray | None) -> float:
        """The exact, unpenalised loss at exact scores of some rows, or all."""
        chosen = slice(None) if rows is None else rows
        losses = self.family.losses(z, self.y[chosen])
        weights = np.ones(len(losses)) if self.weights is None else self.weights[chosen].astype(np.float64)
        return math.fsum(losses * weights) / max(1.0, math.fsum(weights))


def integer_weights(weights: np.ndarray | None) -> tuple[np.ndarray | None, float]:
    """Weights as integers of at most WEIGHT_BITS bits (None: all one), and what one of them weighs.

    Whole multiples of one power of two become as small as they can be: weights 1, 2 and 3 are themselves.
    """
    if weights is None or (weights == weights[0]).all():
        return None, 1.0 if weights is None else float(weights[0])
    exponent = WEIGHT_BITS - int(np.frexp(weights.max())[1])
    integers = np.rint(np.ldexp(weights, exponent)).astype(np.int64)
    together = int(np.bitwise_or.reduce(integers))
    zeros = (together & -together).bit_length() - 1
    return integers >> zeros, math.ldexp(1.0, zeros - exponent)


def _unit(y: np.ndarray) -> float:
    """The power of two above the largest target."""
    largest = float(np.abs(y).max(initial=0.0))
    return math.ldexp(1.0, int(np.frexp(largest)[1])) if largest else 1.0
