"""What an epoch visits, what a step moves and what it leaves alone, and what is left when a run ends before its time."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from support import blobs, small_settings

import reclust
from reclust import (
    Autoencoder,
    Checkpoint,
    DCNObjective,
    DECObjective,
    Evaluation,
    Every,
    Execution,
    IDECObjective,
    KMeans,
    Recluster,
    ReclustWarning,
    ResetMomentum,
    Schedule,
    SoftReset,
    Step,
    StopTraining,
    train,
    value,
)
from reclust.data.augmentation.affine import Noise
from reclust.data.inputs import StreamedInputs, as_inputs
from reclust.interventions import Exchange
from reclust.objectives import GradientOnly
from reclust.training.engine.batches import Batches
from reclust.training.engine.replicas import Replicas

X, Y = blobs(n=60)
EXACT = Execution(device="cpu", precision="float64", executor="plain")


def settings(**changes):
    return small_settings(**{"pretraining": None, "intervention": None, **changes})


def test_centres_without_gradients_follow_in_another_order_than_the_network_was_trained_in(monkeypatch):
    orders = {"views": [], "single_views": []}
    for name, keys in orders.items():
        original = getattr(Batches, name)
        monkeypatch.setattr(Batches, name, lambda self, key, *more, original=original, keys=keys: (keys.append(key.tolist()), original(self, key, *more))[1])
    train(X, settings(objective=DCNObjective(), clustering=Schedule(epochs=3, batch_size=20)), seeds=[0], execution=EXACT)
    every = [tuple(key) for keys in orders.values() for key in keys]
    assert len(every) == 6 and len(set(every)) == 6


@value
class Watch(Step):
    """Notes what a momentum reset left."""

    seen: ClassVar[list] = []
    part: ClassVar[str] = "watch"

    def __call__(self, target):
        self.seen.append([moment.abs().sum().item() for moment in target.moments])


def test_both_moments_of_the_centres_are_reset():
    Watch.seen.clear()
    sentence = Every(2, (Watch(), ResetMomentum(), Watch()))
    train(X, settings(objective=DECObjective(), intervention=sentence, clustering=Schedule(epochs=3, batch_size=20)), seeds=[0, 1])
    before, after = Watch.seen
    assert len(before) == 2 and min(before) > 0 and after == [0, 0]


def test_soft_resets_and_reclustering_alone_leave_the_moments_of_the_centres():
    Watch.seen.clear()
    sentence = Every(2, (Watch(), SoftReset(0.8), Recluster(KMeans(n_init=2)), Watch()))
    train(X, settings(objective=DECObjective(), intervention=sentence, clustering=Schedule(epochs=3, batch_size=20)), seeds=[0, 1])
    before, after = Watch.seen
    assert len(before) == 2 and min(before) > 0 and after == before


def test_centres_are_not_clipped_and_do_not_count_in_the_norm_that_is():
    once = Schedule(epochs=1, batch_size=60)
    with pytest.warns(reclust.ReclustWarning, match="Gradients explode"):
        free, clipped = (train(X, settings(objective=DECObjective(), clustering=replace(once, clip_norm=norm)), seeds=[0], execution=EXACT)
                         for norm in (None, 1e-12))
    torch.testing.assert_close(clipped.state["centers"], free.state["centers"], rtol=0, atol=0)
    assert not torch.equal(clipped.parameters["encoder.1.weight"], free.parameters["encoder.1.weight"])


@value
class OfTheFirstView(GradientOnly):
    """A loss of the first view alone."""

    weight: float = 1.0
    representation_weight: float = 0.0
    trainable: ClassVar[frozenset] = frozenset({"centers"})
    per_cluster: ClassVar[frozenset] = frozenset({"centers"})

    def init(self, centers):
        return {"centers": centers.clone()}

    def loss(self, state, z):
        return z[0].square().mean() + state["centers"].square().mean()

    def assign(self, state, z):
        return torch.cdist(z, state["centers"]).argmin(-1)


@pytest.mark.parametrize(("first_view", "moves"), [("decides", False), ("learns", True)])
def test_a_first_view_that_only_decides_moves_no_weight(first_view, moves):
    schedule = Schedule(epochs=2, batch_size=20, views=("clean", "augmented"), first_view=first_view)
    given = settings(objective=OfTheFirstView(), clustering=schedule, augment=Noise(), representation=Autoencoder(hidden=(8,)))
    result = train(X, given, seeds=[0], execution=EXACT)
    begun = Replicas.create(given.representation, (12,), 4, seeds=[0], device=torch.device("cpu"), dtype=torch.float64)
    assert torch.equal(result.parameters["encoder.1.weight"], begun.parameters["encoder.1.weight"].detach()) is not moves


@value
class Poison(Step):
    """The weights of the second replica stop being numbers; afterwards, which replicas' are none."""

    sick: ClassVar[list] = []
    part: ClassVar[str] = "poison"
    look: bool = False

    def __call__(self, target):
        weights = target.blocks["layer1"][0].parameters["weight"]
        if not self.look:
            weights[1] = torch.nan
        self.sick[:] = weights.isnan().flatten(1).any(1).tolist()


def test_a_replica_that_failed_is_neither_copied_nor_replaced():
    sentence = Every(2, (Poison(), Exchange(share=0.5), Poison(look=True)))
    with pytest.warns(reclust.ReclustWarning, match="it is dropped"):
        result = train(X, settings(intervention=sentence, clustering=Schedule(epochs=3, batch_size=20)), seeds=[0, 1, 2, 3])
    assert Poison.sick == [False, True, False, False] and list(result.failed) == [1]


def stop_after(epoch):
    def monitor(snapshot):
        if (snapshot.phase, snapshot.moment, snapshot.epoch) == ("clustering", "epoch", epoch):
            raise StopTraining

    return monitor


def test_monitors_behind_the_one_that_stops_a_run_see_its_last_epoch_too(tmp_path):
    given = settings(clustering=Schedule(epochs=5, batch_size=20))
    whole = train(X, given, seeds=[0], monitors=[Evaluation(Y)], execution=EXACT)
    with pytest.raises(StopTraining):
        train(X, given, seeds=[0], monitors=[stop_after(2), Evaluation(Y)], execution=EXACT, checkpoint=Checkpoint(tmp_path / "c"))
    again = train(X, given, seeds=[0], monitors=[stop_after(9), Evaluation(Y)], execution=EXACT, checkpoint=Checkpoint(tmp_path / "c"))
    for column, curve in whole.history["clustering"].items():
        assert np.array_equal(again.history["clustering"][column].epochs, curve.epochs), column
        assert np.array_equal(again.history["clustering"][column].values, curve.values), column


def test_a_run_on_data_in_memory_does_not_go_on_with_data_in_a_file_which_is_visited_in_another_order(tmp_path):
    given = settings(clustering=Schedule(epochs=4, batch_size=20))
    inputs = as_inputs(torch.from_numpy(X))
    with pytest.raises(StopTraining):
        train(inputs, given, seeds=[0], monitors=[stop_after(1)], execution=EXACT, checkpoint=tmp_path / "run.ckpt")
    streamed = StreamedInputs(X, lambda rows: rows)
    with pytest.raises(ValueError, match="another"):
        train(streamed, given, seeds=[0], execution=EXACT, checkpoint=tmp_path / "run.ckpt")


def test_a_group_of_which_all_fail_does_not_end_the_others(monkeypatch):
    made = Replicas.create.__func__

    def scarce(cls, *given, seeds, **more):
        if len(seeds) > 1:
            raise torch.OutOfMemoryError
        replicas = made(cls, *given, seeds=seeds, **more)
        if seeds[0] == 1:
            replicas.parameters["encoder.1.weight"].detach().fill_(torch.nan)
        return replicas

    monkeypatch.setattr(Replicas, "create", classmethod(scarce))
    with pytest.warns(reclust.ReclustWarning):
        result = train(X, settings(clustering=Schedule(epochs=2, batch_size=20)), seeds=[0, 1], execution=EXACT)
    assert list(result.failed) == [1] and result.groups == [1, 1]
    with pytest.warns(reclust.ReclustWarning), pytest.raises(reclust.TrainingFailed):
        train(X, settings(clustering=Schedule(epochs=2, batch_size=20)), seeds=[1, 1], execution=EXACT)


@pytest.mark.filterwarnings("ignore:The intervention never fires")
def test_no_reset_is_announced_behind_the_last_epoch():
    told = []
    train(X, small_settings(pretraining=None, clustering=Schedule(2, batch_size=30)), seeds=[0], execution=EXACT,
          monitors=[lambda snapshot: told.append(bool(snapshot.fires_next.any())) if snapshot.moment == "epoch" else None])
    assert told == [False, False]


def test_one_replica_whose_gradients_explode_is_enough_for_a_warning():
    once = [small_settings(pretraining=None, intervention=None, objective=IDECObjective(weight), clustering=Schedule(1, batch_size=30)) for weight in (0.1, 1e9)]
    with pytest.warns(ReclustWarning, match="Gradients explode"):
        train(X, once, seeds=[0, 0], execution=EXACT)
