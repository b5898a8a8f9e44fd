"""Bottom models by name: parameters against the paper's, shapes, gradients, weights by seed, and what is refused."""

import copy
import importlib.util
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from vflnn.models import BOTTOM_MODELS, REQUIRED, TOP_MODELS, ModelEntry, make_bottom
from vflnn.naming import folded

NETWORKS = [name for name, entry in BOTTOM_MODELS.items() if entry.factory is not None]
# They take seconds, and only the numbers and kinds of their blocks are their own: see test_models_images.
HEAVY = {"ResNet-34", "ResNet-50", "ResNet-101", "ResNet-152", "ResNet-56", "ResNet-110"}
LIGHT = [name for name in NETWORKS if name not in HEAVY]
FEATURES = [name for name, entry in BOTTOM_MODELS.items() if entry.takes == "features"]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Tensors of a few numbers: threads would only wait for one another."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def n_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def as_printed(count: int, printed: str) -> str:
    """`count` with the unit and the decimals of a printed number: 12906 beside "12.9K" is "12.9K"."""
    unit = {"K": 1e3, "M": 1e6}.get(printed[-1])
    if unit is None:
        return str(count)
    return f"{count / unit:.{len(printed.rstrip('KM').partition('.')[2])}f}{printed[-1]}"


def row_of(entry: ModelEntry) -> str:
    """The line of a model on the page."""
    given = [
        f"`{name}` ({REQUIRED})" if value is REQUIRED else f"`{name}={value}`"
        for name, value in entry.options.items()
    ]
    return f"| `{entry.name}` | {entry.takes} | {entry.description} | {', '.join(given) or '–'} |"


@pytest.fixture(scope="module")
def page(repo: Path) -> str:
    return (repo / "docs" / "neural-models.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "entry", [*BOTTOM_MODELS.values(), *TOP_MODELS.values()], ids=lambda entry: entry.name
)
def test_the_page_lists_every_model_with_its_options(page, entry):
    assert f"{row_of(entry)}\n" in page


def test_the_example_of_the_page_runs(page):
    names: dict = {}
    code = page.partition("```python\n")[2].partition("```")[0]
    exec(compile(code, "neural-models.md", "exec"), names)
    assert names["scores"].shape == (64, 10)


# The "parameters" column of the paper's data-set table, for one party's bottom model.
PRINTED = [
    ("MNIST", "MLP2", (392,), 10, {}, "12.9K"),
    ("CIFAR10", "ResNet-18", (3, 16, 32), 10, {}, "11.17M"),
    ("CIFAR10, quarters", "ResNet-18", (3, 16, 16), 10, {}, "11.17M"),
    ("NUSWIDE, passive", "MLP2", (1000,), 5, {}, "32.2K"),
    ("NUSWIDE, active", "MLP2", (634,), 5, {}, "20.5K"),
    ("Breast Cancer", "MLP2_128", (15,), 2, {}, "2.3K"),
    ("Diabetes", "LogisticRegression", (4,), 2, {}, "10"),
    ("Adult, passive", "MLP4", (15,), 2, {}, "17.7K"),
    ("Adult, active", "MLP4", (93,), 2, {}, "22.7K"),
    ("Cora", "GCN", (716,), 7, {}, "23.2K"),
    ("Avazu, passive", "WideDeep_sparse", (9,), 2, {"buckets": 1_000_000}, "144.1M"),
    ("Avazu, active", "WideDeep_sparse", (13,), 2, {"buckets": 1_000_000}, "208.1M"),
    ("News20", "MLP5", (49658,), 5, {}, "3.2M"),
    ("Credit, passive", "LogisticRegression", (12,), 2, {}, "26"),
    ("Credit, active", "LogisticRegression", (11,), 2, {}, "24"),
    ("Credit, passive", "MLP4_Credit", (12,), 2, {}, "7.4K"),
    ("Credit, active", "MLP4_Credit", (11,), 2, {}, "7.3K"),
    ("Nursery, passive", "LogisticRegression", (7,), 5, {}, "40"),
    ("Nursery, active", "LogisticRegression", (12,), 5, {}, "65"),
    ("Nursery, passive", "MLP3_Nursery", (7,), 5, {}, "22.2K"),
    ("Nursery, active", "MLP3_Nursery", (12,), 5, {}, "23.2K"),
]


@pytest.mark.parametrize(
    ("data", "name", "in_shape", "out", "options", "printed"),
    PRINTED,
    ids=[f"{row[0]}-{row[1]}" for row in PRINTED],
)
def test_parameters_are_the_papers_and_those_on_the_page(page, data, name, in_shape, out, options, printed):
    with torch.device("meta"):
        model = make_bottom(name, in_shape, out, **options)
    count = n_parameters(model)
    assert as_printed(count, printed) == printed
    assert f"| {data} | `{name}` | {in_shape} | {out} | {count:,} | {printed} |\n" in page


def test_cifar100_has_the_parameters_of_cifar10_and_90_more_outputs(page):
    """The paper prints 11.17M for both, which holds without the last layer only."""
    with torch.device("meta"):
        ten, hundred = (make_bottom("ResNet-18", (3, 16, 32), classes) for classes in (10, 100))
    assert n_parameters(hundred) - n_parameters(ten) == 90 * 513
    assert as_printed(n_parameters(hundred), "11.17M") == "11.22M"
    assert f"| CIFAR100 | `ResNet-18` | (3, 16, 32) | 100 | {n_parameters(hundred):,} | 11.17M |\n" in page
    assert as_printed(n_parameters(hundred) - 100 * 513, "11.17M") == "11.17M"


@pytest.mark.parametrize(
    ("party", "name", "columns", "options"),
    [("passive", "WideDeep_sparse", 26, {"buckets": 1_000_000}), ("active", "WideDeep_dense", 13, {})],
)
def test_parameters_for_criteo_are_those_on_the_page(page, party, name, columns, options):
    with torch.device("meta"):
        count = n_parameters(make_bottom(name, (columns,), 2, **options))
    assert f"| Criteo, {party} | `{name}` | ({columns},) | 2 | {count:,} | – |\n" in page


SAMPLES = {  # small inputs for every kind, at least two shapes each
    "features": [((20,), {}), ((3, 4, 5), {})],
    "features, graph": [((20,), {}), ((3, 4), {})],
    "columns": [((1,), {"buckets": 30}), ((4,), {"buckets": 7, "embedding": 3})],
    "tokens": [((1,), {"vocab_size": 9}), ((12,), {"vocab_size": 50, "embedding": 8, "hidden": 6})],
    "image": [((3, 16, 32), {}), ((1, 14, 28), {}), ((3, 18, 17), {})],
}


def samples(name: str) -> list[tuple[tuple[int, ...], dict]]:
    if name == "AlexNet":
        return [((3, 67, 70), {})]
    shapes = SAMPLES[BOTTOM_MODELS[name].takes]
    if name in HEAVY:
        return shapes[-1:]
    return [shape for shape in shapes if (name, shape[0]) != ("SimpleCNN", (1, 14, 28))]  # too small for it


CASES = [
    pytest.param(name, in_shape, options, out, id=f"{name}-{'x'.join(map(str, in_shape))}-{out}")
    for name in NETWORKS
    for (in_shape, options), out in zip(samples(name), (10, 1, 2), strict=False)
]


def batch(name: str, in_shape: tuple[int, ...], options: dict, n: int) -> tuple[torch.Tensor, ...]:
    """The arguments of a forward pass: random rows and, for a graph model, a ring of neighbours."""
    takes = BOTTOM_MODELS[name].takes
    if takes in {"columns", "tokens"}:
        return (torch.randint(options.get("buckets") or options["vocab_size"], (n, *in_shape)),)
    x = torch.randn(n, *in_shape)
    if takes == "features, graph":
        ring = torch.eye(n) + torch.eye(n).roll(1, dims=0) + torch.eye(n).roll(-1, dims=0)
        return x, (ring / 3).to_sparse_csr()
    return (x,)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize(("name", "in_shape", "options", "out"), CASES)
def test_outputs_are_rows_of_the_asked_width(name, in_shape, options, out):
    if BOTTOM_MODELS[name].takes == "image":  # on the meta device: sizes without the work
        with torch.device("meta"):
            assert make_bottom(name, in_shape, out, **options)(torch.empty(3, *in_shape)).shape == (3, out)
    else:
        assert make_bottom(name, in_shape, out, **options)(*batch(name, in_shape, options, 3)).shape == (
            3,
            out,
        )


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("name", LIGHT)
def test_gradients_reach_every_parameter(name):
    in_shape, options = SAMPLES[BOTTOM_MODELS[name].takes][-1]
    if BOTTOM_MODELS[name].takes == "image":
        in_shape = {"AlexNet": (3, 67, 67), "SimpleCNN": (3, 16, 16)}.get(name, (3, 14, 14))
        in_shape = (3, 4, 4) if name.startswith("ResNet") else in_shape
    torch.manual_seed(0)
    model, arguments = make_bottom(name, in_shape, 10, **options), batch(name, in_shape, options, 16)
    output = model(*arguments)
    (output * torch.randn_like(output)).sum().backward()
    assert [
        label for label, parameter in model.named_parameters() if not parameter.grad.abs().sum() > 0
    ] == []


@pytest.mark.parametrize("name", LIGHT)
def test_the_seed_decides_the_weights(name):
    in_shape, options = SAMPLES[BOTTOM_MODELS[name].takes][0]
    in_shape = (3, 67, 67) if name == "AlexNet" else in_shape

    def weights(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return nn.utils.parameters_to_vector(make_bottom(name, in_shape, 2, **options).parameters())

    first = weights(3)
    assert torch.equal(weights(3), first)
    assert not torch.equal(weights(4), first)


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
    assert (lowest >= 0) == (name in {"MLP2_ReLU", "MLP2_scalable"})  # BatchNorm starts as the identity


# ---- by name ---------------------------------------------------------------------------------------------------------


def test_every_entry_says_what_it_is():
    for name, entry in BOTTOM_MODELS.items():
        assert entry.name == name
        assert entry.description
        assert isinstance(entry.options, dict)


@pytest.mark.parametrize("names", [BOTTOM_MODELS, TOP_MODELS], ids=["bottoms", "tops"])
def test_no_two_names_differ_by_case_and_signs_only(names):
    assert len({folded(name) for name in names}) == len(names)


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
        ("vit", "known: LogisticRegression, MLP2, "),
        ("", "known: LogisticRegression, MLP2, "),
    ],
)
def test_an_unknown_name_is_answered_with_a_right_one(wrong, message):
    with pytest.raises(ValueError, match=message):
        make_bottom(wrong, (4,), 2)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("MLP2_scalable", {"hiden": 3}, "MLP2_scalable has no option 'hiden'; did you mean 'hidden'"),
        ("MLP2_scalable", {"x": 3}, "has no option 'x'; known: hidden, dropout"),
        ("MLP2", {"hidden": 3}, "MLP2 has no option 'hidden'; it takes none"),
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
    source = importlib.util.find_spec(
        "vfltree"
    ).origin  # read, not imported: its compiler takes seconds to load
    assert f'"{estimator}"' in Path(source).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("share", [0.1, 0.0], ids=["few entries", "none"])
def test_sparse_rows_give_the_outputs_and_gradients_of_dense_ones(name, share):
    torch.manual_seed(0)
    dense = torch.randn(9, 40) * (torch.rand(9, 40) < share)
    dense[4] = 0

    def derivatives(x: torch.Tensor) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = make_bottom(name, (40,), 3)
        assert model.takes_sparse
        output = model(x)
        (output * torch.arange(27).reshape(9, 3)).sum().backward()
        return [output.detach(), *(parameter.grad for parameter in model.parameters())]

    for got, expected in zip(derivatives(dense.to_sparse_coo().coalesce()), derivatives(dense), strict=True):
        torch.testing.assert_close(got, expected)


def test_perceptrons_are_copied_cut_and_loaded_like_any_sequence_of_layers():
    model, x = make_bottom("MLP2", (5,), 3), torch.eye(5)[:2]
    plain = nn.Sequential(*(copy.deepcopy(layer) for layer in model))
    assert plain.state_dict().keys() == model.state_dict().keys()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), plain):
        assert torch.equal(other(x), model(x))
    model.load_state_dict(plain.state_dict())
    sparse = torch.eye(32)[:2].to_sparse_coo().coalesce()
    assert torch.equal(model[2:](sparse), model[2:](sparse.to_dense()))
