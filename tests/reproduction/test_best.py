"""The table of the best preset holds what the records say: against slow computations, and in the committed pages."""

from itertools import combinations

import numpy as np
import pytest
from pages import PAGES, ROOT, name
from support import small_settings

import reproduction as made
from reclust import Curve
from reclust.studies import Outcome, PlannedRun, Store, published
from reclust.studies.baselines import PixelKMeans
from reclust.studies.measures import LABEL_FREE
from reclust.studies.tables.selection import Pool, pools, repetitions
from reproduction import blocks
from reproduction.baselines import best_baselines
from reproduction.best import LINES, best_table, field, fields_best, papers_best
from reproduction.selection import n_init_table, variants_table

REPLICAS = 4


def replicas(store, study, repeated):
    """repeated: (data set, variant) -> how many repetitions. (data set, variant) -> accuracies and scores, (repetitions, replicas)."""
    rng, plan, outcomes, known = np.random.default_rng(0), [], [], {}
    for (dataset, variant), times in repeated.items():
        acc, scores = known.setdefault((dataset, variant), rng.random((2, times, REPLICAS)))
        for i in range(times):
            group = f"{study}/{dataset}/{variant}/{i}"
            runs = [PlannedRun(f"{group}/{seed}", group, dataset, "idec", variant, True, i * REPLICAS + seed) for seed in range(REPLICAS)]
            free = {name: scores[i] if name == "shared_information" else rng.random(REPLICAS) for name in LABEL_FREE}
            plan += runs
            outcomes.append(Outcome(group, [run.key for run in runs], [small_settings()] * REPLICAS, {"acc": acc[i], **free}, {}, {},
                                    {"clustering.training": 10.0 * (i + 1)}, {"device": "an abacus"}))
    store.plan(study, "spec", plan)
    for outcome in outcomes:
        store.add(outcome)
    return known


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("best") / "store.sqlite") as opened:
        opened.known = replicas(opened, "best", {("usps", "independent"): 3, ("usps", "split and merge"): 2})
        opened.known |= replicas(opened, "best-of-few-samples", {("digits", "independent"): 1})
        opened.known |= replicas(opened, "best-of-many-samples", {("mnist", "more motion"): 1})
        opened.known |= replicas(opened, "best-of-colours", {("gtsrb", "only moved"): 1, ("gtsrb", "split and merge"): 2})
        pixels = [PlannedRun(f"p{seed}", f"p{seed}", "usps", PixelKMeans.algorithm, "none", False, seed) for seed in range(3)]
        opened.plan("baselines", best_baselines()[0], pixels)
        for run, acc in zip(pixels[:2], (0.5, 0.7), strict=True):  # the third is still to come
            opened.add(Outcome(run.group, [run.key], [PixelKMeans()], {"acc": np.array([acc])}, {}, {}, {"baseline": 1.0}, {}))
        starts = [PlannedRun(f"{algorithm}{seed}", algorithm, "usps", algorithm, "brb", True, seed) for algorithm in ("dec", "idec") for seed in (1, 2)]
        opened.plan("acc-table", "spec", starts)
        for algorithm in ("dec", "idec"):
            curve = Curve(np.array([-1, 9]), np.array([[0.6, 0.8], [0.9, 0.9]]))
            opened.add(Outcome(algorithm, [f"{algorithm}1", f"{algorithm}2"], [small_settings()] * 2, {"acc": np.full(2, 0.9)},
                               {"clustering": {"accuracy": curve}}, {}, {"a": 1.0}, {}))
        yield opened


def test_the_table_is_that_of_a_slow_computation(store):
    table = best_table(store)
    rows = {row.label: dict(zip(table.columns[1:], row.cells, strict=True)) for row in table.blocks[0]}
    usps, (acc, scores) = rows["USPS"], store.known["usps", "split and merge"]
    kept = 100 * acc[np.arange(2), scores.argmax(1)]
    assert usps["ours"].numbers[""] == pytest.approx(kept.mean()) and usps["ours"].aside == "2"
    assert usps["ours"].numbers["stderr"] == pytest.approx(kept.std(ddof=1) / np.sqrt(2))
    assert usps["best replica"].numbers[""] == pytest.approx(100 * acc.max(1).mean())
    assert usps["mean replica"].numbers[""] == pytest.approx(100 * acc.mean()) and usps["seconds"].text == "15"
    assert (usps["k-means on pixels"].text, usps["k-means on pixels"].aside) == ("60.0 ± 10.0", "2")
    assert (usps["autoencoder + k-means"].text, usps["autoencoder + k-means"].aside) == ("70.0 ± 10.0", "2"), "a seed counts once"
    assert usps["UMAP + mixture"].text == rows["digits"]["ours"].text == "not run"
    assert rows["GTSRB"]["ours"].text == "not run" and rows["GTSRB without light"]["ours"].aside == "2"
    assert rows["MNIST"]["ours"].aside == "1" and "±" not in rows["MNIST"]["ours"].text
    assert [cell.text for cell in rows["digits"].values()][3:5] == ["–", "–"] and "on an abacus" in table.note
    numbers = [cell.numbers.get("", 0) for cell in rows["USPS"].values()][:6]
    assert [cell.best for cell in rows["USPS"].values()][:6] == [number == max(numbers) for number in numbers]


def test_published_bests_are_the_highest_of_their_set():
    for dataset in {line.dataset for line in LINES} - {"digits"}:
        whole = dataset.removesuffix("_test")
        paper = max(number.mean for key, number in published.paper().items() if key[0] == "acc-table" and key[1] == whole and key[5] == "acc")
        assert papers_best(dataset).numbers[""] == paper
        assert fields_best(dataset).numbers[""] == max(float(row["acc"]) for row in field() if row["dataset"] == whole)
    assert {row["dataset"] for row in field()} >= {"mnist", "usps", "cifar10"}
    assert papers_best("usps").aside == "IDEC+BRB" and fields_best("usps").aside == "DEC-DA, augmented"


def test_regret_is_what_the_best_replica_has_more(store):
    ((independent, exchange),) = variants_table(repetitions(store, "best"), "title").blocks
    acc, scores = store.known["usps", "independent"]
    assert independent.cells[4].numbers[""] == pytest.approx(100 * (acc.max(1) - acc[np.arange(3), scores.argmax(1)]).mean())
    assert [row.cells[0].text for row in (independent, exchange)] == ["3", "2"]


def test_what_subsets_keep_is_counted_exactly():
    rng = np.random.default_rng(1)
    acc, scores = rng.random((2, 9))
    pool = Pool("usps", acc, np.where(scores < 0.3, -np.inf, scores))
    for n in (1, 2, 4, 9):
        chosen = [list(some) for some in combinations(range(9), n)]
        kept = np.array([acc[some][np.argmax(pool.scores[some])] for some in chosen])
        best = np.mean([acc[some].max() for some in chosen])
        assert pool.kept(n) == pytest.approx((kept.mean(), kept.std())) and pool.regret(n) == pytest.approx(best - kept.mean())
    assert pool.sizes == (1, 2) and pool.regret(1) == pytest.approx(0)


def test_pools_hold_the_replicas_that_know_nothing_of_each_other(store):
    usps, digits = pools(one for study in ("best", "best-of-few-samples") for one in repetitions(store, study))
    np.testing.assert_allclose(np.sort(usps.acc), np.sort(100 * store.known["usps", "independent"][0].ravel()))
    kept, regret = n_init_table([usps]).blocks[0]
    assert kept.label == "USPS, selected of 12 replicas" and [cell.text == "" for cell in kept.cells] == [False] * 3 + [True] * 3
    assert kept.cells[0].numbers[""] == pytest.approx(usps.acc.mean()) and digits.sizes == (1, 2)


def test_blocks_are_filled_and_all_else_is_left_alone(store):
    page = "# Mine\n<!-- records: n-init -->\nold\n<!-- end of records -->\nbelow\n"
    once = made.filled(page, store)
    assert once.startswith("# Mine\n<!-- records: n-init -->\n\n**Accuracy") and once.endswith("\n\n<!-- end of records -->\nbelow\n")
    assert "old" not in once and made.filled(once, store) == once


def test_without_records_every_cell_says_so(tmp_path):
    with made.open_records(tmp_path) as reader:
        texts = {name: block(reader) for name, block in blocks.BLOCKS.items()}
    assert texts["best"].count("not run") == 4 * len(LINES)


def test_the_tables_within_committed_pages_are_the_committed_records():
    with_blocks = [page for page in PAGES if "<!-- records: " in page.read_text(encoding="utf-8")]
    assert {"docs/how/compare.md", "docs/how/selection.md"} == {name(page) for page in with_blocks}
    with made.open_records(ROOT / "results") as reader:
        for page in with_blocks:
            text = page.read_text(encoding="utf-8")
            assert made.filled(text, reader) == text, f"{name(page)} is old: run `make reproduction`"
