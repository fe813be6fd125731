"""The library's linear layer is torch's, alone and mapped."""

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from reclust.representations.layers import Linear, LinearReLU


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


def test_with_its_relu_values_and_gradients_are_torchs_alone_and_mapped():
    torch.manual_seed(0)
    ours = LinearReLU(5, 3).double()
    theirs = nn.Sequential(nn.Linear(5, 3).double(), nn.ReLU())
    theirs[0].load_state_dict(ours.state_dict())
    x = torch.randn(4, 7, 5, dtype=torch.float64)
    torch.autograd.gradcheck(ours, (x[0].clone().requires_grad_(),))
    stacked = {name: parameter.detach().expand(4, *parameter.shape).clone().requires_grad_() for name, parameter in ours.named_parameters()}
    vmap(lambda p, x: functional_call(ours, p, (x,)).pow(2).sum())(stacked, x).sum().backward()
    for i in range(4):
        theirs.zero_grad()
        torch.testing.assert_close(ours(x[i]), theirs(x[i]))
        theirs(x[i]).pow(2).sum().backward()
        torch.testing.assert_close(stacked["weight"].grad[i], theirs[0].weight.grad)
        torch.testing.assert_close(stacked["bias"].grad[i], theirs[0].bias.grad)


def test_autocast_computes_in_the_precision_it_asks_for():
    torch.manual_seed(0)
    x = torch.randn(7, 5)
    for layer in (Linear(5, 3), LinearReLU(5, 3)):
        exact = layer(x)
        with torch.autocast("cpu", torch.bfloat16):
            y = layer(x)
        y.float().sum().backward()
        assert y.dtype == torch.bfloat16 and layer.weight.grad.dtype == torch.float32
        torch.testing.assert_close(y.float(), exact, rtol=0.02, atol=0.02)
