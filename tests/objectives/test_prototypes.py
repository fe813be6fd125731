"""SCAN, GCC and SeCu against slow transcriptions of their formulas, and BRB on each of them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from representations.test_contrastive import X as IMAGES, equal, small as contrastive
from support import Stop, blobs, small_settings, stop_at

from reclust import (
    BRB,
    Autoencoder,
    Checkpoint,
    Embeddings,
    KMeans,
    SCANObjective,
    Schedule,
    SeCuObjective,
    Settings,
    metrics,
    train,
)
from reclust.geometry import nearest_neighbors
from reclust.objectives import GCCObjective

OBJECTIVES = {"scan": SCANObjective(), "gcc": GCCObjective(), "secu": SeCuObjective()}
every = pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
X, Y = blobs(n=120)
PAIRS = Schedule(epochs=5, batch_size=40, lr=1e-2, views=("clean", "neighbor"), neighbors=5)


def case(n=7, d=4, k=3):
    generator = torch.Generator().manual_seed(0)
    z, centers = (torch.randn(*shape, d, generator=generator, dtype=torch.float64) for shape in ((2, n), (k,)))
    return z, centers


def cosine(a, b):
    return float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))


def softmax(row):
    powers = [math.exp(one) for one in row]
    return [one / sum(powers) for one in powers]


def predictions(z, centers, temperature):
    return [softmax([cosine(own, center) / temperature for center in centers]) for own in z]


def negative_entropy(p):
    means = np.mean(p, axis=0)
    return sum(share * math.log(share) for share in means)


def test_scan_pulls_neighbors_to_one_prototype_and_spreads_the_mean_prediction():
    (first, second), centers = case()
    p, q = predictions(first, centers, 0.3), predictions(second, centers, 0.3)
    pairs = [-math.log(sum(a * b for a, b in zip(own, other, strict=True))) for own, other in zip(p, q, strict=True)]
    objective = SCANObjective(entropy=2.0, temperature=0.3)
    loss = objective.loss(objective.init(centers), torch.stack((first, second)))
    assert loss.item() == pytest.approx(np.mean(pairs) + 2 * negative_entropy(p), rel=1e-12)


def test_gcc_tells_the_columns_of_clusters_apart():
    (first, second), centers = case()
    p, q = (np.array(predictions(z, centers, 0.3)) for z in (first, second))
    columns = [column / np.linalg.norm(column) for column in (*p.T, *q.T)]
    terms = []
    for i, own in enumerate(columns):
        others = [math.exp(own @ other / 0.5) for j, other in enumerate(columns) if j != i]
        terms.append(-own @ columns[(i + 3) % 6] / 0.5 + math.log(sum(others)))
    objective = GCCObjective(entropy=2.0, temperature=0.3, contrast=0.5)
    loss = objective.loss(objective.init(centers), torch.stack((first, second)))
    assert loss.item() == pytest.approx(np.mean(terms) + 2 * negative_entropy(p), rel=1e-12)


def slow_secu(z, centers, previous, dual, *, of_network):
    """One of SeCu's two cross-entropies, with gradients, sample by sample."""
    unit_z, unit_c, unit_p = (rows / rows.norm(dim=-1, keepdim=True) for rows in (z, centers, previous))
    total = 0
    for first, second in zip(unit_z[0], unit_z[1], strict=True):
        scores = [((first + second) / 2 @ center + own).item() for center, own in zip(unit_c, dual, strict=True)]
        label = int(np.argmax(scores))
        for x, other in ((first, second), (second, first)):
            if of_network:
                target = 0.8 * (unit_p @ other / 0.05).softmax(0).detach()
                target[label] += 0.2
                total -= (target * (unit_p @ x / 0.05).log_softmax(0)).sum()
            else:
                logits = [unit_c[j] @ x.detach() if j == label else (unit_c[j] @ x).detach() for j in range(len(unit_c))]
                total -= (torch.stack(logits) / 0.05).log_softmax(0)[label]
    return total / (2 * z.shape[1])


def test_secu_is_the_sum_of_both_cross_entropies_and_so_are_its_gradients():
    z, centers = case()
    dual = torch.tensor([0.0, 0.3, 0.1], dtype=torch.float64)
    z, centers = z.requires_grad_(), centers.requires_grad_()
    previous = centers.detach().roll(1, 0) + 0.1
    network, heads = (slow_secu(z, centers, previous, dual, of_network=of_network) for of_network in (True, False))
    loss = SeCuObjective().loss({"centers": centers, "previous": previous, "dual": dual}, z)
    torch.testing.assert_close(loss, network + heads)
    expected = torch.autograd.grad(network + heads, (z, centers))
    torch.testing.assert_close(torch.autograd.grad(loss, (z, centers)), expected)


def test_secu_favors_small_clusters_until_they_have_their_share():
    z = torch.eye(3, dtype=torch.float64)[[0] * 8 + [1] * 2]
    objective = SeCuObjective(smallest=0.9, rate=0.1)
    state = objective.update(objective.init(torch.eye(3, dtype=torch.float64)), z)
    expected = [max(0, 0.1 * (0.3 - share)) for share in (0.8, 0.2, 0.0)]
    assert state["dual"].tolist() == pytest.approx(expected) and torch.equal(state["centers"], torch.eye(3).double())
    state["dual"] = torch.tensor([0.0, 0.0, 2.0]).double()
    assert (objective.members(state, z.unsqueeze(0)).argmax(-1) == 2).all() and set(objective.assign(state, z).tolist()) == {0, 1}


@every
def test_brb_resets_the_network_and_places_the_prototypes(objective):
    base = small_settings(objective=objective, clustering=PAIRS, intervention=None)
    without, with_brb = (train(X, replace(base, intervention=brb), seeds=(0,)) for brb in (None, BRB(2, method=KMeans(n_init=2))))
    assert with_brb.history["clustering"]["fired"].epochs.tolist() == [2, 4]
    for name in ("encoder.1.weight", "encoder.2.weight"):
        assert not torch.allclose(without.parameters[name], with_brb.parameters[name])
    placed = []

    def watch(snapshot):
        if snapshot.moment == "intervention":
            means = [snapshot.embeddings[0][snapshot.labels[0] == j].mean(0) for j in range(4)]
            placed.append(float((torch.stack(means) - snapshot.centers[0]).norm() / snapshot.centers[0].norm()))

    train(X, replace(base, intervention=BRB(2, method=KMeans(n_init=2))), seeds=(0,), monitors=[watch])
    assert len(placed) == 2 and max(placed) < 0.5  # prototypes are means of their samples, but for the cosine
    assert len(np.unique(with_brb.labels)) > 1 and not with_brb.failed


@every
def test_color_images_with_neighbors_in_the_embedding(objective):
    schedule = Schedule(epochs=2, batch_size=16, views=("augmented", "neighbor"), neighbors=4, neighbors_in="embedding")
    result = train(IMAGES, contrastive(objective=objective, clustering=schedule), seeds=(5, 6))
    assert result.labels.shape == (2, len(IMAGES)) and not result.failed


def test_neighbors_in_the_embedding_are_each_replicas_own_and_those_of_the_start(tmp_path):
    seen = []

    def only_neighbors(x, keys):
        seen.append(x.clone())
        return x

    schedule = replace(PAIRS, epochs=2, neighbors=1, neighbors_in="embedding", batch_size=120)
    base = small_settings(objective=SCANObjective(), clustering=schedule, augment=only_neighbors, intervention=None)
    start = train(X, replace(base, clustering=None), seeds=(0, 1))
    seen.clear()
    train(X, base, seeds=(0, 1), start=start)
    views = [x for x in seen if x.shape[-2:] == X.shape][-1].reshape(2, *X.shape)
    for replica in range(2):
        model = start.model(replica)
        z = model.embed(torch.from_numpy(X).float())
        rows = nearest_neighbors(torch.nn.functional.normalize(z, dim=-1), 1)[:, 0]
        expected = torch.from_numpy(X).float()[rows]
        assert torch.equal(views[replica].sort(0).values, expected.sort(0).values)


def test_a_resumed_run_keeps_the_neighbors_of_its_start(tmp_path):
    settings = small_settings(objective=SCANObjective(), clustering=replace(PAIRS, neighbors_in="embedding"),
                              representation=Autoencoder(hidden=(16,)))
    whole = train(X, settings, seeds=(0, 1))
    with pytest.raises(Stop):
        train(X, settings, seeds=(0, 1), checkpoint=Checkpoint(tmp_path / "run", every=1), monitors=[stop_at("clustering", 3)])
    assert equal(train(X, settings, seeds=(0, 1), checkpoint=Checkpoint(tmp_path / "run", every=1)), whole)


def test_secu_forgets_the_centers_before_a_reset(monkeypatch):
    restarted, restart = [], SeCuObjective.restart

    def watched(self, state):
        restarted.append((state["centers"] - state["previous"]).abs().max().item())
        return restart(self, state)

    monkeypatch.setattr(SeCuObjective, "restart", watched)
    settings = small_settings(objective=SeCuObjective(), intervention=BRB(2), clustering=replace(PAIRS, views=("clean", "clean")))
    train(X, settings, seeds=[0, 1])
    assert len(restarted) == 4 and min(restarted) > 0  # two replicas at two epochs
    state = restart(SeCuObjective(), {"centers": torch.ones(3, 2), "previous": torch.zeros(3, 2), "dual": torch.ones(3)})
    assert state["previous"].eq(1).all() and not state["dual"].any()


@pytest.mark.parametrize("objective", [SCANObjective(), SeCuObjective()], ids=["scan", "secu"])
def test_heads_on_given_features_with_and_without_brb(objective):
    """Features of another model, clustered by a small network on top of them, with neighbors among the features."""
    features, labels = blobs(n=200, features=32, spread=1.5)
    pairs = Schedule(epochs=12, batch_size=50, views=("clean", "neighbor"), neighbors=5)
    base = Settings(4, objective, Embeddings(hidden=(32,), embedding=8), pretraining=Schedule(5, batch_size=50, views=("clean",)), clustering=pairs)
    for intervention in (None, BRB(4)):
        result = train(features, replace(base, intervention=intervention), seeds=(0,))
        assert metrics.accuracy(labels, result.labels[0]) > 0.9
