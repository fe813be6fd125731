"""An exported graph says what the model says."""

import json

import numpy as np
import pytest
from support import blobs

from reclust import DCN, IDEC, Autoencoder, ConvAutoencoder, Reclust, ResNet, SelfLabeling, SimCLR
from reclust.data import Lens

pytest.importorskip("onnxscript", reason="the extra onnx is not installed")
runtime = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::reclust.ReclustWarning")  # so short fits lose clusters

X, _ = blobs(n=60)
SMALL = {"representation": Autoencoder((16, 8), batch_norm=True), "pretrain_epochs": 2, "epochs": 2, "intervention": None, "random_state": 0, "device": "cpu"}
IMAGES = np.random.default_rng(0).integers(0, 256, size=(12, 8, 8, 3), dtype=np.uint8)


def fitted(kind):
    if kind == "dcn":
        return DCN(4, **SMALL).fit(X), X
    if kind == "reclust":
        return Reclust(4, effort="quick", random_state=0, device="cpu").fit(X), X
    if kind == "constant":
        return IDEC(4, **SMALL).fit(np.where(np.arange(12) == 5, 5.0, X)), X
    if kind == "images":
        return IDEC(3, **SMALL).fit(IMAGES), IMAGES.reshape(12, -1)
    if kind == "lens":
        return IDEC(3, lens=Lens(least_side=11, light="removed"), **SMALL).fit(IMAGES), IMAGES.reshape(12, -1)
    if kind == "self-labeling":
        return SelfLabeling(IDEC(4, **SMALL).fit(X), epochs=2, warmup_epochs=5, threshold=0.1, device="cpu").fit(X), X
    if kind == "convolutional":
        return IDEC(3, **{**SMALL, "representation": ConvAutoencoder((4,), residuals=1)}).fit(IMAGES), IMAGES.reshape(12, -1)
    simclr = SimCLR(ResNet(width=4), hidden=(8,), embedding=6, projector=(8, 4))
    return IDEC(3, **{**SMALL, "representation": simclr, "pretrain_epochs": 1, "epochs": 1, "batch_size": 6}).fit(IMAGES), IMAGES.reshape(12, -1)


@pytest.mark.parametrize("kind", ["dcn", "reclust", "constant", "images", "lens", "convolutional", "self-labeling", pytest.param("simclr", marks=pytest.mark.slow)])
def test_the_graph_predicts_what_the_model_predicts(tmp_path, kind):
    model, rows = fitted(kind)
    rows = rows.astype(np.float32)
    model.export_onnx(tmp_path / "m.onnx")
    session = runtime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    for some in (rows, rows[:1], np.repeat(rows, 3, axis=0)):
        labels, embeddings, probabilities = session.run(["label", "embedding", "probability"], {"X": some})
        shown = some if kind in ("dcn", "reclust", "constant", "self-labeling") else some.reshape(-1, 8, 8, 3).astype(np.uint8)
        np.testing.assert_array_equal(labels, model.predict(shown))
        near = 1e-4 if kind == "simclr" else 1e-9  # convolutions are exported in float32
        np.testing.assert_allclose(embeddings, model.transform(shown if shown.dtype == np.uint8 else shown.astype(np.float64)), rtol=near, atol=near)
        np.testing.assert_allclose(probabilities, model.predict_proba(shown), rtol=near, atol=near)
    metadata = session.get_modelmeta().custom_metadata_map
    assert json.loads(metadata["clusters"]) == model.n_clusters_ and json.loads(metadata["sizes"]) == np.bincount(model.labels_).tolist()
