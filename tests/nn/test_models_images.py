"""Convolutional and residual networks: sizes, least images, blocks, shortcuts and first weights."""

import numpy as np
import pytest
import torch
from torch import nn

from vflnn.models import BOTTOM_MODELS, make_bottom
from vflnn.models.resnet import ResidualBlock, SliceAndPad, resnet_bottleneck

IMAGES = [name for name, entry in BOTTOM_MODELS.items() if entry.takes == "image"]
LEAST = {
    "SimpleCNN": (16, 16),
    "LeNet3": (5, 5),
    "LeNet5": (8, 8),
    "LeNet_LeCun": (14, 12),
    "CNN_3": (14, 14),
    "AlexNet": (67, 67),
}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Tensors of a few numbers: threads would only wait for one another."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def n_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def on_meta(name: str, in_shape: tuple[int, ...], out_features: int, **options) -> nn.Module:
    with torch.device("meta"):
        return make_bottom(name, in_shape, out_features, **options)


@pytest.mark.parametrize(
    ("name", "in_shape", "flattened"),
    [
        ("SimpleCNN", (3, 16, 32), 100),
        ("LeNet", (3, 32, 32), 768),
        ("LeNet2", (3, 16, 32), 384),
        ("LeNet3", (3, 16, 32), 10752),
        ("LeNet5", (3, 16, 32), 480),
        ("LeNet_LeCun", (3, 50, 25), 640),
        ("CNN_3", (3, 50, 50), 800),
        ("AlexNet", (3, 128, 128), 64 * 2 * 2),
    ],
)
def test_flattened_sizes_are_vflairs(name, in_shape, flattened):
    first = next(layer for layer in on_meta(name, in_shape, 10) if isinstance(layer, nn.Linear))
    assert first.in_features == flattened


@pytest.mark.parametrize("name", sorted(LEAST))
def test_the_least_image_is_the_least_torch_can_run(name):
    height, width = LEAST[name]
    assert on_meta(name, (2, height, width), 3)(torch.empty(4, 2, height, width, device="meta")).shape == (
        4,
        3,
    )
    trunk = make_bottom(name, (2, 70, 70), 3)[0].eval()
    for too_small in [(height - 1, width), (height, width - 1)]:
        with pytest.raises(RuntimeError):
            trunk(torch.zeros(1, 2, *too_small))
        message = f"{name}: needs images of at least {height} x {width}.* got {too_small[0]} x {too_small[1]}"
        with pytest.raises(ValueError, match=message):
            make_bottom(name, (2, *too_small), 3)


@pytest.mark.parametrize("name", ["LeNet", "LeNet2", "ResNet-18", "ResNet-50", "ResNet-20"])
def test_other_networks_take_a_single_pixel(name):
    assert on_meta(name, (1, 1, 1), 3)(torch.empty(4, 1, 1, 1, device="meta")).shape == (4, 3)


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("in_shape", [(392,), (14, 28), (1, 3, 14, 28)])
def test_what_is_no_image_is_refused(name, in_shape):
    with pytest.raises(
        ValueError, match=f"{name}: takes images, in_shape .channels, height, width.*14 x 28 is"
    ):
        make_bottom(name, in_shape, 3)


# ---- residual networks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("ResNet-18", 11_173_962),
        ("ResNet-34", 21_282_122),
        ("ResNet-50", 23_520_842),
        ("ResNet-101", 42_512_970),
        ("ResNet-152", 58_156_618),
        ("ResNet-20", 269_722),
        ("ResNet-56", 853_018),
        ("ResNet-110", 1_727_962),
    ],
)
def test_a_resnet_is_as_deep_as_its_name_and_as_large_as_known(name, published):
    """He et al. print 0.27M, 0.85M and 1.7M for the narrow ones; the others are widely used in this form."""
    model = on_meta(name, (3, 32, 32), 10)
    assert n_parameters(model) == published
    shortcuts = [
        layer for block in model if isinstance(block, ResidualBlock) for layer in block.shortcut.modules()
    ]
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
    depth = len(layers) - sum(isinstance(layer, nn.Conv2d) for layer in shortcuts)
    assert depth == int(name.removeprefix("ResNet-"))


@pytest.mark.parametrize("name", ["ResNet-20", "ResNet-56"])
def test_narrow_resnets_have_shortcuts_without_parameters(name):
    shortcuts = [block.shortcut for block in on_meta(name, (3, 8, 8), 2) if isinstance(block, ResidualBlock)]
    assert sum(n_parameters(shortcut) for shortcut in shortcuts) == 0
    assert (
        sum(isinstance(shortcut, SliceAndPad) for shortcut in shortcuts) == 2
    )  # where a stage halves the image


@pytest.mark.parametrize(("name", "projections"), [("ResNet-18", 3), ("ResNet-34", 3), ("ResNet-50", 4)])
def test_wide_resnets_project_only_where_the_shape_changes(name, projections):
    shortcuts = [block.shortcut for block in on_meta(name, (3, 8, 8), 2) if isinstance(block, ResidualBlock)]
    assert sum(n_parameters(shortcut) > 0 for shortcut in shortcuts) == projections
    assert sum(isinstance(shortcut, nn.Identity) for shortcut in shortcuts) == len(shortcuts) - projections


@pytest.mark.parametrize(("name", "halvings"), [("ResNet-18", 3), ("ResNet-50", 3), ("ResNet-20", 2)])
def test_stages_halve_the_image(name, halvings):
    sides = []
    model = on_meta(name, (3, 16, 8), 2)
    for block in model:
        if isinstance(block, ResidualBlock):
            block.register_forward_hook(
                lambda block, arguments, output: sides.append(tuple(output.shape[2:]))
            )
    model(torch.empty(2, 3, 16, 8, device="meta"))
    assert sorted(set(sides), reverse=True) == [(16 >> k, 8 >> k) for k in range(halvings + 1)]


@pytest.mark.parametrize("size", [(4, 6), (5, 3), (1, 1)])
def test_slice_and_pad_is_what_it_says(size):
    x = np.random.default_rng(0).normal(size=(2, 3, *size))
    got = SliceAndPad(3, 8)(torch.from_numpy(x)).numpy()
    np.testing.assert_array_equal(got[:, 2:5], x[:, :, ::2, ::2])
    assert got.shape[1] == 8
    assert not got[:, :2].any()
    assert not got[:, 5:].any()


def test_a_residual_block_adds_its_shortcut():
    block = ResidualBlock(nn.Identity(), SliceAndPad(2, 2))
    x = torch.randn(3, 2, 1, 1)
    assert torch.equal(block(x), torch.relu(2 * x))


def test_dropout_of_resnets_is_off_unless_asked_for():
    def dropouts(**options) -> list[float]:
        layers = on_meta("ResNet-18", (3, 4, 4), 2, **options).modules()
        return [layer.p for layer in layers if isinstance(layer, nn.Dropout)]

    assert dropouts() == [0.0]
    assert dropouts(dropout=0.5) == [0.5]


def test_gradients_reach_every_parameter_of_bottlenecks():
    torch.manual_seed(0)
    model = resnet_bottleneck(1, 1, 1, 1)((3, 4, 4), 10)
    output = model(torch.randn(16, 3, 4, 4))
    (output * torch.randn_like(output)).sum().backward()
    assert [
        label for label, parameter in model.named_parameters() if not parameter.grad.abs().sum() > 0
    ] == []


def test_narrow_resnets_start_with_kaiming_normal_weights():
    torch.manual_seed(0)
    convolutions = [
        layer for layer in make_bottom("ResNet-20", (3, 8, 8), 2).modules() if isinstance(layer, nn.Conv2d)
    ]
    last = convolutions[-1].weight.detach()
    assert abs(float(last.std()) / (2 / (64 * 9)) ** 0.5 - 1) < 0.02
    assert last.abs().max() > 3 * last.std()  # no uniform distribution reaches that far


# ---- convolutional networks ------------------------------------------------------------------------------------------


def test_alexnet_starts_with_small_normal_weights_and_open_relus():
    torch.manual_seed(0)
    layers = [layer for layer in make_bottom("AlexNet", (3, 67, 67), 5).modules() if hasattr(layer, "weight")]
    assert all(abs(float(layer.weight.detach().std()) - 0.01) < 5e-4 for layer in layers)
    assert [set(layer.bias.tolist()) for layer in layers] == [{0.0}, {1.0}, {0.0}, {1.0}, {1.0}, {0.0}]


def test_blocks_with_batchnorm_have_no_biases_before_it():
    for name in ("LeNet_LeCun", "CNN_3"):
        model = on_meta(name, (3, 16, 32), 10)
        assert [
            layer
            for layer in model.modules()
            if isinstance(layer, nn.Conv2d | nn.Linear) and layer.bias is not None
        ] == []


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("SimpleCNN", [nn.Conv2d, nn.ReLU, nn.MaxPool2d] * 2 + [nn.Flatten, nn.Linear, nn.ReLU]),
        ("LeNet", [nn.Conv2d, nn.Sigmoid] * 3 + [nn.Flatten, nn.Linear]),
        ("LeNet3", [nn.Conv2d, nn.LeakyReLU] * 4 + [nn.MaxPool2d, nn.Flatten, nn.Linear]),
        ("LeNet5", [nn.Conv2d, nn.ReLU, nn.MaxPool2d] * 3 + [nn.Flatten] + [nn.Linear, nn.ReLU] * 2),
        (
            "LeNet_LeCun",
            [nn.Conv2d, nn.ReLU, nn.BatchNorm2d, nn.MaxPool2d, nn.Dropout] * 3
            + [nn.Flatten]
            + [nn.Linear, nn.ReLU, nn.BatchNorm1d, nn.Dropout] * 2,
        ),
    ],
)
def test_layers_stand_in_the_order_of_the_table(name, kinds):
    layers = [
        layer for layer in on_meta(name, (3, 16, 32), 10).modules() if not isinstance(layer, nn.Sequential)
    ]
    assert [type(layer) for layer in layers] == kinds
