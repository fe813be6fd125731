"""Tables hold what is in the store: numbers against slow computations by hand, text that survives odd names."""

import csv
import io
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from support import small_settings

from reclust.studies import (
    Outcome,
    PlannedRun,
    Store,
    StoreReader,
    named,
    published,
    tables as made,
)
from reclust.studies.catalog import names
from reclust.studies.tables import Cell, Layout, Row, Table, comparison
from reclust.training.history import Curve

SEEDS = (400, 148, 820)


def fired(runs):
    """The history of runs that were reset at epochs 2 and 4, where they were (r,)."""
    return {"clustering": {"fired": Curve(np.array([2, 4]), np.stack([runs, runs]))}}


def fill(store, study, cells, *, scores=None, settings=None, seconds=None, seeds=SEEDS, factors=None, spec=None):
    """Runs of invented scores for each cell (dataset, algorithm, pretrained, variant); the scores, (cells, seeds)."""
    rng = np.random.default_rng(0)
    groups = ["/".join([study, *map(str, cell)]) for cell in cells]
    store.plan(study, spec or named(study if study in names() else "acc-table"), [
        PlannedRun(f"{group}/{seed}", group, dataset, algorithm, variant, pretrained, seed, (factors or {}).get(variant, {}))
        for group, (dataset, algorithm, pretrained, variant) in zip(groups, cells, strict=True) for seed in seeds])
    scores = rng.random((len(cells), len(seeds))) if scores is None else np.asarray(scores)
    for group, cell, own in zip(groups, cells, scores, strict=True):
        store.add(Outcome(group, [f"{group}/{seed}" for seed in seeds],
                          [(settings or {}).get(cell[3], small_settings())] * len(seeds),
                          {"acc": own, "nmi": own / 2, "ari": own / 4}, fired(np.ones(len(seeds))), {}, seconds or {"clustering.training": 1.0}, {}))
    return scores


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store.sqlite") as opened:
        yield opened


CELLS = [(dataset, algorithm, pretrained, variant) for dataset in ("mnist", "usps") for algorithm in ("dec", "dcn")
         for pretrained in (False, True) for variant in ("none", "brb")]


def test_the_main_table_is_that_of_a_slow_computation(store):
    scores = dict(zip(CELLS, 100 * fill(store, "acc-table", CELLS), strict=True))
    (table,) = made.score_tables(store, "acc-table")
    assert table.columns == ("", "MNIST", "USPS", "average")
    assert [[row.label for row in block] for block in table.blocks] == [
        ["DEC", "DEC+BRB"], ["DCN", "DCN+BRB"], ["DEC+Pretrain", "DEC+BRB+Pretrain"], ["DCN+Pretrain", "DCN+BRB+Pretrain"]]
    for block, (pretrained, algorithm) in zip(table.blocks, [(p, a) for p in (False, True) for a in ("dec", "dcn")], strict=True):
        for i, dataset in enumerate(("mnist", "usps")):
            own = {variant: scores[dataset, algorithm, pretrained, variant] for variant in ("none", "brb")}
            best = max(own, key=lambda variant: own[variant].mean())
            for row, variant in zip(block, own, strict=True):
                mean, stderr = own[variant].mean(), own[variant].std(ddof=1) / math.sqrt(3)
                paper = published.paper()["acc-table", dataset, "yes" if pretrained else "no", algorithm, variant, "acc"].mean
                assert row.cells[i].text == f"{mean:.2f} ± {stderr:.2f}"
                assert row.cells[i].aside.startswith(f"{paper:.2f}, ")
                assert row.cells[i].numbers == pytest.approx(
                    {"": mean, "stderr": stderr, "runs": 3, "paper": paper, "difference": mean - paper})
                assert row.cells[i].best == (variant == best)
                average = np.mean([scores[each, algorithm, pretrained, variant].mean() for each in ("mnist", "usps")])
                assert row.cells[2].numbers[""] == pytest.approx(average)
    assert table.note.endswith(" 48 runs.")


def test_other_layouts_average_what_they_do_not_name(store):
    factors = {f"v{i}": {"keep": keep, "interval": interval} for i, (keep, interval) in
               enumerate((keep, interval) for keep in (0.6, 0.8) for interval in (5, 20))}
    cells = [("mnist", algorithm, True, variant) for algorithm in ("dec", "idec") for variant in factors]
    scores = dict(zip(cells, 100 * fill(store, "grid", cells, factors=factors), strict=True))
    (table,) = made.score_tables(store, "grid", Layout(rows=("interval",), columns="keep", blocks=(), tables=("dataset",), average=""))
    assert table.columns == ("", "keep 0.6", "keep 0.8") and table.title == "grid, MNIST, ACC"
    (block,) = table.blocks
    for row, interval in zip(block, (5, 20), strict=True):
        for cell, keep in zip(row.cells, (0.6, 0.8), strict=True):
            own = [scores[cell_] for cell_ in cells if factors[cell_[3]] == {"keep": keep, "interval": interval}]
            assert cell.numbers[""] == pytest.approx(np.concatenate(own).mean()) and cell.numbers["runs"] == 6


def test_the_best_run_and_what_others_reached(store):
    cells = [("cifar10", "dec", True, variant) for variant in ("none", "brb")]
    scores = 100 * fill(store, "self-labeling", cells)
    best = made.tables(store, "self-labeling")[0]
    assert best.columns == ("", "CIFAR10 ACC", "CIFAR10 NMI", "CIFAR10 ARI")
    assert [row.cells[0].numbers[""] for row in best.blocks[0]] == pytest.approx(list(scores.max(1)))
    assert best.blocks[0][1].cells[0].numbers["paper"] == 90.57
    assert {"scan (paper)", "secu (paper)"} <= {row.label for row in best.blocks[-1]}


def test_comparison_agrees_with_scipy_cell_by_cell(store):
    scores = dict(zip(CELLS, 100 * fill(store, "acc-table", CELLS, seeds=tuple(range(12))), strict=True))
    found = made.compare(store, "acc-table")
    assert len(found) == 8
    for one in found:
        ours, theirs = (scores[one.dataset, one.algorithm, one.pretrained, variant] for variant in ("brb", "none"))
        low, high = stats.ttest_rel(ours, theirs).confidence_interval()
        assert (one.pairs, one.wins) == (12, (ours > theirs).sum())
        assert (one.difference, one.low, one.high) == pytest.approx(((ours - theirs).mean(), low, high))
        assert one.p_t == pytest.approx(stats.ttest_rel(ours, theirs).pvalue)
        assert one.p_wilcoxon == pytest.approx(stats.wilcoxon(ours, theirs).pvalue)
    table = made.comparison_table(store, "acc-table")
    assert f"in {sum(one.difference > 0 for one in found)} of 8 rows" in table.note


@pytest.mark.parametrize(("pairs", "digits"), [(2, 9), (7, 0), (10, 9), (40, 9)])
def test_paired_tests_agree_with_scipy(pairs, digits):
    """Few digits make equal differences and zeros."""
    for own in np.round(np.random.default_rng(pairs).normal(0.3, 2, (3, pairs)), digits):
        theirs = stats.ttest_1samp(own, 0)
        assert (comparison.t_test(own), *comparison.mean_interval(own, 0.95)) == pytest.approx((theirs.pvalue, *theirs.confidence_interval(0.95)))
        assert comparison.signed_rank_test(own) == pytest.approx(stats.wilcoxon(own).pvalue)


def test_only_seeds_of_both_are_compared(store):
    cells = CELLS[:2]
    fill(store, "s", cells, scores=[[0.5, 0.5, 0.5], [0.6, 0.5, 0.4]])
    store._db.execute("UPDATE runs SET state = 'failed', acc = NULL WHERE run = ?", (f"s/{'/'.join(map(str, cells[1]))}/820",))
    (one,) = made.compare(store, "s")
    assert (one.pairs, one.wins) == (2, 1) and one.difference == pytest.approx(5)
    assert made.compare(store, "s", variant="reset") == []


def test_equal_runs_have_no_p_value_and_no_warning(store, recwarn):
    fill(store, "s", CELLS[:2], scores=[[0.5, 0.6, 0.7]] * 2)
    (one,) = made.compare(store, "s")
    assert (one.wins, one.difference, one.low, one.high) == (0, 0, 0, 0)
    assert "±" not in made.terminal(made.comparison_table(store, "s")) and not len(recwarn)


def test_runtime_follows_the_papers_formula(store):
    """Five epochs with firings at epochs 2 and 4 in one group; in another group the half of the runs never fires."""
    seconds = {"clustering.training": 8.0, "clustering.centers": 2.0, "clustering.reset": 0.6, "clustering.embedding": 0.3,
               "clustering.clustering": 1.2, "clustering.momentum": 0.06, "clustering.evaluation": 99.0, "pretraining.training": 5.0}
    fill(store, "s", [("mnist", "idec", True, "brb")], seconds=seconds)
    (one,) = made.cell_times(store, "s")
    brb = (0.6 + 0.3 + 1.2 + 0.06) / 3 / 2
    epoch = 10 / 3 / 5
    assert one.parts == pytest.approx({"reset": 0.1, "embedding": 0.05, "clustering": 0.2, "momentum": 0.01})
    assert (one.firing, one.epoch) == pytest.approx((brb, epoch))
    assert 1 + one.overhead / 100 == pytest.approx((20 * epoch + brb) / (20 * epoch))
    (table,) = made.runtime_tables(store, "s")
    assert len(table.columns) == 1 + len(table.blocks[0][0].cells)

    runs = [PlannedRun(f"m{i}", "mixed", "mnist", "idec", variant, True, i) for i, variant in enumerate(("none", "brb"))]
    store.plan("mixed", "spec", runs)
    store.add(Outcome("mixed", ["m0", "m1"], [small_settings(intervention=None), small_settings()],
                      {"acc": np.ones(2)}, fired(np.array([0.0, 1.0])), {}, seconds, {}))
    (one,) = made.cell_times(store, "mixed")
    assert one.firing == pytest.approx((0.6 + 0.3 + 1.2 + 0.06) / 2), "all of it is the time of the one that fired"


def test_the_papers_runtime_stands_beside_ours(store):
    fill(store, "runtime", [("mnist", "idec", True, "7000 rows")],
         seconds={"clustering.training": 8.0, "clustering.reset": 0.6, "clustering.embedding": 0.3})
    parts, total = made.tables(store, "runtime")
    assert [cell.numbers.get("paper") for cell in parts.blocks[0][0].cells] == [
        0.006, 0.630, 0.337, 0.001, 0.975, None, 5.417, 17.991, 1.1]
    assert total.blocks[0][0].cells[0].numbers["paper"] == 14400


ODD = Table("a|b & c_d*e", ("", "50 % #1", r"x\y"), ((Row("k~means^{2} <b> $x$", (
    Cell("1.00 ± 0.10", "2.00, −1.00", {"": 1.0, "paper": 2.0, "difference": -1.0}, True), Cell("[z]", numbers={"": 3.0}))),
    Row("plain, comma", (Cell(), Cell("7", numbers={"": 7.0})))),), "note: 100 %")


def test_odd_names_survive_markdown():
    text = made.markdown(ODD)
    assert r"**a\|b &amp; c\_d\*e**" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.replace(r"\|", "").count("|") == 4 for line in rows), "every row has as many columns"
    assert r"| k\~means^{2} &lt;b&gt; $x$ | **1.00 ± 0.10** (2.00, −1.00) | \[z\] |" in text


def test_odd_names_survive_latex():
    text = made.latex(ODD)
    assert r"k\textasciitilde{}means\textasciicircum{}\{2\} \textless{}b\textgreater{} \$x\$ & \textbf{1.00 $\pm$ 0.10}" in text
    assert r"{\scriptsize (2.00, $-$1.00)} & [z] \\" in text
    assert r" & 50 \% \#1 & x\textbackslash{}y \\" in text
    assert r"\caption{a\textbar{}b \& c\_d*e. note: 100 \%}" in text


def test_csv_has_every_number():
    rows = list(csv.reader(io.StringIO(made.csv_text(ODD))))
    title = "a|b & c_d*e"
    assert rows == [["table", "", "50 % #1", "50 % #1 paper", "50 % #1 difference", r"x\y"],
                    [title, "k~means^{2} <b> $x$", "1", "2", "-1", "3"], [title, "plain, comma", "", "", "", "7"]]


def test_csv_of_several_tables_has_one_header():
    one, other = (Table(title, ("", "a", column), ((Row("r", (Cell("1", numbers={"": 1.0}), Cell("2", numbers={"": 2.0, "paper": 3.0}))),),))
                  for title, column in (("first", "b"), ("second", "c")))
    rows = list(csv.DictReader(io.StringIO(made.render([one, other], "csv"))))
    assert rows == [{"table": "first", "": "r", "a": "1", "b": "2", "b paper": "3", "c": "", "c paper": ""},
                    {"table": "second", "": "r", "a": "1", "b": "", "b paper": "", "c": "2", "c paper": "3"}]


@pytest.mark.parametrize("form", made.FORMATS)
def test_a_line_break_in_a_name_breaks_no_line(form):
    def table(gap):
        return Table("title", ("", f"a{gap}column"), ((Row(f"a{gap}name", (Cell(f"a{gap}cell", numbers={"": f"a{gap}text"}),)),),))

    assert made.render([table("\n")], form) == made.render([table(" ")], form)


def test_columns_line_up_in_a_terminal():
    lines = made.terminal(ODD, bold=("", "")).splitlines()
    assert len({len(line) for line in (lines[1], lines[2], lines[4])}) == 1
    assert "\x1b[1m1.00 ± 0.10 (2.00, −1.00)\x1b[0m" in made.terminal(ODD)


def test_files_are_the_same_bytes_again(store, tmp_path):
    fill(store, "acc-table", CELLS)
    for ending in made.FORMATS:
        once, again = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
        made.write(made.tables(store, "acc-table"), once)
        with StoreReader(store.path) as reader:
            made.write(made.tables(reader, "acc-table"), again)
        assert once.read_bytes() == again.read_bytes() and once.stat().st_size > 500
    with pytest.raises(ValueError, match="use one of .md, .tex, .csv, .txt"):
        made.write([], tmp_path / "a.pdf")


def test_a_study_without_finished_runs_says_so(store):
    store.plan("s", "spec", [PlannedRun("r", "g", "mnist", "dec", "brb", True, 1)])
    with pytest.raises(ValueError, match="No run of s has finished yet"):
        made.score_tables(store, "s")


def test_the_papers_numbers_are_complete_and_put_right():
    numbers = published.paper()
    for metric in ("acc", "nmi", "ari"):
        assert sum(key[0] == "acc-table" and key[-1] == metric for key in numbers) == 144
    native = {key[1:5]: number.mean for key, number in numbers.items() if key[0] == "native-reclustering"}
    for (dataset, pretrained, algorithm, variant), mean in native.items():
        if variant != "native":
            assert mean == numbers["acc-table", dataset, pretrained, algorithm, variant, "acc"].mean


def test_baselines_stand_above_a_studys_rows(store):
    fill(store, "baselines", [("mnist", "k-means on pixels", False, "none"), ("mnist", "autoencoder + k-means", True, "none")])
    fill(store, "acc-table", [("mnist", "dec", True, "none"), ("mnist", "dec", True, "brb")])
    (table,) = made.score_tables(store, "acc-table")
    assert [row.label for row in table.blocks[0]] == ["k-means on pixels", "autoencoder + k-means"]
    assert table.blocks[0][0].cells[0].numbers[""] == pytest.approx(
        100 * store.means("baselines", by=("algorithm",))[0]["acc_mean"])


@pytest.mark.parametrize("study", ["acc-table", "mine"])
def test_another_protocol_is_not_held_against_the_paper(store, study):
    spec = named("acc-table")
    fill(store, study, CELLS, spec=replace(spec, name=study, protocol=replace(spec.protocol, epochs=6)))
    (table,) = made.score_tables(store, study)
    assert not any(cell.aside for block in table.blocks for row in block for cell in row.cells)
    assert "parentheses" not in table.note
    fill(store, "own-set", [("mine", *cell[1:]) for cell in CELLS if cell[0] == "usps"], spec=replace(spec, name="own-set", protocol=replace(spec.protocol, epochs=6)))
    assert "paper" not in made.score_tables(store, "own-set")[0].note, "where it has none anyway"
    fill(store, "of-no-kind", CELLS[:4], spec={"epochs": 6})
    assert store.protocol("of-no-kind") is None and "paper" not in made.score_tables(store, "of-no-kind")[0].note


def test_the_papers_numbers_of_runs_without_augmentation_are_none_of_the_main_table():
    cell = {"dataset": "optdigits", "algorithm": "dec", "variant": "brb", "pretrained": False}
    for study, known in (("without-augmentation", 77), ("dec-in-float32", 77), ("dcn-in-float32", 81.52)):
        assert published.find(study, cell, "acc").mean == known, study
    assert published.find("dec-in-float32", {**cell, "algorithm": "idec"}, "acc") is None
