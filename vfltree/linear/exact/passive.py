"""Exact residuals, a passive party's side."""

from __future__ import annotations

from vflcrypto import CryptoError
from vflcrypto.pairwise import PairwiseKey, ZeroSumMasks
from vflparty import RemoteProtocolError

from ..arithmetic import Arithmetic
from ..own import OwnModel
from ..scores.passive import ResidualsSummed
from ..steps import StepKeeper
from .messages import ClearScores, MaskKey, NextExactStep, OfferMaskKey, TakeMaskKeys


class ExactAnswers(ResidualsSummed):
    """Answers the messages of one training, in order.

    alone : whether the active party says that this is its only passive party; otherwise masks are insisted on.
    """

    def __init__(self, own: OwnModel, arithmetic: Arithmetic, keeper: StepKeeper, *, alone: bool) -> None:
        super().__init__(own, arithmetic, keeper)
        self._alone = alone
        self._key: PairwiseKey | None = None
        self._masks: ZeroSumMasks | None = None

    def offer_mask_key(self, msg: OfferMaskKey) -> MaskKey:
        if self._key is not None or self._alone:
            raise RemoteProtocolError("a mask key is offered once, where there are several passive parties")
        self._key = PairwiseKey()
        return MaskKey(self._key.public)

    def take_mask_keys(self, msg: TakeMaskKeys) -> None:
        if self._key is None or self._masks is not None:
            raise RemoteProtocolError("mask keys of others are taken once, after one's own was offered")
        if (
            not msg.parties
            or len(msg.parties) != len(msg.publics)
            or len(set(msg.parties)) != len(msg.parties)
        ):
            raise RemoteProtocolError(f"{len(msg.publics)} mask keys for the parties {list(msg.parties)}")
        try:
            others = dict(zip(msg.parties, msg.publics, strict=True))
            self._masks = ZeroSumMasks(msg.name, self._key, others)
        except (CryptoError, ValueError) as error:
            raise RemoteProtocolError(f"mask keys: {error}") from error

    def next_exact_step(self, msg: NextExactStep) -> ClearScores:
        rows = self.keeper.begin(msg.step, msg.rows, msg.opened, msg.curvature)
        scores = self.own.scores(rows)
        if not self._alone:
            if self._masks is None:
                raise RemoteProtocolError("scores are shown under masks only; keys have not been exchanged")
            scores = self._masks.hide(scores, f"scores of step {msg.step}")
        return ClearScores(msg.step, self.own.settled, scores)
