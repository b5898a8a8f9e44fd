"""The active party, one round a run: whoever seated it can look in between and loses no finished round."""

from __future__ import annotations

from typing import ClassVar

from vflparty import Conversation, Message, codec

from .active import ActiveParty
from .messages import RoundsGrown


class StepwiseActiveParty(ActiveParty):
    """`network.run()` again and again until `ended`; the trees of every run are handed over with it."""

    result_message: ClassVar[type[Message]] = RoundsGrown

    _begun = False
    _handed = 0  # trees that were handed over

    def conversation(self) -> Conversation:
        """A round; the first run also joins, the last also ends the training."""
        if not self._begun:
            yield from self._begin()
            self._begun = True
        if not self._ended:
            yield from self._advance()
        return (yield from self._hand_over())

    def _hand_over(self) -> Conversation:
        """Trees that are new; how many rounds the model keeps in the end, the history says."""
        ended, new = self._ended, self._trees[self._handed :]
        model = codec.encode(self._half(new)) if new else b""
        self._handed = len(self._trees)
        if ended:
            yield from self._end()
        return RoundsGrown(
            training=self._training,
            n_rounds=self._n_rounds,
            ended=ended,
            model=model,
            loss=self._last_loss,
            history="" if self._evaluation is None else self._evaluation.history.to_json(),
        )
