"""Stacked equals separate, resumed equals uninterrupted, and what happens when a replica fails."""

import random
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch
from support import Stop, blobs, small_settings, stop_at

from reclust import (
    BRB,
    Autoencoder,
    Checkpoint,
    DCNObjective,
    DECObjective,
    Evaluation,
    Every,
    Execution,
    IDECObjective,
    KMeans,
    ReclustWarning,
    Schedule,
    SoftReset,
    Step,
    TrainingFailed,
    draws,
    train,
)
from reclust.interventions import WhenSettled
from reclust.training import train as train_module
from reclust.utils.device import Precision

OBJECTIVES = {
    "dec": DECObjective(), "idec": IDECObjective(), "dcn": DCNObjective(), "dcn counts": DCNObjective(rate="counts"),
}  # fmt: skip
X, Y = blobs()
SEEDS = (3, 1, 4)


def jitter(x, keys):
    """A real augmentation in miniature: normal noise by key."""
    return x + 0.1 * draws.normal(keys, x.shape[keys.ndim:], dtype=x.dtype)


def exact(executor):
    return Execution(device="cpu", precision="float64", executor=executor)


def gap(one, other, replica=slice(None), of_other=slice(None)):
    pairs = [(getattr(one, group), getattr(other, group)) for group in ("parameters", "state", "buffers")]
    return max((a[name][replica].double() - b[name][of_other].double()).abs().max().item() for a, b in pairs for name in a)


@pytest.mark.parametrize(("objective", "batch_norm"), [("dec", False), ("idec", True), ("dcn", True), ("dcn counts", False)])
def test_stacked_equals_separate_equals_plain(objective, batch_norm):
    settings = small_settings(objective=OBJECTIVES[objective], augment=jitter, representation=Autoencoder((16, 8), batch_norm=batch_norm))
    together = train(X, settings, seeds=SEEDS, execution=exact("vmap"))
    assert together.history["clustering"]["fired"].epochs.tolist() == [2, 4]
    plain = train(X, settings, seeds=SEEDS, execution=exact("plain"))
    # A bias before BatchNorm has no effect and so no gradient but rounding noise, which Adam turns into steps.
    tolerance = 1e-6 if batch_norm else 1e-9
    assert gap(together, plain) < tolerance
    assert (together.labels == plain.labels).all()
    alone = train(X, settings, seeds=SEEDS[1:2], execution=exact("vmap"))
    assert gap(together, alone, 1, 0) < tolerance
    assert gap(together, together, 0, 1) > 1e-3, "replicas with different seeds must differ"


def test_variants_that_differ_in_numbers_and_interventions_train_side_by_side():
    base = small_settings(objective=IDECObjective(0.1))
    variants = [
        base,
        replace(base, objective=IDECObjective(0.7)),
        replace(base, intervention=None),
        replace(base, intervention=BRB(3, keep=0.5, method=KMeans(n_init=2))),
        replace(base, objective=DECObjective(representation_weight=0.3)),
    ]
    together = train(X, variants, seeds=[5] * len(variants), execution=exact("vmap"))
    fired = together.history["clustering"]["fired"]
    assert {epoch: row.tolist() for epoch, row in zip(fired.epochs.tolist(), fired.values, strict=True)} == {
        2: [True, True, False, False, True], 3: [False, False, False, True, False], 4: [True, True, False, False, True]}
    for i, settings in enumerate(variants):
        assert gap(together, train(X, settings, seeds=[5], execution=exact("plain")), i, 0) < 1e-9


def test_same_seeds_same_labels_bit_for_bit_and_no_global_state_touched():
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    before = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()
    results = [train(X.astype(np.float32), small_settings(augment=jitter), seeds=SEEDS) for _ in range(2)]
    assert random.getstate() == before[0]
    assert (np.random.get_state()[1] == before[1]).all() and torch.equal(torch.get_rng_state(), before[2])
    assert (results[0].labels == results[1].labels).all() and gap(*results) == 0


@pytest.mark.parametrize(("objective", "seeds", "where"), [
    ("dec", SEEDS, ("clustering", 0)), ("idec", (7,), ("pretraining", 1)), ("dcn", SEEDS, ("clustering", 2)), ("dcn counts", (7,), ("clustering", 4)),
])
def test_resumed_equals_uninterrupted_bit_for_bit(tmp_path, objective, seeds, where):
    data = X.astype(np.float32)
    settings = small_settings(objective=OBJECTIVES[objective], representation=Autoencoder((16, 8), batch_norm=True), augment=jitter)
    whole = train(data, settings, seeds=seeds)
    checkpoint = Checkpoint(tmp_path / "run.ckpt", every=1)
    with pytest.raises(Stop):
        train(data, settings, seeds=seeds, checkpoint=checkpoint, monitors=[stop_at(*where)])
    resumed = train(data, settings, seeds=seeds, checkpoint=checkpoint)
    assert gap(whole, resumed) == 0 and (whole.labels == resumed.labels).all()
    for phase, columns in whole.history.items():
        for column, curve in columns.items():
            assert (curve.epochs == resumed.history[phase][column].epochs).all()
            assert (curve.values == resumed.history[phase][column].values).all()


def test_a_failing_replica_is_dropped_with_a_warning_and_disturbs_nobody():
    poisoned = replace(small_settings(objective=IDECObjective(0.1)), objective=IDECObjective(float("inf")))
    mixed = [small_settings(), poisoned, small_settings()]
    with pytest.warns(ReclustWarning, match="seed 1 became nan in epoch 0 of clustering.*smaller lr"):
        result = train(X, mixed, seeds=SEEDS, execution=exact("vmap"))
    assert result.failed == {1: ("clustering", 0)} and result.living == [0, 2]
    healthy = train(X, small_settings(), seeds=SEEDS, execution=exact("vmap"))
    assert gap(result, healthy, 0, 0) < 1e-9 and gap(result, healthy, 2, 2) < 1e-9


def test_when_no_replica_is_left_that_is_an_error():
    with pytest.warns(ReclustWarning), pytest.raises(TrainingFailed, match="every replica"):
        train(X, small_settings(objective=IDECObjective(float("inf"))), seeds=[0, 1])


@pytest.mark.filterwarnings("ignore:Gradients explode")
def test_gradients_are_clipped_for_each_replica_and_centres_are_not():
    calm = small_settings(pretraining=None, intervention=None, clustering=Schedule(3, batch_size=50, clip_norm=1e-12))
    start = train(X, replace(calm, clustering=None), seeds=SEEDS, execution=exact("vmap"))
    results = [train(X, calm, seeds=SEEDS, execution=exact(executor)) for executor in ("vmap", "plain")]
    assert gap(*results) < 1e-9
    # Adam divides by the gradient's own size: against its epsilon of 1e-8 only a clipped gradient is small.
    moved = max((results[0].parameters[name] - start.parameters[name]).abs().max().item() for name in start.parameters)
    assert moved < 1e-5
    free = train(X, replace(calm, clustering=Schedule(3, batch_size=50, clip_norm=None)), seeds=SEEDS, execution=exact("vmap"))
    assert gap(free, results[0]) > 1e-3


@pytest.mark.parametrize("alone", ["pretraining", "clustering"])
def test_a_last_step_that_diverges_is_noticed(alone):
    """One step in all, so that no later loss could tell."""
    settings = small_settings(pretraining=None, clustering=None, intervention=None)
    settings = replace(settings, **{alone: Schedule(1, batch_size=len(X), views=("clean",), lr=1e300)})
    with pytest.raises(TrainingFailed, match=f"epoch 0 of {alone}"), pytest.warns(ReclustWarning):
        train(X.astype(np.float32), settings, seeds=[1], execution=Execution(device="cpu"))


def test_monitors_see_starts_interventions_and_epochs():
    seen = []
    train(X, small_settings(), seeds=[0], monitors=[lambda s: seen.append((s.phase, s.moment, s.epoch))])
    clustering = [(moment, epoch) for phase, moment, epoch in seen if phase == "clustering"]
    assert clustering == [("start", -1), ("epoch", 0), ("epoch", 1), ("intervention", 2), ("epoch", 2), ("epoch", 3),
                          ("intervention", 4), ("epoch", 4)]
    assert [moment for phase, moment, _ in seen if phase == "pretraining"] == ["start", "epoch", "epoch"]


def test_time_is_accounted_for_by_part():
    seconds = train(X, small_settings(objective=DCNObjective()), seeds=[0], monitors=[Evaluation(Y)]).seconds
    assert {"pretraining.training", "clustering.training", "first centers.clustering", "clustering.reset", "clustering.embedding",
            "clustering.clustering", "clustering.momentum", "clustering.centers", "clustering.evaluation"} <= seconds.keys()
    assert all(spent >= 0 for spent in seconds.values())


def test_resets_touch_the_encoder_but_neither_embedding_layer_nor_decoder():
    settings = small_settings(pretraining=None, intervention=None, clustering=Schedule(0))
    before = train(X, settings, seeds=[0], execution=exact("plain"))
    seen = []

    class Look(Step):
        part = "look"

        def __call__(self, target):
            SoftReset(0.5)(target)
            seen.extend(layer.name for layers in target.blocks.values() for layer in layers)

    after = train(X, replace(settings, intervention=Every(1, (Look(),)), clustering=Schedule(2, batch_size=50, lr=1e-300)),
                  seeds=[0], execution=exact("plain"))
    changed = {name for name in before.parameters if not torch.allclose(before.parameters[name], after.parameters[name])}
    assert changed == {"encoder.1.weight", "encoder.1.bias", "encoder.2.weight", "encoder.2.bias"}
    assert seen == ["encoder.1", "encoder.2", "encoder.3"]


@pytest.mark.parametrize("seeds", [(1,), (1, 2)])
def test_bf16_products_give_nearly_the_losses_of_float32(seeds):
    losses = [train(X, small_settings(), seeds=seeds, execution=Execution(device="cpu", precision=precision)).history["clustering"]["loss"].values
              for precision in ("float32", "bf16")]
    assert 0 < np.abs(losses[0] - losses[1]).max() < 0.05 * losses[0].max()


def test_auto_precision_is_float32_on_every_cpu():
    assert Precision.choose(torch.device("cpu"), "auto").precision == "float32"


def test_replicas_that_do_not_fit_side_by_side_train_in_groups(monkeypatch, tmp_path):
    seeds, runs = (1, 2, 3, 4, 5), []
    settings = [small_settings(intervention=None if seed == 4 else BRB(2, method=KMeans(n_init=1))) for seed in seeds]
    apart = [train(X, settings[part], seeds=seeds[part], execution=exact("vmap")) for part in (slice(2), slice(2, 3), slice(3, 5))]
    run = train_module.run

    def too_large(context, *given, **more):
        runs.append(len(context.replicas))
        if len(context.replicas) > 2:
            raise torch.OutOfMemoryError
        return run(context, *given, **more)

    monkeypatch.setattr(train_module, "run", too_large)
    with pytest.warns(ReclustWarning, match="[53] replicas do not fit .* groups of [21] and [32]"):
        together = train(X, settings, seeds=seeds, execution=exact("vmap"), checkpoint=Checkpoint(tmp_path / "run"))
    assert runs == [5, 2, 3, 1, 2] and together.groups == [2, 1, 2] and together.seeds == seeds
    for name, stack in together.parameters.items():
        assert torch.equal(stack, torch.cat([one.parameters[name] for one in apart]))
    assert (together.labels == np.concatenate([one.labels for one in apart])).all()
    loss = together.history["clustering"]["loss"].values
    assert (loss == np.concatenate([one.history["clustering"]["loss"].values for one in apart], 1)).all()
    fired = together.history["clustering"]["fired"]
    assert fired.epochs.tolist() == [2, 4] and fired.values.tolist() == [[True, True, True, False, True]] * 2


def test_replicas_in_groups_go_on_with_the_seeds_they_began_with(monkeypatch, tmp_path):
    run = train_module.run

    def too_large(context, *given, **more):
        if len(context.replicas) > 1:
            raise torch.OutOfMemoryError
        return run(context, *given, **more)

    monkeypatch.setattr(train_module, "run", too_large)
    checkpoint = Checkpoint(tmp_path / "run", every=1)
    for ends in (True, False):  # the second time where only the first replica was begun
        with pytest.warns(ReclustWarning, match="do not fit"), (pytest.raises(Stop) if ends else nullcontext()):
            train(X, small_settings(), seeds=(7, 8, 9), checkpoint=checkpoint, monitors=[stop_at("clustering", 2)] if ends else ())
        assert checkpoint.seeds() == [7, 8, 9]
        assert not (tmp_path / "run").exists(), "only its parts were written"


@pytest.mark.parametrize("wrong", [None, "X.csv"], ids=repr)
def test_data_of_a_wrong_kind_is_told(wrong):
    with pytest.raises(TypeError, match="needs a scaled array or tensor .* got"):
        train(wrong, small_settings(), seeds=[1])


def test_data_with_gaps_and_data_that_is_being_learned():
    holes = X.copy()
    holes[3, 1] = np.nan
    with pytest.raises(ValueError, match="The data contain NaN or infinity"):
        train(holes, small_settings(), seeds=[1])
    leaf, plain = (train(data, small_settings(), seeds=[1]) for data in (torch.tensor(X, requires_grad=True), X))
    assert (leaf.labels == plain.labels).all()


@pytest.mark.parametrize("intervention", [BRB(5), WhenSettled(BRB().steps, look=3, shortest=4), WhenSettled(BRB().steps, threshold=0, look=1, shortest=1, longest=5)], ids=repr)
def test_an_intervention_that_never_fires_is_told_before_training(intervention, monkeypatch):
    def too_large(*given, **more):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(train_module, "run", too_large)  # training in groups does not say it again
    settings = [small_settings(intervention=one, clustering=Schedule(5, batch_size=50)) for one in (None, intervention)]
    with pytest.warns(ReclustWarning) as seen, pytest.raises(TrainingFailed):
        train(X, settings, seeds=(1, 1))
    assert sum("The intervention never fires within epochs=5" in str(one.message) for one in seen) == 1


@pytest.mark.parametrize("intervention", [BRB(4), WhenSettled(BRB().steps, look=2, shortest=3), WhenSettled(BRB().steps, threshold=0, look=1, longest=4, shortest=1)], ids=repr)
def test_no_such_warning_where_it_fires_in_the_last_epoch(intervention):
    train(X, small_settings(intervention=intervention, pretraining=None, clustering=Schedule(5, batch_size=100)), seeds=(1,))


def test_one_replica_that_does_not_fit_says_what_to_do(monkeypatch):
    def too_large(*given, **more):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(train_module, "run", too_large)
    with pytest.raises(TrainingFailed, match=r"smaller samples"):
        train(X, small_settings(), seeds=[1])


@pytest.mark.parametrize("executor", ["plain", "vmap"])
def test_a_frozen_network_stays_whatever_the_objective(executor):
    settings = small_settings(intervention=None, clustering=Schedule(3, batch_size=50, network="frozen"))
    start = train(X, replace(settings, clustering=None), seeds=(1, 2), execution=exact(executor))
    after = train(X, settings, seeds=(1, 2), start=start, execution=exact(executor))
    assert all(torch.equal(stack, after.parameters[name]) for name, stack in start.parameters.items())
    assert "gradient_norm" not in after.history["clustering"]


@pytest.mark.parametrize(("seeds", "batch_norm"), [((1,), True), ((1, 2), False)])
def test_every_precision_trains_alone_and_stacked(seeds, batch_norm):
    settings = small_settings(representation=Autoencoder((16, 8), batch_norm=batch_norm))
    for kind in ("bf16", "float32", "float64"):
        assert np.isfinite(train(X, settings, seeds=seeds, execution=Execution(device="cpu", precision=kind)).history["clustering"]["loss"].values).all()


def test_a_monitor_may_have_a_memory_of_its_own_kind(tmp_path):
    class Own:
        def __init__(self):
            self.memory = []

        def __call__(self, snapshot):
            self.memory.append(snapshot.epoch)

    train(X, small_settings(), seeds=[1], monitors=[Own(), Evaluation(Y)], checkpoint=Checkpoint(tmp_path / "run", every=1))


def test_two_monitors_that_measure_the_same_share_a_checkpoint_and_the_later_one_is_heard(tmp_path):
    other = np.random.default_rng(0).permutation(Y)
    made = train(X, small_settings(), seeds=(1, 2), monitors=[Evaluation(other), Evaluation(Y)],
                 checkpoint=Checkpoint(tmp_path / "run", every=1))
    alone = train(X, small_settings(), seeds=(1, 2), monitors=[Evaluation(Y)])
    for column in ("accuracy", "label_change"):
        here, there = made.history["clustering"][column], alone.history["clustering"][column]
        assert here.epochs.tolist() == there.epochs.tolist() and (here.values == there.values).all()
