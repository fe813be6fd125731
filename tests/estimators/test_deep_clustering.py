"""The scikit-learn contract, and what a user may bring."""

import os
import pickle
import sys
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from support import blobs

import reclust
from reclust import (
    BRB,
    DCN,
    DEC,
    IDEC,
    Autoencoder,
    DCNObjective,
    DeepClustering,
    Every,
    IDECObjective,
    KMeans,
    OwnAutoencoder,
    ReclustWarning,
    Result,
    SoftReset,
    TrainingFailed,
)  # fmt: skip
from reclust.data.accept import accept
from reclust.data.preparation import Preparation
from reclust.estimators.baseline import k_means_baseline

X, Y = blobs(n=120)


def quick(kind=IDEC, **changes):
    given = {"n_clusters": 4, "pretrain_epochs": 30, "epochs": 15, "batch_size": 32, "representation": Autoencoder((32, 16)),
             "intervention": BRB(5, method=KMeans(n_init=2)), "random_state": 0, "device": "cpu"}
    return kind(**{**given, **changes})


@parametrize_with_checks([quick(kind, pretrain_epochs=5, epochs=7) for kind in (DEC, IDEC, DCN)])
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReclustWarning)  # the checks' tiny data leave clusters empty on purpose
        check(estimator)


@pytest.mark.parametrize("kind", [DEC, IDEC, DCN])
def test_the_three_find_obvious_clusters(kind):
    model = quick(kind).fit(X)
    assert adjusted_rand_score(Y, model.labels_) > 0.9
    assert (model.labels_ == model.predict(X)).all() and set(model.labels_) == {0, 1, 2, 3}
    assert model.cluster_centers_.shape == (4, 4) and model.n_features_in_ == 12 and model.n_clusters_ == 4
    assert model.transform(X).shape == (120, 4)
    probabilities = model.predict_proba(X)
    assert (probabilities.argmax(1) == model.labels_).all()
    assert probabilities.sum(1) == pytest.approx(np.ones(120))


@pytest.mark.parametrize("bring", [
    lambda X: X.tolist(), lambda X: X.astype(np.float32), lambda X: torch.from_numpy(X), lambda X: np.asfortranarray(X),
    lambda X: pytest.importorskip("pandas").DataFrame(X, columns=[f"gene{i}" for i in range(X.shape[1])]),
], ids=["list", "float32", "tensor", "fortran", "frame"])
def test_whatever_holds_the_numbers(bring):
    model = quick().fit(bring(X))
    assert (model.labels_ == model.predict(bring(X))).all()
    assert adjusted_rand_score(model.labels_, quick().fit(X).labels_) > 0.99


def test_memory_mapped_files_are_read_and_not_changed(tmp_path):
    np.save(tmp_path / "x.npy", X)
    before = (tmp_path / "x.npy").read_bytes()
    model = quick().fit(np.load(tmp_path / "x.npy", mmap_mode="r"))
    assert (model.labels_ == quick().fit(X).labels_).all()
    assert (tmp_path / "x.npy").read_bytes() == before


def test_images_in_every_layout_are_the_same_images():
    rng = np.random.default_rng(0)
    prototypes = rng.integers(0, 255, size=(3, 6, 5))
    images = np.clip(prototypes[np.arange(90) % 3] + rng.normal(scale=20, size=(90, 6, 5)), 0, 255).astype(np.uint8)
    labels = [quick(n_clusters=3, augment="affine", **hint).fit(array).labels_ for array, hint in (
        (images, {}), (images[..., None], {}), (torch.from_numpy(images[:, None]), {}), (images.reshape(90, 30), {"image_shape": (6, 5)}),
        (images.reshape(90, 30).astype(float), {"image_shape": (6, 5, 1)}))]
    assert all((other == labels[0]).all() for other in labels)
    assert adjusted_rand_score(np.arange(90) % 3, labels[0]) > 0.9


def test_colour_images_as_torch_has_them_are_the_same_images():
    images = np.random.default_rng(0).integers(0, 255, size=(40, 6, 5, 3)).astype(np.uint8)
    first = np.moveaxis(images, -1, 1)
    model, other = brief().fit(images), brief(image_shape=(6, 5, 3)).fit(first)
    assert (brief().fit(first).labels_ == model.labels_).all() and (other.labels_ == model.labels_).all()
    assert (model.predict(first) == model.labels_).all() and model.predict(first[:1]) == model.labels_[0]
    told = brief(image_shape=(3, 6, 5)).fit(first)
    assert told.preparation_.image_shape == (3, 6, 5), "who says so may have images of few rows and many channels"


def test_scales_and_constant_features_do_not_matter():
    scaled = np.column_stack([X * 10.0 ** np.arange(-6, 6), np.full(120, 7.0), np.zeros(120)])
    assert adjusted_rand_score(Y, quick().fit(scaled).labels_) > 0.9
    assert quick(standardize=False).fit(X).preparation_.first.scale == 1


def test_images_that_are_not_standardised_are_augmented_in_the_unit_range_all_the_same():
    images = np.random.default_rng(0).integers(3, 200, (20, 4, 4, 3), dtype=np.uint8)
    kept = Preparation.fit(accept(images), standardize=False)
    assert kept.inputs(images).samples.min() >= 0 and kept.inputs(images).samples.max() <= 1  # what augmentations know
    np.testing.assert_allclose(kept.network_input(images).numpy(), np.moveaxis(images, -1, 1), atol=1e-9)


def test_n_init_keeps_the_replica_with_the_highest_score_and_shows_all():
    model = quick(n_init=3).fit(X)
    scores = [replica.score for replica in model.replicas_]
    assert len(scores) == 3 and model.best_replica_ == int(np.argmax(scores))
    assert all(replica.labels.shape == (120,) for replica in model.replicas_)
    assert adjusted_rand_score(model.labels_, model.replicas_[model.best_replica_].labels) == 1
    assert [replica.seed for replica in quick(n_init=2).fit(X).replicas_] == [replica.seed for replica in model.replicas_[:2]]


def test_labels_given_to_fit_are_scored_and_change_nothing():
    blind, scored = quick(n_init=2).fit(X), quick(n_init=2).fit(X, np.array(list("abcd"))[Y])
    assert (blind.labels_ == scored.labels_).all()
    assert "accuracy" in scored.history_["clustering"] and "accuracy" not in blind.history_["clustering"]
    assert scored.history_["clustering"]["accuracy"].values[-1] == pytest.approx(reclust.metrics.accuracy(Y, scored.labels_))


def test_the_baseline_is_k_means_on_the_standardised_samples():
    model = quick().fit(X)
    standardised = (X - X.mean(0)) / X.std(0)
    assert model.baseline_.inertia_ == pytest.approx(SklearnKMeans(4, n_init=10, random_state=0).fit(standardised).inertia_, rel=0.01)
    assert model.baseline_.labels_.shape == (120,) and model.baseline_.cluster_centers_.shape == (4, 12)


def test_no_more_of_the_samples_becomes_dense_for_it_than_it_looks_at(monkeypatch):
    monkeypatch.setattr("reclust.estimators.baseline.MAX_NUMBERS", 50 * 12)
    seen, load = [], Preparation.network_input
    monkeypatch.setattr(Preparation, "network_input", lambda self, rows: seen.append(rows.shape[0]) or load(self, rows))
    preparation = Preparation.fit(accept(X), standardize=True)
    made = k_means_baseline(sparse.csr_matrix(X), preparation, 4, seed=0, device=torch.device("cpu"))
    assert max(seen) == 6 and sum(seen) == 50 + 120, "of 12 numbers each, in eight parts; then all, to be labelled"
    assert reclust.metrics.ari(made.labels_, Y) > 0.9


@pytest.mark.parametrize("shape", [(60, 3), (3, 60)])
def test_series_of_several_channels_are_no_images(shape):
    series = np.random.default_rng(0).normal(size=(40, *shape))
    with pytest.warns(ReclustWarning, match=rf"read as grey images.*X.reshape.*image_shape=\({shape[0]}, {shape[1]}\)"):
        brief(n_clusters=3).fit(series)
    brief(n_clusters=3, image_shape=shape).fit(series)


def test_dead_clusters_are_not_spoken_of():
    few = np.repeat([[0.0, 0.0], [1.0, 5.0], [9.0, 2.0]], 10, axis=0)
    with pytest.warns(ReclustWarning, match="clusters ended without samples"):
        model = quick(n_clusters=6).fit(few)
    assert model.n_clusters_ < 6 and set(model.labels_) == set(range(model.n_clusters_))
    assert model.cluster_centers_.shape[0] == model.predict_proba(few).shape[1] == model.n_clusters_
    assert (model.predict(few) == model.labels_).all() and model.predict(np.random.default_rng(0).normal(size=(50, 2)) * 9).max() < model.n_clusters_


@pytest.mark.parametrize(("n", "k"), [(2, 1), (2, 2), (5, 5), (30, 1)])
def test_tiny_data(n, k):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReclustWarning)
        model = quick(n_clusters=k).fit(X[:n])
    assert set(model.labels_) <= set(range(k)) and (model.predict(X[:n]) == model.labels_).all()


def test_predictions_do_not_depend_on_order_or_company():
    model = quick().fit(X)
    order = np.random.default_rng(0).permutation(120)
    assert (model.predict(X[order]) == model.predict(X)[order]).all()
    assert [model.predict(row[None])[0] for row in X[:20]] == model.predict(X)[:20].tolist()


def test_pipeline_clone_grid_search_set_output_and_pickle():
    pd = pytest.importorskip("pandas")
    pipeline = make_pipeline(MinMaxScaler(), quick()).fit(X)
    assert adjusted_rand_score(Y, pipeline.predict(X)) > 0.9
    assert clone(quick(lr=3e-3)).get_params()["lr"] == 3e-3
    scorer = lambda model, X, y: adjusted_rand_score(y, model.predict(X))  # noqa: E731
    search = GridSearchCV(quick(epochs=6), {"n_clusters": [2, 4]}, scoring=scorer, cv=2).fit(X, Y)
    assert search.best_params_ == {"n_clusters": 4}
    frame = quick().fit(X).set_output(transform="pandas").transform(X)
    assert isinstance(frame, pd.DataFrame) and list(frame.columns) == ["idec0", "idec1", "idec2", "idec3"]
    model = quick().fit(X)
    assert (pickle.loads(pickle.dumps(model)).predict(X) == model.labels_).all()


@pytest.mark.parametrize("changes", [{}, {"n_init": 2, "augment": "noise"}, {"objective": IDECObjective(0.3), "lr": 2e-3}])
def test_a_saved_model_predicts_the_same(tmp_path, changes):
    model = quick(**changes).fit(X, Y)
    model.save(tmp_path / "m.reclust")
    loaded = reclust.load(tmp_path / "m.reclust")
    assert type(loaded) is IDEC and loaded.get_params() == model.get_params()
    for method in ("predict", "predict_proba", "transform"):
        assert (getattr(loaded, method)(X) == getattr(model, method)(X)).all()
    assert (loaded.labels_ == model.labels_).all() and loaded.best_replica_ == model.best_replica_
    assert (loaded.history_["clustering"]["loss"].values == model.history_["clustering"]["loss"].values).all()
    assert loaded.baseline_.inertia_ == model.baseline_.inertia_


def test_files_that_are_no_models_are_refused(tmp_path):
    for content in (b"", b"not a model", b"\x00" * 100):
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises(ValueError, match="damaged or not a reclust file"):
            reclust.load(tmp_path / "bad")
    with pytest.raises(FileNotFoundError, match="There is no file .*model.reclust"):
        reclust.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        reclust.load(tmp_path / "absent")


def test_ones_own_modules():
    encoder = torch.nn.Sequential(torch.nn.Linear(12, 24), torch.nn.Tanh(), torch.nn.Linear(24, 5))
    decoder = torch.nn.Sequential(torch.nn.Linear(5, 24), torch.nn.Tanh(), torch.nn.Linear(24, 12))
    given = encoder[0].weight.detach().clone()
    model = quick(representation=OwnAutoencoder(encoder, decoder)).fit(X)
    assert adjusted_rand_score(Y, model.labels_) > 0.9 and model.transform(X).shape == (120, 5)
    assert torch.equal(encoder[0].weight, given), "the user's modules are left alone"
    own = OwnAutoencoder(encoder, decoder, weights="given")
    kept = quick(representation=own, pretrain_epochs=0, epochs=1, lr=1e-30, intervention=None).fit(X)
    assert torch.allclose(kept.result_.parameters["encoder.0.weight"][0], given)


def test_the_intervention_is_brb_unless_said_otherwise_and_a_warning_tells_when_it_never_fires():
    assert IDEC(10)._recipe().settings.intervention.steps == BRB().steps
    assert IDEC(10, intervention=None)._recipe().settings.intervention is None
    with pytest.warns(ReclustWarning, match="never fires within epochs=3") as seen:
        quick(epochs=3).fit(X)
    assert len(seen) == 1


def test_the_paper_preset_is_the_published_protocol():
    settings = DCN(10, preset="paper")._recipe().settings
    assert settings.objective == reclust.DCNObjective(weight=0.025, rate="constant", reduction="mean_over_clusters")
    assert (settings.pretraining.epochs, settings.clustering.epochs, settings.clustering.batch_size) == (250, 400, 256)
    assert settings == reclust.estimators.presets.paper_protocol(10, reclust.DCNObjective())
    assert DCN(10, preset="paper", epochs=70)._recipe().settings.clustering.epochs == 70


@pytest.mark.parametrize(("changes", "data", "message"), [
    ({}, np.where(X == X[7, 3], np.nan, X), r"X: missing or infinite values in 'feature 3' \(1 of 120 rows\)"),
    ({}, np.where(X > 3, np.inf, X), "missing or infinite values in 'feature"), ({}, X[:0], "0 sample"),
    ({"n_clusters": 10}, X[:7], "n_clusters=10 needs at least 10 samples, X has n_samples=7"), ({}, [["a", "b"]] * 9, "could not convert"),
    ({"epochs": 0}, X, "epochs must be an integer of at least 1"), ({"pretrain_epochs": -1}, X, "pretrain_epochs must be an integer of at least 0"),
    ({"device": "abacus"}, X, "cannot be used here"), ({"n_init": 0}, X, "n_init must be"), ({"lr": -1.0}, X, "lr must be above 0"),
    ({"preset": "magic"}, X, "preset must be one of"), ({"augment": "magic"}, X, "augment must be one of auto"),
    ({"intervention": "magic"}, X, "intervention must be"), ({"image_shape": (5, 5)}, X, "image_shape=\\(5, 5\\) does not match"),
    ({"n_clusters": 0}, X, "n_clusters must be an integer"),
])
def test_bad_input_gets_a_clear_error_before_training(changes, data, message):
    with pytest.raises(ValueError, match=message):
        quick(**changes).fit(data)


def test_wrong_width_at_predict_is_refused():
    with pytest.raises(ValueError, match="X has 5 features, but IDEC is expecting 12"):
        quick().fit(X).predict(X[:, :5])


def test_the_general_estimator_takes_any_objective():
    model = quick(DeepClustering, objective=IDECObjective(0.2)).fit(X)
    assert adjusted_rand_score(Y, model.labels_) > 0.9
    with pytest.raises(ValueError, match="objective must be an instance of Objective"):
        quick(DeepClustering).fit(X)


# Found before training


@pytest.fixture
def no_training(monkeypatch):
    monkeypatch.setattr("reclust.training.phase.Phase.run", lambda *_: pytest.fail("training had begun"))


IMAGES = np.random.default_rng(0).integers(0, 255, size=(40, 6, 5)).astype(np.uint8)


def brief(kind=IDEC, **changes):
    """A fit in a fifth of a second: for what does not depend on how well it goes."""
    return quick(kind, **{"pretrain_epochs": 1, "epochs": 2, "intervention": None, "representation": Autoencoder((8,)), **changes})


@pytest.mark.parametrize("y", [Y[:-1], np.append(Y, 0), Y[:0], Y.tolist()[:7], np.stack([Y, Y], axis=1)], ids=["short", "long", "empty", "list", "two columns"])
def test_labels_that_do_not_go_with_the_samples_are_refused_before_training(no_training, y):
    with pytest.raises(ValueError, match="inconsistent numbers of samples|1d array"):
        quick().fit(X, y)


@pytest.mark.parametrize(("changes", "data", "message"), [
    ({"augment": "affine"}, X, "image_shape.*\\(2, 12\\)"), ({"augment": "noise"}, IMAGES, "for tables.*\\(2, 1, 6, 5\\)"),
    ({"augment": "color"}, X, "image_shape"), ({"augment": 5}, X, "augment must be an instance of Callable, got 5"),
    ({"augment": lambda x, keys: x[..., :3]}, X, "samples of shape \\(2, 12\\) into .* of shape \\(2, 3\\): it must keep both"),
    ({"augment": lambda x, keys: x.numpy()}, X, "into float32 of shape"),
    ({"intervention": SoftReset(0.8)}, X, "intervention must be an instance of Intervention, got SoftReset"),
    ({"intervention": BRB}, X, "intervention must be an instance of Intervention, got .*: write BRB\\(\\)"),
    ({"intervention": Every}, X, "intervention must be an instance of Intervention, got .*: write Every\\(\\)"),
    ({"objective": "dec"}, X, "objective must be an instance of Objective, got 'dec'"),
    ({"objective": DCNObjective}, X, "objective must be an instance of Objective, got .*: write DCNObjective\\(\\)"),
    ({"representation": Autoencoder}, X, "representation must be an instance of Representation, got .*: write Autoencoder"),
    ({"representation": torch.nn.Linear(12, 4)}, X, "representation must be an instance of Representation, got Linear"),
    ({"intervention": Every(5, (SoftReset(0.8, blocks=("layer7",)),))}, X, "No block named 'layer7' to reset; this encoder has layer1, layer2, embedding"),
    ({"intervention": BRB(5, keep={"mlp": 0.5})}, X, "No block named 'mlp' to reset"),
    ({"n_init": 2, "select": "best"}, X, "select must be an instance of Callable"), ({"image_shape": (4, 4)}, IMAGES, "image_shape=\\(4, 4\\) does not match"),
])
def test_things_of_the_wrong_kind_are_refused_before_training(no_training, changes, data, message):
    with pytest.raises(ValueError, match=message):
        quick(**changes).fit(data)


def test_a_custom_objective_is_saved_only_as_a_value(tmp_path):
    class Plain:
        """DCN by another name."""

        weight, representation_weight, trainable, per_cluster = 0.1, 1.0, frozenset(), frozenset({"centers", "count"})
        init, loss, assign, update = (getattr(DCNObjective(), name) for name in ("init", "loss", "assign", "update"))

    from dataclasses import dataclass

    model = brief(DeepClustering, objective=dataclass(frozen=True)(Plain)()).fit(X)
    with pytest.raises(TypeError, match="Plain cannot be written to a file: decorate the class with @reclust.value"):
        model.save(tmp_path / "m.reclust")
    assert os.listdir(tmp_path) == []


# Before and after a fit


@pytest.mark.parametrize(("fitted", "hint", "shown"), [
    (IMAGES, None, IMAGES.swapaxes(1, 2)), (IMAGES, None, IMAGES.reshape(40, 3, 10)), (IMAGES, None, IMAGES.reshape(40, 2, 5, 3)),
    (IMAGES.reshape(40, 30), (6, 5), IMAGES.swapaxes(1, 2)), (IMAGES.reshape(40, 2, 5, 3), None, IMAGES),
    (IMAGES.reshape(40, 30).astype(float), None, IMAGES),
], ids=["turned", "reshaped", "in colour", "turned, rows with a hint", "grey for colour", "images for a table"])
def test_images_of_another_shape_with_as_many_pixels_are_refused(fitted, hint, shown):
    model = brief(image_shape=hint).fit(fitted)
    assert model.n_features_in_ == 30 and (model.predict(fitted) == model.labels_).all()
    for method in (model.predict, model.predict_proba, model.transform):
        with pytest.raises(ValueError, match="does not match samples of shape|fitted on a table"):
            method(shown)


@pytest.mark.parametrize("factor", [1 / 255, 1 / 16, 255], ids=["fractions", "8 of 12 bits", "bytes"])
def test_images_on_another_scale_than_those_of_the_fit_are_told(factor):
    fitted = IMAGES if factor < 1 else IMAGES / 255
    model = brief().fit(fitted)
    model.predict(0 * IMAGES[:1])
    model.predict(fitted[:3] / 16)  # a few that are dark
    with pytest.warns(ReclustWarning, match="use the same scale"):
        model.predict(factor * fitted)


@pytest.mark.parametrize("change", [lambda one: one.iloc[:, :6], lambda one: one.rename(columns={"gene3": "x"})], ids=["too few", "another"])
def test_a_file_with_other_columns_than_that_of_the_fit_is_refused(tmp_path, change):
    frame = pytest.importorskip("pandas").DataFrame(X, columns=[f"gene{i}" for i in range(12)])
    frame.to_csv(tmp_path / "fit.csv", index=False)
    change(frame).to_csv(tmp_path / "other.csv", index=False)
    model = brief().fit(tmp_path / "fit.csv")
    assert list(model.feature_names_in_) == list(frame.columns)
    assert (model.predict(tmp_path / "fit.csv") == model.labels_).all() and (model.predict(frame) == model.labels_).all()
    with pytest.raises(ValueError, match="lacks columns that the model was fitted on: 'gene"):
        model.predict(tmp_path / "other.csv")


def test_columns_of_a_file_are_found_by_their_names(tmp_path):
    frame = pytest.importorskip("pandas").DataFrame(X, columns=[f"gene{i}" for i in range(12)])
    model, turned = brief().fit(frame), frame.iloc[:, ::-1]
    turned.to_csv(tmp_path / "turned.csv", index=False)
    turned.assign(batch=1.5, depth=2).to_csv(tmp_path / "more.csv", index=False)
    assert (model.predict(tmp_path / "turned.csv") == model.labels_).all()
    with pytest.warns(ReclustWarning, match="more has columns that the model was not fitted on, which are ignored: 'batch', 'depth'"):
        assert (model.predict(tmp_path / "more.csv") == model.labels_).all()
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(turned)
    read = reclust.data.read(tmp_path / "turned.csv")
    assert (model.predict(read) == model.labels_).all()


def test_a_fit_on_images_forgets_the_names_of_a_table():
    frame = pytest.importorskip("pandas").DataFrame(X, columns=[f"gene{i}" for i in range(12)])
    model = brief().fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    model.fit(IMAGES)
    assert not hasattr(model, "feature_names_in_") and model.n_features_in_ == 30
    model.fit(frame).fit(X)
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("fitted_before", [False, True])
def test_after_a_failed_fit_a_model_is_not_fitted(tmp_path, fitted_before):
    model = brief()
    if fitted_before:
        model.fit(X)
    with pytest.warns(ReclustWarning, match="it is dropped"), pytest.raises(TrainingFailed, match="smaller lr"):
        model.set_params(lr=1e30).fit(X[:, :5])
    for use in (lambda: model.predict(X), lambda: model.predict(X[:, :5]), lambda: model.transform(X[:, :5]), lambda: model.save(tmp_path / "m")):
        with pytest.raises(NotFittedError):
            use()
    assert not hasattr(model, "labels_") and not hasattr(model, "result_")
    assert (model.set_params(lr=None).fit(X).labels_ == brief().fit(X).labels_).all()


@pytest.mark.parametrize("changes", [{}, {"n_init": 2}, {"kind": DCN}], ids=["one", "two", "dcn"])
def test_what_the_last_step_broke_is_reported_and_not_returned(changes):
    """One step in all: its loss was a number, and only the embeddings after it are none."""
    model = brief(**{"pretrain_epochs": 0, "epochs": 1, "batch_size": 120, "lr": 1e30, **changes})
    with pytest.warns(ReclustWarning, match="became nan in epoch 0 of clustering: it is dropped"), pytest.raises(TrainingFailed, match="lr \\(now 1e\\+30\\)"):
        model.fit(X)


# Where samples come from


def test_names_of_samples_are_kept(tmp_path):
    ids = np.array([f"cell {i}" for i in range(120)])
    model = brief().fit(reclust.data.Dataset(samples=X, ids=ids, labels=Y))
    assert (model.ids_ == ids).all() and (model.labels_ == brief().fit(X).labels_).all()
    model.save(tmp_path / "m.reclust")
    assert (reclust.load(tmp_path / "m.reclust").ids_ == ids).all()
    assert model.fit(X).ids_ is None, "an earlier fit's names are forgotten"
    model.save(tmp_path / "m.reclust")
    assert reclust.load(tmp_path / "m.reclust").ids_ is None


def test_a_folder_of_images_names_its_samples(tmp_path):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "pictures" / "more").mkdir(parents=True)
    for i, pixels in enumerate(IMAGES):
        image.fromarray(pixels).save(tmp_path / "pictures" / ("more" if i % 2 else ".") / f"{i:02d}.png")
    model = brief().fit(tmp_path / "pictures")
    assert sorted(model.ids_) == sorted(f"more/{i:02d}.png" if i % 2 else f"{i:02d}.png" for i in range(40))
    order = [int(name[-6:-4]) for name in model.ids_]
    assert (model.labels_ == brief().fit(IMAGES[order]).labels_).all()
    assert (model.predict(str(tmp_path / "pictures")) == model.labels_).all() and (model.predict(IMAGES[order]) == model.labels_).all()


@pytest.mark.filterwarnings("ignore:.*no sample is left", "ignore:.*ended without samples")
def test_a_folder_is_read_as_the_images_of_the_fit_were(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for i, pixels in enumerate(IMAGES):
        image.fromarray(pixels).save(tmp_path / f"{i:02d}.png")
    for shape in ((9, 8, 3), (9, 8, 1)):
        model = brief().fit(reclust.data.read(tmp_path, size=shape))
        assert (model.predict(tmp_path) == model.labels_).all()
    labeled = reclust.SelfLabeling(model, epochs=1, warmup_epochs=2, threshold=0.1, device="cpu").fit(tmp_path)
    assert len(labeled.ids_) == 40 and (labeled.predict(tmp_path) == labeled.labels_).all()


def write_csv(folder):
    np.savetxt(folder / "x.csv", X, delimiter=",", fmt="%.17g", header=",".join(f"f{i}" for i in range(12)), comments="")
    return folder / "x.csv"


def write_npy(folder):
    np.save(folder / "x.npy", X)
    return str(folder / "x.npy")


@pytest.mark.parametrize("bring", [
    write_npy, write_csv, lambda _: reclust.data.Dataset(samples=X), lambda _: torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)),
    lambda _: torch.utils.data.Subset(torch.utils.data.TensorDataset(torch.from_numpy(X)), range(120)),
], ids=["npy", "csv", "Dataset", "torch data with labels", "torch data"])
def test_files_and_data_sets_are_the_arrays_they_hold(tmp_path, bring):
    if bring is write_csv:
        pytest.importorskip("pandas")
    given = bring(tmp_path)
    model, expected = brief().fit(given), brief().fit(X)
    assert (model.labels_ == expected.labels_).all() and (model.predict(given) == model.labels_).all()
    assert (model.transform(given) == expected.transform(X)).all()


# Files


def test_phases_of_the_history_come_back_in_their_order(tmp_path):
    model = brief(pretrain_epochs=1).fit(X)
    model.save(tmp_path / "m.reclust")
    assert list(model.history_) == list(reclust.load(tmp_path / "m.reclust").history_) == ["pretraining", "clustering"]


def test_columns_of_the_history_with_a_slash_survive_a_file(tmp_path):
    from support import small_settings

    columns = ("loss/of/something", "loss/of", "a b", "ümlaut/", "/first")
    result = reclust.train(X, small_settings(), seeds=(0, 1), monitors=[lambda snapshot: {name: [snapshot.epoch, 1.0] for name in columns}])
    result.save(tmp_path / "r.reclust")
    loaded = Result.load(tmp_path / "r.reclust")
    assert {phase: set(curves) for phase, curves in loaded.history.items()} == {phase: set(curves) for phase, curves in result.history.items()}
    for phase, curves in result.history.items():
        for name, curve in curves.items():
            assert (loaded.history[phase][name].epochs == curve.epochs).all() and (loaded.history[phase][name].values == curve.values).all()


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are another matter there")
@pytest.mark.parametrize("mask", [0o022, 0o027, 0o002])
def test_saved_files_have_the_permissions_of_any_other_file(tmp_path, mask):
    model = brief().fit(X[:20])
    before = os.umask(mask)
    try:
        model.save(tmp_path / "m.reclust")
        model.result_.save(tmp_path / "r.reclust")
    finally:
        os.umask(before)
    assert {os.stat(tmp_path / name).st_mode & 0o777 for name in ("m.reclust", "r.reclust")} == {0o666 & ~mask}


def test_many_clusters_in_as_many_dimensions_take_neither_memory_nor_time():
    """All differences between samples and centres at once would be 230 MB here."""
    resource = pytest.importorskip("resource")
    unit = 1 if sys.platform == "darwin" else 1024
    (data, _), started = blobs(n=4200, features=20, k=60), time.process_time()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReclustWarning)  # one epoch does not find them all
        model = brief(n_clusters=60, batch_size=256, epochs=1, n_init=2).fit(data)
    assert model.transform(data[:100]).shape == (100, 60) and model.result_.labels.shape == (2, 4200)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit < 150 * 2**20
    assert time.process_time() - started < 30


def test_complete_settings_can_be_the_preset():
    settings = reclust.estimators.presets.paper("usps", "dcn", pretrained=False, intervention="recluster")
    same = reclust.DCN(10, preset=settings)._recipe().settings
    assert same == settings
    assert DeepClustering(10, preset=settings)._recipe().settings == settings
    changed = DCN(7, preset=settings, epochs=30, pretrain_epochs=5, intervention=None)._recipe().settings
    assert (changed.n_clusters, changed.clustering.epochs, changed.pretraining.epochs, changed.intervention) == (7, 30, 5, None)
    with pytest.raises(ValueError, match="preset is for DCNObjective, not for IDEC"):
        IDEC(10, preset=settings)._recipe()


def test_a_column_that_holds_no_numbers_is_named():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"]).assign(colour=["red", "blue"] * 60)
    with pytest.raises(ValueError, match="not numeric: 'colour'.*get_dummies"):
        quick().fit(frame)


def test_columns_with_missing_values_are_named():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"]).assign(age=[None, 3.0] * 60, n=pd.array([1] * 119 + [None], dtype="Int64"))
    with pytest.raises(ValueError, match=r"missing.* in 'age' \(60 of 120 rows\), 'n' \(1 of 120 rows\); fill them in"):
        quick().fit(frame)


def test_anndata_is_taken_as_it_is():
    anndata = pytest.importorskip("anndata")
    model = quick().fit(anndata.AnnData(X, obs={"name": [f"cell{i}" for i in range(len(X))]}))
    assert (model.labels_ == quick().fit(X).labels_).all() and len(model.ids_) == len(X)


def test_sparse_rows_of_images_are_those_of_the_dense_ones():
    images = load_digits().data[:60]
    given = {"image_shape": (8, 8), "n_clusters": 3, "pretrain_epochs": 1, "epochs": 1, "intervention": None, "augment": None}
    dense, sparse_one = (quick(**given).fit(rows) for rows in (images, sparse.csr_array(images)))
    np.testing.assert_array_equal(dense.labels_, sparse_one.labels_)


def test_channels_that_come_first_are_told_where_they_are_neither_one_nor_three():
    images = np.random.default_rng(0).random((12, 5, 8, 8))
    few = {"n_clusters": 2, "pretrain_epochs": 0, "epochs": 1, "intervention": None, "augment": None}
    with pytest.warns(ReclustWarning, match="images of 5 × 8 with 8 channels"):
        quick(**few).fit(images)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "X is read as images")
        quick(**few, image_shape=(5, 8, 8)).fit(images)
        quick(**few).fit(np.moveaxis(images, 1, -1))


def test_a_generator_goes_on_from_its_own_checkpoint(tmp_path):
    model = quick(random_state=np.random.RandomState(0), epochs=3, intervention=None)
    first = model.fit(X, checkpoint=tmp_path / "run.ckpt").labels_
    assert (model.fit(X, checkpoint=tmp_path / "run.ckpt").labels_ == first).all()


def test_missing_classes_are_refused_by_fit_and_by_reports(tmp_path):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="1 of 120 labels are missing, the first in row 1"):
        quick().fit(X, pandas.Series([None, *Y[1:].astype(str)], dtype="string"))
    with pytest.raises(ValueError, match="2 of 120 labels are missing"):
        quick(epochs=1, intervention=None).fit(X).report(tmp_path / "r.html", X, [None, None, *Y[2:].astype(str)])


@pytest.mark.parametrize(("given", "message"), [
    ({"image_shape": 4}, "image_shape must be a sequence"), ({"image_shape": "2x2"}, "image_shape must be a sequence"),
    ({"image_shape": (3.9, 4)}, "each number in image_shape must be an integer"), ({"image_shape": (-2, -6)}, "each number in image_shape"),
    ({"preset": ["best"]}, "preset must be one of"),
    ({"device": None}, "device=None cannot be used"),
], ids=str)
def test_parameters_of_another_kind_are_refused_in_words(given, message):
    with pytest.raises(ValueError, match=message):
        IDEC(3, **given).fit(blobs()[0])
