"""Which sums are asked of which child, and which follow from the parent's.

A slot that was drawn at the larger child and has sums at the parent is summed at the smaller child, whether it was
drawn there or not, and subtracted; every other drawn slot is summed where it was drawn. Counted in additions that is
never more than summing it directly: a feature takes as many additions as its node has rows, and the smaller child has
at most half of its parent's. Where both children drew the slot, the larger one's is free.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from ..bin_groups import regroup
from ..growing.nodes import Division
from .nodes import ForestNode, Slots


def ask_root(node: ForestNode) -> None:
    """A root has no parent: what is drawn is asked."""
    node.held = node.asked = node.drawn


def share_siblings(division: Division) -> None:
    """Set what is held and asked at both children; children that stay leaves have nothing drawn."""
    parent, smaller, larger = _nodes(division)
    n_parties = len(parent.held)
    none: list[Slots] = [np.zeros(0, dtype=np.int64)] * n_parties
    inherited = [
        np.intersect1d(drawn, held, assume_unique=True)
        for drawn, held in zip(larger.drawn or none, parent.held, strict=True)
    ]
    smaller.held = smaller.asked = [
        np.union1d(drawn, shared) for drawn, shared in zip(smaller.drawn or none, inherited, strict=True)
    ]
    larger.held = larger.drawn or none
    larger.asked = [
        np.setdiff1d(held, shared, assume_unique=True)
        for held, shared in zip(larger.held, inherited, strict=True)
    ]


def take_siblings(division: Division) -> None:
    """Complete the larger child's histograms with the parent's less the smaller child's. The parent's are let go."""
    parent, smaller, larger = _nodes(division)
    for party, asked in enumerate(larger.asked):
        held = larger.held[party]
        whole = np.zeros((len(held), *larger.histograms[party].shape[1:]), dtype=np.int64)
        whole[np.searchsorted(held, asked)] = larger.histograms[party]
        shared = np.setdiff1d(held, asked, assume_unique=True)
        places = np.searchsorted(smaller.held[party], shared)
        of_parent = parent.histograms[party][np.searchsorted(parent.held[party], shared)]
        borders = smaller.borders[party]
        if borders is not None:
            of_parent = regroup(of_parent, borders[places])
        whole[np.searchsorted(held, shared)] = of_parent - smaller.histograms[party][places]
        larger.histograms[party] = whole
    parent.histograms = []


def _nodes(division: Division) -> tuple[ForestNode, ForestNode, ForestNode]:
    return cast(
        "tuple[ForestNode, ForestNode, ForestNode]", (division.parent, division.smaller, division.larger)
    )
