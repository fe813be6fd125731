"""How many clusters: the measures against slow transcriptions, and answers where the answer is known."""

import json
import re
from itertools import combinations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_blobs
from support import blobs

from reclust import (
    BRB,
    Autoencoder,
    IDECObjective,
    KMeans,
    KSuggestion,
    Schedule,
    Settings,
    suggest_k,
)
from reclust.cli import main
from reclust.estimators.suggest_k import (
    MAX_K,
    STRONG,
    _mean_and_error,
    largest_k,
    prediction_strength,
)

QUICK = Settings(2, IDECObjective(), representation=Autoencoder((24,), embedding=5), intervention=BRB(interval=4, method=KMeans(n_init=2)),
                 pretraining=Schedule(epochs=15, lr=5e-3, batch_size=30, views=("clean",)), clustering=Schedule(epochs=6, batch_size=30))


def test_prediction_strength_is_the_worst_clusters_share_of_pairs():
    rng = np.random.default_rng(0)
    own, other = rng.integers(3, size=40), rng.integers(4, size=40)
    shares = []
    for cluster in range(3):
        pairs = list(combinations(np.flatnonzero(own == cluster), 2))
        shares.append(sum(other[i] == other[j] for i, j in pairs) / len(pairs))
    assert prediction_strength(own, other, 3) == pytest.approx(min(shares))
    assert prediction_strength(own, np.array([2, 0, 1])[own], 3) == 1.0, "names do not matter"
    assert prediction_strength(own, own, 4) == 0.0, "a cluster died"
    assert prediction_strength(np.r_[own, 3], np.r_[own, 3], 4) == 0.0, "a cluster of one is nothing that could be found again"


def test_the_error_is_that_of_a_mean_where_models_are_independent():
    rng = np.random.default_rng(0)
    found = [rng.random(5), rng.random(4)]
    everything = np.concatenate(found)
    expected = [everything.mean(), everything.std(ddof=1) / np.sqrt(9)]
    np.testing.assert_allclose(_mean_and_error(found), expected)
    pairs = [rng.random((3, 3)), rng.random((3, 3))]
    mean, error = _mean_and_error(pairs)
    assert mean == pytest.approx(np.mean(pairs)) and error > 0
    assert np.isnan(_mean_and_error([np.ones((1, 1))])[1]), "of one pair nothing is known"


def suggestion(strength, errors=0.01, silhouette=(0.1, 0.5, 0.3)):
    flat = np.full((3, 2), 0.1)
    second = np.column_stack([silhouette, np.full(3, 0.01)])
    return KSuggestion((2, 3, 4), np.column_stack([strength, np.broadcast_to(errors, 3)]), flat, flat, second, 100)


@pytest.mark.parametrize(("strength", "errors", "k", "plausible"), [
    ((0.9, 0.95, 0.4), 0.01, 3, (2, 3)), ((0.99, 0.6, 0.5), 0.01, 2, (2,)), ((0.7, 0.6, 0.5), 0.01, None, ()),
    ((0.7, 0.6, 0.5), (0.06, 0.01, 0.01), None, (2,)), ((0.9, 0.3, STRONG), 0.01, 4, (2, 4)), ((0.9, 0.79, 0.2), 0.02, 2, (2, 3)),
    ((0.9, 0.79, 0.2), np.nan, 2, (2,)),
])
def test_the_largest_number_found_again_wins(strength, errors, k, plausible):
    made = suggestion(strength, errors)
    assert made.k == k and made.plausible == plausible and made.by_silhouette == 3
    said = str(made)
    assert ("No clear answer" in said) == (k is None) and len(said.splitlines()) == 6 and "nan" not in said
    assert ("<-" in said) == (k is not None)


def test_it_can_be_drawn():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    axes = suggestion((0.9, 0.95, 0.4)).plot()
    assert axes.get_title() == "k = 3" and suggestion((0.1, 0.1, 0.1)).plot(axes) is axes and axes.get_title() == "no clear answer"
    plt.close("all")


@pytest.mark.parametrize("k", [3, None])
def test_groups_are_counted_and_none_are_invented(k):
    X = blobs(n=120, features=10, k=k)[0] if k else np.random.default_rng(0).random((120, 10))
    before = torch.random.get_rng_state()
    made = suggest_k(X, (2, 3, 4), n_init=2, splits=1, settings=QUICK)
    assert made.k == k and made.n_samples == 120
    assert made.strength.shape == (3, 2) and np.isfinite(made.strength).all()
    assert torch.equal(before, torch.random.get_rng_state())
    if k is not None:
        again = suggest_k(X, [4], n_init=2, splits=1, settings=QUICK)
        np.testing.assert_array_equal(again.strength[0], made.strength[2], "what else is tried does not matter")


@pytest.mark.parametrize(("given", "message"), [
    ({"ks": [1, 2]}, "each number in ks must be an integer of at least 2, got 1"), ({"ks": []}, r"ks=\(\) does not suit 40 samples: try numbers of clusters from 2 to 10"), ({"ks": 3}, r"ks must be a sequence of integers, such as \(3,\), got 3"),
    ({"ks": [2, 12]}, "from 2 to 10"), ({"n_init": 0}, "n_init"), ({"splits": 0}, "splits"), ({"random_state": -1}, "random_state"),
    ({"image_shape": (2, 2)}, "image_shape"), ({"device": "gpu"}, "device"),
])
def test_mistakes_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        suggest_k(np.random.default_rng(0).random((40, 3)), **{"ks": [2], "settings": QUICK, **given})


def test_of_few_samples_no_more_than_a_quarter_is_tried():
    X = blobs(n=14, k=2)[0]
    assert suggest_k(X, n_init=1, splits=1, settings=QUICK).ks == (2, 3) and (largest_k(50), largest_k(5000)) == (12, MAX_K)
    with pytest.raises(ValueError, match="does not suit 7 samples"):
        suggest_k(X[:7])


def test_features_keep_their_scales_where_that_is_asked_for(tmp_path, monkeypatch, capsys):
    X = np.random.default_rng(0).normal(size=(40, 4)) * [8, 4, 2, 1]
    given = {"ks": [2], "n_init": 1, "splits": 1, "settings": QUICK}
    scaled, own = (suggest_k(X, **given, standardize=standardize).silhouette[0, 0] for standardize in (True, False))
    assert scaled != own
    np.save(tmp_path / "x.npy", X)
    monkeypatch.setattr("reclust.estimators.suggest_k._short_settings", lambda n: QUICK)
    assert main(["suggest-k", str(tmp_path / "x.npy"), "--to", "2", "--n-init", "1", "--splits", "1", "--no-standardize", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["silhouette"] == own


@pytest.mark.parametrize(("given", "message"), [
    (["--from", "5", "--to", "3"], r"ks=\(\) .* from 2 to 10 \(--from, --to\)"), (["--to", "12"], "does not suit 40 samples"),
])
def test_the_command_line_names_its_own_options(given, message, tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((40, 3)))
    assert main(["suggest-k", str(tmp_path / "x.npy"), *given]) == 1
    assert re.search(message, capsys.readouterr().err)


def test_flat_rows_of_images_are_images(tmp_path, monkeypatch, capsys):
    X = load_digits().data[:60]
    given = {"ks": [2], "n_init": 1, "splits": 1}
    rows, images, table = (suggest_k(x, **given, settings=QUICK, image_shape=shape).silhouette
                           for x, shape in ((X, (8, 8)), (X.reshape(-1, 8, 8), None), (X, None)))
    np.testing.assert_array_equal(rows, images)
    assert (rows != table).any()
    np.save(tmp_path / "x.npy", X)
    monkeypatch.setattr("reclust.estimators.suggest_k._short_settings", lambda n: QUICK)
    assert main(["suggest-k", str(tmp_path / "x.npy"), "--to", "2", "--n-init", "1", "--splits", "1", "--image-shape", "8", "8", "--json"]) == 0
    (said,) = json.loads(capsys.readouterr().out)
    assert said["silhouette"] == rows[0, 0]


def test_the_command_line_prints_it(tmp_path, monkeypatch, capsys):
    np.save(tmp_path / "x.npy", blobs(n=80, k=2)[0])
    monkeypatch.setattr("reclust.estimators.suggest_k._short_settings", lambda n: QUICK)
    given = ["suggest-k", str(tmp_path / "x.npy"), "--from", "2", "--to", "3", "--n-init", "2", "--splits", "1", "--device", "cpu"]
    monkeypatch.setattr("reclust.cli.common.PROGRESS_SECONDS", 0.0)
    assert main(given) == 0
    said = capsys.readouterr()
    assert "2 clusters" in said.out
    assert [line.split(",")[0] for line in said.err.splitlines()] == [f"reclust: suggest_k: {share}%" for share in (25, 50, 75, 100)]
    assert main([*given, "--json"]) == 0
    assert '"suggested": 2' in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(("X", "k"), [
    (make_blobs(600, 10, centers=3, cluster_std=2.5, random_state=1)[0], 3),
    (make_blobs(800, 10, centers=5, cluster_std=2.5, random_state=2)[0], 5),
    (load_digits().images[np.isin(load_digits().target, (0, 4, 7))], 3),
    (np.random.default_rng(0).random((600, 10)), None),
], ids=["3 blobs", "5 blobs", "digits 0, 4, 7", "uniform"])
def test_the_usual_settings_find_what_is_known(X, k):
    assert suggest_k(X, range(2, 8)).k == k
