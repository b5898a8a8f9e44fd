"""Pictures of a model: which columns matter, and single trees, as far as the viewer may see them.

Drawing needs matplotlib (`pip install "vfltree[plot]"`); `tree_to_text` does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from .inspection import ALL_COLUMNS, ModelView, Split

_INCHES_PER_LEAF, _INCHES_PER_LEVEL = 1.1, 1.1
_KNOWN, _FOREIGN, _LEAF = "#dbe9f6", "#e8e8e8", "#e2f0d9"


@dataclass(frozen=True)
class DrawnNode:
    """A node where it is drawn: leaves one beside the other, parents in the middle above their children.

    place : position in the tree.  x : in leaves from the left; y : depth.  parent : place of the parent, None for the
    root.  left : whether it is the left child.  split : as the viewer knows it, None for a leaf.
    """

    place: int
    x: float
    y: int
    parent: int | None
    left: bool
    split: Split | None
    text: str


def layout(view: ModelView, number: int) -> list[DrawnNode]:
    """The nodes of a tree from the root down, the left child before the right one.

    ValueError where the viewer has no such tree.
    """
    if not view.trees:
        raise ValueError(
            f"party {next(iter(view.tables))!r} alone has splits and no trees: those are the active party's"
        )
    if not 0 <= number < len(view.trees):
        raise ValueError(f"tree {number} was asked, the model has trees 0 to {len(view.trees) - 1}")
    tree = view.trees[number]
    order = list(_downwards(tree, 0))
    x = dict(zip([at for at in order if tree.owner[at] < 0], map(float, range(len(order))), strict=False))
    for at in reversed(order):
        if at not in x:
            x[at] = (x[int(tree.left[at])] + x[int(tree.right[at])]) / 2
    parents = {
        int(child): at for at in order if tree.owner[at] >= 0 for child in (tree.left[at], tree.right[at])
    }
    nodes = []
    for at in order:
        split, parent = view.split(number, at), parents.get(at)
        text = _numbers(tree.value[at]) if split is None else split_text(split)
        left = parent is not None and tree.left[parent] == at
        nodes.append(DrawnNode(at, x[at], int(tree.node[at]).bit_length() - 1, parent, left, split, text))
    return nodes


def _downwards(tree: Any, root: int) -> Iterator[int]:
    stack = [root]
    while stack:
        at = stack.pop()
        yield at
        if tree.owner[at] >= 0:
            stack += [int(tree.right[at]), int(tree.left[at])]


def split_text(split: Split) -> str:
    """ "bank: income < 3.5", or "shop: split 5" where the split is kept from the viewer."""
    if not split.known:
        return f"{split.party}: split {split.number}"
    missing = "left" if split.missing_left else "right"
    if split.right is not None:
        rule = f"not in categories {', '.join(map(str, split.right))}"
    elif split.threshold == np.inf:
        rule = "is there"
    elif split.threshold == -np.inf:
        rule = "is missing"
    else:
        rule = f"< {split.threshold:.6g}"
    return f"{split.party}: {split.name} {rule} (missing: {missing})"


def _numbers(values: np.ndarray) -> str:
    return ", ".join(f"{value:.4g}" for value in values)


def tree_to_text(model: Any, number: int = 0, viewer: str | None = None) -> str:
    """A tree in lines of text.

    Parameters
    ----------
    model : a trained estimator of trees
    number : of the tree
    viewer : the party through whose eyes to look: foreign splits are an owner and a number. None: with all halves that
        are at hand

        bank: income < 3.5 (missing: right)
        ├─ left: -0.6667
        └─ right: shop: split 3
           ├─ left: 0.1
           └─ right: 0.6667
    """
    nodes = {node.place: node for node in layout(ModelView.of(model, viewer), number)}
    margins: dict[int, str] = {}  # what stands before the children of a node
    lines = []
    for node in nodes.values():
        if node.parent is None:
            margins[node.place] = ""
            lines.append(node.text)
            continue
        margin = margins[node.parent]
        branch, side = ("├─", "left") if node.left else ("└─", "right")
        margins[node.place] = margin + ("│  " if node.left else "   ")
        lines.append(f"{margin}{branch} {side}: {node.text}")
    return "\n".join(lines)


def plot_tree(model: Any, number: int = 0, viewer: str | None = None, ax: Any = None) -> Any:
    """Draw a tree, and return the axes. ax : matplotlib's, to draw on; None: new ones. Others as `tree_to_text`."""
    nodes = {node.place: node for node in layout(ModelView.of(model, viewer), number)}
    width, depth = 1 + max(node.x for node in nodes.values()), 1 + max(node.y for node in nodes.values())
    ax = _axes(ax, max(4.0, _INCHES_PER_LEAF * width), max(2.0, _INCHES_PER_LEVEL * depth))
    for node in nodes.values():
        if node.parent is not None:
            above = nodes[node.parent]
            ax.plot([above.x, node.x], [-above.y, -node.y], color="0.6", linewidth=1, zorder=1)
            middle = (above.x + node.x) / 2, -(above.y + node.y) / 2
            ax.text(
                *middle, "left" if node.left else "right", ha="center", va="center", fontsize=7, color="0.4"
            )
        text = node.text.replace(": ", ":\n", 1).replace(" (", "\n(")
        box = {"boxstyle": "round", "facecolor": _colour(node.split), "edgecolor": "0.5"}
        ax.text(node.x, -node.y, text, ha="center", va="center", fontsize=8, bbox=box, zorder=2)
    ax.set(xlim=(-0.7, width - 0.3), ylim=(-depth + 0.4, 0.6), title=f"tree {number}")
    ax.axis("off")
    return ax


def _colour(split: Split | None) -> str:
    return _LEAF if split is None else _KNOWN if split.known else _FOREIGN


def plot_importance(
    model: Any, kind: str = "gain", viewer: str | None = None, max_features: int = 20, ax: Any = None
) -> Any:
    """Bars of the columns that matter most, a colour per party.

    Parameters
    ----------
    model : a trained estimator of trees
    kind, viewer : as in `importances`
    max_features : the most bars that are drawn
    ax : matplotlib's axes to draw on; None: new ones

    Returns
    -------
    the axes
    """
    if max_features < 1:
        raise ValueError(f"max_features must be 1 or more, got {max_features}")
    found = model.importances(kind, viewer=viewer)
    bars = [
        (value, party, name) for party, series in found.items() for name, value in series.items() if value > 0
    ]
    bars = sorted(bars, key=lambda bar: -bar[0])[:max_features][::-1]
    ax = _axes(ax, 6.4, max(2.0, 0.3 * len(bars) + 1))
    for position, (value, party, name) in enumerate(bars):
        ax.barh(
            position,
            value,
            color=f"C{list(found).index(party) % 10}",
            alpha=0.5 if name == ALL_COLUMNS else 1.0,
        )
    ax.set_yticks(range(len(bars)), [f"{party}: {name}" for _, party, name in bars])
    ax.set(xlabel=kind.replace("_", " "))
    return ax


def _axes(ax: Any, width: float, height: float) -> Any:
    if ax is not None:
        return ax
    try:
        pyplot: Any = import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ImportError('drawing needs matplotlib: pip install "vfltree[plot]"') from error
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]
