"""A whole encrypted training on one host: the parties of a plan and the coordinator, every one on its own seat."""

from __future__ import annotations

from dataclasses import dataclass

from vflparty import Seat, make_network, make_seat
from vflparty.coordinator import Coordinator, CoordinatorLog, CoordinatorSetup
from vflparty.network import DEFAULT_TIMEOUT
from vflparty.party import ProgressHook

from ..agreement import Agreement
from ..messages import HalfState, ModelRecipe
from ..models.tops import SumTop
from ..recipes import build_bottom, build_top
from ..seating import PartyPlan, Trained, TrainingPlan, seats
from ..working import RandomStream
from .active import EncryptedActiveParty
from .factors import make_factors
from .messages import EncryptedActiveSetup, EncryptedPassiveSetup
from .passive import EncryptedPassiveParty
from .terms import Terms


@dataclass(frozen=True)
class TrainedEncrypted(Trained):
    """What an encrypted training has left.

    Attributes
    ----------
    coordinator : what the coordinator was asked; None without encryption
    """

    coordinator: CoordinatorLog | None


def train_encrypted(
    plan: TrainingPlan,
    terms: Terms | None = None,
    network: str = "inprocess",
    *,
    coordinator: str = "coordinator",
    on_progress: ProgressHook | None = None,
    timeout: float | None = DEFAULT_TIMEOUT,
    record: bool = False,
) -> TrainedEncrypted:
    """Seat everybody and let the active party lead.

    plan : its top model must be a sum, its loss "taylor_logit" or "logit", its models recipes
    terms : of all parties alike; None: the defaults of `Terms`
    network : "inprocess" or "process": the weights are the same, bit for bit
    coordinator : name of its seat
    """
    terms = Terms() if terms is None else terms
    encrypted = terms.encryption != "none"
    listed = encrypted_seats(plan, terms, coordinator)
    with make_network(network, listed, on_progress=on_progress, timeout=timeout, record=record) as opened:
        result = opened.run()
        states = {party: opened.collect(party) for party in (plan.active, *plan.passive)}
        log = opened.collect(coordinator) if encrypted else None
    assert all(isinstance(state, HalfState) for state in states.values())
    return TrainedEncrypted(result, states, opened.ledger, opened.transcript, log)  # type: ignore[arg-type]


def encrypted_seats(plan: TrainingPlan, terms: Terms, coordinator: str = "coordinator") -> list[Seat]:
    """A seat per party, each with its own data and nobody else's; the coordinator's has none."""
    check_plan(plan)
    encrypted = terms.encryption != "none"
    text = terms.to_json()
    listed = []
    for seat in seats(plan):
        if seat.party == plan.active:
            active = EncryptedActiveSetup(seat.setup, coordinator if encrypted else "", text)
            listed.append(make_seat(seat.party, EncryptedActiveParty, active))
        else:
            passive = EncryptedPassiveSetup(seat.setup, text)
            listed.append(make_seat(seat.party, EncryptedPassiveParty, passive))
    if encrypted:
        listed.append(make_seat(coordinator, Coordinator, coordinator_setup(plan, terms)))
    return listed


def coordinator_setup(plan: TrainingPlan, terms: Terms) -> CoordinatorSetup:
    """Quotas: one value per parameter that a party trains, in every step; one more where the loss is watched."""
    quotas = {party: _n_values(part) for party, part in plan.passive.items()}
    own = (0 if plan.own is None else _n_values(plan.own)) + terms.watch_loss
    if own:
        quotas[plan.active] = own
    return CoordinatorSetup(
        parties=tuple(quotas),
        values_per_step=tuple(quotas.values()),
        max_steps=max(1, len(Agreement(plan.settings).steps)),
        key_bits=terms.key_bits,
        allow_weak_key=terms.allow_weak_key,
        n_jobs=terms.n_jobs,
    )


def check_plan(plan: TrainingPlan) -> None:
    """ValueError where a plan is not one for encrypted training."""
    if plan.has_modules:
        raise ValueError(
            "encrypted training builds every model at its party: name the models, or give "
            '"module:function" that makes yours, instead of torch.nn.Module objects'
        )
    parts = [*([plan.own] if plan.own is not None else []), *plan.passive.values()]
    assert isinstance(plan.top, ModelRecipe)
    top = build_top(plan.top, tuple(part.width for part in parts), plan.n_outputs)
    if type(top) is not SumTop:
        raise ValueError(
            f"under encryption scores are the sum of all outputs (top model 'sum'), got {type(top).__name__}"
        )


def _n_values(part: PartyPlan) -> int:
    assert isinstance(part.model, ModelRecipe)
    samples, _ = part.inputs("cpu")
    with RandomStream(part.model.seed).working():  # not from anybody else's random numbers
        model = build_bottom(part.model, samples.shape, part.width)
    return make_factors(model, part.width).n_values
