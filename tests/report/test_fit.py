"""The report of a single fit: its numbers are the model's, its words follow from them, and a browser shows it."""

import json
import re
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse
from support import blobs, small_settings

import reclust
from reclust import IDEC, Curve, SelfLabeling, geometry, metrics
from reclust.cli import main
from reclust.data import Lens, read
from reclust.data.augmentation.affine import Noise
from reclust.interventions import Every, Exchange, ResetMomentum
from reclust.report import cluster_parts as parts
from reclust.report.findings import Facts, remarks
from reclust.report.fit import fit_data
from reclust.report.versus_kmeans import MARGIN, SAME, Evidence, compare

pandas, PIL = pytest.importorskip("pandas"), pytest.importorskip("PIL.Image")
HOSTILE = "</script><img src=x onerror=alert(1)>"


def small(k=4, **changes):
    return IDEC(k, preset=small_settings(), random_state=0, device="cpu", **changes)


@pytest.fixture(scope="module")
def table():
    """A fitted model of two replicas, the DataFrame, and classes; one column and one class have names that attack."""
    X, y = blobs(n=80, features=6)
    frame = pandas.DataFrame(X, columns=[HOSTILE, *(f"x{i}" for i in range(5))])
    frame["constant"] = 7.0
    torch.set_num_threads(1)
    return small(n_init=2).fit(frame), frame, np.array([HOSTILE, "b", "c", "d"])[y]


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = (rng.random((60, 6, 5, 3)) * 100 + 50 * y[:, None, None, None]).astype(np.uint8)
    torch.set_num_threads(1)
    return small(3, lens=None).fit(X), X


@pytest.fixture(scope="module")
def data(table):
    model, X, y = table
    return fit_data(model, X, y, title="t")


def test_numbers_are_the_models(table, data):
    model, X, y = table
    assert [one["size"] for one in data["clusters"]] == np.bincount(model.labels_).tolist()
    confidence, ratio = model.predict_proba(X).max(1), geometry.distance_ratio(
        torch.from_numpy(model.transform(X)), torch.from_numpy(model.cluster_centers_)).numpy()
    for name, values in (("confidence", confidence), ("ratio", ratio)):
        assert data[name]["median"] == pytest.approx(np.median(values))
        assert data[name]["counts"].tolist() == np.histogram(values, bins=20, range=(0, 1))[0].tolist()
        for one in data["clusters"]:
            assert one[name] == pytest.approx(values[model.labels_ == one["cluster"]].mean())
    assert data["known"]["deep"] == metrics.scores(y, model.labels_)
    assert data["known"]["plain"] == metrics.scores(y, model.baseline_.labels_)
    assert [row["score"] for row in data["replicas"]["rows"]] == [one.score for one in model.replicas_]
    expected = metrics.nmi(model.replicas_[0].labels, model.replicas_[1].labels)
    assert data["replicas"]["between"][0, 1] == pytest.approx(expected)
    loss = model.history_["clustering"]["loss"].values
    assert data["curves"]["lines"]["clustering.loss"]["kept"]["mean"] == pytest.approx(loss)
    assert data["curves"]["resets"] == [2, 4]
    assert dict(data["settings"])["intervention.interval"] == "2"


def test_profiles_name_what_differs_in_standard_deviations(table, data):
    model, X, _ = table
    deviations = (X.groupby(model.labels_).mean() - X.mean()) / X.std(ddof=0)
    for cluster, shown in enumerate(data["samples"]["clusters"]):
        expected = deviations.loc[cluster].drop("constant").abs().sort_values(ascending=False)
        assert [one["name"] for one in shown] == list(expected.index)
        assert [one["deviation"] for one in shown] == pytest.approx([deviations.loc[cluster, one["name"]] for one in shown])
        assert [one["mean"] for one in shown] == pytest.approx([X[model.labels_ == cluster][one["name"]].mean() for one in shown])


def test_the_map_is_the_plane_of_the_largest_variance():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(50, 5)) * [5, 3, 1, 0.5, 0.1]
    made = parts.embedding_map(z, z[:3], np.arange(50) % 3, np.arange(50))
    variances = np.sort(np.linalg.eigvalsh(np.cov(z.T)))[::-1]
    assert made["share"] == pytest.approx(variances[:2].sum() / variances.sum())
    assert (made["clusters"] == np.arange(50) % 3).all() and made["n_clusters"] == 3


def test_agreement_does_not_depend_on_the_names_of_clusters():
    rng = np.random.default_rng(0)
    reference = rng.integers(4, size=60)
    renamed = np.array([2, 3, 0, 1])[reference]
    other = np.where(np.arange(60) < 6, (renamed + 1) % 4, renamed)
    shares = parts.agreement(np.stack([renamed, other]), reference)
    np.testing.assert_allclose(shares, np.where(np.arange(60) < 6, 0.5, 1.0))


@pytest.mark.parametrize(("spread", "expected"), [((1, 0, 0), 1.0), ((1, 1, 0), 2.0), ((0, 0, 0), 0.0)])
def test_effective_dimensions(spread, expected):
    corners = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T * np.array(spread)
    assert parts.effective_dimensions(corners) == pytest.approx(expected)


def evidence(**changes):
    given = {"agreement": 0.5, "views": (0.8, 0.8), "refits": (0.8, 0.8), "neighbours": (0.5, 0.5),
             "silhouettes_input": (0.1, 0.2), "silhouettes_embedding": (0.4, 0.1)}
    return Evidence(**{**given, **changes})


@pytest.mark.parametrize(("changes", "kind"), [
    ({"agreement": SAME, "views": (0.1, 0.9)}, "same"), ({}, "unclear"), ({"views": (0.8 + 2 * MARGIN, 0.8)}, "deep"),
    ({"views": (0.8 + MARGIN / 2, 0.8)}, "unclear"), ({"refits": (0.5, 0.8)}, "k-means"), ({"refits": (None, 0.2)}, "unclear"),
    ({"views": (0.99, 0.2), "unfair": {"views": "why"}}, "unclear"), ({"refits": (0.2, 0.8), "unfair": {"views": "why"}}, "k-means"),
    ({"views": (0.9, 0.8), "refits": (0.2, 0.8)}, "unclear"), ({"silhouettes_embedding": (0.99, 0.0)}, "unclear"),
])
def test_the_verdict_follows_from_steadiness_alone(changes, kind):
    assert evidence(**changes).verdict[0] == kind


def test_the_evidence_is_what_it_says(table):
    model, X, _ = table
    made = compare(model, X.to_numpy(), np.arange(len(X)))
    assert made.agreement == pytest.approx(metrics.ari(model.labels_, model.baseline_.labels_))
    assert made.refits[0] == pytest.approx(metrics.ari(*(one.labels for one in model.replicas_)))
    z = torch.from_numpy(model.transform(X))
    assert made.silhouettes_embedding[0] == pytest.approx(float(geometry.squared_silhouette(z, torch.from_numpy(model.labels_)).mean()))
    assert all(-1 <= number <= 1 for pair in (made.views, made.neighbours, made.silhouettes_input) for number in pair)
    assert made.unfair == {}


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("augment", [None, Noise()])
@pytest.mark.parametrize("step", [Exchange(), ResetMomentum()])
def test_what_training_aimed_at_has_no_vote(replicas, augment, step):
    X, _ = blobs(n=60)
    model = small(n_init=replicas, augment=augment, intervention=Every(2, (step,))).fit(X)
    copied = replicas > 1 and isinstance(step, Exchange)
    made = compare(model, X, np.arange(len(X)))
    assert ("views" in made.unfair, "refits" in made.unfair) == (copied or augment is not None, copied)
    assert (made.refits[0] is None) == (copied or replicas == 1)
    blank = replace(made, agreement=0.0)
    assert blank.verdict[0] == "unclear" or not (copied or augment is not None and replicas == 1)
    assert ("without a vote" in blank.rows()[0]["about"], "copied" in blank.rows()[1]["about"]) == ("views" in made.unfair, copied)
    assert fit_data(model, X, title="t")["replicas"]["exchanged"] == copied


def facts(**changes):
    given = {"asked": 3, "sizes": np.array([40, 30, 30]), "replicas": 4, "failed": 0, "between": 0.9, "exchanged": False, "dimensions": 2.5,
             "ratio": 0.5, "columns": {"label_change": Curve(np.arange(5), np.array([9, 9, 1, 1, 1.0]))}, "epochs": 5, "planned": 5, "batch_size": 2}
    return Facts(**{**given, **changes})


@pytest.mark.parametrize(("changes", "title"), [
    ({"asked": 5}, "Clusters died"), ({"sizes": np.array([60, 37, 3])}, "Very small clusters"),
    ({"sizes": np.array([60, 20, 20])}, "One cluster holds most samples"), ({"failed": 1}, "Replicas failed"),
    ({"between": 0.3}, "Replicas disagree"), ({"between": None}, "One replica only"), ({"exchanged": True}, "Replicas were copied from each other"), ({"dimensions": 1.1}, "The embedding is collapsed"),
    ({"ratio": 0.95}, "Most samples lie between clusters"), ({"epochs": 3}, "Training was cut short"), ({"batch_size": 60}, "Training was short"),
    ({"columns": {"label_change": Curve(np.arange(3), np.array([1, 20, 20.0]))}}, "Labels had not settled"),
    ({"columns": {"clusters": Curve(np.array([1, 3]), np.array([2, 3])), "clusters_after_reset": Curve(np.array([2]), np.array([3]))}},
     "Clusters were revived"),
])
def test_remarks_say_what_to_doubt(changes, title):
    assert remarks(facts()) == []
    assert title in [one.title for one in remarks(facts(**changes))]


def test_other_samples_are_refused(table, tmp_path):
    model, X, y = table
    with pytest.raises(ValueError, match="70 samples, but the model was fitted on 80"):
        model.report(tmp_path / "r.html", X[:70])
    with pytest.raises(ValueError, match="same order"):
        model.report(tmp_path / "r.html", X[::-1])
    with pytest.raises(ValueError, match="70 labels for 80"):
        model.report(tmp_path / "r.html", X, y[:70])
    with pytest.raises(FileNotFoundError, match="make it first"):
        model.report(tmp_path / "nowhere" / "r.html", X)


def test_loaded_failed_and_collapsed_models_have_reports(table, images, tmp_path):
    model, X, _ = table
    model.save(tmp_path / "m.reclust")
    loaded = reclust.load(tmp_path / "m.reclust")
    ours, theirs = (fit_data(one, X, title="t") for one in (model, loaded))
    assert ours["clusters"] == theirs["clusters"] and ours["verdict"] == theirs["verdict"]
    failing = reclust.load(tmp_path / "m.reclust")
    lost = 1 - failing.best_replica_
    failing.replicas_[lost] = replace(failing.replicas_[lost], failed=("clustering", 3))
    made = fit_data(failing, X, title="t")
    assert made["replicas"]["rows"][lost]["failed"] == "clustering, epoch 3" and made["replicas"]["agreement"] is None
    single = IDEC(1, preset=small_settings(intervention=None), random_state=0, device="cpu").fit(X)
    assert fit_data(single, X, title="t")["ratio"] is None


@pytest.mark.filterwarnings("ignore::reclust.ReclustWarning")
def test_the_third_stage_and_sparse_rows_have_reports(table):
    model, X, _ = table
    labeled = SelfLabeling(model, warmup_epochs=2, epochs=3, batch_size=40, device="cpu").fit(X)
    made = fit_data(labeled, X, title="t")
    assert "self-labeling.loss" in made["curves"]["lines"] and "Training was cut short" not in [one["title"] for one in made["remarks"]]
    assert made["confidence"]["median"] == pytest.approx(np.median(labeled.predict_proba(X).max(1)))
    rows = sparse.csr_array(X.to_numpy())
    fitted = small().fit(rows)
    assert fit_data(fitted, rows, title="t")["clusters"] == fit_data(fitted, rows.toarray(), title="t")["clusters"]


def test_images_are_shown_as_they_are(images):
    model, X = images
    made = fit_data(model, X, title="t")["samples"]
    assert made["kind"] == "sheet" and made["side"] == [6, 5]
    for cluster, shown in enumerate(made["clusters"]):
        known = [sample for sample in shown["samples"] if sample >= 0]
        assert (model.labels_[known] == cluster).all()
    flat = small(3, image_shape=(6, 5, 3), lens=None).fit(X.reshape(60, -1).astype(float))
    assert fit_data(flat, X.reshape(60, -1).astype(float), title="t")["samples"]["picture"] == made["picture"]


def test_what_images_are_seen_through_is_said(images):
    _, X = images
    through = IDEC(3, preset=small_settings(), lens=Lens(8, light="removed"), random_state=0, device="cpu").fit(X)
    said = dict(fit_data(through, X, title="t")["settings"])
    assert said["lens.least_side"] == "8" and said["lens.light"] == "removed"


def test_the_command_line_writes_it_from_a_folder_of_images(images, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos" / "a&b").mkdir(parents=True)
    for i, pixels in enumerate(images[1][:40]):
        PIL.fromarray(pixels).save(tmp_path / "photos" / ("a&b" if i % 2 else "") / f"{i:02}.png")
    quick = ["--preset", "everyday", "--light", "kept", "--epochs", "11", "--pretrain-epochs", "2", "--seed", "0", "--device", "cpu"]
    assert main(["fit", "photos", "-k", "3", "--report", "fit.html", *quick]) == 0
    assert "the report is fit.html" in capsys.readouterr().out
    text = (tmp_path / "fit.html").read_text()
    assert "<title>photos in 3 clusters</title>" in text and "a\\u0026b/" in text and (tmp_path / "reclust-output" / "labels.csv").exists()
    assert main(["fit", "photos", "-k", "3", "-o", "other", "--report", "no/fit.html"]) == 1
    assert "make it first" in capsys.readouterr().err


def test_columns_of_files_keep_their_names(tmp_path):
    (tmp_path / "named.csv").write_text("who,age,height\na,1,2\nb,3,4\n")
    (tmp_path / "bare.csv").write_text("1,2\n3,4\n")
    assert read(tmp_path / "named.csv", ids="who").feature_names == ("age", "height")
    assert read(tmp_path / "bare.csv").feature_names is None
    assert read(pandas.DataFrame({"u": [1.0, 2], "v": [3.0, 4]}), labels="v").feature_names == ("u",)


@pytest.fixture(scope="module")
def page(table, tmp_path_factory):
    model, X, y = table
    path = tmp_path_factory.mktemp("page") / "fit.html"
    model.report(path, X, y, title=HOSTILE)
    return path


def test_names_from_data_are_data(page):
    text = page.read_text()
    assert "<img" not in text
    content = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert content["title"] == HOSTILE and HOSTILE in content["known"]["confusion"]["classes"]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1200])
def test_it_fits_the_screen_and_shows_hostile_names_as_text(browser, page, tmp_path, width, dark):
    browser.open(page, width=width, dark=dark)
    assert browser.run("document.documentElement.dataset.ready") == "yes"
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    browser.run("document.querySelectorAll('button.more').forEach((one) => one.click())")
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.querySelectorAll('img').length") == 0
    shown = browser.run("document.body.textContent")
    assert HOSTILE in browser.run("[...document.querySelectorAll('.profile .name')].map((one) => one.textContent)") and "Was the deep model worth it?" in shown
    time.sleep(0.1)
    browser.screenshot(tmp_path / "shot.png")
    with PIL.open(tmp_path / "shot.png") as shot:
        assert shot.width == width and len(shot.convert("RGB").getcolors(1 << 24)) > 50
        assert (np.asarray(shot.convert("L"))[0, 0] < 128) == dark
    assert browser.errors == []


def test_parts_answer(browser, page, images, tmp_path):
    browser.open(page)
    assert browser.run("document.querySelectorAll('.panel .line').length") == 6, "three panels, the kept replica and the mean"
    assert browser.run("document.querySelectorAll('.reset').length") > 0
    assert browser.run("document.querySelectorAll('.player').length") == 0, "an embedding of one moment has no slider"
    browser.run("document.querySelector('canvas').scrollIntoView({block: 'center'})")
    box = browser.run("document.querySelector('canvas').getBoundingClientRect().toJSON()")
    for step in range(1, 40):
        browser.move(box["x"] + box["width"] * step / 40, box["y"] + box["height"] / 2)
    assert re.search(r"Sample \d+, class .*, cluster \d", browser.run("document.querySelector('.scene p').textContent"))
    assert browser.errors == []
    model, X = images
    model.report(tmp_path / "images.html", X)
    browser.open(tmp_path / "images.html")
    assert browser.run("document.querySelectorAll('.thumb').length") == 3 * 16
    assert "One replica was trained" in browser.run("document.body.textContent") and browser.errors == []
