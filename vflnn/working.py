"""How a party computes: with random numbers of its own, on so many threads, and without denormal numbers."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray


class RandomStream:
    """A party's own stream of PyTorch's random numbers (weights, dropout), whoever else draws in the same process.

    Training in one process and in several therefore draws the same numbers.

    seed : any int >= 0; equal seeds give equal streams
    n_threads : that its work uses. Sums over parts depend on how many parts there are, so equal bits need equal
        numbers; and small networks are fastest on one, by far where parties share the cores.
    """

    def __init__(self, seed: int, device: str = "cpu", n_threads: int = 1) -> None:
        self._device = torch.device(device)
        self._n_threads = n_threads
        with self._aside():
            torch.manual_seed(seed)
            self._states = self._current()

    @contextmanager
    def working(self) -> Iterator[None]:
        """The block draws from this stream; denormals count as zero in it.

        On a CPU, moments of Adam that decay into denormals make every step some twenty times slower.
        """
        with self._aside(), _threads(self._n_threads):
            self._restore(self._states)
            torch.set_flush_denormal(True)
            try:
                yield
            finally:
                torch.set_flush_denormal(False)
                self._states = self._current()

    @property
    def state(self) -> NDArray[np.uint8]:
        """Where the stream stands (the CPU's part), uint8."""
        return self._states[0].numpy().copy()

    @state.setter
    def state(self, state: NDArray[np.uint8]) -> None:
        self._states[0] = torch.from_numpy(state.copy())

    def _current(self) -> list[torch.Tensor]:
        states = [torch.get_rng_state()]
        if self._device.type == "cuda":
            states.append(torch.cuda.get_rng_state(self._device))
        return states

    def _restore(self, states: list[torch.Tensor]) -> None:
        torch.set_rng_state(states[0])
        if self._device.type == "cuda":
            torch.cuda.set_rng_state(states[1], self._device)

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """What others in this process draw is left as it was."""
        theirs = self._current()
        try:
            yield
        finally:
            self._restore(theirs)


@contextmanager
def _threads(number: int) -> Iterator[None]:
    """PyTorch works on so many threads in the block."""
    before = torch.get_num_threads()
    if number == before:
        yield
        return
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
