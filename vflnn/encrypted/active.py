"""The active party of encrypted training: it holds the labels and leads; it holds no private key."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Generator, Mapping
from functools import reduce
from typing import Any

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
from vflparty.opening import Opening

from .. import losses
from ..agreement import Agreement
from ..course import Course
from ..messages import (
    ActiveSetup,
    HalfState,
    ModelRecipe,
    TrainedNetwork,
    TrainingSettings,
)
from ..models.tops import SumTop
from ..recipes import build_bottom
from ..samples import Samples
from ..scoring import ask_scores
from ..setups import read_frame, read_optional, read_samples
from ..split import TopHalf
from ..working import RandomStream
from .messages import (
    AskEncryptedOutputs,
    EncryptedActiveSetup,
    EncryptedOutputs,
    EncryptedResiduals,
    JoinedEncrypted,
    JoinEncrypted,
    MaskedGradient,
    OpenedGradient,
)
from .numbers import as_factors, decode_sums, encode_labels
from .share import Arithmetic, OwnShare, check_protocol, make_arithmetic
from .terms import Terms

LOSSES = ("taylor_logit", "logit")  # what training minimises, and what that approximates


class EncryptedActiveParty(Leader):
    """Labels, and perhaps columns with a bottom model of its own. Scores are the sum of all outputs.

    Parameters
    ----------
    settings : what all parties train by; sent to them
    labels : int64 class numbers (n_samples,), every row labelled
    passive_parties : names, in the parties' order
    coordinator : its name; "" with encryption="none"
    n_classes : width of all outputs
    terms : what it insists on
    bottom : its own bottom model (or a recipe); None where it has no columns
    loss : of the rows to evaluate, a name of LOSSES
    name, samples, evaluation, evaluation_labels, ids, seed, device, state : see vflnn.ActiveParty
    """

    setup_message = EncryptedActiveSetup
    result_message = TrainedNetwork
    state_message = HalfState

    def __init__(
        self,
        settings: TrainingSettings,
        labels: NDArray[np.generic],
        passive_parties: Collection[str],
        *,
        coordinator: str,
        n_classes: int,
        terms: Terms,
        name: str = "active",
        bottom: torch.nn.Module | ModelRecipe | None = None,
        samples: Samples | None = None,
        evaluation: Samples | None = None,
        evaluation_labels: NDArray[np.generic] | None = None,
        loss: str = "taylor_logit",
        ids: Collection[object] | None = None,
        seed: int = 0,
        device: str = "cpu",
        state: HalfState | None = None,
    ) -> None:
        check_protocol(settings)
        self._agreed = Agreement(settings)
        if samples is not None:
            self._agreed.check_samples(samples, evaluation)
        if (bottom is None) != (samples is None):
            raise ValueError("a bottom model needs samples, and samples need a bottom model")
        if not passive_parties:
            raise ValueError("encrypted training needs a passive party; with one party nothing crosses")
        if bool(coordinator) != (terms.encryption != "none"):
            raise ValueError(f"encryption={terms.encryption!r} and a coordinator called {coordinator!r}")
        if loss not in LOSSES:
            raise ValueError(f"encrypted training minimises 'taylor_logit', got loss={loss!r}")
        labels = checked_labels(np.asarray(labels), settings.n_samples, n_classes)
        if evaluation_labels is not None:
            evaluation_labels = losses.checked_labels(
                evaluation_labels, loss, settings.n_evaluation, n_classes
            )
        self._targets = encode_labels(labels, n_classes)
        stream = RandomStream(bottom.seed if isinstance(bottom, ModelRecipe) else seed, device)
        if isinstance(bottom, ModelRecipe):
            with stream.working():
                bottom = build_bottom(bottom, samples.shape, n_classes)  # type: ignore[union-attr]
        n_outputs = len(passive_parties) + (bottom is not None)
        self.half = TopHalf(bottom, SumTop((n_classes,) * n_outputs), samples, labels, loss, stream, device)
        self.half.prepare(settings, state)
        self._name, self._passive, self._coordinator = name, tuple(passive_parties), coordinator
        self._n_classes, self._terms = n_classes, terms
        self._evaluation, self._evaluation_labels = evaluation, evaluation_labels
        self._rows = RowsDigest.of(range(settings.n_samples) if ids is None else ids)

    @classmethod
    def from_setup(cls, setup: EncryptedActiveSetup) -> EncryptedActiveParty:
        plain = read_frame(setup.plain, ActiveSetup)
        party = cls(
            read_frame(plain.settings, TrainingSettings),
            plain.labels,
            plain.passive_parties,
            coordinator=setup.coordinator,
            n_classes=plain.n_outputs,
            terms=Terms.from_json(setup.terms),
            name=plain.party,
            bottom=read_optional(plain.bottom, ModelRecipe),
            samples=read_samples(plain.samples, plain.device),
            evaluation=read_samples(plain.evaluation, plain.device),
            evaluation_labels=plain.evaluation_labels,
            loss=plain.loss,
            device=plain.device,
            state=read_optional(plain.state, HalfState),
        )
        party._rows = read_frame(plain.rows, RowsDigest)
        return party

    def export_state(self) -> HalfState:
        return self.half.export_state()

    # ------------------------------------------------------------ the conversation

    def conversation(self) -> Conversation:
        """Key and join; then step after step; evaluate at the end."""
        yield from compare_rows(self._passive, self._rows)
        opening = Opening(self._coordinator)
        public_key = yield from opening.ask_key()
        arithmetic = make_arithmetic(public_key, self._terms, self.ledger)
        yield from self._join(public_key)
        share = self._own_share(arithmetic)
        course = Course()
        scores: NDArray[Any] = np.zeros((0, 0), dtype=np.float32)
        for epoch in self._agreed.epochs:
            self.half.start_epoch(epoch)
            for step in self._agreed.order.steps(epoch):
                start = time.perf_counter()
                loss = yield from self._step(step, share, arithmetic, opening)
                course.note_step(loss, math.nan, time.perf_counter() - start)
            if epoch == self._agreed.epochs[-1]:  # once: every evaluation shows outputs
                scores = yield from self._evaluate()
            course.note_epoch(*self._figures(scores))
            self._tell(epoch, course)
        if not self._agreed.epochs:
            scores = yield from self._evaluate()
        return course.result(codec.encode(self.export_state()), scores)

    def _step(
        self, step: int, share: OwnShare | None, arithmetic: Arithmetic, opening: Opening
    ) -> Generator[Round, Round, float]:
        """Section by section as in `vflnn.encrypted`; returns the loss of the batch, nan where nobody watches it."""
        targets = self._targets[self._agreed.order.rows(step)]
        own = np.zeros_like(targets) if share is None else share.outputs(step)
        answers = yield to_all(self._passive, AskEncryptedOutputs(step))
        outputs = [
            self._read(arithmetic, party, answer.outputs, targets.shape)
            for party, answer in _all_of(EncryptedOutputs, answers).items()
        ]
        residuals = arithmetic.add(reduce(arithmetic.add, outputs), own - targets)
        # Blinded for the passive parties; the sums here are of the same plaintexts.
        answers = yield to_all(self._passive, EncryptedResiduals(step, arithmetic.send(residuals)))
        masked = _all_of(MaskedGradient, answers)
        parts = [] if share is None else [share.sums(step, residuals)]
        if self._terms.watch_loss:
            parts.append(self._loss_sum(arithmetic, masked, as_factors(own - targets), residuals))
        asked = {party: answer.gradient for party, answer in masked.items()}
        if parts:
            asked[self._name] = arithmetic.hide(arithmetic.joined(parts))
        opened = yield from opening.open(asked)
        values = arithmetic.reveal(opened[self._name]) if parts else np.zeros(0, dtype=object)
        if share is not None:
            share.descend(step, values[: share.n_values])
        yield {party: OpenedGradient(step, opened[party]) for party in self._passive}
        return self._loss(values[-1:], len(targets)) if self._terms.watch_loss else math.nan

    # ------------------------------------------------------------ its parts

    def _join(self, public_key: bytes) -> Generator[Round, Round, None]:
        join = JoinEncrypted(codec.encode(self._agreed.settings), public_key, self._terms.watch_loss)
        answers = yield to_all(self._passive, join)
        for party, answer in _all_of(JoinedEncrypted, answers).items():
            if answer.width != self._n_classes:
                raise RemoteProtocolError(
                    f"its outputs have {answer.width} columns, there are {self._n_classes} classes", party
                )

    def _own_share(self, arithmetic: Arithmetic) -> OwnShare | None:
        if self.half.bottom is None or self.half.samples is None:
            return None
        return OwnShare(
            self._name,
            self.half,
            self.half.bottom,
            self.half.samples,
            n_classes=self._n_classes,
            agreed=self._agreed,
            terms=self._terms,
            arithmetic=arithmetic,
        )

    def _read(self, arithmetic: Arithmetic, party: str, payload: bytes, shape: tuple[int, ...]) -> Any:
        """Values of a party, which an error names."""
        try:
            return arithmetic.read(payload, shape)
        except RemoteProtocolError as error:
            raise error.by(party) from error

    def _loss_sum(
        self,
        arithmetic: Arithmetic,
        masked: Mapping[str, MaskedGradient],
        own: NDArray[np.int64],
        residuals: Any,
    ) -> Any:
        """[[sum of D o (z - 2 y)]]: every party has multiplied the residuals by its own outputs."""
        parts = [self._read(arithmetic, party, answer.products, (1,)) for party, answer in masked.items()]
        return reduce(arithmetic.add, [arithmetic.inner(own, residuals), *parts])

    def _loss(self, squares: NDArray[np.object_], n_rows: int) -> float:
        """Mean of log 2 - yz/2 + z^2/8 over rows, summed over classes: (z - 2y)^2 / 8 + log 2 - 1/2."""
        return float(decode_sums(squares)[0]) / (8 * n_rows) + self._n_classes * (math.log(2) - 0.5)

    def _evaluate(self) -> Generator[Round, Round, NDArray[Any]]:
        """Scores of the rows to evaluate."""
        widths = dict.fromkeys(self._passive, self._n_classes)
        return (
            yield from ask_scores(self.half, self._evaluation, widths, self._agreed.settings.n_evaluation)
        )

    def _figures(self, scores: NDArray[Any]) -> tuple[float, float]:
        """Loss and accuracy of the rows to evaluate, once there are scores."""
        if self._evaluation_labels is None or not len(scores):
            return math.nan, math.nan
        return self.half.figures(scores, self._evaluation_labels)

    def _tell(self, epoch: int, course: Course) -> None:
        done = epoch + 1 - self._agreed.epochs.start
        self.report(json.dumps(course.last_epoch(epoch)), done, len(self._agreed.epochs))


def checked_labels(labels: NDArray[Any], n_rows: int, n_classes: int) -> NDArray[np.int64]:
    """Class numbers of all rows; ValueError says what else there is."""
    if labels.shape != (n_rows,):
        raise ValueError(f"labels of shape {labels.shape} for {n_rows} rows")
    if labels.dtype.kind not in "iu":
        raise ValueError(f"encrypted training takes class numbers, got labels of {labels.dtype}")
    wrong = int(((labels < 0) | (labels >= n_classes)).sum())
    if wrong:
        raise ValueError(
            f"{wrong} of {n_rows} labels are not in 0..{n_classes - 1}: encrypted training takes labelled rows only"
        )
    return labels.astype(np.int64)


def _all_of(kind: type[Any], answers: Round) -> dict[str, Any]:
    """The answers, all of this kind; RemoteProtocolError names who sent another."""
    for party, answer in answers.items():
        if not isinstance(answer, kind):
            raise RemoteProtocolError(f"{type(answer).__name__} where {kind.__name__} is due", party)
    return dict(answers)
