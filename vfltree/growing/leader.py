"""The active party's side of growing trees: bins, key, what passive parties' sums say, and who goes left."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from vflcrypto import CryptoError, PrivateKey, obtain_keypair
from vflparty import Leader, Message, RemoteProtocolError
from vflparty.party import Round

from ..bin_groups import regroup, unpack_borders
from ..bin_sums import expand_histograms, unpack_present
from ..binning import MAX_BINS, BinMapper
from ..categories import Categories
from ..rows import rows_digest
from ..sealing import Sealer
from ..tree import RecordTable, heap_depth, record_parts
from .masks import unpack_masks
from .messages import Histograms, Joined, RecordSplits, SplitsRecorded, no_bytes
from .models import ValuesBelow
from .nodes import Division, Growing, Node, Split, pack_sets
from .numbering import OWN
from .rules import BY_SET, SplitRule, append_rules

# A histogram holds 16 bytes a cell and node: a peer that claims more would take the memory of this process.
MAX_CELLS = 1 << 22


class GrowthSettings(Protocol):
    """What growing asks of a protocol's settings."""

    @property
    def max_depth(self) -> int: ...
    @property
    def max_bin(self) -> int: ...
    @property
    def encryption(self) -> str: ...
    @property
    def key_bits(self) -> int: ...
    @property
    def allow_weak_key(self) -> bool: ...
    @property
    def n_jobs(self) -> int: ...


class Placed(Protocol):
    """An answer that says where it belongs."""

    @property
    def round(self) -> int: ...
    @property
    def level(self) -> int: ...


@dataclass(frozen=True)
class SumLimits:
    """What no honest sum exceeds."""

    largest: int  # magnitude of any value of a sum over all rows
    never_negative: tuple[
        int, ...
    ]  # which values are sums of numbers >= 0, so that no child exceeds its parent


class TreeLeader(Leader):
    """What the active party of every protocol of trees does. Subclasses lead the conversation.

    Parameters
    ----------
    features : float64 (n_rows, n_features); may have no columns; NaN is missing.
    passive_parties : names, in the order in which ties are decided.
    settings : see the protocol's.
    ids : identifiers of the rows in order; None: rows are rows.
    cuts : bin borders per feature to use in place of quantiles.
    categories : lists behind the codes in `features`; None: all columns hold numbers.
    random_seed : of whatever is drawn; None draws it from the system. It never reaches the cipher.
    private_key : to use in place of a fresh one.
    """

    _limits: SumLimits
    _outputs_together = False  # nodes hold sums of all outputs side by side, kind after kind
    _sealer: Sealer
    # Per party, the active one first, the slots that nodes hold sums of, ascending; None: all features.
    _shown: tuple[np.ndarray, ...] | None = None

    def __init__(
        self,
        features: np.ndarray,
        *,
        passive_parties: Sequence[str],
        settings: GrowthSettings,
        ids: Collection[Any] | None = None,
        ids_digest: bytes | None = None,
        cuts: Sequence[np.ndarray] | None = None,
        categories: Categories | None = None,
        random_seed: int | None = None,
        private_key: PrivateKey | None = None,
    ) -> None:
        self._features = np.asarray(features, dtype=np.float64)
        self._passive = tuple(passive_parties)
        self._growth = settings
        self._ids_digest = rows_digest(ids, len(self._features)) if ids_digest is None else ids_digest
        self._cuts = cuts
        self._categories = Categories.none() if categories is None else categories
        self._rng = np.random.default_rng(random_seed)
        self._private_key = private_key
        self._own_splits = RecordTable.empty()
        self._below = ValuesBelow(self._features)

    # ---- joining

    def _bin_own(self) -> None:
        with self.ledger.phase("binning"):
            categories, features = self._categories.used(self._features)
            sizes = categories.sizes(features.shape[1])
            self._mapper = BinMapper.from_data(features, self._growth.max_bin, self._cuts, sizes)
            self._binned = self._mapper.transform(features)
        self._own_splits = RecordTable.empty(categories)

    def _obtain_key(self) -> PrivateKey | None:
        """The key of this training; None without encryption."""
        growth = self._growth
        if growth.encryption == "none":
            return None
        if self._private_key is not None:
            return self._private_key
        with self.ledger.phase("key generation"):
            _, key = obtain_keypair(growth.key_bits, allow_weak_key=growth.allow_weak_key)
        return key

    def _keep_shapes(self, answers: Round) -> None:
        """Learn the shapes of what the others will send."""
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

    # ---- dividing nodes

    def _divide(
        self, current: Growing, level: int, splits: list[Split]
    ) -> Generator[Round, Round, list[Division]]:
        """The children of every split node; the owner of a split decides who goes left and keeps the rule."""
        by_owner: dict[int, list[Split]] = {}
        for split in splits:
            by_owner.setdefault(split.party, []).append(split)
        masks = self._divide_own(by_owner.pop(OWN, []))
        if by_owner:
            answers = yield {
                self._passive[party - 1]: _record_splits(current, party, level, group)
                for party, group in by_owner.items()
            }
            for party, group in by_owner.items():
                name = self._passive[party - 1]
                answer = answers[name]
                assert isinstance(answer, SplitsRecorded)
                check_place(answer, current.number, level, name)
                masks.update(self._read_masks(name, answer, group))
        return [current.divide(split, masks[split.node.record]) for split in splits]

    def _divide_own(self, splits: list[Split]) -> dict[int, np.ndarray]:
        """Record id -> bool (rows of the node,), left; the rules go into the own table."""
        masks, rules = {}, []
        for split in splits:
            rule = self._own_rule(split)
            masks[rule.record] = rule.goes_left(self._mapper, self._binned[split.node.rows, rule.column])
            rules.append(rule)
        self._own_splits = append_rules(self._own_splits, rules, self._mapper)
        return masks

    def _own_rule(self, split: Split) -> SplitRule:
        """The first of equals: the lowest column."""
        column, bin_ = int(split.slots[0]), int(split.bins[0])
        right = None
        if bin_ == BY_SET and split.right is not None:
            right = split.right[0, : self._mapper.n_categories[column]]
        return SplitRule(split.node.record, column, bin_, bool(split.missing_left[0]), right)

    def _read_masks(self, party: str, answer: SplitsRecorded, group: list[Split]) -> dict[int, np.ndarray]:
        masks = unpack_masks(answer.left, [len(split.node.rows) for split in group], party)
        for mask in masks:
            if mask.all() or not mask.any():
                raise RemoteProtocolError(f"all {len(mask)} rows of a split node go the same way", party)
        return {split.node.record: mask for split, mask in zip(group, masks, strict=True)}

    def _show_only(self, slots: tuple[np.ndarray, ...], divisions: list[Division]) -> None:
        """From now on nodes hold sums of these slots: what is left out goes from the parents of these divisions."""
        assert self._shown is not None
        kept = [np.searchsorted(before, now) for before, now in zip(self._shown, slots, strict=True)]
        for division in divisions:
            sums = division.parent.histograms
            division.parent.histograms = [of[places] for of, places in zip(sums, kept, strict=True)]
        self._shown = slots

    def _summing_parties(self) -> list[str]:
        """Passive parties some of whose features are summed."""
        if self._shown is None:
            return list(self._passive)
        return [
            party for party, slots in zip(self._passive, self._shown[OWN + 1 :], strict=True) if len(slots)
        ]

    def _open_children(self, current: Growing, division: Division) -> list[Node]:
        """The children that may be split; the others become leaves."""
        open_children = []
        for child in division.children:
            depth = int(heap_depth(record_parts(child.record)[1]))
            if depth < self._growth.max_depth and current.may_split(child):
                open_children.append(child)
            else:
                current.make_leaf(child)
        return open_children

    # ---- histograms

    def _attach_histograms(self, current: Growing, level: int, nodes: list[Node], answers: Round) -> None:
        """Give each node its histograms: own features in the clear, then each passive party's answer.

        An answer holds the sums of each node, in order; at level 0 once for all, since the roots share them.
        """
        with self.ledger.phase("own histograms"):
            binned = self._binned if self._shown is None else self._binned[:, self._shown[OWN]]
            own = current.own_histograms(nodes, binned, self._mapper.n_bins, self._growth.n_jobs)
        totals = np.stack([node.total for node in nodes])
        outputs = np.array([node.output for node in nodes])
        sources = np.arange(len(nodes)) if level else np.zeros(len(nodes), dtype=np.int64)
        foreign = []
        borders: list[np.ndarray | None] = []
        if not level:
            current.n_categories = [self._mapper.n_categories]
        for party in self._passive:
            n_features, n_bins = self._shapes[party]
            if not level:
                current.n_categories.append(np.zeros(n_features, dtype=np.int64))
            if party not in answers:  # nothing of it is summed
                foreign.append(np.zeros((len(nodes), 0, n_bins, totals.shape[1]), dtype=np.int64))
                borders.append(None)
                continue
            if self._shown is not None:
                n_features = len(self._shown[1 + self._passive.index(party)])
            shape = (int(sources.max()) + 1, n_features, n_bins)
            if not level:
                self._read_categories(current, party, answers[party])
            opened = self._read_histograms(current, level, party, answers, shape, totals, sources, outputs)
            foreign.append(opened[0])
            borders.append(opened[1])
        for i, node in enumerate(nodes):
            node.histograms = [own[i], *(sums[i] for sums in foreign)]
            node.borders = [None, *(None if of is None else of[i] for of in borders)]

    def _read_histograms(
        self,
        current: Growing,
        level: int,
        party: str,
        answers: Round,
        shape: tuple[int, int, int],
        *expand: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """A party's answer opened, and borders of groups below the roots; whatever is wrong is that party's error."""
        answer = answers[party]
        assert isinstance(answer, Histograms)
        check_place(answer, current.number, level, party)
        try:
            opened = self._open_histograms(answer, shape, *expand)
            # The roots are never regrouped: they have no parent.
            return opened, unpack_borders(answer.groups if level else no_bytes(), opened)
        except (CryptoError, ValueError, RemoteProtocolError) as error:
            raise RemoteProtocolError(
                f"histograms of round {current.number}, level {level}: {error}", party
            ) from error

    def _open_histograms(
        self,
        answer: Histograms,
        shape: tuple[int, int, int],
        totals: np.ndarray,
        sources: np.ndarray,
        outputs: np.ndarray,
    ) -> np.ndarray:
        """Decrypt, check and complete one answer: int64 (n_wanted, n_features, n_bins, n_values).

        shape : (n_nodes, n_features, n_bins) of the answer.  totals : int64 (n_wanted, n_values).
        sources, outputs : (n_wanted,), see `expand_histograms`.
        """
        present = unpack_present(answer.present, answer.fullest, shape)
        n_values = int(present.sum()) - answer.fullest.size
        if answer.n_values != n_values:
            raise ValueError(f"{n_values} sums were due, {answer.n_values} came")
        with self.ledger.phase("decrypt"):
            values = self._sealer.open(answer.sums, n_values)
        if self._outputs_together:
            values = values.reshape(len(values), totals.shape[1], 1)
        largest = self._limits.largest
        if ((values > largest) | (values < -largest)).any():
            raise ValueError(f"a sum is larger than that of {len(self._features)} rows can be")
        histograms = expand_histograms(present, answer.fullest, values, totals, sources, outputs)
        if (histograms[..., self._limits.never_negative] < 0).any():
            raise ValueError("sums of a node's bins exceed the node's own")
        return histograms

    def _read_categories(self, current: Growing, party: str, answer: Message) -> None:
        """Note how many categories each feature has that a party shows at its roots; 0 for the others."""
        assert isinstance(answer, Histograms)
        n_features, n_bins = self._shapes[party]
        shown = np.arange(n_features)
        if self._shown is not None:
            shown = self._shown[1 + self._passive.index(party)]
        given = answer.n_categories
        if given.shape not in ((0,), shown.shape) or given.max(initial=0) >= n_bins:
            raise RemoteProtocolError(
                f"numbers of categories do not fit {len(shown)} features of {n_bins} bins", party
            )
        if given.size:
            current.n_categories[-1][shown] = given

    def _take_siblings(self, current: Growing, level: int, divisions: list[Division]) -> None:
        """Histograms of the larger children: the parent's less the smaller child's. The parent's are let go."""
        for division in divisions:
            parent, smaller, larger = division.parent, division.smaller, division.larger
            larger.histograms = [
                (whole if borders is None else regroup(whole, borders)) - part
                for whole, borders, part in zip(
                    parent.histograms, smaller.borders, smaller.histograms, strict=True
                )
            ]
            self._check_sibling(larger, current.number, level)
            parent.histograms = []

    def _check_sibling(self, node: Node, number: int, level: int) -> None:
        for party, sums in zip(self._passive, node.histograms[1:], strict=True):
            if (sums[..., self._limits.never_negative] < 0).any():
                raise RemoteProtocolError(
                    f"histograms of round {number}, level {level}: sums of a child exceed its parent's", party
                )


def check_place(answer: Placed, number: int, level: int, party: str) -> None:
    """The answer is to what was asked."""
    if (answer.round, answer.level) != (number, level):
        raise RemoteProtocolError(
            f"answered for round {answer.round}, level {answer.level}; asked was round {number}, level {level}",
            party,
        )


def _record_splits(current: Growing, party: int, level: int, group: list[Split]) -> RecordSplits:
    return RecordSplits(
        round=current.number,
        level=level,
        nodes=np.array([split.node.record for split in group], dtype=np.int64),
        candidates=np.concatenate([[0], np.cumsum([len(split.slots) for split in group])]).astype(np.int32),
        slots=np.concatenate([split.slots for split in group]).astype(np.int32),
        bins=np.concatenate([split.bins for split in group]).astype(np.int32),
        missing_left=np.concatenate([split.missing_left for split in group]),
        sets=pack_sets(group, current.n_categories[party]),
    )
