"""CELU-VFL (Fu et al., 2022): one exchange a batch, then local updates on batches that were exchanged before.

Every party keeps the last batches with what crossed for them, and all draw among them alike. What is old counts sample
by sample, with the cosine between a quantity now and the same quantity at its exchange (a passive party's output, the
active party's gradient), and not at all below a threshold.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from vflparty import Conversation

from ..split import BottomHalf, Rows, TopHalf
from .options import real_number, whole_number
from .roles import Leading

SMALLEST_NORM = 1e-12  # a gradient of a sample that is learned is not divided by zero
MOST_UPDATES, MOST_BATCHES = 1000, 1000
DRAWS = int.from_bytes(b"celu")  # beside the seed, which other draws use too
OWN = ""


@dataclass(frozen=True)
class Cached:
    """What a party keeps of an exchange: of every passive party at the active one, its own (OWN) at a passive one."""

    rows: Rows
    outputs: Mapping[str, Tensor]  # (n_rows, width) each
    gradients: Mapping[str, Tensor]


class CELU:
    """Exchanges of FedSGD, with local updates in between.

    local_updates : R >= 0 after every exchange, and at most R on one cached batch. "Q = 5 updates a batch" in VFLAIR's
        tables are the exchange and 4 local ones.
    cached_batches : W >= 1
    threshold : cosine below which a sample drops out; 0.5 is an angle of 60 degrees. None: every sample counts in full.
    seed : of the draws, shared by all parties
    """

    def __init__(
        self, local_updates: int = 4, cached_batches: int = 5, threshold: float | None = 0.5, *, seed: int
    ) -> None:
        whole_number(local_updates, "local_updates", 0, MOST_UPDATES)
        whole_number(cached_batches, "cached_batches", 1, MOST_BATCHES)
        self._threshold = None if threshold is None else real_number(threshold, "threshold")
        self._workset = Workset(local_updates, cached_batches, seed)

    def lead(self, active: Leading, step: int) -> Conversation:
        """Exchange as FedSGD does; then update on cached outputs."""
        rows = active.rows(step)
        outputs = yield from active.ask_outputs(step)
        exchange = active.half.exchange(rows, outputs)
        active.half.step()
        yield from active.send_gradients(step, exchange.gradients)
        self._workset.put(Cached(rows, outputs, exchange.gradients))
        for cached in self._workset.draws():
            self._update_active(active.half, cached)
        return exchange

    def follow(self, half: BottomHalf, rows: Rows, output: Tensor, gradient: Tensor) -> None:
        """Step as FedSGD does; then update on cached gradients."""
        half.descend(output, gradient)
        self._workset.put(Cached(rows, {OWN: output.detach()}, {OWN: gradient}))
        for cached in self._workset.draws():
            self._update_passive(half, cached)

    def _update_active(self, half: TopHalf, cached: Cached) -> None:
        """Minimise mean_i w_i loss_i; w_i compares gradients by the cached outputs, now and then."""

        def weigh(gradients: Mapping[str, Tensor]) -> Tensor:
            assert self._threshold is not None
            return similarity(_joined(gradients), _joined(cached.gradients), self._threshold)

        trusting = self._threshold is None or not cached.outputs  # alone, there is nothing old
        exchange = half.exchange(cached.rows, cached.outputs, None if trusting else weigh)
        if exchange.weights is None or exchange.weights.any():
            half.step()

    def _update_passive(self, half: BottomHalf, cached: Cached) -> None:
        """Step along w_i g_i on the samples of the cached batch; w_i compares outputs, now and then."""
        output, gradient = half.output(cached.rows), cached.gradients[OWN]
        if self._threshold is not None:
            weights = similarity(output.detach(), cached.outputs[OWN], self._threshold)
            if not weights.any():
                return
            gradient = gradient * weights[:, None]
        half.descend(output, gradient)


def similarity(now: Tensor, then: Tensor, threshold: float) -> Tensor:
    """cos(now_i, then_i) for every row i, 0 below the threshold; shape (n_rows,)."""

    def units(rows: Tensor) -> Tensor:
        return rows / rows.norm(dim=1, keepdim=True).clamp(min=SMALLEST_NORM)

    cosine = (units(now) * units(then)).sum(dim=1).clamp(-1.0, 1.0)
    return torch.where(cosine >= threshold, cosine, torch.zeros_like(cosine))


def _joined(parts: Mapping[str, Tensor]) -> Tensor:
    """One row a sample over all passive parties."""
    return torch.cat(list(parts.values()), dim=1)


@dataclass(eq=False)
class _Entry:
    cached: Cached
    number: int
    uses: int = 0


class Workset:
    """The last W batches exchanged, drawn in turn: none again before W - 1 other draws.

    A draw that finds none ready counts as one, so that the first batches are used as evenly as all others. A batch goes
    when W newer ones have come or when it was drawn R times, which takes W * R draws at most. Where W batches are there
    a single one is ready: chance decides while batches come late, since one shorter than the first is not kept.
    """

    def __init__(self, local_updates: int, cached_batches: int, seed: int) -> None:
        self._local_updates, self._cached_batches = local_updates, cached_batches
        self._random = np.random.default_rng((seed, DRAWS))
        self._entries: list[_Entry] = []
        self._recent: deque[int | None] = deque(maxlen=cached_batches - 1)  # numbers drawn last
        self._n_put = self._full_size = 0

    def put(self, cached: Cached) -> None:
        """Keep the newest batch, unless it is shorter than the first."""
        self._full_size = self._full_size or len(cached.rows)
        if len(cached.rows) >= self._full_size:
            self._entries.append(_Entry(cached, self._n_put))
            self._n_put += 1
            del self._entries[: -self._cached_batches]

    def draws(self) -> Iterator[Cached]:
        """The batches of the R local updates after an exchange; fewer where none is ready."""
        for _ in range(self._local_updates):
            drawn = self._draw()
            if drawn is not None:
                yield drawn

    def _draw(self) -> Cached | None:
        ready = [entry for entry in self._entries if entry.number not in self._recent]
        if not ready:
            self._recent.append(None)
            return None
        drawn = ready[self._random.integers(len(ready))]
        self._recent.append(drawn.number)
        drawn.uses += 1
        if drawn.uses == self._local_updates:
            self._entries.remove(drawn)
        return drawn.cached
