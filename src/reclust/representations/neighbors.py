"""Neighbor networks: a sample and one of its nearest neighbors are views of the same thing."""

import math
from itertools import pairwise
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from ..utils.values import choice, integer, integers, number, value
from .base import WithEncoder, encode_together
from .layers import Linear, LinearReLU, uninitialized


@value
class Neighbors(WithEncoder):
    """Perceptron that learns to tell a sample's neighbors from the other samples of a batch.

    It trains on pairs, as in ``Schedule(views=("clean", "neighbor"))``, or ``("augmented",
    "neighbor")``, which presets do.

    Parameters
    ----------
    hidden, embedding : tuple of int and int, default=(512,), 64
        Sizes of the hidden layers and of the embedding.
    kernel : {"cosine", "student"}, default="cosine"
        Similarity of two embeddings: their cosine divided by the temperature, for embeddings on
        the unit sphere, or -log(1 + squared distance), as in t-SNE and UMAP.
    temperature : float, default=0.5
        Temperature of the cosine.

    Examples
    --------
    >>> from reclust import DEC, Neighbors
    >>> model = DEC(n_clusters=3, representation=Neighbors(kernel="student"))
    """

    hidden: tuple[int, ...] = integers(default=(512,), least=1)
    embedding: int = integer(default=64, least=1)
    kernel: Literal["cosine", "student"] = choice("cosine", "student", default="cosine")
    temperature: float = number(default=0.5, above=0)
    compares_samples: ClassVar[bool] = True

    def build(self, sample_shape: tuple[int, ...], n_clusters: int) -> nn.ModuleDict:
        *hidden, last = pairwise((math.prod(sample_shape), *self.hidden, self.embedding))
        layers = [uninitialized(LinearReLU, *sizes) for sizes in hidden]
        encoder = nn.Sequential(nn.Flatten(), *layers, uninitialized(Linear, *last))
        return nn.ModuleDict({"encoder": encoder})

    def encode(self, net: Any, x: Tensor) -> Tensor:
        return self._scaled(net.encoder(x))

    def encode_views(self, net: Any, views: Tensor) -> Tensor:
        return self._scaled(encode_together(net.encoder, views))

    def _scaled(self, z: Tensor) -> Tensor:
        return nn.functional.normalize(z, dim=-1) if self.kernel == "cosine" else z

    def loss(self, net: Any, views: Tensor, z: Tensor) -> Tensor:
        """Return the cross-entropy of finding the last view of each sample among all others."""
        z = z.to(torch.promote_types(z.dtype, torch.float32))
        first, second = z[0], z[-1]
        products = first @ second.mT
        if self.kernel == "cosine":
            similarity = products / self.temperature
        else:
            squares = first.square().sum(-1, keepdim=True) + second.square().sum(-1)
            similarity = -torch.log1p((squares - 2 * products).clamp(min=0))
        return (similarity.logsumexp(-1) - similarity.diagonal(dim1=-2, dim2=-1)).mean()
