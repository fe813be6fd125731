"""Splitting and merging: wrong borders between clusters are put right where nothing else would move them."""

import pytest
import torch

from reclust import IDEC, Every, ResetMomentum, SoftReset, Target, draws
from reclust.interventions import Exchange, Recluster, SplitMerge
from reclust.interventions.split_merge import _merge_costs

MEANS = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 12.0], [20.0, 20.0]])
"""One of four blobs is cut in two, and two others share a centre."""


def blobs():
    noise = torch.randn(4, 50, 2, generator=torch.Generator().manual_seed(0))
    return (MEANS.unsqueeze(1) + noise).flatten(0, 1)


STUCK = torch.tensor([[5.0, 0.0], [19.5, 20.0], [20.5, 20.0], [0.0, 12.0]])


def target(centers, seeds=(0,)):
    z = blobs()
    return Target(blocks={}, centers=centers, key=torch.stack([draws.key(seed) for seed in seeds]),
                  embedder=lambda rows: z.expand(len(centers), *z.shape), assigner=lambda z: z, n_samples=len(z))


def found(centers):
    return torch.cdist(MEANS, centers).min(-1).values.amax(-1)


def test_merged_classes_are_parted_and_a_cut_one_is_made_whole():
    centers = STUCK.clone().unsqueeze(0)
    SplitMerge(probability=1, candidates=1, subsample=None)(target(centers))
    assert found(centers).item() < 0.5


def test_it_is_drawn_which_replicas_change_and_the_others_keep_their_centres():
    centers = STUCK.repeat(40, 1, 1)
    SplitMerge(probability=0.5, candidates=1, subsample=None)(target(centers, seeds=range(40)))
    changed = (centers != STUCK).flatten(1).any(1)
    assert 10 < changed.sum() < 30
    assert (found(centers[changed]) < 0.5).all()


def test_behind_an_exchange_only_copies_change():
    centers = STUCK.repeat(3, 1, 1)
    given = target(centers, seeds=range(3))
    given.copies = torch.tensor([False, True, False])
    SplitMerge(candidates=1, subsample=None)(given)
    assert (centers != STUCK).flatten(1).any(1).tolist() == [False, True, False]


def test_each_replica_does_what_it_would_do_alone():
    step = SplitMerge(probability=0.5, subsample=None)
    together = STUCK.repeat(6, 1, 1)
    step(target(together, seeds=range(6)))
    for seed in range(6):
        alone = STUCK.clone().unsqueeze(0)
        step(target(alone, seeds=[seed]))
        torch.testing.assert_close(alone[0], together[seed])


def test_candidates_are_all_drawn_sooner_or_later():
    centers = STUCK.repeat(60, 1, 1)
    SplitMerge(probability=1, candidates=3, refine=0, subsample=None)(target(centers, seeds=range(60)))
    assert len(centers.round(decimals=3).unique(dim=0)) > 3


@pytest.mark.parametrize("step", [SplitMerge(probability=0), SplitMerge()], ids=["never", "two clusters"])
def test_nothing_happens(step):
    centers = (STUCK if step.probability == 0 else STUCK[:2]).clone().unsqueeze(0)
    before = centers.clone()
    step(target(centers))
    torch.testing.assert_close(centers, before, rtol=0, atol=0)


def test_empty_clusters_and_equal_samples_do_not_break_it():
    centers = torch.cat([STUCK, torch.tensor([[1e6, 1e6]])]).unsqueeze(0)
    SplitMerge(probability=1, subsample=None)(target(centers))
    assert centers.isfinite().all()
    same = torch.zeros(1, 30, 2)
    centers = torch.zeros(1, 4, 2)
    SplitMerge(probability=1)(Target(blocks={}, centers=centers, key=draws.key(0).reshape(1), embedder=lambda rows: same,
                                     assigner=lambda z: z, n_samples=30))
    assert centers.isfinite().all()


def test_in_a_fit_with_several_replicas():
    steps = (Exchange(), SoftReset(), Recluster(), SplitMerge(), ResetMomentum())
    model = IDEC(4, n_init=3, intervention=Every(2, steps), random_state=0, epochs=5, pretrain_epochs=1).fit(blobs().numpy())
    assert len(set(model.labels_)) > 1


@pytest.mark.parametrize(("given", "said"), [({"probability": 2}, "probability must be"), ({"candidates": 0}, "candidates"),
                                             ({"refine": -1}, "refine")])
def test_what_makes_no_sense_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        SplitMerge(**given)


def test_a_replica_that_failed_stops_no_other():
    centers, z = STUCK.repeat(3, 1, 1), blobs().expand(3, -1, -1).clone()
    centers[1], z[1] = torch.nan, torch.nan
    given = target(centers, seeds=range(3))
    given.embedder = lambda rows: z
    SplitMerge(candidates=1, subsample=None)(given)
    assert (found(centers[[0, 2]]) < 0.5).all()


def groups(*sizes_and_places):
    """Samples (1, n, 2) around places, and the places as centres (1, k, 2)."""
    generator = torch.Generator().manual_seed(1)
    parts = [torch.tensor(place) + scale * torch.randn(size, 2, generator=generator) for size, place, scale in sizes_and_places]
    return torch.cat(parts).unsqueeze(0), torch.tensor([[place for _, place, _ in sizes_and_places]])


def inertia(z, labels, k):
    return sum((z[labels == cluster] - z[labels == cluster].mean(0)).square().sum() for cluster in range(k))


def test_a_merge_costs_what_k_means_would_lose_by_it():
    z, centers = groups((90, (0.0, 0.0), 0.5), (10, (3.0, 0.0), 0.5), (40, (0.0, 9.0), 0.5))
    labels = torch.cdist(z, centers).argmin(-1)
    sizes = torch.tensor([[90.0, 10.0, 40.0]])
    means = torch.stack([z[0][labels[0] == cluster].mean(0) for cluster in range(3)]).unsqueeze(0)
    costs = _merge_costs(means, sizes)[0]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        merged = torch.where(labels[0] == j, i, labels[0])
        lost = inertia(z[0], torch.where(merged > j, merged - 1, merged), 2) - inertia(z[0], labels[0], 3)
        torch.testing.assert_close(costs[i, j], lost, rtol=1e-4, atol=1e-3)
    assert costs.isinf().sum() == 6


def test_the_merged_centre_is_the_mean_of_all_samples_of_both_and_neither_of_them_is_split():
    # The widest cluster is one of the two that cost least to merge: the third one is split.
    z, centers = groups((90, (0.0, 0.0), 2.0), (10, (6.0, 0.0), 0.1), (40, (0.0, 100.0), 0.5))
    labels = torch.cdist(z, centers).argmin(-1)[0]
    given = Target(blocks={}, centers=centers, key=draws.key(0).unsqueeze(0), embedder=lambda rows: z, assigner=lambda z: z, n_samples=140)
    SplitMerge(candidates=1, refine=0, subsample=None)(given)
    torch.testing.assert_close(centers[0, 0], z[0][labels < 2].mean(0))
    torch.testing.assert_close(centers[0, 1:].mean(0), z[0][labels == 2].mean(0))
    assert (centers[0, 1] - centers[0, 2]).norm() > 0.3
