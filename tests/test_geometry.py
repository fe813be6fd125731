"""Class distances, distance ratios and purity against scikit-learn and slow transcriptions."""

import sys

import numpy as np
import pytest
import torch
from sklearn.metrics import pairwise_distances, silhouette_samples
from sklearn.neighbors import NearestNeighbors

from reclust import ReclustWarning, draws, geometry


def embeddings(seed, n=60, d=5, k=4):
    key = draws.key(seed)
    labels = draws.integers(draws.fold(key, "labels"), k, (n,)) * 3 - 2
    z = draws.normal(key, (n, d), dtype=torch.float64) + labels[:, None] * torch.linspace(-1, 1, d)
    return z, labels


def slow_class_distances(z, labels):
    distance = pairwise_distances(z, metric="cosine")
    intra, inter = [], []
    for i, label in enumerate(labels):
        alike = [j for j in range(len(z)) if labels[j] == label and j != i]
        intra.append(distance[i, alike].mean() if alike else 0.0)
        inter.append(min(distance[i, labels == other].mean() for other in set(labels.tolist()) if other != label))
    return np.array(intra), np.array(inter)


@pytest.mark.parametrize("seed", range(4))
def test_class_distances_are_the_papers_formulas_and_scikit_learns_silhouette(seed):
    z, labels = embeddings(seed)
    found = geometry.class_distances(z, labels)
    intra, inter = slow_class_distances(z.numpy(), labels.numpy())
    np.testing.assert_allclose(found.intra, intra, atol=1e-12)
    np.testing.assert_allclose(found.inter, inter, atol=1e-12)
    np.testing.assert_allclose(found.silhouette, silhouette_samples(z, labels, metric="cosine"), atol=1e-12)


def test_singleton_classes_have_silhouette_zero_and_zero_vectors_are_far_from_all():
    z, labels = embeddings(5)
    labels[7], z[11] = 99, 0
    found = geometry.class_distances(z, labels)
    assert found.silhouette[7] == 0 and found.intra[7] == 0
    np.testing.assert_allclose(found.silhouette, silhouette_samples(z, labels, metric="cosine"), atol=1e-12)
    assert found.intra[11] == 1 and found.inter[11] == 1


def test_a_single_class_has_no_inter_class_distance():
    z, labels = embeddings(6)
    found = geometry.class_distances(z, torch.zeros_like(labels))
    assert found.intra.isfinite().all() and found.inter.isnan().all() and found.silhouette.isnan().all()


def test_stacked_labelings_are_those_one_by_one():
    generator = torch.Generator().manual_seed(0)
    z, labels = torch.randn(4, 60, 3, generator=generator), torch.randint(5, (4, 60), generator=generator)
    labels[1] = labels[1].clamp(max=2)  # two classes are empty here
    labels[2] = 4
    for stacked, single in zip(geometry.class_distances(z, labels),
                               zip(*map(geometry.class_distances, z, labels), strict=True), strict=True):
        torch.testing.assert_close(stacked, torch.stack(single), equal_nan=True, rtol=1e-12, atol=1e-12)


def test_class_distances_ignore_lengths_and_names():
    z, labels = embeddings(7)
    scaled = geometry.class_distances(z * torch.logspace(-3, 3, len(z), dtype=z.dtype)[:, None], 50 - labels)
    for one, other in zip(geometry.class_distances(z, labels), scaled, strict=True):
        torch.testing.assert_close(one, other)


def test_nearly_parallel_vectors_in_float32_keep_their_distances():
    z = torch.tensor([1.0, 0, 0]) + 1e-3 * draws.normal(draws.key(0), (40, 3))
    labels = torch.arange(40) % 2
    intra, inter = slow_class_distances(z.double().numpy(), labels.numpy())
    np.testing.assert_allclose(geometry.class_distances(z, labels).intra, intra, rtol=1e-6)
    np.testing.assert_allclose(geometry.class_distances(z, labels).inter, inter, rtol=1e-6)


def test_distance_ratio_is_nearest_over_second_nearest():
    z, _ = embeddings(8)
    centers = draws.normal(draws.key(1), (6, 5), dtype=z.dtype)
    nearest = np.sort(pairwise_distances(z, centers), 1)
    np.testing.assert_allclose(geometry.distance_ratio(z, centers), nearest[:, 0] / nearest[:, 1])


def test_distance_ratio_at_its_ends_and_in_batches():
    centers = torch.tensor([[0.0, 0.0], [2.0, 0.0], [9.0, 9.0], [9.0, 9.0]])
    z = torch.tensor([[0.0, 0.0], [1.0, 5.0], [9.0, 9.0]])
    assert geometry.distance_ratio(z, centers).tolist() == [0, 1, 1]
    stacked = geometry.distance_ratio(torch.stack([z, z + 1]), torch.stack([centers, centers + 3]))
    assert torch.equal(stacked[0], geometry.distance_ratio(z, centers))
    assert torch.equal(stacked[1], geometry.distance_ratio(z + 1, centers + 3))


@pytest.mark.parametrize("neighbors", [1, 10])
def test_local_purity_is_scikit_learns_neighbours_share(neighbors):
    z, labels = embeddings(9, n=120)
    near = NearestNeighbors(n_neighbors=neighbors).fit(z).kneighbors(return_distance=False)
    expected = (labels.numpy()[near] == labels.numpy()[:, None]).mean(1)
    np.testing.assert_allclose(geometry.local_purity(z, labels, neighbors=neighbors), expected)


def test_chunks_change_nothing(monkeypatch):
    z, labels = embeddings(10)
    centers = z[:5]

    def everything():
        ratio = geometry.distance_ratio(z, centers)
        return [*geometry.class_distances(z, labels), ratio, geometry.local_purity(z, labels)]

    whole = everything()
    monkeypatch.setattr(geometry, "_CHUNK_CPU", 100)
    for one, other in zip(everything(), whole, strict=True):
        torch.testing.assert_close(one, other)


def test_neighbours_of_samples_that_coincide_or_are_no_numbers_are_samples():
    labels = torch.arange(100) % 2
    purity = geometry.local_purity(torch.zeros(100, 2), torch.zeros_like(labels), neighbors=99)
    assert (purity == 1).all()
    for strange in (torch.nan, 1e30):
        assert geometry.local_purity(strange * torch.arange(200.0).view(100, 2), labels).isfinite().all()


def test_errors_name_what_was_given():
    z, labels = embeddings(11)
    with pytest.raises(ValueError, match=r"Labels \(59,\) do not fit samples \(60, 5\)"):
        geometry.class_distances(z, labels[1:])


@pytest.mark.parametrize("seed", range(3))
def test_squared_silhouettes_are_scikit_learns_and_know_classes_of_one(seed):
    z, labels = embeddings(seed)
    labels[7] = 99
    expected = silhouette_samples(z.numpy(), labels.numpy(), metric="sqeuclidean")
    found = geometry.squared_silhouette(z + 1e4, labels)
    assert found.numpy() == pytest.approx(expected, abs=1e-7) and found[7] == 0
    assert geometry.squared_silhouette(z, torch.zeros_like(labels)).isnan().all()
    assert (geometry.squared_silhouette(torch.zeros_like(z), labels) == 0).all()


def test_one_sample_alone_has_no_silhouette():
    assert geometry.class_distances(torch.ones(1, 2), torch.zeros(1, dtype=torch.int64)).silhouette.isnan().all()


def test_ratios_that_are_no_numbers_are_not_counted():
    z = torch.tensor([[0.0, 0.0], [torch.nan, 0.0]])
    assert geometry.distance_ratio_histogram(z, torch.tensor([[0.0, 0.0], [1.0, 0.0]]), bins=4).tolist() == [1, 0, 0, 0]


def test_ratios_close_to_a_centre_keep_their_digits():
    centers = torch.tensor([[1000.0, 0.0], [1001.0, 0.0]]).repeat(20, 1)[:40] + torch.arange(20.0).repeat_interleave(2)[:, None] * torch.tensor([0.0, 50.0])
    z = torch.tensor([[1000.001, 0.0]]).repeat(40, 1)
    expected = geometry.distance_ratio(z.double(), centers.double())
    torch.testing.assert_close(geometry.distance_ratio(z, centers).double(), expected, rtol=1e-4, atol=0)


def test_extremes_are_those_of_a_sort():
    rng = np.random.default_rng(3)
    z, centers = torch.from_numpy(rng.normal(size=(2, 40, 3))), torch.from_numpy(rng.normal(size=(2, 4, 3)))
    labels = torch.from_numpy(rng.integers(3, size=(2, 40)))  # the last cluster is empty
    labels[0, 5:] = 0
    nearest, farthest = geometry.extremes(z, labels, centers, count=6)
    for r in range(2):
        for cluster in range(4):
            members = np.flatnonzero(labels[r] == cluster)
            order = members[np.argsort(np.linalg.norm(z[r, members] - centers[r, cluster], axis=1))].tolist()
            for found, wanted in ((nearest, order), (farthest, order[::-1])):
                assert found[r, cluster].tolist() == (wanted[:6] + [-1] * 6)[:6]


def test_nearest_neighbors_are_scikit_learns():
    from sklearn.neighbors import NearestNeighbors

    from reclust.geometry import nearest_neighbors

    X = np.random.default_rng(0).normal(size=(50, 3)) + 100
    expected = NearestNeighbors(n_neighbors=4).fit(X).kneighbors(return_distance=False)
    for values in (2**26, 120):  # in one block, and in several
        assert (nearest_neighbors(torch.from_numpy(X), 4, values=values).numpy() == expected).all()


def test_majority_share_counts_the_commonest_label_among_the_nearest():
    z, labels = embeddings(11, n=80)
    near = NearestNeighbors(n_neighbors=12).fit(z).kneighbors(z, return_distance=False)
    expected = [np.unique(own, return_counts=True)[1].max() / 12 for own in labels.numpy()[near]]
    np.testing.assert_allclose(geometry.majority_share(z, labels, samples=12), expected)


@pytest.mark.extras
def test_an_index_finds_nearly_all_neighbors():
    pytest.importorskip("faiss")
    x = draws.normal(draws.key(3), (30_000, 4))
    x[1] = x[0]  # a copy is a neighbor, the sample itself is not
    exact, found = geometry.nearest_neighbors(x, 5), geometry.indexed_neighbors(x, 5)
    assert not (found == torch.arange(len(x))[:, None]).any() and found[0, 0] == 1 and found[1, 0] == 0
    shared = (exact[:, :, None] == found[:, None, :]).any(-1).float().mean()
    assert shared > 0.9


def test_many_samples_need_no_index(monkeypatch):
    monkeypatch.setattr(geometry, "INDEXED_ROWS", 100)
    monkeypatch.setitem(sys.modules, "faiss", None)
    x = draws.normal(draws.key(3), (200, 4))
    with pytest.warns(ReclustWarning, match="neighbors"):
        found = geometry.nearest_neighbors(x, 5)
    near = NearestNeighbors(n_neighbors=5).fit(x).kneighbors(return_distance=False)
    np.testing.assert_array_equal(found, near)
