"""The active party carries mask keys between passive parties, where there are several to hide among."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from vflparty import to_all
from vflparty.party import Round

from .messages import MaskKey, OfferMaskKey, TakeMaskKeys


def exchange_keys(passive: Sequence[str]) -> Generator[Round, Round, None]:
    """Two rounds; none with a single passive party."""
    if len(passive) < 2:
        return
    answers = yield to_all(passive, OfferMaskKey())
    keys = {party: answer.public for party, answer in answers.items() if isinstance(answer, MaskKey)}
    messages: Round = {}
    for party in passive:
        others = tuple(other for other in passive if other != party)
        messages[party] = TakeMaskKeys(party, others, tuple(keys[other] for other in others))
    yield messages
