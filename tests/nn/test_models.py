"""Bottom models by name: parameters against the paper's, shapes, gradients, weights by seed, and what is refused."""

import numpy as np
import pytest
import torch
from torch import nn

from vflnn.models import BOTTOM_MODELS, ModelEntry, make_bottom
from vflnn.models import registry as registry_module

NETWORKS = [name for name, entry in BOTTOM_MODELS.items() if entry.factory is not None]
FEATURES = [name for name, entry in BOTTOM_MODELS.items() if entry.takes == "features"]


def n_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def as_printed(count: int, printed: str) -> str:
    """`count` with the unit and the decimals of a printed number: 12906 beside "12.9K" is "12.9K"."""
    unit = {"K": 1e3, "M": 1e6}.get(printed[-1])
    if unit is None:
        return str(count)
    return f"{count / unit:.{len(printed.rstrip('KM').partition('.')[2])}f}{printed[-1]}"


def call(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """The output; graph models see a ring of neighbours."""
    if getattr(model, "takes_graph", False):
        n = len(x)
        ring = (torch.eye(n) + torch.eye(n).roll(1, dims=0) + torch.eye(n).roll(-1, dims=0)) / 3
        return model(x, ring.to_sparse_csr())
    return model(x)


# The "parameters" column of the paper's data-set table, for one party's bottom model.
PRINTED = [
    ("MNIST", "MLP2", (392,), 10, {}, "12.9K"),
    ("NUSWIDE passive", "MLP2", (1000,), 5, {}, "32.2K"),
    ("NUSWIDE active", "MLP2", (634,), 5, {}, "20.5K"),
    ("Breast Cancer", "MLP2_128", (15,), 2, {}, "2.3K"),
    ("Diabetes", "LogisticRegression", (4,), 2, {}, "10"),
    ("Adult passive", "MLP4", (15,), 2, {}, "17.7K"),
    ("Adult active", "MLP4", (93,), 2, {}, "22.7K"),
    ("Cora", "GCN", (716,), 7, {}, "23.2K"),
    ("News20", "MLP5", (49658,), 5, {}, "3.2M"),
    ("Credit passive", "LogisticRegression", (12,), 2, {}, "26"),
    ("Credit active", "LogisticRegression", (11,), 2, {}, "24"),
    ("Credit passive, network", "MLP4_Credit", (12,), 2, {}, "7.4K"),
    ("Credit active, network", "MLP4_Credit", (11,), 2, {}, "7.3K"),
    ("Nursery passive", "LogisticRegression", (7,), 5, {}, "40"),
    ("Nursery active", "LogisticRegression", (12,), 5, {}, "65"),
    ("Nursery passive, network", "MLP3_Nursery", (7,), 5, {}, "22.2K"),
    ("Nursery active, network", "MLP3_Nursery", (12,), 5, {}, "23.2K"),
]


@pytest.mark.parametrize(
    ("name", "in_shape", "out", "options", "printed"),
    [row[1:] for row in PRINTED],
    ids=[row[0] for row in PRINTED],
)
def test_parameters_are_the_papers(name, in_shape, out, options, printed):
    with torch.device("meta"):
        model = make_bottom(name, in_shape, out, **options)
    assert as_printed(n_parameters(model), printed) == printed


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize(("in_shape", "out"), [((4,), 2), ((1,), 1), ((1, 14, 28), 10), ((2, 3), 5)])
def test_feature_models_take_rows_and_flatten_images(name, in_shape, out):
    torch.manual_seed(0)
    model = make_bottom(name, in_shape, out)
    x = torch.rand(7, *in_shape)
    assert model(x).shape == (7, out)
    model.eval()
    assert torch.equal(model(x), model(x.flatten(1)))


def test_mlp2_starts_with_xavier_weights_and_zero_bias():
    torch.manual_seed(0)
    first = make_bottom("MLP2", (392,), 10)[1]
    bound = np.sqrt(6 / (392 + 32))
    assert bound * 0.99 < float(first.weight.detach().abs().max()) <= bound
    assert not first.bias.any()


@pytest.mark.parametrize("name", FEATURES)
def test_relu_closes_only_the_models_that_say_so(name):
    torch.manual_seed(0)
    lowest = make_bottom(name, (20,), 8).eval()(torch.randn(50, 20)).min()
    assert (lowest >= 0) == (name in {"MLP2_ReLU", "MLP2_scalable"})


# ---- by name ---------------------------------------------------------------------------------------------------------


def test_every_entry_says_what_it_is():
    for name, entry in BOTTOM_MODELS.items():
        assert entry.name == name
        assert entry.description
        assert isinstance(entry.options, dict)


@pytest.mark.parametrize("registry", ["BOTTOM_MODELS", "TOP_MODELS"])
def test_no_two_names_differ_by_case_and_signs_only(registry):
    names = getattr(registry_module, registry)
    assert len({registry_module._fold(name) for name in names}) == len(names)


def test_registries_cannot_be_changed():
    with pytest.raises(TypeError):
        BOTTOM_MODELS["MLP2"] = ModelEntry("MLP2", "mine", None, "features")


@pytest.mark.parametrize("spelling", ["mlp2_relu", "MLP2-ReLU", "Mlp2 Relu"])
def test_names_are_found_in_any_case(spelling):
    assert isinstance(make_bottom(spelling, (4,), 2)[-1], nn.ReLU)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("MLP22", "no bottom model is called 'MLP22'; did you mean 'MLP2'"),
        ("LogisticRegresion", "did you mean 'LogisticRegression'"),
        ("vit", "names: LogisticRegression, MLP2, "),
        ("", "names: LogisticRegression, MLP2, "),
    ],
)
def test_an_unknown_name_is_answered_with_a_right_one(wrong, message):
    with pytest.raises(ValueError, match=message):
        make_bottom(wrong, (4,), 2)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("MLP2_scalable", {"hiden": 3}, "MLP2_scalable has no option 'hiden'; did you mean 'hidden'"),
        ("MLP2_scalable", {"x": 3}, "has no option 'x'; options: hidden, dropout"),
        ("MLP2", {"hidden": 3}, "MLP2 has no option 'hidden'; it has no options"),
    ],
)
def test_an_unknown_option_is_answered_with_the_right_ones(name, options, message):
    with pytest.raises(ValueError, match=message):
        make_bottom(name, (4,), 2, **options)


def test_options_are_those_of_the_factory():
    assert BOTTOM_MODELS["MLP2_scalable"].options == {"hidden": 128, "dropout": 0.2}
    assert BOTTOM_MODELS["MLP2"].options == {}
    assert make_bottom("MLP2_scalable", (4,), 2, hidden=9)[1].out_features == 9


@pytest.mark.parametrize(
    ("in_shape", "out", "options", "error", "message"),
    [
        (392, 10, {}, TypeError, r"MLP2_scalable: in_shape must be a tuple such as \(392,\).*got 392"),
        ("392", 10, {}, TypeError, "in_shape must be a tuple"),
        ((), 10, {}, ValueError, "in_shape is empty"),
        ((0,), 10, {}, ValueError, "at least 1, got 0"),
        ((2.0,), 10, {}, TypeError, "whole number, got 2.0"),
        ((4,), 0, {}, ValueError, "MLP2_scalable: out_features must be at least 1, got 0"),
        ((4,), 2.5, {}, TypeError, "out_features must be a whole number, got 2.5"),
        ((4,), 2, {"hidden": "9"}, TypeError, "hidden must be a whole number, got '9'"),
        ((4,), 2, {"dropout": 1.5}, ValueError, "MLP2_scalable: dropout"),
    ],
)
def test_sizes_that_make_no_model_are_refused(in_shape, out, options, error, message):
    with pytest.raises(error, match=message):
        make_bottom("MLP2_scalable", in_shape, out, **options)


def test_sizes_may_be_numpy_integers():
    assert make_bottom("MLP2", tuple(np.array([4, 2])), np.int64(3))(torch.rand(5, 4, 2)).shape == (5, 3)


@pytest.mark.parametrize(
    ("name", "estimator"), [("RandomForest", "SecureForestClassifier"), ("xgboost", "SecureBoostClassifier")]
)
def test_tree_models_are_sent_to_their_estimators(name, estimator):
    with pytest.raises(ValueError, match=f"vfltree.{estimator}"):
        make_bottom(name, (4,), 2, n_estimators=5)
    import vfltree

    assert hasattr(vfltree, estimator)
