"""The active party of split training: it holds the labels and the top model, and leads."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Generator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from vflparty import (
    Conversation,
    Leader,
    RemoteProtocolError,
    Round,
    RowsDigest,
    codec,
    compare_rows,
    to_all,
)

from .agreement import Agreement
from .course import Course
from .losses import checked_labels
from .messages import (
    ActiveSetup,
    AskOutputs,
    CutGradient,
    HalfState,
    Joined,
    ModelRecipe,
    TrainedNetwork,
    TrainingSettings,
)
from .protocols.registry import make_compressor, make_protocol
from .recipes import build_bottom, build_top
from .samples import Samples
from .scoring import SCORING_ROWS, ask_scores
from .setups import read_frame, read_optional, read_samples
from .split import Rows, TopHalf
from .working import RandomStream


class ActiveParty(Leader):
    """Labels, the top model, and perhaps columns with a bottom model of its own.

    Parameters
    ----------
    settings : what all parties train by; sent to them
    labels : int64 class numbers (n_samples,), -1 for a row without label; float targets (n_samples, n_outputs)
    widths : party name -> width of its outputs, passive parties in their order
    top : torch.nn.Module called with the list of outputs, its own first, or a ModelRecipe
    n_outputs : scores per sample
    bottom, own_width : its own bottom model (or a recipe) and its width; None where it has no columns
    samples, evaluation : its own rows to train on and to evaluate
    evaluation_labels : as `labels`; None where scores are wanted and not a figure
    loss : a name of losses.LOSSES
    ids : identifiers of the training rows; None: rows are rows
    seed : of its random numbers, where models are modules
    n_threads : of its work, see RandomStream
    state : where training goes on from
    """

    setup_message = ActiveSetup
    result_message = TrainedNetwork
    state_message = HalfState

    def __init__(
        self,
        settings: TrainingSettings,
        labels: NDArray[np.generic],
        widths: Mapping[str, int],
        top: torch.nn.Module | ModelRecipe,
        *,
        n_outputs: int,
        bottom: torch.nn.Module | ModelRecipe | None = None,
        own_width: int | None = None,
        samples: Samples | None = None,
        evaluation: Samples | None = None,
        evaluation_labels: NDArray[np.generic] | None = None,
        loss: str = "cross_entropy",
        ids: Collection[object] | None = None,
        seed: int = 0,
        device: str = "cpu",
        n_threads: int = 1,
        state: HalfState | None = None,
    ) -> None:
        self._agreed = Agreement(settings)
        if samples is not None:
            self._agreed.check_samples(samples, evaluation)
        labels = checked_labels(labels, loss, settings.n_samples, n_outputs)
        if evaluation_labels is not None:
            evaluation_labels = checked_labels(evaluation_labels, loss, settings.n_evaluation, n_outputs)
        stream = RandomStream(
            next((m.seed for m in (bottom, top) if isinstance(m, ModelRecipe)), seed), device, n_threads
        )
        with stream.working():
            if isinstance(bottom, ModelRecipe):
                assert samples is not None and own_width is not None
                bottom = build_bottom(bottom, samples.shape, own_width)
            if isinstance(top, ModelRecipe):
                own = (own_width,) if bottom is not None and own_width is not None else ()
                top = build_top(top, (*own, *widths.values()), n_outputs)
        self.half = TopHalf(bottom, top, samples, labels, loss, stream, device)
        if len(labels) and not self.half.n_labelled(np.arange(len(labels))):
            raise ValueError(f"none of {len(labels)} rows has a label to learn from")
        self.half.prepare(settings, state)
        self._widths = dict(widths)
        self._evaluation, self._evaluation_labels = evaluation, evaluation_labels
        self._rows = RowsDigest.of(range(settings.n_samples) if ids is None else ids)
        self._protocol = make_protocol(settings.protocol, self._agreed.protocol_options, seed=settings.seed)
        self._links = {
            party: make_compressor(
                settings.compressor, self._agreed.compressor_options, seed=settings.seed, party=party
            )
            for party in widths
        }

    @classmethod
    def from_setup(cls, setup: ActiveSetup) -> ActiveParty:
        own_width, *widths = setup.widths
        party = cls(
            read_frame(setup.settings, TrainingSettings),
            setup.labels,
            dict(zip(setup.passive_parties, widths, strict=True)),
            read_frame(setup.top, ModelRecipe),
            n_outputs=setup.n_outputs,
            bottom=read_optional(setup.bottom, ModelRecipe),
            own_width=own_width,
            samples=read_samples(setup.samples, setup.device),
            evaluation=read_samples(setup.evaluation, setup.device),
            evaluation_labels=setup.evaluation_labels,
            loss=setup.loss,
            device=setup.device,
            n_threads=setup.n_threads,
            state=read_optional(setup.state, HalfState),
        )
        party._rows = read_frame(setup.rows, RowsDigest)
        return party

    def export_state(self) -> HalfState:
        return self.half.export_state()

    # ------------------------------------------------------------ the conversation

    def conversation(self) -> Conversation:
        """Agree; then, epoch by epoch, lead the protocol's exchanges and evaluate."""
        yield from compare_rows(self._widths, self._rows)
        yield from self._join()
        course = Course()
        scores: NDArray[np.generic] = np.zeros((0, 0), dtype=np.float32)
        for epoch in self._agreed.epochs:
            self.half.start_epoch(epoch)
            for step in self._agreed.order.steps(epoch):
                yield from self._train(step, course)
            if self._evaluation_labels is not None:
                scores = yield from self._evaluate()
            course.note_epoch(*self._figures(scores))
            self._tell(epoch, course)
        if self._agreed.settings.n_evaluation and not scores.size:
            scores = yield from self._evaluate()
        return course.result(codec.encode(self.export_state()), scores)

    def rows(self, step: int) -> Rows:
        return self._agreed.order.rows(step)

    def ask_outputs(self, step: int) -> Generator[Round, Round, dict[str, torch.Tensor]]:
        """One round: H_k of every passive party."""
        answers = yield to_all(self._widths, AskOutputs(step))
        n_rows = len(self.rows(step))
        outputs = {}
        for party, width in self._widths.items():
            try:
                array = self._links[party].unpack(answers[party], step, (n_rows, width))
            except RemoteProtocolError as error:
                raise error.by(party) from error
            outputs[party] = self.half.received(array)
        return outputs

    def send_gradients(
        self, step: int, gradients: Mapping[str, torch.Tensor]
    ) -> Generator[Round, Round, None]:
        """One round: g_k to every passive party."""
        yield {party: CutGradient(step, gradient.cpu().numpy()) for party, gradient in gradients.items()}

    # ------------------------------------------------------------ its parts

    def _join(self) -> Generator[Round, Round, None]:
        answers = yield to_all(self._widths, self._agreed.settings)
        for party, answer in answers.items():
            assert isinstance(answer, Joined)
            if answer.width != self._widths[party]:
                raise RemoteProtocolError(
                    f"its outputs have {answer.width} columns, the top model takes {self._widths[party]}",
                    party,
                )

    def _train(self, step: int, course: Course) -> Generator[Round, Round, None]:
        start = time.perf_counter()
        exchange = yield from self._protocol.lead(self, step)
        # Without a label in the batch there is no loss, and gradients are zero.
        if not np.isfinite(exchange.loss) and self.half.n_labelled(self.rows(step)):
            raise OverflowError(
                f"the loss of step {step} is {exchange.loss}: training has diverged; lower the learning rate or scale "
                "the columns"
            )
        accuracy = self.half.accuracy(self.rows(step), exchange.scores)
        course.note_step(exchange.loss, accuracy, time.perf_counter() - start)

    def _evaluate(self) -> Generator[Round, Round, NDArray[np.generic]]:
        """Scores of the rows to evaluate; at once where batches are whole, as the nodes of a graph are."""
        settings = self._agreed.settings
        n_rows = settings.n_evaluation
        size = n_rows if settings.batch_size is None else SCORING_ROWS
        return (yield from ask_scores(self.half, self._evaluation, self._widths, n_rows, size))

    def _figures(self, scores: NDArray[np.generic]) -> tuple[float, float]:
        """Loss and score of the rows to evaluate."""
        if self._evaluation_labels is None:
            return float("nan"), float("nan")
        return self.half.figures(scores, self._evaluation_labels)

    def _tell(self, epoch: int, course: Course) -> None:
        done = epoch + 1 - self._agreed.epochs.start
        self.report(json.dumps(course.last_epoch(epoch)), done, len(self._agreed.epochs))
