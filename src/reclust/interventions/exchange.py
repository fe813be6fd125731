"""Replicas that help each other: those that are stuck go on from where better ones are."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from .. import draws, metrics
from ..data.augmentation.affine import Augmentation
from ..utils.values import check_float, check_int, value
from .steps import Step
from .target import Target


@value
class Exchange(Step):
    """The replicas with the poorest scores become copies of those with the best, weights, state and optimizer and all.

    Put it before a soft reset, whose noise differs from replica to replica, and the copies part again:
    `Every(20, (Exchange(), SoftReset(), Recluster(), ResetMomentum()))`.

    The score needs no labels: what the cluster of a perturbed sample tells about that of the sample itself
    (`selection.SharedInformation`), on at most `subsample` samples, of which `views` each are looked at: few samples need
    several, or chance decides. Replicas whose score is not a number neither give nor take, and a single replica stays as
    it is.

    share: of the replicas that are replaced, at most half, at least one.
    margin: replicas less than this below the one that they would copy stay as they are.
    augment: how samples are perturbed, None for the augmentation of training, or a small change where there is none.
    """

    share: float = 0.25
    margin: float = 0.0
    subsample: int = 2_000
    views: int = 1
    augment: Augmentation | None = None
    part: ClassVar[str] = "exchange"

    def __post_init__(self) -> None:
        if not 0 < check_float("share", self.share) <= 0.5:
            raise ValueError(f"share must lie above 0 and be at most 0.5, got {self.share!r}.")
        if check_float("margin", self.margin) < 0:
            raise ValueError(f"margin must be 0 or more, got {self.margin!r}.")
        for name in ("subsample", "views"):
            object.__setattr__(self, name, check_int(name, getattr(self, name), 1))

    def prepare(self, target: Target) -> None:
        if target.peers is None:  # said before another step has changed anything
            raise ValueError("Exchange needs replicas that train side by side, as seeds of `train` and n_init of estimators "
                             "do: leave it out of a loop of your own.")

    def __call__(self, target: Target) -> None:
        assert target.peers is not None
        sources = self.sources(self.scores(target))
        target.peers.become(sources)
        target.copies = torch.tensor([source != i for i, source in enumerate(sources)], device=target.centers.device)
        if target.labels is not None:
            target.labels = target.labels[torch.tensor(sources, device=target.labels.device)]

    def scores(self, target: Target) -> Tensor:
        """(r,), the higher the better, on the CPU."""
        assert target.peers is not None and target.n_samples is not None
        key = draws.fold(target.key[0], "exchange")  # the same samples and views for all
        rows = draws.permutation(key, target.n_samples)[: self.subsample]
        k = target.centers.shape[-2]
        z = target.embed(rows)
        own = target.assigner(z)
        keys = [key, *(draws.fold(key, again) for again in range(1, self.views))]
        views = (target.assigner(target.peers.embed_views(rows, one, self.augment)) for one in keys)
        tables = np.sum([metrics.batched_contingency(own, view, k, k).cpu().numpy() for view in views], axis=0)
        sound = torch.stack([part.flatten(1).isfinite().all(1) for part in (z, target.centers)]).all(0).cpu()
        scores = [metrics.information_of_table(table) for table in tables]
        return torch.tensor(scores, device="cpu").masked_fill(~sound, torch.nan)

    def sources(self, scores: Tensor) -> list[int]:
        """Whom each replica goes on from, itself where nothing changes: the poorest from the best, the next from the next."""
        living = [i for i in scores.argsort(stable=True, descending=True).tolist() if not scores[i].isnan()]
        sources = list(range(len(scores)))
        if len(living) > 1:
            for better, poorer in zip(living[: max(1, int(self.share * len(living)))], reversed(living), strict=False):
                if scores[better] - scores[poorer] > self.margin:
                    sources[poorer] = better
        return sources
