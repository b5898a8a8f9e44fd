"""The models by name: what there is, and `make_bottom` and `make_top`, which build one or say what is wrong.

29 of the bottom models are those of *VFLAIR: A Research Library and Benchmark for Vertical Federated Learning*, and
four serve its later data sets. Where its description is silent the family's module says what was chosen.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from torch import nn

from ..naming import folded, nearest
from . import convolutional, graph, linear_mlp, recurrent, resnet, tabular, tops
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
    entry = bottom_entry(name)
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
    entry = top_entry(name)
    model = _build(entry, options, lambda: (checked_widths(widths), positive(n_outputs, "n_outputs")))
    assert isinstance(model, tops.TopModel)
    return model


def bottom_entry(name: str) -> ModelEntry:
    """The line of `BOTTOM_MODELS` that `make_bottom` finds under this name; ValueError as there."""
    return _entry(BOTTOM_MODELS, name, "bottom model")


def top_entry(name: str) -> ModelEntry:
    """The line of `TOP_MODELS` that `make_top` finds under this name; ValueError as there."""
    return _entry(TOP_MODELS, name, "top model")


def _build(entry: ModelEntry, options: dict[str, Any], sizes: Callable[[], tuple[Any, Any]]) -> nn.Module:
    if entry.factory is None:
        raise ValueError(f"{entry.name} is {entry.description}")
    known = entry.options
    for option in options:
        if option not in known:
            raise ValueError(f"{entry.name} has no option {option!r}{nearest(option, known)}")
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
    entries = {folded(known): entry for known, entry in registry.items()}
    if folded(name) not in entries:
        raise ValueError(f"no {kind} is called {name!r}{nearest(name, registry)}")
    return entries[folded(name)]


_Rows = list[tuple[str, str, Callable[..., nn.Module] | None]]


def _registry(groups: dict[Takes, _Rows]) -> Mapping[str, ModelEntry]:
    """From rows of (name, description, factory), grouped by what the models take."""
    entries = [ModelEntry(*row, takes) for takes, rows in groups.items() for row in rows]
    return MappingProxyType({entry.name: entry for entry in entries})


_STAGES = "of 64, 128, 256, 512 channels"
_NARROW_STAGES = "of 16, 32, 64 channels, shortcuts without parameters"

BOTTOM_MODELS: Mapping[str, ModelEntry] = _registry(
    {
        "features": [
            ("LogisticRegression", "one Linear, no activation", linear_mlp.mlp()),
            ("MLP2", "in-32-out, Xavier-uniform first layer", linear_mlp.mlp2),
            ("MLP2_ReLU", "in-32-out, ReLU on the output", linear_mlp.mlp2_relu),
            ("MLP2_128", "in-128-out", linear_mlp.mlp(128)),
            (
                "MLP2_scalable",
                "in-hidden-out; each: Linear without bias, ReLU, BatchNorm, Dropout",
                linear_mlp.mlp2_scalable,
            ),
            ("MLP3", "in-64-16-out", linear_mlp.mlp(64, 16)),
            ("MLP3_Nursery", "in-200-100-out", linear_mlp.mlp(200, 100)),
            ("MLP4", "in-64-128-64-out", linear_mlp.mlp(64, 128, 64)),
            ("MLP4_Credit", "in-100-50-20-out", linear_mlp.mlp(100, 50, 20)),
            (
                "MLP4_dropout",
                "in-256-128-64-out; first three: Linear without bias, ReLU, BatchNorm, Dropout",
                linear_mlp.mlp4_dropout,
            ),
            ("MLP5", "in-64-64-64-64-out", linear_mlp.mlp(64, 64, 64, 64)),
            ("WideDeep_dense", "in-256-256-out", linear_mlp.mlp(256, 256)),
        ],
        "columns": [
            ("WideDeep_sparse", "an Embedding per column, then 256-256-out", tabular.wide_deep_sparse),
        ],
        "tokens": [
            ("LSTM", "Embedding, bidirectional LSTM, Linear on the last states of both ways", recurrent.lstm),
        ],
        "features, graph": [
            ("GCN", "graph convolution, ReLU, Dropout, graph convolution", graph.gcn),
        ],
        "image": [
            ("ResNet-18", f"2, 2, 2, 2 basic blocks {_STAGES}", resnet.resnet_basic(2, 2, 2, 2)),
            ("ResNet-34", f"3, 4, 6, 3 basic blocks {_STAGES}", resnet.resnet_basic(3, 4, 6, 3)),
            ("ResNet-50", f"3, 4, 6, 3 bottlenecks {_STAGES}, times 4", resnet.resnet_bottleneck(3, 4, 6, 3)),
            (
                "ResNet-101",
                f"3, 4, 23, 3 bottlenecks {_STAGES}, times 4",
                resnet.resnet_bottleneck(3, 4, 23, 3),
            ),
            (
                "ResNet-152",
                f"3, 8, 36, 3 bottlenecks {_STAGES}, times 4",
                resnet.resnet_bottleneck(3, 8, 36, 3),
            ),
            ("ResNet-20", f"3, 3, 3 basic blocks {_NARROW_STAGES}", resnet.resnet_narrow(3)),
            ("ResNet-56", f"9, 9, 9 basic blocks {_NARROW_STAGES}", resnet.resnet_narrow(9)),
            ("ResNet-110", f"18, 18, 18 basic blocks {_NARROW_STAGES}", resnet.resnet_narrow(18)),
            ("SimpleCNN", "conv 5x5 6 and 20, each ReLU, max-pool; Linear, ReLU", convolutional.simple_cnn),
            ("LeNet", "conv 5x5 12, 12, 12, strides 2, 2, 1, sigmoid; Linear", convolutional.lenet),
            ("LeNet2", "LeNet for half images: the input decides the size", convolutional.lenet),
            ("LeNet3", "conv 3x3 18, 36, 64, 128, LeakyReLU; max-pool; Linear", convolutional.lenet3),
            ("LeNet5", "conv 3x3 6, 16, 60, each ReLU, max-pool; 84-out, ReLU on both", convolutional.lenet5),
            (
                "LeNet_LeCun",
                "conv 3x3 16, 32, 64, each ReLU, BatchNorm, max-pool, Dropout; 128-out, each ReLU, BatchNorm, Dropout",
                convolutional.lenet_lecun,
            ),
            (
                "CNN_3",
                "conv 3x3 16, 32, 32, each ReLU, BatchNorm, max-pool, Dropout; Linear, ReLU, BatchNorm, Dropout",
                convolutional.cnn_3,
            ),
            (
                "AlexNet",
                "conv 11x11 48, 5x5 64, 3x3 96 and 64, ReLU, max-pools; Dropout, 512-out",
                convolutional.alexnet,
            ),
        ],
        "table": [
            (
                "RandomForest",
                "no network but trees: vfltree.SecureForestClassifier, SecureForestRegressor",
                None,
            ),
            ("XGBoost", "no network but trees: vfltree.SecureBoostClassifier, SecureBoostRegressor", None),
        ],
    }
)

TOP_MODELS: Mapping[str, ModelEntry] = _registry(
    {
        "outputs": [
            ("sum", "H_1 + H_2 + ..., no parameters (aggVFL)", tops.sum_top),
            ("sum_log_softmax", "the sum, then log-softmax", tops.sum_log_softmax_top),
            ("linear", "one Linear on all outputs side by side (splitVFL)", tops.linear_top),
            ("mlp2", "D-D/2-out, ReLU between", tops.mlp2_top),
            ("mlp3", "ReLU, D-D-D/2-out, ReLU between", tops.mlp3_top),
            (
                "model_completion",
                "D-D-out-out-out; each: BatchNorm, ReLU, Linear with Kaiming-normal weights; log-softmax",
                tops.model_completion_top,
            ),
        ],
        "outputs, graph": [
            ("graph", "one graph convolution on all outputs side by side", tops.graph_top),
        ],
    }
)
