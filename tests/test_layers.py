"""The library's linear layer is torch's, alone and mapped."""

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from reclust.representations.layers import Linear


def pair():
    torch.manual_seed(0)
    theirs = nn.Linear(5, 3).double()
    ours = Linear(5, 3).double()
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs, torch.randn(7, 5, dtype=torch.float64)


def test_alone_values_and_gradients_are_torchs():
    ours, theirs, x = pair()
    for layer in (ours, theirs):
        layer.seen = x.clone().requires_grad_()
        layer.out = layer(layer.seen)
        layer.out.pow(2).sum().backward()
    torch.testing.assert_close(ours.out, theirs.out)
    torch.testing.assert_close(ours.seen.grad, theirs.seen.grad)
    for name in ("weight", "bias"):
        torch.testing.assert_close(getattr(ours, name).grad, getattr(theirs, name).grad)
    torch.autograd.gradcheck(ours, (x.clone().requires_grad_(),))


def test_mapped_values_and_gradients_are_those_of_each_and_keep_the_layout():
    layers = [pair()[0] for _ in range(4)]
    for i, layer in enumerate(layers):
        nn.init.normal_(layer.weight, std=i + 1.0)
    x = torch.randn(4, 7, 5, dtype=torch.float64)
    parameters, _ = stack_module_state(layers)
    vmap(lambda p, x: functional_call(layers[0], p, (x,)).pow(2).sum())(parameters, x).sum().backward()
    for i, layer in enumerate(layers):
        layer(x[i]).pow(2).sum().backward()
        for name in ("weight", "bias"):
            torch.testing.assert_close(parameters[name].grad[i], getattr(layer, name).grad)
    assert parameters["weight"].grad.is_contiguous()
    shared = vmap(lambda p: functional_call(layers[0], p, (x[0],)))(parameters)
    torch.testing.assert_close(shared, torch.stack([layer(x[0]) for layer in layers]))
