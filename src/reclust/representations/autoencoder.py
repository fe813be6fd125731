"""Autoencoders: the encoder's output is z, and reconstruction keeps it honest."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from ..utils.values import check_int, check_ints, value
from .base import encode_together, encoder_blocks
from .layers import BatchNorm, Linear, LinearReLU, mean_squared_error, uninitialized
from .weights import decaying_weights, expanded_weights, initial_weights


class EncoderDecoder(nn.Module):
    """A pair of modules: x -> z -> reconstruction of x."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder


class Reconstruction:
    """The half that every autoencoder shares, whatever its layers."""

    stacks: ClassVar[bool] = True

    def encode(self, net: EncoderDecoder, x: Tensor) -> Tensor:
        return net.encoder(x)

    def encode_views(self, net: EncoderDecoder, views: Tensor) -> Tensor:
        return encode_together(net.encoder, views)

    def loss(self, net: EncoderDecoder, views: Tensor, z: Tensor) -> Tensor:
        """Mean squared error, averaged over the views."""
        made = net.decoder(z.flatten(0, 1))
        return mean_squared_error(made, views.reshape(made.shape))

    def initial_weights(self, net: EncoderDecoder, key: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        return initial_weights(net, key, dtype=dtype)

    def blocks(self, net: EncoderDecoder) -> dict[str, tuple[str, ...]]:
        return encoder_blocks(net.encoder, prefix="encoder.")

    def decaying(self, net: EncoderDecoder) -> frozenset[str]:
        return decaying_weights(net)


@value
class Autoencoder(Reconstruction):
    """Fully connected, ReLU, mirrored decoder. `embedding=None` takes the number of clusters."""

    hidden: tuple[int, ...] = (1024, 512, 256)
    embedding: int | None = None
    batch_norm: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", check_ints("hidden", self.hidden, 1))
        if self.embedding is not None:
            object.__setattr__(self, "embedding", check_int("embedding", self.embedding, 1))

    def build(self, sample_shape: tuple[int, ...], n_clusters: int) -> EncoderDecoder:
        sizes = (math.prod(sample_shape), *self.hidden, self.embedding or n_clusters)
        return EncoderDecoder(nn.Sequential(nn.Flatten(), *self._stack(sizes)), nn.Sequential(*self._stack(sizes[::-1])))

    def _stack(self, sizes: tuple[int, ...]) -> list[nn.Module]:
        *hidden, last = pairwise(sizes)
        made: list[nn.Module] = []
        for wide, narrow in hidden:
            if self.batch_norm:
                made += [uninitialized(Linear, wide, narrow), BatchNorm(narrow), nn.ReLU()]
            else:
                made.append(uninitialized(LinearReLU, wide, narrow))
        return [*made, uninitialized(Linear, *last)]


@value
class OwnAutoencoder(Reconstruction):
    """Your own pair of modules: encoder (B, *sample_shape) -> (B, d), decoder back to B times as many numbers.

    `weights="fresh"` draws their initial weights from the seed; `"given"` starts every replica from the weights the
    modules came with, for instance pretrained ones.
    """

    encoder: nn.Module
    decoder: nn.Module
    weights: Literal["fresh", "given"] = "fresh"

    def __post_init__(self) -> None:
        if self.weights not in ("fresh", "given"):
            raise ValueError(f"weights must be 'fresh' or 'given', got {self.weights!r}.")

    def build(self, sample_shape: tuple[int, ...], n_clusters: int) -> EncoderDecoder:
        return EncoderDecoder(self.encoder, self.decoder)

    def initial_weights(self, net: EncoderDecoder, key: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        draw = initial_weights if self.weights == "fresh" else expanded_weights
        return draw(net, key, dtype=dtype)
