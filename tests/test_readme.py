"""The README's numbers are those of the committed records; its code is run by test_docs.py, its tables of studies are checked by
studies/test_best.py."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def record(path):
    return json.loads((ROOT / path).read_text())


def test_the_table_is_the_demos_record():
    for name, scores in record("results/demo.json")["scores"].items():
        columns = (np.array(scores[score]) for score in ("accuracy", "nmi", "ari"))
        cells = [f"{values.mean():.1f} ± {values.std(ddof=1) / np.sqrt(len(values)):.1f}" for values in columns]
        assert f"| {name} | {' | '.join(cells)} |" in README


def test_the_timings_are_the_benchmarks_records():
    loop = record("benchmarks/records/plain_loop.json")["measured"]["reclust_over"]["by hand, default Adam"]
    stream = record("benchmarks/records/streaming.json")
    words = " ".join(README.split())
    stacked = record("benchmarks/records/replicas_cuda.json")["measured"]
    usps = record("benchmarks/records/published_run_idec.json")["measured"]["usps, auto"]
    ten, forty = (stacked[f"bf16, idec, {replicas}"]["seconds_per_epoch"] for replicas in (10, 40))
    assert f"with augmentation in {ten:.2f} s, forty in {forty:.2f} s" in words and f"takes {usps['seconds']:.0f} s from data to score" in words
    assert f"takes {loop:.2f} times as long as the same loop written by hand" in words
    assert f"Fitting a {stream['settings']['gigabytes']:g} GB file keeps {stream['measured']['peak_anonymous_gb']:.2f} GB" in words
    assert f"costs {stream['measured']['streamed_over_resident']:.2f} times" in words


def test_the_cells_that_agree_are_those_of_the_page():
    page = (ROOT / "docs/reproduction.md").read_text()
    cells, agree = re.search(r"(\d+) of 120 have records; (\d+) of these agree", page).groups()
    assert f"{agree} of {cells} accuracies agree with the paper or lie above it" in " ".join(README.split())


def test_the_page_of_benchmarks_is_written_from_the_records(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import page

    assert (ROOT / "docs/benchmarks.md").read_text() == page.page()


def test_the_table_of_suggested_numbers_is_the_record(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import suggest_k

    assert suggest_k.page_table(record("benchmarks/records/suggest_k.json")["measured"]) in (ROOT / "docs/guides/choosing_k.md").read_text()

