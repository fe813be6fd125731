"""Complete settings by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

from ..data import Dataset, Prepared, prepare
from ..data.augmentation.affine import Affine, Augmentation, Noise
from ..data.augmentation.color import ColorViews
from ..data.augmentation.strong import StrongViews
from ..data.lens import Lens
from ..interventions import (
    BRB,
    Every,
    Exchange,
    Intervention,
    KaimingNoise,
    Recluster,
    ResetMomentum,
    SoftReset,
    SplitMerge,
)
from ..objectives import DCNObjective, DECObjective, IDECObjective, Objective
from ..representations import Autoencoder, Contrastive, Embeddings, Representation, SimCLR
from ..training.self_label import SelfLabel
from ..training.settings import Schedule, Settings, View
from ..utils import choices
from ..utils.values import check_int, value
from .selection import Selector, SharedInformation


@value
class Recipe:
    """Settings, how many replicas are trained with them, the label-free score by which one is kept, and through which lens the
    network sees images."""

    settings: Settings
    n_init: int = 1
    select: Selector = SharedInformation()
    lens: Lens = Lens()

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_init", check_int("n_init", self.n_init, 1))


PAPER_SEEDS = (400, 148, 820, 214, 40, 805, 111, 491, 215, 513)

CLUSTERS: Mapping[str, int] = MappingProxyType(
    {"mnist": 10, "fmnist": 10, "kmnist": 10, "usps": 10, "optdigits": 10, "digits": 10, "gtsrb": 5}
)
"""The paper's autoencoder sets, and the embedded digits treated like them."""

CONTRASTIVE_CLUSTERS: Mapping[str, int] = MappingProxyType({"cifar10": 10, "cifar100_20": 20})
"""The paper's contrastive sets."""

OBJECTIVES: Mapping[str, Objective] = MappingProxyType(
    dict(zip(choices.ALGORITHMS, (DECObjective(), IDECObjective(), DCNObjective()), strict=True))
)

CONTRASTIVE_OBJECTIVES: Mapping[str, Objective] = MappingProxyType(
    {"dec": DECObjective(), "idec": IDECObjective(1.0), "dcn": DCNObjective(weight=1e-4)}
)

RESNET_RESET: Mapping[str, float] = {"mlp": 0.7, "block4": 0.9, "projector": 0.7}
"""How much of each block of a SimCLR network the paper keeps; blocks not named stay as they are."""


def _sentences(interval: int, keep: float | Mapping[str, float]) -> Mapping[str, Intervention | None]:
    reset, recluster = SoftReset(keep, noise=KaimingNoise()), Recluster(rows="first")
    return MappingProxyType({
        "none": None,
        "brb": Every(interval, (reset, recluster, ResetMomentum())),
        "recluster": Every(interval, (recluster,)),
        "reset": Every(interval, (reset,)),
    })


PAPER_INTERVENTIONS = _sentences(20, 0.8)
CONTRASTIVE_INTERVENTIONS = _sentences(10, RESNET_RESET)


def paper(
    dataset: str,
    algorithm: Literal["dec", "idec", "dcn"],
    *,
    pretrained: bool = True,
    intervention: Literal["none", "brb", "recluster", "reset"] = "brb",
) -> Settings:
    """What made the published tables, the quirks of the authors' program included."""
    _known("dataset", dataset, {**CLUSTERS, **CONTRASTIVE_CLUSTERS})
    _known("algorithm", algorithm, OBJECTIVES)
    _known("intervention", intervention, PAPER_INTERVENTIONS)
    if dataset in CONTRASTIVE_CLUSTERS:
        objective, interventions = CONTRASTIVE_OBJECTIVES[algorithm], CONTRASTIVE_INTERVENTIONS
        representation = SimCLR(reduction="sum", encoding="apart and again" if algorithm == "dec" else "together")
        protocol = contrastive_protocol(CONTRASTIVE_CLUSTERS[dataset], objective, representation, channels=3)
    else:
        interventions = PAPER_INTERVENTIONS
        protocol = paper_protocol(CLUSTERS[dataset], OBJECTIVES[algorithm], channels=3 if dataset == "gtsrb" else 1)
    return replace(
        protocol,
        intervention=interventions[intervention],
        pretraining=protocol.pretraining if pretrained else None,
    )


_MEAN_COLOURS = {"cifar10": (0.4914, 0.4822, 0.4465), "cifar100_20": (0.5071, 0.4865, 0.4409)}


def paper_self_labeling(dataset: str, algorithm: Literal["dec", "idec", "dcn"]) -> SelfLabel:
    """The published third stage: clean images decide, flipped, strongly changed and cut ones learn."""
    _known("dataset", dataset, CONTRASTIVE_CLUSTERS)
    _known("algorithm", algorithm, OBJECTIVES)
    strong = StrongViews(fill=_MEAN_COLOURS[dataset], flip=0.5)
    lr = 2.5e-4 if (dataset, algorithm) == ("cifar100_20", "dcn") else 1e-3
    usual = SelfLabel(evenness=0.0)
    return replace(usual, training=replace(usual.training, lr=lr, views=("clean", strong)))


def paper_data(dataset: Dataset) -> Prepared:
    """Images as the authors' program prepares them: statistics from before resizing, and GTSRB divided by 255 twice."""
    twice = 255.0 * 255.0 if dataset.name == "gtsrb" else None
    return prepare(dataset, statistics="before_resize", max_value=twice)


def paper_protocol(n_clusters: int, objective: Objective, *, channels: int | None = None,
                   representation: Representation | None = None) -> Settings:
    """The published settings, with pretraining and BRB, for data of one's own: images of so many channels, or tables.

    A contrastive representation has settings of its own, as in the paper.
    """
    if isinstance(representation, Contrastive):
        return contrastive_protocol(n_clusters, objective, representation, channels=channels)
    return Settings(
        n_clusters=n_clusters,
        objective=objective,
        representation=representation or Autoencoder(hidden=(1024, 512, 256)),
        intervention=PAPER_INTERVENTIONS["brb"],
        pretraining=Schedule(epochs=250, views=("clean",)),
        clustering=Schedule(epochs=400, views=("clean", "augmented")),
        augment=None if channels is None else ColorViews() if channels == 3 else Affine(),
    )


def contrastive_protocol(n_clusters: int, objective: Objective, representation: Contrastive, *,
                         channels: int | None = None) -> Settings:
    """The published settings of the contrastive runs, with pretraining and BRB, for data of one's own."""
    views: tuple[View, ...] = ("augmented", "augmented")
    lr = 1e-3 if objective.representation_weight == 0 else 1e-2 if isinstance(objective, DCNObjective) else 3e-3
    augment: Augmentation = Noise() if channels is None else ColorViews() if channels == 3 else Affine()
    return Settings(
        n_clusters=n_clusters,
        objective=objective,
        representation=representation,  # type: ignore[arg-type]
        # Of an encoder of one's own nobody knows which blocks come late, so all are reset a little.
        intervention=CONTRASTIVE_INTERVENTIONS["brb"] if isinstance(representation, SimCLR) else BRB(interval=10, keep=0.9),
        pretraining=Schedule(epochs=1000, lr=3e-3, batch_size=512, views=views, weight_decay=1e-4, warmup_epochs=20),
        clustering=Schedule(epochs=1000, lr=lr, batch_size=512, views=views, warmup_epochs=20),
        augment=augment,
    )


def usual_objective(objective: Objective | None, representation: Representation | None) -> Objective | None:
    """An algorithm's own objective with the weight that the paper gives it beside this representation's loss."""
    if not isinstance(representation, Contrastive):
        return objective
    weighed = {OBJECTIVES[name]: CONTRASTIVE_OBJECTIVES[name] for name in OBJECTIVES}
    return weighed.get(objective, objective)  # type: ignore[call-overload]


def everyday(n_clusters: int, objective: Objective, *, channels: int | None = None,
             representation: Representation | None = None, n_samples: int = 10_000) -> Settings:
    """What estimators use unless told otherwise: a minute on two cores for ten thousand rows of fifty numbers.

    Small sets have smaller batches, so that an epoch has some sixteen steps. With a contrastive representation the paper's
    settings over fewer epochs, for which a GPU is needed. Of `Embeddings` there is less to learn: a fifth of the epochs.
    """
    if isinstance(representation, Contrastive):
        base = contrastive_protocol(n_clusters, objective, representation, channels=channels)
        assert base.pretraining is not None and base.clustering is not None
        return replace(base, pretraining=replace(base.pretraining, epochs=200), clustering=replace(base.clustering, epochs=100))
    batch_size = _batch_size(n_samples, steps=16)
    interval, pretraining, clustering = (4, 5, 12) if isinstance(representation, Embeddings) else (10, 30, 60)
    return Settings(
        n_clusters=n_clusters,
        objective=objective,
        representation=representation or Autoencoder(hidden=(512, 256, 128)),
        intervention=BRB(interval=interval),
        pretraining=Schedule(epochs=pretraining, batch_size=batch_size, views=("clean",)),
        clustering=Schedule(epochs=clustering, batch_size=batch_size),
        first_centers=Recluster(subsample=100_000),
    )


BEST_INTERVENTION = Every(20, (
    Exchange(), SoftReset(0.8, KaimingNoise()), Recluster(rows="first"), SplitMerge(rows="first"), ResetMomentum()))
"""The paper's BRB among replicas that go on from better ones, whose copies try another division into clusters."""

MANY_SAMPLES = 30_000
"""From so many on, `best` trains for fewer epochs, each of which has more steps, and resets more often."""

MOTION = Affine(degrees=20, translate=0.12, shear=12, scale=(0.8, 1.2))
"""How `best` moves many grey images: further than published, and larger and smaller."""

CPU_SEEN, CPU_INTERVALS, CPU_BATCH = 36_000, 15, 64
"""Samples that a replica sees from one reset to the next while `best` clusters on a CPU, in how many such intervals, and in
batches of how many: it takes some five hundred steps from one reset to the next."""

CPU_MOTION = Affine(degrees=25, translate=0.15, shear=15, scale=(0.7, 1.3))
"""What few small networks on a CPU need to find classes that are alike under motion."""


def best(n_clusters: int, objective: Objective, *, channels: int | None = None, representation: Representation | None = None,
         device: str = "cuda", n_samples: int = 10_000) -> Recipe:
    """What found the best clusters: the published protocol, pretrained on augmented images, twenty replicas of which poor ones
    go on from better ones at each reset with another division into clusters, one kept.

    On a CPU fewer and smaller ones train for fewer steps, so that it ends within minutes. Contrastive networks gain nothing
    by being stacked and train once.
    """
    protocol = paper_protocol(n_clusters, objective, channels=channels, representation=representation)
    if isinstance(representation, Contrastive):
        return Recipe(protocol)
    if device == "cpu":
        return _best_on_cpu(protocol, representation, channels, n_samples)
    many = n_samples >= MANY_SAMPLES
    pretraining, clustering, interval = (60, 100, 10) if many else (250, 400, BEST_INTERVENTION.interval)
    # As many steps an epoch as of the smallest set of the paper, OPTDIGITS, or more.
    batch_size = _batch_size(n_samples, steps=22)
    return Recipe(n_init=20, lens=Lens(None if channels is None else 28), settings=replace(
        protocol,
        pretraining=Schedule(epochs=pretraining, batch_size=batch_size, views=("augmented",)),
        clustering=Schedule(epochs=clustering, batch_size=batch_size, views=("clean", "augmented")),
        intervention=replace(BEST_INTERVENTION, interval=interval),
        augment=MOTION if many and channels == 1 else protocol.augment,
    ))


def _best_on_cpu(protocol: Settings, representation: Representation | None, channels: int | None, n_samples: int) -> Recipe:
    # As many samples are seen of a thousand as of ten thousand, within bounds; as many after the last reset as between two.
    interval = round(min(50, max(1, CPU_SEEN / n_samples)))
    # Strong views are for training; gentle ones tell more of who is better.
    strong, gentle = (CPU_MOTION, Affine()) if channels == 1 else (protocol.augment, None)
    lens, select = Lens(None if channels is None else 16), SharedInformation(gentle, repeats=8)
    return Recipe(n_init=10, lens=lens, select=select, settings=replace(
        protocol,
        representation=representation or Autoencoder(hidden=(256, 128, 64)),
        pretraining=Schedule(epochs=3 * interval, batch_size=CPU_BATCH, views=("augmented",)),
        clustering=Schedule(epochs=CPU_INTERVALS * interval, batch_size=CPU_BATCH),
        intervention=Every(interval, (
            Exchange(share=0.4, views=4, augment=gentle), SoftReset(0.9, KaimingNoise()), *BEST_INTERVENTION.steps[2:])),
        augment=strong,
        first_centers=Recluster(subsample=100_000),
    ))


def _batch_size(n_samples: int, *, steps: int) -> int:
    """A power of two that gives an epoch about so many steps, from 32 to the published 256."""
    return 2 ** round(math.log2(min(256, max(32, n_samples / steps))))


PRESETS: Mapping[str, Callable[..., Settings | Recipe]] = MappingProxyType(
    dict(zip(choices.PRESETS, (everyday, paper_protocol, best), strict=True))
)


def recipe(preset: str, n_clusters: int, objective: Objective, *, channels: int | None, representation: Representation | None,
           device: str, n_samples: int) -> Recipe:
    """The preset of this name for such data, and for "cpu" or "cuda"."""
    given: dict[str, Any] = {"channels": channels, "representation": representation}
    if preset != "paper":
        given["n_samples"] = n_samples
    if preset == "best":
        given["device"] = device
    made = PRESETS[preset](n_clusters, objective, **given)
    return made if isinstance(made, Recipe) else Recipe(made)


def _known(what: str, given: str, known: Mapping[str, object]) -> None:
    if given not in known:
        raise ValueError(f"{what} must be one of {', '.join(known)}, got {given!r}.")
