"""Interventions that wait until labels have settled."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support import Stop, blobs, small_settings, stop_at
from torch import nn

from reclust import (
    BRB,
    Checkpoint,
    DCNObjective,
    Execution,
    KMeans,
    Schedule,
    SoftReset,
    Target,
    train,
)
from reclust.interventions import Every, Exchange, Recluster, ResetMomentum, WhenSettled, adaptive
from reclust.utils.values import from_json, to_json

X, _ = blobs(n=60, spread=3.0)
STEPS = BRB(2, method=KMeans(n_init=1)).steps
EXACT = {name: Execution(device="cpu", precision="float64", executor=name) for name in ("plain", "vmap")}
SETTLED = WhenSettled(STEPS, threshold=0.02, look=1, shortest=2, longest=7)
SEEDS = (3, 1, 4)


def run(intervention, seeds=SEEDS, **given):
    settings = small_settings(intervention=intervention, clustering=Schedule(12, batch_size=30), pretraining=Schedule(1, batch_size=30),
                              **{"objective": given.pop("objective")} if "objective" in given else {})
    return train(X, settings, seeds=seeds, **{"execution": EXACT["vmap"], **given})


def same(one, other):
    return all(torch.equal(tensor, other.parameters[name]) for name, tensor in one.parameters.items())


@pytest.fixture(scope="module")
def fixed():
    return run(Every(4, STEPS))


def fired(result):
    """By replica, the epochs at which it fired."""
    curve = result.history["clustering"]["fired"]
    return [curve.epochs[row].tolist() for row in curve.values.T]


@pytest.mark.parametrize("decide", ["alone", "together"])
@pytest.mark.parametrize("changes", [{"threshold": 0.0, "shortest": 1, "longest": 4}, {"threshold": 1.0, "shortest": 4, "longest": 20}],
                         ids=["never settled", "always settled"])
def test_at_both_ends_it_is_a_fixed_interval(changes, decide, fixed):
    assert same(run(WhenSettled(STEPS, look=2, decide=decide, **changes)), fixed)


@pytest.mark.parametrize("keep", ["given", "scaled"])
def test_deciding_alone_a_replica_fires_as_if_there_were_no_others(keep):
    intervention = replace(SETTLED, keep=keep, threshold=0.05)
    stacked = run(intervention)
    assert len({tuple(epochs) for epochs in fired(stacked)}) > 1, "the test needs replicas that fire at different times"
    assert same_up_to_rounding(stacked, run(intervention, execution=EXACT["plain"]))
    alone = run(intervention, SEEDS[1:2])
    assert fired(alone)[0] == fired(stacked)[1]
    for name, tensor in alone.parameters.items():
        torch.testing.assert_close(stacked.parameters[name][1:2], tensor, rtol=0, atol=1e-8)


def same_up_to_rounding(one, other):
    return all(torch.allclose(tensor, other.parameters[name], rtol=0, atol=1e-8) for name, tensor in one.parameters.items())


@pytest.mark.parametrize("intervention", [SETTLED, replace(SETTLED, decide="together", keep="scaled", steps=(Exchange(), *STEPS))],
                         ids=["alone", "together"])
def test_resumed_equals_uninterrupted(tmp_path, intervention):
    whole, checkpoint = run(intervention), Checkpoint(tmp_path / "run.ckpt", every=1)
    for epoch in (2, 7):  # before and after some fired
        with pytest.raises(Stop):
            run(intervention, checkpoint=checkpoint, monitors=[stop_at("clustering", epoch)])
    resumed = run(intervention, checkpoint=checkpoint)
    assert same(whole, resumed) and fired(whole) == fired(resumed)


def test_together_all_fire_at_once_and_variants_keep_notes_of_their_own():
    both = [small_settings(intervention=one, clustering=Schedule(12, batch_size=30), pretraining=Schedule(1, batch_size=30))
            for one in (replace(SETTLED, decide="together"), SETTLED)]
    result = train(X, [both[0]] * 2 + [both[1]] * 2, seeds=(3, 1, 3, 1), execution=EXACT["vmap"])
    first, second, *alone = fired(result)
    assert first == second
    assert alone == fired(run(SETTLED, (3, 1)))


class Told:
    """A target of one model whose labels are told, and steps that note when they are taken."""

    def __init__(self):
        self.encoder, self.memory, self.labels = nn.Linear(3, 2), {}, torch.zeros(10, dtype=torch.int64)

    def target(self):
        made = Target.of(self.encoder, torch.zeros(4, 2), embed=lambda: torch.zeros(10, 2), memory=self.memory)
        made.assigner = lambda z: self.labels.clone()
        return made


def test_it_fires_below_the_threshold_within_its_bounds_and_compares_with_right_after_the_last_firing():
    told, fires = Told(), []
    settled = WhenSettled((ResetMomentum(),), threshold=0.25, look=2, shortest=4, longest=10)
    shares = {2: 0.0, 4: 0.3, 6: 0.2, 8: 0.1, 10: 0.5, 12: 0.9, 14: 0.3, 16: 0.3, 18: 0.0, 20: 0.0}  # changed since the look before
    for epoch in range(22):
        told.labels[: round(10 * shares.get(epoch, 0))] += 1
        if settled(epoch, told.target()):
            fires.append(epoch)
    assert fires == [6, 16, 20], "at 2 it is too early, at 16 it is due, at 18 too early again"


def test_the_factor_is_scaled_by_what_still_changes():
    steps = (SoftReset(0.8), SoftReset({"layer1": 0.5, "embedding": 1.0}), Recluster())
    scaled = WhenSettled(steps, threshold=0.1, keep="scaled")
    half = scaled._scaled(0.05)
    assert half[0].keep == pytest.approx(0.9) and half[1].keep == pytest.approx({"layer1": 0.75, "embedding": 1.0}) and half[2] == steps[2]
    assert scaled._scaled(0.0) == steps and scaled._scaled(0.3)[0].keep == 1
    assert replace(scaled, keep="given")._scaled(0.05) == steps


def test_a_subsample_is_always_the_same_and_other_objectives_settle_too(monkeypatch):
    monkeypatch.setattr(adaptive, "SAMPLES", 30)
    stacked, alone = run(SETTLED, objective=DCNObjective()), run(SETTLED, (4,), objective=DCNObjective())
    assert fired(stacked)[2] == fired(alone)[0]


def test_mistakes():
    for changes, message in (({"threshold": 1.5}, "threshold must be"),
                             ({"look": 0}, "look must be"), ({"decide": "never"}, "decide must be"), ({"keep": 0.5}, "keep must be"),
                             ({"steps": (Exchange(),)}, "use decide='together'")):
        with pytest.raises(ValueError, match=message):
            WhenSettled(**{"steps": STEPS, **changes})
    encoder = nn.Linear(3, 2)
    with pytest.raises(ValueError, match="memory="):
        WhenSettled(STEPS)(0, Target.of(encoder, torch.zeros(2, 2), embed=lambda: torch.zeros(5, 2)))
    with pytest.raises(ValueError, match="No block named 'head'"):
        run(replace(SETTLED, steps=(SoftReset({"head": 0.5}),)))


def test_json():
    assert from_json(to_json(SETTLED)) == SETTLED and np.isclose(SETTLED.threshold, 0.02)
