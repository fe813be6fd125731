"""How many clusters: answers where the answer is known, for every kind of data and estimator."""

import json
from itertools import chain, repeat

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, make_blobs

from reclust import IDEC, KSuggestion, Reclust, load, suggest_k
from reclust.cli import main
from reclust.ensemble.recipes import Effort

X4 = make_blobs(80, 6, centers=4, random_state=1)[0]


@pytest.fixture
def short_training(monkeypatch):
    monkeypatch.setattr("reclust.estimators.suggest_k.EFFORTS", {"normal": Effort(1, 1, 20)})


@pytest.fixture(scope="module")
def found():
    return suggest_k(X4)


def test_blobs_are_counted(found):
    assert found.k == 4 and found.clear and found.n_samples == 80 and found.chance < found.at_k
    np.testing.assert_array_equal(found.agreement[2:3], suggest_k(X4, least=4, most=4).agreement)


@pytest.mark.parametrize(("on_four", "k"), [(0.6, 4), (0.95, 2)])
def test_a_number_as_clear_without_clusters_gives_way_to_a_clear_one(monkeypatch, on_four, k):
    curves = chain([{2: 0.99, 3: 0.95, 4: 0.96}], repeat({2: 0.95, 3: 0.9, 4: on_four}))
    monkeypatch.setattr("reclust.estimators.suggest_k._table_agreement", lambda *_: next(curves).__getitem__)
    found = suggest_k(X4, most=4)
    assert found.k == k and found.clear == (k == 4)


def test_embeddings_are_counted_also_if_they_are_sorted(short_training, monkeypatch):
    monkeypatch.setattr("reclust.estimators.suggest_k.MAX_EMBEDDED", 100)
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(5, 24))
    rows = centers[np.arange(200) // 40] + 0.5 * rng.normal(size=(200, 24))
    found = suggest_k(rows / np.linalg.norm(rows, axis=1, keepdims=True), least=3, most=7)
    assert found.k == 5 and found.clear


def test_images_are_counted(short_training):
    digits = load_digits()
    images = digits.images[np.isin(digits.target, (0, 1, 4))][:180]
    found = suggest_k(images, most=5)
    assert found.k >= 3 and found.agreement[1] > found.agreement[0] and found.clear


def test_mixed_tables_are_counted():
    rng = np.random.default_rng(0)
    group = np.arange(150) % 3
    table = pd.DataFrame({"size": 5 * group + rng.normal(size=150), "color": np.array(["red", "green", "blue"])[group],
                          "shape": np.array(["round", "flat", "long"])[group]})
    found = suggest_k(table, most=6)
    assert found.k == 3 and np.isnan(found.chance)


@pytest.mark.parametrize("make", [lambda **options: Reclust("auto", effort="quick", **options),
                                  lambda **options: IDEC("auto", epochs=2, pretrain_epochs=5, intervention=None, **options)])
def test_estimators_take_the_number(make, tmp_path):
    model = make(min_clusters=3, max_clusters=5, random_state=0).fit(X4)
    assert model.suggestion_.ks == (3, 4, 5) and model.result_.settings[0].n_clusters == model.suggestion_.k == 4
    model.save(tmp_path / "a.reclust")
    again = load(tmp_path / "a.reclust")
    assert again.n_clusters == "auto" and again.suggestion_.k == 4
    np.testing.assert_array_equal(again.suggestion_.agreement, model.suggestion_.agreement)


@pytest.mark.parametrize(("agreement", "k"), [
    ([1.0, 0.9, 1.0, 0.96, 0.95, 0.8], 4),  # splits of true clusters agree nearly as well
    ([1.0, 0.7, 0.99, 0.985, 0.9, 0.8], 5), ([0.6, 0.7, 0.9, 0.8, 0.7, 0.6], 4), ([1.0] * 6, 7)])
def test_the_largest_number_that_is_nearly_perfect_or_the_highest_peak(agreement, k):
    assert KSuggestion(tuple(range(2, 8)), np.array(agreement), chance=0.5, n_samples=100).k == k


def test_a_suggestion_is_a_number_of_clusters(found, tmp_path):
    model = Reclust(found, effort="quick", random_state=0).fit(X4)
    assert model.suggestion_ is found and model.n_clusters_ == 4
    model.save(tmp_path / "a.reclust")
    assert load(tmp_path / "a.reclust").n_clusters == "auto"


def test_one_blob_is_not_divided():
    with pytest.warns(UserWarning, match="no separate clusters"):
        model = Reclust("auto", effort="quick", max_clusters=4, random_state=0).fit(np.random.default_rng(0).normal(size=(100, 5)))
    assert not model.suggestion_.clear and any("no separate clusters" in text for text in model.warnings_)


def test_the_command_line_needs_no_number(tmp_path, capsys):
    np.save(tmp_path / "x.npy", X4)
    assert main(["suggest-k", str(tmp_path / "x.npy"), "--from", "4", "--to", "5"]) == 0
    assert "4 clusters" in capsys.readouterr().out
    assert main(["suggest-k", str(tmp_path / "x.npy"), "--from", "4", "--to", "5", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["k"] for row in rows] == [4, 5] and [row["k"] for row in rows if row["suggested"]] == [4]
    assert main(["fit", str(tmp_path / "x.npy"), "-o", str(tmp_path / "out"), "--effort", "quick", "--seed", "0"]) == 0
    assert "80 samples in 4 clusters" in capsys.readouterr().out


@pytest.mark.parametrize(("given", "message"), [({"least": 5, "most": 4}, "between 5 and 4"), ({"least": 41}, "for 40 samples"),
                                                ({"random_state": -1}, "random_state"), ({"device": "gpu"}, "device")])
def test_mistakes_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        suggest_k(np.random.default_rng(0).random((40, 3)), **given)
