"""The pages of the reproduction say what the records say: cells, claims and what is missing, from invented records."""

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from studies.invented import fill, paper
from support import small_settings

import reproduction as made
from reclust.studies import Outcome, PlannedRun, Store, named, published
from reclust.studies.tables import Comparison
from reclust.training.history import Curve
from reproduction import cells, coverage, readings
from reproduction.claims import CLAIMS
from reproduction.evidence import (
    NoRecords,
    RecordedRuns,
    SeedInterval,
    Where,
    above,
    below,
    reaching,
    within,
)
from reproduction.pages import cell_names
from reproduction.quantities import later_mean, share, slower

ROOT = Path(__file__).parents[2]
ABLATED = ("without-augmentation", "without-augmentation-program", "noise-and-disentangled", "soft-reset-components", "embedding-reset", "momentum-reset",
           "native-reclustering", "reclustering-methods", "subsample-size", "training-curves")


def lowered(cell, rng):
    """Eight points below the paper in the twelve cells of USPS from scratch."""
    return paper(cell, rng) - 8 * (cell["dataset"] == "usps" and not cell["pretrained"])


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """The main table in two stores, KMNIST's test part under a name of its own."""
    folder = tmp_path_factory.mktemp("results")
    with Store(folder / "a.sqlite") as store:
        fill(store, "acc-table", seeds=4, sets=cells.SETS, score=lowered)
        fill(store, "acc-table-mini".removesuffix("-mini"), seeds=1, sets=("usps",), study="acc-table-mini")
    with Store(folder / "b.sqlite") as store:
        fill(store, "acc-table", seeds=3, sets=("kmnist_test",), study="acc-table-kmnist")
    return folder


@pytest.fixture(scope="module")
def main(records):
    with made.open_records(records) as reader:
        yield reader


def test_agreement_is_that_of_a_slow_computation(main):
    found = cells.agreements(main)
    assert len(found) == 144 and cells.count(found)["known"] == 120
    frame = main.runs("acc-table")
    for cell in found:
        own = 100 * frame[(frame.dataset == cell.dataset) & (frame.algorithm == cell.algorithm) & (frame.variant == cell.variant)
                          & (frame.pretrained == cell.pretrained)]["acc"].dropna()
        dataset = "kmnist" if cell.dataset == "kmnist_test" else cell.dataset
        theirs = published.paper()["acc-table", dataset, "yes" if cell.pretrained else "no", cell.algorithm, cell.variant, "acc"]
        error = math.sqrt(own.sem() ** 2 + theirs.stderr ** 2)
        assert cell.runs == len(own) == (3 if dataset == "kmnist" else 4)
        assert (cell.mean, cell.error, cell.units) == pytest.approx((own.mean(), error, (own.mean() - theirs.mean) / error))
        assert cell.agrees == (abs(own.mean() - theirs.mean) <= max(2, 2 * error))
        assert cell.differs == (abs(own.mean() - theirs.mean) > 2 * error)
    low = [cell for cell in found if cell.verdict == "lower"]
    assert {(cell.dataset, cell.pretrained) for cell in low} == {("usps", False)} and len(low) >= 8


def test_cells_apart_are_looked_at_again_with_other_seeds(tmp_path):
    with Store(tmp_path / "store.sqlite") as store:
        fill(store, "acc-table", seeds=4, sets=("usps", "kmnist_test"), score=lowered)
        fill(store, "other-seeds", seeds=3, sets=("usps",), score=lambda cell, rng: (
            lowered(cell, rng) if cell["algorithm"] == "dec" else paper(cell, rng) + 30 * (cell["algorithm"] == "dcn")))
    with made.open_records(tmp_path) as reader:
        found = cells.repeated(reader)
        frame = {study: reader.runs(study) for study in ("acc-table", "other-seeds")}
        text = made.pages(reader, {}, [])["reproduction/cells.md"].split("with other seeds\n")[1].split("\n## ")[0]
    assert {(one.first.dataset, one.first.pretrained) for one in found} == {("usps", False)} and len(found) >= 8
    assert all(one.differs_again == (one.first.algorithm == "dec") for one in found), "not where others lie apart to the other side"
    one = found[0]
    own = {study: 100 * each[(each.dataset == "usps") & (each.algorithm == one.first.algorithm) & ~each.pretrained
                             & (each.variant == one.first.variant)]["acc"].dropna() for study, each in frame.items()}
    values = np.concatenate([*own.values()])
    assert (one.first.runs, one.others.runs, one.both.runs) == (4, 3, 7)
    assert (one.others.mean, one.both.mean) == pytest.approx((own["other-seeds"].mean(), values.mean()))
    assert one.both.stderr == pytest.approx(stats.sem(values))
    again = sum(one.differs_again for one in found)
    assert re.search(rf"{len(found)} of \d+ cells that differ were run", text) and f"{again} differ again" in text
    assert text.count("| **differs** |") == again and text.count("| agrees |") == len(found) - again


def test_brb_is_compared_with_its_baseline_seed_by_seed(main):
    found = cells.improvements(main)
    assert len(found) == 36 and sum(paper > 0 for _, paper in found) == 32, "as the paper counts"
    frame = main.runs("acc-table").dropna(subset=["acc"])
    one = next(one for one, _ in found if (one.dataset, one.algorithm, one.pretrained) == ("gtsrb", "dcn", True))
    own = frame[(frame.dataset == "gtsrb") & (frame.algorithm == "dcn") & frame.pretrained].pivot(index="seed", columns="variant")
    low, high = stats.ttest_rel(own["acc"]["brb"], own["acc"]["none"]).confidence_interval()
    assert (one.low, one.high) == pytest.approx((100 * low, 100 * high))


def test_the_mean_gain_is_that_of_all_cells_seed_by_seed(main):
    gains = readings.mean_gains(main, "acc-table")
    frame = main.runs("acc-table").dropna(subset=["acc"])
    frame = frame[frame.dataset.isin(cells.SETS)].pivot_table(index="seed", columns=["variant", "dataset", "algorithm", "pretrained"], values="acc")
    own = 100 * (frame["brb"] - frame["none"]).mean(axis=1)
    low, high = stats.t.interval(0.95, len(own) - 1, own.mean(), stats.sem(own))
    assert (gains.cells, *gains.ours) == pytest.approx((30, own.mean(), low, high, 4))
    assert gains.paper.low < gains.paper.mean < gains.paper.high and f"{gains.paper.mean:+.2f}" in str(gains)


def test_both_readings_of_the_paper_are_compared_where_both_were_run(tmp_path):
    with Store(tmp_path / "a.sqlite") as store:
        fill(store, "acc-table", seeds=3, sets=("usps", "optdigits"), score=lowered)
    with made.open_records(tmp_path) as reader:
        assert readings.readings_table(reader) is None
    with Store(tmp_path / "b.sqlite") as store:
        fill(store, "acc-table-program", seeds=3, sets=("usps",))
        fill(store, "acc-table-program", seeds=3, sets=("kmnist_test",), study="acc-table-program-kmnist")
    with made.open_records(tmp_path) as reader:
        assert len(cells.agreements(reader, studies=("acc-table-program",))) == 48, "with KMNIST"
        ((acc, _, _, gains),) = readings.readings_table(reader).blocks
        text, program = (int(cell.text.split()[0]) for cell in acc.cells)
        assert text < program and all(cell.text.endswith("of 24") for cell in acc.cells)
        assert gains.cells[1].text.count("paper") == 1
        assert "## Readings of the paper" in made.pages(reader, {}, [])["reproduction.md"]


def test_the_main_table_shows_tf32_for_sets_that_are_complete_in_it(tmp_path):
    with Store(tmp_path / "a.sqlite") as store:
        fill(store, "acc-table", seeds=3, sets=("usps", "optdigits"), score=lowered)
    with Store(tmp_path / "b.sqlite") as store:
        fill(store, "acc-table-tf32", seeds=3, sets=("usps",))
    with made.open_records(tmp_path) as reader:
        shown, bf16, tf32 = ({cell.name: cell.mean for cell in cells.agreements(reader, studies=(study,))}
                             for study in ("acc-table", "acc-table-bf16", "acc-table-tf32"))
    assert shown == bf16 | tf32 and len(tf32) == 24 and len(shown) == 48


def test_the_page_says_what_there_is_and_what_is_missing(main):
    key = "acc-table/usps/dec/brb/scratch"
    pages = made.pages(main, {key: "the *seeds* differ"}, ["radar"])
    verdicts = [cell.verdict for cell in cells.agreements(main) if cell.dataset in cells.SETS]
    agree, higher, lower = map(verdicts.count, ("agrees", "higher", "lower"))
    assert f"| {agree} of 120 agree, {higher} are higher and {lower} lower |" in pages["reproduction.md"]
    text = pages["reproduction/cells.md"]
    assert re.search(r"- DEC\+BRB \(.*\): the \*seeds\* differ", text) and "): not explained." in text
    rows = [line for line in text.splitlines() if re.match(r"\| (DEC|IDEC|DCN)", line) and line.count("|") == 8 and "±" in line]
    assert len(rows) == 144, "every cell once"
    assert "| acc-table | 552 of 1440 |" in pages["reproduction/records.md"] and "| runtime | 0 of 10 |" in pages["reproduction/records.md"]
    figures = pages["reproduction/figures.md"]
    assert "![Relative improvement of accuracy by BRB, by data set.](../figures/reproduction/radar.svg)" in figures
    assert "Not drawn, no records: learning-curves" in figures
    assert pages["reproduction/ablations.md"].count("Not run.") == len(coverage.ABLATIONS)
    assert sum(line.count("±") for line in pages["reproduction/nmi_ari.md"].splitlines()) == 2 * 2 * 144
    assert made.pages(main, {key: "the *seeds* differ"}, ["radar"]) == pages, "the same bytes again"


def test_a_remark_on_a_set_stands_for_those_on_its_cells(main):
    def own(remarks):
        return made.pages(main, remarks, [])["reproduction/cells.md"].split("## USPS\n")[1].split("\n## ")[0]

    assert "not explained." in own({})
    told = own({"acc-table/usps": "All seeds lie low.", "acc-table/usps/dec/brb/scratch": "but this one"})
    assert "All seeds lie low.\n\nMore than" in told and "): but this one" in told and "not explained." not in told


def test_without_records_all_is_missing_and_nothing_can_be_told(tmp_path):
    with made.open_records(tmp_path) as reader:
        text = made.pages(reader, {}, [])["reproduction.md"]
        assert all(claim.judge(RecordedRuns(reader))[0] == "not run" for claim in CLAIMS)
    assert "0 of 0 agree" in text and text.count("| – | not run |") == len(CLAIMS)


def test_a_cell_of_one_seed_has_no_error_and_no_verdict_by_it(tmp_path):
    with Store(tmp_path / "one.sqlite") as store:
        fill(store, "acc-table", seeds=1, sets=("usps",))
    with made.open_records(tmp_path) as reader:
        found = cells.agreements(reader)
        assert all(math.isnan(cell.units) and not cell.differs for cell in found)
        assert "open" in {claim.judge(RecordedRuns(reader))[0] for claim in CLAIMS}
        assert "1 seed)" in made.pages(reader, {}, [])["reproduction/claims.md"]


def test_the_interval_is_that_of_scipy():
    values = np.random.default_rng(0).normal(size=7)
    low, high = stats.ttest_1samp(values, 0).confidence_interval()
    seen = SeedInterval.of(list(values))
    assert (seen.mean, seen.low, seen.high, seen.seeds) == pytest.approx((values.mean(), low, high, 7))


@pytest.mark.parametrize(("expected", "low", "high", "verdict"), [
    (above(), 0.1, 2, "holds"), (above(), -2, -0.1, "does not hold"), (above(), -1, 1, "open"),
    (below(5), 1, 4, "holds"), (below(5), 6, 7, "does not hold"), (below(5), 4, 6, "open"),
    (within(2), -1, 1, "holds"), (within(2), 3, 4, "does not hold"), (within(2), -9, -3, "does not hold"),
    (within(2), 1, 3, "open"), (above(), math.nan, math.nan, "open"),
    (reaching(30), 5, 31, "holds"), (reaching(30), 5, 29, "does not hold"), (reaching(30), -1, 31, "open")])
def test_verdicts_follow_from_the_interval_alone(expected, low, high, verdict):
    assert expected.verdict(SeedInterval((low + high) / 2, low, high, 10)) == verdict


def claimed(cell, rng):
    """Scores as the paper's text has them where its tables have none."""
    levels = {"noise": 75, "disentangled": 78, "perturb": 60, "gaussian": 87.5 if cell["dataset"] == "optdigits" else 70,
              "embedding reset": 55, "no momentum reset": 55, "random": 50}
    level = levels.get(cell["variant"])
    return paper(cell, rng) if level is None else level + rng.normal()


def contrary(cell, rng):
    """Everything but a reset helps, and BRB harms."""
    helps = cell["variant"] not in ("none", "brb", "em", "70000 rows")
    return 85 * helps + 60 * (cell["variant"] != "brb" and not helps) + 50 * (cell["variant"] == "brb") + rng.normal()


@pytest.mark.parametrize(("score", "verdict"), [(claimed, "holds"), (contrary, "does not hold")])
def test_claims_on_scores_are_decided_by_them(tmp_path, score, verdict):
    with Store(tmp_path / "store.sqlite") as store:
        fill(store, "acc-table", seeds=5, sets=cells.SETS, score=score)
        for study in ABLATED:
            fill(store, study, seeds=5, sets=("usps", "optdigits", "gtsrb", "mnist"), score=score)
    with made.open_records(tmp_path) as reader:
        found = {claim.name: claim.judge(RecordedRuns(reader)) for claim in CLAIMS}
    decided = ("most-cells", "from-scratch", "without-augmentation", "controls", "gaussian", "embedding-reset",
               "momentum-reset", "native", "subsample")
    assert {name: found[name][0] for name in decided} == dict.fromkeys(decided, verdict)
    if score is claimed:  # curves that jump at resets are always there
        by_curves = ("label-change", "intra-class-distance", "inter-class-distance", "distance-ratios", "reconstruction")
        assert {name: found[name][0] for name in by_curves} == dict.fromkeys(by_curves, "holds")
    assert {found[name][0] for name in ("contrastive-cells", "blocks", "overhead")} == {"not run"}


def test_epochs_around_resets_weigh_no_more_than_others():
    curve = {epoch: 1.0 for epoch in range(9, 400, 10)} | {20 * i + more: 7.0 for i in range(1, 20) for more in (0, 1, 2)}
    every_epoch = np.interp(range(20, 400), sorted(curve), [curve[epoch] for epoch in sorted(curve)])
    assert later_mean("loss")({"loss": curve}) == pytest.approx(every_epoch.mean())
    assert later_mean("loss")({"loss": dict(enumerate(every_epoch, 20))}) == pytest.approx(every_epoch.mean()), "of all of them"


def test_how_long_a_mixture_takes_is_told_of_usps_alone(tmp_path):
    with Store(tmp_path / "store.sqlite") as store:
        fill(store, "reclustering-methods", seeds=2, sets=("optdigits",))
    with made.open_records(tmp_path) as reader:
        assert "not run" in slower(RecordedRuns(reader)).ours
    with Store(tmp_path / "other.sqlite") as store:
        fill(store, "reclustering-methods", seeds=2, sets=("usps",))
    with made.open_records(tmp_path) as reader:
        assert slower(RecordedRuns(reader)).ours == "1.0"


@pytest.mark.parametrize(("better", "verdict"), [(6, "holds"), (5, "holds"), (4, "does not hold"), (3, "does not hold")])
def test_of_six_cells_most_is_as_many_as_the_paper_has(better, verdict):
    cell = Comparison("cifar10", "dec", True, 10, 10, 0, *[0.0] * 6)
    found = [cells.Improvement(replace(cell, difference=1.0 if i < better else -1.0), 1.0 if i < 5 else -1.0) for i in range(6)]
    assert share("cells", found, 6).verdict == verdict


def test_curves_without_numbers_are_none(tmp_path):
    runs = [PlannedRun(f"{variant}{seed}", "g", "gtsrb", "dcn", variant, True, seed)
            for variant in ("none", "brb") for seed in (1, 2, 3)]
    values = np.array([[0.1, 0.2, np.nan, 0.5, 0.7, 0.9]])
    with Store(tmp_path / "store.sqlite") as store:
        store.plan("acc-table", named("acc-table"), runs)
        store.add(Outcome("g", [run.key for run in runs], [small_settings()] * 6, {"acc": np.full(6, 0.5)}, {"clustering": {
            "inter_class_distance": Curve(np.array([399]), values), "silhouette": Curve(np.array([399]), np.nan * values)}},
            {}, {"a": 1.0}, {}))
    with made.open_records(tmp_path) as reader:
        found = {claim.name: claim.judge(RecordedRuns(reader))[1] for claim in CLAIMS}
    assert found["inter-class-distance"][0].ours.startswith("+0.4500 (2 seeds"), "of the seeds that have numbers"
    assert "not run" in found["silhouette"][1].ours


def test_curves_are_of_the_study_that_has_most_seeds(tmp_path):
    with Store(tmp_path / "store.sqlite") as store:
        for study, seeds, value in (("training-curves", 2, 0.1), ("acc-table", 3, 0.2)):
            runs = [PlannedRun(f"{study}{seed}", study, "mnist", "dcn", "brb", True, seed) for seed in range(seeds)]
            store.plan(study, named(study), runs)
            store.add(Outcome(study, [run.key for run in runs], [small_settings()] * seeds, {"acc": np.full(seeds, 0.5)}, {"clustering": {
                "nmi": Curve(np.array([399]), np.full((1, seeds), value))}}, {}, {"a": 1.0}, {}))
    with made.open_records(tmp_path) as reader:
        runs, where = RecordedRuns(reader), Where("mnist", "dcn")
        for studies in (("training-curves", "acc-table"), ("acc-table", "training-curves")):
            found = runs.histories(studies, where, "brb", ("nmi",))
            assert [columns["nmi"].values.item() for columns in found.values()] == pytest.approx([0.2] * 3)
        with pytest.raises(NoRecords, match="training-curves or acc-table"):
            runs.histories(("training-curves", "acc-table"), where, "brb", ("ari",))


def test_ablations_stand_beside_the_paper_and_beside_brb(tmp_path):
    with Store(tmp_path / "store.sqlite") as store:
        for study in ("without-augmentation", "momentum-reset", "reclustering-methods"):
            fill(store, study, seeds=3, sets=("optdigits", "usps"))
    with made.open_records(tmp_path) as reader:
        text = made.pages(reader, {"momentum-reset/usps/dec/step reset/pretrained": "known", "momentum-reset": "In short, so."},
                          [])["reproduction/ablations.md"]
    assert re.search(r"\| DEC\+BRB \| .*\(77\.00, ", text), "the paper's number without augmentation, not the main table's"
    assert "momentum-reset: difference from BRB" in text and "In short, so.\n\n- usps/dec/step reset/pretrained: known" in text
    assert re.search(r"\| EM \| .*\(79\.93, ", text)
    own = text.split("## reclustering-methods\n")[1].split("\n## ")[0]
    assert re.search(r"\| DEC, EM \| 3 \| \d\d\.\d\d ± \d\.\d\d \| 79\.93 ± 2\.95 \|", own), "in standard errors, where the paper has them"


def test_cells_apart_by_nmi_alone_are_told(tmp_path):
    with Store(tmp_path / "store.sqlite") as store:
        fill(store, "acc-table", seeds=4, sets=("optdigits",),
             score=lambda cell, rng: paper(cell, rng) - 20 * (cell["metric"] == "nmi" and cell["algorithm"] == "dcn"))
    with made.open_records(tmp_path) as reader:
        nmi, ari = made.pages(reader, {}, [])["reproduction/nmi_ari.md"].split("## ARI")
        accuracy = {cell.name for cell in cells.agreements(reader) if cell.differs}
        apart = [cell for cell in cells.agreements(reader, "nmi") if cell.differs]
    own = [cell for cell in apart if cell.name not in accuracy]
    assert f"By NMI, {len(apart)} cells differ by more than two standard errors, {len(own)} of which do not by accuracy;" in nmi
    assert nmi.count("\n- ") == len(own) >= 7 and "- DCN+BRB+Pretrain, OPTDIGITS: −" in nmi and "- DCN" not in ari


def test_remarks_on_figures_and_on_the_whole_have_their_places(main):
    pages = made.pages(main, {"summary": "so and so\nand so", "figures/radar": "One seed."}, ["radar"])
    assert "## What differs from the paper\n\n- so and so\n- and so\n" in pages["reproduction.md"]
    text = pages["reproduction/figures.md"]
    assert "*radar*: " in text and text.count("One seed.") == 1 and re.search(r"From `acc-table`, .* runs each\. One seed\.\n", text)


def test_remarks_name_cells_that_exist(tmp_path):
    assert len(cell_names("acc-table")) == 144 and "acc-table/kmnist_test/dcn/brb/scratch" in cell_names("acc-table")
    path = tmp_path / "remarks.toml"
    path.write_text('"acc-table/usps/dec/none/never" = "x"')
    with pytest.raises(ValueError, match="does not exist"):
        made.read_remarks(path)
    path.write_text('"claims/blocks" = "so it is"')
    assert made.read_remarks(path) == {"claims/blocks": "so it is"} and made.read_remarks(tmp_path / "none") == {}
    made.read_remarks(ROOT / "docs" / made.REMARKS)


def test_studies_that_are_not_on_the_page_are_told(records):
    assert made.custom_studies(records) == ["acc-table-mini"] and made.custom_studies(ROOT / "results") == []


def test_one_command_writes_pages_and_figures(records, tmp_path, monkeypatch):
    monkeypatch.setattr(made, "FIGURES", {name: made.FIGURES[name] for name in ("relative-change", "runtime")})
    once = {path.name: path.read_bytes() for path in made.reproduce(records, tmp_path)}
    assert {"overview.svg", "relative-change.svg", "reproduction.md", "nmi_ari.md"} <= set(once)
    assert {path.name: path.read_bytes() for path in made.reproduce(records, tmp_path)} == once


def test_parts_of_studies_are_known_by_their_names_and_checked(tmp_path):
    table = named("acc-table")
    with Store(tmp_path / "store.sqlite") as store:
        for name in ("acc-table", "acc-table-kmnist", "acc-table-mini", "mine"):
            store.plan(name, replace(table, datasets=("kmnist_test",), variants=table.variants[:2], seeds=(1,)), [])
        store.plan("embedding-reset", named("embedding-reset"), [])
        assert [coverage.catalog_study(store, name) for name in ("acc-table", "acc-table-kmnist", "acc-table-mini", "mine",
                                                            "embedding-reset")] \
            == ["acc-table", "acc-table", None, None, "embedding-reset"]
        for other in (replace(table, protocol=replace(table.protocol, epochs=60)),
                      replace(table, variants=(replace(table.variants[1], name="none"),))):
            store.plan("acc-table-short", other, [])
            with pytest.raises(ValueError, match="another protocol or other variants than acc-table"):
                coverage.catalog_study(store, "acc-table-short")


def test_the_committed_pages_are_those_of_the_committed_records():
    with made.open_records(ROOT / "results") as reader:
        pages = made.pages(reader, made.read_remarks(ROOT / "docs" / made.REMARKS), made.drawn(ROOT / "docs"))
    for name, text in pages.items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, f"docs/{name} is old: run `make reproduction`"


@pytest.mark.slow
def test_figures_of_whole_studies_are_small(tmp_path):
    (tmp_path / "records").mkdir()
    with Store(tmp_path / "records" / "store.sqlite") as store:
        for study in (*ABLATED, "acc-table", "sensitivity", "runtime", "embeddings", "voronoi", "best"):
            fill(store, study)
    written = made.reproduce(tmp_path / "records", tmp_path)
    assert made.drawn(tmp_path) == ["overview", *made.FIGURES]
    assert all(path.stat().st_size < 210_000 for path in written if path.suffix == ".svg")


def test_a_folder_without_records_leaves_everything_as_it_is(tmp_path):
    (tmp_path / "reproduction.md").write_text("mine")
    with pytest.raises(FileNotFoundError, match="no stores"):
        made.reproduce(tmp_path, tmp_path)
    assert (tmp_path / "reproduction.md").read_text() == "mine"
