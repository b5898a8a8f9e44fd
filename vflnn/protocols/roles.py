"""What a protocol is, a compressor is, and what they ask of the parties that run them."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from vflparty import Conversation, Message, Round

from ..split import BottomHalf, Rows, TopHalf


class Leading(Protocol):
    """The active party, as a protocol sees it."""

    half: TopHalf

    def rows(self, step: int) -> Rows:
        """Row numbers of the batch of this step."""

    def ask_outputs(self, step: int) -> Generator[Round, Round, dict[str, Tensor]]:
        """One round: the outputs of every passive party for this step, in the parties' order."""

    def send_gradients(self, step: int, gradients: Mapping[str, Tensor]) -> Generator[Round, Round, None]:
        """One round: to every passive party its gradient; each takes its steps before it answers."""


class TrainingProtocol(Protocol):
    """Who steps when. Every party has an instance of its own, built from the agreed options."""

    def lead(self, active: Leading, step: int) -> Conversation:
        """The active party's part of one batch; returns the Exchange that its figures are taken from."""

    def follow(self, half: BottomHalf, rows: Rows, output: Tensor, gradient: Tensor) -> None:
        """A passive party's part: `gradient` has come for `output`, which was computed for `rows`."""


class Compressor(Protocol):
    """How outputs are written on their way up. Both ends of a link have an instance, built from the same options."""

    @property
    def upload_share(self) -> float:
        """Size of what goes up, beside float32: what VFLAIR counts, which leaves out positions and ranges."""

    def pack(self, outputs: NDArray[np.floating[Any]], step: int, rows: Rows) -> Message:
        """The message that carries `outputs` (n_rows, width) of these rows."""

    def unpack(self, message: Message, step: int, shape: tuple[int, int]) -> NDArray[np.floating[Any]]:
        """What the other end takes them for. RemoteProtocolError where the message is not what was agreed on."""

    def note_gradient(self, gradient: NDArray[np.floating[Any]]) -> None:
        """The passive end has received this gradient for what it packed last."""
