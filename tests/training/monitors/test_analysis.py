"""Monitors of embeddings, centres and weights: the same numbers as by hand, around each reset, and nothing disturbed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import silhouette_score
from support import Stop, blobs, small_settings, stop_at

from reclust import (
    BRB,
    Checkpoint,
    DCNObjective,
    Evaluation,
    Execution,
    KMeans,
    Result,
    Schedule,
    draws,
    geometry,
    metrics,
    train,
)
from reclust.training.history import around_resets
from reclust.training.monitors.analysis import (
    DistanceRatios,
    Distances,
    EmbeddingRows,
    Extremes,
    FinalKMeans,
    GradientNorms,
    Norms,
    Purity,
    ReconstructionLoss,
    Sizes,
)

X, Y = blobs(200)
SEEDS = (3, 1)
EXACT = Execution(device="cpu", precision="float64")


def all_monitors(**given):
    return [Evaluation(Y, **given), Distances(Y, **given), DistanceRatios(bins=8, **given), Purity(Y, **given), Norms(**given),
            ReconstructionLoss(**given), Sizes(**given), EmbeddingRows(range(0, 200, 10))]


def trained(monitors, settings=None, **given):
    return train(X, settings or small_settings(), seeds=SEEDS, monitors=monitors, execution=EXACT, **given)


@pytest.fixture(scope="module")
def looked_at():
    return trained(all_monitors())


def test_the_last_values_are_those_of_the_trained_models(looked_at):
    last = {name: curve.values[-1] for name, curve in looked_at.history["clustering"].items()}
    samples = torch.from_numpy(X)
    for i, labels in enumerate(looked_at.labels):
        model = looked_at.model(i)
        z, centers = model.embed(samples), model.state["centers"]
        true, predicted = (geometry.class_distances(z, torch.from_numpy(own)) for own in (Y, labels))
        expected = {
            "accuracy": metrics.accuracy(Y, labels), "intra_class_distance": true.intra.mean(), "inter_class_distance": true.inter.mean(),
            "silhouette": silhouette_score(z, Y, metric="cosine"), "silhouette_predicted": silhouette_score(z, labels, metric="cosine"),
            "intra_class_distance_predicted": predicted.intra.mean(), "inter_class_distance_predicted": predicted.inter.mean(),
            "distance_ratio_histogram": np.histogram(geometry.distance_ratio(z, centers), bins=8, range=(0, 1))[0],
            "local_purity": geometry.local_purity(z, torch.from_numpy(Y)).mean(),
            "majority_share_100": geometry.majority_share(z, torch.from_numpy(Y), samples=100).mean(),
            "embedding_norm": z.norm(dim=1).mean(), "center_norm": centers.norm(dim=1).mean(),
            "parameter_norm": torch.cat([own.flatten() for own in model.network.parameters()]).norm(),
            "reconstruction_loss": (model.network.decoder(z) - samples).square().mean().detach(),
            "cluster_sizes": np.bincount(labels, minlength=4), "empty_clusters": (np.bincount(labels, minlength=4) == 0).sum(),
            "embedding": z[::10].float(), "centers": centers.float(),
        }
        for name, own in expected.items():
            np.testing.assert_allclose(last[name][i], own, rtol=1e-6, atol=1e-12, err_msg=name)


def test_nothing_is_disturbed(looked_at):
    blind = trained([])
    assert (blind.labels == looked_at.labels).all()
    for group in ("parameters", "state"):
        assert all(torch.equal(own, getattr(looked_at, group)[name]) for name, own in getattr(blind, group).items())


def test_known_embeddings_spare_the_encoder_and_change_nothing(monkeypatch):
    settings = small_settings(intervention=BRB(2, method=KMeans(n_init=2)))
    alone = trained([ReconstructionLoss()], settings).history["clustering"]
    beside = trained([Distances(), ReconstructionLoss()], settings).history["clustering"]
    for column in ("reconstruction_loss", "reconstruction_loss_after_reset"):
        np.testing.assert_allclose(alone[column].values, beside[column].values, rtol=1e-6)
    monkeypatch.setattr("reclust.representations.base.encode_together", lambda encoder, views: pytest.fail("encoded again"))
    train(X, replace(settings, pretraining=None, clustering=replace(settings.clustering, epochs=0)), seeds=[1], monitors=[Distances(), ReconstructionLoss()])


def test_each_reset_is_seen_before_right_after_and_one_epoch_later():
    seen = {}

    def spy(snapshot):
        if snapshot.phase == "clustering":
            seen[snapshot.moment, snapshot.epoch] = snapshot.labels.clone(), snapshot.embeddings.clone(), snapshot.centers.clone()

    settings = small_settings(intervention=BRB(3, keep=0.3, method=KMeans(n_init=2)), clustering=Schedule(8, batch_size=50))
    columns = trained([spy, *all_monitors(every=100)], settings).history["clustering"]
    assert columns["silhouette"].epochs.tolist() == [-1, 2, 3, 5, 6, 7] == columns["embedding"].epochs.tolist()
    assert columns["silhouette_after_reset"].epochs.tolist() == [3, 6]
    for name in ("accuracy", "parameter_norm", "embedding", "distance_ratio_histogram", "reconstruction_loss"):
        found = around_resets(columns, name)
        assert found.epochs.tolist() == [3, 6] and found.values.shape[:3] == (2, 3, 2)
        assert not (found.values[:, 0] == found.values[:, 1]).all(), "a reset changes it"
    embedding = around_resets(columns, "embedding").values
    sizes = around_resets(columns, "cluster_sizes").values
    for i, epoch in enumerate((3, 6)):
        for j, moment in enumerate((("epoch", epoch - 1), ("intervention", epoch), ("epoch", epoch))):
            labels, z, centers = seen[moment]
            np.testing.assert_array_equal(embedding[i, j], z[:, ::10].float())
            np.testing.assert_array_equal(sizes[i, j], metrics.cluster_sizes(labels, 4))
        change = [[metrics.label_change(a, b) for a, b in zip(seen["epoch", epoch - 1][0], seen[moment][0], strict=True)]
                  for moment in (("intervention", epoch), ("epoch", epoch))]
        np.testing.assert_allclose(around_resets(columns, "label_change").values[i, 1:], change, atol=1e-9)


def test_a_monitor_knows_for_each_replica_that_a_reset_comes_next():
    told = {}

    def spy(snapshot):
        if snapshot.phase == "clustering":
            told[snapshot.moment, snapshot.epoch] = snapshot.fires_next.tolist()

    variants = [small_settings(intervention=one) for one in (BRB(2, method=KMeans(n_init=1)), None)]
    train(X, variants, seeds=SEEDS, monitors=[spy], execution=EXACT)
    assert {moment for moment, next_ones in told.items() if next_ones[0]} == {("epoch", 1), ("epoch", 3)}
    assert not any(next_ones[1] for next_ones in told.values())


@pytest.mark.parametrize("at", [1, 2, 3])
def test_resumed_histories_are_those_of_an_uninterrupted_run(tmp_path, looked_at, at):
    checkpoint = Checkpoint(tmp_path / "run", every=1)
    with pytest.raises(Stop):
        trained([*all_monitors(), stop_at("clustering", at)], checkpoint=checkpoint)
    assert_same_history(trained(all_monitors(), checkpoint=checkpoint), looked_at)


def assert_same_history(one, other):
    columns = one.history["clustering"]
    assert columns.keys() == other.history["clustering"].keys()
    for name, curve in columns.items():
        again = other.history["clustering"][name]
        np.testing.assert_array_equal(curve.epochs, again.epochs, err_msg=name)
        np.testing.assert_array_equal(curve.values, again.values, err_msg=name)


def test_values_with_axes_of_their_own_survive_a_file(tmp_path, looked_at):
    looked_at.save(tmp_path / "result")
    assert_same_history(Result.load(tmp_path / "result"), looked_at)


def test_embeddings_can_be_kept_at_chosen_epochs():
    columns = trained([EmbeddingRows([5, 7], epochs=(-1, 2, 3))]).history["clustering"]
    assert columns["embedding"].epochs.tolist() == [-1, 2, 3] and columns["embedding_after_reset"].epochs.tolist() == [2]
    assert columns["embedding"].values.shape == (3, 2, 2, 4) and columns["embedding"].values.dtype == np.float32


def test_without_resets_there_is_nothing_around_them_and_nothing_to_fear():
    settings = replace(small_settings(intervention=None), objective=DCNObjective())
    columns = trained(all_monitors(every=2), settings).history["clustering"]
    assert columns["silhouette"].epochs.tolist() == [-1, 1, 3, 4] and "fired" not in columns
    assert not any(name.endswith("_after_reset") for name in columns)


def test_stacked_equals_separate(looked_at):
    alone = train(X, small_settings(), seeds=SEEDS[1:], monitors=all_monitors(), execution=EXACT).history["clustering"]
    for name, curve in looked_at.history["clustering"].items():
        np.testing.assert_allclose(curve.values[:, 1], alone[name].values[:, 0], rtol=1e-6, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("kind", [Evaluation, Distances, Purity])
def test_labels_of_another_data_set_are_refused(kind):
    with pytest.raises(ValueError, match="y has 199 labels for 200 samples"):
        trained([kind(Y[1:])])


def test_the_histogram_is_numpys_and_leaves_out_what_is_not_a_number():
    z, centers = (draws.normal(draws.key([0, 1]), (n, 3)) + 1 for n in (500, 6))
    found = geometry.distance_ratio_histogram(z, centers, bins=10)
    for own, ratio in zip(found, geometry.distance_ratio(z, centers), strict=True):
        np.testing.assert_array_equal(own, np.histogram(ratio, bins=10, range=(0, 1))[0])
    z[0, :100] = torch.nan
    assert geometry.distance_ratio_histogram(z, centers).sum(-1).tolist() == [400, 500]
    assert geometry.distance_ratio_histogram(centers[0], centers[0], bins=4).tolist() == [6, 0, 0, 0]


def test_ratios_and_label_changes_by_hand(looked_at):
    columns, last = looked_at.history["clustering"], {}
    for moment, epochs in (("before", 4), ("last", 5)):
        settings = small_settings(clustering=Schedule(epochs, batch_size=50))
        last[moment] = train(X, settings, seeds=SEEDS, execution=EXACT)
    for i in range(len(SEEDS)):
        z = last["last"].model(i).embed(torch.from_numpy(X))
        ratio = geometry.distance_ratio(z, last["last"].state["centers"][i])
        wanted = {"mean": ratio.mean(), "std": ratio.std(), "min": ratio.min(), "max": ratio.max()}
        for name, own in wanted.items():
            assert columns[f"distance_ratio_{name}"].values[-1, i] == pytest.approx(own.item())
        scores = metrics.scores(last["before"].labels[i], last["last"].labels[i])
        for name in ("accuracy", "ari"):
            assert columns[f"label_change_{name}"].values[-1, i] == pytest.approx(100 * (1 - scores[name]))


def test_k_means_at_the_end_scores_what_was_embedded():
    result = trained([FinalKMeans(Y)])
    for i in range(len(SEEDS)):
        z = result.model(i).embed(torch.from_numpy(X))
        labels = KMeans().fit(z, 4, draws.key(0)).labels
        assert result.history["clustering"]["kmeans_accuracy"].values[:, i].tolist() == [metrics.accuracy(Y, labels)]


def test_every_column_is_documented(looked_at):
    text = (Path(__file__).parents[3] / "docs/guides/monitoring.md").read_text()
    plain = {name.removesuffix("_after_reset").removesuffix("_predicted") for name in looked_at.history["clustering"]}
    assert [name for name in plain if f"`{name}`" not in text] == []


def test_recorded_centres_are_those_of_their_moment():
    """Training goes on writing to the centres: what was recorded must not change with them."""
    result = train(X.astype(np.float32), small_settings(), seeds=SEEDS, monitors=[EmbeddingRows(range(5))], execution=Execution("cpu"))
    columns = result.history["clustering"]
    assert len(np.unique(columns["centers"].values.reshape(len(columns["centers"].epochs), -1), axis=0)) > 2


def test_a_part_of_the_samples_is_evaluated_as_if_it_were_all():
    rows = np.linspace(0, len(X) - 1, 40).astype(int)
    seen = []

    def look(snapshot):
        if snapshot.moment == "epoch" and snapshot.phase == "clustering":
            seen.append(snapshot.labels.numpy()[:, rows])

    columns = trained([Evaluation(Y, limit=40), look]).history["clustering"]
    np.testing.assert_allclose(columns["accuracy"].values[-1], [metrics.accuracy(Y[rows], labels) for labels in seen[-1]])
    np.testing.assert_allclose(columns["label_change"].values[-1], [metrics.label_change(*both) for both in zip(*seen[-2:], strict=True)], atol=1e-9)
    every, limited = (trained([Evaluation(Y, **given)]).history["clustering"] for given in ({}, {"limit": len(X)}))
    assert all((every[name].values == limited[name].values).all() for name in ("accuracy", "label_change"))


def test_extremes_are_those_of_the_end_although_the_last_epoch_begins_with_a_reset():
    result = train(X, small_settings(pretraining=None, clustering=Schedule(3, batch_size=30)), seeds=[0], execution=EXACT, monitors=[Extremes()])
    columns = result.history["clustering"]
    assert columns["fired"].epochs.tolist() == [2] and columns["nearest"].epochs.tolist() == [2] and "nearest_after_reset" not in columns


def test_purity_of_some_samples_is_by_their_own_labels():
    y = np.sort(Y)
    result = train(X[np.argsort(Y, kind="stable")], small_settings(pretraining=None, intervention=None), seeds=[0], execution=EXACT, monitors=[Purity(y, limit=20, neighbors=3)])
    rows = np.linspace(0, len(X) - 1, 20).astype(int)
    z = result.model(0).embed(torch.from_numpy(X[np.argsort(Y, kind="stable")]))
    expected = geometry.local_purity(z[rows], torch.from_numpy(y[rows]), neighbors=3).mean()
    assert result.history["clustering"]["local_purity"].values[-1, 0] == pytest.approx(float(expected))


@pytest.mark.parametrize("executor", ["auto", "vmap"])
def test_norms_of_gradients_are_those_of_one_step_by_hand(executor):
    settings = small_settings(pretraining=None, intervention=None, clustering=Schedule(1, batch_size=200, clip_norm=1e9))
    execution = replace(EXACT, executor=executor)
    start = train(X, replace(settings, clustering=Schedule(0)), seeds=SEEDS, execution=EXACT)
    columns = train(X, settings, seeds=SEEDS, monitors=[GradientNorms()], execution=execution).history["clustering"]
    for i in range(len(SEEDS)):
        model, samples = start.model(i), torch.from_numpy(X)
        z = model.network.requires_grad_().encoder(samples)
        loss = (model.network.decoder(z) - samples).square().mean() + settings.objective.weight * settings.objective.loss(model.state, z[None])
        gradients = torch.autograd.grad(loss, list(model.network.parameters()))
        for column, order in (("gradient_l0_norm", 0), ("gradient_l1_norm", 1), ("gradient_norm", 2)):
            expected = torch.cat([own.flatten() for own in gradients]).norm(order)
            np.testing.assert_allclose(columns[column].values[0, i], expected, rtol=1e-9)
