"""The named studies: one for every table and figure of the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from ..data.augment import Affine
from ..interventions import (
    CurrentNoise,
    DisentangledReset,
    Every,
    Exchange,
    GaussianMixture,
    Intervention,
    KaimingNoise,
    KMeans,
    KMeansPlusPlus,
    KMedoids,
    Method,
    NativeRecluster,
    NoisyRecluster,
    Perturb,
    RandomCenters,
    Recluster,
    RecomputeCenters,
    ResetMomentum,
    Shrink,
    SoftReset,
    SplitMerge,
    Step,
    WhenSettled,
)
from ..objectives import IDECObjective
from ..presets import BEST_INTERVENTION, CONTRASTIVE_INTERVENTIONS, PAPER_INTERVENTIONS, PAPER_SEEDS
from ..representations import ConvAutoencoder
from .measures import LABEL_FREE
from .protocols import AutoencoderProtocol, ContrastiveProtocol
from .spec import Study, Variant

_CATALOG: dict[str, Callable[[], Study]] = {}
RESET = SoftReset(0.8, KaimingNoise())
RECLUSTER = Recluster(rows="first")
MOMENTUM = ResetMomentum()


def names() -> list[str]:
    return list(_CATALOG)


def named(name: str) -> Study:
    """A study by its name; NAME-mini is its small form."""
    known = name.removesuffix("-mini")
    if known not in _CATALOG:
        raise ValueError(f"There is no study named {name!r}: choose among {', '.join(_CATALOG)}, or give a file NAME.toml.")
    study = _CATALOG[known]()
    return study.mini() if name != known else study


def study(make: Callable[[], Study]) -> Callable[[], Study]:
    """Decorator: a function without arguments becomes an entry of the catalog, under its name with hyphens.

    tools/catalog.py then writes it into the file that `reclust study list` reads.
    """
    _CATALOG[make.__name__.replace("_", "-")] = make
    return make


def paper_variants(*names: str) -> tuple[Variant, ...]:
    return tuple(Variant(name, PAPER_INTERVENTIONS[name]) for name in names)


def every(*steps: Step, interval: int = 20) -> Every:
    return Every(interval, steps)


def brb_with(method: Method = KMeans(), *, subsample: int | None = 10_000) -> Every:
    """The paper's BRB with another way to recluster."""
    return every(RESET, Recluster(method, subsample=subsample, rows="first"), MOMENTUM)


METHODS: dict[str, Method] = {"k-means": KMeans(), "k-means++": KMeansPlusPlus(), "k-medoids": KMedoids(),
                              "em": GaussianMixture(), "random": RandomCenters()}
SUBSAMPLES = (700, 7_000, 17_500, 35_000, 70_000)
CURVES = ("distances", "reconstruction", "norms")
ALL_FOUR = paper_variants("none", "brb", "recluster", "reset")


@study
def acc_table() -> Study:
    return Study("acc-table", ALL_FOUR, pretrained=(False, True), measures=CURVES,
                 about="The main table: 24 configurations on six sets, ten seeds; ACC, NMI and ARI.")


@study
def from_scratch() -> Study:
    return Study("from-scratch", ALL_FOUR, pretrained=(False,), measures=CURVES,
                 about="The part of the main table without pretraining.")


@study
def without_augmentation() -> Study:
    variants = tuple(replace(variant, changes={"augment": None}) for variant in ALL_FOUR)
    return Study("without-augmentation", variants, datasets=("optdigits",), pretrained=(False,), measures=CURVES,
                 about="From scratch and without augmentation.")


@study
def training_curves() -> Study:
    return Study("training-curves", ALL_FOUR, datasets=("usps", "optdigits", "gtsrb", "mnist"), algorithms=("idec", "dcn"),
                 pretrained=(False, True), evaluate_every=1, measures=(*CURVES, "ratios", "purity", "sizes"),
                 about="What happens during training, epoch by epoch.")


@study
def embeddings() -> Study:
    return Study("embeddings", paper_variants("none", "brb"), datasets=("usps", "optdigits"), seeds=PAPER_SEEDS[:1],
                 pretraining_seeds=PAPER_SEEDS, measures=("embeddings",), evaluate_every=1,
                 about="Embeddings and centres around each reset, to be drawn.")


@study
def voronoi() -> Study:
    plane = tuple(replace(one, changes={"representation": {"embedding": 2}}) for one in paper_variants("none", "brb"))
    return Study("voronoi", plane, datasets=("usps",), algorithms=("dec",), seeds=PAPER_SEEDS[:1],
                 protocol=AutoencoderProtocol(classes=(0, 1, 4, 9)), measures=("embeddings",),
                 about="Four classes in a plane: the borders between clusters around each reset.")


@study
def sensitivity() -> Study:
    def variants() -> Iterator[Variant]:
        for lr, interval, keep in product((5e-3, 1e-3, 5e-4, 1e-4), (5, 10, 20, 40), (0.6, 0.7, 0.8, 0.9)):
            brb = every(SoftReset(keep, noise=KaimingNoise()), RECLUSTER, MOMENTUM, interval=interval)
            yield Variant(_grid(keep, interval, lr), brb, changes={"clustering": {"lr": lr}},
                          factors={"keep": keep, "interval": interval, "lr": lr})

    corners = tuple(_grid(*corner) for corner in product((0.6, 0.8), (10, 20), (5e-3, 1e-3)))
    return Study("sensitivity", tuple(variants()), datasets=("mnist", "usps", "optdigits"), seeds=PAPER_SEEDS[:5],
                 pretraining_seeds=PAPER_SEEDS, small_variants=corners, evaluate_every=50,
                 about="Reset factor × interval × learning rate, five seeds.")


def _grid(keep: float, interval: int, lr: float) -> str:
    return f"keep={keep:g} T={interval} lr={lr:g}"


@study
def reclustering_methods() -> Study:
    variants = tuple(
        Variant(name, brb_with(method), changes={"first_centers": Recluster(method, subsample=None)}, factors={"method": name})
        for name, method in METHODS.items())
    return Study("reclustering-methods", variants, datasets=("usps",), about="BRB with other ways to recluster.")


@study
def native_reclustering() -> Study:
    native = Variant("native", every(RESET, NativeRecluster(rows="first"), MOMENTUM))
    return Study("native-reclustering", (*paper_variants("none", "brb"), native), datasets=("optdigits", "gtsrb", "usps"),
                 algorithms=("dec", "idec"), pretrained=(False, True),
                 about="BRB with the algorithm's own assignment instead of k-means.")


@study
def embedding_reset() -> Study:
    deeper = SoftReset(0.8, KaimingNoise(), blocks=("embedding",))
    variants = (*paper_variants("brb"), Variant("embedding reset", every(RESET, deeper, RECLUSTER, MOMENTUM)))
    return Study("embedding-reset", variants, datasets=("gtsrb", "optdigits", "usps", "mnist"),
                 about="BRB with and without a reset of the embedding layer.")


@study
def momentum_reset() -> Study:
    return Study("momentum-reset", (
        *paper_variants("brb"),
        Variant("no momentum reset", every(RESET, RECLUSTER)),
        Variant("step reset", every(RESET, RECLUSTER, ResetMomentum(steps=True))),
    ), datasets=("gtsrb", "optdigits", "usps", "mnist"), algorithms=("dec", "idec"),
        about="BRB without the momentum reset, and with a reset of the optimizer's step count.")


@study
def soft_reset_components() -> Study:
    return Study("soft-reset-components", (
        *paper_variants("none", "brb"),
        Variant("perturb", every(Perturb(0.8, KaimingNoise()), RECLUSTER, MOMENTUM)),
        Variant("gaussian", every(SoftReset(0.8, CurrentNoise()), RECLUSTER, MOMENTUM)),
        Variant("shrink", every(Shrink(0.8), RECLUSTER, MOMENTUM)),
    ), datasets=("usps", "optdigits"), algorithms=("dcn",), evaluate_every=5, measures=CURVES,
        about="Parts of the soft reset: perturbation, contraction, Gaussian noise instead.")


@study
def noise_and_disentangled() -> Study:
    return Study("noise-and-disentangled", (
        *paper_variants("none", "brb"),
        Variant("noise", every(NoisyRecluster(0.3, rows="first"), MOMENTUM)),
        Variant("disentangled", every(DisentangledReset(0.8, KaimingNoise(), rows="first"), MOMENTUM)),
        Variant("recomputed centers", every(RESET, RecomputeCenters(), MOMENTUM)),
    ), datasets=("optdigits",), pretrained=(False, True), evaluate_every=1, measures=CURVES,
        about="Controls: new targets without resetting the network that learns, and a reset without new targets.")


@study
def reset_and_centers() -> Study:
    """What "reset alone" means for centres that are not learned."""
    recomputed = Variant("recomputed centers", every(RESET, RecomputeCenters()))
    return Study("reset-and-centers", (*paper_variants("reset"), recomputed), datasets=("optdigits", "usps", "gtsrb"),
                 algorithms=("dcn",), pretrained=(False, True),
                 about="DCN's centres after a reset: as they were, or recomputed from the old labels.")


@study
def subsample_size() -> Study:
    variants = tuple(Variant(f"{rows} rows", brb_with(subsample=rows), factors={"subsample": rows}) for rows in SUBSAMPLES)
    return Study("subsample-size", variants, datasets=("mnist",), about="How many samples reclustering looks at.")


@study
def runtime() -> Study:
    """One run a group, because time is measured."""
    sizes = tuple(Variant(f"{rows} rows", brb_with(subsample=rows), factors={"subsample": rows}) for rows in SUBSAMPLES)
    methods = tuple(Variant(name, brb_with(method), factors={"method": name})
                    for name, method in METHODS.items() if name != "random")
    return Study("runtime", (*paper_variants("none"), *sizes, *methods), datasets=("mnist",), algorithms=("idec",),
                 seeds=PAPER_SEEDS[:1], pretraining_seeds=PAPER_SEEDS, evaluate_every=400, largest_group=1,
                 about="Seconds by part, one run at a time.")


REPLICAS = 20
"""Of one repetition of `presets.best`, a group of its own: the runs among which one is kept."""


@study
def best() -> Study:
    augmented = {"pretraining": {"views": ("augmented",)}}
    return Study("best", (
        Variant("independent", PAPER_INTERVENTIONS["brb"], changes=augmented),
        Variant("exchange", BEST_INTERVENTION, changes=augmented),
    ), algorithms=("idec",), datasets=("optdigits", "usps", "gtsrb", "kmnist_test", "digits"), seeds=tuple(range(5 * REPLICAS)),
        largest_group=REPLICAS, evaluate_every=20, scores=tuple(LABEL_FREE),
        about='Beyond the paper: preset="best", five times twenty replicas that go on from better ones, or on their own.')


@study
def best_variations() -> Study:
    """One repetition each: a first look at what might lift `presets.best` further."""
    def changed(name: str, *, intervention: Intervention = BEST_INTERVENTION, **changes: Any) -> Variant:
        pretraining = {"views": ("augmented",), **changes.pop("pretraining", {})}
        return Variant(name, intervention, changes={"pretraining": pretraining, **changes})

    first, *others = BEST_INTERVENTION.steps
    strong = Affine(degrees=25, translate=0.15, shear=12, scale=(0.8, 1.2))
    gentle = SoftReset(0.9, KaimingNoise())
    settled = WhenSettled(BEST_INTERVENTION.steps, decide="together")
    return replace(best(), name="best-variations", datasets=("optdigits", "usps", "kmnist_test"),
                   seeds=tuple(range(REPLICAS)), variants=(
        changed("as it is"),
        changed("stronger augmentation", augment=strong),
        changed("longer", pretraining={"epochs": 500}, clustering={"epochs": 800}),
        changed("more often", intervention=replace(BEST_INTERVENTION, interval=10)),
        changed("gentler", intervention=every(first, gentle, RECLUSTER, MOMENTUM)),
        changed("gentler and more often", intervention=every(first, gentle, RECLUSTER, MOMENTUM, interval=10)),
        changed("two resets at once", intervention=every(first, RESET, *others)),
        changed("half are replaced", intervention=every(Exchange(share=0.5), *others)),
        changed("mixture", intervention=every(first, RESET, Recluster(GaussianMixture(), rows="first"), MOMENTUM)),
        changed("embedding of 20", representation={"embedding": 20}),
        changed("a third of the weight", objective=IDECObjective(0.03)),
        changed("three times the weight", objective=IDECObjective(0.3)),
        changed("convolutional", representation=ConvAutoencoder()),
        changed("convolutional and residual", representation=ConvAutoencoder(residuals=1)),
        changed("adaptive interval", intervention=settled),
        changed("adaptive interval and reset", intervention=replace(settled, keep="scaled")),
        changed("split and merge", intervention=every(first, RESET, RECLUSTER, SplitMerge(rows="first"), MOMENTUM)),
    ), about="What might lift the best preset further, one repetition each.")


@study
def best_of_many_samples() -> Study:
    return replace(best(), name="best-of-many-samples", datasets=("mnist", "fmnist"),
                   protocol=AutoencoderProtocol(pretraining_epochs=100, epochs=120),
                   about="The same for large sets, over fewer epochs.")


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
