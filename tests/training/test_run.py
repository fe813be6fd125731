"""One run: where it starts, what it survives, and where it may be called from."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from support import blobs, small_settings

from reclust import (
    BRB,
    IDEC,
    Checkpoint,
    DECObjective,
    Every,
    Execution,
    IDECObjective,
    Recluster,
    ReclustWarning,
    Schedule,
    Step,
    draws,
    train,
    value,
)
from reclust.ensemble.selection import Silhouette

X, Y = blobs()
SEEDS = (3, 1, 4)
X = blobs(80)[0].astype(np.float32)


def exact(executor):
    return Execution(device="cpu", precision="float64", executor=executor)


def gap(one, other, replica=slice(None), of_other=slice(None)):
    pairs = [(getattr(one, group), getattr(other, group)) for group in ("parameters", "state", "buffers")]
    return max((a[name][replica].double() - b[name][of_other].double()).abs().max().item() for a, b in pairs for name in a)


def test_pretraining_alone_then_going_on_equals_one_run():
    settings = small_settings()
    whole = train(X, settings, seeds=SEEDS, execution=exact("vmap"))
    first = train(X, replace(settings, clustering=None), seeds=SEEDS, execution=exact("vmap"))
    assert first.labels is None and first.history.keys() == {"pretraining"}
    second = train(X, settings, seeds=SEEDS, start=first, execution=exact("vmap"))
    assert gap(whole, second) == 0
    doubled = train(X, settings, seeds=SEEDS[1:], start=first, execution=exact("vmap"))  # found by seed, not by position
    assert gap(whole, doubled, slice(1, None)) < 1e-9
    with pytest.raises(ValueError, match="0 replicas with seed 99"):
        train(X, settings, seeds=[99], start=first)


def test_first_centres_come_from_all_samples_by_the_given_method():
    settings = small_settings(pretraining=None, intervention=None, clustering=Schedule(0), objective=DECObjective())
    result = train(X, settings, seeds=[9], execution=exact("plain"))
    z = result.model(0).embed(torch.from_numpy(X).double())
    own = draws.fold(draws.key([9]), "first centers", "recluster")
    torch.testing.assert_close(result.state["centers"], settings.first_centers.method(z[None], 4, own))


def test_replicas_that_failed_before_are_not_blamed_on_this_run():
    first = train(X, small_settings(clustering=None), seeds=(1, 2))
    first = replace(first, failed={1: ("pretraining", 1)})
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReclustWarning)
        result = train(X, small_settings(), seeds=(2, 1), start=first)
    assert result.failed == {0: ("pretraining", 1)} and result.living == [1]


def test_variants_with_one_seed_each_go_on_from_their_own():
    settings = [small_settings(intervention=intervention) for intervention in (None, BRB(2))]
    first = train(X, settings, seeds=(1, 1), execution=exact("vmap"))
    still = [replace(one, pretraining=None, first_centers=None, intervention=None, clustering=Schedule(0)) for one in settings]
    again = train(X, still, seeds=(1, 1), start=first, execution=exact("vmap"))
    assert all(torch.equal(stack, again.parameters[name]) for name, stack in first.parameters.items())
    assert torch.equal(first.state["centers"], again.state["centers"])
    with pytest.raises(ValueError, match="2 replicas with seed 1"):
        train(X, still[0], seeds=(1,), start=first, execution=exact("vmap"))


def test_a_tiny_time_budget_gives_a_result_without_training():
    with pytest.warns(ReclustWarning, match="time budget was spent after 0 of 5 epochs of clustering"):
        result = train(X, small_settings(pretraining=None), seeds=[0], execution=Execution(time_budget=1e-9))
    assert result.labels.shape == (1, len(X)) and "loss" not in result.history.get("clustering", {})


def picky(z, k, key):
    if not z.isfinite().all():
        raise ValueError("Input X contains NaN.")
    return z[..., :k, :].clone()


@pytest.mark.filterwarnings("ignore:The loss of the replica")
def test_a_replica_that_failed_does_not_stop_the_method_of_the_others():
    settings = [small_settings(objective=IDECObjective(weight), intervention=Every(1, (Recluster(picky),)))
                for weight in (1.0, 1e39)]
    result = train(X, settings, seeds=[1, 2])
    assert set(result.failed) == {1} and torch.isfinite(result.state["centers"][0]).all()


@value
class Twice(Step):
    """Notes one tensor under two names, or what is none."""

    tensors: bool = True

    def __call__(self, target):
        target.memory["labels"] = target.centers.detach().clone() if self.tensors else 3
        target.memory["first"] = target.memory["labels"]


def test_notes_of_interventions_are_kept_whatever_they_share(tmp_path):
    def run(step):
        return train(X, small_settings(intervention=Every(1, (step,))), seeds=[1], checkpoint=Checkpoint(tmp_path / f"{step.tensors}", every=1))

    run(Twice())


def test_a_fit_and_its_answers_are_the_same_inside_autocast():
    def answers():
        model = IDEC(3, n_init=2, epochs=6, pretrain_epochs=2, intervention=BRB(2), random_state=0, device="cpu", select=Silhouette()).fit(X)
        return model.labels_, model.transform(X), model.predict_proba(X), model.predict(X[:7]), [one.score for one in model.replicas_]

    plain = answers()
    with torch.autocast("cpu", torch.bfloat16):
        inside = answers()
    for one, other in zip(plain, inside, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("around", [torch.no_grad, torch.inference_mode], ids=lambda one: one.__name__)
def test_training_is_the_same_wherever_it_is_called_from(around):
    plain = train(X, small_settings(intervention=BRB(2)), seeds=[1])
    with around():
        again = train(X, small_settings(intervention=BRB(2)), seeds=[1])
    assert (plain.labels == again.labels).all() and all(torch.equal(plain.parameters[name], own) for name, own in again.parameters.items())
