"""The contrastive loss against its formula, and what SimCLR adds to training: views, decay, blocks, BatchNorm, own encoders."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from support import Stop, stop_at
from torch import nn

from reclust import (
    BRB,
    Checkpoint,
    DCNObjective,
    DECObjective,
    Execution,
    IDECObjective,
    KMeans,
    Recluster,
    Result,
    Schedule,
    Settings,
    SoftReset,
    draws,
    train,
)
from reclust.data.augmentation.color import ColorViews
from reclust.representations import Autoencoder, OwnSimCLR, ResNet, SimCLR, build_network, nt_xent
from reclust.training.engine.executors import executor_kind
from reclust.training.engine.replicas import Replicas

CPU = torch.device("cpu")
SMALL = SimCLR(ResNet(width=2), hidden=(6,), embedding=4, projector=(8, 4))
SHAPE = (3, 8, 8)


def images(n=32, k=3, seed=0):
    """Images of k colours with noise, in [0, 1]: (n, 3, 8, 8) and labels (n,)."""
    rng, labels = np.random.default_rng(seed), np.arange(n) % k
    colours = rng.uniform(size=(k, 3, 1, 1))
    return np.clip(colours[labels] + 0.1 * rng.normal(size=(n, *SHAPE)), 0, 1).astype(np.float32), labels


X, Y = images()


def small(**changes):
    """Three clusters, a tiny ResNet, BRB that fires at epoch 1 of 2."""
    given = {
        "n_clusters": 3,
        "objective": IDECObjective(1.0),
        "representation": SMALL,
        "intervention": BRB(1, {"mlp": 0.7, "block4": 0.9, "projector": 0.7}, KMeans(n_init=1)),
        "pretraining": Schedule(epochs=2, batch_size=16, lr=3e-3, weight_decay=1e-2, warmup_epochs=2, views=("augmented",) * 2),
        "clustering": Schedule(epochs=2, batch_size=16, views=("augmented",) * 2),
        "augment": ColorViews(),
        "first_centers": Recluster(KMeans(n_init=1)),
    }
    return Settings(**{**given, **changes})


def small_net():
    replicas = Replicas.create(SMALL, SHAPE, 3, seeds=(0,), device=CPU, dtype=torch.float32)
    return replicas.module(0, replicas.parameters, frozenset(replicas.learned))


def all_tensors(result):
    return {f"{group}/{name}": stack for group in ("parameters", "buffers", "state") for name, stack in getattr(result, group).items()}


def equal(one, other):
    mine, theirs = all_tensors(one), all_tensors(other)
    return mine.keys() == theirs.keys() and all(torch.equal(mine[name], theirs[name]) for name in mine)


# The loss


def slow_nt_xent(one, other, temperature):
    rows = [*one.tolist(), *other.tolist()]

    def similarity(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True)) / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))

    losses = []
    for i, anchor in enumerate(rows):
        positive = (i + len(one)) % len(rows)
        among = sum(math.exp(similarity(anchor, row) / temperature) for k, row in enumerate(rows) if k != i)
        losses.append(-math.log(math.exp(similarity(anchor, rows[positive]) / temperature) / among))
    return sum(losses) / len(losses)


@pytest.mark.parametrize("temperature", [0.5, 0.1, 2.0])
def test_nt_xent_is_its_formula(temperature):
    one, other = torch.randn(2, 7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert nt_xent(torch.stack((one, other)), temperature).item() == pytest.approx(slow_nt_xent(one, other, temperature), rel=1e-12)


def test_nt_xent_in_closed_form():
    n, t = 6, 0.5
    alike = torch.ones(n, 3, dtype=torch.float64)
    assert nt_xent(torch.stack((alike, 5 * alike)), t).item() == pytest.approx(math.log(2 * n - 1))  # nothing can be told apart
    apart = torch.eye(n, dtype=torch.float64)
    right = -1 / t + math.log(math.exp(1 / t) + 2 * n - 2)
    assert nt_xent(torch.stack((apart, apart)), t).item() == pytest.approx(right)  # pairs agree, all others are orthogonal


def test_nt_xent_is_computed_in_float32_whatever_it_is_given():
    both = torch.randn(2, 64, 5, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        assert nt_xent(both, 0.5).dtype == torch.float32
        torch.testing.assert_close(nt_xent(both, 0.5), nt_xent(both.float(), 0.5), rtol=0, atol=0)


def test_the_network_runs_under_autocast_and_its_loss_is_float32():
    net, views = small_net().train(), torch.from_numpy(X[:16]).unflatten(0, (2, 8))
    with torch.autocast("cpu", torch.bfloat16):
        z = SMALL.encode_views(net, views)
        loss = SMALL.loss(net, views, z)
    assert z.dtype == torch.bfloat16 and loss.dtype == torch.float32
    loss.backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in net.parameters())


def test_the_sum_of_directions_is_twice_the_mean_and_one_view_is_refused():
    net, z = small_net(), torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(replace(SMALL, reduction="sum").loss(net, z, z), 2 * SMALL.loss(net, z, z))
    with pytest.raises(ValueError, match=r"got 1: .*views=\('augmented', 'augmented'\)"):
        train(X, small(augment=None), seeds=(0,))


def test_encoding_apart_gives_each_view_batch_statistics_of_its_own():
    def encoded(encoding):
        representation = replace(SMALL, encoding=encoding)
        replicas = Replicas.create(representation, SHAPE, 3, seeds=(0,), device=CPU, dtype=torch.float64)
        net, x = replicas.module(0, replicas.parameters).train(), torch.from_numpy(X[:16]).double()
        z = representation.encode_views(net, torch.stack((x[:8], x[8:] * 3)))
        return z, int(replicas.buffers["encoder.backbone.stem.1.num_batches_tracked"]), net, x

    together, once, _, _ = encoded("together")
    apart, twice, net, x = encoded("apart")
    again, thrice, _, _ = encoded("apart and again")
    assert (once, twice, thrice) == (1, 2, 3), "BatchNorm's running statistics see the first view twice"
    assert torch.equal(again, apart)
    torch.testing.assert_close(apart[0], net.encoder(x[:8]))
    assert not torch.allclose(apart[0], together[0])


# Architecture


def test_the_published_encoder_and_projector():
    with torch.device("meta"):
        net = SimCLR().build((3, 32, 32), 10)
    kinds = [(type(layer).__name__, tuple(getattr(layer, "weight", torch.empty(0)).shape)) for layer in net.encoder.mlp]
    assert kinds == [("Linear", (512, 512)), ("BatchNorm1d", (512,)), ("ReLU", (0,)), ("Linear", (256, 512)), ("BatchNorm1d", (256,)), ("ReLU", (0,))]
    assert net.encoder.embedding.weight.shape == (128, 256)
    assert [tuple(p.shape) for p in net.projector.parameters()] == [(2048, 128), (2048,), (128, 2048), (128,)]


def test_blocks_hold_every_layer_once():
    net = build_network(SMALL, SHAPE, 3, torch.float32)
    blocks = SMALL.blocks(net)
    assert list(blocks) == ["stem", "block1", "block2", "block3", "block4", "mlp", "embedding", "projector"]
    assert sorted(name for block in blocks.values() for name in block) == sorted({name.rpartition(".")[0] for name, _ in net.named_parameters()})


def test_weight_decay_spares_biases_norms_and_the_projector():
    net = build_network(SMALL, SHAPE, 3, torch.float32)
    spared = set(dict(net.named_parameters())) - SMALL.decaying(net)
    assert spared == {name for name, p in net.named_parameters() if p.ndim == 1 or name.startswith("projector.")}


@pytest.mark.parametrize("executor", ["plain", "vmap"])
def test_weight_decay_shrinks_what_has_no_gradient_and_nothing_else(executor):
    """One step at a rate too small for its gradient to matter: AdamW first multiplies by 1 - lr × decay."""
    rows = np.random.default_rng(0).normal(size=(20, 6))
    settings = Settings(n_clusters=2, objective=DECObjective(), representation=Autoencoder((5,)), clustering=None,
                        pretraining=Schedule(epochs=1, batch_size=20, lr=1e-9, weight_decay=1e8, views=("clean",)))
    exact = Execution(device="cpu", precision="float64", executor=executor)
    after = train(rows, settings, seeds=(1, 2), execution=exact).parameters
    before = Replicas.create(settings.representation, (6,), 2, seeds=(1, 2), device=CPU, dtype=torch.float64).parameters
    for name, weights in before.items():
        torch.testing.assert_close(after[name], weights * (0.9 if name.endswith("weight") else 1), rtol=0, atol=1e-8)


# Resets by block


@pytest.mark.parametrize("keep", [{"block4": 0.9}, {"mlp": 0.7, "projector": 0.5}, {"stem": 0.0, "block1": 0.2, "embedding": 0.3}])
def test_only_the_named_blocks_are_reset_and_their_norms_are_not(keep):
    from reclust import Target

    replicas = Replicas.create(SMALL, SHAPE, 3, seeds=(5, 6), device=CPU, dtype=torch.float64)
    before = {name: stack.clone() for name, stack in replicas.parameters.items()}
    target = Target(blocks=replicas.blocks(slice(None)), centers=torch.zeros(2, 3, 4), key=draws.key([5, 6]), embedder=lambda rows: None, assigner=lambda z: z)
    SoftReset(keep)(target)
    places = SMALL.blocks(replicas.net)
    norms = {name for name, module in replicas.net.named_modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)}
    changed = {name.rpartition(".")[0] for name, stack in replicas.parameters.items() if not torch.equal(stack, before[name])}
    assert changed == {layer for block in keep for layer in places[block]} - norms


def test_an_unknown_block_is_found_before_training():
    with pytest.raises(ValueError, match="No block named 'block5'.*stem, block1, block2, block3, block4, mlp, embedding, projector"):
        train(X, small(intervention=BRB(1, {"block5": 0.5})), seeds=(0,))


# Training


@pytest.fixture(scope="module")
def whole():
    return train(X, small(), seeds=(3,))


@pytest.mark.parametrize("objective", [DECObjective(), IDECObjective(1.0), DCNObjective(weight=1e-4)], ids=["dec", "idec", "dcn"])
def test_pretraining_and_clustering(objective):
    result = train(X, small(objective=objective), seeds=(3,))
    assert result.labels.shape == (1, len(X)) and not result.failed
    assert result.state["centers"].shape == (1, 3, 4)
    assert result.history["pretraining"]["loss"].values.shape == (2, 1)
    assert "fired" in result.history["clustering"]
    model = result.model(0)  # in eval mode, so that running statistics decide
    assert (model.assign(model.embed(torch.from_numpy(X))).numpy() == result.labels[0]).mean() > 0.95


@pytest.mark.parametrize("at", [("pretraining", 1), ("clustering", 1)])
def test_stopping_and_resuming_gives_the_same_weights(tmp_path, whole, at):
    checkpoint = Checkpoint(tmp_path / "run.ckpt", every=1)
    with pytest.raises(Stop):
        train(X, small(), seeds=(3,), checkpoint=checkpoint, monitors=[stop_at(*at)])
    again = train(X, small(), seeds=(3,), checkpoint=checkpoint)
    assert equal(whole, again) and (whole.labels == again.labels).all()
    tracked = again.buffers["encoder.backbone.stem.1.num_batches_tracked"]
    assert tracked.tolist() == [(2 + 2) * (len(X) // 16)]


def test_replicas_that_take_turns_are_what_each_would_be_alone():
    """Bit for bit."""
    settings = small(clustering=None)
    together = train(X, settings, seeds=(3, 4))
    for i, seed in enumerate((3, 4)):
        assert equal(together.only(i), train(X, settings, seeds=(seed,)))


def test_one_pretrained_encoder_serves_many_clusterings(tmp_path, whole):
    settings = small()
    pretrained = train(X, replace(settings, clustering=None), seeds=(3,))
    pretrained.save(tmp_path / "encoder.reclust")
    start = Result.load(tmp_path / "encoder.reclust")
    assert equal(train(X, settings, seeds=(3,), start=start), whole)
    others = train(X, replace(settings, clustering=replace(settings.clustering, epochs=0)), seeds=(8, 9), start=start)
    assert all(torch.equal(stack[0], stack[1]) for stack in others.parameters.values())


def test_executors_agree_and_auto_lets_replicas_take_turns():
    settings = small(clustering=None, augment=None, representation=OwnSimCLR(nn.Flatten()))  # for its kind alone
    replicas = Replicas.create(SMALL, SHAPE, 3, seeds=(3, 4), device=CPU, dtype=torch.float32)
    assert executor_kind(replicas, "auto") == "plain" and executor_kind(replicas, "vmap") == "vmap"
    assert not settings.representation.stacks and Autoencoder.stacks
    both = [train(X, small(pretraining=Schedule(epochs=1, batch_size=16, views=("augmented",) * 2)), seeds=(3, 4),
                  execution=Execution(device="cpu", precision="float64", executor=executor)) for executor in ("plain", "vmap")]
    for name, stack in all_tensors(both[0]).items():
        torch.testing.assert_close(all_tensors(both[1])[name], stack, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("executor", ["plain", "vmap"])
def test_running_statistics_are_kept_by_replica(executor):
    rows = np.random.default_rng(0).normal(size=(40, 6))
    settings = Settings(n_clusters=2, objective=IDECObjective(), representation=Autoencoder((5,), batch_norm=True),
                        pretraining=Schedule(epochs=2, batch_size=10, views=("clean",)), clustering=Schedule(epochs=2, batch_size=10))
    exact = Execution(device="cpu", precision="float64", executor=executor)
    together = train(rows, settings, seeds=(1, 2, 3), execution=exact)
    for i, seed in enumerate((1, 2, 3)):
        alone = train(rows, settings, seeds=(seed,), execution=replace(exact, executor="plain"))
        for name, stack in {**alone.buffers, **alone.parameters}.items():
            torch.testing.assert_close({**together.buffers, **together.parameters}[name][i], stack[0])
    assert together.buffers["encoder.2.num_batches_tracked"].tolist() == [16, 16, 16]


# Encoders of one's own


def own_encoder():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5))


def test_an_own_encoder_trains_from_given_or_fresh_weights(tmp_path):
    encoder = own_encoder()
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    untrained = small(representation=OwnSimCLR(encoder, weights="given"), pretraining=None, intervention=None, clustering=Schedule(epochs=0))
    start = train(X, untrained, seeds=(1, 2))
    assert all(torch.equal(start.parameters[f"encoder.{name}"][1], parameter) for name, parameter in encoder.named_parameters())
    assert start.parameters["projector.0.weight"].shape == (2, 2048, 5)
    assert not torch.equal(*start.parameters["projector.0.weight"])
    fresh = train(X, small(representation=OwnSimCLR(encoder, nn.Linear(5, 3)), intervention=BRB(1, {"layer1": 0.5, "projector": 0.5})), seeds=(1,))
    assert fresh.labels.shape == (1, len(X)) and encoder.training
    assert all(torch.equal(tensor, encoder.state_dict()[name]) for name, tensor in before.items())
    fresh.save(tmp_path / "own.reclust")
    loaded = Result.load(tmp_path / "own.reclust")
    with pytest.raises(ValueError, match="OwnSimCLR"):
        loaded.model(0)
