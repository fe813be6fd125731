"""Losses of self-labeling against a slow transcription, and their edge cases."""

import numpy as np
import pytest
import torch
from torch.func import vmap

from reclust import Objective
from reclust.objectives import HeadObjective, SelfLabelObjective, nearest
from reclust.objectives.self_label import logits, membership, surest
from reclust.utils.values import from_json, to_json


def head(seed=0, n=30, d=5, k=4):
    """A state whose head is not zero, and two views."""
    generator = torch.Generator().manual_seed(seed)
    state = {"centers": (k, d), "head_weight": (k, d), "head_bias": (k,)}
    z = torch.randn(2, n, d, generator=generator, dtype=torch.float64)
    return {name: torch.randn(shape, generator=generator, dtype=torch.float64) for name, shape in state.items()}, z


def slow_loss(state, weak, strong, threshold, evenness):
    """By samples and classes, in plain numbers."""
    def probabilities(z):
        raw = [float(torch.dot(z, w)) + float(b) for w, b in zip(state["head_weight"], state["head_bias"], strict=True)]
        powers = np.exp(np.array(raw) - max(raw))
        return powers / powers.sum()

    by_class = {}
    for own, changed in zip(weak, strong, strict=True):
        p = probabilities(own)
        if p.max() > threshold:
            by_class.setdefault(int(p.argmax()), []).append(-np.log(probabilities(changed)[p.argmax()]))
    shares = np.mean([probabilities(changed) for changed in strong], axis=0)
    return np.mean([np.mean(losses) for losses in by_class.values()]) + evenness * (shares * np.log(shares)).sum() if by_class else 0.0


@pytest.mark.parametrize("evenness", [0.0, 2.0])
@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.8, 0.95])
def test_the_loss_is_the_mean_over_classes_of_their_confident_samples(threshold, evenness):
    state, (weak, strong) = head()
    loss = SelfLabelObjective(threshold, evenness).loss(state, torch.stack((weak, strong)))
    assert loss.item() == pytest.approx(slow_loss(state, weak, strong, threshold, evenness), rel=1e-12)


def test_classes_are_even_where_the_loss_of_evenness_is_least_and_one_without_samples_is_no_nan():
    state, _ = head(d=4)
    state["head_weight"], state["head_bias"] = 1e4 * torch.eye(4).double(), torch.zeros(4).double()
    even, uneven = (torch.eye(4).double()[rows].expand(2, -1, -1).clone().requires_grad_() for rows in ([0, 1, 2, 3], [0, 0, 1, 2]))
    objective = SelfLabelObjective(0.5, 1.0)
    assert objective.loss(state, even).item() == pytest.approx(-np.log(4))
    loss = objective.loss(state, uneven)
    loss.backward()
    assert -np.log(4) < loss.item() < 0 and uneven.grad.isfinite().all()


def test_equal_classes_weigh_the_same_however_many_samples_they_have():
    state, _ = head(d=4)
    state["head_weight"], state["head_bias"] = torch.eye(4).double(), torch.zeros(4).double()
    weak, strong = 3 * torch.eye(4).double(), torch.randn(4, 4, generator=torch.Generator().manual_seed(0)).double()
    few, many = (SelfLabelObjective(0.5).loss(state, torch.stack((weak[rows], strong[rows]))) for rows in ([0, 1, 2, 3], [0] * 20 + [1, 2, 3, 3]))
    torch.testing.assert_close(few, many)


def test_an_empty_mask_costs_nothing_and_is_not_nan():
    state, z = head()
    state = {name: (0 * tensor).requires_grad_(name in SelfLabelObjective.trainable) for name, tensor in state.items()}
    z = z.clone().requires_grad_()
    loss = SelfLabelObjective(0.99, 2.0).loss(state, z)
    loss.backward()
    assert loss.item() == 0 and z.grad.abs().sum() == 0 and state["head_weight"].grad.abs().sum() == 0


def test_the_weak_view_decides_and_the_strong_one_learns():
    state, z = head()
    z = z.clone().requires_grad_()
    SelfLabelObjective(0.5).loss(state, z).backward()
    assert z.grad[0].abs().sum() == 0 and z.grad[1].abs().sum() > 0


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_the_head_begins_as_the_nearest_centre_whatever_the_scale_and_is_sure_of_every_class(scale):
    state, (z, _) = head(k=4)
    centers = scale * state["centers"]
    first = HeadObjective().init(centers)
    assert torch.equal(HeadObjective().assign(first, scale * z), nearest(scale * z, centers))
    own = logits(first, centers).softmax(-1)
    assert own.diagonal().min() > 0.99
    alike = HeadObjective().init(torch.ones(3, 2))
    assert all(tensor.isfinite().all() for tensor in alike.values())


def test_the_warm_up_is_softmax_regression_on_the_nearest_centre():
    state, z = head()
    labels = torch.cdist(z[0], state["centers"]).argmin(-1)
    scores = z @ state["head_weight"].T + state["head_bias"]
    expected = -scores.log_softmax(-1)[:, torch.arange(30), labels].mean()
    torch.testing.assert_close(HeadObjective().loss(state, z), expected)


@pytest.mark.parametrize("objective", [HeadObjective(), SelfLabelObjective(0.5, 1.0)], ids=["warm-up", "self-labeling"])
def test_objectives_are_values_and_map_over_replicas(objective):
    assert isinstance(objective, Objective) and from_json(to_json(objective)) == objective
    assert objective.trainable <= objective.init(torch.zeros(4, 5)).keys() == objective.per_cluster
    cases = [head(seed) for seed in range(3)]
    states = {name: torch.stack([state[name] for state, _ in cases]) for name in cases[0][0]}
    mapped = vmap(objective.loss)(states, torch.stack([z for _, z in cases]))
    torch.testing.assert_close(mapped, torch.stack([objective.loss(*case) for case in cases]))


def test_labels_of_the_epoch_stand_in_for_those_of_the_first_view():
    state, z = head()
    once = SelfLabelObjective(0.5, 1.0, labels="epoch")
    assert once.relabels and not SelfLabelObjective(0.5, 1.0).relabels
    torch.testing.assert_close(once.loss(state, z, once.targets(state, z[0])), SelfLabelObjective(0.5, 1.0).loss(state, z))
    other = z.roll(1, 1)
    assert once.loss(state, z, once.targets(state, other[0])).item() == pytest.approx(
        slow_loss(state, other[0], z[1], 0.5, 1.0), rel=1e-12)


def test_a_default_head_is_drawn_like_a_linear_layer():
    state = HeadObjective("default").init(torch.randn(400, 64, generator=torch.Generator().manual_seed(0)))
    assert state["head_weight"].abs().max() <= 1 / 8 and state["head_weight"].std().item() == pytest.approx(1 / 8 / 3**0.5, rel=0.02)
    assert state["head_bias"].abs().max() <= 1 / 8 and state["head_bias"].std() > 0.05


def test_the_surest_of_each_class_are_as_many_as_their_mean_confidence_allows():
    generator = torch.Generator().manual_seed(0)
    confidence, labels = torch.rand(50, generator=generator).double(), torch.randint(4, (50,), generator=generator)
    labels[labels == 3] = 0  # an empty class
    expected = torch.zeros(50, 4, dtype=torch.bool)
    for j in range(4):
        best = sorted((i for i in range(50) if labels[i] == j), key=lambda i: -confidence[i])[:50 // 4]
        kept = int(len(best) * np.mean([float(confidence[i]) for i in best])) if best else 0
        expected[best[:kept], j] = True
    assert torch.equal(surest(confidence, membership(labels, 4)), expected) and expected.any(0).tolist() == [True, True, True, False]
    state, z = head()
    assert SelfLabelObjective(None).loss(state, z).item() > 0
