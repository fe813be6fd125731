"""What every objective must do, whatever it minimises. A new one is a line in the table."""

import pytest
import torch
from torch.func import vmap

from reclust import (
    DCNObjective,
    DECObjective,
    IDECObjective,
    Objective,
    SCANObjective,
    SeCuObjective,
)
from reclust.objectives import GCCObjective, HeadObjective
from reclust.utils.values import from_json, to_json

OBJECTIVES = {
    "dec": DECObjective(),
    "idec": IDECObjective(),
    "dcn": DCNObjective(),
    "dcn, growing counts": DCNObjective(rate="counts"),
    "dcn, half sum": DCNObjective(reduction="half_sum"),
    "head": HeadObjective(),
    "scan": SCANObjective(),
    "gcc": GCCObjective(),
    "secu": SeCuObjective(),
}
every = pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)


def case(r=3, n=20, d=5, k=4):
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(r, 2, n, d, generator=generator, dtype=torch.float64)
    return z, torch.randn(r, k, d, generator=generator, dtype=torch.float64)


@every
def test_protocol_and_json(objective):
    assert isinstance(objective, Objective)
    assert from_json(to_json(objective)) == objective


@every
def test_state_has_centres_which_are_a_copy_and_trainable_keys_exist(objective):
    _, centers = case()
    state = objective.init(centers[0])
    assert torch.equal(state["centers"], centers[0]) and state["centers"].data_ptr() != centers[0].data_ptr()
    assert objective.trainable <= state.keys()


@every
def test_mapping_over_replicas_equals_one_by_one(objective):
    z, centers = case()
    states = [objective.init(own) for own in centers]
    stacked = {name: torch.stack([state[name] for state in states]) for name in states[0]}
    losses = vmap(lambda state, z: objective.loss(state, z))(stacked, z)
    torch.testing.assert_close(losses, torch.stack([objective.loss(s, own) for s, own in zip(states, z, strict=True)]))
    labels = vmap(objective.assign)(stacked, z[:, 0])
    assert torch.equal(labels, torch.stack([objective.assign(s, own[0]) for s, own in zip(states, z, strict=True)]))
    updated = vmap(objective.update)(stacked, z[:, 0])
    for i, (state, own) in enumerate(zip(states, z, strict=True)):
        for name, tensor in objective.update(state, own[0]).items():
            torch.testing.assert_close(updated[name][i], tensor)


@every
def test_the_loss_is_a_scalar_with_gradients_to_every_view_and_trainable_state(objective):
    z, centers = case()
    views = z[0].clone().requires_grad_()
    state = {name: tensor.requires_grad_(name in objective.trainable) for name, tensor in objective.init(centers[0]).items()}
    loss = objective.loss(state, views)
    assert loss.shape == ()
    loss.backward()
    assert all(gradient.abs().sum() > 0 for gradient in views.grad)
    assert all(state[name].grad.abs().sum() > 0 for name in objective.trainable)


@every
def test_order_of_samples_does_not_matter(objective):
    z, centers = case()
    state, order = objective.init(centers[0]), torch.randperm(z.shape[2], generator=torch.Generator().manual_seed(1))
    shuffled = z[0][:, order]
    torch.testing.assert_close(objective.loss(state, z[0]), objective.loss(state, shuffled))
    assert torch.equal(objective.assign(state, z[0, 0])[order], objective.assign(state, shuffled[0]))
    for one, other in zip(objective.update(state, z[0, 0]).values(), objective.update(state, shuffled[0]).values(), strict=True):
        torch.testing.assert_close(one, other)


@every
def test_equal_views_cost_what_one_costs(objective):
    z, centers = case()
    state = objective.init(centers[0])
    torch.testing.assert_close(objective.loss(state, z[0, 0].expand(2, *z.shape[2:])), objective.loss(state, z[0, :1]))
