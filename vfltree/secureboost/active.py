"""The active party: labels, the key, and the trees. Reads from top to bottom like SecureBoost, Algorithm 2."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from typing import Any, cast

import numpy as np

from vflcrypto import CryptoError, PrivateKey, obtain_keypair
from vflparty import Conversation, Leader, RemoteProtocolError, to_all
from vflparty.party import Round

from ..bin_sums import expand_histograms, unpack_present
from ..binning import MAX_BINS, BinMapper
from ..histogram import build_histograms
from ..losses import Logistic, Loss, Quantized, Scores, Softmax, SquaredError, fraction_bits_for, quantize
from ..rows import rows_digest
from ..sealing import Sealer, make_sealer
from ..splitting import SplitRules
from ..tree import RecordTable, Tree
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
from .nodes import BoostRound, Division, Node, Split
from .numbering import OWN
from .settings import BoostSettings

# A histogram holds 16 bytes a cell and node: a peer that claims more would take the memory of this process.
MAX_CELLS = 1 << 22

Steps = Generator[Round, Round, list[Node]]


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
        self._fraction_bits = fraction_bits_for(len(self._features))

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
            grown = yield from self._grow_round(number, raw)
            trees += grown
            if not np.isfinite(raw).all():
                raise ValueError(
                    f"raw scores overflow in round {number}: learning_rate={settings.learning_rate:g} is too large"
                )
            loss = self._loss.value(self._targets, raw, self._weights)
            self.report(f"loss {loss:.4f}", number + 1, settings.n_estimators)
        yield to_all(self._passive, TrainingEnded(settings.n_estimators))
        return active_result(base_score, trees, self._own_splits)

    def _join(self) -> Generator[Round, Round, None]:
        """Bin the own features, make the key, and learn the shapes of what the others will send."""
        settings, n_rows = self._settings, len(self._features)
        with self.ledger.phase("binning"):
            self._mapper = BinMapper.from_data(self._features, settings.max_bin, self._cuts)
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
            if joined.n_features < 1 or not 2 <= joined.n_bins <= MAX_BINS + 1:
                raise RemoteProtocolError(
                    f"{joined.n_features} features of {joined.n_bins} bins cannot be", party
                )
            if joined.n_features * joined.n_bins > MAX_CELLS:
                raise RemoteProtocolError(
                    f"{joined.n_features} features of {joined.n_bins} bins are more than {MAX_CELLS} cells",
                    party,
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

    def _grow_round(self, number: int, raw: np.ndarray) -> Generator[Round, Round, list[Tree]]:
        """A tree per output, all of them level by level together; adds their leaf values to `raw`."""
        rows = self._sample_rows()
        sampled = np.full(len(raw), not rows.size)
        sampled[rows] = True
        current = BoostRound(
            number, self._gradients(raw, rows), sampled, raw, self._rules, self._settings.learning_rate
        )
        with self.ledger.phase("encrypt"):
            sealed = self._sealer.seal(current.quantized.g[sampled], current.quantized.h[sampled])
        answers = yield to_all(self._passive, GradientsForRound(number, rows, sealed))
        nodes, level = current.roots(), 0
        builders = [node.builder for node in nodes]
        self._attach_histograms(current, level, nodes, answers)
        while nodes:
            with self.ledger.phase("split search"):
                splits = current.choose_splits(nodes)
            divisions = yield from self._divide(current, level, splits)
            level += 1
            nodes = yield from self._sum_children(current, level, divisions)
        return [builder.freeze() for builder in builders]

    def _divide(
        self, current: BoostRound, level: int, splits: list[Split]
    ) -> Generator[Round, Round, list[Division]]:
        """The children of every split node; the owner of a split decides who goes left and keeps the rule."""
        by_owner: dict[int, list[Split]] = {}
        for split in splits:
            by_owner.setdefault(split.party, []).append(split)
        masks = self._divide_own(by_owner.pop(OWN, []))
        if by_owner:
            answers = yield {
                self._passive[party - 1]: _record_splits(current.number, level, group)
                for party, group in by_owner.items()
            }
            for party, group in by_owner.items():
                name = self._passive[party - 1]
                answer = answers[name]
                assert isinstance(answer, SplitsRecorded)
                _check_place(answer, current.number, level, name)
                masks.update(self._read_masks(name, answer, group))
        return [current.divide(split, masks[split.node.record]) for split in splits]

    def _divide_own(self, splits: list[Split]) -> dict[int, np.ndarray]:
        """Record id -> bool (rows of the node,), left; the rules go into the own table."""
        masks, records = {}, []
        for split in splits:
            column, bin_, missing_left = int(split.slots[0]), int(split.bins[0]), bool(split.missing_left[0])
            bins = self._binned[split.node.rows, column]
            masks[split.node.record] = self._mapper.goes_left(bins, bin_, missing_left)
            records.append((split.node.record, column, self._mapper.threshold(column, bin_), missing_left))
        if records:
            self._own_splits = self._own_splits.append(*zip(*records, strict=True))
        return masks

    @staticmethod
    def _read_masks(party: str, answer: SplitsRecorded, group: list[Split]) -> dict[int, np.ndarray]:
        masks = unpack_masks(answer.left, [len(split.node.rows) for split in group], party)
        for mask in masks:
            if mask.all() or not mask.any():
                raise RemoteProtocolError(f"all {len(mask)} rows of a split node go the same way", party)
        return {split.node.record: mask for split, mask in zip(group, masks, strict=True)}

    def _sum_children(self, current: BoostRound, level: int, divisions: list[Division]) -> Steps:
        """Sums of the smaller child of each pair, the larger one by subtraction; returns the nodes worth a split."""
        worth = [(division, self._open_children(current, level, division)) for division in divisions]
        asked = [division for division, open_children in worth if open_children]
        if not asked:
            return []
        parents = np.array([division.parent.record for division in asked], dtype=np.int64)
        packed = pack_masks([division.left for division in asked])
        answers = yield to_all(self._passive, SumChildren(current.number, level, parents, packed))
        self._attach_histograms(current, level, [division.smaller for division in asked], answers)
        for division in asked:
            parent, smaller, larger = division.parent, division.smaller, division.larger
            larger.histograms = [
                whole - part for whole, part in zip(parent.histograms, smaller.histograms, strict=True)
            ]
            self._check_sibling(larger, current.number, level)
            parent.histograms = []
        return [child for _, open_children in worth for child in open_children]

    def _open_children(self, current: BoostRound, level: int, division: Division) -> list[Node]:
        """The children that may be split; the others become leaves."""
        open_children = []
        for child in division.children:
            if level < self._settings.max_depth and current.may_split(child):
                open_children.append(child)
            else:
                current.make_leaf(child)
        return open_children

    # ---- histograms

    def _attach_histograms(self, current: BoostRound, level: int, nodes: list[Node], answers: Round) -> None:
        """Give each node its histograms: own features in the clear, then each passive party's answer.

        An answer holds the sums of each node, in order; at level 0 once for all, since the roots share them.
        """
        with self.ledger.phase("own histograms"):
            own = self._own_histograms(current, nodes)
        totals = np.stack([node.total for node in nodes])
        outputs = np.array([node.output for node in nodes])
        sources = np.arange(len(nodes)) if level else np.zeros(len(nodes), dtype=np.int64)
        foreign = []
        for party in self._passive:
            answer = answers[party]
            assert isinstance(answer, Histograms)
            _check_place(answer, current.number, level, party)
            try:
                foreign.append(self._open_histograms(party, answer, totals, sources, outputs))
            except (CryptoError, ValueError, RemoteProtocolError) as error:
                raise RemoteProtocolError(
                    f"histograms of round {current.number}, level {level}: {error}", party
                ) from error
        for i, node in enumerate(nodes):
            node.histograms = [own[i], *(sums[i] for sums in foreign)]

    def _own_histograms(self, current: BoostRound, nodes: list[Node]) -> list[np.ndarray]:
        """Per node int64 (n_features, n_bins, 2), of the active party's features."""
        sums: dict[int, np.ndarray] = {}
        for output in {node.output for node in nodes}:
            group = [node for node in nodes if node.output == output]
            starts = np.concatenate([[0], np.cumsum([len(node.rows) for node in group])])
            rows = np.concatenate([node.rows for node in group])
            built = build_histograms(
                self._binned, rows, starts, current.quantized.g[:, output], current.quantized.h[:, output],
                self._mapper.n_bins, self._settings.n_jobs,
            )  # fmt: skip
            sums.update(zip((node.record for node in group), built, strict=True))
        return [sums[node.record] for node in nodes]

    def _open_histograms(
        self, party: str, answer: Histograms, totals: np.ndarray, sources: np.ndarray, outputs: np.ndarray
    ) -> np.ndarray:
        """Decrypt, check and complete one answer: int64 (n_nodes, n_features, n_bins, 2).

        totals : int64 (n_nodes, 2).  sources, outputs : (n_nodes,), see `expand_histograms`.
        """
        shape = (int(sources.max()) + 1, *self._shapes[party])
        present = unpack_present(answer.present, answer.fullest, shape)
        n_values = int(present.sum()) - answer.fullest.size
        if answer.n_values != n_values:
            raise ValueError(f"{n_values} sums were due, {answer.n_values} came")
        with self.ledger.phase("decrypt"):
            values = self._sealer.open(answer.sums, n_values)
        largest = len(self._features) << self._fraction_bits
        if ((values > largest) | (values < -largest)).any():
            raise ValueError(f"a sum is larger than that of {len(self._features)} rows can be")
        histograms = expand_histograms(present, answer.fullest, values, totals, sources, outputs)
        if (histograms[..., 1] < 0).any():
            raise ValueError("sums of hessians exceed their node's")
        return histograms

    def _check_sibling(self, node: Node, number: int, level: int) -> None:
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


def _check_place(answer: Histograms | SplitsRecorded, number: int, level: int, party: str) -> None:
    if (answer.round, answer.level) != (number, level):
        raise RemoteProtocolError(
            f"answered for round {answer.round}, level {answer.level}; asked was round {number}, level {level}",
            party,
        )


def _record_splits(number: int, level: int, group: list[Split]) -> RecordSplits:
    return RecordSplits(
        round=number,
        level=level,
        nodes=np.array([split.node.record for split in group], dtype=np.int64),
        candidates=np.concatenate([[0], np.cumsum([len(split.slots) for split in group])]).astype(np.int32),
        slots=np.concatenate([split.slots for split in group]).astype(np.int32),
        bins=np.concatenate([split.bins for split in group]).astype(np.int32),
        missing_left=np.concatenate([split.missing_left for split in group]),
    )
