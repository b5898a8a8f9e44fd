"""What the active party's sides of the exchanges share: steps that are announced, summed, opened and taken."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from typing import Any

import numpy as np

from vflparty import RemoteProtocolError
from vflparty.opening import Opening
from vflparty.party import Round

from .arithmetic import Arithmetic
from .own import OwnModel
from .residuals import Targets


class Lead(ABC):
    """Leads the steps of one exchange.

    opened : what every passive party is still to be given of the last step
    curvature : to take it with
    losses : mean losses of epochs, where the exchange shows them
    """

    def __init__(
        self,
        name: str,
        passive: tuple[str, ...],
        own: OwnModel,
        targets: Targets,
        arithmetic: Arithmetic,
        opening: Opening,
    ) -> None:
        self.name, self.passive = name, passive
        self.own, self.targets = own, targets
        self.arithmetic, self.opening = arithmetic, opening
        self.opened: dict[str, bytes] = dict.fromkeys(passive, b"")
        self.curvature = targets.curvature
        self.losses: list[float] = []
        self._in_epoch: list[float] = []
        self.watches_loss = bool(targets.settings.early_stopping)

    @abstractmethod
    def begin(self) -> Generator[Round, Round, None]:
        """What is sent once, before the first step."""

    @abstractmethod
    def step(self, step: int, rows: np.ndarray | None) -> Generator[Round, Round, bool]:
        """One step; True, and nothing done, when everybody had settled before it."""

    def note_loss(self, loss: float) -> None:
        """Of one batch, before its step."""
        self._in_epoch.append(loss)

    def end_epoch(self) -> None:
        """Join the losses of the epoch's batches, which are of like sizes, to their mean."""
        batches, self._in_epoch = self._in_epoch, []
        if batches:
            self.losses.append(math.fsum(batches) / len(batches))

    def take_opened(self) -> dict[str, bytes]:
        """What goes to the passive parties now, and only once."""
        opened, self.opened = self.opened, dict.fromkeys(self.passive, b"")
        return opened

    def n_batch(self, rows: np.ndarray | None) -> int:
        return self.own.columns.n_rows if rows is None else len(rows)

    def open(
        self,
        masked: Mapping[str, bytes],
        own_sums: Any | None,
        rows: np.ndarray | None,
        loss: Any | None = None,
    ) -> Generator[Round, Round, None]:
        """Everybody's masked sums to the coordinator; the active party's own, if any, are hidden here.

        loss : one more value to hide, the last; see ScoresLead
        """
        asked = dict(masked)
        own = [part for part in (own_sums, loss) if part is not None]
        if own:
            asked[self.name] = self.arithmetic.hide(self.arithmetic.joined(own))
        self.opened = yield from self.opening.open(asked)
        values = self.arithmetic.reveal(self.opened.pop(self.name)).ravel() if own else np.zeros(0)
        if loss is not None:
            self.note_loss(self.targets.polynomial_loss(int(values[-1]), rows))
            values = values[:-1]
        if own_sums is not None:
            self.take_own_step(values.reshape(own_sums.shape), rows)
        else:
            self.own.settled = True

    def take_own_step(self, sums: np.ndarray, rows: np.ndarray | None) -> None:
        self.own.take_step(sums, 0 if rows is None else len(rows), self.curvature)

    def all_settled(self, step: int, answers: Mapping[str, Any]) -> bool:
        return step > 0 and self.own.settled and all(answer.settled for answer in answers.values())


def in_step(answers: Round, kind: type[Any], step: int) -> dict[str, Any]:
    """The answers, all of this kind and step."""
    for party, answer in answers.items():
        if not isinstance(answer, kind) or answer.step != step:
            raise RemoteProtocolError(
                f"{type(answer).__name__} where {kind.__name__} of step {step} is due", party
            )
    return dict(answers)


def batch_array(rows: np.ndarray | None) -> np.ndarray:
    """Rows as they are announced; empty: all."""
    return np.zeros(0, dtype=np.int32) if rows is None else rows.astype(np.int32)
