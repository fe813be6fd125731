"""Parts of a report against slow versions of them."""

import base64
import io

import numpy as np
import pytest
import torch
from support import small_settings

from reclust import Curve, metrics
from reclust.data import Dataset, load
from reclust.report import confusion, curve, records, scene, sheet
from reclust.report.parts import effective_dimensions, embedding_map, png

PIL = pytest.importorskip("PIL.Image")


def rng():
    return np.random.default_rng(3)


def test_a_curve_is_mean_and_deviation_with_resets_as_steps():
    before, after = rng().random((4, 5)), rng().random((1, 5))
    before[1, 2] = np.nan
    columns = {"nmi": Curve(np.array([-1, 0, 1, 2]), before), "nmi_after_reset": Curve(np.array([2]), after)}
    made = curve(columns, "nmi")
    assert list(made["x"]) == [0, 1, 2, 2, 3]
    rows = [before[0], before[1], before[2], after[0], before[3]]
    np.testing.assert_allclose(made["mean"], [np.nanmean(row) for row in rows])
    np.testing.assert_allclose(made["std"], [np.nanstd(row, ddof=1) for row in rows])
    assert curve({"nmi": Curve(np.array([0]), np.array([[np.nan]]))}, "nmi") is None


def test_a_thinned_curve_keeps_its_ends():
    columns = {"loss": Curve(np.arange(500), rng().random((500, 2)))}
    made = curve(columns, "loss", limit=40)
    assert len(made["x"]) == 40
    assert (made["x"][0], made["x"][-1]) == (1, 500)


def embeddings(epochs=(-1, 1, 2, 5), resets=(2,), d=6):
    def curves(moments, rows):
        return Curve(np.array(moments), rng().normal(size=(len(moments), rows, d)))
    return {"embedding": curves(epochs, 30), "centers": curves(epochs, 4),
            "embedding_after_reset": curves(resets, 30), "centers_after_reset": curves(resets, 4)}


def moved(columns):
    """The same, rotated, scaled and shifted."""
    rotation = np.linalg.qr(rng().normal(size=(6, 6)))[0]
    return {name: Curve(own.epochs, 3.0 * own.values @ rotation + 5.0) for name, own in columns.items()}


def numbers(text, *shape):
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(shape)


def test_a_scene_does_not_change_with_rotation_scale_and_shift():
    columns, rows = embeddings(), np.arange(0, 60, 2)
    made, other = scene(columns, rows, classes=rows), scene(moved(columns), rows)
    assert made["frames"] == [{"epoch": 0, "reset": False}, {"epoch": 2, "reset": False}, {"epoch": 2, "reset": True},
                              {"epoch": 3, "reset": False}, {"epoch": 6, "reset": False}]
    assert np.abs(numbers(made["points"], 5, 34, 2).astype(int) - numbers(other["points"], 5, 34, 2)).max() <= 1
    assert list(made["classes"]) == list(rows)
    distances = torch.cdist(*(torch.from_numpy(columns[name].values) for name in ("embedding_after_reset", "centers_after_reset")))
    np.testing.assert_array_equal(numbers(made["clusters"], 5, 30)[2], distances[0].argmin(-1))


def test_a_long_scene_keeps_the_frames_around_a_reset():
    resets = tuple(range(5, 100, 5))
    made = scene(embeddings((-1, *(e for r in resets for e in (r - 1, r)), 99), resets), np.arange(30), frames=20, samples=12)
    assert len(made["rows"]) == 12
    assert len(made["frames"]) <= 20
    assert [made["frames"][i]["epoch"] for i in (0, -1)] == [0, 100]
    for i, frame in enumerate(made["frames"]):
        if frame["reset"]:
            around = [made["frames"][j]["epoch"] - frame["epoch"] for j in (i - 1, i, i + 1)]
            assert around == [0, 0, 1]


@pytest.mark.parametrize("channels", [1, 3])
def test_png_is_read_by_pillow(channels):
    pixels = rng().integers(256, size=(5, 7, channels), dtype=np.uint8)
    np.testing.assert_array_equal(np.asarray(PIL.open(io.BytesIO(png(pixels)))).reshape(pixels.shape), pixels)


def test_a_contact_sheet_shows_the_samples_it_names():
    data = load("digits")
    labels = (data.labels + 1) % 10
    nearest, farthest = rng().integers(len(data), size=(2, 10, 3))
    farthest[4, 2] = -1
    made = sheet(data, labels, nearest, farthest)
    picture = PIL.open(io.BytesIO(base64.b64decode(made["picture"].partition(",")[2])))
    pixels, side = np.asarray(picture), data.images.shape[1]
    assert made["side"] == [side, side]
    for cluster in (0, 4, 9):
        assert made["clusters"][cluster]["counts"] == [(str((cluster - 1) % 10), int((labels == cluster).sum()))]
        for column, sample in enumerate([*nearest[cluster], *farthest[cluster]]):
            own = pixels[cluster * side : (cluster + 1) * side, column * side : (column + 1) * side]
            wanted = data.images[sample] * (255 / data.max_value) if sample >= 0 else 0
            np.testing.assert_allclose(own, wanted, atol=1)


def test_large_images_shrink():
    images = rng().integers(256, size=(20, 70, 40, 3), dtype=np.uint8)
    data = Dataset(samples=images, image_shape=(3, 70, 40), max_value=255.0)
    made = sheet(data, np.zeros(20, dtype=int), np.zeros((1, 2), dtype=int), np.ones((1, 2), dtype=int))
    assert max(made["side"]) <= 64
    assert "classes" not in made["clusters"][0]


def test_the_diagonal_of_a_confusion_is_the_accuracy():
    for classes, clusters in ((5, 5), (5, 3), (3, 5)):
        true, labels = rng().integers(classes, size=200), rng().integers(clusters, size=200) + 7
        made = confusion(true, labels)
        assert np.trace(made["counts"]) / 200 == metrics.accuracy(true, labels)
        for row, name in enumerate(made["classes"]):
            for column, cluster in enumerate(made["clusters"]):
                assert made["counts"][row, column] == ((true == int(name)) & (labels == cluster)).sum()


def test_records_of_settings():
    lines = dict(records(small_settings()))
    assert lines["n_clusters"] == "4"
    assert lines["intervention.interval"] == "2"
    assert lines["intervention.steps.1"] == "SoftReset"
    assert lines["intervention.steps.1.keep"] == "0.8"
    assert lines["clustering.lr"] == "0.001"
    assert lines["augment"] == "none"
    assert dict(records({"data": {"name": "digits", "samples": 3}}))["data.samples"] == "3"


def test_the_map_is_the_plane_of_the_largest_variance():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(50, 5)) * [5, 3, 1, 0.5, 0.1]
    made = embedding_map(z, z[:3], np.arange(50) % 3, np.arange(50))
    variances = np.sort(np.linalg.eigvalsh(np.cov(z.T)))[::-1]
    assert made["share"] == pytest.approx(variances[:2].sum() / variances.sum())
    assert (made["clusters"] == np.arange(50) % 3).all() and made["n_clusters"] == 3


@pytest.mark.parametrize(("spread", "expected"), [((1, 0, 0), 1.0), ((1, 1, 0), 2.0), ((0, 0, 0), 0.0)])
def test_effective_dimensions(spread, expected):
    corners = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T * np.array(spread)
    assert effective_dimensions(corners) == pytest.approx(expected)
