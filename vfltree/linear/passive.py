"""A passive party of a linear model: features and its own coefficients; no label, no key."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar, TypeVar

import numpy as np

from vflparty import Message, Party, RemoteProtocolError, RowsDisagreeError, codec

from ..rows import rows_digest
from .arithmetic import Arithmetic, make_arithmetic
from .columns import FixedColumns
from .exact.hiding import Hiding
from .exact.messages import ClearScores, MaskKey, NextExactStep, OfferMaskKey, TakeMaskKeys
from .exact.passive import ExactAnswers
from .features import decode_features, fixed_scores, float_scores
from .messages import (
    FinishTraining,
    HiddenScores,
    JoinedLinear,
    JoinLinear,
    LinearPassiveSetup,
    LinearScores,
    PassiveCoefficients,
    SendLinearScores,
    TrainingFinished,
)
from .own import OwnModel
from .powers.messages import NextPowers, SealedPowers
from .powers.passive import PowersAnswers
from .rows.messages import HalfSums, OtherHalf, SealedRows, ShareRows
from .rows.passive import RowsAnswers
from .scores.messages import MaskedSums, NextStep, SealedResiduals, SealedScores
from .scores.passive import ResidualsSummed, ScoresAnswers
from .shared import SharedSettings
from .steps import StepKeeper

Answers = ScoresAnswers | PowersAnswers | ExactAnswers | RowsAnswers
Kind = TypeVar("Kind")


class LinearPassiveParty(Party):
    """A party with features only.

    features : float64 (n_rows, n_columns), or SciPy CSR
    ids : identifiers of the rows, in the order agreed with the others (only a digest leaves); None: rows are rows
    start : float64 (n_columns, n_outputs) to start from; None: 0
    model : its half of a trained model, to predict
    allow_weak_key : accept a key that is fit for tests only
    allow_small_batches : answer batches of any size
    """

    setup_message = LinearPassiveSetup
    state_message = PassiveCoefficients
    messages: ClassVar[tuple[type[Message], ...]] = (
        JoinLinear,
        NextStep,
        SealedResiduals,
        NextPowers,
        ShareRows,
        HalfSums,
        OfferMaskKey,
        TakeMaskKeys,
        NextExactStep,
        FinishTraining,
        SendLinearScores,
    )

    def __init__(
        self,
        features: Any,
        *,
        name: str = "passive",
        ids: Collection[Any] | None = None,
        ids_digest: bytes | None = None,
        start: np.ndarray | None = None,
        model: PassiveCoefficients | None = None,
        allow_weak_key: bool = False,
        allow_small_batches: bool = False,
        n_jobs: int = 1,
    ) -> None:
        self.name = name
        self._features = features
        self._ids_digest = rows_digest(ids, features.shape[0]) if ids_digest is None else ids_digest
        self._start, self._model = start, model
        self._alone = model is None or model.alone
        self._unit = 1.0 if model is None else model.unit
        self._hiding = Hiding()
        self._allow_weak_key, self._small_batches = allow_weak_key, allow_small_batches
        self._n_jobs = n_jobs
        self._own: OwnModel | None = None
        self._keeper: StepKeeper | None = None
        self._answers: Answers | None = None
        self._finished = False

    @classmethod
    def from_setup(cls, setup: LinearPassiveSetup) -> LinearPassiveParty:
        return cls(
            decode_features(setup.features),
            name=setup.party,
            ids_digest=setup.ids_digest,
            start=setup.start if setup.start.size else None,
            model=decode_model(setup.model),
            allow_weak_key=setup.allow_weak_key,
            allow_small_batches=setup.allow_small_batches,
            n_jobs=setup.n_jobs,
        )

    def export_state(self) -> PassiveCoefficients:
        """Its half of the model, for itself to keep."""
        if self._own is not None:
            return PassiveCoefficients(self._own.coefficients, self._unit, self._alone)
        if self._model is None:
            raise RemoteProtocolError("this party has neither trained nor been given a model")
        return self._model

    # ---- training

    def on_join_linear(self, msg: JoinLinear) -> JoinedLinear:
        """Once: check that both hold the same rows, take the key and the settings."""
        if self._own is not None:
            raise RemoteProtocolError("training has been joined already")
        self._check_rows(msg.ids_digest, msg.n_rows)
        try:
            shared = SharedSettings.from_json(msg.settings_json)
        except (ValueError, TypeError) as error:
            raise RemoteProtocolError(f"settings of the active party: {error}") from error
        self._alone, self._unit = shared.n_parties == 2, shared.unit
        arithmetic = make_arithmetic(
            msg.public_key, allow_weak_key=self._allow_weak_key, n_jobs=self._n_jobs, ledger=self.ledger
        )
        self._own = self._own_model(shared)
        self._keeper = StepKeeper(self._own, arithmetic, shared, small_batches=self._small_batches)
        self._answers = self._exchange(shared, arithmetic, self._own, self._keeper)
        return JoinedLinear(self._own.columns.n_columns)

    def _own_model(self, shared: SharedSettings) -> OwnModel:
        columns = FixedColumns(self._features)
        shape = (columns.n_coefficients, shared.n_outputs)
        start = np.zeros(shape) if self._start is None else self._start
        if start.shape != shape:
            raise RemoteProtocolError(
                f"{shared.n_outputs} outputs; the coefficients here have shape {start.shape}"
            )
        return OwnModel(columns, shared, start)

    def _exchange(
        self, shared: SharedSettings, arithmetic: Arithmetic, own: OwnModel, keeper: StepKeeper
    ) -> Answers:
        if shared.exchange == "rows":
            return RowsAnswers(own, arithmetic, keeper)
        if shared.residual == "exact":
            return ExactAnswers(own, arithmetic, keeper, None if self._alone else self._hiding)
        if shared.order > 1:
            return PowersAnswers(own, arithmetic, keeper)
        return ScoresAnswers(own, arithmetic, keeper)

    def on_next_step(self, msg: NextStep) -> SealedScores:
        return self._in(ScoresAnswers).next_step(msg)

    def on_sealed_residuals(self, msg: SealedResiduals) -> MaskedSums:
        return self._in(ResidualsSummed).sealed_residuals(msg)

    def on_next_powers(self, msg: NextPowers) -> SealedPowers:
        return self._in(PowersAnswers).next_powers(msg)

    def on_share_rows(self, msg: ShareRows) -> SealedRows:
        return self._in(RowsAnswers).share_rows(msg)

    def on_half_sums(self, msg: HalfSums) -> OtherHalf:
        return self._in(RowsAnswers).half_sums(msg)

    def on_offer_mask_key(self, msg: OfferMaskKey) -> MaskKey:
        return self._hiding.offer_mask_key(msg)

    def on_take_mask_keys(self, msg: TakeMaskKeys) -> None:
        self._hiding.take_mask_keys(msg)

    def on_next_exact_step(self, msg: NextExactStep) -> ClearScores:
        return self._in(ExactAnswers).next_exact_step(msg)

    def on_finish_training(self, msg: FinishTraining) -> TrainingFinished:
        """Once: the last opened sums. Nothing more is answered afterwards."""
        self._in(object)
        assert self._keeper is not None and self._own is not None
        if msg.opened:
            self._keeper.take_opened(msg.opened, msg.curvature)
        self._finished = True
        return TrainingFinished(self._own.settled)

    def _in(self, kind: type[Kind]) -> Kind:
        """The exchange in progress, which must be one that has such messages."""
        if not isinstance(self._answers, kind) or self._answers is None or self._finished:
            raise RemoteProtocolError("no training of this kind is in progress")
        return self._answers

    def _check_rows(self, digest: bytes, n_rows: int) -> None:
        own_rows = self._features.shape[0]
        if n_rows != own_rows:
            raise RowsDisagreeError(f"{n_rows} rows are announced, {own_rows} are here")
        if digest != self._ids_digest:
            raise RowsDisagreeError("the row IDs, or their order, are not those announced")

    # ---- prediction

    def on_send_linear_scores(self, msg: SendLinearScores) -> LinearScores | HiddenScores:
        """X_k w_k of all rows here, once; hidden among those of other passive parties where there are any."""
        self._check_rows(msg.ids_digest, msg.n_rows)
        scores = float_scores(self._features, self.export_state().coefficients)
        if self._alone:
            return LinearScores(scores)
        try:
            return HiddenScores(self._hiding.hide(fixed_scores(scores, self._unit), "scores of new rows"))
        except ValueError as error:
            raise RemoteProtocolError(f"scores are asked for once: {error}") from error


def decode_model(data: bytes) -> PassiveCoefficients | None:
    """A passive party's half out of its setup; None where there is none yet."""
    if not data:
        return None
    model = codec.decode(data, (PassiveCoefficients,))
    assert isinstance(model, PassiveCoefficients)
    return model
