"""The active party of a linear model: labels, weights, the intercept, and the lead. It holds no private key."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from typing import Any

import numpy as np

from vflparty import Conversation, Leader, RemoteProtocolError, to_all
from vflparty.opening import Opening
from vflparty.party import Round

from ..rows import rows_digest
from .arithmetic import Arithmetic, make_arithmetic
from .batches import SMALL_BATCH, least_batch
from .columns import FixedColumns
from .early_stopping import Patience
from .exact.active import ExactLead
from .features import decode_features
from .leading import Lead
from .messages import (
    FinishTraining,
    JoinedLinear,
    JoinLinear,
    LinearActiveSetup,
    LinearResult,
    TrainingFinished,
)
from .own import OwnModel
from .powers.active import PowersLead
from .residuals import Targets
from .rows.active import RowsLead
from .scores.active import ScoresLead
from .settings import LinearSettings
from .shared import SharedSettings


class LinearActiveParty(Leader):
    """The party with the labels. Leads the conversation; see `vfltree.linear` for who learns what.

    Parameters
    ----------
    features : float64 (n_rows, n_columns), or SciPy CSR; may have no columns
    targets : float64 (n_rows, n_outputs): 1 at a row's class and else 0, or values
    passive_parties : names
    coordinator : its name; "" with encryption="none"
    settings : see `LinearSettings`
    weights : float64 (n_rows,), not negative; None: all one
    ids : identifiers of the rows in order; None: rows are rows
    start : float64 (n_coefficients, n_outputs), the intercept last; None: 0, and the intercept of the mean
    random_seed : of the order of rows in batches; None draws it from the system. It never reaches the cipher.
    """

    setup_message = LinearActiveSetup
    result_message = LinearResult

    def __init__(
        self,
        features: Any,
        targets: np.ndarray,
        *,
        passive_parties: Sequence[str],
        coordinator: str,
        settings: LinearSettings,
        name: str = "active",
        weights: np.ndarray | None = None,
        ids: Collection[Any] | None = None,
        ids_digest: bytes | None = None,
        start: np.ndarray | None = None,
        random_seed: int | None = None,
    ) -> None:
        self.name = name
        self._columns = FixedColumns(features, intercept=settings.fit_intercept)
        self._targets = Targets(np.asarray(targets, dtype=np.float64), weights, settings)
        self._passive = tuple(passive_parties)
        check_exchange(settings, len(self._passive), self._targets.weights is not None, features)
        self._coordinator = coordinator
        self._settings = settings
        n_rows = self._columns.n_rows
        self._ids_digest = rows_digest(ids, n_rows) if ids_digest is None else ids_digest
        self._start = self._first_coefficients() if start is None else start
        self._rng = np.random.default_rng(random_seed)

    @classmethod
    def from_setup(cls, setup: LinearActiveSetup) -> LinearActiveParty:
        return cls(
            decode_features(setup.features),
            setup.targets,
            name=setup.party,
            passive_parties=setup.passive_parties,
            coordinator=setup.coordinator,
            settings=LinearSettings.from_json(setup.settings_json),
            weights=setup.weights if len(setup.weights) else None,
            ids_digest=setup.ids_digest,
            start=setup.start if setup.start.size else None,
            random_seed=setup.random_seed,
        )

    def _first_coefficients(self) -> np.ndarray:
        start = np.zeros((self._columns.n_coefficients, self._targets.y.shape[1]))
        if self._settings.fit_intercept:
            start[-1] = self._targets.start
        return start

    # ---- the conversation

    def conversation(self) -> Conversation:
        """Key and join, then step after step; returns the active party's half of the model."""
        shared = self._targets.shared(1 + len(self._passive))
        opening = Opening(self._coordinator)
        public_key = yield from opening.ask_key()
        arithmetic = make_arithmetic(
            public_key,
            allow_weak_key=self._settings.allow_weak_key,
            n_jobs=self._settings.n_jobs,
            ledger=self.ledger,
        )
        widths = yield from self._join(shared, public_key)
        own = OwnModel(self._columns, shared, self._start)
        lead = self._exchange(own, arithmetic, opening, widths)
        yield from lead.begin()
        n_epochs, converged = yield from self._epochs(lead)
        opened = lead.take_opened()
        answers = yield {party: FinishTraining(opened[party], lead.curvature) for party in self._passive}
        settled = [isinstance(answer, TrainingFinished) and answer.settled for answer in answers.values()]
        converged = converged or (own.settled and all(settled))
        return self._result(own.coefficients, n_epochs, converged, lead.losses)

    def _exchange(
        self, own: OwnModel, arithmetic: Arithmetic, opening: Opening, widths: dict[str, int]
    ) -> Lead:
        common = (self.name, self._passive, own, self._targets, arithmetic, opening)
        if self._settings.exchange == "rows":
            return RowsLead(*common, n_columns=widths)
        if self._settings.order > 1:
            return PowersLead(*common)
        return (ExactLead if self._settings.residual == "exact" else ScoresLead)(*common)

    def _join(self, shared: SharedSettings, public_key: bytes) -> Generator[Round, Round, dict[str, int]]:
        """party -> number of its columns."""
        join = JoinLinear(self._ids_digest, self._columns.n_rows, shared.to_json(), public_key)
        answers = yield to_all(self._passive, join)
        widths = {self.name: self._columns.n_columns}
        for party, answer in answers.items():
            assert isinstance(answer, JoinedLinear)
            if answer.n_columns < 1:
                raise RemoteProtocolError(f"{answer.n_columns} columns", party)
            widths[party] = answer.n_columns
        check_batches(self._settings, widths)
        return widths

    def _epochs(self, lead: Lead) -> Generator[Round, Round, tuple[int, bool]]:
        """Number of epochs, and whether every party had settled."""
        step = 0
        patience = Patience(int(self._settings.n_iter_no_change), float(self._settings.tol))
        for epoch in range(self._settings.max_iter):
            self.report(f"epoch {epoch + 1}", epoch, self._settings.max_iter)
            for rows in self._batches():
                settled = yield from lead.step(step, rows)
                if settled:
                    return epoch, True
                step += 1
            lead.end_epoch()
            if self._settings.early_stopping and patience.is_over(lead.losses[-1]):
                return epoch + 1, True
        return int(self._settings.max_iter), False

    def _batches(self) -> Iterator[np.ndarray | None]:
        """Rows of the batches of one epoch, in a new order each; none is smaller than batch_size."""
        n_rows, size = self._columns.n_rows, self._settings.batch_size
        n_batches = max(1, n_rows // size) if size else 1
        if n_batches == 1:
            yield None
            return
        for rows in np.array_split(self._rng.permutation(n_rows), n_batches):
            yield np.sort(rows)

    def _result(
        self, coefficients: np.ndarray, n_epochs: int, converged: bool, losses: list[float]
    ) -> LinearResult:
        n_columns = self._columns.n_columns
        intercept = coefficients[n_columns:].sum(axis=0)  # one row, or none
        return LinearResult(
            coefficients[:n_columns], intercept, n_epochs, converged, np.array(losses), self._targets.unit
        )


def check_exchange(settings: LinearSettings, n_passive: int, weighted: bool, features: Any) -> None:
    """ValueError where the rows exchange cannot do what is asked."""
    if settings.exchange != "rows":
        return
    if n_passive != 1:
        raise ValueError(f"exchange='rows' is for two parties, there are {1 + n_passive}: exchange='scores'")
    if weighted:
        raise ValueError(
            "exchange='rows' takes no sample or class weights, which the passive party would have to know: "
            "exchange='scores'"
        )
    if hasattr(features, "tocsr"):
        raise ValueError("exchange='rows' packs dense rows; sparse features take exchange='scores'")


def check_batches(settings: LinearSettings, widths: dict[str, int]) -> None:
    """ValueError where a batch would be so small that gradients give rows away; widths: party -> columns."""
    if not settings.batch_size or settings.allow_small_batches:
        return
    party = max(widths, key=lambda name: widths[name])
    least = least_batch(widths[party])
    if settings.batch_size < least:
        raise ValueError(
            SMALL_BATCH.format(batch=settings.batch_size, party=party, columns=widths[party], least=least)
        )
