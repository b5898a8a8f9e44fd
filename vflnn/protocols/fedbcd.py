"""FedBCD (Liu et al., 2022): one exchange a batch, then several local steps of every party on what it brought.

In parallel (FedBCD-p) all parties step from the weights of the exchange; in sequence (FedBCD-s) the active party
steps first, and passive parties step on the gradient at its new weights. What crosses does not depend on the number
of steps.
"""

from __future__ import annotations

from torch import Tensor

from vflparty import Conversation

from ..split import BottomHalf, Rows
from .options import whole_number
from .roles import Leading

MOST_LOCAL_STEPS = 1000


class FedBCDParallel:
    """FedBCD-p.

    local_steps : int, Q >= 1; with 1 it is FedSGD
    """

    def __init__(self, local_steps: int = 5) -> None:
        self._local_steps = whole_number(local_steps, "local_steps", 1, MOST_LOCAL_STEPS)

    def lead(self, active: Leading, step: int) -> Conversation:
        """Send g_k, then step on: received outputs stay, its own output and the gradient are fresh each time."""
        rows = active.rows(step)
        outputs = yield from active.ask_outputs(step)
        exchange = active.half.exchange(rows, outputs)
        active.half.step()
        yield from active.send_gradients(step, exchange.gradients)
        for _ in range(self._local_steps - 1):
            active.half.exchange(rows, outputs)
            active.half.step()
        return exchange

    def follow(self, half: BottomHalf, rows: Rows, output: Tensor, gradient: Tensor) -> None:
        descend_again(half, rows, output, gradient, self._local_steps)


class FedBCDSequential:
    """FedBCD-s.

    local_steps : int, Q >= 1; with 1 it is Gauss-Seidel: the active party's step, then the others' at its new weights
    """

    def __init__(self, local_steps: int = 5) -> None:
        self._local_steps = whole_number(local_steps, "local_steps", 1, MOST_LOCAL_STEPS)

    def lead(self, active: Leading, step: int) -> Conversation:
        """Step on the received outputs, then send g_k as the new weights have it."""
        rows = active.rows(step)
        outputs = yield from active.ask_outputs(step)
        first = active.half.exchange(rows, outputs)
        active.half.step()
        for _ in range(self._local_steps - 1):
            active.half.exchange(rows, outputs)
            active.half.step()
        updated = active.half.exchange(rows, outputs)
        yield from active.send_gradients(step, updated.gradients)
        return first

    def follow(self, half: BottomHalf, rows: Rows, output: Tensor, gradient: Tensor) -> None:
        descend_again(half, rows, output, gradient, self._local_steps)


def descend_again(half: BottomHalf, rows: Rows, output: Tensor, gradient: Tensor, n_steps: int) -> None:
    """`n_steps` steps along the same g_k, each through the Jacobian of the output at the weights of that step."""
    half.descend(output, gradient)
    for _ in range(n_steps - 1):
        half.descend(half.output(rows), gradient)
