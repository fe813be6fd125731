"""Our Adam, on a stack, is torch's on each replica."""

import pytest
import torch
from torch import nn

from reclust.training.engine.adam import Adam, Leaf

SHAPES = {"a": (4, 5), "b": (3,), "centers": (2, 2)}
R = 3


def start():
    generator = torch.Generator().manual_seed(0)
    return {name: torch.randn(R, *shape, dtype=torch.float64, generator=generator) for name, shape in SHAPES.items()}


def gradients(step):
    generator = torch.Generator().manual_seed(step + 1)
    return {name: (step + 1) * torch.randn(R, *shape, dtype=torch.float64, generator=generator) for name, shape in SHAPES.items()}


def ours(clip_norm, decay=0.0):
    leaves = {name: Leaf(value, decay=decay, clipped=name != "centers") for name, value in start().items()}
    return Adam(leaves, lr=0.01, clip_norm=clip_norm)


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("clip_norm", [None, 3.0, 500.0])
def test_each_replica_moves_as_torchs_adam_would_move_it_alone(clip_norm, decay):
    adam = ours(clip_norm, decay)
    alone = [{name: nn.Parameter(value[i].clone()) for name, value in start().items()} for i in range(R)]
    torchs = [torch.optim.AdamW(one.values(), lr=0.01, weight_decay=decay) for one in alone]
    for step in range(4):
        norms = adam.step({name: gradient.clone() for name, gradient in gradients(step).items()})
        for i, (one, optimizer) in enumerate(zip(alone, torchs, strict=True)):
            for name, parameter in one.items():
                parameter.grad = gradients(step)[name][i]
            norm = nn.utils.clip_grad_norm_([one["a"], one["b"]], clip_norm or 1e9)
            assert norms is None if clip_norm is None else norms[i] == pytest.approx(norm.item())
            optimizer.step()
    for name, leaf in adam.leaves.items():
        torch.testing.assert_close(leaf.value, torch.stack([one[name].detach() for one in alone]))


def test_the_count_of_one_replica_can_start_again():
    adam = ours(None)
    for step in range(3):
        adam.step(gradients(step))
    centers = adam.leaves["centers"]
    for tensor in (centers.first, centers.second, centers.steps):
        tensor[1] = 0
    before = centers.value.clone()
    adam.step(gradients(3))
    # The first step of a fresh Adam is the learning rate in each direction.
    torch.testing.assert_close((before - centers.value)[1].abs(), torch.full((2, 2), 0.01, dtype=torch.float64))
    assert centers.steps.tolist() == [4, 1, 4]


def test_a_working_copy_follows_in_its_own_precision():
    value = start()["a"].float()
    working = value.bfloat16()
    adam = Adam({"a": Leaf(value, working)}, lr=0.01, clip_norm=None)
    adam.step({"a": gradients(0)["a"].bfloat16()})
    assert torch.equal(working, value.bfloat16()) and not torch.equal(value, start()["a"].float())


def test_what_it_remembers_can_be_put_back():
    whole, stopped = ours(3.0), ours(3.0)
    for step in range(4):
        whole.step(gradients(step))
    for step in range(2):
        stopped.step(gradients(step))
    resumed = ours(3.0)
    for name, leaf in resumed.leaves.items():
        leaf.value.copy_(stopped.leaves[name].value)
    resumed.restore_({name: tensor.clone() for name, tensor in stopped.tensors().items()})
    for step in range(2, 4):
        resumed.step(gradients(step))
    assert all(torch.equal(leaf.value, whole.leaves[name].value) for name, leaf in resumed.leaves.items())


