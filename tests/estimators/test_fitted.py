"""Prediction with fitted estimators, and what a failed fit leaves."""

import sys
import warnings

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from support import blobs

import reclust
from reclust import (
    DEC,
    IDEC,
    Autoencoder,
    OwnAutoencoder,
    Reclust,
    ReclustWarning,
    SelfLabeling,
    TrainingFailed,
)

X, Y = blobs(n=60)
IMAGES = np.random.default_rng(0).integers(0, 255, size=(40, 6, 5)).astype(np.uint8)


def small(kind=IDEC, k=4, **changes):
    """A fit in a fifth of a second, for what does not depend on how well it goes."""
    given = {"representation": Autoencoder((8,)), "pretrain_epochs": 2, "epochs": 3, "batch_size": 30, "intervention": None, "random_state": 0, "device": "cpu"}
    return kind(k, **{**given, **changes})


def test_predictions_do_not_depend_on_order_or_company():
    model = small().fit(X)
    order = np.random.default_rng(0).permutation(60)
    assert (model.predict(X[order]) == model.predict(X)[order]).all()
    assert [model.predict(row[None])[0] for row in X[:20]] == model.predict(X)[:20].tolist()


def test_wrong_width_at_predict_is_refused():
    with pytest.raises(ValueError, match="X has 5 features, but IDEC is expecting 12"):
        small().fit(X).predict(X[:, :5])


@pytest.mark.parametrize(("fitted", "hint", "shown"), [
    (IMAGES, None, IMAGES.swapaxes(1, 2)), (IMAGES, None, IMAGES.reshape(40, 3, 10)), (IMAGES, None, IMAGES.reshape(40, 2, 5, 3)),
    (IMAGES.reshape(40, 30), (6, 5), IMAGES.swapaxes(1, 2)), (IMAGES.reshape(40, 2, 5, 3), None, IMAGES),
    (IMAGES.reshape(40, 30).astype(float), None, IMAGES),
], ids=["turned", "reshaped", "in colour", "turned, rows with a hint", "grey for colour", "images for a table"])
def test_images_of_another_shape_with_as_many_pixels_are_refused(fitted, hint, shown):
    model = small(image_shape=hint).fit(fitted)
    assert model.n_features_in_ == 30 and (model.predict(fitted) == model.labels_).all()
    for method in (model.predict, model.predict_proba, model.transform):
        with pytest.raises(ValueError, match="does not match samples of shape|fitted on a table"):
            method(shown)


@pytest.mark.parametrize("change", [lambda one: one.iloc[:, :6], lambda one: one.rename(columns={"gene3": "x"})], ids=["too few", "another"])
def test_a_file_with_other_columns_than_that_of_the_fit_is_refused(tmp_path, change):
    frame = pytest.importorskip("pandas").DataFrame(X, columns=[f"gene{i}" for i in range(12)])
    frame.to_csv(tmp_path / "fit.csv", index=False)
    change(frame).to_csv(tmp_path / "other.csv", index=False)
    model = small().fit(tmp_path / "fit.csv")
    assert list(model.feature_names_in_) == list(frame.columns)
    assert (model.predict(tmp_path / "fit.csv") == model.labels_).all() and (model.predict(frame) == model.labels_).all()
    with pytest.raises(ValueError, match="lacks columns of the fit: 'gene"):
        model.predict(tmp_path / "other.csv")


def test_columns_of_a_file_are_found_by_their_names(tmp_path):
    frame = pytest.importorskip("pandas").DataFrame(X, columns=[f"gene{i}" for i in range(12)])
    model, turned = small().fit(frame), frame.iloc[:, ::-1]
    turned.to_csv(tmp_path / "turned.csv", index=False)
    turned.assign(batch=1.5, depth=2).to_csv(tmp_path / "more.csv", index=False)
    assert (model.predict(tmp_path / "turned.csv") == model.labels_).all()
    with pytest.warns(ReclustWarning, match="more has columns that were not in the fit; they are ignored: 'batch', 'depth'"):
        assert (model.predict(tmp_path / "more.csv") == model.labels_).all()
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(turned)
    read = reclust.data.read(tmp_path / "turned.csv")
    assert (model.predict(read) == model.labels_).all()


def test_a_fit_on_images_forgets_the_names_of_a_table():
    frame = pytest.importorskip("pandas").DataFrame(X, columns=[f"gene{i}" for i in range(12)])
    model = small().fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    model.fit(IMAGES)
    assert not hasattr(model, "feature_names_in_") and model.n_features_in_ == 30
    model.fit(frame).fit(X)
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("fitted_before", [False, True])
def test_after_a_failed_fit_a_model_is_not_fitted(tmp_path, fitted_before):
    model = small()
    if fitted_before:
        model.fit(X)
    with pytest.warns(ReclustWarning, match="it is dropped"), pytest.raises(TrainingFailed, match="smaller lr"):
        model.set_params(lr=1e30).fit(X[:, :5])
    for use in (lambda: model.predict(X), lambda: model.predict(X[:, :5]), lambda: model.transform(X[:, :5]), lambda: model.save(tmp_path / "m")):
        with pytest.raises(NotFittedError):
            use()
    assert not hasattr(model, "labels_") and not hasattr(model, "result_")
    assert (model.set_params(lr=None).fit(X).labels_ == small().fit(X).labels_).all()


@pytest.mark.parametrize("kind", ["deep_clustering", "reclust", "self_labeling"])
@pytest.mark.parametrize("place", ["fitted.k_means_baseline", "fitted.FittedClustering._label", "fitted.FittedClustering._keep_clusters"])
def test_an_interrupted_fit_leaves_no_attributes(kind, place, monkeypatch):
    model = {"deep_clustering": small, "reclust": lambda: Reclust(4, effort="quick", random_state=0, device="cpu"),
             "self_labeling": lambda: SelfLabeling(small().fit(X), threshold=0.1, epochs=1, warmup_epochs=1, device="cpu")}[kind]()

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"reclust.estimators.{place}", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_prediction_leaves_the_filters_of_warnings_alone(tmp_path, monkeypatch):
    """They belong to the process: threads would restore each other's."""
    pytest.importorskip("pandas").DataFrame(X, columns=[f"gene{i}" for i in range(12)]).to_csv(tmp_path / "x.csv", index=False)
    model, original = small().fit(tmp_path / "x.csv"), warnings.catch_warnings

    def watched(*given, **options):
        assert not sys._getframe(1).f_globals["__name__"].startswith("reclust")
        return original(*given, **options)

    monkeypatch.setattr(warnings, "catch_warnings", watched)
    assert (model.predict(tmp_path / "x.csv") == model.labels_).all()


def test_dead_clusters_are_not_spoken_of():
    few = np.repeat([[0.0, 0.0], [1.0, 5.0], [9.0, 2.0]], 10, axis=0)
    with pytest.warns(ReclustWarning, match="clusters ended without samples"):
        model = small(k=6).fit(few)
    assert model.n_clusters_ < 6 and set(model.labels_) == set(range(model.n_clusters_))
    assert model.cluster_centers_.shape[0] == model.predict_proba(few).shape[1] == model.n_clusters_
    assert (model.predict(few) == model.labels_).all() and model.predict(np.random.default_rng(0).normal(size=(50, 2)) * 9).max() < model.n_clusters_


@pytest.mark.filterwarnings("ignore:.*no sample is left", "ignore:.*ended without samples")
def test_a_folder_is_read_as_the_images_of_the_fit_were(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for i, pixels in enumerate(IMAGES):
        image.fromarray(pixels).save(tmp_path / f"{i:02d}.png")
    for shape in ((9, 8, 3), (9, 8, 1)):
        model = small().fit(reclust.data.read(tmp_path, size=shape))
        assert (model.predict(tmp_path) == model.labels_).all()
    labeled = reclust.SelfLabeling(model, epochs=1, warmup_epochs=2, threshold=0.1, device="cpu").fit(tmp_path)
    assert len(labeled.ids_) == 40 and (labeled.predict(tmp_path) == labeled.labels_).all()


def test_probabilities_of_samples_far_from_everything_are_even():
    with np.errstate(all="ignore"):
        shares = small().fit(X).predict_proba(X[:2] * 1e160)
    np.testing.assert_allclose(shares.sum(1), 1)


def test_what_is_refused_leaves_an_earlier_fit_whole():
    model = small().fit(X)
    before, holes = model.predict(X), X.copy()
    holes[0, 0] = np.nan
    for wrong in (holes, X[:2], [["a", "b"]] * 9):
        with pytest.raises(ValueError):
            model.fit(wrong)
        assert model.n_features_in_ == X.shape[1] and (model.predict(X) == before).all()


@pytest.mark.parametrize("data", [np.ones((20, 3)), X * 1e-20], ids=["equal samples", "vanishing scale"])
def test_a_collapsed_embedding_is_reported(data):
    with pytest.warns(ReclustWarning, match="3 of 4 clusters ended without samples"):
        assert small(standardize=False).fit(data).n_clusters_ == 1


def test_a_dead_encoder_is_reported():
    encoder = torch.nn.Sequential(torch.nn.Linear(12, 4), torch.nn.ReLU())
    torch.nn.init.zeros_(encoder[0].weight)
    torch.nn.init.constant_(encoder[0].bias, -1.0)
    with pytest.warns(ReclustWarning, match="3 of 4 clusters ended without samples"):
        small(DEC, representation=OwnAutoencoder(encoder, torch.nn.Linear(4, 12), weights="given")).fit(X)


def test_probabilities_are_those_of_the_labels(tmp_path):
    X, _ = blobs(n=60)
    model = reclust.Reclust(4, effort="quick", random_state=0).fit(X)
    np.testing.assert_allclose(model.probabilities_, model.predict_proba(X)[np.arange(60), model.labels_])
    model.save(tmp_path / "model.reclust")
    np.testing.assert_array_equal(reclust.load(tmp_path / "model.reclust").probabilities_, model.probabilities_)
