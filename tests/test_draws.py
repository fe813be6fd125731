"""Laws of the counter-based draws: the right distributions, no state, and the same numbers alone or stacked."""

import random

import numpy as np
import pytest
import torch
from scipy import stats

from reclust import draws

MANY = 100_000


def p_values(samples, law):
    return [stats.kstest(row.double().numpy(), law).pvalue for row in samples]


def test_uniform_draws_are_uniform():
    samples = draws.uniform(draws.key([0, 1, 2]), (MANY,))
    assert samples.min() >= 0 and samples.max() < 1
    assert min(p_values(samples, "uniform")) > 1e-3


def test_normal_draws_are_normal():
    assert min(p_values(draws.normal(draws.key([0, 1, 2]), (MANY,)), "norm")) > 1e-3


def test_integers_are_equally_likely():
    for high in (2, 7, 1000):
        counts = torch.bincount(draws.integers(draws.key(high), high, (MANY,)), minlength=high)
        assert len(counts) == high
        assert stats.chisquare(counts.numpy()).pvalue > 1e-3


def test_every_bit_is_a_fair_coin():
    bits = draws.bits(draws.key(0), (MANY,))
    ones = torch.stack([(bits >> place) & 1 for place in range(64)]).double().mean(1)
    assert (ones - 0.5).abs().max() < 5 * 0.5 / MANY**0.5


@pytest.mark.parametrize(
    "keys",
    [
        draws.key(list(range(40))),
        draws.fold(draws.key(0), torch.arange(40)),
        draws.fold(draws.key(0), "epoch", torch.arange(40), "sample", 3),
        torch.arange(40),
    ],
    ids=["seeds", "folds", "epochs", "raw counters"],
)
def test_neighbouring_streams_are_independent(keys):
    m = 4000
    streams = draws.uniform(keys, (m,), dtype=torch.float64)
    for lagged in (streams, streams.roll(1, 1)):  # neighbours in key, and in key and counter
        correlation = torch.corrcoef(torch.cat([streams, lagged]))[:40, 40:]
        if lagged is streams:
            correlation.fill_diagonal_(0)
        assert correlation.abs().max() < 5 / m**0.5
    assert min(p_values(streams.T[:5], "uniform")) > 1e-3  # the first draws over keys, too


def test_fold_depends_on_order_name_and_value():
    key = draws.key(0)
    variants = [
        draws.fold(key, *values)
        for values in [(), (1, 2), (2, 1), (1,), (2,), (0,), (0, 0), ("a",), ("b",), ("a", "b"), ("b", "a"), (-1,)]
    ]
    assert len({int(one) for one in variants}) == len(variants)
    assert draws.fold(key, 1, 2) == draws.fold(draws.fold(key, 1), 2)
    assert draws.fold(key, "a", 5) == draws.fold(key, "a", torch.tensor(5))


def test_permutations_are_permutations_and_uniform():
    orders = draws.permutation(draws.key([1, 2, 3]), 1000)
    assert torch.equal(orders.sort(-1).values, torch.arange(1000).expand(3, -1))
    assert not torch.equal(orders[0], orders[1])
    small = draws.permutation(draws.key(list(range(6000))), 3)
    assert stats.chisquare(torch.unique(small, dim=0, return_counts=True)[1].numpy()).pvalue > 1e-3


DRAWS = {
    "bits": lambda key: draws.bits(key, (3, 2)),
    "uniform": lambda key: draws.uniform(key, (5,)),
    "normal": lambda key: draws.normal(key, (4, 2)),
    "integers": lambda key: draws.integers(key, 17, (6,)),
    "permutation": lambda key: draws.permutation(key, 9),
    "scalar": lambda key: draws.uniform(key),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_draws_the_same_alone_stacked_and_mapped(name):
    seeds, draw = [3, 1, 4], DRAWS[name]
    stacked = draw(draws.fold(draws.key(seeds), "phase", 2))
    mapped = torch.func.vmap(lambda key: draw(draws.fold(key, "phase", 2)))(draws.key(seeds))
    assert torch.equal(stacked, mapped)
    for row, seed in zip(stacked, seeds, strict=True):
        assert torch.equal(row, draw(draws.fold(draws.key(seed), "phase", 2)))


def test_longer_draws_begin_with_the_shorter_ones():
    key = draws.key(5)
    assert torch.equal(draws.normal(key, (10,))[:4], draws.normal(key, (4,)))


@pytest.mark.parametrize("draw", [draws.uniform, draws.normal])
def test_float64_draws_are_the_float32_draws(draw):
    key = draws.key([1, 2])
    assert torch.equal(draw(key, (1000,), dtype=torch.float64).float(), draw(key, (1000,)))


def test_global_generators_are_neither_read_nor_moved():
    def everything(seed):
        torch.manual_seed(seed), np.random.seed(seed), random.seed(seed)
        before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
        drawn = [draw(draws.key(1)) for draw in DRAWS.values()]
        assert torch.equal(torch.get_rng_state(), before[0])
        assert (np.random.get_state()[1].tolist(), random.getstate()) == before[1:]
        return drawn

    states = torch.get_rng_state(), np.random.get_state(), random.getstate()
    try:
        assert all(torch.equal(one, other) for one, other in zip(everything(0), everything(1), strict=True))
    finally:
        torch.set_rng_state(states[0]), np.random.set_state(states[1]), random.setstate(states[2])


def test_draws_do_not_change_between_versions():
    key = draws.fold(draws.key(400), "clustering", 7)
    assert int(draws.bits(key)) == 2512540957916737715
    assert draws.uniform(key, (3,)).tolist() == [0.13620507717132568, 0.7165926098823547, 0.33996719121932983]
