"""Numbers in the README and on pages are those of the committed records."""

import json
import re
from pathlib import Path

import numpy as np

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


def test_the_table_of_results_is_that_of_the_comparison():
    """A cell there also says over how many fits and by which method a number was reached."""
    compared = first_rows((ROOT / "docs/how/compare.md").read_text())
    shown = {name: cells for name, cells in first_rows(README).items() if name in compared and "±" in cells[0]}
    assert len(shown) >= 5
    for name, cells in shown.items():
        full = [compared[name][column].replace("*", "") for column in (0, 1, 3, 5)]
        for cell, longer in zip(cells, full, strict=True):
            assert longer.startswith(cell.replace("*", "")), (name, cell, longer)


def test_the_numbers_of_tables_are_the_record():
    tables = record("benchmarks/records/front_door_tables.json")["measured"].values()
    for measure in ("acc", "ari"):
        means = [np.mean([table["methods"][method][measure] for table in tables])
                 for method in ("Reclust, normal", "k-means", "mixture, diagonal", "spectral", "UMAP + mixture")]
        shown = re.findall(r"\d+\.\d", README.split("public tables")[1].split("[records]")[0])
        assert [f"{mean:.1f}" for mean in means] == (shown[:5] if measure == "acc" else shown[5:])


def test_the_numbers_of_texts_are_the_record():
    texts = record("benchmarks/records/front_door_texts.json")["measured"].values()
    means = [np.mean([found["methods"][method][measure] for found in texts]) for measure in ("acc", "ari")
             for method in ("Reclust, normal", "k-means", "UMAP + k-means", "EVoC")]
    assert [f"{mean:.1f}" for mean in means] == re.findall(r"\d+\.\d", README.split("sets of texts")[1].split("reclust keeps")[0])


def test_the_page_of_benchmarks_is_written_from_the_records(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import page

    assert (ROOT / "docs/benchmarks.md").read_text() == page.page()
