"""Exchange between replicas: poor ones continue as copies of better ones."""

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from .. import draws, metrics
from ..data.augmentation.affine import Augmentation
from ..utils.values import integer, number, value
from .steps import Step
from .target import Target


@value
class Exchange(Step):
    """Replace the replicas with the lowest scores by copies of those with the highest.

    Place it before a soft reset, whose noise differs between replicas, so that copies diverge:
    ``Every(20, (Exchange(), SoftReset(), Recluster(), ResetMomentum()))``. The score needs no
    labels: it is the mutual information between the clusters of samples and of augmented views of
    them (`selection.SharedInformation`). Replicas that failed are neither copied nor replaced.
    """

    share: float = number(default=0.25, above=0, most=0.5, convert=False)  # at least one replica
    # Keep replicas whose score is less than this below the one they would copy.
    margin: float = number(default=0.0, least=0, convert=False)
    subsample: int = integer(default=2_000, least=1)
    views: int = integer(default=1, least=1)  # of each sample; several make scores more reliable
    augment: Augmentation | None = None  # by default that of training, or a small change
    part: ClassVar[str] = "exchange"
    compares_replicas: ClassVar[bool] = True

    def prepare(self, target: Target) -> None:
        if target.peers is None:
            raise ValueError("Exchange needs replicas that train side by side, as with n_init.")

    def __call__(self, target: Target) -> None:
        assert target.peers is not None
        sources = self.sources(self.scores(target))
        target.peers.become(sources)
        target.copies = torch.tensor([source != i for i, source in enumerate(sources)],
                                     device=target.centers.device)
        if target.labels is not None:
            target.labels = target.labels[torch.tensor(sources, device=target.labels.device)]

    def scores(self, target: Target) -> Tensor:
        """Return scores (r,) on the CPU, higher is better."""
        assert target.peers is not None and target.n_samples is not None
        key = draws.fold(target.key[0], "exchange")  # the same samples and views for all replicas
        rows = draws.permutation(key, target.n_samples)[: self.subsample]
        k = target.centers.shape[-2]
        z = target.embed(rows)
        labels = target.assigner(z)
        keys = [key, *(draws.fold(key, view) for view in range(1, self.views))]
        views = (target.assigner(target.peers.embed_views(rows, view_key, self.augment))
                 for view_key in keys)
        tables = np.sum([metrics.batched_contingency(labels, view, k, k).cpu().numpy()
                         for view in views], axis=0)
        finite = torch.stack([part.flatten(1).isfinite().all(1) for part in (z, target.centers)])
        scores = [metrics.information_of_table(table) for table in tables]
        return torch.tensor(scores, device="cpu").masked_fill(~finite.all(0).cpu(), torch.nan)

    def sources(self, scores: Tensor) -> list[int]:
        """Return the replica that each one continues from: the worst from the best, and so on."""
        ranked = [i for i in scores.argsort(stable=True, descending=True).tolist()
                  if not scores[i].isnan()]
        sources = list(range(len(scores)))
        if len(ranked) > 1:
            best = ranked[: max(1, int(self.share * len(ranked)))]
            for better, worse in zip(best, reversed(ranked), strict=False):
                if scores[better] - scores[worse] > self.margin:
                    sources[worse] = better
        return sources
