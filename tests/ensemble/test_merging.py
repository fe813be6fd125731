"""Clusters of uneven size in embeddings."""

import numpy as np
import torch
from sklearn.metrics import adjusted_rand_score

from reclust import draws
from reclust.ensemble.consensus import neighbor_graph
from reclust.ensemble.merging import even_or_merged, merged_parts
from reclust.interventions.reclustering.kmeans import KMeans

SIZES = (300, 40, 40)


def uneven(seed=0):
    rng = np.random.default_rng(seed)
    centers, y = np.array([[0, 0], [9, 0], [9, 5]]), np.repeat(range(3), SIZES)
    return torch.from_numpy(centers[y] + rng.normal(size=(len(y), 2)) * np.where(y == 0, 2, 0.5)[:, None]).float(), y


def test_small_clusters_are_found_where_k_means_divides_the_large_one():
    embeddings, y = [uneven(seed)[0] for seed in range(2)], uneven()[1]
    even = np.stack([KMeans().fit(z, 3, draws.key(0)).labels.numpy() for z in embeddings])
    assert max(adjusted_rand_score(y, labels) for labels in even) < 0.8
    merged = even_or_merged(even, embeddings, 3, [0, 1])
    assert min(adjusted_rand_score(y, labels) for labels in merged) > 0.95


def test_parts_are_merged_until_the_clusters_are_left():
    z, _ = uneven()
    assert set(merged_parts(z, neighbor_graph([z]), 5, draws.key(0))) == set(range(5))


def test_labels_stay_where_no_group_is_divided_and_for_one_cluster():
    z, y = uneven()
    for labels, k in ((y, 3), (np.zeros_like(y), 1)):
        even = np.stack([labels] * 2)
        assert even_or_merged(even, [z, z], k, [0, 1]) is even
