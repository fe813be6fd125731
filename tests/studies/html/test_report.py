"""The report of a store: its numbers are the store's, and in a browser it does what it offers."""

import json
import re

import numpy as np
import pytest
from studies.tiny import VARIANTS, tiny_study
from support import small_settings

from reclust import Curve, Every, Step, metrics, value
from reclust.cli import main
from reclust.data import load
from reclust.studies import Outcome, PlannedRun, Store, StoreReader, Variant, compact, run
from reclust.studies.html.report import report, report_data
from reclust.studies.html.run_details import samples_in
from reclust.utils import values

pytest.importorskip("pandas")
HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A study of eight runs that trained for real, and one whose only group failed."""
    with Store(tmp_path_factory.mktemp("report") / "store.sqlite") as opened:
        study = tiny_study(variants=VARIANTS[:2], measures=("embeddings",), pretrained=(False,))
        assert run(study, opened, progress=False).finished == 8
        opened.plan("fails", "spec", [PlannedRun("x", "g", "digits", "dec", "none", True, 1)])
        opened.fail("g", ["x"], "Traceback: out of luck")
        yield opened


@pytest.fixture(scope="module")
def data(store):
    return report_data(store, title="t", samples=samples_in(None))


def study_named(data, name):
    return next(study for study in data["studies"] if study["name"] == name)


def hostile_store(path):
    labels = np.arange(30) % 4
    with Store(path) as opened:
        runs = [PlannedRun(f"{HOSTILE}{i}", "g", HOSTILE, HOSTILE, HOSTILE, True, i, {HOSTILE: HOSTILE}) for i in range(2)]
        opened.plan(HOSTILE, "spec", runs)
        opened.plan("empty", "spec", [])
        opened.add(Outcome(
            group="g", runs=[one.key for one in runs], settings=[small_settings()] * 2,
            scores={name: np.array([0.5, 0.6]) for name in ("acc", "nmi", "ari")},
            history={"clustering": {HOSTILE: Curve(np.array([0, 4]), np.ones((2, 2)))}},
            arrays={"labels": np.stack([labels, labels]), "centers": np.zeros((2, 4, 3), dtype=np.float32)},
            seconds={HOSTILE: 1.0}, provenance={HOSTILE: HOSTILE}, failed={1: HOSTILE}))
    return Store(path)


def test_its_numbers_are_those_of_the_store(store, data):
    cells = study_named(data, "tiny")["cells"]
    means = store.means("tiny", measures=("acc", "nmi", "ari", "seconds"))
    assert [cell["key"]["variant"] for cell in cells] == [entry["variant"] for entry in means]
    for cell, entry in zip(cells, means, strict=True):
        for name in ("acc", "nmi", "ari", "seconds"):
            assert cell["means"][name] == [entry[f"{name}_{what}"] for what in ("mean", "std", "best")]
        series = data["series"][cell["series"]]["curves"]["clustering.accuracy"]
        assert series["mean"][-1] == pytest.approx(entry["acc_mean"])
        assert series["std"][-1] == pytest.approx(entry["acc_std"], abs=1e-6)


@pytest.mark.parametrize(("epochs", "shown"), [((0, 4, 9, 10), (0, 4, 9, 10)), ((4, 9, 10, 19, 20), (10, 20)), ((4, 9), ())])
def test_label_changes_are_over_one_epoch(tmp_path, epochs, shown):
    values = np.array(epochs, float)[:, None]
    with Store(tmp_path / "s.sqlite") as opened:
        opened.plan("s", "spec", [PlannedRun("x", "g", "digits", "dec", "none", True, 1)])
        opened.add(Outcome("g", ["x"], [small_settings()], {name: np.array([0.5]) for name in ("acc", "nmi", "ari")},
                           {"clustering": {"label_change": Curve(np.array(epochs), values), "nmi": Curve(np.array(epochs), values)}}, {}, {},
                           {"data": {"samples": 9}}))
        data = report_data(opened, title="t", samples=samples_in(None))
    (series,) = data["series"]
    assert len(series["curves"]["clustering.nmi"]["mean"]) == len(epochs)
    changes = series["curves"].get("clustering.label_change", {"mean": []})["mean"]
    assert [one for one in changes if np.isfinite(one)] == list(shown)


def test_every_run_has_its_record(store, data):
    for cell in study_named(data, "tiny")["cells"]:
        for place in cell["runs"]:
            entry = data["runs"][place]
            settings = dict(data["settings"][entry["settings"]])
            assert settings["objective"] == type(store.settings(entry["run"]).objective).__name__
            assert ("intervention.interval" in settings) == (cell["key"]["variant"] == "brb")
            assert dict(data["provenance"][entry["provenance"]])["device"] == store.provenance(entry["run"])["device"]


def test_inside_a_run(store, data):
    classes = load("digits").labels[:100]
    for cell in study_named(data, "tiny")["cells"]:
        key = data["runs"][cell["shown"]]["run"]
        inside, labels = data["run_details"][key], store.labels(key)
        assert np.trace(inside["confusion"]["counts"]) == round(100 * metrics.accuracy(classes, labels))
        for cluster, shown in enumerate(inside["sheet"]["clusters"]):
            known = [sample for sample in shown["samples"] if sample >= 0]
            assert (labels[known] == cluster).all() and len(known) == 2 * min(8, shown["size"])
        frames = inside["scene"]["frames"]
        assert frames[0] == {"epoch": 0, "reset": False} and frames[-1]["epoch"] == 4
        assert {"epoch": 2, "reset": True} in frames


def test_what_is_missing_is_said_in_words(store, tmp_path):
    def nowhere(name):
        return f"no {name} here"

    inside = next(iter(report_data(store, title="t", samples=nowhere)["run_details"].values()))
    assert inside["sheet"] == inside["confusion"] == "no digits here"
    assert len(inside["scene"]["classes"]) == len(inside["scene"]["rows"]) == 100, "these the store has"
    wrong = load("digits").take(slice(None, None, -1))
    inside = next(iter(report_data(store, title="t", samples=lambda name: wrong)["run_details"].values()))
    assert "not the one" in inside["confusion"]


def test_a_compact_store_has_a_report(store, tmp_path):
    compact([store.path], tmp_path / "small.sqlite")
    with StoreReader(tmp_path / "small.sqlite") as small:
        insides = report_data(small, title="t", samples=samples_in(None))["run_details"]
        whole = report_data(store, title="t", samples=samples_in(None))["run_details"]
    assert insides.keys() == whole.keys()
    for key, parts in insides.items():
        assert "compact" in parts["sheet"] and "compact" in parts["confusion"]
        scene, other = parts["scene"], whole[key]["scene"]
        assert scene["frames"] == [one for one in other["frames"] if one in scene["frames"]] and len(scene["frames"]) > 2
        assert list(scene["classes"]) == list(other["classes"]) and list(scene["rows"]) == list(other["rows"])


def test_parts_that_are_not_imported_are_shown_as_they_were_written(tmp_path, monkeypatch):
    step = value(type("Forgotten", (Step,), {"__call__": lambda self, target: None, "__module__": __name__}))()
    study = tiny_study(variants=(Variant("mine", Every(2, (step,))),), algorithms=("dec",), pretrained=(False,), about="Mine.")
    with Store(tmp_path / "store.sqlite") as opened:
        assert run(study, opened, progress=False).finished == 2
        known = dict(report_data(opened, title="t", samples=samples_in(None))["settings"][0])
    monkeypatch.delitem(values._KINDS, "Forgotten")
    with StoreReader(tmp_path / "store.sqlite") as reader:
        data = report_data(reader, title="t", samples=samples_in(None))
    written = dict(data["settings"][0])
    assert study_named(data, "tiny")["about"] == "Mine." and written["intervention.steps.1"] == "Forgotten"
    assert written == known and written["clustering.epochs"] == "4"


def test_limits_hold(store, monkeypatch):
    monkeypatch.setattr("reclust.studies.html.run_details.LIMITS", {"scene": 1, "sheet": 2, "confusion": 0})
    made = report_data(store, title="t", samples=samples_in(None))
    for part, limit in (("scene", 1), ("sheet", 2), ("confusion", 0)):
        contents = [inside[part] for inside in made["run_details"].values()]
        assert sum(isinstance(content, dict) for content in contents) == limit
        assert all("Left out" in content for content in contents if isinstance(content, str))


def test_names_from_data_are_data_and_the_file_is_whole(tmp_path):
    with hostile_store(tmp_path / "hostile.sqlite") as opened:
        report(opened, tmp_path / "report.html", title=HOSTILE)
        with pytest.raises(FileNotFoundError, match="There is no folder"):
            report(opened, tmp_path / "nowhere" / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "<img" not in text
    content = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1]
    assert HOSTILE in [study["name"] for study in json.loads(content)["studies"]]
    assert [path.name for path in tmp_path.glob("*.html*")] == ["report.html"]


def test_the_command_line_writes_it(store, tmp_path, capsys):
    path = tmp_path / "report.html"
    assert main(["report", str(store.path), "-o", str(path), "--title", "Digits & more"]) == 0
    assert "<title>Digits &amp; more</title>" in path.read_text()
    assert str(path) in capsys.readouterr().out
    assert main(["report", str(tmp_path / "none.sqlite"), "-o", str(path)]) == 1
    assert "There is no store" in capsys.readouterr().err


@pytest.fixture(scope="module")
def page(store, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    report(store, path)
    return path


@pytest.fixture
def opened(browser, page):
    """The page at the study that trained; whatever a test does may log no error."""
    browser.open(page)
    choose(browser, "Study", "tiny")
    yield browser
    assert browser.errors == []


def choose(browser, label, option):
    assert browser.run("""((label, option) => {
        const found = [...document.querySelectorAll(".field")].find((one) => one.firstChild.textContent === label).lastChild;
        found.selectedIndex = [...found.options].findIndex((one) => one.textContent === option);
        found.dispatchEvent(new Event("change"));
        return found.selectedIndex >= 0;
    })""" + f"({json.dumps(label)}, {json.dumps(option)})")


def column(browser, place):
    """Texts of a column of the first table."""
    return browser.run(f"[...document.querySelectorAll('table')[0].tBodies[0].rows].map((row) => row.cells[{place}].innerText)")


def test_tables_sort(opened):
    titles = opened.run("[...document.querySelectorAll('table')[0].tHead.rows[0].cells].map((cell) => cell.innerText.trim())")
    place = titles.index("Accuracy %")
    click = f"document.querySelectorAll('table')[0].tHead.rows[0].cells[{place}].querySelector('button').click()"
    unsorted = [float(text.split()[0]) for text in column(opened, place)]
    for direction, reverse in (("descending", True), ("ascending", False)):
        opened.run(click)
        assert [float(text.split()[0]) for text in column(opened, place)] == sorted(unsorted, reverse=reverse)
        assert opened.run(f"document.querySelectorAll('table')[0].tHead.rows[0].cells[{place}].ariaSort") == direction


def test_curves_toggle_and_answer(opened):
    lines = "document.querySelectorAll('.panel .line').length"
    assert opened.run(lines) == 4
    opened.run("document.querySelector('.legend button').click()")
    assert opened.run(lines) == 2
    assert opened.run("document.querySelector('.legend button').ariaPressed") == "false"
    choose(opened, "Measure", "NMI (%)")
    assert "NMI" in opened.run("document.querySelector('.panel figcaption').textContent")
    opened.run("document.querySelector('.plot').scrollIntoView({block: 'center'})")
    box = opened.run("document.querySelector('.plot').getBoundingClientRect().toJSON()")
    opened.move(box["x"] + box["width"] * 0.6, box["y"] + 50)
    assert re.fullmatch(r"epoch \d+brb [\d.]+.*", opened.run("document.querySelector('.tip').textContent"))
    opened.run("document.querySelector('.plot').focus()")
    for _ in range(2):
        opened.press("ArrowLeft")
    assert opened.run("document.querySelector('.tip').hidden") is False


def test_the_slider_goes_over_epochs_and_resets(opened):
    choose(opened, "Variant", "brb")
    picture = "document.querySelector('canvas').toDataURL()"
    opened.run(f"window.drawn = {picture}; 0")
    opened.run("document.querySelector('input[type=range]').focus()")
    said = [opened.run("document.querySelector('.epoch').textContent")]
    for _ in range(int(opened.run("document.querySelector('input[type=range]').max"))):
        opened.press("ArrowLeft")
        said.append(opened.run("document.querySelector('.epoch').textContent"))
    assert said == ["epoch 4", "epoch 3", "epoch 2, right after the reset", "epoch 2", "start"]
    redrawn = f"new Promise((done) => {{ let left = 500; const look = () => {{ const other = {picture} !== window.drawn; if (other || !left--) done(other); else setTimeout(look, 10); }}; look(); }})"
    assert opened.run(redrawn)
    assert opened.run("document.querySelectorAll('.thumb').length") > 20
    assert opened.run("document.querySelectorAll('.confusion tbody tr').length") == 10


def test_records_open_by_keyboard(opened):
    opened.run("document.querySelector('button.quiet').focus()")
    opened.press("Enter")
    assert "clustering.lr" in opened.run("document.querySelector('dialog[open]').textContent")
    opened.press("Escape")
    assert opened.run("document.querySelector('dialog[open]')") is None
    assert opened.run("document.activeElement.textContent") == "Record", "focus goes back"
    choose(opened, "Study", "fails")
    opened.run("document.querySelector('button.quiet').click()")
    assert "out of luck" in opened.run("document.querySelector('dialog[open] pre').textContent")


@pytest.mark.parametrize(("width", "dark"), [(390, True), (1200, False)])
def test_it_fits_the_screen(browser, page, tmp_path, width, dark):
    browser.open(page, width=width, dark=dark)
    choose(browser, "Study", "tiny")
    assert browser.run("document.documentElement.scrollWidth") <= width
    browser.screenshot(tmp_path / "shot.png")
    from PIL import Image
    with Image.open(tmp_path / "shot.png") as shot:
        assert shot.width == width and len(shot.convert("RGB").getcolors(1 << 24)) > 50
        assert (np.asarray(shot.convert("L"))[0, 0] < 128) == dark
    assert browser.errors == []


def test_hostile_names_are_shown_and_not_run(browser, tmp_path):
    with hostile_store(tmp_path / "hostile.sqlite") as opened:
        report(opened, tmp_path / "report.html", title=HOSTILE)
    browser.open(tmp_path / "report.html", width=390)
    for study in (HOSTILE, "empty"):
        choose(browser, "Study", study)
        browser.run("document.querySelectorAll('button.quiet').forEach((button) => button.click())")
        assert browser.run("document.querySelectorAll('img').length") == 0
        assert browser.run("document.documentElement.scrollWidth") <= 390
    assert HOSTILE in browser.run("document.body.textContent")
    assert browser.errors == []
