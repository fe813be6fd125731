"""The README's numbers are those of the committed records; its code is run by test_docs.py."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from reclust.studies import StoreReader
from reclust.studies.tables.selection import repetitions

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


def test_the_kept_replicas_are_those_of_the_records():
    with StoreReader(ROOT / "results/best.sqlite") as store:
        every = repetitions(store, "best")
    compare = (ROOT / "docs/compare.md").read_text()
    words, count = " ".join(README.split()), {2: "two", 3: "three", 4: "four", 5: "five"}
    for dataset, variant, said in (("usps", "exchange", "the kept replica has {} % ({} repetitions"),
                                   ("usps", "independent", "without helping each other {} % ({} repetitions"),
                                   ("optdigits", "independent", "and {} % on OPTDIGITS ({} repetitions")):
        own = [one for one in every if (one.dataset, one.variant) == (dataset, variant)]
        kept = np.array([one.kept("shared_information") for one in own])
        cell, times = f"{kept.mean():.1f} ± {kept.std(ddof=1) / np.sqrt(len(kept)):.1f}", count[len(own)]
        assert said.format(cell, times) in words
        if (dataset, variant) != ("usps", "independent"):
            assert f"| {cell} | one kept of twenty without labels, {times} repetitions" in compare
        if variant == "exchange":
            assert f"{np.mean([one.seconds for one in own]):.0f} s each on an H200" in words


def test_the_cells_that_agree_are_those_of_the_page():
    page = (ROOT / "docs/reproduction.md").read_text()
    cells, agree = re.search(r"(\d+) of 120 have records; (\d+) of these agree", page).groups()
    assert f"of {cells} cells {agree} agree with the paper or lie above it" in " ".join(README.split())


def test_the_papers_best_means_are_its_own():
    words = " ".join(README.split())
    with open(ROOT / "src/reclust/studies/published/paper.csv", newline="") as table:
        printed = list(csv.DictReader(table))
    for dataset in ("usps", "optdigits"):
        best = max(float(row["mean"]) for row in printed if (row["table"], row["dataset"], row["metric"]) == ("acc-table", dataset, "acc"))
        assert f"the paper's best mean is {best:.1f} %" in words


def test_the_page_of_benchmarks_is_written_from_the_records(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import page

    assert (ROOT / "docs/benchmarks.md").read_text() == page.page()


def test_the_table_of_suggested_numbers_is_the_record(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import suggest_k

    assert suggest_k.page_table(record("benchmarks/records/suggest_k.json")["measured"]) in (ROOT / "docs/guides/choosing_k.md").read_text()

