"""K-means against scikit-learn, and its laws: batched equals separate, moved data moves the result, nothing hangs."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans as Oracle, kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning

from reclust import draws
from reclust.interventions.reclustering import kmeans
from reclust.interventions.reclustering.kmeans import KMeans, KMeansPlusPlus


def problem(seed, *, n=120, d=3, k=5, spread=0.4):
    key = draws.key(seed)
    centers = draws.normal(draws.fold(key, "centers"), (k, d), dtype=torch.float64)
    labels = draws.integers(draws.fold(key, "labels"), k, (n,))
    return centers[labels] + spread * draws.normal(draws.fold(key, "noise"), (n, d), dtype=torch.float64)


def fit(z, k, seed=0, **options):
    keys = draws.key(seed) if z.ndim == 2 else draws.fold(draws.key(seed), torch.arange(z.shape[:-2].numel()))
    return KMeans(**options).fit(z, k, keys.reshape(z.shape[:-2]))


def assert_same(one, other):
    for field, expected in zip(one, other, strict=True):
        torch.testing.assert_close(field, expected, rtol=1e-9, atol=1e-12)


def inertia_of(z, centers):
    return torch.cdist(z, centers, compute_mode="donot_use_mm_for_euclid_dist").square().amin(-1).sum(-1)


def test_inertia_is_scikit_learns_at_equal_restarts():
    rng = np.random.default_rng(0)
    ratios = []
    for seed in range(40):
        n, d, k = int(rng.integers(60, 300)), int(rng.integers(1, 9)), int(rng.integers(2, 13))
        z = problem(seed, n=n, d=d, k=k, spread=rng.uniform(0.1, 1))
        ratios.append(float(fit(z, k).inertia) / Oracle(k, n_init=10, random_state=seed).fit(z.numpy()).inertia_)
    assert np.mean(ratios) < 1.01
    assert np.mean(np.array(ratios) > 1.01) <= 0.1


@pytest.mark.parametrize("max_iter", [1, 3, 300])
def test_lloyd_from_given_centres_is_scikit_learns(max_iter):
    for seed in range(10):
        z = problem(seed)
        z = z - z.mean(0)
        start = z[draws.permutation(draws.key(seed), len(z))[:5]].clone()
        if seed % 2:
            start[1:3] += 50  # two clusters start empty
        found = kmeans._lloyd(torch.cat([z, z[:, :1] * 0 + 1], 1)[None], start[None, None], max_iter=max_iter, tol=1e-4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            oracle = Oracle(5, init=start.numpy(), n_init=1, max_iter=max_iter).fit(z.numpy())
        # Which of two empty clusters takes which sample is open: compare as sets.
        order = [np.lexsort(c.T.round(9)) for c in (found[0, 0].numpy(), oracle.cluster_centers_)]
        np.testing.assert_allclose(found[0, 0].numpy()[order[0]], oracle.cluster_centers_[order[1]], atol=1e-10)


def test_seeding_is_as_good_as_scikit_learns():
    z = problem(0, n=400, d=4, k=12)
    keys = draws.fold(draws.key(0), torch.arange(200))
    ours = inertia_of(z, KMeansPlusPlus()(z.expand(200, -1, -1), 12, keys)).mean()
    theirs = np.mean(
        [inertia_of(z, torch.from_numpy(kmeans_plusplus(z.numpy(), 12, random_state=s)[0])) for s in range(100)]
    )
    assert float(ours) == pytest.approx(theirs, rel=0.03)


def test_seeds_are_samples_and_what_the_first_restart_starts_from(monkeypatch):
    z, starts = problem(1), []
    seeds = KMeansPlusPlus()(z, 5, draws.key(3))
    assert torch.cdist(seeds, z).amin(1).max() < 1e-7
    lloyd = kmeans._lloyd
    monkeypatch.setattr(kmeans, "_lloyd", lambda points, c, **options: starts.append(c) or lloyd(points, c, **options))
    KMeans(n_init=3)(z, 5, draws.key(3))
    torch.testing.assert_close(starts[0][0, 0] + z.mean(0), seeds)


def test_result_is_a_fixed_point_with_its_own_labels_and_inertia():
    z = torch.stack([problem(seed) for seed in range(4)])
    centers, labels, inertia = fit(z, 5, tol=0.0)
    assert torch.equal(labels, torch.cdist(z, centers).argmin(-1))
    torch.testing.assert_close(inertia, inertia_of(z, centers))
    members = torch.nn.functional.one_hot(labels, 5).to(z.dtype).mT
    torch.testing.assert_close(centers, members @ z / members.sum(-1, keepdim=True))


def test_batched_equals_separate():
    z = torch.stack([problem(seed, spread=0.1 + 0.2 * seed) for seed in range(6)]).reshape(2, 3, 120, 3)
    keys = draws.fold(draws.key(0), torch.arange(6)).reshape(2, 3)
    together = KMeans().fit(z, 5, keys)
    for i in range(2):
        for j in range(3):
            alone = KMeans().fit(z[i, j], 5, keys[i, j])
            assert_same([field[i, j] for field in together], alone)
    assert_same(KMeans().fit(z.flip(0), 5, keys.flip(0)), [field.flip(0) for field in together])


@pytest.mark.parametrize("limits", [(1, 1, 1), (2000, 500, 1), (2**27, 2**27, 8), (1300, 1300, 3)])
def test_blocks_pieces_and_looks_change_nothing(monkeypatch, limits):
    z = torch.stack([problem(seed) for seed in range(4)])
    z[1] = z[1, :3].repeat(40, 1)  # ties and empty clusters on the way, too
    z[2] = z[2].round()
    whole = fit(z, 5, n_init=4, max_iter=40)
    monkeypatch.setattr(kmeans, "_CPU", kmeans._Limits(*limits))
    parts = fit(z, 5, n_init=4, max_iter=40)
    # Rounding may choose between centres that coincide, and where those of no sample lie: each sample's centre is determined.
    determined = [0, 2, 3]
    own = [found.centers.take_along_dim(found.labels[..., None], 1) for found in (parts, whole)]
    assert_same([parts.centers[determined], parts.inertia, own[0]], [whole.centers[determined], whole.inertia, own[1]])


def test_same_key_same_result_and_other_key_other_seeds():
    z = problem(3)
    assert all(torch.equal(one, other) for one, other in zip(fit(z, 5), fit(z, 5), strict=True))
    assert not torch.equal(KMeansPlusPlus()(z, 5, draws.key(0)), KMeansPlusPlus()(z, 5, draws.key(1)))


def test_moving_the_data_moves_the_centres_and_keeps_the_labels():
    z = problem(4)
    centers, labels, inertia = fit(z, 5)
    turn = torch.linalg.qr(draws.normal(draws.key(9), (3, 3), dtype=z.dtype)).Q
    moved = fit(4 * z @ turn + 100, 5)
    assert_same(moved, [4 * centers @ turn + 100, labels, 16 * inertia])


def test_more_restarts_never_end_worse():
    z = torch.stack([problem(seed, k=12) for seed in range(5)])
    inertia = torch.stack([fit(z, 12, n_init=count).inertia for count in (1, 2, 5, 10)])
    assert (inertia.diff(dim=0) <= 1e-9).all()


@pytest.mark.parametrize("distinct, k", [(1, 1), (1, 4), (2, 5), (5, 5), (4, 30)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fewer_distinct_samples_than_clusters_are_all_covered(distinct, k, dtype):
    z = problem(5).to(dtype)[:distinct].repeat(60, 1) + 7
    centers, labels, inertia = fit(z, k)
    assert centers.isfinite().all() and 0 <= int(labels.min()) and int(labels.max()) < k
    assert float(inertia) == pytest.approx(0, abs=1e-8)
    assert len(labels.unique()) == min(distinct, k)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e200])
def test_a_broken_problem_neither_hangs_nor_disturbs_the_others(bad):
    z = torch.stack([problem(seed) for seed in range(3)])
    broken = z.clone()
    broken[1, 17, 0] = bad
    for one, other in zip(fit(broken, 5), fit(z, 5), strict=True):
        torch.testing.assert_close(one[[0, 2]], other[[0, 2]], rtol=1e-9, atol=1e-12)
    broken[1] = bad
    KMeansPlusPlus()(broken, 5, draws.key([0, 1, 2]))
    assert fit(broken, 5).centers.shape == (3, 5, 3)


@pytest.mark.parametrize("n, d, k", [(1, 1, 1), (2, 1, 1), (2, 1, 2), (7, 3, 7), (50, 1, 4), (50, 2, 1)])
def test_small_shapes(n, d, k):
    z = problem(6, n=n, d=d, k=k)
    centers, labels, inertia = fit(z, k)
    assert centers.shape == (k, d) and labels.shape == (n,) and inertia.shape == ()
    if k == 1:
        torch.testing.assert_close(centers, z.mean(0, keepdim=True))
    if k == n:
        assert float(inertia) == pytest.approx(0, abs=1e-12) and len(labels.unique()) == n


def test_no_problems_give_no_centres():
    assert fit(torch.zeros(0, 10, 2), 3).centers.shape == (0, 3, 2)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_centres_have_the_type_of_the_data_and_no_gradient(dtype):
    z = problem(7, spread=0.05)
    found = fit(z.to(dtype).requires_grad_(), 5)
    assert found.centers.dtype == dtype and not found.centers.requires_grad and not found.inertia.requires_grad
    torch.testing.assert_close(found.centers.double(), fit(z, 5).centers, rtol=2e-2, atol=2e-2)


def test_float32_far_from_the_origin_and_under_autocast_finds_the_same_labels():
    z = problem(8, spread=0.1)
    expected = fit(z, 5).labels
    assert torch.equal(fit((z + 1000).float(), 5).labels, expected)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(fit(z.float(), 5).labels, expected)
