"""Texts are clustered as their embeddings are, and clusters are told by their words."""

import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

import reclust
from reclust import Reclust, metrics
from reclust.report.fit import fit_data

pytest.importorskip("pandas")
RNG, KIND = np.random.default_rng(0), np.arange(90) % 3
WORDS = (["cat", "dog", "fur", "paw", "pet", "vet"], ["bond", "fund", "loan", "cash", "bank", "rate"], ["sun", "rain", "snow", "wind", "cloud", "storm"])
TEXTS = ["the " + " and ".join(RNG.choice(WORDS[kind], 6)) for kind in KIND]
EMBED = make_pipeline(TfidfVectorizer(), TruncatedSVD(6, random_state=0)).fit(TEXTS).transform


@pytest.fixture(scope="module")
def model():
    return Reclust(3, effort="quick", random_state=0, device="cpu").fit(TEXTS, embed=EMBED)


def test_labels_are_those_of_the_embeddings(model):
    vectors = Reclust(3, kind="embeddings", effort="quick", random_state=0, device="cpu").fit(EMBED(TEXTS))
    assert (model.labels_ == vectors.labels_).all() and metrics.ari(KIND, model.labels_) == 1
    assert (model.predict(TEXTS[:5]) == model.labels_[:5]).all() and (model.predict(EMBED(TEXTS)) == model.labels_).all()


def test_words_and_typical_texts_of_each_cluster(model):
    frame = model.describe(TEXTS)
    for cluster, row in frame.iterrows():
        kind = KIND[model.labels_ == cluster][0]
        assert set(row["description"].split(", ")) < set(WORDS[kind]) and np.isnan(row["coverage"])
        assert all(KIND[TEXTS.index(text)] == kind for text in row["typical"])


def test_the_report_has_words_and_texts(model, tmp_path, browser):
    data = fit_data(model, TEXTS, title="t")
    assert [one["description"] for one in data["described"]] == model.describe(TEXTS)["description"].tolist()
    assert set(data["map"]["names"]) == set(TEXTS) and isinstance(data["samples"], str)
    model.report(tmp_path / "texts.html", TEXTS)
    browser.open(tmp_path / "texts.html")
    assert data["described"][0]["description"] in browser.run("document.body.textContent") and browser.errors == []


def test_a_loaded_model_asks_for_the_embedding(model, tmp_path):
    model.save(tmp_path / "m.reclust")
    assert TEXTS[0].encode() not in (tmp_path / "m.reclust").read_bytes()
    loaded = reclust.load(tmp_path / "m.reclust")
    assert (loaded.predict(EMBED(TEXTS)) == model.labels_).all()
    with pytest.raises(ValueError, match=r"load\(path, embed=…\)"):
        loaded.predict(TEXTS)
    assert (reclust.load(tmp_path / "m.reclust", embed=EMBED).predict(TEXTS) == model.labels_).all()
    with pytest.raises(ValueError, match="features"):
        reclust.load(tmp_path / "m.reclust", embed=lambda texts: np.ones((len(texts), 2))).predict(TEXTS)


@pytest.mark.parametrize(("embed", "message"), [
    ("all-MiniLM-L6-v2", "neither a function nor a model"), (lambda texts: EMBED(texts)[:40], "for 90 texts"),
    (lambda texts: np.ones((len(texts), 4, 5)), "embed returned shape")])
def test_embeddings_that_do_not_fit_are_refused(embed, message):
    with pytest.raises(ValueError, match=message):
        Reclust(3, effort="quick").fit(TEXTS, embed=embed)
