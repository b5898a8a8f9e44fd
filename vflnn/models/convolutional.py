"""Small convolutional networks. Channels and flattened sizes follow from the shape of the party's images.

Paddings, which the tables leave open, are those that give VFLAIR's flattened sizes: LeNet 768 for 3 x 32 x 32, LeNet2
384 and LeNet3 10752 for halves of 3 x 16 x 32, LeNet5 480 for the same halves, LeNet_LeCun 640 for 3 x 50 x 25, CNN_3
800 for 3 x 50 x 50.
"""

from torch import nn

from .linear_mlp import normalised_layer
from .shapes import Shape, flattened_size, image_channels


def simple_cnn(in_shape: Shape, out_features: int) -> nn.Module:
    trunk = nn.Sequential(
        *(nn.Conv2d(image_channels(in_shape), 6, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 20, 5), nn.ReLU(), nn.MaxPool2d(2)),
    )
    return nn.Sequential(
        trunk, nn.Flatten(), nn.Linear(flattened_size(trunk, in_shape), out_features), nn.ReLU()
    )


def lenet(in_shape: Shape, out_features: int) -> nn.Module:
    """LeNet and LeNet2 alike: they differed in the flattened size only, which the input decides here."""
    trunk = nn.Sequential(
        *(nn.Conv2d(image_channels(in_shape), 12, 5, stride=2, padding=2), nn.Sigmoid()),
        *(nn.Conv2d(12, 12, 5, stride=2, padding=2), nn.Sigmoid()),
        *(nn.Conv2d(12, 12, 5, stride=1, padding=2), nn.Sigmoid()),
    )
    return nn.Sequential(trunk, nn.Flatten(), nn.Linear(flattened_size(trunk, in_shape), out_features))


def lenet3(in_shape: Shape, out_features: int) -> nn.Module:
    trunk = nn.Sequential(
        *(nn.Conv2d(image_channels(in_shape), 18, 3, padding=1), nn.LeakyReLU()),
        *(nn.Conv2d(18, 36, 3, padding=1), nn.LeakyReLU()),
        *(nn.Conv2d(36, 64, 3), nn.LeakyReLU()),
        *(nn.Conv2d(64, 128, 3), nn.LeakyReLU()),
        nn.MaxPool2d(3, stride=2, padding=1),
    )
    return nn.Sequential(trunk, nn.Flatten(), nn.Linear(flattened_size(trunk, in_shape), out_features))


def lenet5(in_shape: Shape, out_features: int) -> nn.Module:
    trunk = nn.Sequential(
        *(nn.Conv2d(image_channels(in_shape), 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 60, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    )
    return nn.Sequential(
        trunk,
        nn.Flatten(),
        *(nn.Linear(flattened_size(trunk, in_shape), 84), nn.ReLU()),
        *(nn.Linear(84, out_features), nn.ReLU()),
    )


def lenet_lecun(in_shape: Shape, out_features: int) -> nn.Module:
    trunk = nn.Sequential(
        *_normalised_block(image_channels(in_shape), 16, padding=(0, 1), dropout=0.2),
        *_normalised_block(16, 32, padding=0, dropout=0.2),
        *_normalised_block(32, 64, padding=1, dropout=0.2),
    )
    return nn.Sequential(
        trunk,
        nn.Flatten(),
        *normalised_layer(flattened_size(trunk, in_shape), 128, dropout=0.2),
        *normalised_layer(128, out_features, dropout=0.2),
    )


def cnn_3(in_shape: Shape, out_features: int) -> nn.Module:
    trunk = nn.Sequential(
        *_normalised_block(image_channels(in_shape), 16, padding=0, dropout=0.25),
        *_normalised_block(16, 32, padding=0, dropout=0.25),
        *_normalised_block(32, 32, padding=1, dropout=0.25),
    )
    head = normalised_layer(flattened_size(trunk, in_shape), out_features, dropout=0.5)
    return nn.Sequential(trunk, nn.Flatten(), *head)


def alexnet(in_shape: Shape, out_features: int) -> nn.Module:
    """A narrow AlexNet (Krizhevsky et al., 2012), started as there.

    Weights N(0, 0.01^2); biases 1 in the second and fourth convolution and the hidden layer, so that their ReLUs start
    open, and 0 elsewhere.
    """
    trunk = nn.Sequential(
        *(
            nn.Conv2d(image_channels(in_shape), 48, 11, stride=4),
            nn.ReLU(),
            _local_response(),
            nn.MaxPool2d(3, 2),
        ),
        *(nn.Conv2d(48, 64, 5, padding=2), nn.ReLU(), _local_response(), nn.MaxPool2d(3, 2)),
        *(nn.Conv2d(64, 96, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(96, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2)),
    )
    model = nn.Sequential(
        trunk,
        nn.Flatten(),
        nn.Dropout(0.5),
        *(nn.Linear(flattened_size(trunk, in_shape), 512), nn.ReLU()),
        nn.Linear(512, out_features),
    )
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
    for layer, bias in zip(layers, (0.0, 1.0, 0.0, 1.0, 1.0, 0.0), strict=True):
        nn.init.normal_(layer.weight, std=0.01)
        assert layer.bias is not None
        nn.init.constant_(layer.bias, bias)
    return model


def _normalised_block(
    n_in: int, n_out: int, *, padding: int | tuple[int, int], dropout: float
) -> list[nn.Module]:
    convolution = nn.Conv2d(n_in, n_out, 3, padding=padding, bias=False)
    return [convolution, nn.ReLU(), nn.BatchNorm2d(n_out), nn.MaxPool2d(2), nn.Dropout(dropout)]


def _local_response() -> nn.Module:
    return nn.LocalResponseNorm(5, alpha=1e-4, beta=0.75, k=2.0)
