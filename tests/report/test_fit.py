"""The report of a single fit shows the numbers of the model, in a browser too."""

import base64
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
from reclust import IDEC, SelfLabeling, geometry, metrics
from reclust.cli import main
from reclust.data import Lens
from reclust.report.fit import fit_data

pandas, PIL = pytest.importorskip("pandas"), pytest.importorskip("PIL.Image")
HOSTILE = "</script><img src=x onerror=alert(1)>"


def small(k=4, **changes):
    return IDEC(k, preset=small_settings(), random_state=0, device="cpu", **changes)


@pytest.fixture(scope="module")
def table():
    """A fitted model of two replicas, its data and classes; a column and a class are named HOSTILE."""
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


def test_numbers_are_those_of_the_model(table, data):
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
    assert data["replicas"]["nmi"][0, 1] == pytest.approx(expected)
    loss = model.history_["clustering"]["loss"].values
    assert data["curves"]["lines"]["clustering.loss"]["kept"]["mean"] == pytest.approx(loss)
    assert data["curves"]["resets"] == [2, 4]
    assert dict(data["settings"])["intervention.interval"] == "2"


def test_profiles_are_deviations_from_the_mean(table, data):
    model, X, _ = table
    deviations = (X.groupby(model.labels_).mean() - X.mean()) / X.std(ddof=0)
    for cluster, shown in enumerate(data["samples"]["clusters"]):
        expected = deviations.loc[cluster].drop("constant").abs().sort_values(ascending=False)
        assert [one["name"] for one in shown] == list(expected.index)
        assert [one["deviation"] for one in shown] == pytest.approx([deviations.loc[cluster, one["name"]] for one in shown])
        assert [one["mean"] for one in shown] == pytest.approx([X[model.labels_ == cluster][one["name"]].mean() for one in shown])


def test_other_samples_are_refused(table, tmp_path):
    model, X, y = table
    with pytest.raises(ValueError, match="needs the 80 samples .* got 70"):
        model.report(tmp_path / "r.html", X[:70])
    with pytest.raises(ValueError, match="same order"):
        model.report(tmp_path / "r.html", X[::-1])
    with pytest.raises(ValueError, match="70"):
        model.report(tmp_path / "r.html", X, y[:70])
    with pytest.raises(FileNotFoundError, match="nowhere"):
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
def test_self_labeling_and_sparse_rows_have_reports(table):
    model, X, _ = table
    labeled = SelfLabeling(model, warmup_epochs=2, epochs=3, batch_size=40, device="cpu").fit(X)
    made = fit_data(labeled, X, title="t")
    assert "self-labeling.loss" in made["curves"]["lines"] and "Training stopped early" not in [one["title"] for one in made["findings"]]
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


def test_settings_show_the_lens(images):
    _, X = images
    through = IDEC(3, preset=small_settings(), lens=Lens(8, light="removed"), random_state=0, device="cpu").fit(X)
    said = dict(fit_data(through, X, title="t")["settings"])
    assert said["lens.least_side"] == "8" and said["lens.light"] == "removed"


def test_the_command_line_writes_a_report(images, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos" / "a&b").mkdir(parents=True)
    for i, pixels in enumerate(images[1][:40]):
        PIL.fromarray(pixels).save(tmp_path / "photos" / ("a&b" if i % 2 else "") / f"{i:02}.png")
    quick = ["--preset", "everyday", "--light", "kept", "--epochs", "11", "--pretrain-epochs", "2", "--seed", "0", "--device", "cpu"]
    assert main(["fit", "photos", "-k", "3", "--report", "fit.html", *quick]) == 0
    assert "report: fit.html" in capsys.readouterr().out
    text = (tmp_path / "fit.html").read_text()
    assert "<title>photos in 3 clusters</title>" in text and "a\\u0026b/" in text and (tmp_path / "reclust-output" / "labels.csv").exists()
    assert main(["fit", "photos", "-k", "3", "-o", "other", "--report", "no/fit.html"]) == 1
    assert "no" in capsys.readouterr().err


@pytest.fixture(scope="module")
def page(table, tmp_path_factory):
    model, X, y = table
    path = tmp_path_factory.mktemp("page") / "fit.html"
    model.report(path, X, y, title=HOSTILE)
    return path


def test_names_are_escaped(page):
    text = page.read_text()
    assert "<img" not in text
    content = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert content["title"] == HOSTILE and HOSTILE in content["known"]["confusion"]["classes"]


@pytest.mark.parametrize(("width", "dark"), [(390, True), (1200, False)])
def test_the_page_fits_the_screen(browser, page, tmp_path, width, dark):
    browser.open(page, width=width, dark=dark)
    assert browser.run("document.documentElement.dataset.ready") == "yes"
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    browser.run("document.querySelectorAll('button.more').forEach((one) => one.click())")
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.querySelectorAll('img').length") == 0
    shown = browser.run("document.body.textContent")
    assert HOSTILE in browser.run("[...document.querySelectorAll('.profile .name')].map((one) => one.textContent)") and "Is it better than k-means?" in shown
    time.sleep(0.1)
    browser.screenshot(tmp_path / "shot.png")
    with PIL.open(tmp_path / "shot.png") as shot:
        assert shot.width == width and len(shot.convert("RGB").getcolors(1 << 24)) > 50
        assert (np.asarray(shot.convert("L"))[0, 0] < 128) == dark
    assert browser.errors == []


def test_the_page_is_interactive(browser, page, images, tmp_path):
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
    assert "Only one replica was trained" in browser.run("document.body.textContent") and browser.errors == []


SELECT = """(() => {
  const canvas = document.querySelector('canvas'), box = canvas.getBoundingClientRect();
  document.querySelectorAll('.scene button')[0].click();
  const send = (kind, x, y) => canvas.dispatchEvent(new PointerEvent(kind, {bubbles: true, clientX: box.left + x * box.width, clientY: box.top + y * box.height}));
  [['pointerdown', -0.1, -0.1], ['pointermove', @, -0.1], ['pointermove', @, 1.1], ['pointermove', -0.1, 1.1], ['pointerup', -0.1, 1.1]].forEach((one) => send(...one));
  document.querySelectorAll('.scene button')[0].click();
})()"""
SAVED = """(() => {
  const make = URL.createObjectURL;
  return new Promise((resolve) => {
    URL.createObjectURL = (blob) => { resolve(blob.text()); return make(blob); };
    document.querySelectorAll('.scene button')[1].click();
  });
})()"""


def test_samples_are_found_by_words_and_lasso_and_saved(browser, page, table, data):
    model, X, y = table
    browser.open(page)
    search = "(() => {{ const box = document.querySelector('.scene input'); box.value = '{}'; box.dispatchEvent(new Event('input')); }})()"
    browser.run(search.format("CLUSTER 2"))
    lines = browser.run(SAVED).splitlines()
    assert lines[0] == "id,cluster" and lines[1:] == [f'"{i}",2' for i in np.flatnonzero(model.labels_ == 2)]
    browser.run(search.format("nothing like this"))
    assert browser.run("document.querySelectorAll('.scene button')[1].disabled")
    points = np.frombuffer(base64.b64decode(data["map"]["points"]), np.uint8).reshape(-1, 2)[:80]
    for share in (0.5, 1.1):
        browser.run(SELECT.replace("@", str(share)))
        inside = np.flatnonzero(points[:, 0] < 256 * share)
        assert browser.run(SAVED).splitlines()[1:] == [f'"{i}",{model.labels_[i]}' for i in inside] and len(inside)
    browser.run(search.format(""))
    assert browser.run("document.querySelectorAll('.scene button')[1].hidden") and browser.errors == []


def test_points_outside_the_frame_are_counted(browser, tmp_path):
    X, _ = blobs(n=80, features=6)
    X[7] += 300
    model = small(lens=None).fit(X)
    model.report(tmp_path / "r.html", X)
    points = np.frombuffer(base64.b64decode(fit_data(model, X, title="t")["map"]["points"]), np.uint8).reshape(-1, 2)[:80]
    outside = ((points == 0) | (points == 255)).any(1).sum()
    browser.open(tmp_path / "r.html")
    said = re.search(r"(\d+) samples? outside the frame", browser.run("document.querySelector('.scene').textContent"))
    assert (int(said[1]) if said else 0) == outside
