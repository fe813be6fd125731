"""The scikit-learn contract, and what a user may bring."""

import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from support import blobs

import reclust
from reclust import BRB, DCN, DEC, IDEC, Autoencoder, DeepClustering, IDECObjective, KMeans, OwnAutoencoder, ReclustWarning

X, Y = blobs(n=120)


def quick(kind=IDEC, **changes):
    given = {"n_clusters": 4, "pretrain_epochs": 30, "epochs": 15, "batch_size": 32, "representation": Autoencoder((32, 16)),
             "intervention": BRB(5, method=KMeans(n_init=2)), "random_state": 0, "device": "cpu"}
    return kind(**{**given, **changes})


@parametrize_with_checks([quick(kind, pretrain_epochs=10) for kind in (DEC, IDEC, DCN)])
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
        (images, {}), (images[..., None], {}), (images.reshape(90, 30), {"image_shape": (6, 5)}),
        (images.reshape(90, 30).astype(float), {"image_shape": (6, 5, 1)}))]
    assert all((other == labels[0]).all() for other in labels)
    assert adjusted_rand_score(np.arange(90) % 3, labels[0]) > 0.9


def test_scales_and_constant_features_do_not_matter():
    scaled = np.column_stack([X * 10.0 ** np.arange(-6, 6), np.full(120, 7.0), np.zeros(120)])
    assert adjusted_rand_score(Y, quick().fit(scaled).labels_) > 0.9
    assert quick(standardize=False).fit(X)._preparation.first.scale == 1


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
    assert IDEC(10)._settings().intervention.steps == BRB().steps
    assert IDEC(10, intervention=None)._settings().intervention is None
    with pytest.warns(ReclustWarning, match="never fires within epochs=3"):
        quick(epochs=3).fit(X)


def test_the_paper_preset_is_the_published_protocol():
    settings = DCN(10, preset="paper")._settings()
    assert settings.objective == reclust.DCNObjective(weight=0.025, rate="constant", reduction="mean_over_clusters")
    assert (settings.pretraining.epochs, settings.clustering.epochs, settings.clustering.batch_size) == (250, 400, 256)
    assert settings == reclust.presets.paper_protocol(10, reclust.DCNObjective())
    assert DCN(10, preset="paper", epochs=70)._settings().clustering.epochs == 70


@pytest.mark.parametrize(("changes", "data", "message"), [
    ({}, np.where(X > 3, np.nan, X), "NaN"), ({}, np.where(X > 3, np.inf, X), "infinity"), ({}, X[:0], "0 sample"),
    ({"n_clusters": 10}, X[:7], "n_clusters=10 needs at least 10 samples, X has n_samples=7"), ({}, [["a", "b"]] * 9, "could not convert"),
    ({"epochs": 0}, X, "epochs must be a whole number of at least 1"), ({"pretrain_epochs": -1}, X, "pretrain_epochs must be a whole number of at least 0"),
    ({"device": "abacus"}, X, "cannot be used here"), ({"n_init": 0}, X, "n_init must be"), ({"lr": -1.0}, X, "lr must be above 0"),
    ({"preset": "magic"}, X, "preset must be one of"), ({"augment": "magic"}, X, "augment must be auto"),
    ({"intervention": "magic"}, X, "intervention must be"), ({"image_shape": (5, 5)}, X, "image_shape=\\(5, 5\\) does not go"),
    ({"n_clusters": 0}, X, "n_clusters must be a whole number"),
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
    with pytest.raises(ValueError, match="needs an objective"):
        quick(DeepClustering).fit(X)
