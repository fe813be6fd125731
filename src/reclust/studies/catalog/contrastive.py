"""The studies of the paper's contrastive runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ...estimators.presets import CONTRASTIVE_INTERVENTIONS, PAPER_SEEDS
from ...interventions import KaimingNoise, SoftReset
from ..protocols import ContrastiveProtocol
from ..study import Study, Variant
from .registry import study
from .steps import MOMENTUM, RECLUSTER, every

CONTRASTIVE_SETS = ("cifar10", "cifar100_20")


def contrastive_variants() -> tuple[Variant, ...]:
    return tuple(Variant(name, intervention) for name, intervention in CONTRASTIVE_INTERVENTIONS.items())


@study
def contrastive() -> Study:
    """Convolutions gain nothing by being stacked, so each run is a group."""
    only_k_means = Variant("k-means", changes={"clustering": {"epochs": 0}})
    return Study("contrastive", (only_k_means, *contrastive_variants()), datasets=CONTRASTIVE_SETS,
                 protocol=ContrastiveProtocol(), largest_group=1, evaluate_every=50,
                 about="SimCLR pretraining and clustering with the contrastive loss, on the CIFAR sets.")


@study
def self_labeling() -> Study:
    return Study("self-labeling", contrastive_variants(), datasets=CONTRASTIVE_SETS,
                 protocol=ContrastiveProtocol(labeling_epochs=200), largest_group=1, evaluate_every=50,
                 about="The contrastive runs, followed by self-labeling.")


@study
def resnet_blocks() -> Study:
    def variants() -> Iterator[Variant]:
        for blocks, mlp in product(((), (1,), (4,), (1, 2), (4, 3), (4, 3, 2, 1)), ("yes", "no")):
            keep = {f"block{number}": 0.8 for number in blocks} | ({"mlp": 0.8, "projector": 0.8} if mlp == "yes" else {})
            reset = (SoftReset(keep, KaimingNoise()),) if keep else ()
            name = "+".join(map(str, blocks)) or "none"
            yield Variant(f"blocks {name}, mlp {mlp}", every(*reset, RECLUSTER, MOMENTUM, interval=10),
                          factors={"blocks": name, "mlp": mlp})

    return Study("resnet-blocks", tuple(variants()), datasets=("cifar10",), algorithms=("idec",), seeds=PAPER_SEEDS[:5],
                 protocol=ContrastiveProtocol(), largest_group=1, evaluate_every=50,
                 small_variants=("blocks none, mlp yes", "blocks 4, mlp yes", "blocks 4+3+2+1, mlp no"),
                 about="Which blocks of a ResNet to reset, with and without the perceptron behind it.")
