"""What every step of an intervention must do: in place, by key, alike for one model and for a stack."""

import inspect

import pytest
import torch
from support import blobs, small_settings

from reclust import draws, interventions
from reclust.interventions import (
    CurrentNoise,
    DisentangledReset,
    Every,
    Exchange,
    GaussianMixture,
    KaimingNoise,
    KMeans,
    KMeansPlusPlus,
    KMedoids,
    NativeRecluster,
    NoisyRecluster,
    Perturb,
    RandomCenters,
    Recluster,
    RecomputeCenters,
    ResetMomentum,
    Shrink,
    SoftReset,
    SplitMerge,
    Target,
    WhenSettled,
)
from reclust.training.engine.replicas import Replicas
from reclust.utils.values import from_json, to_json

STEPS = {
    "soft reset": SoftReset(0.7),
    "soft reset, Kaiming": SoftReset(0.7, noise=KaimingNoise()),
    "soft reset of chosen blocks": SoftReset({"layer1": 0.2, "embedding": 0.9}),
    "recluster": Recluster(KMeans(n_init=2)),
    "recluster a random subsample": Recluster(KMeans(n_init=2), subsample=50),
    "recluster the first rows": Recluster(KMeans(n_init=2), subsample=50, rows="first"),
    "recluster by seeding alone": Recluster(KMeansPlusPlus()),
    "soft reset, current": SoftReset(0.7, noise=CurrentNoise()),
    "shrink": Shrink(0.7),
    "perturb": Perturb(0.7),
    "recluster by medoids": Recluster(KMedoids(n_init=2)),
    "recluster by a mixture": Recluster(GaussianMixture(restarts=2)),
    "recluster at random": Recluster(RandomCenters()),
    "recluster by the own assignment": NativeRecluster(),
    "recluster by the own assignment of a subsample": NativeRecluster(subsample=50),
    "recompute centres": RecomputeCenters(),
    "noisy recluster": NoisyRecluster(method=KMeans(n_init=2)),
    "disentangled reset": DisentangledReset(0.5),
    "disentangled reset of a subsample": DisentangledReset({"layer1": 0.1, "embedding": 0.5}, subsample=50),
    "momentum": ResetMomentum(),
    "momentum and steps": ResetMomentum(steps=True),
    "split and merge": SplitMerge(),
}
every = pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
SEEDS = (3, 1, 4)
X = torch.from_numpy(blobs(n=100)[0])


def test_every_step_is_held_to_this():
    kinds = {kind for kind in map(interventions.__getattr__, interventions.__all__) if inspect.isclass(kind) and not inspect.isabstract(kind)
             and not getattr(kind, "_is_protocol", False) and "target" in inspect.signature(kind.__call__).parameters}
    sentences, between_replicas = {interventions.BRB, Every, WhenSettled}, {Exchange}  # which test_exchange.py is about
    assert kinds - {type(step) for step in STEPS.values()} == sentences | between_replicas


class Fixture:
    """Replicas with centres and moments, as a trainer would hand them to an intervention."""

    def __init__(self, seeds):
        settings = small_settings()
        self.replicas = Replicas.create(settings.representation, (12,), 4, seeds=seeds, device=torch.device("cpu"), dtype=torch.float64)
        self.centers = draws.normal(draws.fold(self.replicas.key, "centers"), (4, 4), dtype=torch.float64)
        self.moments = tuple(draws.normal(draws.fold(self.replicas.key, "moment", i), (4, 4), dtype=torch.float64) for i in range(2))
        self.counts = (torch.full((len(seeds),), 7.0),)

    def target(self, which=slice(None)):
        def embed(rows):
            z = torch.stack([self.replicas.module(i, self.replicas.parameters).encoder(X).detach() for i in range(len(self.replicas))[which]])
            return z if rows is None else z.gather(1, rows.unsqueeze(-1).expand(-1, -1, z.shape[-1]))

        return Target(blocks=self.replicas.blocks(which), centers=self.centers[which], key=self.replicas.key[which], embedder=embed,
                      assigner=lambda z: torch.cdist(z, self.centers[which]).argmin(-1), n_samples=len(X),
                      moments=tuple(m[which] for m in self.moments), step_counts=tuple(c[which] for c in self.counts))

    def tensors(self):
        return {**self.replicas.parameters, "centers": self.centers, "count": self.counts[0],
                **{f"moment{i}": moment for i, moment in enumerate(self.moments)}}


def after(step, seeds, which=slice(None)):
    fixture = Fixture(seeds)
    places = {name: tensor.data_ptr() for name, tensor in fixture.tensors().items()}
    assert Every(5, (step,))(10, fixture.target(which))
    assert {name: tensor.data_ptr() for name, tensor in fixture.tensors().items()} == places, "written in place"
    return fixture.tensors()


@every
def test_json(step):
    assert from_json(to_json(Every(5, (step,)))) == Every(5, (step,))


@every
def test_a_stack_changes_as_its_members_would_alone(step):
    together = after(step, SEEDS)
    for i, seed in enumerate(SEEDS):
        alone = after(step, (seed,))
        for name, tensor in alone.items():
            torch.testing.assert_close(together[name][i], tensor[0])


@every
def test_a_slice_of_the_stack_leaves_the_rest_untouched(step):
    untouched, part, whole = Fixture(SEEDS).tensors(), after(step, SEEDS, slice(1, 3)), after(step, SEEDS)
    for name in whole:
        assert torch.equal(part[name][0], untouched[name][0])
        torch.testing.assert_close(part[name][1:], whole[name][1:])


@every
def test_something_changes_and_the_same_key_repeats_it(step):
    untouched, once, twice = Fixture(SEEDS).tensors(), after(step, SEEDS), after(step, SEEDS)
    assert any(not torch.equal(untouched[name], once[name]) for name in once)
    assert all(torch.equal(once[name], twice[name]) for name in once)
