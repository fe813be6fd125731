"""The formulas of the paper, transcribed slowly, sample by sample."""

import math

import pytest
import torch

from reclust import DCNObjective, DECObjective, IDECObjective
from reclust.objectives import soft_assignment, target_distribution


def case(seed=0, n=7, d=3, k=4):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(n, d, generator=generator, dtype=torch.float64),
            torch.randn(n, d, generator=generator, dtype=torch.float64),
            torch.randn(k, d, generator=generator, dtype=torch.float64))


def slow_q(z, centers):
    rows = []
    for point in z.tolist():
        kernel = [1 / (1 + sum((a - b) ** 2 for a, b in zip(point, center, strict=True))) for center in centers.tolist()]
        rows.append([value / sum(kernel) for value in kernel])
    return rows


def slow_p(q):
    sizes = [sum(row[j] for row in q) for j in range(len(q[0]))]
    rows = []
    for row in q:
        weights = [value**2 / size for value, size in zip(row, sizes, strict=True)]
        rows.append([weight / sum(weights) for weight in weights])
    return rows


def slow_cross_entropy(p, q):
    return -sum(a * math.log(b + 1e-8) for pr, qr in zip(p, q, strict=True) for a, b in zip(pr, qr, strict=True)) / len(p)


def nearest(point, centers):
    return min(range(len(centers)), key=lambda j: sum((a - b) ** 2 for a, b in zip(point, centers[j], strict=True)))


def squared(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_soft_assignment_and_target_equal_the_formulas(seed):
    z, _, centers = case(seed)
    q = soft_assignment(z, centers)
    torch.testing.assert_close(q, torch.tensor(slow_q(z, centers), dtype=torch.float64))
    torch.testing.assert_close(target_distribution(q), torch.tensor(slow_p(slow_q(z, centers)), dtype=torch.float64))


def test_dec_loss_without_and_with_augmentation():
    z, augmented, centers = case()
    state = DECObjective().init(centers)
    q, qa = slow_q(z, centers), slow_q(augmented, centers)
    p = slow_p(q)
    assert DECObjective().loss(state, z[None]).item() == pytest.approx(slow_cross_entropy(p, q), rel=1e-12)
    both = (slow_cross_entropy(p, q) + slow_cross_entropy(p, qa)) / 2  # the target comes from the clean view alone
    assert DECObjective().loss(state, torch.stack([z, augmented])).item() == pytest.approx(both, rel=1e-12)


def test_dec_target_carries_no_gradient():
    z, _, centers = case()
    z.requires_grad_()
    loss = DECObjective().loss({"centers": centers}, z[None])
    target = target_distribution(soft_assignment(z, centers))
    by_hand = -(target.detach() * torch.log(soft_assignment(z, centers) + 1e-8)).sum(1).mean()
    torch.testing.assert_close(*torch.autograd.grad(loss, z), *torch.autograd.grad(by_hand, z))


def test_idec_is_dec_with_a_weight():
    assert IDECObjective() == DECObjective(weight=0.1, representation_weight=1.0)


@pytest.mark.parametrize("reduction", ["mean_over_clusters", "mean", "half_sum"])
@pytest.mark.parametrize("views", [1, 2])
def test_dcn_loss(reduction, views):
    z, augmented, centers = case()
    own = [nearest(point, centers.tolist()) for point in z.tolist()]
    sums = [sum(squared(point, centers.tolist()[j]) for point, j in zip(view.tolist(), own, strict=True))
            for view in (z, augmented)[:views]]
    n, k = len(z), len(centers)
    total = sum(sums) / views
    expected = {"mean_over_clusters": total / (n * k), "mean": total / n, "half_sum": total / 2}[reduction]
    objective = DCNObjective(reduction=reduction)
    assert objective.loss(objective.init(centers), torch.stack([z, augmented][:views])).item() == pytest.approx(expected, rel=1e-12)


def test_dcn_growing_counts_equal_the_update_sample_by_sample():
    z, more, centers = case(n=20)
    objective = DCNObjective(rate="counts")
    state = objective.init(centers)
    slow, counts = [list(center) for center in centers.tolist()], [100.0] * len(centers)
    for batch in (z, more):
        own = [nearest(point, slow) for point in batch.tolist()]  # assigned before any centre moves
        for point, j in zip(batch.tolist(), own, strict=True):
            counts[j] += 1
            slow[j] = [c - (c - x) / counts[j] for c, x in zip(slow[j], point, strict=True)]
        state = objective.update(state, batch)
    torch.testing.assert_close(state["centers"], torch.tensor(slow, dtype=torch.float64))
    torch.testing.assert_close(state["count"], torch.tensor(counts, dtype=torch.float64))


def test_dcn_constant_rate_moves_by_one_part_in_101_to_the_batch_mean():
    z, _, centers = case(n=9)
    centers[3] += 100  # so far away that nobody comes
    objective = DCNObjective(rate="constant")
    moved = objective.update(objective.init(centers), z)
    own = [nearest(point, centers.tolist()) for point in z.tolist()]
    for j, center in enumerate(centers):
        members = z[[i for i, label in enumerate(own) if label == j]]
        expected = center if len(members) == 0 else center + (members.mean(0) - center) / 101
        torch.testing.assert_close(moved["centers"][j], expected)
    assert (moved["count"] == 100).all()


@pytest.mark.parametrize("objective", [DECObjective(), IDECObjective(), DCNObjective(), DCNObjective(rate="counts")])
def test_renaming_clusters_renames_labels_and_changes_no_loss(objective):
    z, augmented, centers = case(n=30)
    order = torch.tensor([2, 0, 3, 1])
    state, renamed = objective.init(centers), objective.init(centers[order])
    assert (order[objective.assign(renamed, z)] == objective.assign(state, z)).all()
    torch.testing.assert_close(objective.loss(renamed, torch.stack([z, augmented])), objective.loss(state, torch.stack([z, augmented])))
    torch.testing.assert_close(objective.update(renamed, z)["centers"], objective.update(state, z)["centers"][order])


def test_bad_names_are_refused():
    with pytest.raises(ValueError, match="rate must be one of"):
        DCNObjective(rate="fast")
    with pytest.raises(ValueError, match="reduction must be"):
        DCNObjective(reduction="sum")
