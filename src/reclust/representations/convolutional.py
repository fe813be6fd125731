"""Convolutional autoencoders for small images."""

import math
from collections import OrderedDict
from itertools import pairwise

from torch import Tensor, nn

from ..utils.values import integer, integers, value
from .autoencoder import EncoderDecoder, Reconstruction
from .base import check_images, layers_of
from .layers import Linear, LinearReLU, uninitialized
from .patches import Convolution, Residual, TransposedConvolution


class _ChannelsLast(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.movedim(-3, -1)


class _ChannelsFirst(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.movedim(-1, -3)


@value
class ConvAutoencoder(Reconstruction):
    """Convolutional autoencoder for images of about 8 x 8 to 64 x 64 pixels.

    Each block of the encoder halves the image with a 3 x 3 convolution and ReLU, and a linear
    layer makes the embedding. The decoder mirrors it. Blocks that may be reset are block1, block2,
    ... and embedding.

    Parameters
    ----------
    channels : tuple of int, default=(32, 64, 128)
        Number of channels of each block.
    residuals : int, default=0
        Number of residual pairs of convolutions added to each block.
    embedding : int, optional
        Size of the embedding, by default the number of clusters.

    Examples
    --------
    >>> from reclust import IDEC, ConvAutoencoder
    >>> model = IDEC(n_clusters=3, representation=ConvAutoencoder(channels=(16, 32)))
    """

    channels: tuple[int, ...] = integers(default=(32, 64, 128), least=1)
    residuals: int = integer(default=0)
    embedding: int | None = integer(default=None, least=1, optional=True)

    def build(self, sample_shape: tuple[int, ...], n_clusters: int) -> EncoderDecoder:
        check_images("ConvAutoencoder", sample_shape)
        channels, *side = sample_shape
        sizes = [(*side, channels)]
        for width in self.channels:
            sizes.append((*((length + 1) // 2 for length in sizes[-1][:2]), width))
        flat, embedding = math.prod(sizes[-1]), self.embedding or n_clusters
        down = {f"block{i + 1}": self._down(*pair) for i, pair in enumerate(pairwise(sizes))}
        up = {f"block{i + 1}": self._up(*pair) for i, pair in enumerate(pairwise(sizes[::-1]))}
        up[f"block{len(up)}"].pop(-1)  # no ReLU: pixels may be negative
        encoder = OrderedDict(image=_ChannelsLast(), **down, flat=nn.Flatten(),
                              embedding=uninitialized(Linear, flat, embedding))
        decoder = OrderedDict(spread=uninitialized(LinearReLU, embedding, flat),
                              image=nn.Unflatten(1, sizes[-1]), **up,
                              shown=_ChannelsFirst(), flat=nn.Flatten())
        return EncoderDecoder(nn.Sequential(encoder), nn.Sequential(decoder))

    def _down(self, large: tuple[int, ...], small: tuple[int, ...]) -> nn.Sequential:
        convolution = Convolution(large[-1], small[-1], 2)
        return nn.Sequential(convolution, nn.ReLU(), *self._residuals(small[-1]))

    def _up(self, small: tuple[int, ...], large: tuple[int, ...]) -> nn.Sequential:
        convolution = TransposedConvolution(small[-1], large[-1], *large[:2])
        return nn.Sequential(*self._residuals(small[-1]), convolution, nn.ReLU())

    def _residuals(self, width: int) -> list[nn.Module]:
        return [Residual(width) for _ in range(self.residuals)]

    def blocks(self, net: EncoderDecoder) -> dict[str, tuple[str, ...]]:
        names = {name: layers_of(net, f"encoder.{name}")
                 for name, _ in net.encoder.named_children()}
        return {block: own for block, own in names.items() if own}
