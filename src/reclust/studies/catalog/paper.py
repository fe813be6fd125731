"""Studies of the paper: those of autoencoders, then the contrastive ones."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from ...estimators.presets import CONTRASTIVE_INTERVENTIONS, PAPER_INTERVENTIONS, PAPER_SEEDS
from ...interventions import Every, RandomCenters, Recluster, SoftReset
from ...interventions.controls import DisentangledReset, NoisyRecluster
from ...interventions.reclustering.kmeans import KMeans, KMeansPlusPlus
from ...interventions.reclustering.medoids import KMedoids
from ...interventions.reclustering.mixture import GaussianMixture
from ...interventions.reclustering.recluster import Method, NativeRecluster, RecomputeCenters
from ...interventions.soft_reset import CurrentNoise, KaimingNoise, Perturb, ResetMomentum, Shrink
from ..protocols import AutoencoderProtocol, ContrastiveProtocol
from ..study import Variant
from .registry import MOMENTUM, RECLUSTER, RESET, add, every

METHODS: dict[str, Method] = {
    "k-means": KMeans(), "k-means++": KMeansPlusPlus(), "k-medoids": KMedoids(),
    "em": GaussianMixture(), "random": RandomCenters()}
CURVES = ("distances", "reconstruction", "norms")
FOUR_SETS = ("gtsrb", "optdigits", "usps", "mnist")
BOTH_STARTS = (False, True)
CIFAR = ("cifar10", "cifar100_20")

NONE, BRB, ONLY_RECLUSTER, ONLY_RESET = (
    Variant(name, PAPER_INTERVENTIONS[name]) for name in ("none", "brb", "recluster", "reset"))
ALL_FOUR = (NONE, BRB, ONLY_RECLUSTER, ONLY_RESET)
CONTRASTIVE = tuple(Variant(*item) for item in CONTRASTIVE_INTERVENTIONS.items())


def brb_with(method: Method = KMeans(), *, subsample: int | None = 10_000) -> Every:
    return every(RESET, Recluster(method, subsample=subsample, rows="first"), MOMENTUM)


def changed(changes: Mapping[str, Any], *variants: Variant) -> tuple[Variant, ...]:
    return tuple(replace(variant, changes=changes) for variant in variants)


def each_objective(objectives: Mapping[str, Mapping[str, Any]],
                   variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """Return every variant with each of these changes of the objective, by name."""
    return tuple(replace(variant, changes={"objective": changes},
                         name=name if variant.name == "none" else f"{name}, {variant.name}")
                 for name, changes in objectives.items() for variant in variants)


def _grid() -> Iterator[Variant]:
    for lr, interval, keep in product((5e-3, 1e-3, 5e-4, 1e-4), (5, 10, 20, 40),
                                      (0.6, 0.7, 0.8, 0.9)):
        reset = SoftReset(keep, noise=KaimingNoise())
        yield Variant(_grid_name(keep, interval, lr),
                      every(reset, RECLUSTER, MOMENTUM, interval=interval),
                      changes={"clustering": {"lr": lr}},
                      factors={"keep": keep, "interval": interval, "lr": lr})


def _grid_name(keep: float, interval: int, lr: float) -> str:
    return f"keep={keep:g} T={interval} lr={lr:g}"


def _resnet_blocks() -> Iterator[Variant]:
    for blocks, mlp in product(((), (1,), (4,), (1, 2), (4, 3), (4, 3, 2, 1)), ("yes", "no")):
        keep = {f"block{number}": 0.8 for number in blocks}
        keep |= {"mlp": 0.8, "projector": 0.8} if mlp == "yes" else {}
        reset = (SoftReset(keep, KaimingNoise()),) if keep else ()
        name = "+".join(map(str, blocks)) or "none"
        yield Variant(f"blocks {name}, mlp {mlp}", every(*reset, RECLUSTER, MOMENTUM, interval=10),
                      factors={"blocks": name, "mlp": mlp})


SUBSAMPLES = tuple(Variant(f"{rows} rows", brb_with(subsample=rows), factors={"subsample": rows})
                   for rows in (700, 7_000, 17_500, 35_000, 70_000))

add("acc-table", "The main table: 24 configurations on six sets, ten seeds; ACC, NMI and ARI.",
    ALL_FOUR, pretrained=BOTH_STARTS, measures=CURVES)
add("from-scratch", "The part of the main table without pretraining.", ALL_FOUR,
    pretrained=(False,), measures=CURVES)
add("without-augmentation", "From scratch and without augmentation.",
    changed({"augment": None}, *ALL_FOUR), datasets=("optdigits",), pretrained=(False,),
    measures=CURVES)
add("training-curves", "What happens during training, epoch by epoch.", ALL_FOUR,
    datasets=("usps", "optdigits", "gtsrb", "mnist"), algorithms=("idec", "dcn"),
    pretrained=BOTH_STARTS, evaluate_every=1, measures=(*CURVES, "ratios", "purity", "sizes"))
add("embeddings", "Embeddings and centers around each reset, to be drawn.", (NONE, BRB),
    datasets=("usps", "optdigits"), seeds=PAPER_SEEDS[:1], pretraining_seeds=PAPER_SEEDS,
    measures=("embeddings",), evaluate_every=1)
add("voronoi", "Four classes in a plane: the borders between clusters around each reset.",
    changed({"representation": {"embedding": 2}}, NONE, BRB), datasets=("usps",),
    algorithms=("dec",), seeds=PAPER_SEEDS[:1], measures=("embeddings",),
    protocol=AutoencoderProtocol(classes=(0, 1, 4, 9)))
add("sensitivity", "Reset factor (keep, the paper's α) × interval (T) × learning rate, five seeds.",
    tuple(_grid()), datasets=("mnist", "usps", "optdigits"), seeds=PAPER_SEEDS[:5],
    pretraining_seeds=PAPER_SEEDS, evaluate_every=50, small_variants=tuple(
        _grid_name(*corner) for corner in product((0.6, 0.8), (10, 20), (5e-3, 1e-3))))
add("reclustering-methods", "BRB with other ways to recluster.", tuple(
    Variant(name, brb_with(method), factors={"method": name},
            changes={"first_centers": Recluster(method, subsample=None)})
    for name, method in METHODS.items()), datasets=("usps", "optdigits"))
add("native-reclustering",
    "BRB with the algorithm's own assignment instead of k-means; the paper's DEC rows from "
    "scratch, where USPS and OPTDIGITS are swapped, are put right, that of the own assignment by "
    "inference.",
    (NONE, BRB, Variant("native", every(RESET, NativeRecluster(rows="first"), MOMENTUM))),
    datasets=("optdigits", "gtsrb", "usps"), algorithms=("dec", "idec"), pretrained=BOTH_STARTS)
add("embedding-reset", "BRB with and without a reset of the embedding layer.", (
    BRB, Variant("embedding reset", every(
        RESET, SoftReset(0.8, KaimingNoise(), blocks=("embedding",)), RECLUSTER, MOMENTUM)),
), datasets=FOUR_SETS)
add("momentum-reset",
    "BRB without the momentum reset, and with a reset of the optimizer's step count.", (
        BRB, Variant("no momentum reset", every(RESET, RECLUSTER)),
        Variant("step reset", every(RESET, RECLUSTER, ResetMomentum(steps=True))),
    ), datasets=FOUR_SETS, algorithms=("dec", "idec"))
add("soft-reset-components",
    "Parts of the soft reset: perturbation, contraction, Gaussian noise instead.", (
        NONE, BRB,
        Variant("perturb", every(Perturb(0.8, KaimingNoise()), RECLUSTER, MOMENTUM)),
        Variant("gaussian", every(SoftReset(0.8, CurrentNoise()), RECLUSTER, MOMENTUM)),
        Variant("shrink", every(Shrink(0.8), RECLUSTER, MOMENTUM)),
    ), datasets=("usps", "optdigits"), algorithms=("dcn",), evaluate_every=5, measures=CURVES)
add("noise-and-disentangled",
    "Controls: new targets without resetting the network that learns (noise on embeddings; "
    "disentangled, labels of a reset copy), and a reset without new targets (recomputed "
    "centers).", (
        NONE, BRB,
        Variant("noise", every(NoisyRecluster(0.3, rows="first"), MOMENTUM)),
        Variant("disentangled",
                every(DisentangledReset(0.8, KaimingNoise(), rows="first"), MOMENTUM)),
        Variant("recomputed centers", every(RESET, RecomputeCenters(), MOMENTUM)),
    ), datasets=("optdigits", "usps"), pretrained=BOTH_STARTS, evaluate_every=1, measures=CURVES)
add("reset-and-centers",
    "DCN's centers after a reset: as they were, or recomputed from the old labels.",
    (ONLY_RESET, Variant("recomputed centers", every(RESET, RecomputeCenters()))),
    datasets=("optdigits", "usps", "gtsrb"), algorithms=("dcn",), pretrained=BOTH_STARTS)
add("dcn-counts",
    "DCN whose centers follow ever more slowly, by one over their counts as the paper's text has "
    "it.",
    changed({"objective": {"rate": "counts"}}, NONE, BRB, ONLY_RESET),
    datasets=("usps", "optdigits", "gtsrb", "mnist"), algorithms=("dcn",), pretrained=BOTH_STARTS)
add("dcn-readings",
    "DCN with more weight on its cluster loss: a mean over samples, not clusters; half the sum, as "
    "in the paper's text; and all of the text, counts with it.",
    each_objective({"mean": {"reduction": "mean"}, "half sum": {"reduction": "half_sum"},
                    "text": {"reduction": "half_sum", "rate": "counts"}}, (NONE, BRB, ONLY_RESET)),
    datasets=("usps", "optdigits"), algorithms=("dcn",))
add("dcn-in-float32",
    "DCN of the main table with products in float32, where a GPU would take bfloat16.", ALL_FOUR,
    datasets=("usps", "optdigits"), algorithms=("dcn",), precision="float32")
add("dec-in-float32", "DEC from scratch and without augmentation, with products in float32.",
    changed({"augment": None}, NONE, BRB), datasets=("optdigits",), algorithms=("dec",),
    pretrained=(False,), precision="float32")
add("idec-in-float32", "IDEC with products in float32.", (NONE, BRB), datasets=("usps",),
    algorithms=("idec",), pretrained=BOTH_STARTS, precision="float32")
add("idec-weights",
    "IDEC with less weight on its cluster loss, as if it were a mean over clusters, too, as DCN's "
    "is; and with more, the weight of the contrastive runs.",
    each_objective({f"weight {weight:g}": {"weight": weight} for weight in (0.01, 1.0)},
                   (NONE, BRB)),
    datasets=("usps", "optdigits"), algorithms=("idec",))
add("other-seeds",
    "The main table with ten seeds that are not the paper's: its cells that lie apart from the "
    "paper.", ALL_FOUR, datasets=("mnist", "usps", "optdigits", "fmnist", "gtsrb"),
    pretrained=BOTH_STARTS, seeds=tuple(range(1, 11)))
add("subsample-size", "How many samples reclustering looks at.", SUBSAMPLES, datasets=("mnist",))
add("runtime", "Seconds by part, one run at a time.", (NONE, *SUBSAMPLES, *(
    Variant(name, brb_with(method), factors={"method": name})
    for name, method in METHODS.items() if name != "random")), datasets=("mnist",),
    algorithms=("idec",), seeds=PAPER_SEEDS[:1], pretraining_seeds=PAPER_SEEDS, evaluate_every=400,
    largest_group=1)

# Convolutions gain nothing from being stacked, so that each run is a group.
add("contrastive",
    "SimCLR pretraining and clustering with the contrastive loss, on the CIFAR sets.",
    (Variant("k-means", changes={"clustering": {"epochs": 0}}), *CONTRASTIVE), datasets=CIFAR,
    protocol=ContrastiveProtocol(), largest_group=1, evaluate_every=50)
add("self-labeling", "The contrastive runs, followed by self-labeling.", CONTRASTIVE,
    datasets=CIFAR, protocol=ContrastiveProtocol(labeling_epochs=200), largest_group=1,
    evaluate_every=50)
add("resnet-blocks",
    "Which blocks of a ResNet to reset, with and without the perceptron behind it.",
    tuple(_resnet_blocks()), datasets=("cifar10",), algorithms=("idec",), seeds=PAPER_SEEDS[:5],
    protocol=ContrastiveProtocol(), largest_group=1, evaluate_every=50,
    small_variants=("blocks none, mlp yes", "blocks 4, mlp yes", "blocks 4+3+2+1, mlp no"))
