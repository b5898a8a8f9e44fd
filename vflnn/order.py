"""Which samples make up which mini-batch: the same at every party, from a seed they share."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class BatchOrder:
    """Batches of row numbers, drawn anew every epoch.

    Attributes
    ----------
    n_samples : int
    batch_size : int or None
        None: all rows in one batch, in their order. A last batch of one row joins the batch before it, since batch
        normalisation cannot learn from a single row.
    seed : int
        Shared by all parties.
    shuffle : bool
        False: rows in the order of the data.
    """

    n_samples: int
    batch_size: int | None
    seed: int = 0
    shuffle: bool = True

    @property
    def n_batches(self) -> int:
        """Per epoch."""
        if self.batch_size is None or self.batch_size >= self.n_samples:
            return 1
        full, rest = divmod(self.n_samples, self.batch_size)
        return full + (rest > 1 or (rest == 1 and self.batch_size == 1))

    def rows(self, step: int) -> NDArray[np.int64]:
        """Row numbers of the batch of this step, counted over all epochs."""
        epoch, batch = divmod(step, self.n_batches)
        order = self._order(epoch)
        if self.n_batches == 1:
            return order.copy()
        assert self.batch_size is not None
        start = batch * self.batch_size
        stop = None if batch == self.n_batches - 1 else start + self.batch_size
        return order[start:stop].copy()

    def epoch_of(self, step: int) -> int:
        return step // self.n_batches

    def steps(self, epoch: int) -> Iterator[int]:
        """The steps of an epoch."""
        yield from range(epoch * self.n_batches, (epoch + 1) * self.n_batches)

    def _order(self, epoch: int) -> NDArray[np.int64]:
        if not self.shuffle or self.batch_size is None:
            return np.arange(self.n_samples)
        return _permutation(self.n_samples, self.seed, epoch)


@lru_cache(maxsize=8)  # parties in one process ask for the same epoch many times
def _permutation(n_samples: int, seed: int, epoch: int) -> NDArray[np.int64]:
    order = np.random.default_rng((seed, epoch)).permutation(n_samples)
    order.flags.writeable = False
    return order
