"""Residual networks: images (B, c, h, w) -> features (B, features)."""

import math
from collections.abc import Callable
from typing import Literal, Protocol

from torch import Tensor, nn
from torch.nn.functional import relu

from ..utils.values import choice, integer, value
from .base import check_images
from .weights import Distribution, Normal, initial_distributions


class Conv(nn.Conv2d):
    def __init__(self, n_in: int, n_out: int, side: int, stride: int = 1) -> None:
        super().__init__(n_in, n_out, side, stride, padding=side // 2, bias=False)


@initial_distributions.register(Conv)
def _(layer: Conv) -> dict[str, Distribution]:
    return {"weight": Normal(math.sqrt(2 / (layer.out_channels * math.prod(layer.kernel_size))))}


class UniformConv(Conv):
    """Convolution with torch's default initialization."""


initial_distributions.register(UniformConv, initial_distributions.dispatch(nn.Conv2d))


class _Block(nn.Module):
    """Base of residual blocks: relu(change(x) + shortcut(x))."""

    expansion: int
    change: Callable[[Tensor], Tensor]

    def __init__(self, n_in: int, width: int, stride: int, conv: type[Conv]) -> None:
        super().__init__()
        self.shortcut = nn.Sequential()
        n_out = width * self.expansion
        if stride > 1 or n_in != n_out:
            self.shortcut = nn.Sequential(conv(n_in, n_out, 1, stride), nn.BatchNorm2d(n_out))

    def forward(self, x: Tensor) -> Tensor:
        return relu(self.change(x) + self.shortcut(x))


class Basic(_Block):
    expansion = 1

    def __init__(self, n_in: int, width: int, stride: int, conv: type[Conv]) -> None:
        super().__init__(n_in, width, stride, conv)
        self.conv1, self.norm1 = conv(n_in, width, 3, stride), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = conv(width, width, 3), nn.BatchNorm2d(width)

    def change(self, x: Tensor) -> Tensor:
        return self.norm2(self.conv2(relu(self.norm1(self.conv1(x)))))


class Bottleneck(_Block):
    expansion = 4

    def __init__(self, n_in: int, width: int, stride: int, conv: type[Conv]) -> None:
        super().__init__(n_in, width, stride, conv)
        self.conv1, self.norm1 = conv(n_in, width, 1), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = conv(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3, self.norm3 = conv(width, 4 * width, 1), nn.BatchNorm2d(4 * width)

    def change(self, x: Tensor) -> Tensor:
        x = relu(self.norm1(self.conv1(x)))
        return self.norm3(self.conv3(relu(self.norm2(self.conv2(x)))))


_DEPTHS: dict[int, tuple[type[Basic | Bottleneck], tuple[int, ...]]] = {
    18: (Basic, (2, 2, 2, 2)), 34: (Basic, (3, 4, 6, 3)), 50: (Bottleneck, (3, 4, 6, 3))}


class ResidualNetwork(nn.Module):
    def __init__(self, stem: nn.Module, kind: type[Basic | Bottleneck], counts: tuple[int, ...],
                 width: int, conv: type[Conv] = Conv) -> None:
        super().__init__()
        self.stem = stem
        n_in = width
        for i, count in enumerate(counts):
            layers = []
            for position in range(count):
                layers.append(kind(n_in, width << i, 2 if i > 0 and position == 0 else 1, conv))
                n_in = (width << i) * kind.expansion
            self.add_module(f"block{i + 1}", nn.Sequential(*layers))
        self.features = n_in

    def forward(self, x: Tensor) -> Tensor:
        x = x.movedim(-3, -1).contiguous().movedim(-1, -3)  # channels last, under vmap too
        for stage in self.children():
            x = stage(x)
        return x.mean((-2, -1))


class Backbone(Protocol):
    """Makes a module (B, c, h, w) -> (B, features) with `features`; its children are blocks."""

    def build(self, sample_shape: tuple[int, ...]) -> nn.Module: ...


@value
class ResNet:
    """Residual network, the backbone of `SimCLR`.

    Parameters
    ----------
    depth, width : {18, 34, 50} and int, default=18, 64
        Number of layers, and of channels of the first block; each later block has twice as many.
    stem : {"small", "large"}, default="small"
        A 3 x 3 convolution for small images, or a 7 x 7 one and max pooling, which shrink by 4.
    weights : {"he", "uniform"}, default="he"
        Initial convolutions: normal with variance 2 / fan-out, or torch's default, uniform within
        1 / sqrt(fan-in).

    Examples
    --------
    >>> import torch
    >>> from reclust import ResNet
    >>> net = ResNet(depth=18, width=8).build((3, 32, 32))
    >>> net(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 64])
    """

    depth: int = choice(18, 34, 50, default=18)
    width: int = integer(default=64, least=1)
    stem: Literal["small", "large"] = choice("small", "large", default="small")
    weights: Literal["he", "uniform"] = choice("he", "uniform", default="he")

    def build(self, sample_shape: tuple[int, ...]) -> ResidualNetwork:
        check_images("ResNet", sample_shape)
        small = self.stem == "small"
        conv = Conv if self.weights == "he" else UniformConv
        first = conv(sample_shape[0], self.width, 3 if small else 7, 1 if small else 2)
        pool = [] if small else [nn.MaxPool2d(3, 2, padding=1)]
        stem = nn.Sequential(first, nn.BatchNorm2d(self.width), nn.ReLU(), *pool)
        return ResidualNetwork(stem, *_DEPTHS[self.depth], self.width, conv)
