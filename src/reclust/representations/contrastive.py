"""Contrastive representations: two views of a sample agree after a projector."""

import copy
from collections import OrderedDict
from itertools import pairwise
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor, nn

from .. import draws
from ..utils.values import choice, integer, integers, number, value
from .base import WithEncoder, encode_together, layers_of, try_forward
from .layers import uninitialized
from .resnet import Backbone, ResNet
from .weights import decaying_weights, initial_weights

ContrastiveEncoding = Literal["together", "apart", "apart and again"]


def nt_xent(projected: Tensor, temperature: float | Tensor) -> Tensor:
    """Compute NT-Xent, a normalized cross-entropy, at least in float32: (2, B, p) -> scalar."""
    both = projected.flatten(0, 1)
    with torch.autocast(both.device.type, enabled=False):
        both = both.to(torch.promote_types(both.dtype, torch.float32))
        both = nn.functional.normalize(both, dim=-1)
        similarity = both @ both.mT / temperature
        itself = torch.eye(len(both), dtype=torch.bool, device=both.device)
        partner = torch.arange(len(both), device=both.device).roll(len(both) // 2)
        return nn.functional.cross_entropy(similarity.masked_fill(itself, -torch.inf), partner)


class Contrastive(WithEncoder):
    """Shared part of representations with an `encoder` and a `projector`; see `SimCLR`."""

    temperature: float
    reduction: Literal["mean", "sum"]
    encoding: ContrastiveEncoding
    stacks: ClassVar[bool] = False
    compares_samples: ClassVar[bool] = True

    def encode_views(self, net: Any, views: Tensor) -> Tensor:
        z = self._apply(net.encoder, views)
        if self.encoding == "apart and again" and net.training:
            with torch.no_grad():
                net.encoder(views[0])
        return z

    def loss(self, net: Any, views: Tensor, z: Tensor) -> Tensor:
        if len(z) != 2:
            raise ValueError("The contrastive loss compares two views of each sample, got "
                             f"{len(z)}: use Schedule(views=('augmented', 'augmented')).")
        loss = nt_xent(self._apply(net.projector, z), self.temperature)
        return 2 * loss if self.reduction == "sum" else loss

    def _apply(self, part: nn.Module, views: Tensor) -> Tensor:
        if self.encoding == "together":
            return encode_together(part, views)
        return torch.stack([part(view) for view in views])

    def blocks(self, net: Any) -> dict[str, tuple[str, ...]]:
        return {**super().blocks(net), "projector": layers_of(net, "projector")}

    def decaying(self, net: Any) -> frozenset[str]:
        return decaying_weights(net.encoder, prefix="encoder.")


@value
class SimCLR(Contrastive):
    """Residual network, MLP with BatchNorm whose output is the embedding, and a projector.

    Its blocks are stem, block1 to block4, mlp, embedding and projector. Reset only late ones, as
    the paper does with ``SoftReset({"mlp": 0.7, "block4": 0.9, "projector": 0.7})``.

    Parameters
    ----------
    backbone : Backbone, default=ResNet()
        Network that turns images into features.
    hidden, embedding : tuple of int and int, default=(512, 256), 128
        Sizes of the MLP's hidden layers and of the embedding.
    projector, projector_norm : tuple of int and bool, default=(2048, 128), False
        Sizes of the projector's layers, and whether its hidden ones have BatchNorm.
    temperature : float, default=0.5
        Temperature of the contrastive loss.
    reduction : {"mean", "sum"}, default="mean"
        Mean over projections, or twice that, the sum of both directions, as in the published runs.
    encoding : {"together", "apart", "apart and again"}, default="together"
        Encode both views in one pass, or one after another with separate BatchNorm statistics.
        "apart and again" then encodes the first view again, to update running statistics.

    Examples
    --------
    >>> from reclust import IDEC, ResNet, SimCLR
    >>> model = IDEC(n_clusters=10, representation=SimCLR(ResNet(depth=18, width=16)))
    """

    backbone: Backbone = ResNet()
    hidden: tuple[int, ...] = integers(default=(512, 256), least=1)
    embedding: int = integer(default=128, least=1)
    projector: tuple[int, ...] = integers(default=(2048, 128), least=1)
    projector_norm: bool = False
    temperature: float = number(default=0.5, above=0)
    reduction: Literal["mean", "sum"] = choice("mean", "sum", default="mean")
    encoding: ContrastiveEncoding = choice(*get_args(ContrastiveEncoding), default="together")

    def build(self, sample_shape: tuple[int, ...], n_clusters: int) -> nn.ModuleDict:
        backbone = self.backbone.build(sample_shape)
        sizes = (int(backbone.features), *self.hidden, self.embedding)  # type: ignore[arg-type]
        *hidden, last = mlp(sizes, batch_norm=True)
        parts = OrderedDict(backbone=backbone, mlp=nn.Sequential(*hidden), embedding=last)
        projector = mlp((self.embedding, *self.projector), batch_norm=self.projector_norm)
        return nn.ModuleDict({"encoder": nn.Sequential(parts),
                              "projector": nn.Sequential(*projector)})

    def blocks(self, net: Any) -> dict[str, tuple[str, ...]]:
        stages = [name for name, _ in net.encoder.get_submodule("backbone").named_children()]
        places = {**{stage: f"encoder.backbone.{stage}" for stage in stages},
                  "mlp": "encoder.mlp", "embedding": "encoder.embedding", "projector": "projector"}
        return {block: layers_of(net, place) for block, place in places.items()}


@value
class OwnSimCLR(Contrastive):
    """Contrastive representation with a custom encoder.

    Parameters
    ----------
    encoder : Module
        Turns samples (B, *sample_shape) into embeddings (B, d).
    projector : Module, optional
        Turns embeddings into the input of the loss, by default an MLP of sizes d, 2048, 128.
    weights : {"fresh", "given"}, default="fresh"
        Draw initial weights from the seed, or start every replica from those of the modules.
    temperature, reduction, encoding
        See `SimCLR`.

    Examples
    --------
    >>> from torch import nn
    >>> from reclust import IDEC, OwnSimCLR
    >>> encoder = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 16))
    >>> model = IDEC(n_clusters=3, representation=OwnSimCLR(encoder))
    """

    encoder: nn.Module
    projector: nn.Module | None = None
    weights: Literal["fresh", "given"] = choice("fresh", "given", default="fresh")
    temperature: float = number(default=0.5, above=0)
    reduction: Literal["mean", "sum"] = choice("mean", "sum", default="mean")
    encoding: ContrastiveEncoding = choice(*get_args(ContrastiveEncoding), default="together")

    def build(self, sample_shape: tuple[int, ...], n_clusters: int) -> nn.ModuleDict:
        projector = self.projector
        if projector is None:
            encoder = copy.deepcopy(self.encoder).eval()  # given modules are left unchanged
            x = next(encoder.parameters(), torch.empty(0)).new_zeros(2, *sample_shape)
            with torch.no_grad():
                width = try_forward("encoder", encoder, x).shape[-1]
            projector = nn.Sequential(*mlp((width, 2048, 128), batch_norm=False))
        return nn.ModuleDict({"encoder": self.encoder, "projector": projector})

    def initial_weights(self, net: Any, key: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        weights = super().initial_weights(net, key, dtype)
        if self.weights == "given" and self.projector is None:
            drawn = initial_weights(net.projector, draws.fold(key, "projector"), dtype=dtype)
            weights |= {f"projector.{name}": stack for name, stack in drawn.items()}
        return weights


def mlp(sizes: tuple[int, ...], *, batch_norm: bool) -> list[nn.Module]:
    """Make linear layers with ReLU, and optionally BatchNorm, between them."""
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        norm = [nn.BatchNorm1d(n_out)] if batch_norm else []
        layers += [uninitialized(nn.Linear, n_in, n_out), *norm, nn.ReLU()]
    return layers[: -2 if batch_norm else -1]
