"""docs/reproduction.md and the pages behind it, from the records and hand-written remarks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from reclust.studies.catalog import named
from reclust.studies.figures import FIGURES, source
from reclust.studies.store.reader import StoreReader
from reclust.studies.tables import labels, markdown, tables
from reclust.studies.tables.table import Cell, Row, Table, signed

from .cells import (
    MAIN,
    OTHER_SEEDS,
    PARTIAL,
    SETS,
    WITH_ERRORS,
    CellAgreement,
    Improvement,
    against_brb_table,
    agreement_table,
    agreements,
    count,
    improvement_table,
    improvements,
    repeated,
    repeated_table,
)
from .claims import CLAIMS
from .coverage import (
    ABLATIONS,
    BEYOND,
    PART_OF,
    STUDIES,
    coverage,
    coverage_table,
    provenance_table,
)
from .evidence import CheckResult, RecordedRuns, Verdict
from .readings import mean_gains, readings_table

CELLS = 120
"""Cells of the main table without KMNIST."""
BY_CHANCE = 0.06
"""Share of differences of two means over ten seeds that exceed two standard errors by chance."""
FIGURES_FOLDER = "figures/reproduction"
OVERVIEW = "overview"
SUMMARY = "summary"
"""Key of the remarks with the main differences from the paper, one for each line."""
Remarks = Mapping[str, str]
Judged = Sequence[tuple[Verdict, list[CheckResult]]]
NOTICE = "<!-- Written by `make reproduction` from results/ and reproduction_remarks.toml. -->\n"
WORDS: Mapping[Verdict, str] = {"holds": "reproduced", "does not hold": "not reproduced",
                                "open": "undecided", "not run": "not run"}
RULES = """## How to read the numbers

- Scores are in percent, mean ± standard error over seeds; the main table has ten seeds a cell.
- A cell *agrees* if it differs from the paper, up or down, by at most two points or two combined
  standard errors, whichever is more. In version 0.1 cells above the paper agreed, too.
- A claim is *reproduced* if the 95 % interval (Student's t) of every check is on the claimed side,
  *not reproduced* if one is entirely on the other side, and *undecided* otherwise. The rules were
  written before there were records; remarks say where they were changed later.
- KMNIST is not counted: here it is its 10,000 test images, in the paper all 70,000.
- Networks multiply in bfloat16 unless a study says otherwise.
"""
BEHIND = {
    "cells": ("The main table, cell by cell", "all accuracies, reruns with other seeds, and BRB "
              "against its baseline"),
    "nmi_ari": ("NMI and ARI of the main table", "the same cells by the other two scores"),
    "claims": ("The paper's claims", "every check with its numbers"),
    "ablations": ("Ablations", "the paper's, and those that were run to explain differences"),
    "beyond": ("Beyond the paper", "the studies behind `preset=\"best\"`"),
    "figures": ("Figures", "the paper's figures from our runs"),
    "records": ("Records", "which runs there are, and where and when they were made"),
}
"""Pages behind the first one: title and content."""


def pages(reader: StoreReader, remarks: Remarks, figures: Collection[str]) -> dict[str, str]:
    """Map file names to Markdown; `figures` are those that were drawn."""
    runs = RecordedRuns(reader)
    judged = [claim.judge(runs) for claim in CLAIMS]
    behind = {
        "cells": cells_page(reader, remarks), "nmi_ari": nmi_ari_page(reader),
        "claims": claims_page(judged, remarks),
        "ablations": [
            "For readers who want the numbers of an ablation. Numbers in parentheses are the "
            "paper's, if it prints them, and the difference. Runs are pretrained unless a row or "
            "study says otherwise. The same settings and seeds can have other numbers in another "
            "study, because replicas are stacked differently and products are rounded differently; "
            "means agree within the error.\n", *studies_section(reader, ABLATIONS, remarks)],
        "beyond": ["For readers who want to know what the best preset was chosen from.\n",
                   *studies_section(reader, BEYOND, remarks)],
        "figures": figures_page(reader, figures, remarks),
        "records": ["For readers who want to know which runs there are and where they come from.\n",
                    _untitled(coverage_table(reader)),
                    _folded("Where the numbers come from", markdown(provenance_table(reader)))],
    }
    made = {f"reproduction/{name}.md": [f"# {BEHIND[name][0]}\n", *parts]
            for name, parts in behind.items()}
    made = {"reproduction.md": first_page(reader, judged, remarks, figures), **made}
    return {name: _joined([NOTICE, *parts]) for name, parts in made.items()}


def first_page(reader: StoreReader, judged: Judged, remarks: Remarks,
               figures: Collection[str]) -> list[str]:
    found = improvements(reader)
    parts = ["# The paper, reproduced\n",
             "For readers of the paper, and for everyone who wants to know how far its results can "
             "be trusted. One figure and one table say what was reproduced; the pages behind them "
             "have every number.\n"]
    if OVERVIEW in figures:
        parts += [f"![Our numbers against the paper's]({FIGURES_FOLDER}/{OVERVIEW}.svg)\n",
                  "*Left: accuracies with standard errors; on the line they equal the paper's. "
                  "Right: gains of BRB with 95 % intervals, paired by seed; better or worse if the "
                  f"interval excludes 0. {_gains(found)}*\n"]
    parts += [_untitled(result_table(reader, judged))]
    if (gains := mean_gains(reader, MAIN)) is not None:
        parts += [f"{gains}\n"]
    if (both := readings_table(reader)) is not None:
        parts += ["## Readings of the paper\n",
                  "The authors' released program differs from the text of the paper, most of all "
                  "by BatchNorm after every hidden layer, and multiplies in TF32. Cells that were "
                  "run in every reading:\n", _untitled(both),
                  "The text's reading in TF32 agrees best, so the main table was probably made "
                  "without BatchNorm; DEC without augmentation agrees with BatchNorm only (claim "
                  "5). The pages show the main table in TF32 where a data set was run whole in it, "
                  "and everything else in bfloat16.\n"]
    if SUMMARY in remarks:
        parts += ["## What differs from the paper\n",
                  "\n".join(f"- {line}" for line in remarks[SUMMARY].strip().splitlines()) + "\n"]
    unfinished = [name for name in STUDIES[:-len(BEYOND)] if coverage(reader, name).missing]
    if unfinished:
        parts.append(f"Not complete yet: {', '.join(unfinished)} "
                     "([records](reproduction/records.md)).\n")
    return [*parts, "## All numbers\n",
            "\n".join(f"- [{title}](reproduction/{name}.md): {about}"
                      for name, (title, about) in BEHIND.items()) + "\n", RULES]


def result_table(reader: StoreReader, judged: Judged) -> Table:
    """Tabulate what was reproduced: scores of the main table, then claims by verdict."""
    counted = {measure: count(agreements(reader, measure)) for measure in ("acc", "nmi", "ari")}
    rows = []
    for measure, own in counted.items():
        known, agree = own["known"], own["agree"]
        verdict = ("not run" if not known else "reproduced" if agree == known else
                   "mostly reproduced" if agree >= 0.9 * known else "partly reproduced")
        rows.append(Row(f"{labels.measure(measure)} of the main table", (
            Cell(f"{CELLS} cells"), Cell(f"{_agreeing(own)}"), Cell(verdict))))
    blocks = [tuple(rows)]
    for verdict, word in WORDS.items():
        blocks.append(tuple(
            Row(f"{number}. {claim.text}", (Cell(claim.paper or "–"), Cell(_headline(results)),
                                            Cell(word, best=verdict == "does not hold")))
            for number, (claim, (own, results)) in enumerate(zip(CLAIMS, judged, strict=True), 1)
            if own == verdict))
    return Table("Results", ("result", "in the paper", "here", "verdict"), tuple(blocks))


def _agreeing(counted: Mapping[str, int]) -> str:
    return (f"{counted['agree']} of {counted['known']} agree, {counted['higher']} are higher and "
            f"{counted['lower']} lower")


def _headline(results: Sequence[CheckResult]) -> str:
    verdicts = [result.verdict for result in results]
    if set(verdicts) == {"not run"}:
        return "–"
    if len(results) == 1:
        return results[0].ours
    failed = verdicts.count("does not hold")
    return (f"{verdicts.count('holds')} of {len(results)} checks hold"
            + (f", {failed} do{'es' if failed == 1 else ''} not" if failed else ""))


def _gains(found: Sequence[Improvement]) -> str:
    better, paper = sum(one.difference > 0 for one, _ in found), sum(own > 0 for _, own in found)
    sure, against = (sum(one.sign == sign for one, _ in found) for sign in ("better", "worse"))
    return (f"With KMNIST, BRB has the higher mean in {better} of {len(found)} cells, in the paper "
            f"in {paper}; by the interval it is better in {sure}, worse in {against}, and open in "
            f"{len(found) - sure - against}.")


def cells_page(reader: StoreReader, remarks: Remarks) -> list[str]:
    cells, found, again = agreements(reader), improvements(reader), repeated(reader)
    counted = count(cells)
    below = counted["differ"] - counted["above"]
    parts = ["For readers who want to compare a number with the paper. A cell *agrees* if it "
             "differs from the paper by at most two points or two combined standard errors; "
             "*higher* and *lower* are outside that range. Differences of more than two standard "
             "errors are bold.\n",
             f"Without KMNIST, {_agreeing(counted)}. {counted['differ']} differ by more than two "
             f"standard errors, {counted['above']} above and {below} below; chance alone would "
             f"give about {round(BY_CHANCE * counted['known'])}.\n"]
    for dataset in (*SETS, *PARTIAL):
        own = [cell for cell in cells if cell.dataset == dataset]
        parts.append(f"## {labels.dataset(dataset)}\n")
        if not own:
            parts.append("Not run.\n")
            continue
        parts += [f"{sum(cell.agrees for cell in own)} of {len(own)} cells agree."
                  + " Fewer images than in the paper, not counted." * (dataset in PARTIAL) + "\n",
                  _cell_remarks(dataset, own, remarks),
                  _folded(f"All {len(own)} cells", _untitled(agreement_table(cells, dataset)))]
    if again:
        parts += ["## Differing cells with other seeds\n",
                  f"{len(again)} of {counted['differ']} cells that differ were run with ten other "
                  f"seeds (study `{OTHER_SEEDS}`); {sum(one.differs_again for one in again)} "
                  "differ again. That tells whether our first seeds were an accident, but not "
                  "whether the paper's were.\n", _untitled(repeated_table(again))]
    if found:
        parts += ["## BRB against its baseline\n",
                  f"Paired by seed. *Better* and *worse* if the 95 % interval excludes 0, else "
                  f"*open*. {_gains(found)}\n", _untitled(improvement_table(found))]
    return parts


def _cell_remarks(dataset: str, cells: Sequence[CellAgreement], remarks: Remarks) -> str:
    """Return the remark on the data set, and one on every cell that differs."""
    whole = remarks.get(f"{MAIN}/{dataset}")
    lines = []
    for cell in cells:
        said = remarks.get(f"{MAIN}/{cell.name}")
        if said or cell.differs and not whole:
            ours = f"{cell.mean:.1f}, paper {cell.paper:.1f}"
            lines.append(f"- {cell.label} ({ours}): {said or 'not explained.'}")
    heading = "More than two standard errors from the paper:\n\n" if lines else ""
    return "\n\n".join(filter(None, [whole, heading + "\n".join(lines)])) + "\n"


def nmi_ari_page(reader: StoreReader) -> list[str]:
    parts = ["For readers who compare NMI or ARI with the paper. Read it like "
             "[the page of accuracies](cells.md), which has the remarks.\n"]
    accuracies = {cell.name: cell for cell in agreements(reader)}
    for measure in ("nmi", "ari"):
        cells, name = agreements(reader, measure), labels.measure(measure)
        counted = count(cells)
        parts.append(f"## {name}\n\nWithout KMNIST, {_agreeing(counted)}.\n")
        parts += [_folded(labels.dataset(dataset), _untitled(
            agreement_table(cells, dataset, measure))) for dataset in (*SETS, *PARTIAL)
            if any(cell.dataset == dataset for cell in cells)]
        own = [cell for cell in cells if cell.dataset in SETS and cell.differs
               and not accuracies[cell.name].differs]
        if own:
            listed = [f"- {cell.label}, {labels.dataset(cell.dataset)}: {signed(cell.units, 1)}, "
                      f"by accuracy {signed(accuracies[cell.name].units, 1)}" for cell in own]
            parts += [f"By {name}, {counted['differ']} cells differ by more than two standard "
                      f"errors, {len(own)} of which do not by accuracy; chance alone would give "
                      f"about {round(BY_CHANCE * counted['known'])}. In standard errors:\n",
                      "\n".join(listed) + "\n"]
    return parts


def claims_page(judged: Judged, remarks: Remarks) -> list[str]:
    rows, details = [], []
    for number, (claim, (verdict, results)) in enumerate(zip(CLAIMS, judged, strict=True), 1):
        word, failed = WORDS[verdict], verdict == "does not hold"
        rows.append(Row(f"{number}. {claim.text}", (
            Cell(claim.paper or "–"), Cell(_headline(results)), Cell(word, best=failed))))
        checks = Table("", ("check", "here", "expected", ""), (tuple(
            Row(one.what, (Cell(one.ours), Cell(one.expected), Cell(one.verdict)))
            for one in results),))
        details += [f"## {number}. {claim.text}\n",
                    " ".join(filter(None, [f"**{word.capitalize()}.**", claim.rule,
                                           remarks.get(f"claims/{claim.name}")])) + "\n",
                    _folded("Checks", _untitled(checks))]
    verdicts = [verdict for verdict, _ in judged]
    counts = ", ".join(f"{verdicts.count(verdict)} {word}" for verdict, word in WORDS.items())
    return [f"For readers who want to know why a claim counts as reproduced or not: {counts}. A "
            "check takes a number for each seed and compares the 95 % interval of its mean with "
            "what the claim expects. Differences of scores are in points.\n",
            _untitled(Table("", ("claim", "in the paper", "here", "verdict"), (tuple(rows),))),
            *details]


def studies_section(reader: StoreReader, studies: Iterable[str], remarks: Remarks) -> list[str]:
    parts = []
    for name in studies:
        parts.append(f"## {name}\n\n{named(name).about}\n")
        if not coverage(reader, name).finished:
            parts.append("Not run.\n")
            continue
        parts += [remarks[name] + "\n"] if name in remarks else []
        own = [f"- {key.removeprefix(name + '/')}: {text}" for key, text in remarks.items()
               if key.startswith(f"{name}/")]
        parts += ["\n".join(own) + "\n"] if own else []
        against_brb = against_brb_table(reader, name)
        made = [*tables(reader, name), *([against_brb] if against_brb else [])]
        if name in WITH_ERRORS:
            measure = WITH_ERRORS[name]
            cells = agreements(reader, measure, (name,), table=name)
            made += [agreement_table(cells, dataset, measure)
                     for dataset in dict.fromkeys(cell.dataset for cell in cells)]
        parts.append(_folded("Tables", "\n".join(map(markdown, made))))
    return parts


def figures_page(reader: StoreReader, figures: Collection[str], remarks: Remarks) -> list[str]:
    parts = ["For readers who want to compare the paper's figures with our runs.\n"]
    for name, spec in FIGURES.items():
        if name in figures:
            caption = [f"*{name}*: {spec.about}", f"From {source(reader, name)}.",
                       remarks.get(f"figures/{name}", "")]
            parts += [f"![{spec.about}](../{FIGURES_FOLDER}/{name}.svg)\n",
                      " ".join(filter(None, caption)) + "\n"]
    left = [f"{name} ({' or '.join(spec.studies)})" for name, spec in FIGURES.items()
            if name not in figures]
    return parts + ([f"Not drawn, no records: {', '.join(left)}.\n"] if left else [])


def cell_names(study: str) -> set[str]:
    """Return the keys of remarks on cells: STUDY/SET/ALGORITHM/VARIANT/pretrained or scratch."""
    spec = named(study)
    return {f"{study}/{PART_OF.get(dataset, dataset)}/{algorithm}/{variant.name}/"
            + ("pretrained" if pretrained else "scratch")
            for dataset in spec.datasets for algorithm in spec.algorithms
            for pretrained in spec.pretrained for variant in spec.variants}


def _folded(title: str, text: str) -> str:
    return f'<details markdown="1">\n<summary>{title}</summary>\n\n{text.rstrip()}\n\n</details>\n'


def _untitled(table: Table) -> str:
    return markdown(table).split("\n", 2)[2]


def _joined(parts: Iterable[str]) -> str:
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)
