"""`Embeddings`, for samples that are embeddings already."""

import numpy as np
import torch
from sklearn.cluster import KMeans

import reclust
from reclust import DEC, IDEC, Autoencoder, Embeddings, metrics
from reclust.estimators import presets


def sphere(n=400, features=24, k=6, seed=0):
    """Unit vectors in k groups of unequal sizes."""
    rng = np.random.default_rng(seed)
    y = rng.choice(k, n, p=np.arange(1, k + 1) / (k * (k + 1) / 2))
    E = rng.normal(size=(k, features))[y] + 0.6 * rng.normal(size=(n, features))
    return (E / np.linalg.norm(E, axis=1, keepdims=True)).astype(np.float32), y


def test_it_is_an_autoencoder_with_one_hidden_layer():
    small, same = Embeddings((9,)).build((24,), 6), Autoencoder((9,)).build((24,), 6)
    assert [weight.shape for weight in small.parameters()] == [weight.shape for weight in same.parameters()]
    assert Embeddings().hidden == (256,) and Embeddings((9,)) != Autoencoder((9,)), "presets tell them apart"


def test_it_finds_groups_that_k_means_finds_and_predicts_them():
    E, y = sphere()
    model = IDEC(6, representation=Embeddings(), random_state=0).fit(E)
    baseline = KMeans(6, n_init=10, random_state=0).fit_predict(E)
    assert metrics.accuracy(y, model.labels_) >= metrics.accuracy(y, baseline) - 0.01
    assert model.cluster_centers_.shape == (6, 6) and np.array_equal(model.predict(E), model.labels_)


def test_the_preset_knows_that_there_is_little_to_learn():
    usual, short = (presets.everyday(4, reclust.IDECObjective(), representation=given) for given in (None, Embeddings((5,))))
    assert short.representation == Embeddings((5,)) and short.clustering.epochs < usual.clustering.epochs
    assert any(short.intervention.fires(epoch) for epoch in range(short.clustering.epochs))


def test_it_is_saved_and_loaded(tmp_path):
    E, _ = sphere(n=120)
    model = DEC(3, representation=Embeddings((8,)), random_state=0, batch_size=64, pretrain_epochs=2, epochs=6).fit(torch.from_numpy(E))
    model.save(tmp_path / "m.reclust")
    assert np.array_equal(reclust.load(tmp_path / "m.reclust").predict(E), model.labels_)
