"""A passive party's masks that cancel over all passive parties: offered, taken, and used once per label."""

from __future__ import annotations

import numpy as np

from vflcrypto import CryptoError
from vflcrypto.pairwise import PairwiseKey, ZeroSumMasks
from vflparty import RemoteProtocolError

from .messages import MaskKey, OfferMaskKey, TakeMaskKeys


class Hiding:
    """From keys to hidden scores, in this order."""

    def __init__(self) -> None:
        self._key: PairwiseKey | None = None
        self._masks: ZeroSumMasks | None = None

    def offer_mask_key(self, msg: OfferMaskKey) -> MaskKey:
        if self._key is not None:
            raise RemoteProtocolError("a mask key is offered once")
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

    def hide(self, scores: np.ndarray, label: str) -> np.ndarray:
        """int64 scores under the masks of a label."""
        if self._masks is None:
            raise RemoteProtocolError("scores are shown under masks only; keys have not been exchanged")
        return self._masks.hide(scores, label)
