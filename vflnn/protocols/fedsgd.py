"""FedSGD, VFLAIR's basic procedure: one exchange and one step of every party a batch."""

from __future__ import annotations

from torch import Tensor

from vflparty import Conversation

from ..split import BottomHalf, Rows
from .roles import Leading


class FedSGD:
    """H_k up, g_k down; all gradients of a round are taken at the same weights."""

    def lead(self, active: Leading, step: int) -> Conversation:
        """The active party's part; returns the Exchange."""
        outputs = yield from active.ask_outputs(step)
        exchange = active.half.exchange(active.rows(step), outputs)
        active.half.step()
        yield from active.send_gradients(step, exchange.gradients)
        return exchange

    def follow(self, half: BottomHalf, rows: Rows, output: Tensor, gradient: Tensor) -> None:
        """A passive party's part, once its gradient has come."""
        half.descend(output, gradient)
