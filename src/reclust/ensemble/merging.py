"""Clusters of uneven size: parts of embeddings that are merged, where embeddings agree on them."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from .. import draws
from ..geometry import nearest_neighbors
from ..interventions.reclustering.merging import CUT_THROUGH, NEIGHBORS, merged_parts, most_shared
from .consensus import agreement


def even_or_merged(even: np.ndarray, embeddings: Sequence[Tensor], k: int,
                   seeds: Sequence[int]) -> np.ndarray:
    """Return the labels (m, n) of k-means in each embedding (n, d), or those of merged parts.

    Parts are merged if k-means divides a large group, and if the embeddings agree more on them.
    """
    near = [nearest_neighbors(z, NEIGHBORS) for z in embeddings]
    if np.mean([most_shared(torch.from_numpy(labels).to(own.device), own)
                for labels, own in zip(even, near, strict=True)]) < CUT_THROUGH:
        return even
    merged = np.stack([merged_parts(z, own, k, draws.key(seed, device=z.device)).cpu().numpy()
                       for z, own, seed in zip(embeddings, near, seeds, strict=True)])
    return merged if agreement(merged, k) > agreement(even, k) else even
