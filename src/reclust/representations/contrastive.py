"""Contrastive representations: two views of a sample should agree after a projector, and differ from all other samples."""

from __future__ import annotations

from collections import OrderedDict
from itertools import pairwise
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor, nn

from .. import draws
from ..utils.values import check_float, check_int, value
from .base import encode_together, encoder_blocks, layers_of, tried
from .layers import uninitialized
from .resnet import Backbone, ResNet
from .weights import decaying_weights, expanded_weights, initial_weights

Together = Literal["together", "apart", "apart and again"]


def nt_xent(projected: Tensor, temperature: float | Tensor) -> Tensor:
    """Normalised temperature-scaled cross-entropy, the mean over all 2B projections: (2, B, p) -> scalar.

    Of all other projections, each should be most similar (cosine) to that of its own sample's other view. Computed in
    float32 at least, whatever precision the network ran in.
    """
    both = projected.flatten(0, 1)
    with torch.autocast(both.device.type, enabled=False):
        both = nn.functional.normalize(both.to(torch.promote_types(both.dtype, torch.float32)), dim=-1)
        similarity = both @ both.mT / temperature
        itself = torch.eye(len(both), dtype=torch.bool, device=both.device)
        other = torch.arange(len(both), device=both.device).roll(len(both) // 2)
        return nn.functional.cross_entropy(similarity.masked_fill(itself, -torch.inf), other)


class EncoderProjector(nn.Module):
    """A pair of modules: x -> z -> what the contrastive loss compares."""

    def __init__(self, encoder: nn.Module, projector: nn.Module) -> None:
        super().__init__()
        self.encoder, self.projector = encoder, projector


class Contrastive:
    """The half that every contrastive representation shares, whatever its layers. Its children have these fields:

    temperature: of the contrastive loss.
    reduction: "mean" over all projections; "sum" of the two directions is twice as much, and made the published numbers.
    encoding: "together" encodes both views in one pass, "apart" one after the other, each with BatchNorm statistics of its own;
        "apart and again" then encodes the first one once more, which only BatchNorm's running statistics notice.
    """

    temperature: float
    reduction: Literal["mean", "sum"]
    encoding: Together
    stacks: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "temperature", check_float("temperature", self.temperature))
        if not self.temperature > 0:
            raise ValueError(f"temperature must be above 0, got {self.temperature!r}.")
        if self.reduction not in ("mean", "sum"):
            raise ValueError(f"reduction must be 'mean' or 'sum', got {self.reduction!r}.")
        if self.encoding not in get_args(Together):
            raise ValueError(f"encoding must be 'together', 'apart' or 'apart and again', got {self.encoding!r}.")

    def encode(self, net: EncoderProjector, x: Tensor) -> Tensor:
        return net.encoder(x)

    def encode_views(self, net: EncoderProjector, views: Tensor) -> Tensor:
        z = self._over(net.encoder, views)
        if self.encoding == "apart and again" and net.training:
            with torch.no_grad():
                net.encoder(views[0])
        return z

    def loss(self, net: EncoderProjector, views: Tensor, z: Tensor) -> Tensor:
        if len(z) != 2:
            raise ValueError(f"The contrastive loss compares two views of each sample, but there is {len(z)} in a batch: "
                             "train with an augmentation and Schedule(views=('augmented', 'augmented')).")
        loss = nt_xent(self._over(net.projector, z), self.temperature)
        return 2 * loss if self.reduction == "sum" else loss

    def _over(self, part: nn.Module, views: Tensor) -> Tensor:
        if self.encoding == "together":
            return encode_together(part, views)
        return torch.stack([part(view) for view in views])

    def initial_weights(self, net: EncoderProjector, key: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        return initial_weights(net, key, dtype=dtype)

    def blocks(self, net: EncoderProjector) -> dict[str, tuple[str, ...]]:
        return {**encoder_blocks(net.encoder, prefix="encoder."), "projector": layers_of(net, "projector")}

    def decaying(self, net: EncoderProjector) -> frozenset[str]:
        return decaying_weights(net.encoder, prefix="encoder.")


@value
class SimCLR(Contrastive):
    """A residual network, a perceptron with BatchNorm whose last layer gives z, and a projector for the contrastive loss.

    Its blocks are stem, block1 to block4, mlp, embedding and projector. Resets of all of them ruin what was learned:
    name the late ones, as `SoftReset({"mlp": 0.7, "block4": 0.9, "projector": 0.7})` of the paper does.

    hidden, embedding: sizes of the perceptron; nothing follows its last layer.
    projector: sizes of the projector, the hidden ones and its output; `projector_norm` adds BatchNorm to the hidden ones.
    temperature, reduction, encoding: see `Contrastive`.
    """

    backbone: Backbone = ResNet()
    hidden: tuple[int, ...] = (512, 256)
    embedding: int = 128
    projector: tuple[int, ...] = (2048, 128)
    projector_norm: bool = False
    temperature: float = 0.5
    reduction: Literal["mean", "sum"] = "mean"
    encoding: Together = "together"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("hidden", "projector"):
            sizes = tuple(check_int(f"each size in {name}", size, 1) for size in getattr(self, name))
            object.__setattr__(self, name, sizes)
        object.__setattr__(self, "embedding", check_int("embedding", self.embedding, 1))
        if not self.projector:
            raise ValueError("projector needs at least the size of its output.")

    def build(self, sample_shape: tuple[int, ...], n_clusters: int) -> EncoderProjector:
        backbone = self.backbone.build(sample_shape)
        sizes = (int(backbone.features), *self.hidden, self.embedding)  # type: ignore[arg-type]
        *mlp, last = perceptron(sizes, batch_norm=True)
        parts = OrderedDict(backbone=backbone, mlp=nn.Sequential(*mlp), embedding=last)
        projector = perceptron((self.embedding, *self.projector), batch_norm=self.projector_norm)
        return EncoderProjector(nn.Sequential(parts), nn.Sequential(*projector))

    def blocks(self, net: EncoderProjector) -> dict[str, tuple[str, ...]]:
        stages = [name for name, _ in net.encoder.get_submodule("backbone").named_children()]
        places = {**{stage: f"encoder.backbone.{stage}" for stage in stages},
                  "mlp": "encoder.mlp", "embedding": "encoder.embedding", "projector": "projector"}
        return {block: layers_of(net, place) for block, place in places.items()}


@value
class OwnSimCLR(Contrastive):
    """Your own encoder (B, *sample_shape) -> (B, d), and a projector of z for the contrastive loss.

    projector: None is a perceptron of sizes d, 2048, 128.
    weights: "fresh" draws initial weights from the seed; "given" starts every replica's encoder from the weights the
        module came with, for instance pretrained ones.
    temperature, reduction, encoding: see `Contrastive`.
    """

    encoder: nn.Module
    projector: nn.Module | None = None
    weights: Literal["fresh", "given"] = "fresh"
    temperature: float = 0.5
    reduction: Literal["mean", "sum"] = "mean"
    encoding: Together = "together"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights not in ("fresh", "given"):
            raise ValueError(f"weights must be 'fresh' or 'given', got {self.weights!r}.")

    def build(self, sample_shape: tuple[int, ...], n_clusters: int) -> EncoderProjector:
        if self.projector is not None:
            return EncoderProjector(self.encoder, self.projector)
        like = next(self.encoder.parameters(), torch.empty(0))
        modes = {module: module.training for module in self.encoder.modules()}
        try:
            with torch.no_grad():
                width = tried("encoder", self.encoder.eval(), like.new_zeros(2, *sample_shape)).shape[-1]
        finally:
            for module, training in modes.items():
                module.training = training
        return EncoderProjector(self.encoder, nn.Sequential(*perceptron((width, 2048, 128), batch_norm=False)))

    def initial_weights(self, net: EncoderProjector, key: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        if self.weights == "fresh":
            return super().initial_weights(net, key, dtype)
        given = expanded_weights(net, key, dtype=dtype)
        if self.projector is None:  # nobody gave weights for it
            drawn = initial_weights(net.projector, draws.fold(key, "projector"), dtype=dtype)
            given.update({f"projector.{name}": stack for name, stack in drawn.items()})
        return given


def perceptron(sizes: tuple[int, ...], *, batch_norm: bool) -> list[nn.Module]:
    """Linear layers with ReLU, and perhaps BatchNorm, between them; nothing after the last. Weights are left uninitialized."""
    made: list[nn.Module] = []
    for wide, narrow in pairwise(sizes):
        made += [uninitialized(nn.Linear, wide, narrow), *([nn.BatchNorm1d(narrow)] if batch_norm else []), nn.ReLU()]
    return made[: -2 if batch_norm else -1]
