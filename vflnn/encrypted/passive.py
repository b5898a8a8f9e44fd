"""A passive party of encrypted training: its outputs leave encrypted, its gradient comes back for its eyes only."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from vflparty import Message, Party, RemoteProtocolError, RowsDigest, check_rows

from ..agreement import Agreement
from ..messages import AskScoring, HalfState, ModelRecipe, PassiveSetup, ScoredOutputs, TrainingSettings
from ..recipes import build_bottom
from ..samples import Samples
from ..setups import read_frame, read_optional, read_samples
from ..split import BottomHalf
from ..working import RandomStream
from .messages import (
    AskEncryptedOutputs,
    EncryptedOutputs,
    EncryptedPassiveSetup,
    EncryptedResiduals,
    JoinedEncrypted,
    JoinEncrypted,
    MaskedGradient,
    OpenedGradient,
)
from .numbers import SEALED_BITS, as_factors
from .share import OwnShare, check_protocol, make_arithmetic
from .terms import Terms


class EncryptedPassiveParty(Party):
    """Columns and a bottom model; no label, no private key.

    Parameters
    ----------
    model : torch.nn.Module from a batch of its samples to outputs (n_rows, n_classes), or a ModelRecipe
    samples : its training rows
    width : of its outputs: the number of classes
    terms : what it insists on
    name, evaluation, ids, seed, device, state : see vflnn.PassiveParty
    """

    setup_message = EncryptedPassiveSetup
    state_message = HalfState
    messages: ClassVar[tuple[type[Message], ...]] = (
        RowsDigest, JoinEncrypted, AskEncryptedOutputs, EncryptedResiduals, OpenedGradient, AskScoring,
    )  # fmt: skip

    def __init__(
        self,
        model: torch.nn.Module | ModelRecipe,
        samples: Samples,
        *,
        width: int,
        terms: Terms,
        name: str = "passive",
        evaluation: Samples | None = None,
        ids: Collection[object] | None = None,
        seed: int = 0,
        device: str = "cpu",
        state: HalfState | None = None,
    ) -> None:
        stream = RandomStream(model.seed if isinstance(model, ModelRecipe) else seed, device)
        if isinstance(model, ModelRecipe):
            with stream.working():
                model = build_bottom(model, samples.shape, width)
        self._name, self._width, self._terms = name, width, terms
        self._half = BottomHalf(model, samples, stream, device)
        self._evaluation = evaluation
        self._rows = RowsDigest.of(range(len(samples)) if ids is None else ids)
        self._state = state
        self._agreed: Agreement | None = None
        self._awaited: tuple[type[Message], int] = (AskEncryptedOutputs, 0)  # next kind, and its step
        self._outputs: NDArray[np.int64] = np.zeros((0, 0), dtype=np.int64)  # of the open step
        self._scored = 0  # rows to evaluate that have been shown

    @classmethod
    def from_setup(cls, setup: EncryptedPassiveSetup) -> EncryptedPassiveParty:
        plain = read_frame(setup.plain, PassiveSetup)
        party = cls(
            read_frame(plain.model, ModelRecipe),
            Samples.from_frame(plain.samples, plain.device),
            width=plain.width,
            terms=Terms.from_json(setup.terms),
            name=plain.party,
            evaluation=read_samples(plain.evaluation, plain.device),
            device=plain.device,
            state=read_optional(plain.state, HalfState),
        )
        party._rows = read_frame(plain.rows, RowsDigest)
        return party

    def export_state(self) -> HalfState:
        return self._half.export_state()

    def on_rows_digest(self, msg: RowsDigest) -> RowsDigest:
        return check_rows(self._rows, msg)

    def on_join_encrypted(self, msg: JoinEncrypted) -> JoinedEncrypted:
        """Take settings and key, or say why not; only once."""
        if self._agreed is not None:
            raise RemoteProtocolError("training has been agreed on already")
        settings = read_frame(msg.settings, TrainingSettings)
        check_protocol(settings)
        self._arithmetic = make_arithmetic(msg.public_key, self._terms, self.ledger)
        agreed = Agreement(settings)
        agreed.check_samples(self._half.samples, self._evaluation)
        self._half.prepare(settings, self._state)
        self._share = OwnShare(
            self._name,
            self._half,
            self._half.model,
            self._half.samples,
            n_classes=self._width,
            agreed=agreed,
            terms=self._terms,
            arithmetic=self._arithmetic,
        )
        self._watches_loss = msg.watch_loss
        self._agreed, self._awaited = agreed, (AskEncryptedOutputs, agreed.steps.start)
        return JoinedEncrypted(self._width, self._share.n_values)

    def on_ask_encrypted_outputs(self, msg: AskEncryptedOutputs) -> EncryptedOutputs:
        """Open the next step: [[H_k]] of its rows."""
        self._expect(msg)
        with self.ledger.phase("outputs"):
            self._outputs = self._share.outputs(msg.step)
        self._awaited = EncryptedResiduals, msg.step
        return EncryptedOutputs(self._arithmetic.seal(self._outputs, SEALED_BITS))

    def on_encrypted_residuals(self, msg: EncryptedResiduals) -> MaskedGradient:
        """[[J_k^T D + R]], once a step."""
        self._expect(msg)
        residuals = self._arithmetic.read(msg.residuals, self._outputs.shape)
        masked = self._arithmetic.hide(self._share.sums(msg.step, residuals))
        products = b""
        if self._watches_loss:
            products = self._arithmetic.send(self._arithmetic.inner(as_factors(self._outputs), residuals))
        self._awaited = OpenedGradient, msg.step
        return MaskedGradient(masked, products)

    def on_opened_gradient(self, msg: OpenedGradient) -> None:
        """Close the step: take the mask off, and descend."""
        self._expect(msg)
        self._share.descend(msg.step, self._arithmetic.reveal(msg.values))
        self._awaited = AskEncryptedOutputs, msg.step + 1

    def on_ask_scoring(self, msg: AskScoring) -> ScoredOutputs:
        """Outputs of rows to evaluate, in the clear: after training, row after row, each once."""
        if self._agreed is None or self._awaited != (AskEncryptedOutputs, self._agreed.steps.stop):
            raise RemoteProtocolError("rows are evaluated when training is over")
        n_rows = 0 if self._evaluation is None else len(self._evaluation)
        if self._evaluation is None or msg.start != self._scored or not msg.start < msg.stop <= n_rows:
            raise RemoteProtocolError(
                f"rows {msg.start}..{msg.stop} to evaluate; {self._scored} of {n_rows} have been, each is once"
            )
        self._scored = msg.stop
        with self.ledger.phase("scoring"):
            return ScoredOutputs(self._half.evaluate(self._evaluation, msg.start, msg.stop).cpu().numpy())

    def _expect(self, msg: AskEncryptedOutputs | EncryptedResiduals | OpenedGradient) -> None:
        """RemoteProtocolError unless this message is next."""
        if self._agreed is None:
            raise RemoteProtocolError("nothing has been agreed on yet")
        kind, step = self._awaited
        if step not in self._agreed.steps:
            raise RemoteProtocolError(f"{type(msg).__name__} of step {msg.step}: training is over")
        if type(msg) is not kind or msg.step != step:
            raise RemoteProtocolError(
                f"{type(msg).__name__} of step {msg.step}, while {kind.__name__} of step {step} is next"
            )
