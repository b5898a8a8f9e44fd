"""A passive party of split training: it answers with outputs of its bottom model and steps on their gradients."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

import torch

from vflparty import Message, Party, RemoteProtocolError, RowsDigest, check_rows

from .agreement import Agreement
from .messages import (
    AskOutputs,
    AskScoring,
    CutGradient,
    HalfState,
    Joined,
    ModelRecipe,
    PassiveSetup,
    ScoredOutputs,
    TrainingSettings,
)
from .protocols.registry import make_compressor, make_protocol
from .protocols.uncompressed import checked_array
from .recipes import build_bottom
from .samples import Samples
from .setups import read_frame, read_optional, read_samples
from .split import BottomHalf
from .working import RandomStream


class PassiveParty(Party):
    """Columns and a bottom model; no label.

    Parameters
    ----------
    model : torch.nn.Module from a batch of its samples to outputs (n_rows, width), or a ModelRecipe
    samples : its training rows
    width : of its outputs
    name : what the others call it
    evaluation : rows of which it gives outputs without training on them
    ids : identifiers of the training rows, in the agreed order (only a digest leaves); None: rows are rows
    seed : of its random numbers where `model` is a module; a recipe has its own
    n_threads : of its work, see RandomStream
    state : where training goes on from
    """

    setup_message = PassiveSetup
    state_message = HalfState
    messages: ClassVar[tuple[type[Message], ...]] = (
        RowsDigest, TrainingSettings, AskOutputs, CutGradient, AskScoring,
    )  # fmt: skip

    def __init__(
        self,
        model: torch.nn.Module | ModelRecipe,
        samples: Samples,
        *,
        width: int,
        name: str = "passive",
        evaluation: Samples | None = None,
        ids: Collection[object] | None = None,
        seed: int = 0,
        device: str = "cpu",
        n_threads: int = 1,
        state: HalfState | None = None,
    ) -> None:
        stream = RandomStream(model.seed if isinstance(model, ModelRecipe) else seed, device, n_threads)
        if isinstance(model, ModelRecipe):
            with stream.working():
                model = build_bottom(model, samples.shape, width)
        self._name, self._width = name, width
        self._half = BottomHalf(model, samples, stream, device)
        self._evaluation = evaluation
        self._rows = RowsDigest.of(range(len(samples)) if ids is None else ids)
        self._state = state
        self._agreed: Agreement | None = None
        self._next_step = 0
        self._waiting: torch.Tensor | None = None  # output of the open step, with its graph

    @classmethod
    def from_setup(cls, setup: PassiveSetup) -> PassiveParty:
        party = cls(
            read_frame(setup.model, ModelRecipe),
            Samples.from_frame(setup.samples, setup.device),
            width=setup.width,
            name=setup.party,
            evaluation=read_samples(setup.evaluation, setup.device),
            device=setup.device,
            n_threads=setup.n_threads,
            state=read_optional(setup.state, HalfState),
        )
        party._rows = read_frame(setup.rows, RowsDigest)
        return party

    def export_state(self) -> HalfState:
        return self._half.export_state()

    def on_rows_digest(self, msg: RowsDigest) -> RowsDigest:
        return check_rows(self._rows, msg)

    def on_training_settings(self, msg: TrainingSettings) -> Joined:
        """Agree, or say why not; only once."""
        if self._agreed is not None:
            raise RemoteProtocolError("training has been agreed on already")
        agreed = Agreement(msg)
        agreed.check_samples(self._half.samples, self._evaluation)
        self._protocol = make_protocol(msg.protocol, agreed.protocol_options, seed=msg.seed)
        self._compressor = make_compressor(
            msg.compressor, agreed.compressor_options, seed=msg.seed, party=self._name
        )
        self._half.prepare(msg, self._state)
        self._agreed, self._next_step = agreed, agreed.steps.start
        return Joined(self._width)

    def on_ask_outputs(self, msg: AskOutputs) -> Message:
        """Open the next step: H_k of its rows."""
        agreed = self._agreement()
        if msg.step != self._next_step or self._waiting is not None or msg.step not in agreed.steps:
            raise RemoteProtocolError(
                f"outputs of step {msg.step} asked for, step {self._next_step} of {agreed.steps.stop} "
                f"{'is open' if self._waiting is not None else 'is next'}"
            )
        with self.ledger.phase("outputs"):
            self._half.start_epoch(agreed.order.epoch_of(msg.step))
            rows = agreed.order.rows(msg.step)
            self._waiting = self._checked(self._half.output(rows))
            return self._compressor.pack(self._waiting.detach().cpu().numpy(), msg.step, rows)

    def on_cut_gradient(self, msg: CutGradient) -> None:
        """Close the step: learn from g_k, as the protocol says."""
        agreed, output = self._agreement(), self._waiting
        if output is None or msg.step != self._next_step:
            open_step = "no step" if output is None else f"step {self._next_step}"
            raise RemoteProtocolError(f"a gradient of step {msg.step}, while {open_step} is open")
        gradient = checked_array(msg.gradient, tuple(output.shape), "gradients")
        with self.ledger.phase("local steps"):
            self._compressor.note_gradient(gradient)
            rows = agreed.order.rows(msg.step)
            self._protocol.follow(self._half, rows, output, torch.from_numpy(gradient).to(output))
        self._waiting, self._next_step = None, msg.step + 1

    def on_ask_scoring(self, msg: AskScoring) -> ScoredOutputs:
        """Outputs of rows to evaluate, in evaluation mode."""
        self._agreement()
        n_rows = 0 if self._evaluation is None else len(self._evaluation)
        if self._evaluation is None or not 0 <= msg.start < msg.stop <= n_rows:
            raise RemoteProtocolError(f"rows {msg.start}..{msg.stop} to evaluate, {n_rows} are there")
        with self.ledger.phase("scoring"):
            outputs = self._checked(self._half.evaluate(self._evaluation, msg.start, msg.stop))
            return ScoredOutputs(outputs.cpu().numpy())

    def _agreement(self) -> Agreement:
        if self._agreed is None:
            raise RemoteProtocolError("nothing has been agreed on yet")
        return self._agreed

    def _checked(self, output: torch.Tensor) -> torch.Tensor:
        if output.ndim != 2 or output.shape[1] != self._width:
            raise ValueError(
                f"its bottom model gives outputs of shape {tuple(output.shape)}, expected (n_rows, {self._width})"
            )
        return output
