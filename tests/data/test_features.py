"""Features are the network's outputs for images prepared as it wants them."""

import numpy as np
import pytest
import torch
from torch import nn

import reclust
from reclust.data.errors import DataError

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (10, 8, 8, 3)).astype(np.uint8)


def network(**config):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = nn.Sequential(nn.Conv2d(3, 5, 3), nn.ReLU(), nn.Dropout(0.5))
    made.pretrained_cfg = {"input_size": (3, 8, 8), "mean": (0.5, 0.4, 0.3), "std": (0.2, 0.3, 0.4), **config}
    return made


def expected(model, images):
    x = torch.from_numpy(np.moveaxis(images, -1, 1) / np.float32(255))
    x = (x - torch.tensor([0.5, 0.4, 0.3]).view(3, 1, 1)) / torch.tensor([0.2, 0.3, 0.4]).view(3, 1, 1)
    return model.eval()(x).mean((2, 3)).detach().numpy()


def test_features_by_hand_in_batches_and_the_model_stays():
    model = network()
    made = reclust.features(model, IMAGES, batch_size=3, device="cpu")
    assert model.training and made.samples.dtype == np.float32
    for images in (IMAGES / 255, torch.from_numpy(np.moveaxis(IMAGES, -1, 1))):
        np.testing.assert_allclose(reclust.features(model, images, device="cpu").samples, made.samples, atol=1e-5)
    np.testing.assert_allclose(made.samples, expected(model, IMAGES), atol=1e-5)


def test_a_function_size_and_gray_images():
    seen = []

    def means(x):
        seen.append(x.shape)
        return x.mean((2, 3))

    made = reclust.features(means, np.full((4, 6, 5), 255, np.uint8), size=12, device="cpu")
    white = (1 - np.array([0.485, 0.456, 0.406])) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(made.samples, np.tile(white, (4, 1)), rtol=1e-5)
    assert seen == [(4, 3, 12, 12)] and made.ids is None
    assert reclust.features(means, IMAGES, device="cpu") and seen[-1] == (10, 3, 224, 224)
    with pytest.raises(DataError, match="need images"):
        reclust.features(means, np.ones((4, 3)))


def test_a_folder_is_read_and_clustered(tmp_path):
    PIL = pytest.importorskip("PIL.Image")
    (tmp_path / "a").mkdir()
    kind = np.arange(40) % 2
    images = np.clip(RNG.normal(60 + 120 * kind[:, None, None, None], 20, (40, 8, 8, 3)), 0, 255).astype(np.uint8)
    for i, pixels in enumerate(images):
        PIL.fromarray(pixels).save(tmp_path / "a" / f"{i:02}.png")
    model = network()
    made = reclust.features(model, tmp_path, batch_size=7, device="cpu")
    assert list(made.ids) == [f"a/{i:02}.png" for i in range(40)]
    np.testing.assert_allclose(made.samples, expected(model, images), atol=1e-5)
    clusters = reclust.Reclust(2, kind="embeddings", effort="quick", random_state=0, device="cpu").fit(made)
    assert reclust.metrics.ari(kind, clusters.labels_) == 1 and list(clusters.ids_) == list(made.ids)
