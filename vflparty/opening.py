"""The leading party's way to the coordinator: everybody's masked values in one message a step."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from .coordinator import AskKey, KeyMade, Opened, OpenMasked
from .errors import RemoteProtocolError
from .party import Round


class Opening:
    """coordinator : its name; "" where there is no encryption, and what is hidden is in the clear."""

    def __init__(self, coordinator: str) -> None:
        self._coordinator = coordinator
        self._step = 0

    def ask_key(self) -> Generator[Round, Round, bytes]:
        """The public key; empty without encryption."""
        if not self._coordinator:
            return b""
        answers = yield {self._coordinator: AskKey()}
        answer = answers[self._coordinator]
        assert isinstance(answer, KeyMade)
        return answer.public_key

    def open(self, masked: Mapping[str, bytes]) -> Generator[Round, Round, dict[str, bytes]]:
        """party -> masked values, to party -> the bytes of the same values decrypted, still masked."""
        if not self._coordinator:
            return dict(masked)
        request = OpenMasked(self._step, tuple(masked), tuple(masked.values()))
        answers = yield {self._coordinator: request}
        answer = answers[self._coordinator]
        assert isinstance(answer, Opened)
        if answer.step != self._step or len(answer.values) != len(masked):
            raise RemoteProtocolError(
                f"opened {len(answer.values)} arrays of step {answer.step}, asked for {len(masked)} of step "
                f"{self._step}",
                self._coordinator,
            )
        self._step += 1
        return {
            party: values.astype("<u8").tobytes() for party, values in zip(masked, answer.values, strict=True)
        }
