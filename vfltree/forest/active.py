"""The active party: labels, the key, and the trees. Reads from top to bottom, as a forest grows level by level."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Generator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from vflcrypto import PrivateKey
from vflparty import Conversation, RemoteProtocolError, codec, to_all
from vflparty.party import Round

from ..growing.leader import SumLimits, TreeLeader, check_place
from ..growing.masks import pack_masks
from ..growing.models import active_result
from ..growing.nodes import Division, Node, Split
from ..growing.numbering import OWN
from ..sealing import make_sealer
from ..tree import Tree
from .draws import draw_rows, draw_slots
from .groups import group_trees
from .messages import (
    DivideNodes,
    ForestResult,
    ForestSetup,
    GrowTrees,
    JoinForest,
    OpenSlots,
    SumSlots,
    TargetsOfForest,
    TrainingEnded,
)
from .nodes import ForestNode, ForestRound, Targets
from .pair_sums import varied_features
from .requests import ask_root, share_siblings, take_siblings
from .settings import ForestSettings
from .values import RowValues, class_values, deviations

Steps = Generator[Round, Round, list[ForestNode]]


class ForestActive(TreeLeader):
    """The party with the labels. Leads the conversation; see `vfltree.forest` for who learns what.

    Parameters
    ----------
    features : float64 (n_rows, n_features); may have no columns; NaN is missing.
    targets : float64 (n_rows,): class numbers, or values with the criterion "squared_error".
    passive_parties : names, in the order in which ties are decided.
    settings : see `ForestSettings`.
    weights : float64 (n_rows,), positive; None: all one.
    class_weights : float64 (n_classes,), positive where a class has rows; None: all one.
    ids : identifiers of the rows in order; None: rows are rows.
    cuts : bin borders per feature to use in place of quantiles.
    random_seed : of draws; None draws it from the system. It never reaches the cipher.
    private_key : to use in place of a fresh one.
    """

    setup_message = ForestSetup
    result_message = ForestResult

    def __init__(
        self,
        features: np.ndarray,
        targets: np.ndarray,
        *,
        passive_parties: Sequence[str],
        settings: ForestSettings,
        weights: np.ndarray | None = None,
        class_weights: np.ndarray | None = None,
        ids: Collection[Any] | None = None,
        ids_digest: bytes | None = None,
        cuts: Sequence[np.ndarray] | None = None,
        random_seed: int | None = None,
        private_key: PrivateKey | None = None,
    ) -> None:
        super().__init__(
            features,
            passive_parties=passive_parties,
            settings=settings,
            ids=ids,
            ids_digest=ids_digest,
            cuts=cuts,
            random_seed=random_seed,
            private_key=private_key,
        )
        self._settings = settings
        self._seed = secrets.randbits(63) if random_seed is None else random_seed
        targets = np.asarray(targets, dtype=np.float64)
        values = row_values(settings, targets, weights)
        self._targets = Targets(values, targets, weights, class_weights)
        self._limits = SumLimits(values.largest, values.never_negative)

    @classmethod
    def from_setup(cls, setup: ForestSetup) -> ForestActive:
        return cls(
            setup.features,
            setup.targets,
            passive_parties=setup.passive_parties,
            settings=ForestSettings.from_json(setup.settings_json),
            weights=setup.weights if len(setup.weights) else None,
            class_weights=setup.class_weights if len(setup.class_weights) else None,
            ids_digest=setup.ids_digest,
            cuts=setup.cuts,
            random_seed=setup.random_seed,
        )

    # ---- the conversation

    def conversation(self) -> Conversation:
        """Bins, the targets once, then trees, a group at a time; returns the active party's half of the model."""
        n_values = self._targets.values.n_parts
        groups = yield from self._join()
        with self.ledger.phase("encrypt"):
            sealed = self._sealer.seal(self._targets.values.rows)
        yield to_all(self._passive, TargetsOfForest(sealed))
        sums = np.zeros((len(self._features), n_values))
        counts = np.zeros(len(self._features), dtype=np.int64)
        trees: list[Tree] = []
        for number, group in enumerate(groups):
            current = yield from self._grow_group(number, group)
            trees += current.trees()
            current.add_out_of_bag(sums, counts)
            self.report(f"{len(trees)} trees", len(trees), self._settings.n_estimators)
        yield to_all(self._passive, TrainingEnded(len(groups)))
        model = active_result(np.zeros(n_values), trees, self._own_splits, below=self._below)
        out_of_bag = np.zeros((0, 0))
        if self._settings.out_of_bag:
            none = np.full_like(sums, np.nan)
            out_of_bag = np.divide(sums, counts[:, None], out=none, where=counts[:, None] > 0)
        return ForestResult(codec.encode(model), out_of_bag)

    def _join(self) -> Generator[Round, Round, list[range]]:
        """Bin the own features, make the key, learn the shapes of what others will send; returns groups of trees."""
        settings, layout = self._settings, self._targets.values.layout
        self._bin_own()
        self._columns = np.asfortranarray(self._binned)
        self._sealer = make_sealer(self._obtain_key(), layout, n_jobs=settings.n_jobs, ledger=self.ledger)
        answers = yield to_all(
            self._passive,
            JoinForest(
                self._ids_digest, len(self._features), settings.n_estimators, settings.max_depth,
                settings.out_of_bag, layout.n_signed, layout.n_weights, layout.n_counts, layout.fraction_bits,
                settings.encryption, self._sealer.public_bytes,
            ),
        )  # fmt: skip
        self._keep_shapes(answers)
        self._n_features = [self._features.shape[1], *(self._shapes[party][0] for party in self._passive)]
        self._max_features = settings.n_drawn_features(sum(self._n_features))
        return group_trees(settings, len(self._features), self._max_features, layout.row_shape[0])

    # ---- one group

    def _grow_group(self, number: int, trees: range) -> Generator[Round, Round, ForestRound]:
        """All trees of a group, level by level together."""
        times = self._draw_rows(trees)
        current = ForestRound(number, trees.start, times, self._targets, self._settings, self._n_features)
        sent = times.ravel() if self._settings.bootstrap else np.zeros(0, dtype=np.uint16)
        answers = yield to_all(self._passive, GrowTrees(number, len(trees), sent))
        roots, level = current.roots(), 0
        nodes = self._draw_slots(current, level, roots, roots, answers)
        for node in nodes:
            ask_root(node)
        yield from self._sum_slots(current, level, nodes)
        while nodes:
            with self.ledger.phase("split search"):
                splits = current.choose_splits(list(nodes))
            divisions = yield from self._divide(current, level, splits)
            self._check_children(splits, divisions)
            level += 1
            nodes = yield from self._open_level(current, level, divisions)
        return current

    def _check_children(self, splits: Sequence[Split], divisions: Sequence[Division]) -> None:
        """Rows that a tree did not draw do not make a child."""
        for split, division in zip(splits, divisions, strict=True):
            if min(child.n_sampled for child in division.children) == 0:
                owner = self._passive[split.party - 1] if split.party != OWN else None
                raise RemoteProtocolError("all draws of a split node go the same way", owner)

    def _draw_rows(self, trees: range) -> NDArray[np.uint16]:
        """How often each tree draws each row, uint16 (n_trees, n_rows)."""
        n_rows = len(self._features)
        if not self._settings.bootstrap:
            return np.ones((len(trees), n_rows), dtype=np.uint16)
        n_draws = self._settings.n_draws(n_rows)
        return np.stack([draw_rows(self._seed, tree, n_rows, n_draws) for tree in trees])

    def _open_level(self, current: ForestRound, level: int, divisions: list[Division]) -> Steps:
        """Children, their drawn slots and the sums of them; returns the nodes that may be split."""
        worth = [(division, self._open_children(current, division)) for division in divisions]
        named = [division for division, open_children in worth if open_children]
        if not named:
            return []
        parents = np.array([division.parent.record for division in named], dtype=np.int64)
        packed = pack_masks([division.left for division in named])
        answers = yield to_all(self._passive, DivideNodes(current.number, level, parents, packed))
        children = [child for division in named for child in division.children]
        wanted = [child for _, open_children in worth for child in open_children]
        nodes = self._draw_slots(current, level, children, wanted, answers)
        for division in named:
            share_siblings(division)
        yield from self._sum_slots(current, level, children)
        for division in named:
            take_siblings(division)
            self._check_sibling(division.larger, current.number, level)
        return nodes

    def _draw_slots(
        self,
        current: ForestRound,
        level: int,
        opened: Sequence[Node],
        wanted: Sequence[Node],
        answers: Round,
    ) -> list[ForestNode]:
        """Draw slots for the nodes that may be split; those without one become leaves.

        opened : all nodes that the answers speak of, in order.
        """
        varied = self._read_varied(current, level, len(opened), answers)
        places = {node.record: i for i, node in enumerate(opened)}
        nodes = []
        for node in cast("Sequence[ForestNode]", wanted):
            if level == 0 and not current.may_split(node):
                current.make_leaf(node)
                continue
            own = self._own_varied(current, node)
            possible = [own, *(bits[places[node.record]] for bits in varied)]
            node.drawn = draw_slots(self._seed, node.record, possible, self._max_features)
            if sum(map(len, node.drawn)):
                nodes.append(node)
            else:
                current.make_leaf(node)
        return nodes

    def _own_varied(self, current: ForestRound, node: Node) -> NDArray[np.bool_]:
        if not self._features.shape[1]:
            return np.zeros(0, dtype=np.bool_)
        return varied_features(self._columns, current.drawn_rows(node))

    def _read_varied(
        self, current: ForestRound, level: int, n_nodes: int, answers: Round
    ) -> list[NDArray[np.bool_]]:
        """Per passive party bool (n_nodes, n_slots)."""
        varied = []
        for party in self._passive:
            answer = answers[party]
            assert isinstance(answer, OpenSlots)
            check_place(answer, current.number, level, party)
            n_bits = n_nodes * self._shapes[party][0]
            if answer.varied.ndim != 1 or answer.varied.size != (n_bits + 7) // 8:
                raise RemoteProtocolError(
                    f"slots of {n_nodes} nodes take {(n_bits + 7) // 8} bytes, got {answer.varied.size}",
                    party,
                )
            bits = np.unpackbits(answer.varied, count=n_bits).astype(np.bool_)
            varied.append(bits.reshape(n_nodes, -1))
        return varied

    def _sum_slots(
        self, current: ForestRound, level: int, nodes: Sequence[Node]
    ) -> Generator[Round, Round, None]:
        """Sums of the slots that are asked at the nodes: own features in the clear, the others' by their owners."""
        asking = [node for node in cast("Sequence[ForestNode]", nodes) if node.asked]
        if not asking:
            return
        questions: Round = {}
        for place, party in enumerate(self._passive, 1):
            of_party = [node for node in asking if len(node.asked[place])]
            if of_party:
                questions[party] = _sum_slots_message(current.number, level, of_party, place)
        answers: Round = {}
        if questions:
            answers = yield questions
        with self.ledger.phase("own histograms"):
            own = current.own_histograms(
                list(asking), self._columns, self._mapper.n_bins, self._settings.n_jobs
            )
        for node, histograms in zip(asking, own, strict=True):
            node.histograms, node.borders = [histograms], [None]
        for place, party in enumerate(self._passive, 1):
            self._read_pairs(current, level, place, party, asking, answers)

    def _read_pairs(
        self,
        current: ForestRound,
        level: int,
        place: int,
        party: str,
        asking: Sequence[ForestNode],
        answers: Round,
    ) -> None:
        """Give every asking node the histograms of its slots of one passive party."""
        n_asked = [len(node.asked[place]) for node in asking]
        n_pairs, n_bins = sum(n_asked), self._shapes[party][1]
        totals = np.repeat([node.total for node in asking], n_asked, axis=0)
        sums, borders = np.zeros((0, 1, n_bins, totals.shape[1]), dtype=np.int64), None
        if n_pairs:
            sums, borders = self._read_histograms(
                current, level, party, answers, (n_pairs, 1, n_bins),
                totals, np.arange(n_pairs), np.zeros(n_pairs, dtype=np.int64),
            )  # fmt: skip
        ends = np.cumsum(n_asked)
        for node, end, n in zip(asking, ends.tolist(), n_asked, strict=True):
            node.histograms.append(sums[end - n : end, 0])
            node.borders.append(None if borders is None else borders[end - n : end, 0])


def row_values(settings: ForestSettings, targets: np.ndarray, weights: np.ndarray | None) -> RowValues:
    """What the rows add up under these settings."""
    if settings.criterion == "squared_error":
        return deviations(targets, weights)
    return class_values(targets.astype(np.int64), settings.n_classes, weights)


def _sum_slots_message(number: int, level: int, nodes: Sequence[ForestNode], place: int) -> SumSlots:
    slots = [node.asked[place] for node in nodes]
    return SumSlots(
        round=number,
        level=level,
        nodes=np.array([node.record for node in nodes], dtype=np.int64),
        bounds=np.concatenate([[0], np.cumsum([len(chosen) for chosen in slots])]).astype(np.int32),
        slots=np.concatenate(slots).astype(np.int32),
    )
