"""What the models ask of input shapes and sizes, and the arithmetic of windows (convolutions, pooling).

Errors here name no model: `make_bottom` and `make_top` put its name in front.
"""

import math
import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

Shape = tuple[int, ...]


def positive(value: Any, what: str) -> int:
    """`value` as an int of at least 1; NumPy integers are welcome, floats and strings are not."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be a whole number, got {value!r}") from None
    if number < 1:
        raise ValueError(f"{what} must be at least 1, got {number}")
    return number


def checked_shape(in_shape: Sequence[int]) -> Shape:
    """`in_shape` as a tuple of positive ints; it leaves out the batch axis."""
    if isinstance(in_shape, str) or not hasattr(in_shape, "__iter__"):
        raise TypeError(f"in_shape must be a tuple such as (392,) or (3, 16, 32), got {in_shape!r}")
    given = tuple(in_shape)
    if not given:
        raise ValueError("in_shape is empty; a table of 12 columns is (12,)")
    return tuple(positive(side, f"every size of in_shape {given}") for side in given)


def checked_widths(widths: Sequence[int]) -> tuple[int, ...]:
    """`widths` as a tuple of positive ints, at least one."""
    if isinstance(widths, str) or not hasattr(widths, "__iter__") or not len(widths):
        raise TypeError(f"widths must list one width per party, such as [10, 10], got {widths!r}")
    return tuple(positive(width, "every width") for width in widths)


def n_features(in_shape: Shape) -> int:
    """How many numbers a row has once flattened."""
    return math.prod(in_shape)


def vector_length(in_shape: Shape, what: str) -> int:
    """The only size of a one-axis input."""
    if len(in_shape) != 1:
        raise ValueError(f"takes rows of {what}, in_shape ({what},), got in_shape {in_shape}")
    return in_shape[0]


def image_channels(in_shape: Shape) -> int:
    """Channels of an image input (channels, height, width)."""
    if len(in_shape) != 3:
        raise ValueError(
            f"takes images, in_shape (channels, height, width), got in_shape {in_shape};"
            " a grey image of 14 x 28 is (1, 14, 28)"
        )
    return in_shape[0]


def flattened_size(trunk: nn.Module, in_shape: Shape) -> int:
    """Numbers per image behind the convolutions and poolings of `trunk`, which follow one another.

    Raises ValueError with the least size where the image is too small for them.
    """
    layers = [layer for layer in trunk.modules() if isinstance(layer, nn.Conv2d | nn.MaxPool2d)]
    windows = [[_window(layer, axis) for layer in layers] for axis in (0, 1)]
    least = tuple(_least_side(windows[axis]) for axis in (0, 1))
    if in_shape[1] < least[0] or in_shape[2] < least[1]:
        raise ValueError(
            f"needs images of at least {least[0]} x {least[1]} (height x width),"
            f" got {in_shape[1]} x {in_shape[2]} in in_shape {in_shape}"
        )
    channels = [layer.out_channels for layer in layers if isinstance(layer, nn.Conv2d)][-1]
    return channels * math.prod(_side_behind(windows[axis], in_shape[1 + axis]) for axis in (0, 1))


def whole_numbers(x: Tensor, below: int, option: str) -> Tensor:
    """`x` as int64, checked to lie in 0 ... below - 1: rows of an embedding, named by its `option`.

    Parties may keep their whole table as floats; a float that is no whole number is an error, never rounded. The check
    costs a look at the values, and spares CUDA an assertion that ends the process. Errors cross to other parties, so
    they count values and show none.
    """
    indices = x.to(torch.int64)
    broken = int((indices != x).sum()) if x.is_floating_point() else 0
    if broken:
        raise ValueError(f"numbers of embedding rows must be whole, {broken} of {x.numel()} are not")
    beyond = int(((indices < 0) | (indices >= below)).sum())
    if beyond:
        raise ValueError(
            f"{option}={below} takes 0 to {below - 1}, {beyond} of {x.numel()} numbers are beyond"
        )
    return indices


def _window(layer: nn.Conv2d | nn.MaxPool2d, axis: int) -> tuple[int, int, int]:
    """(kernel size, stride, padding) along one axis."""

    def along(value: Any) -> int:
        return int(value[axis]) if isinstance(value, tuple) else int(value)

    return along(layer.kernel_size), along(layer.stride), along(layer.padding)


def _side_behind(windows: list[tuple[int, int, int]], side: int) -> int:
    for kernel, stride, padding in windows:
        side = (side + 2 * padding - kernel) // stride + 1
    return side


def _least_side(windows: list[tuple[int, int, int]]) -> int:
    """The least input side that leaves one pixel at the end, from the last window backwards."""
    side = 1
    for kernel, stride, padding in reversed(windows):
        side = max(1, (side - 1) * stride + kernel - 2 * padding)
    return side
