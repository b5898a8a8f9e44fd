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
from ..growing.leader import SumLimits, TreeLeader
from ..growing.masks import pack_masks
from ..growing.models import active_result, decode_categories, decode_records, decode_result, result_trees
from ..growing.nodes import Division, Node, Split
from ..label_privacy import randomize_labels
from ..limited_splits import check_ordered, checked_signs
from ..losses import LeafLoss, Scores, fraction_bits_for
from ..sealing import PairLayout, make_sealer
from ..splitting import SplitRules
from ..tree import Tree
from .checkpoint import Checkpoint, active_checkpoint
from .continuation import continued
from .evaluation import Evaluation, History
from .messages import (
    ActiveResult,
    ActiveSetup,
    EvaluationSetup,
    GradientsForRound,
    Histograms,
    Joined,
    JoinTraining,
    KeepRounds,
    SplitsRecorded,
    SumChildren,
    TrainingEnded,
    TrainingState,
)
from .nodes import BoostRound, Refit
from .objectives import make_loss
from .order import make_order
from .sampling import ColumnSample, draw_columns, draw_rows, goes_by_level, samples_columns
from .settings import BoostSettings
from .taking_up import check_state
from .vector_leaves import VectorRound

Steps = Generator[Round, Round, list[Node]]


class ActiveParty(TreeLeader):
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
    # Set by `from_setup`: what an estimator asks for beside the trees.
    _evaluation: Evaluation | None = None
    _checkpoint: Checkpoint | None = None
    _checkpoint_every = 1
    _past: TrainingState | None = None
    _seed_given = False
    _joined = False
    _last_loss = float("nan")

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

    def _begin(self) -> Generator[Round, Round, None]:
        """Take up what is finished; join the others unless nothing is left to do."""
        self._take_up()
        if not self._ended:
            yield from self._join()
            self._joined = True

    def _take_up(self) -> None:
        """Where training starts: at the checkpoint, at the model it continues, or before the first tree."""
        state = self._past
        kept = None if self._checkpoint is None else self._checkpoint.read(TrainingState, self._check_state)
        if kept is not None:
            _, state, _, seed = kept
            if self._seed_given and seed != self._seed:
                raise ValueError("the checkpoint was trained with another random_state")
            self._seed = seed
        if state is None:
            start = self._loss.start(self._targets, self._weights, self._settings.base_score)
            self._base_score, self._raw = start, cast("Scores", np.tile(start, (len(self._targets), 1)))
            if self._evaluation is not None:
                self._evaluation.start(start)
            return
        self._continue(state)

    def _check_state(self, state: TrainingState) -> None:
        n_evaluated = 0 if self._evaluation is None else self._evaluation.n_rows
        check_state(state, self._settings, self._features.shape, len(self._passive), n_evaluated)

    def _continue(self, state: TrainingState) -> None:
        if state.n_rounds > self._settings.n_estimators:
            raise ValueError(
                f"{state.n_rounds} rounds are finished already, n_estimators={self._settings.n_estimators} is less"
            )
        model = decode_result(state.model)
        self._training, self._n_rounds = state.training, state.n_rounds
        self._base_score, self._trees = model.base_score, result_trees(model)
        self._own_splits = decode_records(model.records)
        self._raw = cast("Scores", state.raw_scores)
        if self._settings.label_privacy_epsilon is not None:
            self._targets = state.private_targets
        if self._evaluation is not None:
            self._evaluation.raw = cast("Scores", state.evaluation_scores)
            self._evaluation.history = History.from_json(state.history)

    @property
    def _ended(self) -> bool:
        evaluation = self._evaluation
        enough = self._n_rounds >= self._settings.n_estimators
        return enough or (evaluation is not None and evaluation.should_stop)

    def _advance(self) -> Generator[Round, Round, float]:
        """One round: grow, evaluate, write down. Returns the loss of the training rows."""
        number, settings = self._n_rounds, self._settings
        grown = yield from self._grow_round(number, self._raw)
        if not np.isfinite(self._raw).all():
            raise ValueError(
                f"raw scores overflow in round {number}: learning_rate={settings.learning_rate:g} is too large"
            )
        if self._evaluation is not None:
            yield from self._evaluation.take_round(number, grown, self._own_splits, self._passive)
        self._trees += grown
        self._n_rounds += 1
        if self._checkpoint is not None and (self._ended or self._n_rounds % self._checkpoint_every == 0):
            yield to_all(self._passive, KeepRounds(self._n_rounds))
            self._checkpoint.write(self._training, self._state(), self._n_rounds, self._seed)
        self._last_loss = self._loss.value(self._targets, self._raw, self._weights)
        return self._last_loss

    def _end(self) -> Generator[Round, Round, None]:
        """Tell the others how many rounds the model keeps, and keep no more."""
        kept = None if self._evaluation is None else self._evaluation.n_kept
        kept = self._n_rounds if kept is None else kept
        if self._joined:
            yield to_all(self._passive, TrainingEnded(kept))
        self._trees = self._trees[: kept * self._settings.trees_per_round]
        self._own_splits = self._own_splits.of_trees(0, len(self._trees))

    def _half(self, trees: Sequence[Tree]) -> ActiveResult:
        objective = self._settings.objective
        return active_result(self._base_score, trees, self._own_splits, objective, self._below)

    def _state(self) -> TrainingState:
        evaluation = self._evaluation
        return TrainingState(
            training=self._training,
            n_rounds=self._n_rounds,
            model=codec.encode(self._half(self._trees)),
            raw_scores=self._raw,
            evaluation_scores=np.zeros((0, 0)) if evaluation is None else evaluation.raw,
            history="" if evaluation is None else evaluation.history.to_json(),
            private_targets=np.zeros(0) if self._settings.label_privacy_epsilon is None else self._targets,
        )

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
