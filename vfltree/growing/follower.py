"""A passive party's side of growing trees: rows of open nodes, its own splits, sums of bins, answers to questions."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np

from vflparty import Message, Party, RemoteProtocolError, RowsDisagreeError
from vflparty.modelfile import FilePath

from ..bin_groups import MIN_ROWS, BinGroups, check_min_rows
from ..bin_sums import count_bins, fullest_bins
from ..binning import NONE_LEFT, BinMapper
from ..categories import Categories
from ..joint_cells import MergeTree, find_trees, plan_sums, single_features, trees_of
from ..limited_splits import checked_signs
from ..rows import rows_digest
from ..sealing import Summer
from ..tree import RecordTable, record_parts
from .grouping import NodeGroups
from .masks import pack_masks, unpack_masks
from .messages import (
    Histograms,
    Joined,
    JoinPrediction,
    PassiveSetup,
    Records,
    RecordSplits,
    RouteRows,
    RowsRouted,
    SplitsRecorded,
)
from .models import ValuesBelow, decode_categories, decode_records, records_message
from .numbering import child_ids, smaller_child
from .routing import RouteAnswers
from .rules import SplitRule, append_rules, read_sets

_NO_COLUMNS = np.zeros(0, dtype=np.int64)


@dataclass
class OpenNodes:
    """What a passive party knows of the round in progress: some trees that grow together, and their rows."""

    number: int
    level: int
    slots: np.ndarray  # ascending: the features that may split nodes, as the active party numbers them
    open_nodes: dict[int, np.ndarray]  # record id -> rows of the nodes at this level
    own_splits: dict[int, np.ndarray] = field(
        default_factory=dict, init=False
    )  # masks answered at this level
    # Leaf-wise growth, where nodes stay open until they are split: how many leaves a tree may have (0: level by level),
    # and the record ids of nodes that were split.
    max_leaves: int = field(default=0, init=False)
    divided: set[int] = field(default_factory=set, init=False)

    def rows(self, node: int) -> np.ndarray:
        """Rows of an open node."""
        try:
            return self.open_nodes[node]
        except KeyError:
            raise RemoteProtocolError(f"node {node} is not open at level {self.level}") from None

    def sampled(self, node: int, rows: np.ndarray) -> np.ndarray:
        """Those of the node's rows that sums count, as often as they count."""
        raise NotImplementedError

    def count_splits(self, nodes: list[int]) -> None:
        """Leaf-wise growth: a tree is split no more often than its leaves allow."""
        if not self.max_leaves:
            return
        self.divided |= set(nodes)
        tree, n_splits = Counter(int(record_parts(node)[0]) for node in self.divided).most_common(1)[0]
        if n_splits >= self.max_leaves:
            raise RemoteProtocolError(
                f"{n_splits} splits of tree {tree} were asked, {self.max_leaves} leaves were agreed"
            )

    def columns(self, node: int, slots: np.ndarray) -> np.ndarray:
        """The columns that these slots stand for in the node's tree."""
        raise NotImplementedError

    def snap(self, rule: SplitRule, slot: int) -> SplitRule:
        """The split that the sums stand for which the active party has of this open node and slot."""
        return rule

    def divide(self, nodes: np.ndarray, left: np.ndarray) -> list[tuple[int, int]]:
        """Open the children of these nodes, one level down.

        nodes : record ids.  left : packed masks.  Returns how many rows count in the left and the right child of each.
        """
        parents = nodes.tolist()
        if len(set(parents)) != len(parents):
            raise RemoteProtocolError("a split node is named twice")
        rows = [self.rows(node) for node in parents]
        masks = unpack_masks(left, [len(r) for r in rows])
        children: dict[int, np.ndarray] = {}
        counted = []
        for node, node_rows, mask in zip(parents, rows, masks, strict=True):
            own = self.own_splits.get(node)
            if own is not None and not np.array_equal(own, mask):
                raise RemoteProtocolError(f"node {node} falls apart otherwise than its owner has answered")
            pair = node_rows[mask], node_rows[~mask]
            children.update(zip(child_ids(node), pair, strict=True))
            n_left, n_right = (len(self.sampled(node, child)) for child in pair)
            if min(n_left, n_right) == 0:
                raise RemoteProtocolError(f"node {node} has a child without rows")
            counted.append((n_left, n_right))
        if self.max_leaves:
            if not parents:
                raise RemoteProtocolError("no split node is named")
            self.count_splits(parents)
            children |= {node: rest for node, rest in self.open_nodes.items() if node not in self.divided}
        self.level, self.open_nodes, self.own_splits = self.level + 1, children, {}
        return counted


@dataclass
class OpenRound(OpenNodes):
    """A round in which every feature of every asked node is summed; its trees share gradients and rows."""

    feature_order: np.ndarray  # slot -> column, secret
    binned: np.ndarray  # (n_rows, len(slots)): bins, columns in that order
    trees: tuple[MergeTree, ...]  # places in `slots` to be summed together
    positions: np.ndarray  # row -> its place among the sampled rows, -1 where it was not drawn
    groups: NodeGroups | None  # of bins that are summed as one; None: there are none

    def sampled(self, node: int, rows: np.ndarray) -> np.ndarray:
        return rows[self.positions[rows] >= 0]

    def columns(self, node: int, slots: np.ndarray) -> np.ndarray:
        return self.feature_order[slots]

    def narrow(self, slots: np.ndarray) -> None:
        """From now on sum these slots only."""
        places = _places(slots, self.slots)
        self.slots, self.trees = slots, trees_of(self.trees, places)
        self.binned = np.asfortranarray(self.binned[:, places])
        if self.groups is not None:
            self.groups.narrow(places)

    def snap(self, rule: SplitRule, slot: int) -> SplitRule:
        if self.groups is None:
            return rule
        groups, feature = self.groups.of(rule.record), int(np.searchsorted(self.slots, slot))
        if rule.right is None:
            bin_, missing_left = groups.snap(feature, rule.bin, rule.missing_left)
            return replace(rule, bin=bin_, missing_left=missing_left)
        right, missing_left = groups.snap_set(feature, rule.right, rule.missing_left)
        if not right.any():
            raise RemoteProtocolError("a split names a set without sums")
        return replace(rule, right=right, missing_left=missing_left)

    def smaller_children(self, nodes: np.ndarray, left: np.ndarray) -> dict[int, np.ndarray]:
        """`divide`, and of each pair the child to be summed: record id -> rows."""
        counted = self.divide(nodes, left)
        smaller = [
            child_ids(node)[smaller_child(*pair)] for node, pair in zip(nodes.tolist(), counted, strict=True)
        ]
        return {child: self.open_nodes[child] for child in smaller}


class TreeFollower(Party):
    """What a passive party of every protocol of trees does. Subclasses join a training and take what is to be summed.

    features : float64 (n_rows, n_features); NaN is missing.
    ids : identifiers of the rows, in the order agreed with the others (only a digest leaves); None: rows are rows.
    allow_weak_key : accept a key that is fit for tests only.
    cuts : bin borders per feature to use in place of quantiles.
    random_seed : of the secret feature order; None draws it from the system.
    min_rows_per_sum : no sum that it sends, and none that follows for a node's sibling, is over fewer rows (and more
        than none); 1 sends them all. See `vfltree.bin_groups`.
    categories : lists behind the codes in `features`; None: all columns hold numbers.
    signs : 1 or -1 where predictions may not fall or rise with a feature (in boosting), else 0; None: all 0.
    """

    setup_message = PassiveSetup
    state_message = Records

    def __init__(
        self,
        features: np.ndarray,
        *,
        ids: Collection[Any] | None = None,
        ids_digest: bytes | None = None,
        name: str = "passive",
        max_bin: int = 32,
        allow_weak_key: bool = False,
        cuts: Sequence[np.ndarray] | None = None,
        random_seed: int | None = None,
        n_jobs: int = 1,
        records: RecordTable | None = None,
        min_rows_per_sum: int = MIN_ROWS,
        categories: Categories | None = None,
        signs: np.ndarray | None = None,
    ) -> None:
        self.name = name
        self._features = np.asarray(features, dtype=np.float64)
        self._ids_digest = rows_digest(ids, len(self._features)) if ids_digest is None else ids_digest
        self._max_bin, self._cuts, self._allow_weak_key = max_bin, cuts, allow_weak_key
        self._seed = secrets.randbits(63) if random_seed is None else random_seed
        self._n_jobs = n_jobs
        self._min_rows = check_min_rows(min_rows_per_sum)
        self._categories = Categories.none() if categories is None else categories
        self._signs = checked_signs(signs, self._features.shape[1])
        self.records = RecordTable.empty() if records is None else records
        self._below = ValuesBelow(self._features)
        self._round: OpenNodes | None = None
        self._summer: Summer | None = None
        self._answers: RouteAnswers | None = None

    @classmethod
    def from_setup(cls, setup: PassiveSetup) -> Self:
        return cls(
            setup.features,
            ids_digest=setup.ids_digest,
            name=setup.party,
            max_bin=setup.max_bin,
            allow_weak_key=setup.allow_weak_key,
            cuts=setup.cuts,
            random_seed=setup.random_seed,
            n_jobs=setup.n_jobs,
            records=decode_records(setup.records),
            min_rows_per_sum=setup.min_rows_per_sum,
            categories=decode_categories(setup.categories),
            signs=setup.signs,
        )

    @classmethod
    def from_file(cls, file: FilePath, X: Any, ids: Collection[Any] | None = None) -> Self:
        """A party that answers predictions about its rows X, out of its own file; see `growing.own_file`."""
        from .own_file import passive_setup  # pandas, which a party on a seat does without

        return cls.from_setup(passive_setup(file, X, ids))

    def receive(self, message: Message) -> Message:
        """As `Party.receive`; whatever array it is sent is a vector, so handlers need not ask."""
        for name, value in vars(message).items():
            if isinstance(value, np.ndarray) and value.ndim != 1:
                kind = type(message).__name__
                raise RemoteProtocolError(f"{kind}.{name} must be a vector, it has the shape {value.shape}")
        return super().receive(message)

    def export_state(self) -> Records:
        """Its half of the model, for itself to keep."""
        return records_message(self.records, self._below)

    # ---- training

    def on_record_splits(self, msg: RecordSplits) -> SplitsRecorded:
        """SecureBoost, Algorithm 2, step of the owner: keep feature and threshold, tell which rows go left."""
        current = self._current_round(msg.round, msg.level)
        _check_candidates(msg, current.slots)
        nodes, bounds = msg.nodes.tolist(), pairwise(msg.candidates.tolist())
        for node in nodes:
            current.rows(node)  # refuses nodes that are not open, before anything is looked up by them
        columns_of = [
            current.columns(node, msg.slots[start:stop])
            for node, (start, stop) in zip(nodes, bounds, strict=True)
        ]
        sets = read_sets(msg, self._mapper.n_categories[np.concatenate([_NO_COLUMNS, *columns_of])])
        masks, rules = [], []
        for node, columns, start in zip(nodes, columns_of, msg.candidates.tolist(), strict=False):
            best = int(columns.argmin())  # equal gains: the lowest column of this party
            at = start + best
            rule = SplitRule(
                node, int(columns[best]), int(msg.bins[at]), bool(msg.missing_left[at]), sets[at]
            )
            known = 0 <= rule.bin < self._mapper.n_bins - 1 or (rule.bin == NONE_LEFT and rule.missing_left)
            if rule.right is None and not known:
                raise RemoteProtocolError(f"a split names bin {rule.bin} of {self._mapper.n_bins - 1}")
            rule = current.snap(rule, int(msg.slots[at]))
            masks.append(self._split(current, rule))
            rules.append(rule)
        if rules:
            current.count_splits(nodes)
        self.records = append_rules(self.records, rules, self._mapper)
        return SplitsRecorded(msg.round, msg.level, pack_masks(masks))

    def _bin_own(self) -> None:
        categories, features = self._categories.used(self._features)
        sizes = categories.sizes(features.shape[1])
        self._mapper = BinMapper.from_data(features, self._max_bin, self._cuts, sizes)
        self._binned = self._mapper.transform(features)
        self.records = RecordTable.empty(categories)

    def _find_trees(self, encryption: str) -> tuple[MergeTree, ...]:
        """Columns to be summed together; in the clear planning would cost more than it saves."""
        if encryption == "none":
            return single_features(self._binned.shape[1])
        with self.ledger.phase("plan sums"):
            return find_trees(self._binned, self._mapper.n_bins)

    def _open_round(
        self,
        number: int,
        trees: Sequence[MergeTree],
        positions: np.ndarray,
        nodes: dict[int, np.ndarray],
        slots: np.ndarray | None = None,
    ) -> OpenRound:
        """A round at its roots, under a secret feature order drawn anew.

        nodes : record id -> rows.  slots : those to be summed, ascending; None: all.
        """
        order = np.random.default_rng([self._seed, number]).permutation(self._features.shape[1])
        everything = np.arange(len(order))
        slots = everything if slots is None else everything[_places(slots, everything)]
        columns = order[slots]
        binned = np.asfortranarray(self._binned[:, columns])
        groups = NodeGroups(self._min_rows) if self._min_rows > 1 else None
        return OpenRound(number, 0, slots, nodes, order, binned, trees_of(trees, columns), positions, groups)

    def _sum_nodes(self, current: OpenRound, rows_by_node: dict[int, np.ndarray]) -> Histograms:
        """rows_by_node : record id -> rows of a node; in this order the sums are answered."""
        assert self._summer is not None
        sampled = [current.sampled(node, rows) for node, rows in rows_by_node.items()]
        with self.ledger.phase("plan sums"):
            counts = count_bins(current.binned, sampled, self._mapper.n_bins)
            groups = self._group_bins(current, list(rows_by_node), counts)
            if groups:
                counts = np.stack([node.group_counts for node in groups])
            merged = np.stack([node.group for node in groups]) if groups else None
            plan = plan_sums(current.binned, sampled, counts, current.trees, current.positions, merged)
        sums = self._summer.sum(plan)
        return Histograms(
            current.number,
            current.level,
            np.packbits(counts > 0),
            fullest_bins(counts),
            plan.n_values,
            sums,
            groups=np.packbits(np.array([node.borders for node in groups], dtype=np.bool_)),
            n_categories=self._shown_categories(current),
        )

    def _group_bins(self, current: OpenRound, nodes: Sequence[int], counts: np.ndarray) -> list[BinGroups]:
        """Groups of the nodes that are summed; none where every bin is a group of its own."""
        if current.groups is None:
            return []
        if current.level == 0:
            return [current.groups.open_roots(list(current.open_nodes), counts[0])]
        return current.groups.open_children(nodes, counts, current.open_nodes)

    def _shown_categories(self, current: OpenRound) -> np.ndarray:
        """What the active party must know of the features of a round, told at its roots."""
        shown = self._mapper.n_categories[current.feature_order[current.slots]].astype(np.uint8)
        return shown if current.level == 0 and shown.any() else shown[:0]

    def _split(self, current: OpenNodes, rule: SplitRule) -> np.ndarray:
        """Which rows of the node go left, bool."""
        rows = current.rows(rule.record)
        if rule.record in current.own_splits:
            raise RemoteProtocolError(f"node {rule.record} is split twice")
        left = rule.goes_left(self._mapper, self._binned[rows, rule.column])
        current.own_splits[rule.record] = left
        return left

    # ---- prediction

    def on_join_prediction(self, msg: JoinPrediction) -> Joined:
        """Agree on the rows; answers are given for these rows only."""
        self._check_rows(msg.ids_digest, msg.n_rows)
        if self._answers is not None:
            raise RemoteProtocolError("these rows are being predicted already")
        features = self.records.categories.recode(self._features, self._categories)
        self._answers = RouteAnswers(self.records, features)
        return Joined(self._features.shape[1], 0)

    def on_route_rows(self, msg: RouteRows) -> RowsRouted:
        """One step of the paths: left or right at a record, for each (record, row)."""
        if self._answers is None:
            raise RemoteProtocolError("rows to predict have not been agreed")
        return RowsRouted(np.packbits(self._answers.answer(msg.records, msg.rows)))

    # ---- helpers

    def _check_rows(self, digest: bytes, n_rows: int) -> None:
        if n_rows != len(self._features):
            raise RowsDisagreeError(
                f"the active party holds {n_rows} rows, party {self.name!r} holds {len(self._features)}"
            )
        if digest != self._ids_digest:
            raise RowsDisagreeError(f"the row IDs of the active party and of party {self.name!r} differ")

    def _current_round(self, number: int, level: int) -> OpenNodes:
        if self._round is None or self._round.number != number or self._round.level != level:
            at = "none" if self._round is None else f"round {self._round.number}, level {self._round.level}"
            raise RemoteProtocolError(f"round {number}, level {level} was asked, in progress is {at}")
        return self._round


def _places(slots: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Where these slots stand among those known; both ascend."""
    if (np.diff(slots) <= 0).any() or not np.isin(slots, known).all():
        raise RemoteProtocolError("slots to be summed must be ascending, and summed so far")
    return np.searchsorted(known, slots)


def _check_candidates(msg: RecordSplits, slots: np.ndarray) -> None:
    """The bounds of the candidates fit, and every slot is one that is summed."""
    bounds_fit = (
        len(msg.candidates) == len(msg.nodes) + 1
        and msg.candidates[0] == 0
        and (np.diff(msg.candidates) > 0).all()
        and msg.candidates[-1] == len(msg.slots) == len(msg.bins) == len(msg.missing_left)
    )
    if not bounds_fit:
        raise RemoteProtocolError("candidates of the splits do not fit their bounds")
    if not np.isin(msg.slots, slots).all():
        raise RemoteProtocolError(f"a split names a slot that is none of the {len(slots)} that are summed")
