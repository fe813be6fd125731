"""Numbers in the README and on pages are those of the committed records."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def record(path):
    return json.loads((ROOT / path).read_text())


def first_rows(text):
    """Name in the first column -> the other cells, of the first row with that name."""
    rows = {}
    for line in text.splitlines():
        if line.startswith("| "):
            name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            rows.setdefault(name, cells)
    return rows


def test_it_is_short():
    assert len(README.splitlines()) <= 120


def test_the_demo_s_table_is_its_record():
    for name, scores in record("results/demo.json")["scores"].items():
        columns = [np.array(scores[score]) for score in ("accuracy", "nmi", "ari")]
        cells = [f"{values.mean():.1f} ± {values.std(ddof=1) / np.sqrt(len(values)):.1f}" for values in columns]
        assert re.search(rf"^{re.escape(name)} +{' +'.join(map(re.escape, cells))}\s", README, flags=re.MULTILINE), name


def test_the_output_of_the_example_is_the_demo_s_record():
    demo = record("results/demo.json")["scores"]
    assert f", reclust {demo['Reclust']['accuracy'][0]:.1f}%\n" in README


def test_the_table_of_results_is_that_of_the_comparison_and_of_the_records():
    """A cell of the comparison also says over how many fits and by which method a number was reached."""
    compared = first_rows((ROOT / "docs/how/compare.md").read_text())
    shown = {name: cells for name, cells in first_rows(README).items() if "±" in cells[0]}
    assert len(shown) == 7
    for name, cells in shown.items():
        for cell, column in zip(cells[:3], (0, 1, 3), strict=True):
            assert compared[name][column].replace("*", "").startswith(cell.replace("*", "")), (name, cell)
        stem = name.lower().replace(" test part", "_test")
        runs = record(f"benchmarks/records/front_door_images_cuda_{stem}.json")["measured"][stem]["methods"]["Reclust, normal"]["each"]
        assert cells[3].strip("*") == f"{np.mean(runs):.1f} ± {np.std(runs, ddof=1) / len(runs) ** 0.5:.1f}"


@pytest.mark.parametrize(("kind", "row"), [("tables", "38 tables, mean"), ("r_tables", "26 tables of R packages, mean"),
                                          ("texts", "4 sets of texts, mean")])
def test_the_means_are_those_of_the_records(kind, row):
    sets = record(f"benchmarks/records/front_door_{kind}.json")["measured"].values()

    def mean(method):
        return f"{np.mean([found['methods'][method]['acc'] for found in sets]):.1f}"

    cells = [cell.strip("*") for cell in first_rows(README)[row]]
    assert cells == [mean("k-means"), mean("UMAP + mixture"), "–", mean("Reclust, normal")]
    for name, method in {"tables": [("Spectral clustering has", "spectral")],
                         "texts": [("UMAP + k-means", "UMAP + k-means"), ("EVoC", "EVoC")]}.get(kind, []):
        assert f"{name} {mean(method)}" in README


def test_the_comparison_of_tables_and_texts_is_that_of_the_records():
    compared = first_rows((ROOT / "docs/how/compare.md").read_text())
    methods = {"**Reclust**": "Reclust, normal", "Gaussian mixture, full": "mixture, full", "Gaussian mixture, diagonal": "mixture, diagonal", "spectral clustering": "spectral"}
    for name in (*methods, "k-means", "UMAP + k-means", "UMAP + mixture", "UMAP + HDBSCAN", "EVoC"):
        expected = []
        for kind in ("tables", "r_tables", "texts"):
            runs = [found["methods"].get(methods.get(name, name))
                    for found in record(f"benchmarks/records/front_door_{kind}.json")["measured"].values()]
            expected += [f"{np.mean([run[measure] for run in runs]):.1f}" if all(runs) else "–" for measure in ("acc", "nmi", "ari")]
        assert [cell.strip("*") for cell in compared[name]] == expected, name


def test_the_page_of_benchmarks_is_written_from_the_records(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import page

    assert (ROOT / "docs/benchmarks.md").read_text() == page.page()
