"""Clusters of uneven size in embeddings."""

import numpy as np
import torch
from sklearn.metrics import adjusted_rand_score

from reclust import draws
from reclust.ensemble.merging import even_or_merged
from reclust.geometry import nearest_neighbors
from reclust.interventions import KMeans, MergedKMeans
from reclust.interventions.reclustering.merging import merged_parts
from reclust.objectives import nearest

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
    assert set(merged_parts(z, nearest_neighbors(z, 10), 5, draws.key(0)).tolist()) == set(range(5))


def test_labels_stay_where_no_group_is_divided_and_for_one_cluster():
    z, y = uneven()
    for labels, k in ((y, 3), (np.zeros_like(y), 1)):
        even = np.stack([labels] * 2)
        assert even_or_merged(even, [z, z], k, [0, 1]) is even


def test_centers_of_merged_parts_where_k_means_divides_a_large_group_and_of_k_means_elsewhere():
    (first, y), (second, _) = uneven(), uneven(1)
    even = torch.from_numpy(np.random.default_rng(0).normal(size=(len(y), 2)) + 9 * (y[::-1, None] == 1)).float()
    z, keys = torch.stack([first, even, second]), draws.key([0, 1, 2])
    together = MergedKMeans(subsample=len(y))(z, 3, keys)
    assert torch.equal(together, torch.stack([MergedKMeans()(own, 3, key) for own, key in zip(z, keys, strict=True)]))
    assert adjusted_rand_score(y, nearest(first, together[0])) > 0.9 > adjusted_rand_score(y, nearest(first, KMeans()(first, 3, keys[0])))
    assert torch.equal(MergedKMeans(subsample=100)(z, 3, keys).isfinite(), torch.ones(3, 3, 2, dtype=torch.bool))


def test_equal_samples_have_finite_centers():
    z = torch.arange(4.0).repeat(100)[:, None]
    for k in (1, 3, 4, 6):
        centers = MergedKMeans()(z, k, draws.key(0))
        assert centers.shape == (k, 1) and centers.isfinite().all()
