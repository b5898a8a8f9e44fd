"""The active party: labels, the key, and the trees. Reads from top to bottom like SecureBoost, Algorithm 2."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Generator, Sequence
from typing import Any, ClassVar, Self, cast

import numpy as np

from vflcrypto import PrivateKey
from vflparty import Conversation, Message, RemoteProtocolError, codec, new_training_id, to_all
from vflparty.party import Round

from ..categories import Categories
from ..category_splits import CategoryRules
from ..growing.leader import SumLimits
from ..growing.masks import pack_masks
from ..growing.models import decode_categories
from ..growing.nodes import Division, Node, Split
from ..label_privacy import randomize_labels
from ..limited_splits import check_ordered, checked_signs
from ..losses import LeafLoss, fraction_bits_for
from ..sealing import PairLayout, make_sealer
from ..splitting import SplitRules
from ..tree import Tree
from .checkpoint import active_checkpoint
from .continuation import continued
from .evaluation import Evaluation
from .keeping import KeptTraining
from .messages import (
    ActiveResult,
    ActiveSetup,
    EvaluationSetup,
    GradientsForRound,
    Histograms,
    Joined,
    JoinTraining,
    SplitsRecorded,
    SumChildren,
    TrainingState,
)
from .nodes import BoostRound, Refit
from .objectives import make_loss
from .order import make_order
from .sampling import ColumnSample, draw_columns, draw_rows, goes_by_level, samples_columns
from .settings import BoostSettings
from .vector_leaves import VectorRound

Steps = Generator[Round, Round, list[Node]]


class ActiveParty(KeptTraining):
    """The party with the labels. Leads the conversation; see `vfltree.secureboost` for who learns what.

    Parameters
    ----------
    features : float64 (n_rows, n_features); may have no columns; NaN is missing.
    targets : float64 (n_rows,): 0 and 1, class numbers, or values, as the objective asks; or (n_rows, n_targets).
    passive_parties : names, in the order in which ties are decided.
    settings : see `BoostSettings`.
    weights : float64 (n_rows,), positive; None: all one.
    ids : identifiers of the rows in order; None: rows are rows.
    cuts : bin borders per feature to use in place of quantiles.
    categories : lists behind the codes in `features`; None: all columns hold numbers.
    random_seed : of row sampling; None draws it from the system. It never reaches the cipher.
    private_key : to use in place of a fresh one.
    signs : 1 or -1 where predictions may not fall or rise with an own feature, else 0; None: all 0.
    """

    setup_message = ActiveSetup
    result_message: ClassVar[type[Message]] = ActiveResult

    _columns: ColumnSample | None = None  # of the round in progress; None: all
    _slot_signs: list[np.ndarray] | None = None  # of the round in progress, see `BoostRound.signs`

    def __init__(
        self,
        features: np.ndarray,
        targets: np.ndarray,
        *,
        passive_parties: Sequence[str],
        settings: BoostSettings,
        weights: np.ndarray | None = None,
        ids: Collection[Any] | None = None,
        ids_digest: bytes | None = None,
        cuts: Sequence[np.ndarray] | None = None,
        categories: Categories | None = None,
        random_seed: int | None = None,
        private_key: PrivateKey | None = None,
        signs: np.ndarray | None = None,
    ) -> None:
        super().__init__(
            features,
            passive_parties=passive_parties,
            settings=settings,
            ids=ids,
            ids_digest=ids_digest,
            cuts=cuts,
            categories=categories,
            random_seed=random_seed,
            private_key=private_key,
        )
        self._targets = np.asarray(targets, dtype=np.float64)
        if settings.label_privacy_epsilon is not None:
            self._targets = _private(self._targets, settings)
        if settings.first_tree == "active" and not self._features.shape[1]:
            raise ValueError('first_tree="active" needs features of the active party, it has none')
        self._weights = weights
        self._settings = settings
        self._signs = checked_signs(signs, self._features.shape[1])
        self._loss = make_loss(settings)
        self._seed = secrets.randbits(63) if random_seed is None else random_seed
        self._training, self._n_rounds = new_training_id(), 0
        self._trees: list[Tree] = []
        self._rules = SplitRules(
            settings.reg_lambda, settings.reg_alpha, settings.gamma, settings.min_child_weight,
            settings.max_delta_step,
        )  # fmt: skip
        self._category_rules = CategoryRules(settings.max_cat_to_onehot, settings.max_cat_threshold)
        self._fraction_bits = fraction_bits_for(len(self._features))
        hessians: tuple[int, ...] = (1,)
        if settings.vector_leaves:
            hessians = tuple(range(settings.n_outputs, 2 * settings.n_outputs))
        self._limits = SumLimits(len(self._features) << self._fraction_bits, never_negative=hessians)
        self._outputs_together = settings.vector_leaves

    @classmethod
    def from_setup(cls, setup: ActiveSetup) -> Self:
        party = cls(
            setup.features,
            setup.targets,
            passive_parties=setup.passive_parties,
            settings=BoostSettings.from_json(setup.settings_json),
            weights=setup.weights if len(setup.weights) else None,
            ids_digest=setup.ids_digest,
            cuts=setup.cuts,
            categories=decode_categories(setup.categories),
            random_seed=setup.random_seed,
            signs=setup.signs,
        )
        if setup.evaluation:
            evaluation = cast("EvaluationSetup", codec.decode(setup.evaluation, (EvaluationSetup,)))
            party._evaluation = Evaluation(evaluation, party._loss, party._settings)
        if setup.past:
            party._past = cast("TrainingState", codec.decode(setup.past, (TrainingState,)))
        party._checkpoint, party._checkpoint_every = active_checkpoint(setup), setup.checkpoint_every
        party._seed_given = setup.seed_given
        return party

    # ---- the conversation

    def conversation(self) -> Conversation:
        """Bins, then round after round a tree per output; returns the active party's half of the model."""
        yield from self._begin()
        while not self._ended:
            loss = yield from self._advance()
            self.report(f"loss {loss:.4f}", self._n_rounds, self._settings.n_estimators)
        yield from self._end()
        return self._half(self._trees)

    def _join(self) -> Generator[Round, Round, None]:
        """Bin the own features, make the key, and learn the shapes of what the others will send."""
        settings, n_rows = self._settings, len(self._features)
        finished = self._own_splits
        self._bin_own()
        check_ordered(self._signs, self._mapper.n_categories)
        if self._n_rounds:
            self._own_splits = continued(finished, self._own_splits)
        self._sealer = make_sealer(
            self._obtain_key(),
            PairLayout(n_rows, settings.n_outputs, self._fraction_bits),
            n_jobs=settings.n_jobs,
            ledger=self.ledger,
        )
        answers = yield to_all(
            self._passive,
            JoinTraining(
                self._ids_digest, n_rows, settings.n_estimators, settings.n_outputs, settings.max_depth,
                self._fraction_bits, settings.encryption, self._sealer.public_bytes,
                0 if goes_by_level(settings) else settings.max_leaves, int(self._is_own(0)),
                self._n_rounds, "" if self._checkpoint is None else self._training, *(
                    (b"", 0) if self._evaluation is None
                    else (self._evaluation.ids_digest, self._evaluation.n_rows)
                ),
                settings.vector_leaves,
            ),
        )  # fmt: skip
        self._keep_shapes(answers)
        self._constrained = {party for party, joined in answers.items() if cast("Joined", joined).constrained}
        self._check_constrained()

    def _check_constrained(self) -> None:
        """Whose monotone constraints cannot hold is told so: the own ones are a mistake here, the others a peer's."""
        settings = self._settings
        if settings.vector_leaves:
            reason = "monotone constraints are for trees of one output, here one serves all"
        elif isinstance(self._loss, LeafLoss):
            reason = f"{settings.objective} finds leaf values anew: monotone constraints would not hold"
        else:
            return
        if self._signs.any():
            raise ValueError(reason)
        for party in sorted(self._constrained):
            raise RemoteProtocolError(reason, party)

    # ---- one round

    def _begin_round(self, number: int, raw: np.ndarray) -> tuple[BoostRound, np.ndarray]:
        """Gradients at the raw scores, and the rows that were drawn (empty: all)."""
        with self.ledger.phase("gradients"):
            g, h = self._loss.gradients(self._targets, raw, self._weights)
            sample = draw_rows(self._settings, self._seed, number, g)
            quantized = sample.quantize(g, h, self._fraction_bits)
        kind = VectorRound if self._settings.vector_leaves else BoostRound
        current = kind(
            number, quantized, sample.mask(len(raw)), raw, self._rules, self._settings.learning_rate,
            self._category_rules, self._columns, self._refit(raw), make_order(self._settings),
        )  # fmt: skip
        return current, sample.rows

    def _is_own(self, number: int) -> bool:
        """Whether a round uses the active party's features only, and nothing is sent for it."""
        return number == 0 and self._settings.first_tree == "active"

    def _draw_columns(self, number: int) -> None:
        """The columns of a round, and what is summed of them at its roots; None: all."""
        self._columns, self._shown = None, None
        if samples_columns(self._settings) or self._is_own(number):
            foreign = [0 if self._is_own(number) else self._shapes[party][0] for party in self._passive]
            n_features = [self._features.shape[1], *foreign]
            self._columns = draw_columns(self._settings, self._seed, number, n_features)
            self._shown = self._columns.summed(0)

    def _hand_out(self, number: int, rows: np.ndarray, sealed: bytes) -> Round:
        """The first messages of a round. A party of whose features none was drawn gets no gradients."""
        if self._shown is None:
            return to_all(self._passive, GradientsForRound(number, rows, sealed))
        nothing = GradientsForRound(number, rows[:0], b"", np.zeros(0, dtype=np.int32))
        return {
            party: GradientsForRound(number, rows, sealed, slots) if len(slots) else nothing
            for party, slots in zip(self._passive, self._shown[1:], strict=True)
        }

    def _grow_round(self, number: int, raw: np.ndarray) -> Generator[Round, Round, list[Tree]]:
        """A tree per output, all of them together, level by level or in steps; adds their leaf values to `raw`."""
        self._draw_columns(number)
        current, rows = self._begin_round(number, raw)
        with self.ledger.phase("encrypt"):
            sealed = self._sealer.seal(*current.sampled_gradients) if self._summing_parties() else b""
        answers: Round = {}
        if not self._is_own(number):
            answers = yield self._hand_out(number, rows, sealed)
        nodes, level = current.roots(), 0
        builders = [node.builder for node in nodes]
        self._attach_histograms(current, level, nodes, answers)
        current.signs = self._slot_signs = self._read_signs(answers)
        while nodes or current.waiting:
            with self.ledger.phase("split search"):
                splits = current.choose_splits(nodes)
            divisions = yield from self._divide(current, level, splits)
            nodes = yield from self._sum_children(current, level + 1, divisions)
            level += bool(nodes)  # where no child is worth a split, nothing was said of them
        return current.trees(builders)

    def _read_signs(self, answers: Round) -> list[np.ndarray] | None:
        """Monotone constraints by party and slot, as told with the sums of the roots; None where no party has any."""
        if not self._constrained and not self._signs.any():
            return None
        signs = [self._signs]
        for number, party in enumerate(self._passive, start=1):
            of_party = np.zeros(self._shapes[party][0], dtype=np.int8)
            shown = np.arange(len(of_party)) if self._shown is None else self._shown[number]
            if party in self._constrained and len(shown):
                told = cast("Histograms", answers[party]).signs
                if told is None or told.shape != shown.shape or not np.isin(told, (-1, 0, 1)).all():
                    raise RemoteProtocolError(f"{len(shown)} signs of -1, 0 or 1 were due, got {told}", party)
                of_party[shown] = told
            signs.append(of_party)
        return signs

    def _read_masks(self, party: str, answer: SplitsRecorded, group: list[Split]) -> dict[int, np.ndarray]:
        """As `TreeLeader._read_masks`; of features of equal gain the owner says which sign its choice has."""
        masks = super()._read_masks(party, answer, group)
        if party in self._constrained:
            told = answer.signs
            if told is None or told.shape != (len(group),) or not np.isin(told, (-1, 0, 1)).all():
                raise RemoteProtocolError(f"{len(group)} signs of -1, 0 or 1 were due, got {told}", party)
            assert self._slot_signs is not None
            for split, sign in zip(group, told.tolist(), strict=True):
                if sign not in self._slot_signs[split.party][split.slots]:
                    raise RemoteProtocolError(
                        f"a feature of sign {sign} was not among those asked for", party
                    )
                split.node.sign = sign
        return masks

    def _refit(self, raw: np.ndarray) -> Refit | None:
        """What finds leaf values anew, for losses that ask for it."""
        loss = self._loss
        if not isinstance(loss, LeafLoss):
            return None
        return lambda rows, output: loss.leaf_value(self._targets, raw, self._weights, rows, output)

    def _sum_children(self, current: BoostRound, level: int, divisions: list[Division]) -> Steps:
        """Sums of the smaller child of each pair, the larger one by subtraction; returns the nodes worth a split."""
        worth = [(division, self._open_children(current, division)) for division in divisions]
        asked = [division for division, open_children in worth if open_children]
        if not asked:
            return []
        parents = np.array([division.parent.record for division in asked], dtype=np.int64)
        packed = pack_masks([division.left for division in asked])
        narrowed = self._narrow(level, asked)
        answers: Round = {}
        if summing := self._summing_parties():
            answers = yield {
                party: SumChildren(current.number, level, parents, packed, narrowed.get(party))
                for party in summing
            }
        self._attach_histograms(current, level, [division.smaller for division in asked], answers)
        self._take_siblings(current, level, asked)
        return [child for _, open_children in worth for child in open_children]

    def _narrow(self, level: int, asked: list[Division]) -> dict[str, np.ndarray]:
        """Let go of slots that no level from here on may be split by.

        Returns the slots that are left to each passive party that has fewer now.
        """
        before, columns = self._shown, self._columns
        if before is None or columns is None:
            return {}
        after = columns.summed(level)
        self._show_only(after, asked)
        return {
            party: now
            for party, was, now in zip(self._passive, before[1:], after[1:], strict=True)
            if len(now) < len(was)
        }


def _private(targets: np.ndarray, settings: BoostSettings) -> np.ndarray:
    """Class numbers after randomised response; the true ones are not kept."""
    assert settings.label_privacy_epsilon is not None
    noisy = randomize_labels(targets.astype(np.int64), settings.n_classes, settings.label_privacy_epsilon)
    return noisy.astype(np.float64)
