"""The figures in the report of a store are those that are drawn by themselves, and never stop it from being written."""

import base64
import json
import re
import sys

import pytest
from studies.invented import fill
from studies.tiny import tiny_study

from reclust.cli import main
from reclust.studies import Store, StoreReader
from reclust.studies.figures import FIGURES, MissingData, draw, source
from reclust.studies.html import report as gallery
from reclust.studies.html.report import report

pytest.importorskip("pandas")
DRAWN = ["runtime", "momentum-reset"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A store with records for two figures, and with a study that was planned for another."""
    made = tmp_path_factory.mktemp("gallery") / "store.sqlite"
    with Store(made) as store:
        fill(store, "runtime", seeds=1, sets=("mnist",))
        fill(store, "momentum-reset", seeds=2, sets=("usps",))
        store.plan("voronoi", "spec", [])
    return made


@pytest.fixture
def reader(path):
    with StoreReader(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(path, tmp_path_factory):
    pytest.importorskip("matplotlib")
    made = tmp_path_factory.mktemp("page") / "report.html"
    with StoreReader(path) as opened:
        report(opened, made)
    return made


def figures_of(path):
    """What the script of a page reads about figures."""
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL)[1])["figures"]


def without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)


def test_they_are_those_drawn_by_themselves_and_say_where_they_come_from(reader, page, tmp_path):
    found = figures_of(page)
    assert [one["name"] for one in found["drawn"]] == DRAWN
    for one in found["drawn"]:
        draw(reader, one["name"], tmp_path / "figure.svg")
        head, content = one["picture"].split(",")
        assert head == "data:image/svg+xml;base64"
        assert base64.b64decode(content) == (tmp_path / "figure.svg").read_bytes()
        assert one["about"] == FIGURES[one["name"]].about and one["source"] == f"From {source(reader, one['name'])}."
    said, = found["said"]
    assert said.startswith("Not drawn, no data: ") and set(said[20:-1].split(", ")) == set(FIGURES) - set(DRAWN)


def test_the_same_store_gives_the_same_figures(reader, page, tmp_path):
    report(reader, tmp_path / "again.html")
    assert figures_of(tmp_path / "again.html") == figures_of(page)


def test_without_matplotlib_the_report_says_how_to_get_it(reader, tmp_path, monkeypatch):
    without_matplotlib(monkeypatch)
    report(reader, tmp_path / "report.html")
    found = figures_of(tmp_path / "report.html")
    assert found["drawn"] == [] and len(found["said"]) == 1 and "pip install 'reclust[plot]'" in found["said"][0]


def test_studies_of_ones_own_have_no_figures_and_wait_for_none(tmp_path, monkeypatch):
    without_matplotlib(monkeypatch)
    with Store(tmp_path / "store.sqlite") as store:
        store.plan("mine", tiny_study(name="mine"), [])
        report(store, tmp_path / "report.html")
    assert figures_of(tmp_path / "report.html") is None


def test_they_can_be_left_out(reader, path, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gallery, "figure", lambda *given: pytest.fail("drawn nonetheless"))
    made = tmp_path / "report.html"
    report(reader, made, figures=False)
    assert figures_of(made) is None
    made.unlink()
    assert main(["report", str(path), "-o", str(made), "--no-figures"]) == 0
    assert figures_of(made) is None


@pytest.mark.parametrize(("error", "said"), [
    (MissingData("no such curve"), r"Not drawn, no data: .*\bruntime\b"),
])
def test_one_that_cannot_be_drawn_leaves_the_others(reader, tmp_path, monkeypatch, error, said):
    pytest.importorskip("matplotlib")

    def figure(store, name):
        if name == "runtime":
            raise error
        return drawn(store, name)

    drawn = gallery.figure
    monkeypatch.setattr(gallery, "figure", figure)
    report(reader, tmp_path / "report.html")
    found = figures_of(tmp_path / "report.html")
    assert [one["name"] for one in found["drawn"]] == ["momentum-reset"]
    assert re.match(said, found["said"][-1])


def test_where_nothing_can_be_drawn_nothing_is_shown(reader, monkeypatch):
    pytest.importorskip("matplotlib")

    def figure(store, name):
        raise MissingData(name)

    monkeypatch.setattr(gallery, "figure", figure)
    assert gallery.gallery(reader, lambda: None) is None


def test_how_far_it_is_is_told(reader, tmp_path):
    pytest.importorskip("matplotlib")
    shares = []
    report(reader, tmp_path / "report.html", progress=shares.append)
    count = 3 + len(FIGURES)
    assert shares == pytest.approx([part / count for part in range(1, count + 1)]), "three studies and all figures"


def test_there_must_be_a_folder_before_anything_is_computed(reader, tmp_path):
    shares = []
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        report(reader, tmp_path / "nowhere" / "report.html", progress=shares.append)
    assert shares == []


def test_they_are_enlarged_by_keyboard(browser, page):
    browser.open(page, width=390, dark=True)
    assert browser.run("document.querySelector('a[href=\"#figures\"]').textContent") == "2 figures"
    assert browser.run("document.querySelectorAll('#figures figure').length") == 2
    assert browser.run("Promise.all([...document.images].map((one) => one.decode())).then(() => "
                       "[...document.images].every((one) => one.naturalWidth > 300))")
    assert browser.run("getComputedStyle(document.images[0]).backgroundColor") == "rgb(255, 255, 255)"
    assert "From runtime, 1 run each." in browser.run("document.querySelector('#figures figcaption').textContent")
    small = browser.run("document.images[0].getBoundingClientRect().width")
    browser.run("document.querySelector('#figures button').focus()")
    browser.press("Enter")
    assert browser.run("document.querySelector('dialog[open] h2').textContent") == "runtime"
    assert browser.run("document.querySelector('dialog[open] img').getBoundingClientRect().width") > small
    assert browser.run("document.documentElement.scrollWidth") <= 390
    browser.press("Escape")
    assert browser.run("document.querySelector('dialog[open]')") is None
    assert browser.run("document.activeElement.ariaLabel") == "Enlarge runtime", "focus goes back"
    assert browser.errors == []


def test_a_page_without_matplotlib_has_a_line_instead(browser, reader, tmp_path, monkeypatch):
    without_matplotlib(monkeypatch)
    report(reader, tmp_path / "report.html")
    browser.open(tmp_path / "report.html")
    assert browser.run("document.getElementById('figures')") is None
    assert "reclust[plot]" in browser.run("document.querySelector('main').innerText")
    assert browser.errors == []
