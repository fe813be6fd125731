"""Residual networks: images (B, c, h, w) -> features (B, features)."""

from __future__ import annotations

import math
from typing import Literal, Protocol

from torch import Tensor, nn
from torch.nn.functional import relu

from ..utils.values import check_int, value
from .base import check_images
from .weights import Distribution, Normal, initial_distributions


class Conv(nn.Conv2d):
    """A convolution without bias that keeps the image's size but for its stride, initialised as residual networks are:
    normal, with a variance of two over the number of inputs that one input's gradient comes from."""

    def __init__(self, wide: int, narrow: int, side: int, stride: int = 1) -> None:
        super().__init__(wide, narrow, side, stride, padding=side // 2, bias=False)


@initial_distributions.register(Conv)
def _(layer: Conv) -> dict[str, Distribution]:
    return {"weight": Normal(math.sqrt(2 / (layer.out_channels * math.prod(layer.kernel_size))))}


class _Residual(nn.Module):
    """x + change(x), then ReLU; where sizes differ, x goes through a convolution of one pixel first."""

    expansion: int

    def __init__(self, wide: int, width: int, stride: int) -> None:
        super().__init__()
        self.shortcut = nn.Sequential()
        if stride > 1 or wide != width * self.expansion:
            narrow = width * self.expansion
            self.shortcut = nn.Sequential(Conv(wide, narrow, 1, stride), nn.BatchNorm2d(narrow))

    def change(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        return relu(self.change(x) + self.shortcut(x))


class Basic(_Residual):
    """Two convolutions of 3 × 3."""

    expansion = 1

    def __init__(self, wide: int, width: int, stride: int) -> None:
        super().__init__(wide, width, stride)
        self.conv1, self.norm1 = Conv(wide, width, 3, stride), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = Conv(width, width, 3), nn.BatchNorm2d(width)

    def change(self, x: Tensor) -> Tensor:
        return self.norm2(self.conv2(relu(self.norm1(self.conv1(x)))))


class Bottleneck(_Residual):
    """3 × 3 between two convolutions of one pixel, the last one four times as wide."""

    expansion = 4

    def __init__(self, wide: int, width: int, stride: int) -> None:
        super().__init__(wide, width, stride)
        self.conv1, self.norm1 = Conv(wide, width, 1), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = Conv(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3, self.norm3 = Conv(width, 4 * width, 1), nn.BatchNorm2d(4 * width)

    def change(self, x: Tensor) -> Tensor:
        x = relu(self.norm1(self.conv1(x)))
        return self.norm3(self.conv3(relu(self.norm2(self.conv2(x)))))


_DEPTHS: dict[int, tuple[type[_Residual], tuple[int, ...]]] = {
    18: (Basic, (2, 2, 2, 2)), 34: (Basic, (3, 4, 6, 3)), 50: (Bottleneck, (3, 4, 6, 3)),
}


class ResidualNetwork(nn.Module):
    """Stem, four blocks, mean over the image; its blocks are called stem, block1, …, block4."""

    def __init__(self, stem: nn.Module, kind: type[_Residual], counts: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.stem = stem
        wide = width
        for number, count in enumerate(counts):
            layers = []
            for position in range(count):
                layers.append(kind(wide, width << number, 2 if number > 0 and position == 0 else 1))
                wide = (width << number) * kind.expansion
            self.add_module(f"block{number + 1}", nn.Sequential(*layers))
        self.features = wide

    def forward(self, x: Tensor) -> Tensor:
        x = x.movedim(-3, -1).contiguous().movedim(-1, -3)  # channels last in memory, also where replicas are mapped
        for stage in self.children():
            x = stage(x)
        return x.mean((-2, -1))


class Backbone(Protocol):
    """What turns images into features: (B, c, h, w) -> (B, features)."""

    def build(self, sample_shape: tuple[int, ...]) -> nn.Module:
        """A module that says how many `features` it has; its children are the blocks that may be reset."""
        ...


@value
class ResNet:
    """A residual network of 18, 34 or 50 layers.

    width: channels of the first block; each later one has twice as many.
    stem: "small" for images of about 32 × 32, one 3 × 3 convolution; "large" reduces fourfold, by a 7 × 7 convolution
        and a maximum over 3 × 3.
    """

    depth: int = 18
    width: int = 64
    stem: Literal["small", "large"] = "small"

    def __post_init__(self) -> None:
        if self.depth not in _DEPTHS:
            raise ValueError(f"depth must be one of {', '.join(map(str, _DEPTHS))}, got {self.depth!r}.")
        object.__setattr__(self, "width", check_int("width", self.width, 1))
        if self.stem not in ("small", "large"):
            raise ValueError(f"stem must be 'small' or 'large', got {self.stem!r}.")

    def build(self, sample_shape: tuple[int, ...]) -> ResidualNetwork:
        check_images("ResNet", sample_shape)
        small = self.stem == "small"
        conv = Conv(sample_shape[0], self.width, 3 if small else 7, 1 if small else 2)
        shrink = [] if small else [nn.MaxPool2d(3, 2, padding=1)]
        stem = nn.Sequential(conv, nn.BatchNorm2d(self.width), nn.ReLU(), *shrink)
        return ResidualNetwork(stem, *_DEPTHS[self.depth], self.width)
