"""A whole training on one host: every party on its seat, with its own data; the door for estimators and experiments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from vflparty import InProcessNetwork, Ledger, Network, RowsDigest, Seat, codec, make_network, make_seat
from vflparty.network import DEFAULT_TIMEOUT, Sent
from vflparty.party import ProgressHook

from .active import ActiveParty
from .messages import ActiveSetup, HalfState, ModelRecipe, PassiveSetup, TrainedNetwork, TrainingSettings
from .passive import PassiveParty
from .samples import Samples


@dataclass(frozen=True)
class PartyPlan:
    """What one party brings.

    Attributes
    ----------
    model : ModelRecipe, or torch.nn.Module (which is trained in place, and in this process only)
    width : of its outputs
    samples : ndarray or CSR, shape (n_samples, ...): see `Samples`
    evaluation : the same of rows that are evaluated and not trained on; None without any
    graph, evaluation_graph : normalised adjacency where rows are the nodes of a graph
    state : where a passive party's training goes on from
    """

    model: ModelRecipe | nn.Module
    width: int
    samples: Any
    evaluation: Any = None
    graph: Any = None
    evaluation_graph: Any = None
    state: HalfState | None = None

    def inputs(self, device: str) -> tuple[Samples, Samples | None]:
        """Its rows to train on and to evaluate, as its model takes them."""
        evaluation = None
        if self.evaluation is not None:
            evaluation = Samples(self.evaluation, self.evaluation_graph, device)
        return Samples(self.samples, self.graph, device), evaluation


@dataclass(frozen=True)
class TrainingPlan:
    """A training, before anybody sits.

    Attributes
    ----------
    settings : what all parties agree on
    active : name of the active party
    own : what the active party brings; None where it has labels only
    passive : party name -> what it brings, in the parties' order
    top : the model that joins outputs
    labels, evaluation_labels : see ActiveParty
    n_outputs : scores per sample
    loss : name of a loss
    ids : identifiers of the rows; None: rows are rows
    seed : of random numbers where models are modules
    device : "cpu", "cuda", ...
    n_threads : of every party's work; weights are the same bits for the same number
    active_state : where the active party goes on from
    """

    settings: TrainingSettings
    active: str
    own: PartyPlan | None
    passive: Mapping[str, PartyPlan]
    top: ModelRecipe | nn.Module
    labels: NDArray[Any]
    n_outputs: int
    loss: str = "cross_entropy"
    evaluation_labels: NDArray[Any] | None = None
    ids: Any = None
    seed: int = 0
    device: str = "cpu"
    n_threads: int = 1
    active_state: HalfState | None = None

    @property
    def widths(self) -> dict[str, int]:
        """Of the passive parties' outputs."""
        return {party: plan.width for party, plan in self.passive.items()}

    @property
    def has_modules(self) -> bool:
        """Whether a model is an object of this process, which no other process can be handed."""
        plans = [*self.passive.values(), *([self.own] if self.own is not None else [])]
        return any(isinstance(model, nn.Module) for model in (self.top, *(plan.model for plan in plans)))

    @property
    def rows(self) -> RowsDigest:
        return RowsDigest.of(range(self.settings.n_samples) if self.ids is None else self.ids)


def with_evaluation(
    plan: TrainingPlan, samples: Mapping[str, Any], labels: NDArray[Any] | None = None
) -> TrainingPlan:
    """The plan with rows to evaluate. samples : of each party with columns. labels : None where scores are wanted."""
    passive = {party: replace(part, evaluation=samples[party]) for party, part in plan.passive.items()}
    own = None if plan.own is None else replace(plan.own, evaluation=samples[plan.active])
    return replace(plan, own=own, passive=passive, evaluation_labels=labels)


@dataclass(frozen=True)
class Trained:
    """What a training has left.

    Attributes
    ----------
    result : the course of it, and scores of the rows to evaluate
    states : party name -> what it has trained; each stays with its party in a deployment
    ledger : traffic and costs
    transcript : all frames, where they were recorded
    """

    result: TrainedNetwork
    states: dict[str, HalfState]
    ledger: Ledger
    transcript: list[Sent]


def train(
    plan: TrainingPlan,
    network: str = "inprocess",
    *,
    on_progress: ProgressHook | None = None,
    timeout: float | None = DEFAULT_TIMEOUT,
    record: bool = False,
) -> Trained:
    """Seat everybody and let the active party lead.

    network : "inprocess" or "process": the weights are the same, bit for bit
    """
    with open_network(plan, network, on_progress=on_progress, timeout=timeout, record=record) as opened:
        result = opened.run()
        states = {plan.active: _state(opened, plan.active)}
        states |= {party: _state(opened, party) for party in plan.passive}
        return Trained(result, states, opened.ledger, opened.transcript)


def open_network(
    plan: TrainingPlan,
    network: str,
    *,
    on_progress: ProgressHook | None = None,
    timeout: float | None = DEFAULT_TIMEOUT,
    record: bool = False,
) -> Network:
    """The network of a plan, everybody seated; `run()` trains."""
    if not plan.has_modules:
        return make_network(network, seats(plan), on_progress=on_progress, timeout=timeout, record=record)
    if network != "inprocess":
        raise ValueError(
            f"network={network!r} builds every model in its party's process: name the models, or give "
            '"module:function" that makes yours, instead of torch.nn.Module objects'
        )
    passive = {party: _passive_party(plan, party) for party in plan.passive}
    return _Ready(_active_party(plan), passive, plan.active, on_progress=on_progress, record=record)


class _Ready(InProcessNetwork):
    """Parties that were made here, the leader too."""

    def __init__(
        self, leading: ActiveParty, passive: Mapping[str, PassiveParty], name: str, **options: Any
    ) -> None:
        super().__init__(passive, leader=name, **options)
        self._leading = leading


def seats(plan: TrainingPlan) -> list[Seat]:
    """A seat per party, each with its own data and nobody else's."""
    rows = codec.encode(plan.rows)
    listed = [make_seat(plan.active, ActiveParty, _active_setup(plan, rows))]
    for party, part in plan.passive.items():
        samples, evaluation = part.inputs("cpu")
        setup = PassiveSetup(
            party=party,
            width=part.width,
            samples=samples.to_frame(),
            evaluation=None if evaluation is None else evaluation.to_frame(),
            model=_frame(part.model),
            rows=rows,
            device=plan.device,
            n_threads=plan.n_threads,
            state=_optional(part.state),
        )
        listed.append(make_seat(party, PassiveParty, setup))
    return listed


def _active_setup(plan: TrainingPlan, rows: bytes) -> ActiveSetup:
    samples, evaluation = (None, None) if plan.own is None else plan.own.inputs("cpu")
    return ActiveSetup(
        party=plan.active,
        widths=(0 if plan.own is None else plan.own.width, *plan.widths.values()),
        passive_parties=tuple(plan.passive),
        samples=None if samples is None else samples.to_frame(),
        evaluation=None if evaluation is None else evaluation.to_frame(),
        labels=np.asarray(plan.labels),
        evaluation_labels=plan.evaluation_labels,
        n_outputs=plan.n_outputs,
        loss=plan.loss,
        bottom=None if plan.own is None else _frame(plan.own.model),
        top=_frame(plan.top),
        settings=codec.encode(plan.settings),
        rows=rows,
        device=plan.device,
        n_threads=plan.n_threads,
        state=_optional(plan.active_state),
    )


def _active_party(plan: TrainingPlan) -> ActiveParty:
    samples, evaluation = (None, None) if plan.own is None else plan.own.inputs(plan.device)
    return ActiveParty(
        plan.settings,
        plan.labels,
        plan.widths,
        plan.top,
        n_outputs=plan.n_outputs,
        bottom=None if plan.own is None else plan.own.model,
        own_width=None if plan.own is None else plan.own.width,
        samples=samples,
        evaluation=evaluation,
        evaluation_labels=plan.evaluation_labels,
        loss=plan.loss,
        ids=plan.ids,
        seed=plan.seed,
        device=plan.device,
        n_threads=plan.n_threads,
        state=plan.active_state,
    )


def _passive_party(plan: TrainingPlan, party: str) -> PassiveParty:
    part = plan.passive[party]
    samples, evaluation = part.inputs(plan.device)
    return PassiveParty(
        part.model,
        samples,
        width=part.width,
        name=party,
        evaluation=evaluation,
        ids=plan.ids,
        seed=plan.seed + 1 + list(plan.passive).index(party),
        device=plan.device,
        n_threads=plan.n_threads,
        state=part.state,
    )


def _state(network: Network, party: str) -> HalfState:
    state = network.collect(party)
    assert isinstance(state, HalfState)
    return state


def _frame(model: ModelRecipe | nn.Module) -> bytes:
    assert isinstance(model, ModelRecipe)
    return codec.encode(model)


def _optional(state: HalfState | None) -> bytes | None:
    return None if state is None else codec.encode(state)
