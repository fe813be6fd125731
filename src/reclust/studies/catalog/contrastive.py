"""Studies of the paper's contrastive runs."""

from collections.abc import Iterator
from itertools import product

from ...estimators.presets import CONTRASTIVE_INTERVENTIONS, PAPER_SEEDS
from ...interventions import KaimingNoise, SoftReset
from ..protocols import ContrastiveProtocol
from ..study import Variant
from .registry import MOMENTUM, RECLUSTER, add, every

SETS = ("cifar10", "cifar100_20")
VARIANTS = tuple(Variant(name, one) for name, one in CONTRASTIVE_INTERVENTIONS.items())
ONLY_K_MEANS = Variant("k-means", changes={"clustering": {"epochs": 0}})


def _resnet_blocks() -> Iterator[Variant]:
    for blocks, mlp in product(((), (1,), (4,), (1, 2), (4, 3), (4, 3, 2, 1)), ("yes", "no")):
        keep = {f"block{number}": 0.8 for number in blocks}
        keep |= {"mlp": 0.8, "projector": 0.8} if mlp == "yes" else {}
        reset = (SoftReset(keep, KaimingNoise()),) if keep else ()
        name = "+".join(map(str, blocks)) or "none"
        yield Variant(f"blocks {name}, mlp {mlp}",
                      every(*reset, RECLUSTER, MOMENTUM, interval=10),
                      factors={"blocks": name, "mlp": mlp})


# Convolutions gain nothing from being stacked, so that each run is a group.
add("contrastive",
    "SimCLR pretraining and clustering with the contrastive loss, on the CIFAR sets.",
    (ONLY_K_MEANS, *VARIANTS), datasets=SETS, protocol=ContrastiveProtocol(), largest_group=1,
    evaluate_every=50)
add("self-labeling", "The contrastive runs, followed by self-labeling.", VARIANTS, datasets=SETS,
    protocol=ContrastiveProtocol(labeling_epochs=200), largest_group=1, evaluate_every=50)
add("resnet-blocks",
    "Which blocks of a ResNet to reset, with and without the perceptron behind it.",
    tuple(_resnet_blocks()), datasets=("cifar10",), algorithms=("idec",), seeds=PAPER_SEEDS[:5],
    protocol=ContrastiveProtocol(), largest_group=1, evaluate_every=50,
    small_variants=("blocks none, mlp yes", "blocks 4, mlp yes", "blocks 4+3+2+1, mlp no"))
