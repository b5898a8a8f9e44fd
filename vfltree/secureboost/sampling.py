"""Which rows and which columns a round trains on: drawn by the active party from a seed and the round's number alone.

So a draw depends neither on the network nor on threads, and a training that is taken up again draws what it would have
drawn. Columns are drawn over the features of all parties, those of passive parties as numbers of slots in the secret
order they show the round in: the active party knows no names, and a passive party hears only which of its own features
it has to sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..losses import Quantized, quantize
from .settings import BoostSettings

Slots = NDArray[np.int32]
_ROWS, _COLUMNS = 0, 1  # streams of one seed


@dataclass(frozen=True)
class RowSample:
    """The rows of a round.

    rows : int32 (n_sampled,), ascending, so that their order says nothing of how they were chosen; empty: all rows.
    factors : float64 (n_sampled,), what gradients and hessians of these rows are multiplied by; None: 1.
    """

    rows: NDArray[np.int32]
    factors: NDArray[np.float64] | None = None

    def mask(self, n_rows: int) -> NDArray[np.bool_]:
        """Which of all rows are in the sample."""
        sampled = np.full(n_rows, not self.rows.size)
        sampled[self.rows] = True
        return sampled

    def quantize(self, g: NDArray[np.float64], h: NDArray[np.float64], fraction_bits: int) -> Quantized:
        """Integers for all rows; those that were not sampled hold zeros, so that they change no sum.

        g, h : float64 (n_rows, n_outputs).
        """
        rows = self.rows
        if not rows.size:
            return quantize(g, h, fraction_bits)
        factors = 1.0 if self.factors is None else self.factors[:, None]
        sampled = quantize(g[rows] * factors, h[rows] * factors, fraction_bits)
        full = np.zeros((2, *g.shape), dtype=np.int64)
        full[0, rows], full[1, rows] = sampled.g, sampled.h
        return Quantized(full[0], full[1], sampled.g_unit, sampled.h_unit, sampled.fraction_bits)


def n_sampled_rows(settings: BoostSettings, n_rows: int) -> int:
    """How many rows a round trains on, one at least."""
    if settings.sampling_method == "goss":
        return min(n_rows, sum(_goss_counts(settings, n_rows)))
    return n_rows if settings.subsample >= 1 else max(1, round(settings.subsample * n_rows))


def draw_rows(settings: BoostSettings, seed: int, round_: int, gradients: NDArray[np.float64]) -> RowSample:
    """The rows of a round. gradients : float64 (n_rows, n_outputs)."""
    rng = np.random.default_rng([seed, round_, _ROWS])
    n_rows = len(gradients)
    if settings.sampling_method == "goss":
        return _draw_by_gradient(settings, rng, gradients)
    if settings.subsample >= 1:
        return RowSample(np.zeros(0, dtype=np.int32))
    chosen = rng.choice(n_rows, n_sampled_rows(settings, n_rows), replace=False)
    return RowSample(np.sort(chosen).astype(np.int32))


def _draw_by_gradient(
    settings: BoostSettings, rng: np.random.Generator, gradients: NDArray[np.float64]
) -> RowSample:
    """Rows of large gradients, and some of the others with more weight.

    Source: Ke et al., LightGBM (NIPS 2017), Algorithm 2: gradient-based one-side sampling.
    """
    n_top, n_other = _goss_counts(settings, len(gradients))
    shuffled = rng.permutation(len(gradients))  # so that equal gradients and the others are chosen by lot
    sizes = np.abs(gradients).sum(axis=1)[shuffled]
    by_size = shuffled[np.argsort(-sizes, kind="stable")]
    top = by_size[:n_top]
    other = rng.permutation(by_size[n_top:])[:n_other]
    factors = np.ones(len(gradients))
    factors[other] = (1.0 - settings.top_rate) / settings.other_rate
    rows = np.sort(np.concatenate([top, other])).astype(np.int32)
    return RowSample(rows, factors[rows])


def _goss_counts(settings: BoostSettings, n_rows: int) -> tuple[int, int]:
    """Rows of large gradients, and others; one of these at least."""
    return int(settings.top_rate * n_rows), max(1, int(settings.other_rate * n_rows))


@dataclass(frozen=True)
class ColumnSample:
    """The columns of a round.

    by_level : per depth and party the slots that may split a node there, int32, ascending; party 0 is the active one.
    narrows : whether nodes are split level by level, so that slots drawn for upper levels alone can be let go.
    """

    by_level: tuple[tuple[Slots, ...], ...]
    narrows: bool

    def at(self, depth: int) -> tuple[Slots, ...]:
        """Per party the slots that may split nodes of this depth."""
        return self.by_level[depth]

    def summed(self, depth: int) -> tuple[Slots, ...]:
        """Per party the slots that nodes of this depth are summed over: those that may split them or a node below.

        A node's larger child is what the smaller one leaves of it, so both need the sums of whatever comes later.
        """
        levels = self.by_level[depth if self.narrows else 0 :]
        return tuple(
            np.unique(np.concatenate(of_party)).astype(np.int32) for of_party in zip(*levels, strict=True)
        )

    def places(self, depth: int, party: int) -> Slots:
        """Where among the slots summed stand those that may split nodes of this depth."""
        return np.searchsorted(self.summed(depth)[party], self.at(depth)[party]).astype(np.int32)


def samples_columns(settings: BoostSettings) -> bool:
    """Whether rounds or levels see only a part of the features."""
    return min(settings.colsample_bytree, settings.colsample_bylevel) < 1


def goes_by_level(settings: BoostSettings) -> bool:
    """Whether all nodes split at a time have one depth; without a limit of leaves, leaf-wise growth does that too."""
    return settings.grow_policy == "depthwise" or settings.max_leaves == 0


def draw_columns(settings: BoostSettings, seed: int, round_: int, n_features: Sequence[int]) -> ColumnSample:
    """The columns of a round; its trees share them.

    n_features : of every party, the active one first.

    As in XGBoost: first columns for the tree, of these some for each depth; the numbers are cut to integers, and one is
    always drawn.
    """
    rng = np.random.default_rng([seed, round_, _COLUMNS])
    ends = np.cumsum(n_features)
    of_tree = _choice(rng, np.arange(int(ends[-1])), settings.colsample_bytree)
    levels = [_choice(rng, of_tree, settings.colsample_bylevel) for _ in range(settings.max_depth)]
    by_level = tuple(_by_party(columns, ends) for columns in levels)
    return ColumnSample(by_level, narrows=goes_by_level(settings))


def n_drawn(share: float, n_columns: int) -> int:
    """How many columns a share is, computed in single precision as XGBoost does."""
    return max(1, int(np.float32(share) * np.float32(n_columns)))


def _choice(rng: np.random.Generator, columns: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    if share >= 1:
        return columns
    return np.sort(rng.choice(columns, n_drawn(share, len(columns)), replace=False))


def _by_party(columns: NDArray[np.int64], ends: NDArray[np.int64]) -> tuple[Slots, ...]:
    """Columns numbered over all parties, as slots of each."""
    starts = np.concatenate([[0], ends[:-1]])
    return tuple(
        (columns[(columns >= start) & (columns < end)] - start).astype(np.int32)
        for start, end in zip(starts, ends, strict=True)
    )
