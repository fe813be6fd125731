"""Complete settings by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from .data import Dataset, Prepared, prepare
from .data.augment import Affine
from .data.color import ColorViews
from .interventions import BRB, Every, Intervention, KaimingNoise, Recluster, ResetMomentum, SoftReset
from .objectives import DCNObjective, DECObjective, IDECObjective, Objective
from .representations import Autoencoder
from .settings import Schedule, Settings

PAPER_SEEDS = (400, 148, 820, 214, 40, 805, 111, 491, 215, 513)

CLUSTERS: Mapping[str, int] = MappingProxyType(
    {"mnist": 10, "fmnist": 10, "kmnist": 10, "usps": 10, "optdigits": 10, "digits": 10, "gtsrb": 5}
)
"""The paper's autoencoder sets, and the embedded digits treated like them."""

OBJECTIVES: Mapping[str, Objective] = MappingProxyType(
    {"dec": DECObjective(), "idec": IDECObjective(), "dcn": DCNObjective()}
)

_RESET = SoftReset(0.8, noise=KaimingNoise())
_RECLUSTER = Recluster(rows="first")
PAPER_INTERVENTIONS: Mapping[str, Intervention | None] = MappingProxyType(
    {
        "none": None,
        "brb": Every(20, (_RESET, _RECLUSTER, ResetMomentum())),
        "recluster": Every(20, (_RECLUSTER,)),
        "reset": Every(20, (_RESET,)),
    }
)


def paper(
    dataset: str,
    algorithm: Literal["dec", "idec", "dcn"],
    *,
    pretrained: bool = True,
    intervention: Literal["none", "brb", "recluster", "reset"] = "brb",
) -> Settings:
    """What made the published autoencoder tables, the quirks of the authors' program included."""
    _known("dataset", dataset, CLUSTERS)
    _known("algorithm", algorithm, OBJECTIVES)
    _known("intervention", intervention, PAPER_INTERVENTIONS)
    protocol = paper_protocol(CLUSTERS[dataset], OBJECTIVES[algorithm], channels=3 if dataset == "gtsrb" else 1)
    return replace(
        protocol,
        intervention=PAPER_INTERVENTIONS[intervention],
        pretraining=protocol.pretraining if pretrained else None,
    )


def paper_data(dataset: Dataset) -> Prepared:
    """Images as the authors' program prepares them: statistics from before resizing, and GTSRB divided by 255 twice."""
    twice = 255.0 * 255.0 if dataset.name == "gtsrb" else None
    return prepare(dataset, statistics="before_resize", max_value=twice)


def paper_protocol(n_clusters: int, objective: Objective, *, channels: int | None = None) -> Settings:
    """The published settings, with pretraining and BRB, for data of one's own: images of so many channels, or tables."""
    return Settings(
        n_clusters=n_clusters,
        objective=objective,
        representation=Autoencoder(hidden=(1024, 512, 256)),
        intervention=PAPER_INTERVENTIONS["brb"],
        pretraining=Schedule(epochs=250, views=("clean",)),
        clustering=Schedule(epochs=400, views=("clean", "augmented")),
        augment=None if channels is None else ColorViews() if channels == 3 else Affine(),
    )


def everyday(n_clusters: int, objective: Objective, *, channels: int | None = None) -> Settings:
    """What estimators use unless told otherwise: a minute on two cores for ten thousand rows of fifty numbers."""
    return Settings(
        n_clusters=n_clusters,
        objective=objective,
        representation=Autoencoder(hidden=(512, 256, 128)),
        intervention=BRB(interval=10),
        pretraining=Schedule(epochs=30, views=("clean",)),
        clustering=Schedule(epochs=60),
        first_centers=Recluster(subsample=100_000),
    )


PRESETS: Mapping[str, Callable[..., Settings]] = MappingProxyType({"everyday": everyday, "paper": paper_protocol})


def _known(what: str, given: str, known: Mapping[str, object]) -> None:
    if given not in known:
        raise ValueError(f"{what} must be one of {', '.join(known)}, got {given!r}.")
