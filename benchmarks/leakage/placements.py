"""Which bin is a row in? What the active party solves for, from the sums that it decrypts.

It made the gradients, so a sum over one, two or three rows of a node is recognised: the (gradient, hessian) of a row is
as good as its name. What is solved is taken off, what remains in the last bin follows, and a bin known at one node is
known at the other nodes of the tree. Source: spelt out for SecureBoost by Weng et al. (arXiv 2011.09290); the search is
the plain one, a table of all single rows, pairs and triples.

Input: an `ActiveView`, nothing else. An attack that tries more rows at a time, or joins features, trees and rounds,
does better: the figures are a lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vfltree._jit import jit

from .views import ActiveRound, ActiveView, Judge, NodeSums

MOST_FOR_PAIRS, MOST_FOR_TRIPLES = 2048, 192  # rows of a node; the search takes their square
NOT_PLACED = -1
# Odd multipliers: sums of (g, h) become sums of 64-bit words, and different sums different words but for luck.
G_FACTOR, H_FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


@dataclass(frozen=True)
class Claims:
    """What follows for one round: lowest and highest bin that each row can be in, int16 (n_rows, n_slots).

    low, high : by small sums; NOT_PLACED where nothing followed.
    alone_low, alone_high : by nodes all of whose rows lie in one group, which no search is needed for.
    """

    number: int
    low: np.ndarray
    high: np.ndarray
    alone_low: np.ndarray
    alone_high: np.ndarray


def solve(view: ActiveView) -> list[Claims]:
    """All that follows from the sums of each round on its own."""
    return [_solve_round(round_) for round_ in view.rounds]


def _solve_round(round_: ActiveRound) -> Claims:
    n_rows = len(round_.gradients)
    n_slots = 1 + max(int(node.slots.max()) for node in round_.nodes)
    claims = Claims(
        round_.number, *(np.full((n_rows, n_slots), NOT_PLACED, dtype=np.int16) for _ in range(4))
    )
    n_known: dict[tuple[int, int], int] = {}
    # Down the tree, and up again with what was found below.
    for nodes in (round_.nodes, round_.nodes[::-1]):
        for node in nodes:
            keys = _keys(round_.gradients[node.rows, :, node.output])
            hessians = round_.gradients[node.rows, 1, node.output]
            for place, slot in enumerate(node.slots.tolist()):
                if n_known.get((node.record, slot)) != _n_known(claims, node, slot):
                    _solve_node(node, place, keys, hessians, claims, slot)
                    n_known[node.record, slot] = _n_known(claims, node, slot)
    return claims


def _n_known(claims: Claims, node: NodeSums, slot: int) -> int:
    return int((claims.low[node.rows, slot] != NOT_PLACED).sum())


def _solve_node(
    node: NodeSums, place: int, keys: np.ndarray, hessians: np.ndarray, claims: Claims, slot: int
) -> None:
    borders = node.borders[place]
    if borders.sum() == 1:
        return  # not answered
    ends = np.flatnonzero(borders)
    starts = np.concatenate([[0], ends[:-1] + 1])
    cells = node.sums[place][ends]
    rows = node.rows
    if (cells[:, 1] > 0).sum() == 1:
        group = int(np.flatnonzero(cells[:, 1] > 0)[0])
        claims.alone_low[rows, slot], claims.alone_high[rows, slot] = starts[group], ends[group]
        return
    low, high = claims.low[rows, slot], claims.high[rows, slot]
    known = np.searchsorted(ends, np.maximum(low, 0))
    fits = (low != NOT_PLACED) & (high <= ends[known])
    groups = np.where(fits, known, NOT_PLACED)
    _search(keys, hessians, _keys(cells), cells[:, 1].copy(), groups, MOST_FOR_PAIRS, MOST_FOR_TRIPLES)
    found = (groups != NOT_PLACED) & (low == NOT_PLACED)
    claims.low[rows[found], slot] = starts[groups[found]]
    claims.high[rows[found], slot] = ends[groups[found]]


def _keys(pairs: np.ndarray) -> np.ndarray:
    """(n, 2) gradients and hessians as words."""
    words = pairs.astype(np.uint64)  # negative numbers wrap, as sums do
    return words[:, 0] * G_FACTOR + words[:, 1] * H_FACTOR


def score(claims: list[Claims], judge: Judge) -> dict[str, float]:
    """The share of all (row, feature) pairs that are placed in some round, and the share of claims that are true.

    A row is placed where it is pinned to bins that hold a tenth of all rows at most, or to one bin: wider claims are
    what every foreign split tells by its nature. That features can be told apart over rounds is given to the attacker.
    """
    narrow_by_feature = narrow_ranges(judge.bins)
    solved, alone = (np.zeros(judge.bins.shape, dtype=bool) for _ in range(2))
    n_claims = n_true = 0
    for of_round in claims:
        order = judge.orders[of_round.number][: of_round.low.shape[1]]
        bins, narrow = judge.bins[:, order], narrow_by_feature[order]
        for low, high, seen in (
            (of_round.low, of_round.high, solved),
            (of_round.alone_low, of_round.alone_high, alone),
        ):
            claimed = low != NOT_PLACED
            true = claimed & (low <= bins) & (bins <= high)
            n_claims, n_true = n_claims + int(claimed.sum()), n_true + int(true.sum())
            seen[:, order] |= true & narrow[np.arange(len(order)), low, high]
    return {
        "solved": float(solved.mean()),
        "alone": float((alone & ~solved).mean()),
        "true claims": n_true / max(n_claims, 1),
    }


def narrow_ranges(bins: np.ndarray) -> np.ndarray:
    """Whether a range of bins says something: bool (n_features, n_bins, n_bins), by lowest and highest bin."""
    n_bins = int(bins.max()) + 1
    shares = np.stack([np.bincount(column, minlength=n_bins) for column in bins.T]) / len(bins)
    before = np.concatenate([np.zeros((len(shares), 1)), np.cumsum(shares, axis=1)], axis=1)
    held = before[:, None, 1:] - before[:, :-1, None]
    return (held <= 0.1) | np.eye(n_bins, dtype=bool)


@jit
def _search(keys, hessians, cell_keys, cell_h, groups, most_for_pairs, most_for_triples):  # type: ignore[no-untyped-def]
    """Place rows in cells by their keys; `groups` holds the cell of each row, or -1 where that is not known yet."""
    n, m = len(keys), len(cell_keys)
    left_keys, left_h = cell_keys.copy(), cell_h.copy()
    for i in range(n):
        if groups[i] >= 0:
            left_keys[groups[i]] -= keys[i]
            left_h[groups[i]] -= hessians[i]
    order = np.argsort(keys)
    hopeless = np.zeros(
        (m, 4), dtype=np.bool_
    )  # no subset of so many rows; fewer rows will not have one either
    rest = np.empty(n, dtype=np.int64)  # rows that are not placed, by key
    words = np.empty(n, dtype=np.uint64)
    found = np.empty(3, dtype=np.int64)
    progress = True
    while progress:
        progress = False
        size, low_h, high_h, total = 0, np.int64(2**62), np.int64(0), np.int64(0)
        for i in order:
            if groups[i] < 0:
                rest[size], words[size] = i, keys[i]
                low_h, high_h, total = min(low_h, hessians[i]), max(high_h, hessians[i]), total + hessians[i]
                size += 1
        if size == 0:
            break
        n_open, last = 0, -1
        for c in range(m):
            if left_h[c] > 0:
                n_open, last = n_open + 1, c
        if n_open == 1:
            for i in range(size):
                groups[rest[i]] = last
            break
        for c in range(m):
            if left_h[c] <= 0:
                continue
            for count in range(1, 4):
                if left_h[c] < count * low_h or left_h[c] > count * high_h:
                    continue
                if hopeless[c, count]:
                    continue
                if (count == 2 and size > most_for_pairs) or (count == 3 and size > most_for_triples):
                    continue
                n_found = _subsets(words, size, left_keys[c], count, found)
                hopeless[c, count] = n_found == 0
                if n_found == 1:
                    for f in range(count):
                        groups[rest[found[f]]] = c
                    left_keys[c], left_h[c] = np.uint64(0), np.int64(0)
                    progress = True
                    break
            if progress:
                break


@jit
def _subsets(words, size, target, count, found):  # type: ignore[no-untyped-def]
    """How many subsets of so many sorted words sum up to the target (2: two or more); the last one goes to `found`."""
    n_found = 0
    if count == 1:
        at = np.searchsorted(words[:size], target)
        while at < size and words[at] == target and n_found < 2:
            found[0] = at
            n_found, at = n_found + 1, at + 1
        return n_found
    if count == 2:
        for i in range(size):
            wanted = target - words[i]
            at = max(np.searchsorted(words[:size], wanted), i + 1)
            while at < size and words[at] == wanted and n_found < 2:
                found[0], found[1] = i, at
                n_found, at = n_found + 1, at + 1
        return n_found
    for i in range(size):
        for j in range(i + 1, size):
            wanted = target - words[i] - words[j]
            at = max(np.searchsorted(words[:size], wanted), j + 1)
            while at < size and words[at] == wanted and n_found < 2:
                found[0], found[1], found[2] = i, j, at
                n_found, at = n_found + 1, at + 1
            if n_found > 1:
                return n_found
    return n_found
