"""The studies of the paper's autoencoder runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from ...estimators.presets import PAPER_INTERVENTIONS, PAPER_SEEDS
from ...interventions import (
    CurrentNoise,
    DisentangledReset,
    Every,
    GaussianMixture,
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
)
from ..protocols import AutoencoderProtocol
from ..study import Study, Variant
from .registry import study
from .steps import MOMENTUM, RECLUSTER, RESET, every


def paper_variants(*names: str) -> tuple[Variant, ...]:
    return tuple(Variant(name, PAPER_INTERVENTIONS[name]) for name in names)


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
                 about="Reset factor (keep, the paper's α) × interval (T) × learning rate, five seeds.")


def _grid(keep: float, interval: int, lr: float) -> str:
    return f"keep={keep:g} T={interval} lr={lr:g}"


@study
def reclustering_methods() -> Study:
    variants = tuple(
        Variant(name, brb_with(method), changes={"first_centers": Recluster(method, subsample=None)}, factors={"method": name})
        for name, method in METHODS.items())
    return Study("reclustering-methods", variants, datasets=("usps", "optdigits"), about="BRB with other ways to recluster.")


@study
def native_reclustering() -> Study:
    native = Variant("native", every(RESET, NativeRecluster(rows="first"), MOMENTUM))
    return Study("native-reclustering", (*paper_variants("none", "brb"), native), datasets=("optdigits", "gtsrb", "usps"),
                 algorithms=("dec", "idec"), pretrained=(False, True),
                 about="BRB with the algorithm's own assignment instead of k-means; the paper's DEC rows from scratch, where "
                       "USPS and OPTDIGITS are swapped, are put right, that of the own assignment by inference.")


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
    ), datasets=("optdigits", "usps"), pretrained=(False, True), evaluate_every=1, measures=CURVES,
        about="Controls: new targets without resetting the network that learns (noise on embeddings; disentangled, labels of a "
              "reset copy), and a reset without new targets (recomputed centers).")


@study
def reset_and_centers() -> Study:
    """What "reset alone" means for centres that are not learned."""
    recomputed = Variant("recomputed centers", every(RESET, RecomputeCenters()))
    return Study("reset-and-centers", (*paper_variants("reset"), recomputed), datasets=("optdigits", "usps", "gtsrb"),
                 algorithms=("dcn",), pretrained=(False, True),
                 about="DCN's centres after a reset: as they were, or recomputed from the old labels.")


@study
def dcn_counts() -> Study:
    counted = tuple(replace(one, changes={"objective": {"rate": "counts"}}) for one in paper_variants("none", "brb", "reset"))
    return Study("dcn-counts", counted, datasets=("usps", "optdigits", "gtsrb", "mnist"), algorithms=("dcn",),
                 pretrained=(False, True),
                 about="DCN whose centres follow ever more slowly, by one over their counts as the paper's text has it.")


def each_read(readings: Mapping[str, Mapping[str, Any]], variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """Every variant with the objective read in each of these ways, which have a name and what they change."""
    return tuple(replace(one, name=reading if one.name == "none" else f"{reading}, {one.name}", changes={"objective": changes})
                 for reading, changes in readings.items() for one in variants)


@study
def dcn_readings() -> Study:
    readings = {"mean": {"reduction": "mean"}, "half sum": {"reduction": "half_sum"},
                "text": {"reduction": "half_sum", "rate": "counts"}}
    return Study("dcn-readings", each_read(readings, paper_variants("none", "brb", "reset")),
                 datasets=("usps", "optdigits"), algorithms=("dcn",),
                 about="DCN with more weight on its cluster loss: a mean over samples, not clusters; half the sum, as in the "
                       "paper's text; and all of the text, counts with it.")


@study
def dcn_in_float32() -> Study:
    return Study("dcn-in-float32", ALL_FOUR, datasets=("usps", "optdigits"), algorithms=("dcn",), precision="float32",
                 about="DCN of the main table with products in float32, where a GPU would take bfloat16.")


@study
def dec_in_float32() -> Study:
    variants = tuple(replace(variant, changes={"augment": None}) for variant in paper_variants("none", "brb"))
    return Study("dec-in-float32", variants, datasets=("optdigits",), algorithms=("dec",), pretrained=(False,),
                 precision="float32", about="DEC from scratch and without augmentation, with products in float32.")


@study
def idec_in_float32() -> Study:
    return Study("idec-in-float32", paper_variants("none", "brb"), datasets=("usps",), algorithms=("idec",),
                 pretrained=(False, True), precision="float32", about="IDEC with products in float32.")


@study
def idec_weights() -> Study:
    weights = {f"weight {weight:g}": {"weight": weight} for weight in (0.01, 1.0)}
    return Study("idec-weights", each_read(weights, paper_variants("none", "brb")),
                 datasets=("usps", "optdigits"), algorithms=("idec",),
                 about="IDEC with less weight on its cluster loss, as if it were a mean over clusters, too, as DCN's is; and "
                       "with more, the weight of the contrastive runs.")


@study
def other_seeds() -> Study:
    """Whether a cell that lies apart from the paper's lies there by chance."""
    return Study("other-seeds", ALL_FOUR, datasets=("mnist", "usps", "optdigits", "fmnist", "gtsrb"),
                 pretrained=(False, True), seeds=tuple(range(1, 11)),
                 about="The main table with ten seeds that are not the paper's: its cells that lie apart from the paper.")


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
