"""The plot shows every sample in the color of its cluster, and doubtful ones fainter."""

import sys

import numpy as np
import pytest
from sklearn.decomposition import PCA
from support import blobs, small_settings

import reclust
from reclust import IDEC, Reclust, SelfLabeling
from reclust.report import plot as plotting

matplotlib = pytest.importorskip("matplotlib")
X, _ = blobs(n=80)


@pytest.fixture(autouse=True)
def without_umap_and_screen(monkeypatch):
    monkeypatch.setattr(plotting, "find_spec", lambda name: None)
    matplotlib.use("agg")


@pytest.fixture(scope="module")
def model():
    return IDEC(4, preset=small_settings(), random_state=0, device="cpu").fit(X)


def test_points_colors_and_opacity(model):
    axes = model.plot(X)
    labels, confidence, points = model.labels_, model.probabilities_, PCA(2).fit_transform(model.transform(X))
    drawn = axes.collections
    assert [len(one.get_offsets()) for one in drawn] == np.bincount(labels).tolist()
    for cluster, one in enumerate(drawn):
        np.testing.assert_allclose(one.get_offsets(), points[labels == cluster])
        opacity = one.get_facecolor()[:, 3]
        assert (np.diff(opacity[np.argsort(confidence[labels == cluster])]) >= 0).all() and opacity.min() >= plotting.FAINTEST
    assert len({tuple(one.get_facecolor()[0, :3]) for one in drawn}) == 4
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list("0123")


def test_without_samples_those_of_the_fit_are_drawn_also_after_loading(model, tmp_path):
    model.save(tmp_path / "m.reclust")
    given, axes = model.plot(X), matplotlib.figure.Figure().add_subplot()
    for drawn in (model.plot(), reclust.load(tmp_path / "m.reclust").plot(ax=axes)):
        for one, other in zip(given.collections, drawn.collections, strict=True):
            np.testing.assert_allclose(one.get_offsets(), other.get_offsets(), rtol=1e-4, atol=1e-5)
    assert drawn is axes


@pytest.mark.filterwarnings("ignore::reclust.ReclustWarning")
def test_every_estimator_can_be_plotted(model):
    others = SelfLabeling(model, warmup_epochs=1, epochs=1, device="cpu").fit(X), Reclust(12, effort="quick", random_state=0, device="cpu").fit(X)
    for other in others:
        assert sum(len(one.get_offsets()) for one in other.plot().collections) == 80


def test_files_of_version_0_1_have_nothing_to_draw(model):
    old = reclust.load(__file__.replace("report/test_plot.py", "version_0_1/model.reclust"))
    with pytest.raises(ValueError, match="version 0.1"):
        old.plot()


def test_two_dimensions_stay_and_umap_is_used_where_it_is_installed(monkeypatch):
    z = np.random.default_rng(0).normal(size=(20, 3))
    assert plotting.project(z[:, :2])[1] is not None and (plotting.project(z[:, :2])[1] == z[:, :2]).all()

    class Umap:
        def __init__(self, **options):
            self.fit_transform = lambda z: z[:, 1:]

    monkeypatch.setattr(plotting, "find_spec", lambda name: name == "umap")
    monkeypatch.setitem(sys.modules, "umap", type("umap", (), {"UMAP": Umap}))
    name, points = plotting.project(z)
    assert name == "UMAP" and (points == z[:, 1:]).all()
