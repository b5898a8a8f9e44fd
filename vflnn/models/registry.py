"""The models by name: what there is, and `make_bottom` and `make_top`, which build one or say what is wrong.

The first 29 bottom models are those of *VFLAIR: A Research Library and Benchmark for Vertical Federated Learning*; the
others serve its later data sets. Where its tables are silent the family's module says what was chosen.
"""

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from torch import nn

from . import graph, linear_mlp, tops
from .shapes import checked_shape, checked_widths, positive

Takes = Literal[
    "features", "image", "tokens", "columns", "features, graph", "table", "outputs", "outputs, graph"
]


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()  # stands in for the default of an option that must be given


@dataclass(frozen=True)
class ModelEntry:
    """One line of a registry.

    Attributes
    ----------
    name : str
    description : str
        The layers, from input to output.
    factory : callable or None
        (in_shape, out_features, *, options) for a bottom, (widths, n_outputs, *, options) for a top; None for the tree
        models, which are estimators of `vfltree`.
    takes : str
        "features" (rows; images are flattened), "image" (channels, height, width), "tokens" (word numbers), "columns"
        (bucket numbers), "table" (tree models), "outputs" (tops); ", graph" where the adjacency comes along.
    """

    name: str
    description: str
    factory: Callable[..., nn.Module] | None
    takes: Takes

    @property
    def options(self) -> dict[str, Any]:
        """Options with their defaults, `REQUIRED` where there is none: the keyword-only arguments of the factory."""
        if self.factory is None:
            return {}
        keywords = [
            p for p in inspect.signature(self.factory).parameters.values() if p.kind is p.KEYWORD_ONLY
        ]
        return {p.name: REQUIRED if p.default is p.empty else p.default for p in keywords}


def make_bottom(name: str, in_shape: Sequence[int], out_features: int, **options: Any) -> nn.Module:
    """A party's bottom model.

    Parameters
    ----------
    name : str
        One of `BOTTOM_MODELS`; upper and lower case, "-" and "_" make no difference.
    in_shape : tuple of int
        Shape of one sample: (features,), (channels, height, width), (tokens,) or (columns,).
    out_features : int
        Width d of the output, shape (n, d).
    **options
        See `BOTTOM_MODELS[name].options`.

    Raises
    ------
    ValueError, TypeError
        An unknown name or option (with the nearest right one), or a shape the model cannot take.
    """
    entry = _entry(BOTTOM_MODELS, name, "bottom model")
    return _build(entry, options, lambda: (checked_shape(in_shape), positive(out_features, "out_features")))


def make_top(name: str, widths: Sequence[int], n_outputs: int, **options: Any) -> tops.TopModel:
    """The active party's top model.

    Parameters
    ----------
    name : str
        One of `TOP_MODELS`.
    widths : sequence of int
        Widths of the outputs of all parties, in their order.
    n_outputs : int
        Scores per row: the number of classes.
    **options
        See `TOP_MODELS[name].options`.

    Raises
    ------
    ValueError, TypeError
        An unknown name or option (with the nearest right one), or widths the model cannot join.
    """

    entry = _entry(TOP_MODELS, name, "top model")
    model = _build(entry, options, lambda: (checked_widths(widths), positive(n_outputs, "n_outputs")))
    assert isinstance(model, tops.TopModel)
    return model


def _build(entry: ModelEntry, options: dict[str, Any], sizes: Callable[[], tuple[Any, Any]]) -> nn.Module:
    if entry.factory is None:
        raise ValueError(f"{entry.name} is {entry.description}")
    known = entry.options
    for option in options:
        if option not in known:
            raise ValueError(f"{entry.name} has no option {option!r}{_instead(option, known, 'options')}")
    missing = [option for option, default in known.items() if default is REQUIRED and option not in options]
    if missing:
        raise ValueError(f"{entry.name} needs the option {missing[0]!r}")
    try:
        return entry.factory(*sizes(), **options)
    except (ValueError, TypeError) as error:  # said without the model's name, which is known here
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{entry.name}: {error}") from error


def _entry(registry: Mapping[str, ModelEntry], name: str, kind: str) -> ModelEntry:
    if not isinstance(name, str):
        raise TypeError(f"the name of a {kind} must be a string, got {name!r}")
    folded = {_fold(known): entry for known, entry in registry.items()}
    if _fold(name) not in folded:
        raise ValueError(f"no {kind} is called {name!r}{_instead(name, registry, 'names')}")
    return folded[_fold(name)]


def _instead(wrong: str, right: Mapping[str, Any], what: str) -> str:
    """The end of a sentence: the nearest right name, or all of them."""
    folded = {_fold(name): name for name in right}
    nearest = difflib.get_close_matches(_fold(wrong), folded, n=1)
    if nearest:
        return f"; did you mean {folded[nearest[0]]!r}?"
    return f"; {what}: {', '.join(right)}" if right else f"; it has no {what}"


def _fold(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())


def _listed(*entries: ModelEntry) -> Mapping[str, ModelEntry]:
    return MappingProxyType({entry.name: entry for entry in entries})


BOTTOM_MODELS: Mapping[str, ModelEntry] = _listed(
    ModelEntry("LogisticRegression", "one Linear, no activation", linear_mlp.mlp(), "features"),
    ModelEntry("MLP2", "in-32-out, Xavier-uniform first layer", linear_mlp.mlp2, "features"),
    ModelEntry("MLP2_ReLU", "in-32-out, ReLU on the output", linear_mlp.mlp2_relu, "features"),
    ModelEntry("MLP2_128", "in-128-out", linear_mlp.mlp(128), "features"),
    ModelEntry(
        "MLP2_scalable",
        "in-hidden-out; each: Linear without bias, ReLU, BatchNorm, Dropout",
        linear_mlp.mlp2_scalable,
        "features",
    ),
    ModelEntry("MLP3", "in-64-16-out", linear_mlp.mlp(64, 16), "features"),
    ModelEntry("MLP3_Nursery", "in-200-100-out", linear_mlp.mlp(200, 100), "features"),
    ModelEntry("MLP4", "in-64-128-64-out", linear_mlp.mlp(64, 128, 64), "features"),
    ModelEntry("MLP4_Credit", "in-100-50-20-out", linear_mlp.mlp(100, 50, 20), "features"),
    ModelEntry(
        "MLP4_dropout",
        "in-256-128-64-out; first three: Linear without bias, ReLU, BatchNorm, Dropout",
        linear_mlp.mlp4_dropout,
        "features",
    ),
    ModelEntry("MLP5", "in-64-64-64-64-out", linear_mlp.mlp(64, 64, 64, 64), "features"),
    ModelEntry("GCN", "two graph convolutions, ReLU and Dropout between", graph.gcn, "features, graph"),
    ModelEntry(
        "RandomForest",
        "no network but trees: train vfltree.SecureForestClassifier or vfltree.SecureForestRegressor",
        None,
        "table",
    ),
    ModelEntry(
        "XGBoost",
        "no network but trees: train vfltree.SecureBoostClassifier or vfltree.SecureBoostRegressor",
        None,
        "table",
    ),
)

TOP_MODELS: Mapping[str, ModelEntry] = _listed(
    ModelEntry("sum", "H_1 + H_2 + ..., no parameters (aggVFL)", tops.sum_top, "outputs"),
    ModelEntry("sum_log_softmax", "the sum, then log-softmax", tops.sum_log_softmax_top, "outputs"),
    ModelEntry("linear", "one Linear on all outputs side by side (splitVFL)", tops.linear_top, "outputs"),
    ModelEntry("mlp2", "D-D/2-out, ReLU between", tops.mlp2_top, "outputs"),
    ModelEntry("mlp3", "ReLU, D-D-D/2-out, ReLU between", tops.mlp3_top, "outputs"),
    ModelEntry(
        "model_completion",
        "D-D-out-out-out; each: BatchNorm, ReLU, Linear with Kaiming-normal weights; log-softmax",
        tops.model_completion_top,
        "outputs",
    ),
    ModelEntry(
        "graph", "one graph convolution on all outputs side by side", tops.graph_top, "outputs, graph"
    ),
)
