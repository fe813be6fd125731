"""K-medoids and Gaussian mixtures: brute force, scikit-learn, and problems that do not disturb each other."""

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.mixture import GaussianMixture as Oracle
from support import blobs
from torch.overrides import TorchFunctionMode

from reclust import KMeans, draws
from reclust.interventions import GaussianMixture, KMedoids, RandomCenters
from reclust.interventions.reclustering import medoids, mixture


def matched(found, expected):
    """The largest distance after the best match of centres."""
    distance = torch.cdist(torch.as_tensor(found), torch.as_tensor(expected)).numpy()
    return distance[linear_sum_assignment(distance)].max()


def cost(x, centers):
    return torch.cdist(x, centers).amin(1).sum()


@pytest.mark.parametrize("seed", range(5))
def test_medoids_are_the_best_samples_of_all(seed):
    x = torch.from_numpy(blobs(n=24, features=2, k=3, seed=seed)[0])
    found = KMedoids()(x, 3, draws.key(seed))
    best = min((x[list(chosen)] for chosen in itertools.combinations(range(24), 3)), key=lambda c: cost(x, c))
    torch.testing.assert_close(cost(x, found), cost(x, best))
    assert all((x == center).all(1).any() for center in found)


def test_central_seeds_have_the_least_distance_to_all_others():
    x = draws.normal(draws.key(3), (2, 40, 3), dtype=torch.float64)
    found = KMedoids(seeds="central")(x, 4, draws.key([0, 1]))
    for own, one in zip(found, x, strict=True):
        medoids = one[torch.cdist(one, one).sum(1).argsort()[:4]]
        for _ in range(100):
            labels = torch.cdist(one, medoids).argmin(1)
            groups = [one[labels == j] for j in range(4)]
            medoids = torch.stack([group[torch.cdist(group, group).sum(1).argmin()] for group in groups])
        torch.testing.assert_close(own, medoids)


def test_random_centers_may_repeat():
    z = torch.arange(10.0).reshape(5, 2).expand(50, 5, 2)
    for drawn, repeats in (("different", False), ("with replacement", True)):
        found = RandomCenters(drawn)(z, 4, draws.key(range(50)))
        distinct = [len(one.unique(dim=0)) for one in found]
        assert (min(distinct) < 4) == repeats and all((one[:, None] == z[0]).all(-1).any(1).all() for one in found)


def test_no_medoid_can_be_exchanged_within_its_cluster():
    x = draws.normal(draws.key(0), (150, 3), dtype=torch.float64)
    found = KMedoids(n_init=1)(x, 8, draws.key(1))
    labels = torch.cdist(x, found).argmin(1)
    for j in range(8):
        own = torch.cdist(x[labels == j], x[labels == j]).sum(1)
        torch.testing.assert_close(own.min(), torch.cdist(found[j : j + 1], x[labels == j]).sum())


def test_more_restarts_are_never_worse_and_small_pieces_change_nothing(monkeypatch):
    x = draws.normal(draws.key(2), (120, 2), dtype=torch.float64)
    costs = [cost(x, KMedoids(n_init=n)(x, 15, draws.key(1))) for n in (1, 3, 9)]
    assert costs[0] >= costs[1] >= costs[2] and costs[0] > costs[2]
    whole = KMedoids(n_init=2)(x, 5, draws.key(0))
    monkeypatch.setattr(medoids, "_DISTANCES", {"cpu": 50})
    assert torch.equal(whole, KMedoids(n_init=2)(x, 5, draws.key(0)))


class Largest(TorchFunctionMode):
    """Notes how many numbers the largest tensor has that is made meanwhile."""

    numbers = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor):
            self.numbers = max(self.numbers, made.untyped_storage().nbytes() // made.element_size())
        return made


@pytest.mark.parametrize("k", [1, 10])  # all samples in one cluster have the most distances within it
def test_medoids_of_many_samples_hold_few_of_their_distances_at_a_time(k):
    x = draws.normal(draws.key(0), (10_000, 3))
    with Largest() as largest:
        KMedoids(n_init=2, max_iter=2)(x, k, draws.key(1))
    assert largest.numbers <= medoids._DISTANCES["cpu"] < len(x) ** 2 / 90


def test_medoids_far_from_the_origin_are_those_near_it():
    x = torch.from_numpy(blobs(n=400, features=3, k=5, seed=0)[0]).float()
    near, far = KMedoids()(x, 5, draws.key(0)), KMedoids()(x + 1e4, 5, draws.key(0))
    torch.testing.assert_close(cost(x.double(), (far.double() - 1e4)), cost(x.double(), near.double()), rtol=1e-3, atol=0)


def test_medoids_of_fewer_distinct_samples_than_clusters():
    x = torch.arange(3.0).repeat(5)[:, None]
    assert set(KMedoids()(x, 5, draws.key(0))[:, 0].tolist()) == {0, 1, 2}


def skewed(seed, n=400, d=3, k=3):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, n)
    stretch = rng.normal(size=(k, d, d))
    return 5 * rng.normal(size=(k, d))[labels] + np.einsum("nij,nj->ni", stretch[labels], rng.normal(size=(n, d))) + 100


@pytest.mark.parametrize("seed", range(3))
def test_one_run_of_a_mixture_is_scikit_learns(seed):
    x = skewed(seed)
    z, key = torch.from_numpy(x), draws.key(seed)
    labels = KMeans(n_init=1).fit(z, 4, draws.fold(key, "mixture", 0)).labels.numpy()
    groups = [x[labels == j] for j in range(4)]
    precisions = [np.linalg.inv(np.cov(own.T, bias=True) + 1e-5 * np.eye(3)) for own in groups]
    oracle = Oracle(4, reg_covar=1e-5, weights_init=[len(own) / len(x) for own in groups],
                    means_init=[own.mean(0) for own in groups], precisions_init=precisions).fit(x)
    found = GaussianMixture(restarts=1)(z, 4, key)
    np.testing.assert_allclose(found, oracle.means_, atol=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_ten_is_scikit_learns_best_of_ten(seed):
    x = skewed(10 + seed, k=4)
    oracle = Oracle(4, reg_covar=1e-5, n_init=10, random_state=0, tol=1e-9, max_iter=1000).fit(x)
    found = GaussianMixture(tol=1e-9, max_iter=1000)(torch.from_numpy(x), 4, draws.key(0))
    assert matched(found, oracle.means_) < 1e-3


def test_small_pieces_change_nothing(monkeypatch):
    z = torch.from_numpy(skewed(3))
    whole = GaussianMixture(restarts=3)(z, 3, draws.key(0))
    monkeypatch.setattr(mixture, "_NUMBERS", {"cpu": 500})
    torch.testing.assert_close(GaussianMixture(restarts=3)(z, 3, draws.key(0)), whole)


@pytest.mark.parametrize("method", [KMedoids(n_init=2), GaussianMixture(restarts=2)])
def test_a_problem_that_is_not_a_number_disturbs_nobody(method):
    z = torch.stack([torch.from_numpy(skewed(seed)) for seed in range(3)]).float()
    keys = draws.key([0, 1, 2])
    alone = method(z, 3, keys)
    z[1] = torch.nan
    broken = method(z, 3, keys)
    assert torch.equal(broken[[0, 2]], alone[[0, 2]]) and broken.dtype == torch.float32


def test_one_sample_a_cluster_and_constant_features():
    z = torch.cat([torch.eye(4), torch.zeros(4, 2)], 1)
    for method in (KMedoids(), GaussianMixture()):
        assert matched(method(z, 4, draws.key(0)), z) < 1e-5


@pytest.mark.parametrize("make", [
    lambda: KMedoids(0), lambda: KMedoids(max_iter=0), lambda: GaussianMixture(restarts=0),
    lambda: GaussianMixture(regularization=-1.0), lambda: GaussianMixture(tol="small"),
])
def test_bad_numbers_are_refused(make):
    with pytest.raises(ValueError):
        make()


def test_a_mixture_that_breaks_down_keeps_finite_means():
    far = 1e6 + torch.randn(200, 3, generator=torch.Generator().manual_seed(0)).repeat_interleave(2, 0) * 1e-9
    flat = torch.cat([torch.randn(200, 2), torch.zeros(200, 1)], 1)
    for z, regularization in ((far, 1e-5), (flat, 0.0)):
        assert GaussianMixture(restarts=2, regularization=regularization)(z, 3, draws.key(0)).isfinite().all()
