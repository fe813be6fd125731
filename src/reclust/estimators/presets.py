"""Complete settings by name."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np

from ..data import Dataset, Prepared, prepare
from ..data.augmentation.affine import Affine, Noise
from ..data.augmentation.color import ColorViews
from ..data.augmentation.strong import StrongViews
from ..data.lens import Lens
from ..ensemble.selection import NormalizedInformation, Selector, SharedInformation
from ..interventions import BRB, Every, Intervention, KaimingNoise, Recluster, SoftReset
from ..interventions.exchange import Exchange
from ..interventions.reclustering.medoids import KMedoids
from ..interventions.reclustering.merging import MergedKMeans
from ..interventions.reclustering.recluster import RandomCenters
from ..interventions.soft_reset import ResetMomentum
from ..interventions.split_merge import SplitMerge
from ..objectives import DCNObjective, DECObjective, IDECObjective, Objective
from ..representations import Autoencoder, Embeddings, Neighbors, Representation
from ..representations.contrastive import Contrastive, SimCLR
from ..training.self_label import SelfLabel
from ..training.settings import Schedule, Settings, View, check_part
from ..utils import choices
from ..utils.values import change, integer, value


@value
class Recipe:
    """Settings, the number of replicas, the score that selects one, and the lens for images."""

    settings: Settings
    n_init: int = integer(default=1, least=1)
    select: Selector = SharedInformation()
    lens: Lens = Lens()

    def __post_init__(self) -> None:
        check_part("select", self.select, Callable)  # type: ignore[arg-type]
        check_part("lens", self.lens, Lens)


PAPER_SEEDS = (400, 148, 820, 214, 40, 805, 111, 491, 215, 513)

# Data sets that the paper embeds with an autoencoder, and scikit-learn's digits.
CLUSTERS = {"mnist": 10, "fmnist": 10, "kmnist": 10, "usps": 10, "optdigits": 10, "digits": 10,
            "gtsrb": 5}
CONTRASTIVE_CLUSTERS = {"cifar10": 10, "cifar100_20": 20}  # those with a contrastive network
OBJECTIVES: dict[str, Objective] = {
    "dec": DECObjective(), "idec": IDECObjective(), "dcn": DCNObjective()}
CONTRASTIVE_OBJECTIVES: dict[str, Objective] = {
    "dec": DECObjective(), "idec": IDECObjective(1.0), "dcn": DCNObjective(weight=1e-4)}
MEAN_COLORS = {"cifar10": (0.4914, 0.4822, 0.4465), "cifar100_20": (0.5071, 0.4865, 0.4409)}
# Share of the weights that the paper keeps in these blocks of a SimCLR network.
RESNET_RESET = {"mlp": 0.7, "block4": 0.9, "projector": 0.7}


def _interventions(interval: int,
                   keep: float | Mapping[str, float]) -> dict[str, Intervention | None]:
    reset, recluster = SoftReset(keep, noise=KaimingNoise()), Recluster(rows="first")
    return {"none": None, "brb": Every(interval, (reset, recluster, ResetMomentum())),
            "recluster": Every(interval, (recluster,)), "reset": Every(interval, (reset,))}


PAPER_INTERVENTIONS = _interventions(20, 0.8)
CONTRASTIVE_INTERVENTIONS = _interventions(10, RESNET_RESET)
Reading = Literal["text", "program"]
PAPER_SELF_LABELING = SelfLabel(threshold=0.99, evenness=0.0, labels="step", head="default")


def paper(dataset: str, algorithm: Literal["dec", "idec", "dcn"], *, pretrained: bool = True,
          intervention: Literal["none", "brb", "recluster", "reset"] = "brb",
          reading: Reading = "text") -> Settings:
    """Return the settings of the published tables, as the text or the authors' program has them.

    The text is silent about many details, which are the program's in both readings.
    """
    check_known("reading", reading, ("text", "program"))
    check_known("dataset", dataset, (*CLUSTERS, *CONTRASTIVE_CLUSTERS))
    check_known("algorithm", algorithm, OBJECTIVES)
    check_known("intervention", intervention, PAPER_INTERVENTIONS)
    if dataset in CONTRASTIVE_CLUSTERS:
        objective, interventions = CONTRASTIVE_OBJECTIVES[algorithm], CONTRASTIVE_INTERVENTIONS
        encoding: Any = "apart and again" if algorithm == "dec" else "together"
        protocol = contrastive_protocol(CONTRASTIVE_CLUSTERS[dataset], objective,
                                        SimCLR(reduction="sum", encoding=encoding), channels=3)
    else:
        interventions = PAPER_INTERVENTIONS
        protocol = paper_protocol(CLUSTERS[dataset], OBJECTIVES[algorithm],
                                  channels=3 if dataset == "gtsrb" else 1)
    settings = replace(protocol, intervention=interventions[intervention],
                       pretraining=protocol.pretraining if pretrained else None)
    return settings if reading == "text" else as_program(settings)


def as_program(settings: Settings) -> Settings:
    """Change published settings to those of the authors' program where the text differs from it."""
    representation, pretraining = settings.representation, settings.pretraining
    assert settings.clustering is not None
    alone = settings.objective.representation_weight == 0  # the cluster loss, as in DEC
    clustering = replace(settings.clustering, last_batch="kept unless augmented",
                         encoding="together and apart" if alone else "together")
    if pretraining is not None:
        pretraining = replace(pretraining, last_batch="kept unless augmented", warmup_epochs=0)
    if isinstance(representation, SimCLR):
        representation = replace(representation, encoding="together", backbone=replace(
            representation.backbone, weights="uniform"))  # type: ignore[type-var]
        if isinstance(settings.objective, DCNObjective):
            clustering = replace(clustering, warmup_delay=1, centers_view="first")
    elif isinstance(representation, Autoencoder):
        representation = replace(representation, batch_norm=True)
    return replace(settings, representation=representation, pretraining=pretraining,
                   clustering=clustering, intervention=as_in_program(settings.intervention),
                   first_mode="train" if pretraining is None else "eval")


def as_in_program(part: Any) -> Any:
    """Change the parts of an intervention to those of the authors' program, as `as_program`."""
    if isinstance(part, KMedoids):
        return replace(part, seeds="central", max_iter=300)
    if isinstance(part, RandomCenters):
        return replace(part, drawn="with replacement")
    if isinstance(part, Mapping):
        return {block: keep for block, keep in part.items() if block != "projector"}
    if isinstance(part, tuple):
        return tuple(map(as_in_program, part))
    if isinstance(part, (Every, SoftReset, Recluster)):
        return replace(part, **{field.name: as_in_program(getattr(part, field.name))
                                for field in fields(part) if field.init})
    return part


def paper_self_labeling(dataset: str, algorithm: Literal["dec", "idec", "dcn"]) -> SelfLabel:
    check_known("dataset", dataset, CONTRASTIVE_CLUSTERS)
    check_known("algorithm", algorithm, OBJECTIVES)
    strong = StrongViews(fill=MEAN_COLORS[dataset], flip=0.5)
    lr = 2.5e-4 if (dataset, algorithm) == ("cifar100_20", "dcn") else 1e-3
    return change(PAPER_SELF_LABELING, {"training": {"lr": lr, "views": ("clean", strong)}})


def paper_data(dataset: Dataset, *, images: Literal["resized", "native"] = "resized") -> Prepared:
    """Prepare images as the authors' program does, which divides GTSRB by 255 twice.

    In runs without augmentation it keeps the "native" size of images, and the counts of OPTDIGITS.
    """
    twice = 255.0 * 255.0 if dataset.name == "gtsrb" else None
    if images == "resized":
        return prepare(dataset, statistics="before_resize", max_value=twice)
    assert dataset.image_shape is not None
    prepared = prepare(dataset, size=dataset.image_shape[1:], max_value=twice)
    if dataset.name not in ("optdigits", "digits"):
        return prepared
    counts = np.float32(dataset.max_value)
    return Prepared(prepared.samples * counts, np.zeros_like(prepared.mean),
                    np.ones_like(prepared.std))


def paper_protocol(n_clusters: int, objective: Objective, *, channels: int | None = None,
                   representation: Representation | None = None) -> Settings:
    """Return the published settings for images with this number of channels, or for tables."""
    if isinstance(representation, Contrastive):
        return contrastive_protocol(n_clusters, objective, representation, channels=channels)
    return Settings(
        n_clusters, objective, representation or Autoencoder(hidden=(1024, 512, 256)),
        intervention=PAPER_INTERVENTIONS["brb"], pretraining=Schedule(epochs=250, views=("clean",)),
        clustering=Schedule(epochs=400, views=("clean", "augmented")),
        augment=None if channels is None else ColorViews() if channels == 3 else Affine())


def contrastive_protocol(n_clusters: int, objective: Objective, representation: Contrastive, *,
                         channels: int | None = None) -> Settings:
    views: tuple[View, ...] = ("augmented", "augmented")
    is_dcn = isinstance(objective, DCNObjective)
    lr = 1e-3 if objective.representation_weight == 0 else 1e-2 if is_dcn else 3e-3
    # Which blocks of a custom encoder come late is unknown, so all of them are reset a little.
    resnet = isinstance(representation, SimCLR)
    return Settings(
        n_clusters, objective, representation,  # type: ignore[arg-type]
        intervention=CONTRASTIVE_INTERVENTIONS["brb"] if resnet else BRB(interval=10, keep=0.9),
        pretraining=Schedule(epochs=1000, lr=3e-3, batch_size=512, views=views, weight_decay=1e-4,
                             warmup_epochs=20),
        clustering=Schedule(epochs=1000, lr=lr, batch_size=512, views=views, warmup_epochs=20),
        augment=Noise() if channels is None else ColorViews() if channels == 3 else Affine())


def usual_objective(objective: Objective | None,
                    representation: Representation | None) -> Objective | None:
    """Return an algorithm's objective with its published weight for this representation."""
    if not isinstance(representation, Contrastive):
        return objective
    weighed = {OBJECTIVES[name]: CONTRASTIVE_OBJECTIVES[name] for name in OBJECTIVES}
    return weighed.get(objective, objective)  # type: ignore[call-overload]


def everyday(n_clusters: int, objective: Objective, *, channels: int | None = None,
             representation: Representation | None = None, n_samples: int = 10_000) -> Settings:
    """Return the default of the estimators: a minute on two cores for 10,000 rows of 50 features.

    Small data sets get smaller batches, those above 100,000 samples fewer epochs, and those above
    400,000 larger batches as well. `Embeddings` need a fifth of the epochs.
    """
    if isinstance(representation, Contrastive):
        base = contrastive_protocol(n_clusters, objective, representation, channels=channels)
        return change(base, {"pretraining": {"epochs": 200}, "clustering": {"epochs": 100}})
    batch_size = _batch_size(n_samples, steps=16)
    embedded = isinstance(representation, Embeddings)
    interval, pretraining, clustering = (4, 5, 12) if embedded else (10, 30, 60)
    if isinstance(representation, Neighbors):
        interval = 30  # about 500 steps: more frequent resets cost accuracy
    fewer = max(1, n_samples / EVERYDAY_SAMPLES)
    return Settings(
        n_clusters, objective, representation or Autoencoder(hidden=(512, 256, 128)),
        intervention=BRB(interval=math.ceil(interval / fewer), method=MergedKMeans()),
        pretraining=Schedule(epochs=math.ceil(pretraining / fewer), batch_size=batch_size,
                             views=("clean",)),
        clustering=Schedule(epochs=max(2, math.ceil(clustering / fewer)), batch_size=batch_size),
        first_centers=Recluster(MergedKMeans(), subsample=100_000))


# BRB among replicas: poor ones continue as copies of better ones with other clusters.
BEST_INTERVENTION = Every(20, (
    Exchange(), SoftReset(0.8, KaimingNoise()), Recluster(rows="first"), SplitMerge(rows="first"),
    ResetMomentum()))
EVERYDAY_SAMPLES = 100_000  # above which `everyday` trains for fewer epochs
MANY_SAMPLES = 30_000  # from this number on, `best` trains for fewer epochs, which have more steps
# Augmentation of many gray images in `best`, stronger than published; on a CPU, where networks are
# small, of all gray images and stronger still.
MOTION = Affine(degrees=20, translate=0.12, shear=12, scale=(0.8, 1.2))
CPU_MOTION = Affine(degrees=25, translate=0.15, shear=15, scale=(0.7, 1.3))
# Samples between two resets, number of resets and batch size of `best` on a CPU.
CPU_SEEN, CPU_INTERVALS, CPU_BATCH = 36_000, 15, 64


def best(n_clusters: int, objective: Objective, *, channels: int | None = None,
         representation: Representation | None = None, device: str = "cuda",
         n_samples: int = 10_000) -> Recipe:
    """Return the recipe with the best clusters in our experiments: the best of twenty replicas.

    On a CPU ten smaller replicas train, which takes minutes. Contrastive networks train once.
    """
    protocol = paper_protocol(n_clusters, objective, channels=channels,
                              representation=representation)
    if isinstance(representation, Contrastive):
        return Recipe(protocol)
    if device == "cpu":
        return _best_on_cpu(protocol, representation, channels, n_samples)
    many = n_samples >= MANY_SAMPLES
    pretraining, clustering, interval = (60, 100, 10) if many else (250, 400, 20)
    # At least as many steps per epoch as on OPTDIGITS, the smallest data set of the paper.
    batch_size = _batch_size(n_samples, steps=22)
    settings = replace(
        protocol, intervention=replace(BEST_INTERVENTION, interval=interval),
        pretraining=Schedule(epochs=pretraining, batch_size=batch_size, views=("augmented",)),
        clustering=Schedule(epochs=clustering, batch_size=batch_size, views=("clean", "augmented")),
        augment=MOTION if many and channels == 1 else protocol.augment)
    return Recipe(settings, n_init=20, lens=Lens(None if channels is None else 28))


def _best_on_cpu(protocol: Settings, representation: Representation | None, channels: int | None,
                 n_samples: int) -> Recipe:
    # Small and large data sets see the same number of samples between resets, within bounds.
    interval = round(min(50, max(1, CPU_SEEN / n_samples)))
    # Strong views are for training, gentle ones for comparing replicas.
    strong, gentle = (CPU_MOTION, Affine()) if channels == 1 else (protocol.augment, None)
    exchange = Exchange(share=0.4, views=4, augment=gentle)
    steps = (exchange, SoftReset(0.9, KaimingNoise()), *BEST_INTERVENTION.steps[2:])
    settings = replace(
        protocol, representation=representation or Autoencoder(hidden=(256, 128, 64)),
        pretraining=Schedule(epochs=3 * interval, batch_size=CPU_BATCH, views=("augmented",)),
        clustering=Schedule(epochs=CPU_INTERVALS * interval, batch_size=CPU_BATCH),
        intervention=Every(interval, steps), augment=strong,
        first_centers=Recluster(subsample=100_000))
    return Recipe(settings, n_init=10, lens=Lens(None if channels is None else 16),
                  select=SharedInformation(gentle, repeats=8))


def _batch_size(n_samples: int, *, steps: int) -> int:
    """Return a power of two for about `steps` per epoch: 32 to 256, more above 400,000 samples."""
    return 2 ** round(math.log2(max(n_samples / 1600, min(256, max(32, n_samples / steps)))))


def recipe(preset: str, n_clusters: int, objective: Any, *, channels: int | None,
           representation: Representation | None, device: str, n_samples: int) -> Recipe:
    """Return the preset of this name for these data and for "cpu" or "cuda"."""
    check_known("preset", preset, choices.PRESETS)
    check_part("objective", objective, Objective)
    options: dict[str, Any] = {"channels": channels, "representation": representation}
    if preset == "paper":
        result = Recipe(paper_protocol(n_clusters, objective, **options))
    elif preset == "everyday":
        result = Recipe(everyday(n_clusters, objective, **options, n_samples=n_samples),
                        select=NormalizedInformation())
    else:
        result = best(n_clusters, objective, **options, n_samples=n_samples, device=device)
    if not isinstance(representation, Neighbors):
        return result
    pairs = {"views": ("clean", "neighbor")}
    return change(result, {"settings": {
        "pretraining": {**pairs, "decay": "cosine"}, "clustering": pairs}})


def check_known(name: str, given: Any, known: Collection[str]) -> None:
    if not isinstance(given, str) or given not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {given!r}.")
