"""Convolutional autoencoders for small images."""

from __future__ import annotations

import math
from collections import OrderedDict
from itertools import pairwise

from torch import Tensor, nn

from ..utils.values import check_int, check_ints, value
from .autoencoder import EncoderDecoder, Reconstruction
from .base import check_images, layers_of
from .layers import Linear, LinearReLU, uninitialized
from .patches import Convolution, Enlargement, Residual


class _ChannelsLast(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.movedim(-3, -1)


class _ChannelsFirst(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.movedim(-1, -3)


@value
class ConvAutoencoder(Reconstruction):
    """Convolutional, for grey and colour images of about 8 × 8 to 64 × 64 pixels.

    Each block of the encoder halves the image, rounding up, by a convolution of 3 × 3 pixels with ReLU; a linear layer makes z
    of the last. The decoder is its mirror. The blocks that may be reset are block1, block2, … and embedding.

    channels: of each block.
    residuals: so many residual pairs of convolutions follow in each block.
    embedding: None takes the number of clusters.
    """

    channels: tuple[int, ...] = (32, 64, 128)
    residuals: int = 0
    embedding: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "channels", check_ints("channels", self.channels, 1))
        if not self.channels:
            raise ValueError("channels is empty: give at least one block its number of channels.")
        object.__setattr__(self, "residuals", check_int("residuals", self.residuals, 0))
        if self.embedding is not None:
            object.__setattr__(self, "embedding", check_int("embedding", self.embedding, 1))

    def build(self, sample_shape: tuple[int, ...], n_clusters: int) -> EncoderDecoder:
        check_images(type(self).__name__, sample_shape)
        channels, *side = sample_shape
        sizes = [(*side, channels)]
        for wide in self.channels:
            sizes.append((*((length + 1) // 2 for length in sizes[-1][:2]), wide))
        deepest, embedding = math.prod(sizes[-1]), self.embedding or n_clusters
        down = {f"block{i + 1}": self._smaller(*pair) for i, pair in enumerate(pairwise(sizes))}
        up = {f"block{i + 1}": self._larger(*pair) for i, pair in enumerate(pairwise(sizes[::-1]))}
        up[f"block{len(up)}"].pop(-1)  # a pixel may have any value
        encoder = OrderedDict(image=_ChannelsLast(), **down, flat=nn.Flatten(), embedding=uninitialized(Linear, deepest, embedding))
        decoder = OrderedDict(spread=uninitialized(LinearReLU, embedding, deepest), image=nn.Unflatten(1, sizes[-1]), **up,
                              shown=_ChannelsFirst(), flat=nn.Flatten())
        return EncoderDecoder(nn.Sequential(encoder), nn.Sequential(decoder))

    def _smaller(self, large: tuple[int, ...], small: tuple[int, ...]) -> nn.Sequential:
        return nn.Sequential(Convolution(large[-1], small[-1], 2), nn.ReLU(), *self._residuals(small[-1]))

    def _larger(self, small: tuple[int, ...], large: tuple[int, ...]) -> nn.Sequential:
        return nn.Sequential(*self._residuals(small[-1]), Enlargement(small[-1], large[-1], *large[:2]), nn.ReLU())

    def _residuals(self, width: int) -> list[nn.Module]:
        return [Residual(width) for _ in range(self.residuals)]

    def blocks(self, net: EncoderDecoder) -> dict[str, tuple[str, ...]]:
        parts = {name: layers_of(net, f"encoder.{name}") for name, _ in net.encoder.named_children()}
        return {name: names for name, names in parts.items() if names}
