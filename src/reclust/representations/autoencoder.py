"""Autoencoders: the encoder's output is z, and reconstruction keeps it informative."""

import math
from itertools import pairwise
from typing import Any, Literal

from torch import Tensor, nn

from ..utils.values import choice, integer, integers, value
from .base import WithEncoder
from .layers import BatchNormReLU, Linear, LinearReLU, mean_squared_error, uninitialized


class Reconstruction(WithEncoder):
    """Shared part of autoencoders, whose networks have an `encoder` and a `decoder`."""

    def loss(self, net: Any, views: Tensor, z: Tensor) -> Tensor:
        output = net.decoder(z.flatten(0, 1))
        return mean_squared_error(output, views.reshape(output.shape))


@value
class Autoencoder(Reconstruction):
    """Fully connected autoencoder with ReLU and a mirrored decoder.

    Parameters
    ----------
    hidden : tuple of int, default=(1024, 512, 256)
        Sizes of the encoder's hidden layers.
    embedding : int, optional
        Size of the embedding, by default the number of clusters.
    batch_norm : bool, default=False
        Add BatchNorm to the hidden layers.

    Examples
    --------
    >>> from reclust import IDEC, Autoencoder
    >>> model = IDEC(n_clusters=3, representation=Autoencoder(hidden=(64, 32), embedding=8))
    """

    hidden: tuple[int, ...] = integers(default=(1024, 512, 256), least=1)
    embedding: int | None = integer(default=None, least=1, optional=True)
    batch_norm: bool = False

    def build(self, sample_shape: tuple[int, ...], n_clusters: int) -> nn.ModuleDict:
        sizes = (math.prod(sample_shape), *self.hidden, self.embedding or n_clusters)
        encoder = nn.Sequential(nn.Flatten(), *self._layers(sizes))
        decoder = nn.Sequential(*self._layers(sizes[::-1]))
        return nn.ModuleDict({"encoder": encoder, "decoder": decoder})

    def _layers(self, sizes: tuple[int, ...]) -> list[nn.Module]:
        *hidden, last = pairwise(sizes)
        layers: list[nn.Module] = []
        for n_in, n_out in hidden:
            if self.batch_norm:
                layer = uninitialized(Linear, n_in, n_out)
                layers += [layer, BatchNormReLU(n_out), nn.Identity()]  # named as in older files
            else:
                layers.append(uninitialized(LinearReLU, n_in, n_out))
        return [*layers, uninitialized(Linear, *last)]


@value
class Embeddings(Autoencoder):
    """Small autoencoder for samples that are embeddings of a pretrained model already.

    Presets train it for fewer epochs than other autoencoders.

    Parameters
    ----------
    hidden : tuple of int, default=(256,)
        Sizes of the encoder's hidden layers.
    embedding, batch_norm
        See `Autoencoder`.

    Examples
    --------
    >>> from reclust import IDEC, Embeddings
    >>> model = IDEC(n_clusters=3, representation=Embeddings())
    """

    hidden: tuple[int, ...] = integers(default=(256,), least=1)


@value
class OwnAutoencoder(Reconstruction):
    """Autoencoder of custom modules.

    Parameters
    ----------
    encoder : Module
        Turns samples (B, *sample_shape) into embeddings (B, d).
    decoder : Module
        Turns embeddings into B times as many numbers as a sample has.
    weights : {"fresh", "given"}, default="fresh"
        Draw initial weights from the seed, or start every replica from those of the modules.

    Examples
    --------
    >>> from torch import nn
    >>> from reclust import IDEC, OwnAutoencoder
    >>> encoder = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 3))
    >>> model = IDEC(n_clusters=3, representation=OwnAutoencoder(encoder, nn.Linear(3, 20)))
    """

    encoder: nn.Module
    decoder: nn.Module
    weights: Literal["fresh", "given"] = choice("fresh", "given", default="fresh")

    def build(self, sample_shape: tuple[int, ...], n_clusters: int) -> nn.ModuleDict:
        return nn.ModuleDict({"encoder": self.encoder, "decoder": self.decoder})
