"""The active party: labels, the key, and the trees. Reads from top to bottom like SecureBoost, Algorithm 2."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from vflcrypto import CryptoError, PrivateKey, obtain_keypair
from vflparty import Conversation, Leader, RemoteProtocolError, to_all
from vflparty.party import Round

from ..binning import BinMapper, quantile_cuts
from ..histogram import build_histograms
from ..losses import Logistic, Loss, Quantized, Scores, Softmax, SquaredError, fraction_bits_for, quantize
from ..rows import rows_digest
from ..sealing import Sealer, make_sealer
from ..splitting import BestSplits, SplitRules, best_splits, choose, leaf_values
from ..tree import RecordTable, Tree, TreeBuilder, record_id
from .bin_sums import expand_histograms
from .masks import pack_masks, unpack_masks
from .messages import (
    ActiveResult,
    ActiveSetup,
    GradientsForRound,
    Histograms,
    Joined,
    JoinTraining,
    RecordSplits,
    SplitsRecorded,
    SumChildren,
    TrainingEnded,
)
from .models import active_result
from .numbering import child_ids, round_trees
from .settings import FRACTION_BITS, BoostSettings

OWN = 0  # the active party's number
Steps = Generator[Round, Round, "list[_Node]"]


@dataclass
class _Node:
    """A node that may be split: where it stands, its rows and its sums."""

    record: int
    output: int
    builder: TreeBuilder
    position: int  # in the builder
    rows: np.ndarray  # int32, all rows that fall here, sampled or not
    n_sampled: int
    total: np.ndarray  # int64 (2,): gradient and hessian
    histograms: list[np.ndarray] = field(default_factory=list)  # per party int64 (n_features, n_bins, 2)


@dataclass(frozen=True)
class _Split:
    """A node, the party that owns its best split, and the candidates of equal gain."""

    node: _Node
    party: int
    gain: float
    slots: np.ndarray
    bins: np.ndarray
    missing_left: np.ndarray


class ActiveParty(Leader):
    """The party with the labels. Leads the conversation; see `vfltree.secureboost` for who learns what.

    Parameters
    ----------
    features : float64 (n_rows, n_features); may have no columns; NaN is missing.
    targets : float64 (n_rows,): 0 and 1, class numbers, or values, as the objective asks.
    passive_parties : names, in the order in which ties are decided.
    settings : see `BoostSettings`.
    weights : float64 (n_rows,), positive; None: all one.
    ids : identifiers of the rows in order; None: rows are rows.
    cuts : bin borders per feature to use in place of quantiles.
    random_seed : of row sampling; None draws it from the system. It never reaches the cipher.
    private_key : to use in place of a fresh one.
    """

    setup_message = ActiveSetup
    result_message = ActiveResult

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
        random_seed: int | None = None,
        private_key: PrivateKey | None = None,
    ) -> None:
        self._features = np.asarray(features, dtype=np.float64)
        self._targets = np.asarray(targets, dtype=np.float64)
        self._weights = weights
        self._passive = tuple(passive_parties)
        self._settings = settings
        self._ids_digest = rows_digest(ids, len(self._features)) if ids_digest is None else ids_digest
        self._cuts = cuts
        self._rng = np.random.default_rng(random_seed)
        self._private_key = private_key
        self._loss = make_loss(settings)
        self._rules = SplitRules(
            settings.reg_lambda, settings.reg_alpha, settings.gamma, settings.min_child_weight
        )
        self._fraction_bits = fraction_bits_for(len(self._features), FRACTION_BITS)

    @classmethod
    def from_setup(cls, setup: ActiveSetup) -> ActiveParty:
        return cls(
            setup.features,
            setup.targets,
            passive_parties=setup.passive_parties,
            settings=BoostSettings.from_json(setup.settings_json),
            weights=setup.weights if len(setup.weights) else None,
            ids_digest=setup.ids_digest,
            cuts=setup.cuts,
            random_seed=setup.random_seed,
        )

    # ---- the conversation

    def conversation(self) -> Conversation:
        """Bins, then round after round a tree per output; returns the active party's half of the model."""
        settings = self._settings
        base_score = self._loss.start(self._targets, self._weights, settings.base_score)
        raw = cast("Scores", np.tile(base_score, (len(self._targets), 1)))
        yield from self._join()
        trees: list[Tree] = []
        for number in range(settings.n_estimators):
            rows = self._sample_rows()
            quantized = self._gradients(raw, rows)
            grown = yield from self._grow_round(number, quantized, rows, raw)
            trees += grown
            loss = self._loss.value(self._targets, raw, self._weights)
            self.report(f"loss {loss:.4f}", number + 1, settings.n_estimators)
        yield to_all(self._passive, TrainingEnded(settings.n_estimators))
        return active_result(base_score, trees, self._own_splits)

    def _join(self) -> Generator[Round, Round, None]:
        """Bin the own features, make the key, and learn the shapes of what the others will send."""
        settings, n_rows = self._settings, len(self._features)
        with self.ledger.phase("binning"):
            cuts = self._cuts if self._cuts is not None else quantile_cuts(self._features, settings.max_bin)
            self._mapper = BinMapper(cuts)
            self._binned = self._mapper.transform(self._features)
        self._own_splits = RecordTable.empty()
        self._sealer = self._make_sealer(n_rows)
        answers = yield to_all(
            self._passive,
            JoinTraining(
                self._ids_digest, n_rows, settings.n_estimators, settings.n_outputs, settings.max_depth,
                self._fraction_bits, settings.encryption, self._sealer.public_bytes,
            ),
        )  # fmt: skip
        self._shapes = {}
        for party, joined in answers.items():
            assert isinstance(joined, Joined)
            if joined.n_features < 1 or not 2 <= joined.n_bins <= 1 << 16:
                raise RemoteProtocolError(
                    f"{joined.n_features} features of {joined.n_bins} bins cannot be", party
                )
            self._shapes[party] = (joined.n_features, joined.n_bins)

    def _make_sealer(self, n_rows: int) -> Sealer:
        settings = self._settings
        key = self._private_key
        if settings.encryption == "none":
            key = None
        elif key is None:
            with self.ledger.phase("key generation"):
                _, key = obtain_keypair(settings.key_bits, allow_weak_key=settings.allow_weak_key)
        return make_sealer(
            key,
            n_rows=n_rows,
            n_outputs=settings.n_outputs,
            fraction_bits=self._fraction_bits,
            n_jobs=settings.n_jobs,
            ledger=self.ledger,
        )

    # ---- one round

    def _sample_rows(self) -> np.ndarray:
        """Ascending row numbers; empty for all rows."""
        n_rows, share = len(self._features), self._settings.subsample
        if share >= 1:
            return np.zeros(0, dtype=np.int32)
        n_sampled = max(1, round(share * n_rows))
        return np.sort(self._rng.choice(n_rows, n_sampled, replace=False)).astype(np.int32)

    def _gradients(self, raw: np.ndarray, rows: np.ndarray) -> Quantized:
        """Integers for all rows; rows that were not sampled hold zeros, so that they change no sum."""
        with self.ledger.phase("gradients"):
            g, h = self._loss.gradients(self._targets, raw, self._weights)
            if not rows.size:
                return quantize(g, h, self._fraction_bits)
            sampled = quantize(g[rows], h[rows], self._fraction_bits)
            full = np.zeros((2, *g.shape), dtype=np.int64)
            full[0, rows], full[1, rows] = sampled.g, sampled.h
            return Quantized(full[0], full[1], sampled.g_unit, sampled.h_unit, sampled.fraction_bits)

    def _grow_round(
        self, number: int, quantized: Quantized, rows: np.ndarray, raw: np.ndarray
    ) -> Generator[Round, Round, list[Tree]]:
        """A tree per output, all of them level by level together; adds their leaf values to `raw`."""
        self._sampled = np.ones(len(raw), dtype=bool)
        if rows.size:
            self._sampled[:] = False
            self._sampled[rows] = True
        with self.ledger.phase("encrypt"):
            chosen = self._sampled if rows.size else slice(None)
            sealed = self._sealer.seal(quantized.g[chosen], quantized.h[chosen])
        answers = yield to_all(self._passive, GradientsForRound(number, rows, sealed))
        nodes = self._roots(number, quantized, answers)
        builders = [node.builder for node in nodes]
        level = 0
        while nodes:
            splits = self._choose_splits(nodes, quantized, raw)
            masks = yield from self._divide(number, level, splits)
            level += 1
            children = [
                self._split(split, left, quantized) for split, left in zip(splits, masks, strict=True)
            ]
            nodes = yield from self._sum_children(number, level, splits, masks, children, quantized, raw)
        return [builder.freeze() for builder in builders]

    def _roots(self, number: int, quantized: Quantized, answers: Round) -> list[_Node]:
        """One root per output; all of them share the sums that each passive party sent once."""
        n_outputs = self._settings.n_outputs
        all_rows = np.arange(len(self._features), dtype=np.int32)
        n_sampled = int(self._sampled.sum())
        nodes = [
            _Node(int(record_id(tree, 1)), output, TreeBuilder(), 0, all_rows, n_sampled,
                  _total(quantized, all_rows, output))
            for output, tree in enumerate(round_trees(number, n_outputs))
        ]  # fmt: skip
        self._attach_histograms(nodes, np.zeros(n_outputs, dtype=np.int64), 1, number, 0, quantized, answers)
        return nodes

    def _choose_splits(self, nodes: list[_Node], quantized: Quantized, raw: np.ndarray) -> list[_Split]:
        """The best split of each node over the bins of every party; nodes without one become leaves."""
        splits: list[_Split] = []
        with self.ledger.phase("split search"):
            for output in range(self._settings.n_outputs):
                group = [node for node in nodes if node.output == output]
                if group:
                    splits += self._best_of(group, quantized, raw)
        return splits

    def _best_of(self, nodes: list[_Node], quantized: Quantized, raw: np.ndarray) -> list[_Split]:
        units = _units(quantized, nodes[0].output)
        totals = np.stack([node.total for node in nodes])
        bests: list[BestSplits] = []
        for party in range(1 + len(self._passive)):
            sums = np.stack([node.histograms[party] for node in nodes])
            bests.append(
                best_splits(sums[..., 0], sums[..., 1], totals[:, 0], totals[:, 1], *units, self._rules)
            )
        choice = choose(bests, self._rules)
        splits = []
        for i, node in enumerate(nodes):
            party, slots = int(choice.party[i]), choice.slots[i]
            if party < 0:
                self._make_leaf(node, quantized, raw)
                continue
            best = bests[party]
            splits.append(
                _Split(
                    node, party, float(choice.gain[i]), slots, best.bin[i, slots], best.missing_left[i, slots]
                )
            )
        return splits

    def _divide(
        self, number: int, level: int, splits: list[_Split]
    ) -> Generator[Round, Round, list[np.ndarray]]:
        """Which rows of each split node go left; the owner of a split decides and keeps the rule."""
        masks: dict[int, np.ndarray] = {}
        by_owner: dict[int, list[_Split]] = {}
        for split in splits:
            by_owner.setdefault(split.party, []).append(split)
        for split in by_owner.pop(OWN, []):
            masks[split.node.record] = self._own_split(split)
        if by_owner:
            answers = yield {
                self._passive[party - 1]: _record_splits(number, level, group)
                for party, group in by_owner.items()
            }
            for party, group in by_owner.items():
                name = self._passive[party - 1]
                masks.update(self._read_masks(name, answers[name], group))
        return [masks[split.node.record] for split in splits]

    def _own_split(self, split: _Split) -> np.ndarray:
        column, bin_, missing_left = int(split.slots[0]), int(split.bins[0]), bool(split.missing_left[0])
        threshold = self._mapper.threshold(column, bin_)
        self._own_splits = self._own_splits.append(split.node.record, column, threshold, missing_left)
        bins = self._binned[split.node.rows, column]
        return np.where(bins == self._mapper.missing_bin, missing_left, bins <= bin_)

    @staticmethod
    def _read_masks(party: str, answer: object, group: list[_Split]) -> dict[int, np.ndarray]:
        assert isinstance(answer, SplitsRecorded)
        try:
            masks = unpack_masks(answer.left, [len(split.node.rows) for split in group])
        except RemoteProtocolError as error:
            raise error.by(party) from None
        for mask in masks:
            if mask.all() or not mask.any():
                raise RemoteProtocolError(f"all {len(mask)} rows of a split node go the same way", party)
        return {split.node.record: mask for split, mask in zip(group, masks, strict=True)}

    def _split(self, split: _Split, left: np.ndarray, quantized: Quantized) -> tuple[_Node, _Node]:
        """The two children of a node."""
        node = split.node
        positions = node.builder.split(node.position, split.party, split.gain)
        children = []
        for record, position, rows in zip(
            child_ids(node.record), positions, (node.rows[left], node.rows[~left]), strict=True
        ):
            total = _total(quantized, rows, node.output)
            n_sampled = int(self._sampled[rows].sum())
            children.append(_Node(record, node.output, node.builder, position, rows, n_sampled, total))
            node.builder.set_cover(position, float(total[1]) * _units(quantized, node.output)[1])
        return children[0], children[1]

    def _sum_children(
        self,
        number: int,
        level: int,
        splits: list[_Split],
        masks: list[np.ndarray],
        children: list[tuple[_Node, _Node]],
        quantized: Quantized,
        raw: np.ndarray,
    ) -> Steps:
        """Sums of the smaller child of each pair, the larger one by subtraction; returns the nodes worth a split."""
        open_pairs = []
        for split, left, pair in zip(splits, masks, children, strict=True):
            may_split = [
                level < self._settings.max_depth and self._may_split(child, quantized) for child in pair
            ]
            for child, open_ in zip(pair, may_split, strict=True):
                if not open_:
                    self._make_leaf(child, quantized, raw)
            if any(may_split):
                smaller = 0 if pair[0].n_sampled <= pair[1].n_sampled else 1
                open_pairs.append((split.node, left, pair, may_split, smaller))
        if not open_pairs:
            return []
        parents = np.array([parent.record for parent, *_ in open_pairs], dtype=np.int64)
        packed = pack_masks([left for _, left, *_ in open_pairs])
        answers = yield to_all(self._passive, SumChildren(number, level, parents, packed))
        small = [pair[smaller] for *_, pair, _, smaller in open_pairs]
        self._attach_histograms(small, np.arange(len(small)), len(small), number, level, quantized, answers)
        nodes = []
        for parent, _, pair, may_split, smaller in open_pairs:
            larger = pair[1 - smaller]
            larger.histograms = [
                whole - part for whole, part in zip(parent.histograms, pair[smaller].histograms, strict=True)
            ]
            self._check_sibling(larger, number, level)
            nodes += [child for child, open_ in zip(pair, may_split, strict=True) if open_]
            parent.histograms = []
        return nodes

    def _may_split(self, node: _Node, quantized: Quantized) -> bool:
        """Both children of a split need rows and min_child_weight, so their parent needs twice that."""
        weight = float(node.total[1]) * _units(quantized, node.output)[1]
        return node.n_sampled >= 2 and weight >= 2 * self._rules.min_child_weight

    def _make_leaf(self, node: _Node, quantized: Quantized, raw: np.ndarray) -> None:
        total_g, total_h = node.total[:1], node.total[1:]
        units = _units(quantized, node.output)
        value = leaf_values(total_g, total_h, *units, self._rules, self._settings.learning_rate, raw.dtype)
        node.builder.set_leaf(node.position, float(value[0]))
        raw[node.rows, node.output] += value[0]

    # ---- histograms

    def _attach_histograms(
        self,
        nodes: list[_Node],
        sources: np.ndarray,
        n_sources: int,
        number: int,
        level: int,
        quantized: Quantized,
        answers: Round,
    ) -> None:
        """Give each node its histograms: own features in the clear, then each passive party's answer.

        sources : (n_nodes,) node of the answers that each node's sums come from; there are n_sources of them.
        """
        with self.ledger.phase("own histograms"):
            own = self._own_histograms(nodes, quantized)
        totals = np.stack([node.total for node in nodes])
        outputs = np.array([node.output for node in nodes])
        foreign = []
        for party in self._passive:
            answer = answers[party]
            assert isinstance(answer, Histograms)
            try:
                foreign.append(self._open_histograms(party, answer, n_sources, totals, sources, outputs))
            except (CryptoError, ValueError, RemoteProtocolError) as error:
                raise RemoteProtocolError(
                    f"histograms of round {number}, level {level}: {error}", party
                ) from error
        for i, node in enumerate(nodes):
            node.histograms = [own[i], *(sums[i] for sums in foreign)]

    def _own_histograms(self, nodes: list[_Node], quantized: Quantized) -> list[np.ndarray]:
        sums: dict[int, np.ndarray] = {}
        for output in {node.output for node in nodes}:
            group = [node for node in nodes if node.output == output]
            starts = np.concatenate([[0], np.cumsum([len(node.rows) for node in group])])
            rows = np.concatenate([node.rows for node in group])
            built = build_histograms(
                self._binned, rows, starts, quantized.g[:, output], quantized.h[:, output],
                self._mapper.n_bins, self._settings.n_jobs,
            )  # fmt: skip
            sums.update(zip((node.record for node in group), built, strict=True))
        return [sums[node.record] for node in nodes]

    def _open_histograms(
        self,
        party: str,
        answer: Histograms,
        n_sources: int,
        totals: np.ndarray,
        sources: np.ndarray,
        outputs: np.ndarray,
    ) -> np.ndarray:
        """Decrypt, check and complete one answer: int64 (n_nodes, n_features, n_bins, 2)."""
        n_features, n_bins = self._shapes[party]
        shape = (n_sources, n_features, n_bins)
        n_cells = n_sources * n_features * n_bins
        if answer.present.size != (n_cells + 7) // 8 or answer.fullest.shape != shape[:2]:
            raise ValueError(f"expected {n_sources} nodes of {n_features} features and {n_bins} bins")
        present = np.unpackbits(answer.present, count=n_cells).astype(bool).reshape(shape)
        fullest = answer.fullest
        if ((fullest < 0) | (fullest >= n_bins)).any():
            raise ValueError(f"a fullest bin lies outside 0..{n_bins - 1}")
        if not np.take_along_axis(present, fullest.astype(np.int64)[..., None], axis=2).all():
            raise ValueError("a fullest bin is said to be empty")
        n_values = int(present.sum()) - n_sources * n_features
        if answer.n_values != n_values:
            raise ValueError(f"{n_values} sums were due, {answer.n_values} came")
        with self.ledger.phase("decrypt"):
            values = self._sealer.open(answer.sums, n_values)
        histograms = expand_histograms(present, fullest, values, totals, sources, outputs)
        if (histograms[..., 1] < 0).any():
            raise ValueError("sums of hessians exceed their node's")
        return histograms

    def _check_sibling(self, node: _Node, number: int, level: int) -> None:
        for party, sums in zip(self._passive, node.histograms[1:], strict=True):
            if (sums[..., 1] < 0).any():
                raise RemoteProtocolError(
                    f"histograms of round {number}, level {level}: sums of a child exceed its parent's", party
                )


def make_loss(settings: BoostSettings) -> Loss:
    """The loss of an objective."""
    if settings.objective == "binary:logistic":
        return Logistic(settings.scale_pos_weight)
    if settings.objective == "multi:softprob":
        return Softmax(settings.n_classes)
    return SquaredError()


def _units(quantized: Quantized, output: int) -> tuple[float, float]:
    return float(quantized.g_unit[output]), float(quantized.h_unit[output])


def _total(quantized: Quantized, rows: np.ndarray, output: int) -> np.ndarray:
    return np.array([quantized.g[rows, output].sum(), quantized.h[rows, output].sum()])


def _record_splits(number: int, level: int, group: list[_Split]) -> RecordSplits:
    return RecordSplits(
        round=number,
        level=level,
        nodes=np.array([split.node.record for split in group], dtype=np.int64),
        candidates=np.concatenate([[0], np.cumsum([len(split.slots) for split in group])]).astype(np.int32),
        slots=np.concatenate([split.slots for split in group]).astype(np.int32),
        bins=np.concatenate([split.bins for split in group]).astype(np.int32),
        missing_left=np.concatenate([split.missing_left for split in group]),
    )
