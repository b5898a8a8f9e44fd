"""Residual networks for small images (He et al., 2016): a 3 x 3 stem without pooling, any height and width.

ResNet-18 to 152 halve the image three times and widen it to 512 channels (2048 with bottlenecks), with a 1 x 1
convolution where a shortcut changes shape. ResNet-20, 56 and 110 halve it twice and widen it to 64; their shortcuts
have no parameters, their weights start Kaiming-normal.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .shapes import Shape, image_channels

Factory = Callable[..., nn.Module]


class ResidualBlock(nn.Module):
    """ReLU(body(x) + shortcut(x))."""

    def __init__(self, body: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.body = body
        self.shortcut = shortcut

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


class SliceAndPad(nn.Module):
    """A shortcut without parameters: every second row and column, and zeros for the new channels, half on each side."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        before = (n_out - n_in) // 2
        self.channels = (before, n_out - n_in - before)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, *self.channels))


def resnet_basic(*blocks: int) -> Factory:
    """The factory of a ResNet with these numbers of two-convolution blocks a stage: 18 and 34."""

    def make(in_shape: Shape, out_features: int, *, dropout: float = 0.0) -> nn.Module:
        return _wide(_basic_block, blocks, 1, in_shape, out_features, dropout)

    return make


def resnet_bottleneck(*blocks: int) -> Factory:
    """The factory of a ResNet of bottlenecks, four times as wide behind them: 50, 101 and 152."""

    def make(in_shape: Shape, out_features: int, *, dropout: float = 0.0) -> nn.Module:
        return _wide(_bottleneck, blocks, 4, in_shape, out_features, dropout)

    return make


def resnet_narrow(n_blocks: int) -> Factory:
    """The factory of a ResNet with 16, 32 and 64 channels, n_blocks a stage: 20, 56 and 110 are 6 n_blocks + 2."""

    def make(in_shape: Shape, out_features: int) -> nn.Module:
        layers = [*_normalised(image_channels(in_shape), 16, 3), nn.ReLU()]
        n_in = 16
        for width in (16, 32, 64):
            for number in range(n_blocks):
                stride = 2 if number == 0 and width != 16 else 1
                shortcut = SliceAndPad(n_in, width) if stride == 2 else nn.Identity()
                layers.append(ResidualBlock(_two_convolutions(n_in, width, stride), shortcut))
                n_in = width
        model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, out_features))
        for layer in model.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(layer.weight)
        return model

    return make


def _wide(
    block: Callable[[int, int, int], ResidualBlock],
    blocks: tuple[int, ...],
    expansion: int,
    in_shape: Shape,
    out_features: int,
    dropout: float,
) -> nn.Module:
    layers = [*_normalised(image_channels(in_shape), 64, 3), nn.ReLU()]
    n_in = 64
    for width, n_blocks in zip((64, 128, 256, 512), blocks, strict=True):
        for number in range(n_blocks):
            layers.append(block(n_in, width, 2 if number == 0 and width != 64 else 1))
            n_in = width * expansion
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(dropout), nn.Linear(n_in, out_features)]
    return nn.Sequential(*layers, *head)


def _basic_block(n_in: int, width: int, stride: int) -> ResidualBlock:
    return ResidualBlock(_two_convolutions(n_in, width, stride), _projection(n_in, width, stride))


def _bottleneck(n_in: int, width: int, stride: int) -> ResidualBlock:
    body = nn.Sequential(
        *_normalised(n_in, width, 1),
        nn.ReLU(),
        *_normalised(width, width, 3, stride),
        nn.ReLU(),
        *_normalised(width, 4 * width, 1),
    )
    return ResidualBlock(body, _projection(n_in, 4 * width, stride))


def _two_convolutions(n_in: int, width: int, stride: int) -> nn.Module:
    return nn.Sequential(*_normalised(n_in, width, 3, stride), nn.ReLU(), *_normalised(width, width, 3))


def _projection(n_in: int, n_out: int, stride: int) -> nn.Module:
    """The shortcut: a 1 x 1 convolution where the block changes the shape, else x itself."""
    if stride == 1 and n_in == n_out:
        return nn.Identity()
    return nn.Sequential(*_normalised(n_in, n_out, 1, stride))


def _normalised(n_in: int, n_out: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    """A convolution that keeps the size (but for its stride), without bias, and BatchNorm."""
    convolution = nn.Conv2d(n_in, n_out, kernel, stride=stride, padding=kernel // 2, bias=False)
    return [convolution, nn.BatchNorm2d(n_out)]
